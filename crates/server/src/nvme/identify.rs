//! The data of Identify.
//!
//! Sources: NVM Express Base Specification 2.0, section 5.17; NVM Command Set Specification 1.0, section 4.1.5; for
//! controllers of Fabrics and the discovery controller, section 5.17.2.1 of the former. Ignored: protection
//! information, metadata, power states beyond one.

use super::admin::Context;
use super::controller::{Controller, ERROR_ENTRIES, KEEP_ALIVE_UNIT, MOST_ENTRIES, MOST_EVENTS};
use super::entry::{Command, Structure};
use super::logs::ENDURANCE_GROUP_ID;
use super::namespaces::{self, BLOCK_FORMATS, Namespace};
use super::pdu::IN_CAPSULE;
use super::status::{self, Status};
use super::{Facts, MOST_TRANSFER, io, placement, reservations, sanitize, selftest, zones};
use std::sync::Arc;

/// Bytes of the data of Identify.
pub const BYTES: usize = 4096;

/// All namespaces.
pub const ALL_NAMESPACES: u32 = 0xFFFF_FFFF;

/// Version 2.0 of the base specification.
pub const VERSION: u32 = 0x0002_0000;

/// The NVM command set.
const NVM: u8 = 0;

/// The command set of the namespace.
fn command_set(facts: &Facts) -> u8 {
    if facts.zones.is_some() { zones::COMMAND_SET } else { NVM }
}

/// The data that `command` asks for.
///
/// # Errors
/// The status of a wrong field.
pub fn identify(command: &Command, nqn: &str, context: &Context<'_>) -> Result<Vec<u8>, Status> {
    let (what, id, set) = (command.dword(10) & 0xFF, command.namespace(), command.byte(47));
    command.check_data_to_host(BYTES as u32)?;
    let (controller, facts) = (context.controller, context.facts);
    if controller.is_discovery && what != 1 {
        return Err(status::INVALID_FIELD);
    }
    let (all, host) = (context.subsystem.namespaces(), controller.host.name.as_str());
    let list = |ids: Vec<u32>| match id {
        0xFFFF_FFFE.. => Err(status::INVALID_NAMESPACE),
        above => Ok(list_of(ids.into_iter().filter(|&id| id > above))),
    };
    // A number without a namespace has a structure of zeroes; all namespaces have capabilities in common.
    let structure = |found: Result<Arc<Namespace>, Status>| match found {
        Ok(one) => Ok(of_namespace(&one, facts)),
        Err(_) if id == ALL_NAMESPACES => Ok(of_namespaces(facts)),
        Err(status::INVALID_FIELD) => Ok(vec![0; BYTES]),
        Err(status) => Err(status),
    };
    let allocated = || all.get(id).cloned().ok_or(all.find(id, host).err().unwrap_or(status::INVALID_NAMESPACE));
    let active = || all.find(id, host);
    match (what, set) {
        (0x00, _) => structure(active()),
        (0x01, _) => Ok(of_controller(controller, nqn, facts, all.unallocated())),
        (0x02, _) => list(all.ids(Some(host))),
        (0x07, set) if set == command_set(facts) => list(all.ids(Some(host))),
        (0x07 | 0x1A, NVM) if facts.zones.is_some() => list(Vec::new()),
        (0x03, _) => active().map(|one| descriptors(&one, facts)),
        (0x05, NVM) if id == ALL_NAMESPACES => Ok(vec![0; BYTES]),
        (0x05, NVM) => active().map(|_| vec![0; BYTES]),
        (0x05, zones::COMMAND_SET) => {
            active()?;
            facts.zones.as_ref().map(zones::of_namespace).ok_or(status::INVALID_FIELD)
        }
        (0x06, NVM) => Ok(of_command_set(facts)),
        (0x06, zones::COMMAND_SET) if facts.zones.is_some() => Ok(zones::of_command_set()),
        (0x08, _) => active().map(|one| independent(&one)),
        (0x10, _) => list(all.ids(None)),
        (0x1A, set) if set == command_set(facts) => list(all.ids(None)),
        (0x11, _) if id == ALL_NAMESPACES => Err(status::INVALID_NAMESPACE),
        (0x11, _) => structure(allocated()),
        (0x12, _) => {
            allocated()?;
            Ok(controllers(command, &context.subsystem.controllers_with(|host| all.is_attached(id, host))))
        }
        (0x13, _) => Ok(controllers(command, &context.subsystem.controllers_with(|_| true))),
        (0x1B, NVM) => allocated().map(|_| vec![0; BYTES]),
        (0x1B, zones::COMMAND_SET) => {
            allocated()?;
            facts.zones.as_ref().map(zones::of_namespace).ok_or(status::INVALID_FIELD)
        }
        (0x1C, _) => Ok(command_sets(facts)),
        (0x04, _) => Ok(vec![0; BYTES]),
        (0x19, _) => Ok(endurance_groups(command)),
        _ => Err(status::INVALID_FIELD),
    }
}

