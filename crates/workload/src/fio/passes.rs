//! Requests in fio's own order: for equal seeds the requests, one by one, that fio 3.33 issues.
//!
//! In a pass over the region a random pattern uses each block once. If the drawn block is used, the request takes the
//! next free block, wrapping at the end of the region; a request ends before the next used block. A pass ends when all
//! blocks are used, when `size` bytes were requested, or when a request does not fit. `loops` and `io_size` repeat the
//! pass, with the same random numbers (`randrepeat`, fio's default) or further ones; a workload that only `n` or
//! `runtime` bounds continues to draw. Sequential patterns are passes too. No request leaves the region. Kinds of a
//! mix, sizes of a split and the random share of a pattern come from fio's generators (`tausworthe.rs`, `lfsr.rs`).
//!
//! `source.rs` draws independently for `norandommap`, skewed distributions, files, `sequential_from`, and `blockalign`
//! other than the smallest size (for which fio has no map either).
//!
//! Ignored: addresses in zones of `zonemode=zbd` (`zoned.rs`, which ends passes early), verification
//! (`readback.rs`), and decisions that depend on measured time.

use super::distribution::Distribution;
use super::lfsr::Lfsr;
use super::map::{BlockMap, MOST_BLOCKS};
use super::region::Region;
use super::spec::{FioSpec, Generator, Strides, direction, place};
use super::tausworthe::{Ahead, Seeds, Tausworthe};
use crate::request::{RequestKind, SECTOR_BYTES};
use palimpsest_flash::error::{Error, Result};

/// The run's seed that selects fio's default seed.
const DEFAULT_SEED: u64 = 1;
/// fio's default `randseed`.
const FIO_SEED: u64 = 0x89;
/// Most blocks for which fio draws addresses with the generator of 32 bits.
const SHORT_BLOCKS: u64 = u32::MAX as u64;

/// Kind, first sector on the drive, sectors.
type Extent = (RequestKind, u64, u32);

/// The requests of a workload, pass by pass.
#[derive(Debug, Clone)]
pub struct Passes {
    kinds: &'static [RequestKind],
    random: bool,
    lanes: [Lane; 3],
    /// Start of the region, and length, in bytes.
    first: u64,
    bytes: u64,
    order: Order,
    draws: Draws,
    seeds: Seeds,
    long: bool,
    /// Each pass has the random numbers of the first.
    repeats: bool,
    read_permille: u32,
    limits: Limits,
    mix: Mix,
    /// The extent just trimmed, which is written next.
    trimmed: Option<(u64, u32)>,
    done: Done,
    /// Bytes added after a sequential request.
    skip: i64,
    /// Requests for each random address, those left, and whether they repeat the last start.
    run: u64,
    left: u64,
    identical: bool,
    strides: Strides,
    /// Start of the window, and bytes requested in it.
    window: (u64, u64),
    /// Passes that have ended.
    pub ended: u64,
}

#[derive(Debug, Clone)]
enum Order {
    Sequential,
    Mapped(BlockMap),
    Shifted(Lfsr),
}

/// Sizes and position of one direction.
#[derive(Debug, Clone)]
struct Lane {
    /// Smallest and largest size, in bytes.
    least: u64,
    most: u64,
    /// Blocks of the smallest size in the region.
    blocks: u64,
    /// Sizes with their shares in the unit of `scale`, the smallest share first, as fio sorts them.
    sizes: Vec<(u64, u64)>,
    /// 100, or 1000 where a share has a decimal.
    scale: u64,
    /// Sizes are multiples of this between the least and the most; 0: sizes have shares.
    step: u64,
    /// Share of random requests, in tenths of a percent.
    random_permille: u32,
    /// End of the last request, from the region's start.
    next: u64,
    /// Start of the last request.
    last: u64,
}

#[derive(Debug, Clone)]
struct Draws {
    sizes: [Tausworthe; 3],
    kinds: Tausworthe,
    addresses: Ahead,
    sequential: [Tausworthe; 3],
}

#[derive(Debug, Clone)]
struct Limits {
    /// Neither bytes nor passes end the workload.
    endless: bool,
    /// Bytes of a pass.
    pass: u64,
    /// Bytes of the workload.
    all: u64,
    passes_left: u64,
    /// `io_size` is given.
    sized: bool,
    /// The largest size of any direction.
    most: u64,
    /// Each pass reads its writes back, and these reads count for the bytes of later passes.
    reads_back: bool,
}

