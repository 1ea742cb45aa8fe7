//! The generator behind a specification.
//!
//! `passes.rs` draws uniform random and sequential requests in fio's own order; this file draws the requests of
//! `norandommap`, of skewed distributions and of files. Kinds, addresses, sizes and arrival gaps have separate streams
//! of random numbers, so that a change of one aspect of a workload does not change the others.

use super::distribution::Distribution;
use super::distribution::Sampler;
use super::files::{Files, Layout};
use super::groups::ClassMix;
use super::passes::Passes;
use super::rates::Schedule;
use super::readback::ReadBack;
use super::region::{Region, Room};
use super::spec::{FioSpec, direction};
use super::tausworthe::Tausworthe;
use super::values::{HandleChoice, PlacedRange};
use crate::request::{Arrivals, Command, Directives, Extent, Locality, Request, RequestKind, SECTOR_BYTES, Source};
use palimpsest_flash::error::Result;
use palimpsest_flash::rng::{Rng, mix};
use palimpsest_flash::units::Nanos;

/// Placement identifiers of a job, at most (`FIO_MAX_DP_IDS`).
const MOST_IDENTIFIERS: usize = 128;

/// The requests of a [`FioSpec`] on one drive.
#[derive(Debug, Clone)]
pub struct FioSource {
    region: Region,
    files: Option<(Files, Vec<Layout>)>,
    mix: RequestMix,
    lanes: [Lane; 3],
    random: bool,
    sampler: Sampler,
    sequence: Option<Sequence>,
    /// Sectors between the slots of the sampler.
    slot_sectors: u64,
    depth: u32,
    schedule: Schedule,
    /// Arrival of the last request.
    latest: Nanos,
    flushes: Flushes,
    marks: Marks,
    reads: Option<ReadBack>,
    /// Passes whose writes were read back, and whether the last request begins to read.
    passes_read: u64,
    begins_reads: bool,
    requests_left: u64,
    bytes_left: u64,
    issued: u64,
    expected: Option<u64>,
    locality: Locality,
    kind_rng: Rng,
    address_rng: Rng,
    size_rng: Rng,
    /// Requests in fio's own order, instead of the draws above.
    passes: Option<Passes>,
    /// The next request, if already drawn.
    fetched: Option<Drawn>,
}

#[derive(Debug, Clone, Copy)]
struct Drawn {
    kind: RequestKind,
    sector: u64,
    sectors: u32,
    /// Earliest time of the request.
    at: Nanos,
}

#[derive(Debug, Clone)]
enum RequestMix {
    One(RequestKind),
    Mix {
        read_permille: u64,
    },
    /// The extent just trimmed, which is written next.
    TrimThenWrite(Option<(u64, u32)>),
    /// Classes of requests to groups of files.
    Classes(ClassMix),
}

/// Sizes, alignment and position of one direction.
#[derive(Debug, Clone)]
struct Lane {
    sizes: Vec<SizeChoice>,
    align: u64,
    /// Start of the next sequential request, from the region's start.
    next: u64,
    random_permille: u32,
    /// Requests for each random address, those left, and whether they repeat the last start.
    run: u64,
    left: u64,
    identical: bool,
    last: u64,
    /// Sectors between the sizes from the first to the last of `sizes`; 0: sizes have shares. Sectors for all.
    step: u64,
    room: u64,
    /// Start of the next request that is sequential by size, from the region's start.
    follow: u64,
}

#[derive(Debug, Clone, Copy)]
struct SizeChoice {
    /// Cumulated share in tenths of a percent.
    upto_permille: u64,
    sectors: u32,
    /// Aligned places for a request of this size.
    slots: u64,
    /// Such requests follow each other.
    follows: bool,
}

/// Blocks in a fixed order: `random_distribution=sequence`.
#[derive(Debug, Clone)]
struct Sequence {
    blocks: Vec<u64>,
    /// Added for each cycle.
    stride: u64,
    /// Requests of each direction.
    issued: [u64; 3],
}

