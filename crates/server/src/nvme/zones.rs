//! Zones of the namespace: the commands, structures and log page of the Zoned Namespace Command Set.
//!
//! Source: NVM Express Zoned Namespace Command Set Specification 1.1. The layer of the drive has the zones and admits
//! commands (`palimpsest_ftl_api::zones`); here are the forms of the protocol. Select All is a command for each zone
//! that is in a state of the action. Ignored: zone descriptor extensions, reset and finish recommended, and the time
//! that a report takes.

use super::admin::{Context, Outcome};
use super::entry::{Command, Structure};
use super::identify::ALL_NAMESPACES;
use super::namespaces::Namespace;
use super::status::{self, Status};
use super::{Facts, MOST_TRANSFER};
use crate::request::{Directive, Management, Request};
use palimpsest_lab::command::ZoneAction;
use palimpsest_lab::error::{Error, Result};
use palimpsest_lab::ftl::zones::{Zone, ZoneError, ZoneState, Zones};
use palimpsest_lab::run::served::Served;
use palimpsest_lab::units::SECTOR_BYTES;
use std::collections::BTreeMap;

/// The number of the namespace: a drive with zones has one.
pub const NAMESPACE: u32 = 1;

/// The identifier of the command set.
pub const COMMAND_SET: u8 = 2;

pub const SEND: u8 = 0x79;
pub const RECEIVE: u8 = 0x7A;
pub const APPEND: u8 = 0x7D;

/// Commands of zones, beside those of the NVM command set.
pub const OPCODES: [u8; 3] = [SEND, RECEIVE, APPEND];

/// Log page: the Changed Zone List.
pub const CHANGED_ZONES: u8 = 0xBF;

/// The bit of the asynchronous event configuration, and of the controller's optional events.
pub const EVENT_BIT: u32 = 1 << 27;

/// Zone identifiers that the Changed Zone List has room for.
const MOST_CHANGED: usize = 511;

/// Bytes of the header of a report, and of a zone descriptor.
const DESCRIPTOR: usize = 64;

/// Zones that can be written sequentially only.
const SEQUENTIAL: u8 = 2;

/// Zones of a namespace: sizes in blocks, and limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZoneFacts {
    pub count: u32,
    pub size: u64,
    pub capacity: u64,
    /// 0: no limit.
    pub max_open: u32,
    /// 0: no limit.
    pub max_active: u32,
    /// Random write areas: size, granularity of commits, most zones with one.
    pub area: (u16, u16, u32),
    /// Sectors of a block.
    sectors: u64,
}

impl ZoneFacts {
    /// The facts of `zones`, in blocks of `block_bytes` bytes.
    ///
    /// # Errors
    /// [`Error::Input`]: a zone has no whole number of such blocks, or cannot be written in them.
    pub fn new(zones: &Zones, block_bytes: u32) -> Result<Self> {
        let (sectors, area) = (u64::from(block_bytes) / SECTOR_BYTES, zones.area);
        let written = zones.block * SECTOR_BYTES;
        if !sectors.is_multiple_of(zones.block) {
            let what = format!("these zones are written in blocks of {written} bytes");
            let expected = format!("expected blocks of a multiple of that, or part.subpage_size = {block_bytes}B");
            return Err(Error::input(format!("--block {block_bytes}"), format!("{what}; {expected}")));
        }
        let all = [zones.size, zones.capacity, area.size, area.granularity];
        if all.iter().any(|length| !length.is_multiple_of(sectors)) {
            let what = "zones, their capacity or their random write areas are no whole blocks";
            let expected = format!("expected blocks of {written} bytes");
            return Err(Error::input(format!("--block {block_bytes}"), format!("{what}; {expected}")));
        }
        if zones.size > u32::MAX.into() {
            return Err(Error::input(
                "zns.zone_size",
                "a zone of NVMe hosts has less than 2 TiB here; expected smaller zones",
            ));
        }
        let blocks = |length: u64| u16::try_from(length / sectors).ok();
        let Some((size, granularity)) = blocks(area.size).zip(blocks(area.granularity)) else {
            let what = "a random write area has at most 65535 blocks; expected a smaller zns.zrwa";
            return Err(Error::input("zns.zrwa", what));
        };
        Ok(ZoneFacts {
            count: zones.len(),
            size: zones.size / sectors,
            capacity: zones.capacity / sectors,
            max_open: zones.max_open,
            max_active: zones.max_active,
            area: (size, granularity, if size > 0 { area.zones } else { 0 }),
            sectors,
        })
    }

