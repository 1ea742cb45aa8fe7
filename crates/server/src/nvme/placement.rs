//! Flexible Data Placement of the namespace: log pages, features, directives, and I/O management.
//!
//! Source: NVM Express Base Specification 2.1 (TP4146). The layer of the drive has the reclaim unit handles
//! (`palimpsest_ftl::layers::fdp`), and the pages have the figures of the result. FDP is always enabled: the only
//! configuration is that of the layer, and the namespace may use each handle, by the placement handle of the same
//! number. The drive counts events; each is recorded when the drive has proceeded, with the identifier of the last
//! planned command. Ignored: time limits of reclaim units, and the place of moved data in events.

use super::admin::{Context, Outcome};
use super::entry::{Command, Structure};
use super::logs::ENDURANCE_GROUP_ID;
use super::namespaces::Namespace;
use super::pdu::u16_at;
use super::status::{self, Status};
use super::{Facts, MOST_TRANSFER};
use crate::page::figures;
use crate::request::{Directive, Management, Request};
use palimpsest_lab::command::Directives;
use palimpsest_lab::ftl::PlacementEvents;
use palimpsest_lab::log::Identifiers;
use palimpsest_lab::metrics::fdp::Fdp;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

pub const RECEIVE: u8 = 0x12;
pub const SEND: u8 = 0x1D;

/// Commands of I/O management.
pub const OPCODES: [u8; 2] = [RECEIVE, SEND];

pub const DIRECTIVE_SEND: u8 = 0x19;
pub const DIRECTIVE_RECEIVE: u8 = 0x1A;

/// Log pages: configurations, usage of handles, statistics, events.
pub const CONFIGURATIONS: u8 = 0x20;
pub const USAGE: u8 = 0x21;
pub const STATISTICS: u8 = 0x22;
pub const EVENTS: u8 = 0x23;

pub const LOGS: [u8; 4] = [CONFIGURATIONS, USAGE, STATISTICS, EVENTS];

/// Features: Flexible Data Placement, and the enabled events.
pub const MODE: u8 = 0x1D;
pub const EVENTS_ENABLED: u8 = 0x1E;

/// The type of the Data Placement directive.
const DATA_PLACEMENT: u32 = 2;

/// Events of each kind, of the host and of the controller, that the log keeps.
const MOST_EVENTS: usize = 63;

/// Types of events that the drive has; those from 80h on are the controller's.
const TYPES: [u8; 4] = [0x00, 0x02, 0x03, 0x80];

/// The identifiers of a drive with these figures.
pub fn identifiers(fdp: &Fdp) -> Identifiers {
    Identifiers { handles: fdp.configuration.handles, groups: fdp.configuration.reclaim_groups }
}

/// The directive in dwords 12 and 13 of a write.
///
/// # Errors
/// The status of a directive that is not enabled.
pub fn directive(command: &Command, facts: &Facts) -> Result<Option<Directive>, Status> {
    match command.dword(12) >> 20 & 0xF {
        0 => Ok(None),
        DATA_PLACEMENT if facts.placement.is_some() => Ok(Some(Directive::Place((command.dword(13) >> 16) as u16))),
        _ => Err(status::INVALID_FIELD),
    }
}

/// Executes I/O Management Send or Receive, with the `data` of a Send.
///
/// # Errors
/// The status of a wrong field.
pub fn execute(
    command: &Command,
    data: &[u8],
    namespace: &Namespace,
    context: &Context<'_>,
) -> Result<Outcome, Status> {
    let facts = context.facts.placement.as_ref().ok_or(status::INVALID_OPCODE)?;
    if command.opcode() == SEND {
        let used = updated(command, context.facts)? * 2;
        return updates(&data[..used as usize], facts).map(|requests| Outcome::Requests(requests, 0));
    }
    match command.dword(10) & 0xFF {
        // No action.
        0 => Ok(Outcome::Done(0)),
        1 => handles(command, facts, namespace, context).map(Outcome::Data),
        _ => Err(status::INVALID_FIELD),
    }
}