impl Sequence {
    fn new(spec: &FioSpec) -> Option<Sequence> {
        let Distribution::Sequence(blocks) = &spec.distribution else { return None };
        let stride = if spec.stride { blocks.len() as u64 } else { 0 };
        Some(Sequence { blocks: blocks.clone(), stride, issued: [0; 3] })
    }

    fn next(&mut self, lane: usize, slots: u64) -> u64 {
        let (cycle, length) = (self.issued[lane], self.blocks.len() as u64);
        self.issued[lane] += 1;
        let moved = u128::from(cycle / length) * u128::from(self.stride);
        ((u128::from(self.blocks[(cycle % length) as usize]) + moved) % u128::from(slots)) as u64
    }
}

#[derive(Debug, Clone, Default)]
struct Flushes {
    every: Option<u64>,
    writes: u64,
    due: bool,
    /// A flush follows the last request.
    at_end: bool,
}

/// Directives of writes.
#[derive(Debug, Clone)]
struct Marks {
    given: Directives,
    /// The job names all handles of the drive.
    all: bool,
    /// Placement handles, and the one whose turn it is.
    handles: Vec<u16>,
    turn: usize,
    /// Chooses among the handles, if they do not take turns.
    chance: Option<Tausworthe>,
    /// Placement identifiers by offset, and the sector where offsets begin.
    scheme: (Vec<PlacedRange>, u64),
}

impl Marks {
    /// The directives of the next write, of `owner`, at `sector`.
    #[inline]
    fn next(&mut self, owner: u32, sector: u64) -> Directives {
        let mut marks = Directives { owner, ..self.given };
        if !self.handles.is_empty() {
            let count = self.handles.len();
            let at = self.chance.as_mut().map_or(self.turn, |chance| chance.below(count as u64) as usize);
            (marks.placement, marks.placed) = (self.handles[at], true);
            self.turn = (self.turn + 1) % count;
        } else if !self.scheme.0.is_empty() {
            (marks.placement, marks.placed) = (self.by_offset(sector), true);
        }
        marks
    }

    /// The identifier of the first range with `sector`, or as in fio 0.
    fn by_offset(&self, sector: u64) -> u16 {
        let (ranges, begin) = &self.scheme;
        let offset = (sector - begin) * SECTOR_BYTES;
        ranges.iter().find(|range| (range.first..range.end).contains(&offset)).map_or(0, |range| range.placement)
    }
}

impl FioSource {
    /// The requests of `spec` on a drive of `drive_bytes`; equal seeds give equal requests. A `randseed` in the
    /// specification overrides `seed`.
    ///
    /// # Errors
    /// [`Error::Input`](palimpsest_flash::error::Error::Input), with both sizes, when the region exceeds the drive or
    /// is too small for a request.
    pub fn new(spec: &FioSpec, drive_bytes: u64, seed: u64) -> Result<FioSource> {
        FioSource::of_job(spec, Room { first: 0, bytes: drive_bytes }, seed, (1, 0))
    }