    /// The request for an action on the first `blocks` blocks of `zone`.
    fn request(&self, zone: u32, blocks: u64, action: ZoneAction) -> Request {
        let (sector, sectors) = (u64::from(zone) * self.size * self.sectors, (blocks * self.sectors) as u32);
        Request::Manage { sector, sectors, action: Management::Zone(action) }
    }

    /// The zone that begins at `block` of the namespace.
    fn beginning_at(&self, block: u64) -> std::result::Result<u32, Status> {
        match block % self.size {
            0 => Ok((block / self.size) as u32),
            _ => Err(status::INVALID_FIELD),
        }
    }
}

/// The status of a failed command of a zone.
pub fn status_of(error: ZoneError) -> Status {
    let code = match error {
        ZoneError::InvalidField => return status::INVALID_FIELD,
        ZoneError::InvalidZoneOperation => 0xB6,
        ZoneError::ZrwaUnavailable => 0xB7,
        ZoneError::ZoneBoundaryError => 0xB8,
        ZoneError::ZoneIsFull => 0xB9,
        ZoneError::ZoneIsReadOnly => 0xBA,
        ZoneError::ZoneIsOffline => 0xBB,
        ZoneError::ZoneInvalidWrite => 0xBC,
        ZoneError::TooManyActiveZones => 0xBD,
        ZoneError::TooManyOpenZones => 0xBE,
        ZoneError::InvalidZoneStateTransition => 0xBF,
    };
    status::DNR | 0x100 | code
}

/// The directive of a Zone Append of `blocks` blocks to the zone that begins at `block`.
///
/// # Errors
/// The status if no zone begins there, or of more blocks than a zone has.
pub fn append(facts: &Facts, namespace: &Namespace, block: u64, blocks: u64) -> std::result::Result<Directive, Status> {
    let zones = facts.zones.as_ref().ok_or(status::INVALID_OPCODE)?;
    namespace.range(block, 1)?;
    zones.beginning_at(block)?;
    if blocks > zones.size { Err(status_of(ZoneError::ZoneBoundaryError)) } else { Ok(Directive::Append) }
}

/// The present zones; empty zones if no drive is shown.
fn zones_of(context: &Context<'_>, count: u32) -> Vec<Zone> {
    let mut all = vec![Zone::default(); count as usize];
    context.shown.look(&mut |served: &Served<'_>| {
        if let Some(zones) = served.zones() {
            all = (0..zones.len()).map(|zone| zones.zone(zone)).collect();
        }
    });
    all
}

/// Executes Zone Management Send or Receive.
///
/// # Errors
/// The status of a wrong field.
pub fn execute(
    command: &Command,
    namespace: &Namespace,
    context: &Context<'_>,
) -> std::result::Result<Outcome, Status> {
    let zones = context.facts.zones.as_ref().ok_or(status::INVALID_OPCODE)?;
    let states = || zones_of(context, zones.count);
    match command.opcode() {
        SEND => send(command, namespace, zones, states).map(|requests| Outcome::Requests(requests, 0)),
        _ => report(command, namespace, zones, states).map(Outcome::Data),
    }
}