/// Reclaim Unit Handle Status: the identifier of each handle, and the blocks that its unit has room for.
fn handles(
    command: &Command,
    facts: &Identifiers,
    namespace: &Namespace,
    context: &Context<'_>,
) -> Result<Vec<u8>, Status> {
    let bytes = (u64::from(command.dword(11)) + 1) * 4;
    if bytes > MOST_TRANSFER.into() {
        return Err(status::INVALID_FIELD);
    }
    command.check_data_to_host(bytes as u32)?;
    let (figures, block) = (figures(context.shown), u64::from(namespace.block_bytes));
    let all = facts.handles * facts.groups;
    let mut page = Structure::new(16 + 32 * all as usize);
    page.u16(14, all as u16);
    for at in 0..all {
        let (group, handle, place) = (at / facts.handles, at % facts.handles, 16 + 32 * at as usize);
        let left = figures["fdp"]["handles"][at as usize]["left_bytes"].as_u64().unwrap_or(0);
        page.u16(place, facts.identifier(group, handle)).u16(place + 2, handle as u16).u64(place + 8, left / block);
    }
    page.0.resize(bytes as usize, 0);
    Ok(page.0)
}

/// The number of identifiers of I/O Management Send, Reclaim Unit Handle Update; 0 for a command without an action.
///
/// # Errors
/// The status of a wrong field.
pub fn updated(command: &Command, facts: &Facts) -> Result<u32, Status> {
    let Some(facts) = &facts.placement else { return Err(status::INVALID_OPCODE) };
    let (operation, identifiers) = (command.dword(10) & 0xFF, (command.dword(10) >> 16) + 1);
    match operation {
        0 => Ok(0),
        1 if identifiers <= facts.handles * facts.groups => Ok(identifiers),
        _ => Err(status::INVALID_FIELD),
    }
}

/// The requests that update the handles of the identifiers in `data`.
///
/// # Errors
/// The status of an identifier that the drive does not have; no handle must be updated then.
fn updates(data: &[u8], facts: &Identifiers) -> Result<Vec<Request>, Status> {
    let all: Vec<u16> = data.chunks_exact(2).map(|identifier| u16_at(identifier, 0)).collect();
    if all.iter().any(|&identifier| facts.stream_of(identifier).is_none()) {
        return Err(status::INVALID_FIELD);
    }
    let update = |identifier| Request::Manage { sector: 0, sectors: 0, action: Management::Update(identifier) };
    Ok(all.into_iter().map(update).collect())
}

/// Adds endurance groups with FDP, and directives, to the data of Identify Controller.
pub fn of_controller(page: &mut Structure, facts: &Facts) {
    if facts.placement.is_some() {
        page.0[98] |= 1 << 3;
        page.0[256] |= 1 << 5;
    }
}

/// Executes Directive Send or Directive Receive.
///
/// # Errors
/// The status of a wrong field.
pub fn direct(command: &Command, context: &Context<'_>) -> Result<Outcome, Status> {
    if context.facts.placement.is_none() {
        return Err(status::INVALID_OPCODE);
    }
    context.subsystem.namespaces().find(command.namespace(), &context.controller.host.name)?;
    let (what, more) = (command.dword(11), command.dword(12));
    // Both operations are of the Identify directive.
    if what & 0xFFFF != 1 {
        return Err(status::INVALID_FIELD);
    }
    if command.opcode() == DIRECTIVE_SEND {
        // Data placement is enabled as long as the endurance group has FDP.
        let enables = more & 1 != 0 && more >> 8 & 0xFF == DATA_PLACEMENT;
        return if enables { Ok(Outcome::Done(0)) } else { Err(status::INVALID_FIELD) };
    }
    let bytes = (u64::from(command.dword(10)) + 1) * 4;
    if bytes > MOST_TRANSFER.into() {
        return Err(status::INVALID_FIELD);
    }
    command.check_data_to_host(bytes as u32)?;
    let (mut page, all) = (Structure::new(4096), 1 | 1 << DATA_PLACEMENT);
    // Supported, enabled, and the one that a reset keeps enabled.
    page.u8(0, all).u8(32, all).u8(64, 1 << DATA_PLACEMENT);
    page.0.resize(bytes as usize, 0);
    Ok(Outcome::Data(page.0))
}

/// An event of the log.
#[derive(Debug, Clone, Copy)]
struct Event {
    kind: u8,
    identifier: Option<u16>,
    at: Duration,
}

/// The events that hosts enabled, the oldest first.
#[derive(Debug, Default)]
pub struct Events {
    seen: PlacementEvents,
    host: VecDeque<Event>,
    controller: VecDeque<Event>,
    /// Enabled types by handle: bits by the place in [`TYPES`].
    enabled: BTreeMap<u32, u8>,
}

impl Events {
    /// No events, of a drive that has counted `seen` before.
    pub fn new(seen: PlacementEvents) -> Self {
        Events { seen, ..Events::default() }
    }