    /// The requests of `spec` in `room` as job `number` (from 1) of a run with `seed`, and as copy `copy` (from 0).
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of_job(spec: &FioSpec, room: Room, seed: u64, (number, copy): (u64, u64)) -> Result<FioSource> {
        let (region, begin) = (Region::new(spec, room, copy)?, room.first);
        let run_seed = seed;
        let seed = spec.seed.unwrap_or(seed);
        let seed = if number == 1 { seed } else { mix(seed ^ mix(number - 1)) };
        let files = match &spec.groups[..] {
            [] => Files::new(spec, region)?,
            groups => Some(Files::of_groups(groups)),
        };
        let lanes = [RequestKind::Read, RequestKind::Write, RequestKind::Trim]
            .map(|kind| Lane::new(spec, kind, region, files.as_ref()));
        let in_use = spec.pattern.kinds.iter().map(|&kind| &lanes[direction(kind)]);
        let slot_sectors = in_use.clone().map(|lane| lane.align).min().expect("a pattern has a kind");
        let smallest = in_use.flat_map(|lane| &lane.sizes).map(|size| u64::from(size.sectors)).min();
        let smallest = smallest.expect("a lane has a size");
        let room = files.as_ref().map_or(region.drawn, |files| files.room_for(smallest));
        let slots = room.saturating_sub(smallest) / slot_sectors + 1;
        let io_bytes = region.io_bytes(spec);
        let passes = match Passes::fit(spec) {
            true => Some(Passes::new(spec, region, run_seed, number)?),
            false => None,
        };
        let expected = match &passes {
            Some(_) if spec.reads_back() || spec.end_flush => None,
            Some(passes) => passes.expected().and_then(|by_bytes| expected_requests(spec, by_bytes, true)),
            None => expected_by_bytes(spec, io_bytes).and_then(|by_bytes| expected_requests(spec, by_bytes, false)),
        };
        Ok(FioSource {
            region,
            locality: match spec.distribution {
                _ if files.is_some() => Locality::Favoured,
                _ if !spec.pattern.random => Locality::Sequential,
                Distribution::Random => Locality::Uniform,
                _ => Locality::Favoured,
            },
            files: files.map(|files| {
                let layouts = match &spec.groups[..] {
                    [] => vec![Layout::new(&files, spec.open_files, seed)],
                    groups => Layout::of_groups(groups, seed),
                };
                (files, layouts)
            }),
            mix: RequestMix::new(spec),
            lanes,
            random: spec.pattern.random,
            sampler: Sampler::new(&spec.distribution, slots, mix(seed)),
            sequence: Sequence::new(spec),
            slot_sectors,
            depth: spec.iodepth,
            schedule: Schedule::new(spec, seed),
            latest: 0,
            flushes: Flushes { every: spec.writes_per_flush, at_end: spec.end_flush, ..Flushes::default() },
            reads: ReadBack::new(spec),
            passes_read: 0,
            begins_reads: false,
            marks: Marks {
                given: Directives { fua: spec.sync, lifetime: spec.write_hint, ..Directives::NONE },
                all: spec.all_handles,
                handles: spec.plids.clone(),
                turn: 0,
                chance: (spec.handle_choice == HandleChoice::ByChance)
                    .then(|| Tausworthe::new(Passes::seeds(spec, run_seed, number).handles, false)),
                scheme: (spec.scheme.clone(), begin),
            },
            requests_left: spec.requests.unwrap_or(u64::MAX),
            bytes_left: if passes.is_some() { u64::MAX } else { io_bytes },
            issued: 0,
            expected,
            kind_rng: Rng::new(seed, 1),
            address_rng: Rng::new(seed, 2),
            size_rng: Rng::new(seed, 3),
            passes,
            fetched: None,
        })
    }

    /// The next request. Its arrival is the earliest time of the request: by the rate in an open loop; with caps `now`,
    /// or later if they are ahead. Without a clock (`None`), caps of all directions give the times of a drive that is
    /// always fast enough.
    #[inline]
    pub fn next_from(&mut self, now: Option<Nanos>) -> Option<Request> {
        if self.flushes.due && (self.passes.is_none() || self.fetch(now)) {
            self.flushes.due = false;
            self.latest = match self.schedule {
                Schedule::Capped(_) => self.latest.max(now.unwrap_or(0)),
                _ => self.latest,
            };
            return Some(Request::new(self.latest, Command::FLUSH));
        }
        self.begins_reads = false;
        if let Some(request) = self.read_back(now) {
            return Some(request);
        }
        if !self.has_more(now) {
            let ends = std::mem::take(&mut self.flushes.at_end);
            return ends.then(|| Request::new(self.latest.max(now.unwrap_or(0)), Command::FLUSH));
        }
        let Drawn { kind, sector, sectors, at: arrival } = self.fetched.take().expect("it was fetched");
        let bytes = u64::from(sectors) * SECTOR_BYTES;
        self.requests_left -= 1;
        self.issued += 1;
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        if let (RequestKind::Write, Some(every)) = (kind, self.flushes.every) {
            self.flushes.writes += 1;
            self.flushes.due = self.flushes.writes.is_multiple_of(every);
        }
        match &mut self.schedule {
            Schedule::None => {}
            Schedule::Open(clock) => clock.issued(bytes),
            Schedule::Capped(caps) => caps.issued(kind, bytes),
        }
        self.latest = arrival;
        let stream = self.files.as_ref().map_or(0, |(files, _)| files.stream(sector - self.region.first));
        let directives = match kind {
            RequestKind::Write => self.marks.next(stream, sector),
            _ => Directives { owner: stream, ..Directives::NONE },
        };
        let extent = Extent { sector, sectors };
        if let (RequestKind::Write, Some(reads)) = (kind, &mut self.reads) {
            reads.wrote(extent);
        }
        Some(Request::new(arrival, Command::new(kind, extent).with(directives)))
    }