/// fio's turn between reads and writes.
#[derive(Debug, Clone)]
struct Mix {
    kind: RequestKind,
    /// Requests of the kind before the next draw.
    until: u64,
}

#[derive(Debug, Clone, Default)]
struct Done {
    requests: [u64; 3],
    bytes: [u64; 3],
    in_pass: u64,
}

impl Passes {
    /// True if fio's own order applies to `spec`.
    pub fn fit(spec: &FioSpec) -> bool {
        let has_files = spec.files.is_some() || spec.file_sizes.is_some() || !spec.groups.is_empty();
        let plain = !has_files && spec.sequential_from.is_none();
        let least = |sizes: &[super::SizeShare]| sizes.iter().map(|share| share.bytes).min();
        let aligned = spec.block_sizes.iter().all(|sizes| spec.block_align.is_none_or(|own| least(sizes) == Some(own)));
        let mapped = !spec.no_map || spec.generator == Generator::Lfsr;
        plain && (!spec.pattern.random || (spec.distribution == Distribution::Random && aligned && mapped))
    }

    /// True if requests go to the blocks that the map has left.
    pub fn use_up_addresses(&self) -> bool {
        matches!(self.order, Order::Mapped(_))
    }

    /// The seeds of job `number` (from 1) of a run with `seed`.
    pub fn seeds(spec: &FioSpec, seed: u64, number: u64) -> Seeds {
        let (randseed, repeats) = match (spec.seed, spec.repeat) {
            (Some(own), repeat) => (own, repeat),
            (None, true) if seed == DEFAULT_SEED => (FIO_SEED, true),
            (None, _) => (seed, false),
        };
        Seeds::new(randseed, number, repeats)
    }

    /// The requests of job `number` (from 1) in `region`.
    ///
    /// # Errors
    /// When the map would be too large.
    pub fn new(spec: &FioSpec, region: Region, seed: u64, number: u64) -> Result<Passes> {
        let bytes = region.sectors * SECTOR_BYTES;
        let lanes = [RequestKind::Read, RequestKind::Write, RequestKind::Trim].map(|kind| Lane::new(spec, kind, bytes));
        let blocks = smallest_blocks(&lanes, bytes);
        let mut seeds = Passes::seeds(spec, seed, number);
        if spec.pattern.kinds[0] == RequestKind::Trim {
            // fio writes the trimmed extents with the same sizes.
            seeds.sizes[2] = seeds.sizes[1];
        }
        let long = spec.generator == Generator::Long;
        let order = match spec.generator {
            _ if !spec.pattern.random => Order::Sequential,
            Generator::Lfsr => match Lfsr::new(blocks, seeds.addresses) {
                Some(lfsr) => Order::Shifted(lfsr),
                None => {
                    return Err(Error::input(place("random_generator"), format!("{blocks} blocks; expected fewer")));
                }
            },
            _ if blocks > MOST_BLOCKS => {
                let what = format!(
                    "the map of {blocks} blocks would take {} bytes; expected norandommap or random_generator=lfsr, \
                     which need none",
                    blocks / 8
                );
                return Err(Error::input(place("norandommap"), what));
            }
            _ => Order::Mapped(BlockMap::new(blocks)),
        };
        let limits = Limits::new(spec, region, &lanes);
        let mix = Mix { kind: RequestKind::Read, until: 0 };
        let draws = Draws::new(&seeds, long, blocks);
        Ok(Passes {
            kinds: spec.pattern.kinds,
            random: spec.pattern.random,
            lanes,
            first: region.first * SECTOR_BYTES,
            bytes,
            order,
            draws,
            seeds,
            long,
            // As in fio, a seed of the user ends the repetition.
            repeats: spec.repeat && spec.seed.is_none(),
            read_permille: spec.read_permille,
            limits,
            mix,
            trimmed: None,
            done: Done::default(),
            skip: spec.skip,
            run: spec.run,
            left: spec.run,
            identical: spec.identical,
            strides: spec.zones,
            window: (0, 0),
            ended: 0,
        })
    }