/// A list of namespaces.
fn list_of(ids: impl Iterator<Item = u32>) -> Vec<u8> {
    let mut list = Structure::new(BYTES);
    for (at, id) in ids.take(BYTES / 4).enumerate() {
        list.u32(4 * at, id);
    }
    list.0
}

fn of_controller(controller: &Controller, nqn: &str, facts: &Facts, unallocated: u64) -> Vec<u8> {
    let mut page = Structure::new(BYTES);
    page.ascii(4, 20, &facts.serial).ascii(24, 40, &facts.model).ascii(64, 8, env!("CARGO_PKG_VERSION"));
    page.u8(77, MOST_TRANSFER.trailing_zeros() as u8 - 12).u16(78, controller.id).u32(80, VERSION);
    page.u8(111, if controller.is_discovery { 2 } else { 1 });
    // Log pages: effects, extended offsets; bit 5 offers the list of log pages.
    page.u8(259, MOST_EVENTS as u8 - 1).u8(261, 0b10_0110).u8(262, ERROR_ENTRIES as u8 - 1);
    page.u16(320, (KEEP_ALIVE_UNIT.as_millis() / 100) as u16);
    page.u16(514, MOST_ENTRIES);
    // Scatter gather lists, with offsets into the capsule.
    page.u32(536, 1 | 1 << 20).text(768, 256, nqn);
    let (in_capsule, response) = ((64 + IN_CAPSULE) / 16, 1);
    page.u32(1792, in_capsule).u32(1796, response).u8(1803, 1);
    if controller.is_discovery {
        return page.0;
    }
    // Several controllers; notices of changed namespaces; identifiers of hosts with 16 bytes; an endurance group.
    page.u8(76, 1 << 1).u32(92, 1 << 8).u32(96, 1 | 1 << 4).u16(340, ENDURANCE_GROUP_ID);
    // Self-test; without zones format and namespace management.
    page.u16(256, if facts.zones.is_some() { 1 << 4 } else { 1 << 1 | 1 << 3 | 1 << 4 });
    page.u8(258, 3).u8(260, 0b11);
    page.u64(280, facts.bytes()).u64(296, unallocated);
    // One self-test at a time.
    page.u16(316, selftest::minutes(facts.bytes())).u8(318, 1);
    page.u32(328, if facts.zones.is_some() { 0 } else { sanitize::CAPABILITIES });
    // Compare, deallocate, write zeroes, save and select of features, reservations, timestamp, verify; without zones
    // write uncorrectable and copy.
    page.u8(512, 0x66).u8(513, 0x44).u32(516, namespaces::MOST);
    page.u16(520, if facts.zones.is_some() { 0x0FD } else { 0x1FF });
    // A compare with a write of one block. A format of one namespace, with cryptographic erase.
    page.u16(522, u16::from(facts.zones.is_none())).u8(524, 1 << 2);
    // A volatile write cache, whose flush takes all namespaces.
    page.u8(525, 0b111).u32(540, namespaces::MOST);
    page.u16(534, 1 << io::COPY_FORMAT);
    // One power state, whose power is not reported.
    zones::of_controller(&mut page, facts);
    placement::of_controller(&mut page, facts);
    page.0
}

