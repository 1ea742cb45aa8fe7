//! The log pages of Flexible Data Placement (NVM Express Base Specification 2.1, 5.1.12.1.28 to 31), as a section of
//! the result: configuration, usage and statistics of the handles, numbers of events. Ignored: the order of events.

use palimpsest_ftl_api::{HandleFigures, PlacementEvents, PlacementFigures};
use serde::Serialize;

/// Flexible Data Placement in the measured part; reclaim units and their valid share are those at the end.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Fdp {
    pub configuration: Configuration,
    pub statistics: Statistics,
    pub events: Events,
    pub handles: Vec<Handle>,
    /// Units of data that was moved out of units of several handles.
    pub controller: Option<Handle>,
}

/// The configuration log page (20h). `nominal_bytes` of a reclaim unit.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Configuration {
    pub reclaim_groups: u32,
    pub handles: u32,
    pub isolation: String,
    pub nominal_bytes: u64,
    pub reclaim_units: u64,
}

/// The statistics log page (22h): bytes that the host wrote, that flash programmed, and of erased blocks.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Statistics {
    pub host_bytes: u64,
    pub media_bytes: u64,
    pub media_erased_bytes: u64,
}

/// Numbers of events of the events log page (23h), by type.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Events {
    pub unit_not_fully_written: u64,
    pub reset_modified_handles: u64,
    pub invalid_placement_identifier: u64,
    pub media_reallocated: u64,
}

/// A handle: its usage (log page 21h), bytes that the host wrote and that collection moved out of its units, (host +
/// moved) / host (null without writes), reclaim units and the valid share of their bytes, and bytes that can still be
/// written to the unit that the handle refers to. With several reclaim groups also the group, and bytes of pages that
/// the host wrote to other groups, because the group had no room.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Handle {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
    pub handle: Option<u32>,
    pub usage: &'static str,
    pub host_bytes: u64,
    pub moved_bytes: u64,
    pub write_amplification: Option<f64>,
    pub reclaim_units: u64,
    pub valid_share: Option<f64>,
    pub left_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spilled_bytes: Option<u64>,
}

/// Figures of the drive beside those of the handles.
pub struct Drive {
    /// `fdp.isolation`.
    pub isolation: String,
    /// Reclaim units of the drive.
    pub units: u64,
    /// Bytes of a subpage.
    pub subpage_bytes: u64,
    /// The statistics.
    pub statistics: Statistics,
}

impl Fdp {
    /// The section of a drive with the figures `now`, and `before` at the start of the measured part.
    pub fn new(now: &PlacementFigures, before: &PlacementFigures, drive: Drive) -> Self {
        let bytes = |subpages: u64| subpages * drive.subpage_bytes;
        let earlier = |at: usize| before.handles.get(at).copied().unwrap_or_default();
        let groups = now.groups.max(1);
        let in_group = (now.handles.len() as u32 - 1) / groups;
        let mut handles: Vec<Handle> = (0..now.handles.len())
            .map(|at| {
                let (HandleFigures { units, valid_subpages, left_subpages, .. }, then) = (now.handles[at], earlier(at));
                let written = now.handles[at].written_subpages - then.written_subpages;
                let moved = now.handles[at].moved_subpages - then.moved_subpages;
                let valid_share = (units > 0).then(|| valid_subpages as f64 / (units * now.unit_subpages) as f64);
                let spilled = now.handles[at].spilled_subpages - then.spilled_subpages;
                Handle {
                    group: (groups > 1).then_some(at as u32 / in_group),
                    handle: Some(at as u32 % in_group),
                    usage: if written > 0 { "host specified" } else { "unused" },
                    host_bytes: bytes(written),
                    moved_bytes: bytes(moved),
                    write_amplification: (written > 0).then(|| (written + moved) as f64 / written as f64),
                    reclaim_units: units,
                    valid_share,
                    left_bytes: bytes(left_subpages),
                    spilled_bytes: (groups > 1).then(|| bytes(spilled)),
                }
            })
            .collect();
        let controller = handles.pop().filter(|own| own.reclaim_units > 0 || own.moved_bytes > 0);
        Fdp {
            configuration: Configuration {
                reclaim_groups: groups,
                handles: in_group,
                isolation: drive.isolation,
                nominal_bytes: bytes(now.unit_subpages),
                reclaim_units: drive.units,
            },
            statistics: drive.statistics,
            events: Events::between(&now.events, &before.events),
            handles,
            controller: controller.map(|own| Handle {
                group: None,
                handle: None,
                usage: "controller specified",
                ..own
            }),
        }
    }
}

impl Events {
    fn between(now: &PlacementEvents, before: &PlacementEvents) -> Self {
        Events {
            unit_not_fully_written: now.unit_not_fully_written - before.unit_not_fully_written,
            reset_modified_handles: now.reset_modified_handles - before.reset_modified_handles,
            invalid_placement_identifier: now.invalid_placement_identifier - before.invalid_placement_identifier,
            media_reallocated: now.media_reallocated - before.media_reallocated,
        }
    }
}