    /// The number of requests; `None` unless all have one size and cover the region.
    pub fn expected(&self) -> Option<u64> {
        if self.limits.endless {
            return Some(u64::MAX);
        }
        let [kind] = self.kinds else { return None };
        let lane = &self.lanes[direction(*kind)];
        let even = lane.least == lane.most && self.bytes.is_multiple_of(lane.least);
        let is_plain = self.skip == 0 && self.run == 1 && !self.strides.strided;
        let whole = even && is_plain && (!self.random || lane.random_permille == 1000) && !self.limits.sized;
        whole.then(|| self.limits.all.div_ceil(lane.least))
    }

    /// The next request; `None` at the end of the workload. `turn` may replace the kind of each request of a mix.
    #[inline]
    pub fn next(&mut self, turn: impl Fn(RequestKind) -> RequestKind) -> Option<Extent> {
        loop {
            if !self.limits.endless && self.counted() >= self.limits.all {
                return None;
            }
            if (self.limits.endless || self.done.in_pass < self.limits.pass)
                && let Some((kind, start, bytes)) = self.fill(&turn)
            {
                let at = direction(kind);
                self.done.requests[at] += 1;
                self.done.bytes[at] += bytes;
                self.done.in_pass += bytes;
                (self.lanes[at].last, self.lanes[at].next) = (start, start + bytes);
                self.window.1 += bytes;
                return Some((kind, (self.first + start) / SECTOR_BYTES, (bytes / SECTOR_BYTES) as u32));
            }
            if !self.begins_again() {
                return None;
            }
            self.restart();
        }
    }

    /// Notes that the last request, of this kind, was shorter by `cut` bytes.
    pub fn cut(&mut self, kind: RequestKind, cut: u64) {
        self.done.bytes[direction(kind)] -= cut;
        self.done.in_pass -= cut;
    }

    /// Notes that the last request of this direction ended at `end` bytes from the start of the region.
    pub fn placed(&mut self, kind: RequestKind, end: u64) {
        self.lanes[direction(kind)].next = end;
    }

    /// Ends the pass without the request of `bytes` just returned; false at the end of the workload.
    pub fn end_pass(&mut self, kind: RequestKind, bytes: u64) -> bool {
        self.done.requests[direction(kind)] -= 1;
        self.cut(kind, bytes);
        let follows = self.counted() < self.limits.all && self.begins_again();
        if follows {
            self.restart();
        }
        follows
    }

    /// The bytes that count against the limits: trims only if the pattern has nothing else.
    fn counted(&self) -> u64 {
        let [reads, writes, trims] = self.done.bytes;
        match self.kinds {
            [RequestKind::Trim] => trims,
            [RequestKind::Trim, _] => writes,
            _ => reads + writes,
        }
    }

    /// True if another pass follows.
    fn begins_again(&mut self) -> bool {
        if self.done.in_pass == 0 {
            return false;
        }
        if self.limits.endless {
            return true;
        }
        if self.limits.passes_left > 0 {
            self.limits.passes_left -= 1;
            return true;
        }
        let [_, written, _] = self.done.bytes;
        let read_back = if self.limits.reads_back { written } else { 0 };
        let done = self.done.bytes.iter().sum::<u64>() + read_back;
        self.limits.sized && self.limits.all.saturating_sub(done) >= self.limits.most
    }

    fn restart(&mut self) {
        match &mut self.order {
            Order::Sequential => {}
            Order::Mapped(map) => map.clear(),
            Order::Shifted(lfsr) => lfsr.reset(self.seeds.addresses),
        }
        if self.repeats {
            let blocks = smallest_blocks(&self.lanes, self.bytes);
            self.draws = Draws::new(&self.seeds, self.long, blocks);
        }
        for lane in &mut self.lanes {
            (lane.next, lane.last) = (0, 0);
        }
        (self.left, self.window) = (self.run, (0, 0));
        self.ended += 1;
        self.mix.until = 0;
        self.trimmed = None;
        self.done.in_pass = 0;
    }

