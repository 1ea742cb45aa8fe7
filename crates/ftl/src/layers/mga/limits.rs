//! The most physical pages of a logical page, by the read count (MGA paper, Sec. III-E). The limits are from the table
//! in the text; the prose under Fig. 6 contradicts the table.
//!
//! A program may add policies to [`OUTSIDE`], such as those in Python, which change the limits every few thousand
//! requests. Ignored: limits that depend on the logical page.

use super::read_counts::MOST_READS;
use crate::log::outside::{Added, notation};
use palimpsest_flash::state::State;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::keys::ValueType;
use palimpsest_ftl_api::settings::Settings;
use palimpsest_ftl_api::words;

words! {
    /// Limits of the pages of a logical page.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Merging {
        /// The table of the paper.
        Table = "4/3/2/1",
        /// Nothing merges.
        Off = "off",
    } else
    /// A policy outside of this crate changes the limits.
    Outside
}

/// The kind of `ftl.merge_limits`.
pub(super) const KIND: ValueType = ValueType::Notation(notation!(OUTSIDE, Merging::WORDS));

/// A policy outside changes the limits after this many requests.
pub(super) const EVERY: u64 = 4096;

/// The layer before a change of the limits.
pub struct Merged {
    /// Subpages of a page: no limit is above.
    pub subpages: u32,
    /// Time of the drive; 0 in counted runs.
    pub now: Nanos,
    /// Share of fully free pages.
    pub free: f64,
    /// Merges so far.
    pub merges: u64,
    /// Subpages that merges moved.
    pub moved: u64,
}

/// A policy outside of this crate.
pub trait Limit: Send + State {
    /// The limits after 0, 1, ... reads, each from 1, for the next requests; `None` for no change.
    fn limits(&mut self, reads: u32, merged: &Merged) -> Option<Vec<u32>>;
}

palimpsest_flash::state_of_box!(dyn Limit);

/// Policies outside of this crate.
pub static OUTSIDE: Added<dyn Limit> = Added::new("ftl.merge_limits");

/// The limits, by read count.
pub(super) struct Limits {
    of_reads: Vec<u32>,
    outside: Option<Box<dyn Limit>>,
}

palimpsest_flash::state!(Limits { of_reads } parts { outside });

/// The limit of the table for a page of `subpages` subpages after `reads` reads.
pub(super) fn of_table(reads: u32, subpages: u32) -> u32 {
    let pages: u32 = match reads {
        0 => 4,
        1..=2 => 3,
        3..=5 => 2,
        _ => 1,
    };
    pages.min(subpages)
}

impl Limits {
    /// The limits of the table, for pages of `subpages` subpages.
    pub fn new(settings: &Settings, subpages: u32) -> Self {
        let of_reads = (0..=MOST_READS).map(|reads| of_table(reads, subpages)).collect();
        Limits { of_reads, outside: OUTSIDE.build_from(settings) }
    }

    /// True if a policy outside changes the limits.
    #[inline]
    pub fn change(&self) -> bool {
        self.outside.is_some()
    }

    /// Lets the policy outside change the limits.
    #[cold]
    pub fn update(&mut self, merged: &Merged) {
        let changed = self.outside.as_mut().and_then(|outside| outside.limits(MOST_READS + 1, merged));
        for (limit, changed) in self.of_reads.iter_mut().zip(changed.into_iter().flatten()) {
            *limit = changed.clamp(1, merged.subpages);
        }
    }

    /// The limit after `reads` reads.
    #[inline]
    pub fn of(&self, reads: u32) -> u32 {
        self.of_reads[reads as usize]
    }
}
