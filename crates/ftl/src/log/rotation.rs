//! Chooses the plane of a host write: the next in turn, the plane that the address names, one of the channel that the
//! address names, one of the dies of its namespace, or the least busy one. With superblocks of some dies, their planes
//! take turns until a block of each is full, then the planes of the next dies.
//!
//! A program may add policies to [`OUTSIDE`], such as those in Python, which choose the planes of many pages ahead.
//!
//! Ignored: dies of a namespace that is full. Its writes then go to other dies, before the drive is full.

use super::outside::{Added, notation};
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::state::State;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::keys::ValueType;
use palimpsest_ftl_api::plan::Io;
use palimpsest_ftl_api::words;

words! {
    /// Plane of a host write.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Allocation {
        /// The plane that the logical page names (modulo the number of planes; channels vary fastest).
        Static = "static",
        /// As static, by the mapped unit, which may be smaller than a page.
        Unit = "unit",
        /// The planes of the channel that the logical address names (modulo the number of channels), in turn.
        Channel = "channel",
        /// The next plane in turn; channels vary fastest.
        RoundRobin = "round-robin",
        /// The next plane in turn on the dies of the namespace that the address is in.
        Namespace = "namespace",
        /// The plane whose die has the fewest operations waiting, the next in turn among ties.
        LeastLoaded = "least-loaded",
    } else
    /// The plane that a policy outside of this crate chooses.
    Outside
}

/// The kind of `ftl.allocation`.
pub(super) const KIND: ValueType = ValueType::Notation(notation!(OUTSIDE, Allocation::WORDS));

/// The planes of a drive, and its next page.
pub struct Planes {
    /// Logical page, or page of the map, that needs a plane.
    pub page: u32,
    /// Stream of the page.
    pub stream: u32,
    /// The plane after the last written one.
    pub next: u32,
    /// Time of the drive; 0 in counted runs.
    pub now: Nanos,
    /// Free pages of each plane.
    pub free: Vec<u32>,
    /// Operations that wait or run at the die of each plane.
    pub loads: Vec<u32>,
    /// True for each plane of a failed die.
    pub lost: Vec<bool>,
}

/// A placement outside of this crate.
pub trait Place: Send + State {
    /// The planes to try first for the next pages; if only one, this page alone. If empty, planes take turns.
    fn place(&mut self, planes: &Planes) -> Vec<u32>;
}

palimpsest_flash::state_of_box!(dyn Place);

/// Placements outside of this crate.
pub static OUTSIDE: Added<dyn Place> = Added::new("ftl.allocation");

/// The choice of planes.
pub struct Rotation {
    allocation: Allocation,
    planes: u32,
    channels: u32,
    dies: u32,
    cursor: u32,
    /// Per channel, or set of dies of a namespace: the plane that is next in turn.
    next_in: Vec<u32>,
    sets: Vec<DieSet>,
    superblock: Option<Superblock>,
    /// Per plane: true if the plane's die has failed; empty until one fails.
    passed_by: Vec<bool>,
    outside: Option<Box<dyn Place>>,
    /// Planes that `outside` has chosen for the next pages, last page first.
    ahead: Vec<u32>,
}

palimpsest_flash::state!(Rotation { cursor, next_in, ahead } parts { superblock, outside } built {
    allocation, planes, channels, dies, sets, passed_by
});

/// The dies of a namespace.
#[derive(Clone, Copy)]
struct DieSet {
    /// The first address behind the namespace.
    end: u32,
    first: u32,
    dies: u32,
}

impl DieSet {
    /// The plane at `index` on a drive of `dies` dies.
    #[inline]
    fn plane(&self, index: u32, dies: u32) -> u32 {
        self.first + index % self.dies + index / self.dies * dies
    }

    /// The position of `plane` in the set.
    #[inline]
    fn index(&self, plane: u32, dies: u32) -> u32 {
        plane % dies - self.first + plane / dies * self.dies
    }

    #[inline]
    fn holds(&self, plane: u32, dies: u32) -> bool {
        (self.first..self.first + self.dies).contains(&(plane % dies))
    }
}