    /// First sector of the region, and number of sectors.
    pub fn region(&self) -> (u64, u64) {
        (self.region.first, self.region.sectors)
    }

    /// True if the last request must not begin before the writes in flight have completed.
    pub fn is_behind_writes(&self) -> bool {
        self.begins_reads
    }

    #[inline]
    fn has_more(&mut self, now: Option<Nanos>) -> bool {
        self.requests_left > 0 && self.bytes_left > 0 && self.fetch(now)
    }

    /// The next read of what was written, if due before the next request.
    #[inline(always)]
    fn read_back(&mut self, now: Option<Nanos>) -> Option<Request> {
        if !self.reads.as_ref()?.is_reading() {
            let is_due = self.reads.as_ref()?.is_due();
            let passes = if is_due { 0 } else { self.passes_after(now) };
            if !is_due && passes == self.passes_read {
                return None;
            }
            self.passes_read = if is_due { self.passes_read } else { passes };
            self.begins_reads = self.reads.as_mut()?.begin(!is_due);
        }
        let reads = self.reads.as_mut()?;
        self.begins_reads |= reads.follows_write();
        let extent = reads.take()?;
        // As in fio, these reads count for number_ios, and those of the last pass come anyway.
        self.requests_left = self.requests_left.saturating_sub(1);
        self.latest = self.latest.max(now.unwrap_or(0));
        let owner = self.files.as_ref().map_or(0, |(files, _)| files.stream(extent.sector - self.region.first));
        let read = Command::new(RequestKind::Read, extent).with(Directives { owner, ..Directives::NONE });
        Some(Request::new(self.latest, read))
    }

    /// The number of passes before the next request; the greatest number at the end.
    fn passes_after(&mut self, now: Option<Nanos>) -> u64 {
        match self.has_more(now) {
            true => self.passes.as_ref().map_or(0, |passes| passes.ended),
            false => u64::MAX,
        }
    }

    /// Draws the next request unless already drawn; false at the end.
    #[inline(always)]
    fn fetch(&mut self, now: Option<Nanos>) -> bool {
        if self.fetched.is_none() && self.requests_left > 0 {
            self.fetched = match &self.schedule {
                Schedule::None => self.draw(0, |kind| kind),
                Schedule::Open(clock) => self.draw(clock.next, |kind| kind),
                Schedule::Capped(caps) if now.is_none() && !caps.are_whole() => self.draw(0, |kind| kind),
                Schedule::Capped(caps) => {
                    let at = caps.due().max(now.unwrap_or(0)).max(self.latest);
                    let turn = caps.turn(at);
                    self.draw(at, |kind| turn.of(kind))
                }
            };
        }
        self.fetched.is_some()
    }

    /// The next request, due `at` a time; `turn` may replace the kind.
    #[inline]
    fn draw(&mut self, at: Nanos, turn: impl Fn(RequestKind) -> RequestKind) -> Option<Drawn> {
        let (kind, sector, sectors) = match &mut self.passes {
            Some(passes) => passes.next(turn)?,
            None => self.draw_independently(turn),
        };
        Some(Drawn { kind, sector, sectors, at })
    }

