//! The polar code with lane repair and dithers: a failed encoding is repaired before another is tried. Not from a
//! paper.
//!
//! With the stuck cells given, successive cancellation is linear (see `cancellation`): lanes, further runs with message
//! 0 and other random bits, each give a codeword and conflicts. A sum of lanes with the conflicts of the failed run
//! cancels them, and Gaussian elimination finds such a sum. The lanes do not depend on the message, so each further try
//! costs one run: a try adds a pseudo-random dither of index d to the page, 0 ≤ d < 16, all zeros for d = 0. The
//! decoder removes the dither, then decodes as `polar`.
//!
//! The last byte of the spare stores d, the bytes before store the last bytes of the message.

use super::curves::Curve;
use super::polar::{Base, load, spare_for};
use super::{Code, CodeEntry, Effort, Failed, Shape, Unfit};
use palimpsest_flash::rng::Rng;

pub(super) const ENTRY: CodeEntry = CodeEntry {
    name: "polar-repair",
    about: "polar, conflicts cancelled by elimination over further runs, up to 16 dithers; decoded as fast as polar",
    build: |shape| Ok(Box::new(PolarRepair::new(shape)?)),
    spare_needed: |message_bytes, cell_bytes, failure| {
        let coded = spare_for(message_bytes, cell_bytes, failure, 1)? as f64 * SHARE_OF_POLAR;
        Ok(coded as usize + 2)
    },
    curves: &[
        Curve { cell_bytes: 1024, points: &[(20, 898, 150), (31, 4716, 150), (41, 22524, 106), (51, 41720, 36)] },
        Curve {
            cell_bytes: 4096,
            points: &[(51, 590, 150), (72, 1062, 58), (92, 1537, 52), (113, 2903, 12), (133, 4724, 9)],
        },
        Curve {
            cell_bytes: 8192,
            points: &[(66, 179, 60), (92, 230, 37), (123, 798, 58), (160, 2109, 31), (184, 5685, 35), (205, 10496, 24)],
        },
        Curve {
            cell_bytes: 16384,
            points: &[(98, 51, 24), (131, 83, 34), (164, 111, 19), (197, 145, 15), (229, 142, 4)],
        },
    ],
};

/// Share of the spare that `polar` needs for the same failure rate: measured down to 1e-4, rounded up
/// (`docs/wom-codes.md`).
const SHARE_OF_POLAR: f64 = 0.6;

const DITHERS: u64 = 16;
const DITHER_STREAM: u64 = 0x0d17_4e25;
/// Lanes without a new conflict vector before a stop, which misses one with probability 2^-4 or less.
const IDLE_LANES: u32 = 4;

struct PolarRepair {
    shape: Shape,
    base: Base,
    dither: Vec<u64>,
    lanes: Lanes,
}

/// Runs with message 0, and their conflicts brought into echelon form.
#[derive(Default)]
struct Lanes {
    count: usize,
    /// Codewords, one after the other.
    codewords: Vec<u64>,
    /// Words of the page in which some run had conflicts; only these are stored, in this order.
    active: Vec<usize>,
    place: Vec<u32>,
    rows: Vec<Row>,
}

#[derive(Default, Clone)]
struct Row {
    /// Conflicts in the active words; shorter if words became active later.
    conflicts: Vec<u64>,
    /// The lanes of this sum, one a bit.
    sum: Vec<u64>,
    /// Active word and bit, 0 in the rows after this one.
    pivot: (usize, u32),
}

impl Row {
    fn add(&mut self, other: &Row) {
        add(&mut self.conflicts, &other.conflicts);
        add(&mut self.sum, &other.sum);
    }

    fn first_conflict(&self) -> Option<(usize, u32)> {
        let word = self.conflicts.iter().position(|&word| word != 0)?;
        Some((word, self.conflicts[word].trailing_zeros()))
    }
}

fn add(to: &mut Vec<u64>, from: &[u64]) {
    if to.len() < from.len() {
        to.resize(from.len(), 0);
    }
    to.iter_mut().zip(from).for_each(|(to, from)| *to ^= from);
}

impl Lanes {
    fn clear(&mut self, words: usize) {
        self.count = 0;
        self.codewords.clear();
        self.active.clear();
        self.place.clear();
        self.place.resize(words, u32::MAX);
        self.rows.clear();
    }

    /// The conflicts of a run as a row, reduced by the earlier ones.
    fn reduce(&mut self, conflicts: &[u64]) -> Row {
        let mut row = Row::default();
        row.conflicts.resize(self.active.len(), 0);
        for (word, &bits) in conflicts.iter().enumerate().filter(|&(_, &bits)| bits != 0) {
            if self.place[word] == u32::MAX {
                self.place[word] = self.active.len() as u32;
                self.active.push(word);
                row.conflicts.push(0);
            }
            row.conflicts[self.place[word] as usize] = bits;
        }
        for known in &self.rows {
            if row.conflicts[known.pivot.0] >> known.pivot.1 & 1 == 1 {
                row.add(known);
            }
        }
        row
    }