/// The superblock that is written.
struct Superblock {
    /// The first die, and the number of dies.
    first: u32,
    dies: u32,
    /// Pages written, and their total number.
    written: u32,
    pages: u32,
}

palimpsest_flash::state!(Superblock { first, written } built { dies, pages });

impl Superblock {
    /// The plane that is next in turn on a drive of `dies` dies.
    #[inline]
    fn plane(&self, dies: u32, planes: u32) -> u32 {
        let turn = self.written % (self.dies * (planes / dies));
        self.first + turn % self.dies + turn / self.dies * dies
    }

    #[inline]
    fn advance(&mut self, dies: u32) {
        self.written += 1;
        if self.written == self.pages {
            (self.written, self.first) = (0, (self.first + self.dies) % dies);
        }
    }
}

impl Rotation {
    /// A choice over all planes of `geometry`, in turn over superblocks of `superblock_dies` dies (0: of all).
    pub fn new(allocation: Allocation, superblock_dies: u32, geometry: &Geometry) -> Self {
        let next_in = (0..geometry.channels).collect();
        let (planes, channels, dies) = (geometry.planes(), geometry.channels, geometry.dies());
        let part = allocation == Allocation::RoundRobin && (1..dies).contains(&superblock_dies);
        let pages = superblock_dies * (planes / dies) * geometry.pages_per_block;
        let superblock = part.then_some(Superblock { first: 0, dies: superblock_dies, written: 0, pages });
        Rotation {
            allocation,
            planes,
            channels,
            dies,
            cursor: 0,
            next_in,
            sets: Vec::new(),
            superblock,
            passed_by: Vec::new(),
            outside: None,
            ahead: Vec::new(),
        }
    }

    /// The same choice, by the placement called `name`, if outside of this crate.
    #[must_use]
    pub fn by(self, name: &str) -> Self {
        Rotation { outside: OUTSIDE.build(name), ..self }
    }

    /// The same choice for namespaces that end at these addresses and dies, if namespaces have dies of their own.
    #[must_use]
    pub fn over_sets(mut self, ends: &[(u32, u32)]) -> Self {
        if self.allocation == Allocation::Namespace {
            let firsts = std::iter::once(0).chain(ends.iter().map(|&(_, die)| die));
            let set = |(first, &(end, die)): (u32, &(u32, u32))| DieSet { end, first, dies: die - first };
            self.sets = firsts.zip(ends).map(set).collect();
            self.next_in = self.sets.iter().map(|set| set.first).collect();
        }
        self
    }

    /// The number of the set of `page`; addresses behind all namespaces are of the last.
    #[inline]
    fn set_of(&self, page: u32) -> usize {
        self.sets.iter().position(|set| page < set.end).unwrap_or(self.sets.len() - 1)
    }

    /// True if namespaces have dies of their own.
    #[inline]
    pub fn has_sets(&self) -> bool {
        !self.sets.is_empty()
    }

    /// Excludes `plane` from writes.
    pub fn pass_by(&mut self, plane: u32) {
        self.passed_by.resize(self.planes as usize, false);
        self.passed_by[plane as usize] = true;
    }

    /// True if `plane` is excluded from writes.
    #[inline]
    pub fn passes_by(&self, plane: u32) -> bool {
        self.passed_by.get(plane as usize).is_some_and(|&passed| passed)
    }

    /// Planes, channels or sets of dies that addresses name; 1 if they name none.
    pub fn groups(&self) -> u32 {
        match self.allocation {
            Allocation::Static | Allocation::Unit => self.planes,
            Allocation::Channel => self.channels,
            Allocation::Namespace => self.sets.len() as u32,
            Allocation::RoundRobin | Allocation::LeastLoaded | Allocation::Outside => 1,
        }
    }

    /// The plane, channel or set of dies that address `page` names.
    #[inline]
    pub fn group(&self, page: u32) -> u32 {
        match self.allocation {
            Allocation::Static | Allocation::Unit => page % self.planes,
            Allocation::Channel => page % self.channels,
            Allocation::Namespace => self.set_of(page) as u32,
            Allocation::RoundRobin | Allocation::LeastLoaded | Allocation::Outside => 0,
        }
    }

