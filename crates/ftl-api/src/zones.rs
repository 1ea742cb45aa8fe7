//! Zones of a drive: states, write pointers and limits (NVMe Zoned Namespace Command Set Specification 1.1, 2.1.1).
//!
//! A zone is written at its write pointer only, up to its capacity, and reset as a whole. A write opens its zone
//! implicitly. If all open resources are in use, the drive closes the implicitly opened zone that was written least
//! recently. The read and write commands cross no zone, except that a read may. This module knows neither flash nor
//! time. Ignored: reset recommended, finish recommended, zone descriptor extensions.

use palimpsest_flash::command::ZoneAction;

/// States of a zone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ZoneState {
    /// ZSE.
    #[default]
    Empty,
    /// ZSIO.
    ImplicitlyOpened,
    /// ZSEO.
    ExplicitlyOpened,
    /// ZSC.
    Closed,
    /// ZSF.
    Full,
    /// ZSRO.
    ReadOnly,
    /// ZSO.
    Offline,
}

palimpsest_flash::state_of_words!(ZoneState {
    Empty,
    ImplicitlyOpened,
    ExplicitlyOpened,
    Closed,
    Full,
    ReadOnly,
    Offline
});

/// Names of the states, in their order.
pub const STATES: [&str; 7] =
    ["empty", "implicitly_opened", "explicitly_opened", "closed", "full", "read_only", "offline"];

impl ZoneState {
    /// True if the zone holds an open resource.
    pub fn is_open(self) -> bool {
        matches!(self, ZoneState::ImplicitlyOpened | ZoneState::ExplicitlyOpened)
    }

    /// True if the zone holds an active resource.
    pub fn is_active(self) -> bool {
        self.is_open() || self == ZoneState::Closed
    }
}

/// Status values of failed commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZoneError {
    /// The sectors are no whole logical blocks, or an append does not name the start of a zone.
    InvalidField,
    /// B8h: the command crosses the capacity of the zone.
    ZoneBoundaryError,
    /// B9h.
    ZoneIsFull,
    /// BAh.
    ZoneIsReadOnly,
    /// BBh.
    ZoneIsOffline,
    /// BCh: a write does not begin at the write pointer.
    ZoneInvalidWrite,
    /// BDh.
    TooManyActiveZones,
    /// BEh.
    TooManyOpenZones,
    /// BFh.
    InvalidZoneStateTransition,
}

/// Names of the status values, in their order.
pub const ERRORS: [&str; 9] = [
    "invalid_field",
    "zone_boundary_error",
    "zone_is_full",
    "zone_is_read_only",
    "zone_is_offline",
    "zone_invalid_write",
    "too_many_active_zones",
    "too_many_open_zones",
    "invalid_zone_state_transition",
];

/// A zone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Zone {
    /// The state.
    pub state: ZoneState,
    /// Sectors from the start of the zone to the write pointer.
    pub written: u64,
    /// Number of the last command that wrote or opened the zone, for the choice of the zone to close.
    used: u64,
}

palimpsest_flash::state!(Zone { state, written, used });

/// Counts since the drive was new.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ZoneCounts {
    /// Failed commands by [`ERRORS`].
    pub errors: [u64; ERRORS.len()],
    /// Zone Append commands.
    pub appends: u64,
    /// Resets of zones that were not empty.
    pub resets: u64,
    /// Zones finished by the host.
    pub finishes: u64,
    /// Implicitly opened zones that the drive closed for another.
    pub implicit_closes: u64,
}

palimpsest_flash::state!(ZoneCounts { errors, appends, resets, finishes, implicit_closes });

/// Figures of a zoned drive.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ZoneFigures {
    /// Zones in each state now, by [`STATES`].
    pub states: [u64; STATES.len()],
    /// Counts since the drive was new.
    pub counts: ZoneCounts,
    /// Sectors from the start of a zone to the start of the next.
    pub size: u64,
    /// Sectors of a zone that can be written.
    pub capacity: u64,
    /// Maximum Open Resources; 0: no limit.
    pub max_open: u32,
    /// Maximum Active Resources; 0: no limit.
    pub max_active: u32,
    /// Bytes that finished zones were padded with since the drive was new.
    pub padded_bytes: u64,
}