    /// Records the events between `seen` and `now`, at time `at` of the subsystem, by a command with `directives`.
    pub fn note(&mut self, now: PlacementEvents, directives: Directives, facts: &Identifiers, at: Duration) {
        let counts = |of: &PlacementEvents| {
            [
                of.unit_not_fully_written,
                of.reset_modified_handles,
                of.invalid_placement_identifier,
                of.media_reallocated,
            ]
        };
        let (before, now_counts) = (counts(&self.seen), counts(&now));
        self.seen = now;
        let identifier = Some(directives.placement).filter(|_| directives.placed);
        for (place, kind) in TYPES.into_iter().enumerate() {
            let more = now_counts[place].saturating_sub(before[place]);
            let is_of_host = kind < 0x80;
            let identifier = identifier.filter(|_| is_of_host);
            let handle = identifier.and_then(|one| facts.stream_of(one)).map(|stream| stream % facts.handles);
            if more == 0 || !self.is_enabled(handle, place) {
                continue;
            }
            let log = if is_of_host { &mut self.host } else { &mut self.controller };
            (0..more.min(MOST_EVENTS as u64)).for_each(|_| log.push_back(Event { kind, identifier, at }));
            log.drain(..log.len().saturating_sub(MOST_EVENTS));
        }
    }

    /// Whether the type at `place` of [`TYPES`] is enabled for a handle, or for any if the handle is not known.
    fn is_enabled(&self, handle: Option<u32>, place: usize) -> bool {
        let has = |types: &u8| types & 1 << place != 0;
        match handle {
            Some(handle) => self.enabled.get(&handle).is_some_and(has),
            None => self.enabled.values().any(has),
        }
    }

    fn page(&self, is_host: bool) -> Vec<u8> {
        let (mut page, log) = (Structure::new(4096), if is_host { &self.host } else { &self.controller });
        page.u32(0, log.len() as u32);
        for (at, event) in log.iter().enumerate() {
            let at = 64 + 64 * at;
            page.u8(at, event.kind).u8(at + 1, u8::from(event.identifier.is_some()));
            page.u16(at + 2, event.identifier.unwrap_or(0));
            page.bytes(at + 4, &(event.at.as_millis() as u64).to_le_bytes()[..6]);
        }
        page.0
    }
}

/// A log page of endurance group `group`. The log of events has those of the host if `of_host`.
///
/// # Errors
/// The status of another endurance group, or a drive without handles.
pub fn log(log: u8, group: u16, of_host: bool, context: &Context<'_>) -> Result<Vec<u8>, Status> {
    let facts = context.facts.placement.as_ref().ok_or(status::INVALID_LOG_PAGE)?;
    if group != ENDURANCE_GROUP_ID {
        return Err(status::INVALID_FIELD);
    }
    if log == EVENTS {
        return Ok(context.subsystem.placement().page(of_host));
    }
    let figures = figures(context.shown);
    Ok(match log {
        CONFIGURATIONS => configurations(facts, &figures["fdp"]["configuration"]),
        USAGE => usage(facts, &figures["fdp"]["handles"]),
        _ => statistics(&figures["life"]),
    })
}

fn configurations(facts: &Identifiers, figures: &Value) -> Vec<u8> {
    let (header, fixed) = (16, 64);
    let bytes = header + fixed + 4 * facts.handles as usize;
    let mut page = Structure::new(bytes);
    page.u32(4, bytes as u32).u16(header, (bytes - header) as u16);
    // Valid, with this many bits of the reclaim group.
    page.u8(header + 2, 1 << 7 | facts.group_bits() as u8);
    page.u32(header + 4, facts.groups).u16(header + 8, facts.handles as u16);
    page.u16(header + 10, (facts.handles * facts.groups - 1) as u16).u32(header + 12, 1);
    page.u64(header + 16, figures["nominal_bytes"].as_u64().unwrap_or(0));
    let isolation = if figures["isolation"] == "persistent" { 2 } else { 1 };
    (0..facts.handles as usize).for_each(|handle| {
        page.u8(header + fixed + 4 * handle, isolation);
    });
    page.0
}

/// A handle is host specified if the host wrote with it in a group.
fn usage(facts: &Identifiers, figures: &Value) -> Vec<u8> {
    let mut page = Structure::new(8 + 8 * facts.handles as usize);
    page.u16(0, facts.handles as u16);
    for handle in 0..facts.handles {
        let mut places = (0..facts.groups).map(|group| (group * facts.handles + handle) as usize);
        let is_used = places.any(|place| figures[place]["usage"] == "host specified");
        page.u8(8 + 8 * handle as usize, u8::from(is_used));
    }
    page.0
}

