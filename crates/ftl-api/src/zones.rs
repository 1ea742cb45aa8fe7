//! Zones of a drive: states, write pointers and limits (NVMe Zoned Namespace Command Set Specification 1.1, 2.1.1).
//!
//! A zone is written at its write pointer only, up to its capacity, and reset as a whole. A write opens its zone
//! implicitly. If all open resources are in use, the drive closes the implicitly opened zone that was written least
//! recently. The read and write commands cross no zone, except that a read may.
//!
//! A zone that was opened with a Zone Random Write Area (ZRWA, TP4076) takes writes anywhere in the area behind the
//! write pointer, and overwrites there. A commit moves the pointer and so the area; a write beyond the area, by at most
//! the size of the area, commits as much as makes room. This module knows neither flash nor time. Ignored: reset
//! recommended, finish recommended, zone descriptor extensions.

mod changed;
mod words;

pub use changed::{ChangedZones, MOST_CHANGED};
use palimpsest_flash::command::ZoneAction;
pub use words::{ERRORS, STATES, ZoneError, ZoneState};

/// A zone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Zone {
    /// The state.
    pub state: ZoneState,
    /// Sectors from the start of the zone to the write pointer.
    pub written: u64,
    /// True if the zone has a random write area (ZRWAV).
    pub random: bool,
    /// Number of the last command that wrote or opened the zone, for the choice of the zone to close.
    used: u64,
}

palimpsest_flash::state!(Zone { state, written, random, used });

/// The random write areas of a drive, in sectors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Area {
    /// Size of an area (ZRWASZ); 0: the drive has none.
    pub size: u64,
    /// Unit of commits (ZRWAFG).
    pub granularity: u64,
    /// Most zones with an area (NUMZRWA).
    pub zones: u32,
}

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
    /// Commits by command.
    pub explicit_commits: u64,
    /// Commits by a write beyond the random write area.
    pub implicit_commits: u64,
    /// Logical blocks that the host overwrote in random write areas.
    pub overwritten_blocks: u64,
}

palimpsest_flash::state!(ZoneCounts {
    errors,
    appends,
    resets,
    finishes,
    implicit_closes,
    explicit_commits,
    implicit_commits,
    overwritten_blocks
});

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
    /// Sectors of a logical block.
    pub block: u64,
    /// Maximum Open Resources; 0: no limit.
    pub max_open: u32,
    /// Maximum Active Resources; 0: no limit.
    pub max_active: u32,
    /// Bytes that finished zones were padded with since the drive was new.
    pub padded_bytes: u64,
    /// Random write areas.
    pub area: Area,
    /// Zones with such an area now.
    pub areas: u32,
    /// The Changed Zone List.
    pub changed: ChangedZones,
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
    /// Random write areas.
    pub area: Area,
    zones: Vec<Zone>,
    open: u32,
    active: u32,
    random: u32,
    commands: u64,
    changed: ChangedZones,
    /// Counts since the drive was new.
    pub counts: ZoneCounts,
}

