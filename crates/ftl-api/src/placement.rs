//! Figures of reclaim unit handles, for layers that have them. Ignored: the order of events.

/// Figures of reclaim unit handles (NVMe Flexible Data Placement).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlacementFigures {
    /// Each handle, group by group, and last the controller, for units with moved data of several handles.
    pub handles: Vec<HandleFigures>,
    /// Reclaim groups.
    pub groups: u32,
    /// Subpages of a reclaim unit.
    pub unit_subpages: u64,
    /// Events since the drive was new.
    pub events: PlacementEvents,
}

/// Figures of a reclaim unit handle.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct HandleFigures {
    /// Subpages that the host wrote by the handle since the drive was new.
    pub written_subpages: u64,
    /// Subpages moved out of units of the handle since the drive was new.
    pub moved_subpages: u64,
    /// Reclaim units of the handle now.
    pub units: u64,
    /// Valid subpages in these.
    pub valid_subpages: u64,
    /// Subpages that can still be written to the unit that the handle refers to.
    pub left_subpages: u64,
    /// Subpages that the host wrote to other reclaim groups, because the group had no room.
    pub spilled_subpages: u64,
}

/// Numbers of events of the FDP event log since the drive was new.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PlacementEvents {
    /// Host event 0h: an update or a reset let a handle leave a reclaim unit before it was full.
    pub unit_not_fully_written: u64,
    /// Host event 2h: a controller level reset modified handles.
    pub reset_modified_handles: u64,
    /// Host event 3h: writes with a placement identifier that the drive does not have.
    pub invalid_placement_identifier: u64,
    /// Controller event 80h: reclaim units whose valid data was moved.
    pub media_reallocated: u64,
}