fn statistics(life: &Value) -> Vec<u8> {
    let mut page = Structure::new(64);
    for (at, name) in [(0, "host_bytes_written"), (16, "media_bytes_written"), (32, "media_bytes_erased")] {
        page.u64(at, life[name].as_u64().unwrap_or(0));
    }
    page.0
}

/// The mode of endurance groups, or the enabled events of a handle: current values, defaults, or capabilities.
///
/// # Errors
/// The status of a wrong field.
pub fn get(feature: u8, select: u32, command: &Command, context: &Context<'_>) -> Result<Outcome, Status> {
    let facts = context.facts.placement.as_ref().ok_or(status::INVALID_FIELD)?;
    let (subject, is_mode) = (command.dword(11), feature == MODE);
    if select > 3 || is_mode && subject & 0xFFFF != u32::from(ENDURANCE_GROUP_ID) {
        return Err(status::INVALID_FIELD);
    }
    if select == 3 {
        return Ok(Outcome::Done(super::features::capabilities(!is_mode, !is_mode, false).into()));
    }
    if is_mode {
        // Enabled, with configuration 0.
        return Ok(Outcome::Done(1));
    }
    let handle = subject & 0xFFFF;
    if handle >= facts.handles {
        return Err(status::INVALID_FIELD);
    }
    let enabled = match select {
        0 => context.subsystem.placement().enabled.get(&handle).copied().unwrap_or(0),
        _ => 0,
    };
    let (asked, bytes) = ((subject >> 16 & 0xFF) as usize, command.data_bytes());
    if bytes > 4096 {
        return Err(status::INVALID_FIELD);
    }
    command.check_data_to_host(bytes)?;
    let described = (0..TYPES.len().min(asked)).flat_map(|place| [TYPES[place], enabled >> place & 1]);
    let mut data: Vec<u8> = described.collect();
    data.resize(bytes as usize, 0);
    Ok(Outcome::DataAnd(data, TYPES.len() as u64))
}

/// Sets the mode, which cannot change while the endurance group has a namespace, or enables the types of events in
/// `data` for a handle, or disables them.
///
/// # Errors
/// The status of a wrong field.
pub fn set(feature: u8, command: &Command, data: &[u8], context: &Context<'_>) -> Result<Outcome, Status> {
    let facts = context.facts.placement.as_ref().ok_or(status::INVALID_FIELD)?;
    let (subject, value) = (command.dword(11), command.dword(12));
    if feature == MODE {
        let is_known = subject & 0xFFFF == u32::from(ENDURANCE_GROUP_ID) && value >> 8 & 0xFF == 0;
        return Err(if is_known { status::SEQUENCE_ERROR } else { status::INVALID_FIELD });
    }
    let (handle, count) = (subject & 0xFFFF, (subject >> 16 & 0xFF) as usize);
    if handle >= facts.handles || count == 0 || count > data.len() {
        return Err(status::INVALID_FIELD);
    }
    let mut types = 0;
    for kind in &data[..count] {
        types |= 1u8 << TYPES.iter().position(|known| known == kind).ok_or(status::INVALID_FIELD)?;
    }
    let mut events = context.subsystem.placement();
    let enabled = events.enabled.entry(handle).or_default();
    *enabled = if value & 1 != 0 { *enabled | types } else { *enabled & !types };
    Ok(Outcome::Done(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_keeps_the_last_enabled_events() {
        let (facts, mut events) = (Identifiers { handles: 2, groups: 1 }, Events::default());
        let by = Directives { placement: 1, placed: true, ..Directives::NONE };
        let counts = |units, moved| PlacementEvents {
            unit_not_fully_written: units,
            media_reallocated: moved,
            ..PlacementEvents::default()
        };
        events.note(counts(1, 1), by, &facts, Duration::ZERO);
        assert_eq!((events.page(true)[0], events.page(false)[0]), (0, 0), "none is enabled");
        events.enabled.insert(1, 0b1001);
        events.note(counts(3, 101), by, &facts, Duration::from_millis(7));
        let page = events.page(true);
        assert_eq!((page[0], page[64], page[65], page[66], page[68]), (2, 0, 1, 1, 7));
        assert_eq!((events.page(false)[0], events.page(false)[64]), (MOST_EVENTS as u8, 0x80));
        let other = Directives { placement: 0, ..by };
        events.note(counts(4, 101), other, &facts, Duration::ZERO);
        assert_eq!(events.page(true)[0], 2, "handle 0 has no enabled events");
    }
}