    #[inline]
    fn draw_independently(&mut self, turn: impl Fn(RequestKind) -> RequestKind) -> (RequestKind, u64, u32) {
        let kind = match &mut self.mix {
            RequestMix::One(kind) => *kind,
            RequestMix::Mix { read_permille } if self.kind_rng.below(1000) < *read_permille => turn(RequestKind::Read),
            RequestMix::Mix { .. } => turn(RequestKind::Write),
            RequestMix::TrimThenWrite(trimmed) => match trimmed.take() {
                Some((sector, sectors)) => return (RequestKind::Write, sector, sectors),
                None => RequestKind::Trim,
            },
            RequestMix::Classes(classes) => {
                let (kind, start, sectors) = classes.draw(&mut self.kind_rng, &mut self.address_rng);
                return (kind, self.region.first + start, sectors);
            }
        };
        let (start, sectors) = self.draw_extent(direction(kind));
        let sector = self.region.first + start;
        if let RequestMix::TrimThenWrite(trimmed) = &mut self.mix {
            *trimmed = Some((sector, sectors));
        }
        (kind, sector, sectors)
    }

    #[inline(always)]
    fn draw_extent(&mut self, direction: usize) -> (u64, u32) {
        let lane = &mut self.lanes[direction];
        let size = lane.draw_size(&mut self.size_rng);
        if size.follows {
            let (first, end) = (self.region.following(), self.region.sectors);
            let start = if lane.follow + u64::from(size.sectors) <= end { lane.follow } else { first };
            lane.follow = start + u64::from(size.sectors);
            return (start, size.sectors);
        }
        lane.left -= 1;
        let is_hit = lane.left == 0;
        if is_hit {
            lane.left = lane.run;
        }
        let is_random = match (self.random && is_hit, lane.random_permille) {
            (false, _) => false,
            (true, 1000) => true,
            (true, permille) => self.kind_rng.below(1000) < u64::from(permille),
        };
        let repeated = lane.identical && self.random && !is_hit && lane.last + u64::from(size.sectors) <= lane.room;
        let start = match (&self.sampler, &self.files) {
            _ if repeated => lane.last,
            (_, Some((files, _))) if !is_random => files.following(lane.next, u64::from(size.sectors)),
            _ if !is_random && lane.next + u64::from(size.sectors) <= self.region.drawn => lane.next,
            _ if !is_random => 0,
            _ if self.sequence.is_some() => {
                let sequence = self.sequence.as_mut().expect("there is a sequence");
                sequence.next(direction, size.slots) * lane.align
            }
            (Sampler::Uniform, _) => self.address_rng.below(size.slots) * lane.align,
            (sampler, _) => {
                let slot = sampler.draw(size.slots, &mut self.address_rng);
                (slot * self.slot_sectors / lane.align).min(size.slots - 1) * lane.align
            }
        };
        let start = match &self.files {
            Some((files, _)) => files.within(start, u64::from(size.sectors), lane.align),
            None => start,
        };
        (lane.last, lane.next) = (start, start + u64::from(size.sectors));
        (start, size.sectors)
    }
}

impl Source for FioSource {
    #[inline]
    fn next_request(&mut self) -> Result<Option<Request>> {
        Ok(self.next_from(None))
    }

    fn next_of_layout(&mut self) -> Option<Request> {
        let (files, layouts) = self.files.as_mut()?;
        let (lane, first) = (&self.lanes[direction(RequestKind::Write)], self.region.first);
        let draw = |rng: &mut Rng| u64::from(lane.draw_size(rng).sectors);
        layouts.iter_mut().find_map(|layout| layout.next_write(files, first, draw))
    }

    /// As fio, which has room for this many.
    fn name_handles(&mut self, identifiers: &[u16]) {
        if self.marks.all {
            self.marks.handles = identifiers.iter().copied().take(MOST_IDENTIFIERS).collect();
        }
    }

    fn place(&self) -> String {
        format!("--workload, request {}", self.issued)
    }

    fn arrivals(&self) -> Arrivals {
        match &self.schedule {
            Schedule::Open(_) => Arrivals::Open,
            Schedule::Capped(caps) if caps.are_whole() => Arrivals::Open,
            _ => Arrivals::Closed { depth: self.depth },
        }
    }

    fn expected_requests(&self) -> Option<u64> {
        self.expected
    }

    fn locality(&self) -> Locality {
        self.locality
    }

    fn uses_up_addresses(&self) -> bool {
        self.passes.as_ref().is_some_and(Passes::use_up_addresses)
    }
}