/// The requests of Zone Management Send.
fn send(
    command: &Command,
    namespace: &Namespace,
    zones: &ZoneFacts,
    states: impl FnOnce() -> Vec<Zone>,
) -> std::result::Result<Vec<Request>, Status> {
    const COMMIT: u32 = 0x11;
    let (how, block) = (command.dword(13), command.qword(10));
    let (action, is_for_all, has_option) = (how & 0xFF, how & 1 << 8 != 0, how & 1 << 9 != 0);
    if action == COMMIT {
        if is_for_all {
            return Err(status::INVALID_FIELD);
        }
        namespace.range(block, 1)?;
        let zone = (block / zones.size) as u32;
        return Ok(vec![zones.request(zone, block % zones.size + 1, ZoneAction::Commit)]);
    }
    let action = match action {
        1 => ZoneAction::Close,
        2 => ZoneAction::Finish,
        3 if has_option => ZoneAction::OpenRandom,
        3 => ZoneAction::Open,
        4 => ZoneAction::None,
        5 => ZoneAction::Offline,
        _ => return Err(status::INVALID_FIELD),
    };
    if !is_for_all {
        namespace.range(block, 1)?;
        return Ok(vec![zones.request(zones.beginning_at(block)?, zones.size, action)]);
    }
    let all = states();
    let chosen: Vec<u32> = (0..zones.count).filter(|&zone| selects(action, all[zone as usize].state)).collect();
    match action {
        ZoneAction::OpenRandom => return Err(status::INVALID_FIELD),
        ZoneAction::Open if zones.max_open > 0 => {
            let open = all.iter().filter(|zone| zone.state == ZoneState::ExplicitlyOpened).count();
            if open + chosen.len() > zones.max_open as usize {
                return Err(status_of(ZoneError::TooManyOpenZones));
            }
        }
        _ => {}
    }
    Ok(chosen.into_iter().map(|zone| zones.request(zone, zones.size, action)).collect())
}

/// Whether Select All of `action` takes a zone in `state`.
fn selects(action: ZoneAction, state: ZoneState) -> bool {
    match action {
        ZoneAction::Close => state.is_open(),
        ZoneAction::Finish => state.is_active(),
        ZoneAction::Open => state == ZoneState::Closed,
        ZoneAction::None => state.is_active() || state == ZoneState::Full,
        ZoneAction::Offline => state == ZoneState::ReadOnly,
        _ => false,
    }
}

/// The code of a state in zone descriptors.
fn code_of(state: ZoneState) -> u8 {
    match state {
        ZoneState::Empty => 0x1,
        ZoneState::ImplicitlyOpened => 0x2,
        ZoneState::ExplicitlyOpened => 0x3,
        ZoneState::Closed => 0x4,
        ZoneState::ReadOnly => 0xD,
        ZoneState::Full => 0xE,
        ZoneState::Offline => 0xF,
    }
}

/// The data of Zone Management Receive: Report Zones.
fn report(
    command: &Command,
    namespace: &Namespace,
    zones: &ZoneFacts,
    states: impl FnOnce() -> Vec<Zone>,
) -> std::result::Result<Vec<u8>, Status> {
    /// States of a report, by the number in the command from 1 on.
    const FILTERS: [ZoneState; 7] = [
        ZoneState::Empty,
        ZoneState::ImplicitlyOpened,
        ZoneState::ExplicitlyOpened,
        ZoneState::Closed,
        ZoneState::Full,
        ZoneState::ReadOnly,
        ZoneState::Offline,
    ];
    let (how, block) = (command.dword(13), command.qword(10));
    let bytes = (u64::from(command.dword(12)) + 1) * 4;
    let (action, filter, is_partial) = (how & 0xFF, (how >> 8 & 0xFF) as usize, how & 1 << 16 != 0);
    // Extended reports need zone descriptor extensions.
    if action != 0 || filter > FILTERS.len() || bytes < DESCRIPTOR as u64 || bytes > MOST_TRANSFER.into() {
        return Err(status::INVALID_FIELD);
    }
    namespace.range(block, 1)?;
    command.check_data_to_host(bytes as u32)?;
    let (mut page, all) = (Structure::new(bytes as usize), states());
    let wanted = filter.checked_sub(1).map(|at| FILTERS[at]);
    let room = (bytes as usize - DESCRIPTOR) / DESCRIPTOR;
    let mut found = 0;
    for number in (block / zones.size) as u32..zones.count {
        let zone = all[number as usize];
        if wanted.is_some_and(|wanted| wanted != zone.state) {
            continue;
        }
        if found < room {
            describe(&mut page, DESCRIPTOR * (1 + found), zones, number, zone);
        }
        found += 1;
    }
    page.u64(0, if is_partial { found.min(room) } else { found } as u64);
    Ok(page.0)
}