    /// Adds a lane. False if the lane is a sum of earlier ones.
    fn push(&mut self, conflicts: &[u64], codeword: impl Iterator<Item = u64>) -> bool {
        let mut row = self.reduce(conflicts);
        let Some(pivot) = row.first_conflict() else { return false };
        row.pivot = pivot;
        let mut itself = vec![0; self.count / 64 + 1];
        itself[self.count / 64] = 1 << (self.count % 64);
        add(&mut row.sum, &itself);
        self.rows.push(row);
        self.codewords.extend(codeword);
        self.count += 1;
        true
    }

    /// Adds the codewords of `row`'s lanes to `x`.
    fn apply(&self, row: &Row, x: &mut [u64]) {
        for (lane, codeword) in self.codewords.chunks_exact(x.len()).enumerate() {
            if row.sum.get(lane / 64).is_some_and(|word| word >> (lane % 64) & 1 == 1) {
                x.iter_mut().zip(codeword).for_each(|(x, lane)| *x ^= lane);
            }
        }
    }
}

impl PolarRepair {
    fn new(shape: Shape) -> Result<Self, Unfit> {
        let base = Base::new(shape, 1)?;
        let words = shape.cell_bytes / 8;
        Ok(PolarRepair { shape, base, dither: vec![0; words], lanes: Lanes::default() })
    }

    fn set_dither(&mut self, index: u64) {
        if index == 0 {
            return self.dither.fill(0);
        }
        let mut rng = Rng::new(index, DITHER_STREAM);
        self.dither.iter_mut().for_each(|word| *word = rng.next_u64());
    }

    /// Sets `base.x` to the page without the dither. False if this dither fails.
    fn try_dither(&mut self, message: &[u8], rng: &mut Rng, idle: &mut u32) -> bool {
        let (base, lanes, dither) = (&mut self.base, &mut self.lanes, &self.dither);
        base.draw(message, rng);
        base.solve(|at| dither[at]);
        base.x.iter_mut().zip(&base.step).for_each(|(x, step)| *x ^= step);
        if base.conflicts.iter().all(|&conflict| conflict == 0) {
            return true;
        }
        let mut left = lanes.reduce(&base.conflicts);
        let mut page = std::mem::take(&mut base.x);
        base.x.resize(page.len(), 0);
        while left.first_conflict().is_some() && *idle < IDLE_LANES {
            base.draw_zero(rng);
            base.solve(|_| 0);
            if !lanes.push(&base.conflicts, base.x.iter().zip(&base.step).map(|(x, step)| x ^ step)) {
                *idle += 1;
                continue;
            }
            let row = lanes.rows.last().expect("a lane was taken");
            if left.conflicts.get(row.pivot.0).is_some_and(|word| word >> row.pivot.1 & 1 == 1) {
                left.add(row);
            }
        }
        let solved = left.first_conflict().is_none();
        if solved {
            lanes.apply(&left, &mut page);
        }
        base.x = page;
        solved
    }
}

impl Code for PolarRepair {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn encode(&mut self, page: &mut [u8], message: &[u8], seed: u64) -> Result<Effort, Failed> {
        assert_eq!((page.len(), message.len()), (self.shape.page_bytes(), self.shape.message_bytes));
        let (cells, spare) = page.split_at_mut(self.shape.cell_bytes);
        let (index, spare) = spare.split_last_mut().expect("a byte of spare");
        if !self.base.raw_fits(spare, message) {
            return Err(Failed);
        }
        let mut rng = Rng::new(seed, 0);
        let mut idle = 0;
        self.base.read_stuck(cells);
        self.lanes.clear(self.dither.len());
        for dither in (0..DITHERS).filter(|&dither| dither as u8 & !*index == 0) {
            self.set_dither(dither);
            if self.try_dither(message, &mut rng, &mut idle) {
                self.base.x.iter_mut().zip(&self.dither).for_each(|(x, dither)| *x ^= dither);
                self.base.write(cells, spare, message);
                *index = dither as u8;
                return Ok(Effort { attempts: dither as u32 + 1, equations: self.lanes.count as u32 });
            }
        }
        Err(Failed)
    }

    fn decode(&mut self, page: &[u8], message: &mut [u8]) {
        assert_eq!((page.len(), message.len()), (self.shape.page_bytes(), self.shape.message_bytes));
        let (cells, spare) = page.split_at(self.shape.cell_bytes);
        let (index, spare) = spare.split_last().expect("a byte of spare");
        load(cells, &mut self.base.x);
        if *index != 0 {
            self.set_dither(u64::from(*index));
            self.base.x.iter_mut().zip(&self.dither).for_each(|(x, dither)| *x ^= dither);
        }
        self.base.read(spare, message);
    }
}
