//! The polar code (Burshtein and Strugatski, "Polar write once memory codes", IEEE Trans. Inf. Theory 59(8), 2013), the
//! code of second writes in the paper of the layer `llh`.
//!
//! A page y of n = 2^m cells decodes to u = yG (see `transform`); the message is u at k fixed positions (`positions`).
//! The encoder takes u with the message and random bits elsewhere, and adds a codeword without message that cancels the
//! stuck cells. Successive cancellation (`cancellation`) finds that codeword, or the encoding fails;
//! `docs/wom-codes.md` has failure rates. Because k must be less than n / 2 by a share of n, the erased spare of s
//! bytes stores the last s bytes of the message.
//!
//! The paper adds a dither to the page, known to the decoder, because the proof must hold for every message. Here the
//! dither is 0: a failure is then as likely for all but special messages, and the seed changes the random bits.

use super::cancellation::Cancellation;
use super::curves::Curve;
use super::positions::{Positions, bits_short};
use super::{Code, CodeEntry, Effort, Failed, Shape, Unfit, word_of};
use palimpsest_flash::rng::Rng;

pub(super) const ENTRY: CodeEntry = CodeEntry {
    name: "polar",
    about: "successive cancellation, one try; cells a power of two (Burshtein and Strugatski)",
    build: |shape| Ok(Box::new(Polar { shape, base: Base::new(shape, 0)? })),
    spare_needed: |message_bytes, cell_bytes, failure| spare_for(message_bytes, cell_bytes, failure, 0),
    curves: CURVES,
};

#[rustfmt::skip]
const CURVES: &[Curve] = &[
    Curve { cell_bytes: 1024, points: &[(41, 153, 150), (61, 239, 150), (82, 980, 150), (102, 8312, 150),
        (123, 126738, 150), (143, 182529, 12)] },
    Curve { cell_bytes: 4096, points: &[(143, 150, 150), (184, 182, 150), (204, 241, 150), (225, 424, 150),
        (266, 1573, 150), (307, 6600, 150), (348, 50831, 150)] },
    Curve { cell_bytes: 8192, points: &[(246, 150, 150), (328, 193, 150), (410, 525, 150), (451, 1159, 150),
        (512, 5751, 150), (573, 29274, 150), (614, 46108, 63), (655, 56838, 32)] },
    Curve { cell_bytes: 16384, points: &[(410, 150, 150), (573, 170, 150), (655, 281, 150), (737, 711, 150),
        (819, 2100, 150), (901, 8512, 150), (983, 25237, 124), (1065, 27427, 33)] },
    Curve { cell_bytes: 32768, points: &[(819, 150, 150), (983, 167, 150), (1147, 278, 150), (1311, 812, 150),
        (1475, 3309, 150), (1638, 11764, 119)] },
];

/// Bytes of spare for one try by the union bound, with `reserved` bytes of the spare for other data.
pub(super) fn spare_for(message: usize, cells: usize, failure: f64, reserved: usize) -> Result<usize, Unfit> {
    Base::fit(Shape { message_bytes: message, cell_bytes: cells, spare_bytes: message + reserved }, reserved)?;
    Ok(bits_short(8 * cells, 8 * message, failure).div_ceil(8))
}

/// The common part of the polar codes: positions, cancellation, and the words of a page.
pub(super) struct Base {
    positions: Positions,
    cancellation: Cancellation,
    /// Bytes of the message that are coded; the rest is raw in the spare.
    coded: usize,
    message: Vec<u64>,
    /// Codeword with the message and random bits, before cancellation.
    pub(super) x: Vec<u64>,
    pub(super) known: Vec<u64>,
    values: Vec<u64>,
    /// Codeword that meets the stuck cells, and the conflicts that remain.
    pub(super) step: Vec<u64>,
    pub(super) conflicts: Vec<u64>,
}

impl Base {
    /// Refuses shapes that are impossible with `reserved` bytes of the spare for other data.
    fn fit(shape: Shape, reserved: usize) -> Result<usize, Unfit> {
        let Shape { message_bytes, cell_bytes, spare_bytes } = shape;
        if !cell_bytes.is_power_of_two() || cell_bytes < 8 {
            return Err(Unfit(format!(
                "a polar code cannot have {cell_bytes} bytes of cells; expected a power of two, 8 or more"
            )));
        }
        let raw = spare_bytes.saturating_sub(reserved).min(message_bytes);
        if spare_bytes < reserved || message_bytes == 0 || message_bytes - raw > cell_bytes {
            return Err(Unfit(format!(
                "a polar code cannot store {message_bytes} bytes in {cell_bytes} bytes of cells and {spare_bytes} of \
                 spare; expected a message of 1 to {} bytes, and {reserved} bytes of spare or more",
                cell_bytes + raw
            )));
        }
        Ok(message_bytes - raw)
    }