/// The fields that all namespaces have in common.
fn of_namespaces(facts: &Facts) -> Vec<u8> {
    let mut page = Structure::new(BYTES);
    // The best sizes of writes and deallocations.
    page.u8(24, 1 << 4).u8(31, reservations::CAPABILITIES);
    if facts.zones.is_some() {
        // Zones have the only format that they are written in; blocks that were not written read as zeroes.
        page.u32(128, facts.block_bytes.trailing_zeros() << 16).u8(33, 1);
        return page.0;
    }
    page.u8(25, BLOCK_FORMATS.len() as u8 - 1);
    for (at, format) in BLOCK_FORMATS.iter().enumerate() {
        page.u32(128 + 4 * at, format << 16);
    }
    if facts.trims_last {
        page.u8(33, 0b1001);
    }
    page.0
}

fn of_namespace(one: &Namespace, facts: &Facts) -> Vec<u8> {
    let mut page = Structure(of_namespaces(facts));
    let format = BLOCK_FORMATS.iter().position(|&format| 1 << format == one.block_bytes).unwrap_or(0);
    let format = if facts.zones.is_some() { 0 } else { format };
    page.u8(26, format as u8).u8(30, one.is_shared.into());
    page.u64(0, one.blocks).u64(8, one.blocks).u64(16, one.blocks);
    page.u64(48, one.capacity);
    // Granularity and alignment of writes, granularity and alignment of deallocations, optimal size of writes.
    let sizes = [facts.page_bytes, facts.page_bytes, facts.unit_bytes, facts.unit_bytes, facts.program_bytes];
    for (at, bytes) in [64, 66, 68, 70, 72].into_iter().zip(sizes) {
        page.u16(at, ((bytes / u64::from(one.block_bytes)).clamp(1, 1 << 16) - 1) as u16);
    }
    // Copies: blocks of a range, of all ranges, and number of ranges.
    let blocks = io::MOST_COPIED / one.block_bytes;
    page.u16(74, blocks as u16).u32(76, blocks).u8(80, io::MOST_COPY_RANGES as u8 - 1);
    page.u16(102, ENDURANCE_GROUP_ID).bytes(104, &one.uuid);
    page.0
}

/// Identification descriptors of the namespace: globally unique identifier, UUID, command set.
fn descriptors(one: &Namespace, facts: &Facts) -> Vec<u8> {
    let mut page = Structure::new(BYTES);
    page.u8(0, 2).u8(1, 16).bytes(4, &one.uuid);
    page.u8(20, 3).u8(21, 16).bytes(24, &one.uuid);
    page.u8(40, 4).u8(41, 1).u8(44, command_set(facts));
    page.0
}

/// Limits of the NVM command set: verify as long as a transfer, and so zeroes in zones, which are written; the others
/// without a limit.
fn of_command_set(facts: &Facts) -> Vec<u8> {
    let (mut page, transfer) = (Structure::new(BYTES), MOST_TRANSFER.trailing_zeros() as u8 - 12);
    page.u8(0, transfer).u8(1, if facts.zones.is_some() { transfer } else { 0 });
    page.0
}

/// The facts of a namespace that no command set changes: ready.
fn independent(one: &Namespace) -> Vec<u8> {
    let mut page = Structure::new(BYTES);
    page.u8(1, one.is_shared.into()).u8(2, reservations::CAPABILITIES);
    page.u16(12, ENDURANCE_GROUP_ID).u8(14, 1);
    page.0
}

/// Endurance groups from the given one on.
fn endurance_groups(command: &Command) -> Vec<u8> {
    let mut list = Structure::new(BYTES);
    if command.dword(11) as u16 <= ENDURANCE_GROUP_ID {
        list.u16(0, 1).u16(2, ENDURANCE_GROUP_ID);
    }
    list.0
}

/// The controllers among `all` from the given one on.
fn controllers(command: &Command, all: &[u16]) -> Vec<u8> {
    let mut list = Structure::new(BYTES);
    let from = (command.dword(10) >> 16) as u16;
    let listed: Vec<u16> = all.iter().copied().filter(|&id| id >= from).take(2047).collect();
    list.u16(0, listed.len() as u16);
    for (at, id) in listed.into_iter().enumerate() {
        list.u16(2 + 2 * at, id);
    }
    list.0
}

/// Combinations of command sets: NVM, with zones if the namespace has them.
fn command_sets(facts: &Facts) -> Vec<u8> {
    let mut list = Structure::new(BYTES);
    list.u64(0, 1 << NVM | 1 << command_set(facts));
    list.0
}