/// The zones of a drive.
#[derive(Clone)]
pub struct Zones {
    /// Sectors from the start of a zone to the start of the next.
    pub size: u64,
    /// Sectors of a zone that can be written.
    pub capacity: u64,
    /// Sectors of a logical block, the unit of reads and writes.
    pub block: u64,
    /// Most open zones; 0: no limit.
    pub max_open: u32,
    /// Most active zones; 0: no limit.
    pub max_active: u32,
    zones: Vec<Zone>,
    open: u32,
    active: u32,
    commands: u64,
    /// Counts since the drive was new.
    pub counts: ZoneCounts,
}

palimpsest_flash::state!(Zones { zones, open, active, commands, counts } built {
    size, capacity, block, max_open, max_active
});

impl Zones {
    /// `zones` empty zones of `size` sectors, of which `capacity` can be written, in logical blocks of `block` sectors.
    pub fn new(zones: u32, size: u64, capacity: u64, block: u64, (max_open, max_active): (u32, u32)) -> Self {
        Zones {
            size,
            capacity,
            block,
            max_open,
            max_active,
            zones: vec![Zone::default(); zones as usize],
            open: 0,
            active: 0,
            commands: 0,
            counts: ZoneCounts::default(),
        }
    }

    /// Number of zones.
    pub fn len(&self) -> u32 {
        self.zones.len() as u32
    }

    /// True if the drive has no zone.
    pub fn is_empty(&self) -> bool {
        self.zones.is_empty()
    }

    /// Zone `zone`.
    pub fn zone(&self, zone: u32) -> Zone {
        self.zones[zone as usize]
    }

    /// The zone of `sector`.
    #[inline]
    pub fn zone_of(&self, sector: u64) -> u32 {
        (sector / self.size) as u32
    }

    /// The sector at the write pointer of `zone`.
    #[inline]
    pub fn pointer(&self, zone: u32) -> u64 {
        u64::from(zone) * self.size + self.zones[zone as usize].written
    }

    /// True if a further zone may become active.
    pub fn may_activate(&self) -> bool {
        self.max_active == 0 || self.active < self.max_active
    }

    /// Zones that hold an active resource.
    pub fn active(&self) -> u32 {
        self.active
    }

    /// Counts a failed command.
    pub fn fail<T>(&mut self, error: ZoneError) -> Result<T, ZoneError> {
        self.counts.errors[error as usize] += 1;
        Err(error)
    }

    /// Admits a write of `sectors` sectors at `sector`, or a Zone Append to the zone that starts there, and opens the
    /// zone. Returns the first sector to write.
    ///
    /// # Errors
    /// The status of the failed command, which is not counted yet.
    pub fn admit_write(&mut self, sector: u64, sectors: u64, appends: bool) -> Result<u64, ZoneError> {
        let zone = self.zone_of(sector);
        let pointer = self.pointer(zone);
        if !sectors.is_multiple_of(self.block) || appends && !sector.is_multiple_of(self.size) {
            return Err(ZoneError::InvalidField);
        }
        match self.zones[zone as usize].state {
            ZoneState::Full => return Err(ZoneError::ZoneIsFull),
            ZoneState::ReadOnly => return Err(ZoneError::ZoneIsReadOnly),
            ZoneState::Offline => return Err(ZoneError::ZoneIsOffline),
            _ if !appends && sector != pointer => return Err(ZoneError::ZoneInvalidWrite),
            _ if self.zones[zone as usize].written + sectors > self.capacity => {
                return Err(ZoneError::ZoneBoundaryError);
            }
            ZoneState::ImplicitlyOpened | ZoneState::ExplicitlyOpened => {}
            ZoneState::Empty | ZoneState::Closed => self.open(zone, ZoneState::ImplicitlyOpened)?,
        }
        self.counts.appends += u64::from(appends);
        self.touch(zone);
        Ok(pointer)
    }

    /// Advances the write pointer of `zone` to `written` sectors.
    #[inline]
    pub fn advance(&mut self, zone: u32, written: u64) {
        self.zones[zone as usize].written = written;
        if written == self.capacity {
            self.set(zone, ZoneState::Full);
        }
    }