    /// Kind, start in the region and bytes of a request; `None` at the end of the pass.
    #[inline]
    fn fill(&mut self, turn: impl Fn(RequestKind) -> RequestKind) -> Option<(RequestKind, u64, u64)> {
        if let Some((start, sectors)) = self.trimmed.take() {
            return Some((RequestKind::Write, start, u64::from(sectors) * SECTOR_BYTES));
        }
        let kind = self.kind(turn);
        let lane = direction(kind);
        self.left -= 1;
        let is_hit = self.left == 0;
        if is_hit {
            self.left = self.run;
        }
        self.stride(lane);
        let random = self.random && is_hit && self.is_random(lane);
        let (start, drawn) = if self.random && !is_hit && self.identical {
            (self.lanes[lane].last, false)
        } else if random {
            (self.block(lane)? * self.lanes[lane].least, true)
        } else {
            match self.following(lane) {
                Some(start) => (start, false),
                // fio draws at the end of the region, without a mark in the map.
                None if self.random => (self.block(lane)? * self.lanes[lane].least, false),
                None => return None,
            }
        };
        if start >= self.bytes {
            return None;
        }
        let mut bytes = self.size(lane, start)?;
        if start + bytes > self.bytes {
            return None;
        }
        if let (Order::Mapped(map), true) = (&mut self.order, drawn) {
            let least = self.lanes[lane].least;
            let most = if bytes == least { 1 } else { bytes.div_ceil(least) };
            bytes = bytes.min(map.take(start / least, most) * least);
        }
        if self.kinds.len() == 2 && kind == RequestKind::Trim {
            self.trimmed = Some((start, (bytes / SECTOR_BYTES) as u32));
        }
        Some((kind, start, bytes))
    }

    #[inline]
    fn kind(&mut self, turn: impl Fn(RequestKind) -> RequestKind) -> RequestKind {
        let [RequestKind::Read, other] = *self.kinds else { return self.kinds[0] };
        if self.done.requests[direction(self.mix.kind)] >= self.mix.until {
            let scale = if self.read_permille.is_multiple_of(10) { 100 } else { 1000 };
            let reads = u64::from(self.read_permille) * scale / 1000;
            let kind = if self.draws.kinds.below(scale) < reads { RequestKind::Read } else { other };
            if kind != self.mix.kind {
                let share = if self.mix.kind == RequestKind::Read { scale - reads } else { reads };
                self.mix.until = self.done.requests[direction(self.mix.kind)] * share / scale;
            }
            self.mix.kind = kind;
        }
        turn(self.mix.kind)
    }

    #[inline]
    fn is_random(&mut self, lane: usize) -> bool {
        match self.lanes[lane].random_permille {
            1000 => true,
            permille => {
                let scale = if permille.is_multiple_of(10) { 100 } else { 1000 };
                self.draws.sequential[lane].below(scale) < u64::from(permille) * scale / 1000
            }
        }
    }

    /// The next block of a random request, in units of the direction's smallest size.
    #[inline]
    fn block(&mut self, lane: usize) -> Option<u64> {
        let blocks = self.lanes[lane].blocks;
        if blocks == 0 {
            return None;
        }
        match &mut self.order {
            Order::Sequential => None,
            Order::Shifted(lfsr) => match lfsr.next() {
                None if self.limits.endless => {
                    lfsr.reset(self.seeds.addresses);
                    lfsr.next()
                }
                next => next,
            },
            Order::Mapped(map) => {
                let (drawn, later) = self.draws.addresses.below(blocks);
                map.expect(later);
                if !map.used(drawn) {
                    return Some(drawn);
                }
                match map.next_free(drawn) {
                    None if self.limits.endless => {
                        map.clear();
                        Some(self.draws.addresses.below(blocks).0)
                    }
                    next => next,
                }
            }
        }
    }

    /// The start of a sequential request; `None` at the end of the region.
    #[inline]
    fn following(&self, lane: usize) -> Option<u64> {
        let next = self.lanes[lane].next;
        let start = if next >= self.bytes && self.limits.endless { 0 } else { next };
        match self.skip {
            _ if start >= self.bytes => None,
            skip if skip != 0 && start > 0 => {
                // As in fio, beyond an end of the region the other end is next.
                let moved = start.checked_add_signed(skip).filter(|&moved| moved < self.bytes);
                Some(moved.unwrap_or(if skip > 0 { 0 } else { self.bytes.saturating_add_signed(skip) }))
            }
            _ => Some(start),
        }
    }

    /// Moves the window of strided requests, or begins it again.
    fn stride(&mut self, lane: usize) {
        let Strides { strided, bytes, range, skip } = self.strides;
        if !strided {
            return;
        }
        let (first, requested) = self.window;
        if requested >= bytes {
            let next = first.saturating_add(range).saturating_add(skip);
            self.window = (if next < self.bytes { next } else { 0 }, 0);
            self.lanes[lane].next = self.window.0;
        }
        if self.lanes[lane].next >= self.window.0.saturating_add(range) {
            self.lanes[lane].next = self.window.0;
        }
    }