    pub(super) fn new(shape: Shape, reserved: usize) -> Result<Self, Unfit> {
        let coded = Self::fit(shape, reserved)?;
        let words = shape.cell_bytes / 8;
        let positions = Positions::new(words, 8 * coded);
        let zeros = || vec![0; words];
        Ok(Base {
            cancellation: Cancellation::new(positions.mask.clone()),
            positions,
            coded,
            message: vec![0; Positions::message_words(8 * coded) + 1],
            x: zeros(),
            known: zeros(),
            values: zeros(),
            step: zeros(),
            conflicts: zeros(),
        })
    }

    /// True if the spare can store the raw part of the message.
    pub(super) fn raw_fits(&self, spare: &[u8], message: &[u8]) -> bool {
        message[self.coded..].iter().zip(spare).all(|(&new, &old)| new & !old == 0)
    }

    /// Writes `x`, the page, into the cells, and the raw part of the message into the spare.
    pub(super) fn write(&self, cells: &mut [u8], spare: &mut [u8], message: &[u8]) {
        store(&self.x, cells);
        let raw = &message[self.coded..];
        spare[..raw.len()].copy_from_slice(raw);
    }

    /// Sets the known cells: the stuck ones of `cells`.
    pub(super) fn read_stuck(&mut self, cells: &[u8]) {
        load(cells, &mut self.known);
        self.known.iter_mut().for_each(|known| *known = !*known);
    }

    /// Sets `x` to a random codeword with the message.
    pub(super) fn draw(&mut self, message: &[u8], rng: &mut Rng) {
        load(&message[..self.coded], &mut self.message);
        self.cancellation.fill(&mut self.x, rng);
        self.positions.scatter(&self.message, &mut self.x);
        self.cancellation.encode(&mut self.x);
    }

    /// Sets `x` to a random codeword with the message 0.
    pub(super) fn draw_zero(&mut self, rng: &mut Rng) {
        self.cancellation.fill(&mut self.x, rng);
        self.x.iter_mut().zip(&self.positions.mask).for_each(|(x, mask)| *x &= !mask);
        self.cancellation.encode(&mut self.x);
    }

    /// Sets `step` and `conflicts` so that `x` + `step` equals `target` where cells are known, if there is no conflict.
    pub(super) fn solve(&mut self, target: impl Fn(usize) -> u64) {
        for (at, (value, (&x, &known))) in self.values.iter_mut().zip(self.x.iter().zip(&self.known)).enumerate() {
            *value = (x ^ target(at)) & known;
        }
        self.cancellation.solve(&self.known, &self.values, &mut self.step, &mut self.conflicts);
    }

    /// Reads the coded part of the message from `x`, a page without dither, and the raw part from `spare`.
    pub(super) fn read(&mut self, spare: &[u8], message: &mut [u8]) {
        self.cancellation.decode(&mut self.x);
        self.positions.gather(&self.x, &mut self.message);
        let (coded, raw) = message.split_at_mut(self.coded);
        store(&self.message, coded);
        raw.copy_from_slice(&spare[..raw.len()]);
    }
}

/// Copies bytes into words, 0 after the last.
pub(super) fn load(bytes: &[u8], words: &mut [u64]) {
    let chunks = bytes.chunks(8);
    words[chunks.len()..].fill(0);
    words.iter_mut().zip(chunks).for_each(|(word, chunk)| *word = word_of(chunk));
}

/// Copies words into all of `bytes`.
pub(super) fn store(words: &[u64], bytes: &mut [u8]) {
    for (chunk, word) in bytes.chunks_mut(8).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
    }
}

struct Polar {
    shape: Shape,
    base: Base,
}

impl Code for Polar {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn encode(&mut self, page: &mut [u8], message: &[u8], seed: u64) -> Result<Effort, Failed> {
        assert_eq!((page.len(), message.len()), (self.shape.page_bytes(), self.shape.message_bytes));
        let base = &mut self.base;
        let (cells, spare) = page.split_at_mut(self.shape.cell_bytes);
        base.read_stuck(cells);
        base.draw(message, &mut Rng::new(seed, 0));
        base.solve(|_| 0);
        if base.conflicts.iter().any(|&conflict| conflict != 0) || !base.raw_fits(spare, message) {
            return Err(Failed);
        }
        base.x.iter_mut().zip(&base.step).for_each(|(x, step)| *x ^= step);
        base.write(cells, spare, message);
        Ok(Effort { attempts: 1, equations: 0 })
    }

    fn decode(&mut self, page: &[u8], message: &mut [u8]) {
        assert_eq!((page.len(), message.len()), (self.shape.page_bytes(), self.shape.message_bytes));
        let (cells, spare) = page.split_at(self.shape.cell_bytes);
        load(cells, &mut self.base.x);
        self.base.read(spare, message);
    }
}
