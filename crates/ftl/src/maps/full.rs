//! The full map: an entry for every unit, in DRAM.

use super::bytes::map_bytes;
use crate::log::map::{Map, UNMAPPED};
use palimpsest_flash::prefetch::prefetch;
use palimpsest_flash::state::{Loaded, Reader, State};
use palimpsest_ftl_api::{LayerFigures, Mapping};

/// One inverted entry per unit: the entry of an unwritten unit is 0, so unused memory of a large map is never touched.
pub struct FullMap(Vec<u32>);

/// The stored value of no entry.
const NOTHING: u32 = !UNMAPPED;

/// Entries per step of the search for entries.
const PIECE: usize = 16;

impl State for FullMap {
    fn save(&self, out: &mut Vec<u8>) {
        self.0.save(out);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Loaded {
        self.0.load(from)
    }

    fn in_huge_pages(&self) {
        self.0.in_huge_pages();
    }
}

impl FullMap {
    /// A map of `units` unwritten units.
    pub fn new(units: u32) -> Self {
        FullMap(vec![NOTHING; units as usize])
    }

    /// The first mapped unit from `unit` on, or the number of units. Searches piece by piece.
    #[cold]
    fn skip_nothing(&self, unit: usize) -> u32 {
        let rest = self.0.get(unit..).unwrap_or_default();
        let (pieces, _) = rest.as_chunks::<PIECE>();
        let empty = pieces.iter().take_while(|piece| piece.iter().fold(0, |any, &entry| any | entry) == 0).count();
        let from = empty * PIECE;
        let more = rest[from..].iter().position(|&entry| entry != NOTHING).unwrap_or(rest.len() - from);
        (self.0.len() - rest.len() + from + more) as u32
    }

    /// Bytes in DRAM.
    pub fn bytes(&self) -> u64 {
        map_bytes(self.0.len() as u64)
    }
}

impl Map for FullMap {
    const TAKES_RUNS: bool = true;

    #[inline]
    fn units(&self) -> u32 {
        self.0.len() as u32
    }

    #[inline]
    fn locate(&self, unit: u32) -> u32 {
        !self.0[unit as usize]
    }

    #[inline]
    fn place(&mut self, unit: u32, entry: u32) -> u32 {
        !std::mem::replace(&mut self.0[unit as usize], !entry)
    }

    #[inline]
    fn place_run(&mut self, first: u32, count: u32, entry: u32) {
        for (place, entry) in self.0[first as usize..(first + count) as usize].iter_mut().zip(entry..) {
            debug_assert_eq!(*place, NOTHING);
            *place = !entry;
        }
    }

    #[inline]
    fn holds_run(&self, first: u32, count: u32, entry: u32) -> bool {
        let run = self.0.get(first as usize..first as usize + count as usize);
        run.is_some_and(|run| run.iter().zip(entry..).all(|(&found, entry)| found == !entry))
    }

    #[inline]
    fn next_placed(&self, unit: u32) -> u32 {
        match self.0.get(unit as usize) {
            None | Some(&NOTHING) => self.skip_nothing(unit as usize),
            Some(_) => unit,
        }
    }

    fn clear(&mut self) {
        self.0.fill(NOTHING);
    }

    #[inline]
    fn prefetch(&self, unit: u32) {
        prefetch(&self.0, unit as usize);
    }

    fn describe(&self, figures: &mut LayerFigures) {
        figures.mapping = Mapping { tables: vec![("map", self.bytes())], peak_bytes: self.bytes() };
    }
}
