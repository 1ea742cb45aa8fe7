//! The zones of a drive (NVMe Zoned Namespace Command Set Specification) as a section of the result: sizes and limits,
//! zones in each state, commands on zones, and failed commands by their status. Ignored: zones one by one.

use palimpsest_flash::units::SECTOR_BYTES;
use palimpsest_ftl_api::zones::{ERRORS, STATES, ZoneFigures};
use serde::Serialize;
use std::collections::BTreeMap;

/// Zones of a drive: states are those at the end, all other counts those of the measured part.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Zns {
    pub zones: u64,
    pub zone_bytes: u64,
    pub zone_capacity_bytes: u64,
    /// 0: no limit.
    pub max_open: u32,
    /// 0: no limit.
    pub max_active: u32,
    pub states: BTreeMap<&'static str, u64>,
    pub appends: u64,
    pub resets: u64,
    pub finishes: u64,
    /// Zones that the drive closed to open another.
    pub implicit_closes: u64,
    /// Zeros that finished zones were filled with.
    pub padded_bytes: u64,
    /// Failed commands.
    pub errors: BTreeMap<&'static str, u64>,
    /// The Changed Zone List (log page BFh), unless it is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_zones: Option<ChangedZoneList>,
    /// Random write areas, if the drive has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zrwa: Option<Zrwa>,
}

/// Zones that the drive made read only or offline in the measured part.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct ChangedZoneList {
    /// FFFFh if more than 511.
    pub number: u64,
    /// In ascending order; none if more than 511.
    pub zones: Vec<u32>,
}

/// Zone Random Write Areas.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Zrwa {
    pub area_bytes: u64,
    pub granularity_bytes: u64,
    pub resources: u32,
    /// Zones with an area at the end.
    pub allocated: u32,
    pub explicit_commits: u64,
    pub implicit_commits: u64,
    /// Bytes overwritten before a commit.
    pub overwritten_bytes: u64,
}

impl Zns {
    /// The section of a drive with the figures `now`, and `before` at the start of the measured part.
    pub fn new(now: &ZoneFigures, before: &ZoneFigures) -> Self {
        let (counts, then) = (&now.counts, &before.counts);
        let changed = &now.changed;
        let list = || ChangedZoneList { number: changed.number(), zones: changed.zones().collect() };
        let overwritten = counts.overwritten_blocks - then.overwritten_blocks;
        let zrwa = || Zrwa {
            area_bytes: now.area.size * SECTOR_BYTES,
            granularity_bytes: now.area.granularity * SECTOR_BYTES,
            resources: now.area.zones,
            allocated: now.areas,
            explicit_commits: counts.explicit_commits - then.explicit_commits,
            implicit_commits: counts.implicit_commits - then.implicit_commits,
            overwritten_bytes: overwritten * now.block * SECTOR_BYTES,
        };
        let errors = (0..ERRORS.len()).map(|at| (ERRORS[at], counts.errors[at] - then.errors[at]));
        Zns {
            zones: now.states.iter().sum(),
            zone_bytes: now.size * SECTOR_BYTES,
            zone_capacity_bytes: now.capacity * SECTOR_BYTES,
            max_open: now.max_open,
            max_active: now.max_active,
            states: STATES.into_iter().zip(now.states).collect(),
            appends: counts.appends - then.appends,
            resets: counts.resets - then.resets,
            finishes: counts.finishes - then.finishes,
            implicit_closes: counts.implicit_closes - then.implicit_closes,
            padded_bytes: now.padded_bytes - before.padded_bytes,
            errors: errors.collect(),
            changed_zones: (changed.number() > 0).then(list),
            zrwa: (now.area.size > 0).then(zrwa),
        }
    }
}