palimpsest_flash::state!(Zones { zones, open, active, random, commands, changed, counts } built {
    size, capacity, block, max_open, max_active, area
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
            area: Area::default(),
            zones: vec![Zone::default(); zones as usize],
            open: 0,
            active: 0,
            random: 0,
            commands: 0,
            changed: ChangedZones::default(),
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

    /// Zones that hold a random write area.
    pub fn random(&self) -> u32 {
        self.random
    }

    /// The zones that the drive changed since the last [`Self::clear_changed`].
    pub fn changed(&self) -> &ChangedZones {
        &self.changed
    }

    /// Clears the Changed Zone List, as the host does when it reads the log page.
    pub fn clear_changed(&mut self) {
        self.changed.clear();
    }

    /// Counts a failed command.
    pub fn fail<T>(&mut self, error: ZoneError) -> Result<T, ZoneError> {
        self.counts.errors[error as usize] += 1;
        Err(error)
    }

    /// Admits a write of `sectors` sectors at `sector`, or a Zone Append to the zone that starts there, and opens the
    /// zone. Returns the first sector to write. In a random write area [`Self::implicit_commit`] follows the write.
    ///
    /// # Errors
    /// The status of the failed command, which is not counted yet.
    pub fn admit_write(&mut self, sector: u64, sectors: u64, appends: bool) -> Result<u64, ZoneError> {
        let number = self.zone_of(sector);
        let (zone, place) = (self.zones[number as usize], sector - u64::from(number) * self.size);
        let first = if appends { zone.written } else { place };
        if !(sectors | place).is_multiple_of(self.block) || appends && place > 0 {
            return Err(ZoneError::InvalidField);
        }
        // Behind the area is a region of its size, whose writes commit implicitly.
        let reach = zone.written + 2 * self.area.size;
        match zone.state {
            ZoneState::Full => return Err(ZoneError::ZoneIsFull),
            ZoneState::ReadOnly => return Err(ZoneError::ZoneIsReadOnly),
            ZoneState::Offline => return Err(ZoneError::ZoneIsOffline),
            _ if appends && zone.random => return Err(ZoneError::InvalidZoneOperation),
            _ if zone.random && (first < zone.written || first + sectors > reach) => {
                return Err(ZoneError::ZoneInvalidWrite);
            }
            _ if !zone.random && first != zone.written => return Err(ZoneError::ZoneInvalidWrite),
            _ if first + sectors > self.capacity => return Err(ZoneError::ZoneBoundaryError),
            ZoneState::ImplicitlyOpened | ZoneState::ExplicitlyOpened => {}
            ZoneState::Empty | ZoneState::Closed => self.open(number, ZoneState::ImplicitlyOpened)?,
        }
        self.counts.appends += u64::from(appends);
        self.touch(number);
        Ok(u64::from(number) * self.size + first)
    }

    /// Sectors that a write up to `end` (from the start of `zone`) commits implicitly.
    pub fn implicit_commit(&self, zone: u32, end: u64) -> u64 {
        let written = self.zones[zone as usize].written;
        if end <= written + self.area.size {
            return 0;
        }
        (end - self.area.size).next_multiple_of(self.area.granularity).min(self.capacity) - written
    }

    /// Admits a commit of the random write area of `zone` up to `end`, in sectors from the start of the zone.
    ///
    /// # Errors
    /// As [`Self::admit_write`].
    pub fn admit_commit(&mut self, zone: u32, end: u64) -> Result<(), ZoneError> {
        let Zone { state, written, random, .. } = self.zones[zone as usize];
        match state {
            ZoneState::ReadOnly | ZoneState::Offline => return Err(ZoneError::InvalidZoneStateTransition),
            _ if !random => return Err(ZoneError::InvalidZoneOperation),
            _ if end <= written || end > self.capacity.min(written + self.area.size) => {
                return Err(ZoneError::InvalidField);
            }
            _ if end < self.capacity && !end.is_multiple_of(self.area.granularity) => {
                return Err(ZoneError::InvalidField);
            }
            ZoneState::Closed => self.open(zone, ZoneState::ImplicitlyOpened)?,
            _ => {}
        }
        self.counts.explicit_commits += 1;
        self.touch(zone);
        Ok(())
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
            (ZoneAction::OpenRandom, _) if self.area.size == 0 => return Err(ZoneError::InvalidField),
            (ZoneAction::OpenRandom, state) if state != ZoneState::Empty => {
                return Err(ZoneError::InvalidZoneOperation);
            }
            (ZoneAction::OpenRandom, _) if self.random == self.area.zones => return Err(ZoneError::ZrwaUnavailable),
            (ZoneAction::Open | ZoneAction::OpenRandom, _) => {
                self.open(zone, ZoneState::ExplicitlyOpened)?;
                let allocates = action == ZoneAction::OpenRandom;
                self.zones[zone as usize].random |= allocates;
                self.random += u32::from(allocates);
                self.touch(zone);
            }
            (ZoneAction::Close, _) => self.set(zone, ZoneState::Closed),
            (ZoneAction::Finish, ZoneState::Full) => {}
            (ZoneAction::None | ZoneAction::Append | ZoneAction::Commit, _) => {}
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

    /// After a power cut: `written` sectors of `zone` are found. A zone that was open, or that has a random write area,
    /// is closed; a zone that is read only or offline stays so.
    pub fn found(&mut self, zone: u32, written: u64) {
        let Zone { state, random, .. } = self.zones[zone as usize];
        self.zones[zone as usize].written = written;
        if !state.is_failed() {
            let state = match written {
                0 if !random => ZoneState::Empty,
                written if written == self.capacity => ZoneState::Full,
                _ => ZoneState::Closed,
            };
            self.set(zone, state);
        }
    }

    /// The drive can no longer write `zone`, or no longer read it: sets this `state`, and lists the zone as changed.
    pub fn lose(&mut self, zone: u32, state: ZoneState) {
        if self.zones[zone as usize].state != state {
            self.changed.note(zone);
            self.set(zone, state);
        }
    }

    /// Sets the write pointer of `zone`, which has failed in a write, to `written` sectors.
    pub fn rewind(&mut self, zone: u32, written: u64) {
        self.zones[zone as usize].written = written;
    }

    /// Sets the state of `zone`, and counts open and active resources and random write areas.
    pub fn set(&mut self, zone: u32, state: ZoneState) {
        let at = &mut self.zones[zone as usize];
        let old = std::mem::replace(&mut at.state, state);
        self.open = self.open + u32::from(state.is_open()) - u32::from(old.is_open());
        self.active = self.active + u32::from(state.is_active()) - u32::from(old.is_active());
        if !state.is_active() {
            self.random -= u32::from(std::mem::take(&mut at.random));
        }
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
        let random = self.zones.iter().filter(|zone| zone.random).count() as u32;
        if random != self.random {
            return Err(format!("{random} random write areas count as {}", self.random));
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