impl RequestMix {
    fn new(spec: &FioSpec) -> RequestMix {
        match spec.pattern.kinds {
            _ if !spec.groups.is_empty() => RequestMix::Classes(ClassMix::new(&spec.groups, &spec.mix)),
            [RequestKind::Trim, _] => RequestMix::TrimThenWrite(None),
            [_, _] => RequestMix::Mix { read_permille: u64::from(spec.read_permille) },
            kinds => RequestMix::One(kinds[0]),
        }
    }
}

impl Lane {
    fn new(spec: &FioSpec, kind: RequestKind, region: Region, files: Option<&Files>) -> Lane {
        let shares = spec.sizes(kind);
        let smallest = shares.iter().map(|share| share.bytes).min().expect("every direction has a size");
        let align = spec.block_align.unwrap_or(smallest) / SECTOR_BYTES;
        let mut upto_permille = 0;
        let choice = |share: &super::SizeShare| {
            upto_permille += u64::from(share.permille);
            let sectors = (share.bytes / SECTOR_BYTES) as u32;
            // Directions that the pattern does not use need not fit.
            let room = files.map_or(region.drawn, |files| files.room_for(u64::from(sectors)));
            let slots = room.saturating_sub(u64::from(sectors)) / align + 1;
            SizeChoice { upto_permille, sectors, slots, follows: spec.follows(share.bytes) }
        };
        let sizes = shares.iter().map(choice).collect();
        let random_permille = spec.random_permille[direction(kind)];
        let largest = shares.iter().map(|share| share.bytes).max().expect("every direction has a size");
        let room = files.map_or(region.drawn, |files| files.room_for(largest / SECTOR_BYTES));
        let step = match spec.uniform[direction(kind)] {
            true if spec.unaligned => 1,
            true => smallest / SECTOR_BYTES,
            false => 0,
        };
        let (run, identical, follow) = (spec.run, spec.identical, region.following());
        Lane { sizes, align, next: 0, random_permille, run, left: run, identical, last: 0, step, room, follow }
    }

    #[inline]
    fn draw_size(&self, rng: &mut Rng) -> SizeChoice {
        match &self.sizes[..] {
            [only] => *only,
            [least, most] if self.step > 0 => {
                let steps = u64::from(most.sectors - least.sectors) / self.step + 1;
                let sectors = u64::from(least.sectors) + rng.below(steps) * self.step;
                let slots = self.room.saturating_sub(sectors) / self.align + 1;
                SizeChoice { sectors: sectors as u32, slots, ..*least }
            }
            sizes => {
                let draw = rng.below(1000);
                *sizes.iter().find(|size| draw < size.upto_permille).expect("shares add up to 100")
            }
        }
    }
}

/// The number of requests of `io_bytes`; `None` unless all have one size.
fn expected_by_bytes(spec: &FioSpec, io_bytes: u64) -> Option<u64> {
    let mut sizes = spec.pattern.kinds.iter().flat_map(|&kind| spec.sizes(kind)).map(|share| share.bytes);
    let first = sizes.next().expect("every direction has a size");
    match io_bytes {
        _ if spec.reads_back() || spec.end_flush => None,
        u64::MAX => Some(u64::MAX),
        _ if !spec.groups.is_empty() => None,
        bytes if sizes.all(|size| size == first) => Some(bytes.div_ceil(first)),
        _ => None,
    }
}

/// The number of requests, flushes included; `None` if that depends on draws. In fio's order no flush follows the last
/// write.
fn expected_requests(spec: &FioSpec, by_bytes: u64, in_order: bool) -> Option<u64> {
    let requests = spec.requests.unwrap_or(u64::MAX).min(by_bytes);
    match (spec.writes_per_flush, spec.pattern.kinds) {
        (None, _) | (_, [RequestKind::Read | RequestKind::Trim]) => Some(requests),
        (Some(every), [RequestKind::Write]) => {
            let flushes = if in_order { requests.saturating_sub(1) } else { requests } / every;
            Some(requests.saturating_add(flushes))
        }
        _ => None,
    }
}

mod passing;
#[cfg(test)]
mod tests;