    /// Bytes of a request at `start`; `None` if not even the smallest fits.
    #[inline]
    fn size(&mut self, lane: usize, start: u64) -> Option<u64> {
        let (left, generator, lane) = (self.bytes - start, &mut self.draws.sizes[lane], &self.lanes[lane]);
        if lane.least == lane.most {
            return Some(lane.least);
        }
        // A size without a share never comes.
        if lane.step > 0 {
            let mut draw = || {
                let part = generator.next() as f64 / (generator.most() as f64 + 1.0);
                let drawn = lane.least + (lane.most as f64 * part) as u64;
                (drawn - drawn % lane.step).min(lane.most)
            };
            let fits = std::iter::repeat_with(&mut draw).find(|&bytes| bytes <= left || lane.least > left);
            return fits.filter(|&bytes| bytes <= left);
        }
        if lane.sizes.iter().all(|&(size, _)| size - size % lane.least > left) {
            return None;
        }
        loop {
            let (draw, per) = (generator.next(), generator.most() / lane.scale);
            let (mut share, mut bytes) = (0, lane.least);
            for &(size, own) in &lane.sizes {
                (bytes, share) = (size, share + own);
                if draw / share <= per && bytes <= left {
                    break;
                }
            }
            bytes -= bytes % lane.least;
            if bytes <= left {
                return Some(bytes);
            }
        }
    }
}

/// Blocks of the smallest size of all directions in a region of `bytes`.
fn smallest_blocks(lanes: &[Lane; 3], bytes: u64) -> u64 {
    bytes / lanes.iter().map(|lane| lane.least).min().expect("there are three")
}

impl Lane {
    fn new(spec: &FioSpec, kind: RequestKind, region: u64) -> Lane {
        let shares = spec.sizes(kind);
        let tenths = shares.iter().any(|share| !share.permille.is_multiple_of(10));
        let given = shares.iter().filter(|share| share.permille > 0);
        let mut sizes: Vec<(u64, u64)> =
            given.map(|share| (share.bytes, u64::from(share.permille) / if tenths { 1 } else { 10 })).collect();
        sizes.sort_by_key(|&(_, share)| share);
        let least = shares.iter().map(|share| share.bytes).min().expect("every direction has a size");
        Lane {
            least,
            blocks: region / least,
            most: shares.iter().map(|share| share.bytes).max().expect("every direction has a size"),
            sizes,
            scale: if tenths { 1000 } else { 100 },
            step: match spec.uniform[direction(kind)] {
                true if spec.unaligned => SECTOR_BYTES,
                true => shares[0].bytes,
                false => 0,
            },
            random_permille: spec.random_permille[direction(kind)],
            next: 0,
            last: 0,
        }
    }
}

impl Draws {
    fn new(seeds: &Seeds, long: bool, blocks: u64) -> Draws {
        Draws {
            sizes: seeds.sizes.map(|seed| Tausworthe::new(seed, long)),
            kinds: Tausworthe::new(seeds.kinds, false),
            addresses: Ahead::new(Tausworthe::new(seeds.addresses, long || blocks > SHORT_BLOCKS)),
            sequential: [0; 3].map(|_: u8| Tausworthe::new(seeds.sequential, false)),
        }
    }
}

impl Limits {
    fn new(spec: &FioSpec, region: Region, lanes: &[Lane; 3]) -> Limits {
        let bytes = region.sectors * SECTOR_BYTES;
        let sized = spec.io_size.map(|size| size.bytes_of(bytes, 1));
        let loops = spec.loops.unwrap_or(1);
        let all = sized.unwrap_or(bytes).saturating_mul(loops);
        let pass = match (sized, spec.pattern.kinds) {
            // fio doubles the transfer of a trimwrite, and continues a sequential mix up to io_size.
            (_, [RequestKind::Trim, _]) => bytes.saturating_add(sized.unwrap_or(bytes)),
            (Some(sized), [_, _]) if !spec.pattern.random => bytes.max(sized),
            (None, _) => all,
            _ => bytes,
        };
        Limits {
            endless: sized.is_none() && spec.loops.is_none(),
            pass,
            all,
            passes_left: loops - 1,
            sized: sized.is_some(),
            reads_back: spec.reads_back(),
            most: lanes.iter().map(|lane| lane.most).max().expect("there are three"),
        }
    }
}
