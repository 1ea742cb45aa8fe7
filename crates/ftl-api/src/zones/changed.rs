//! The Changed Zone List (log page BFh): zones that the drive made Read Only or Offline since the host last read the
//! page. Ignored: the asynchronous event, whose retention would keep the list.

use std::collections::BTreeSet;

/// Zone identifiers that the page has room for.
pub const MOST_CHANGED: usize = 511;

/// The list since the last read of the page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedZones {
    zones: BTreeSet<u32>,
}

palimpsest_flash::state!(ChangedZones { zones });

impl ChangedZones {
    pub(super) fn note(&mut self, zone: u32) {
        self.zones.insert(zone);
    }

    pub(super) fn clear(&mut self) {
        self.zones.clear();
    }

    /// Number of Zone Identifiers as the page states it: FFFFh for more than the page has room for.
    pub fn number(&self) -> u64 {
        if self.zones.len() > MOST_CHANGED { 0xffff } else { self.zones.len() as u64 }
    }

    /// The zones in ascending order; none if they are more than the page has room for.
    pub fn zones(&self) -> impl Iterator<Item = u32> {
        self.zones.iter().copied().filter(|_| self.zones.len() <= MOST_CHANGED)
    }
}