    /// The plane to try first for address `page` of `stream`; `free` counts the free pages of a plane.
    #[inline]
    pub fn first(&mut self, io: &Io, (stream, page): (u32, u32), free: impl Fn(u32) -> u32) -> u32 {
        match self.allocation {
            Allocation::Static | Allocation::Unit => page % self.planes,
            Allocation::Channel => self.next_in[(page % self.channels) as usize],
            Allocation::Namespace => self.next_in[self.set_of(page)],
            Allocation::RoundRobin => match &self.superblock {
                Some(superblock) => superblock.plane(self.dies, self.planes),
                None => self.cursor,
            },
            Allocation::LeastLoaded => self.least_loaded(io),
            Allocation::Outside => self.placed(io, (stream, page), &free),
        }
    }

    #[cold]
    fn placed(&mut self, io: &Io, (stream, page): (u32, u32), free: &dyn Fn(u32) -> u32) -> u32 {
        if let Some(&plane) = self.ahead.last() {
            return plane;
        }
        let of_all = || 0..self.planes;
        let planes = Planes {
            page,
            stream,
            next: self.cursor,
            now: io.present.now,
            free: of_all().map(free).collect(),
            loads: of_all().map(|plane| io.load(plane % self.dies)).collect(),
            lost: of_all().map(|plane| self.passes_by(plane)).collect(),
        };
        let mut chosen = self.outside.as_mut().map_or(Vec::new(), |outside| outside.place(&planes));
        let first = chosen.first().copied().unwrap_or(self.cursor);
        if chosen.len() > 1 {
            chosen.reverse();
            self.ahead = chosen;
        }
        first
    }

    /// True if all planes take turns, one after the other.
    #[inline]
    pub fn takes_turns(&self) -> bool {
        self.allocation == Allocation::RoundRobin && self.superblock.is_none()
    }

    /// The plane to try after `step` planes from `first` on were unsuitable.
    #[inline]
    pub fn then(&self, first: u32, step: u32) -> u32 {
        if self.allocation == Allocation::Channel {
            // All planes of the channel, then the planes of the next.
            let (channel, lane) = (first % self.channels, first / self.channels);
            let lanes = self.planes / self.channels;
            return (channel + step / lanes) % self.channels + (lane + step) % lanes * self.channels;
        }
        if let Some(set) = self.sets.iter().find(|set| set.holds(first, self.dies)) {
            return self.then_of(set, first, step);
        }
        if first + step >= self.planes { first + step - self.planes } else { first + step }
    }

    /// All planes of `set`, then all others.
    fn then_of(&self, set: &DieSet, first: u32, step: u32) -> u32 {
        let planes = set.dies * (self.planes / self.dies);
        match step.checked_sub(planes) {
            None => set.plane((set.index(first, self.dies) + step) % planes, self.dies),
            Some(rest) => {
                let mut others = (0..self.planes).filter(|&plane| !set.holds(plane, self.dies));
                others.nth(rest as usize).expect("fewer steps than planes")
            }
        }
    }

    /// Records a write to `plane`.
    #[inline]
    pub fn used(&mut self, plane: u32) {
        self.ahead.pop();
        if let Some(superblock) = &mut self.superblock {
            superblock.advance(self.dies);
        }
        self.cursor = if plane + 1 == self.planes { 0 } else { plane + 1 };
        if self.allocation == Allocation::Channel {
            self.next_in[(plane % self.channels) as usize] = (plane + self.channels) % self.planes;
        }
        if let Some(at) = self.sets.iter().position(|set| set.holds(plane, self.dies)) {
            let (set, planes) = (self.sets[at], self.sets[at].dies * (self.planes / self.dies));
            self.next_in[at] = set.plane((set.index(plane, self.dies) + 1) % planes, self.dies);
        }
    }

    fn least_loaded(&self, io: &Io) -> u32 {
        let in_turn = (0..self.planes).map(|step| (self.cursor + step) % self.planes);
        let in_turn = in_turn.filter(|&plane| !self.passes_by(plane));
        in_turn.min_by_key(|&plane| io.load(plane % self.dies)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