fn describe(page: &mut Structure, at: usize, zones: &ZoneFacts, number: u32, zone: Zone) {
    let start = u64::from(number) * zones.size;
    let has_pointer = zone.state == ZoneState::Empty || zone.state.is_active();
    let pointer = if has_pointer { start + zone.written / zones.sectors } else { u64::MAX };
    page.u8(at, SEQUENTIAL).u8(at + 1, code_of(zone.state) << 4).u8(at + 2, u8::from(zone.random) << 3);
    page.u64(at + 8, zones.capacity).u64(at + 16, start).u64(at + 24, pointer);
}

/// The namespace as the command set sees it. Reads may cross zones.
pub fn of_namespace(zones: &ZoneFacts) -> Vec<u8> {
    let mut page = Structure::new(4096);
    // All ones mean no limit, which is 0 here.
    let (size, granularity, areas) = zones.area;
    page.u16(2, 1 | u16::from(size > 0) << 1);
    page.u32(4, zones.max_active.wrapping_sub(1)).u32(8, zones.max_open.wrapping_sub(1));
    if size > 0 {
        page.u32(44, areas).u16(48, granularity).u16(50, size).u8(52, 1);
    }
    page.u64(2816, zones.size);
    page.0
}

/// Limits of the command set: an append is as long as a transfer.
pub fn of_command_set() -> Vec<u8> {
    let mut page = Structure::new(4096);
    page.u8(0, MOST_TRANSFER.trailing_zeros() as u8 - 12);
    page.0
}

/// Adds the optional events of zones to the data of Identify Controller.
pub fn of_controller(page: &mut Structure, facts: &Facts) {
    if facts.zones.is_some() {
        page.0[95] |= (EVENT_BIT >> 24) as u8;
    }
}

/// The failed zones that a controller has reported, with their states.
pub type Reported = BTreeMap<u32, ZoneState>;

/// The Changed Zone List: zones that failed since the host last read the page. Forgets them unless the event `stays`.
///
/// # Errors
/// The status of a namespace without zones.
pub fn changed(context: &Context<'_>, namespace: u32, stays: bool) -> std::result::Result<Vec<u8>, Status> {
    let zones = context.facts.zones.as_ref().ok_or(status::INVALID_LOG_PAGE)?;
    if namespace == ALL_NAMESPACES {
        return Err(status::INVALID_FIELD);
    }
    context.subsystem.namespaces().find(namespace, &context.controller.host.name)?;
    let states = (0..).zip(zones_of(context, zones.count));
    let failed: Reported =
        states.filter(|(_, zone)| zone.state.is_failed()).map(|(at, zone)| (at, zone.state)).collect();
    let fresh = context.controller.fresh_zones(&failed, stays);
    let mut page = Structure::new(4096);
    if fresh.len() > MOST_CHANGED {
        page.u16(0, 0xFFFF);
        return Ok(page.0);
    }
    page.u16(0, fresh.len() as u16);
    for (at, &zone) in fresh.iter().enumerate() {
        page.u64(8 + 8 * at, u64::from(zone) * zones.size);
    }
    Ok(page.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_divide_zones_and_hold_what_zones_are_written_in() {
        // Zones of 16 sectors, 8 of which can be written, in blocks of 8.
        let zones = Zones::new(4, 16, 8, 8, (0, 3));
        let facts = ZoneFacts::new(&zones, 4096).unwrap();
        assert_eq!((facts.size, facts.capacity, facts.area), (2, 1, (0, 0, 0)));
        let page = of_namespace(&facts);
        assert_eq!((page[2], &page[4..12]), (1, &[2, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF][..]));
        assert!(ZoneFacts::new(&zones, 512).unwrap_err().to_string().contains("blocks of 4096 bytes"));
        assert!(ZoneFacts::new(&Zones::new(4, 12, 12, 4, (0, 0)), 4096).is_err(), "one and a half blocks");
    }
}