    /// Admits the action `action` on `zone`, and changes the state. A finished zone becomes full by
    /// [`Self::advance`], an admitted reset takes effect by [`Self::reset`].
    ///
    /// # Errors
    /// As [`Self::admit_write`].
    pub fn admit_action(&mut self, zone: u32, action: ZoneAction) -> Result<(), ZoneError> {
        let state = self.zones[zone as usize].state;
        match (action, state) {
            (ZoneAction::Offline, ZoneState::ReadOnly | ZoneState::Offline) => self.set(zone, ZoneState::Offline),
            (ZoneAction::Offline, _) | (_, ZoneState::ReadOnly | ZoneState::Offline) => {
                return Err(ZoneError::InvalidZoneStateTransition);
            }
            (ZoneAction::Open | ZoneAction::Close, ZoneState::Full) | (ZoneAction::Close, ZoneState::Empty) => {
                return Err(ZoneError::InvalidZoneStateTransition);
            }
            (ZoneAction::Open, _) => {
                self.open(zone, ZoneState::ExplicitlyOpened)?;
                self.touch(zone);
            }
            (ZoneAction::Close, _) => self.set(zone, ZoneState::Closed),
            (ZoneAction::Finish, ZoneState::Full) | (ZoneAction::None | ZoneAction::Append, _) => {}
            (ZoneAction::Finish, _) => self.counts.finishes += 1,
        }
        Ok(())
    }

    /// Resets `zone`.
    pub fn reset(&mut self, zone: u32) {
        self.counts.resets += u64::from(self.zones[zone as usize].state != ZoneState::Empty);
        self.zones[zone as usize].written = 0;
        self.set(zone, ZoneState::Empty);
    }

    /// After a power cut: `written` sectors of `zone` are found. A zone that was open is closed; a zone that is read
    /// only or offline stays so.
    pub fn found(&mut self, zone: u32, written: u64) {
        let kept = matches!(self.zones[zone as usize].state, ZoneState::ReadOnly | ZoneState::Offline);
        self.zones[zone as usize].written = written;
        if !kept {
            let state = match written {
                0 => ZoneState::Empty,
                written if written == self.capacity => ZoneState::Full,
                _ => ZoneState::Closed,
            };
            self.set(zone, state);
        }
    }

    /// Sets the state of `zone`, and counts open and active resources.
    pub fn set(&mut self, zone: u32, state: ZoneState) {
        let old = std::mem::replace(&mut self.zones[zone as usize].state, state);
        self.open = self.open + u32::from(state.is_open()) - u32::from(old.is_open());
        self.active = self.active + u32::from(state.is_active()) - u32::from(old.is_active());
    }

    /// Zones in each state.
    pub fn states(&self) -> [u64; STATES.len()] {
        let mut states = [0; STATES.len()];
        self.zones.iter().for_each(|zone| states[zone.state as usize] += 1);
        states
    }

    /// Checks counts against states.
    ///
    /// # Errors
    /// The first contradiction found.
    pub fn check(&self) -> Result<(), String> {
        let count = |is: fn(ZoneState) -> bool| self.zones.iter().filter(|zone| is(zone.state)).count() as u32;
        let (open, active) = (count(ZoneState::is_open), count(ZoneState::is_active));
        if (open, active) != (self.open, self.active) {
            return Err(format!("{open} open and {active} active zones count as {} and {}", self.open, self.active));
        }
        let full = |zone: &Zone| zone.written == self.capacity;
        let wrong = self.zones.iter().position(|zone| match zone.state {
            ZoneState::Empty => zone.written > 0,
            ZoneState::Full => !full(zone),
            ZoneState::ReadOnly | ZoneState::Offline => false,
            _ => full(zone),
        });
        match wrong {
            Some(zone) => Err(format!("zone {zone} is {:?}", self.zones[zone])),
            None => Ok(()),
        }
    }

    fn touch(&mut self, zone: u32) {
        self.commands += 1;
        self.zones[zone as usize].used = self.commands;
    }

    /// Opens `zone`; closes another implicitly opened zone if all open resources are in use.
    fn open(&mut self, zone: u32, state: ZoneState) -> Result<(), ZoneError> {
        let now = self.zones[zone as usize].state;
        if !now.is_active() && !self.may_activate() {
            return Err(ZoneError::TooManyActiveZones);
        }
        if !now.is_open() && self.max_open > 0 && self.open >= self.max_open {
            let implicit = (0..self.len()).filter(|&other| self.zone(other).state == ZoneState::ImplicitlyOpened);
            let Some(oldest) = implicit.min_by_key(|&other| self.zone(other).used) else {
                return Err(ZoneError::TooManyOpenZones);
            };
            self.counts.implicit_closes += 1;
            self.set(oldest, ZoneState::Closed);
        }
        self.set(zone, state);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
