//! The data of Identify.
//!
//! Sources: NVM Express Base Specification 2.0, section 5.17; NVM Command Set Specification 1.0, section 4.1.5; for
//! controllers of Fabrics and the discovery controller, section 5.17.2.1 of the former. One namespace, number 1, with
//! the whole drive. Ignored: protection information, metadata, namespace management, power states beyond one.

use super::controller::{Controller, ERROR_ENTRIES, KEEP_ALIVE_UNIT, MOST_ENTRIES, MOST_EVENTS};
use super::entry::{Command, Structure};
use super::logs::ENDURANCE_GROUP_ID;
use super::pdu::IN_CAPSULE;
use super::status::{self, Status};
use super::{Facts, MOST_TRANSFER, placement, zones};

/// Bytes of the data of Identify.
pub const BYTES: usize = 4096;

/// The number of the namespace.
pub const NAMESPACE: u32 = 1;

/// All namespaces.
pub const ALL_NAMESPACES: u32 = 0xFFFF_FFFF;

/// Version 2.0 of the base specification.
pub const VERSION: u32 = 0x0002_0000;

/// Formats of a block: log2 of the bytes.
const BLOCK_FORMATS: [u32; 2] = [9, 12];

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
pub fn identify(command: &Command, controller: &Controller, nqn: &str, facts: &Facts) -> Result<Vec<u8>, Status> {
    let (what, namespace, set) = (command.dword(10) & 0xFF, command.namespace(), command.byte(47));
    command.check_data_to_host(BYTES as u32)?;
    if controller.is_discovery && what != 1 {
        return Err(status::INVALID_FIELD);
    }
    let in_range = || match namespace {
        NAMESPACE => Ok(()),
        _ => Err(status::INVALID_NAMESPACE),
    };
    // Lists have the namespaces above the given one.
    let list = |namespace: u32| match namespace {
        0xFFFF_FFFE.. => Err(status::INVALID_NAMESPACE),
        above => {
            let mut list = Structure::new(BYTES);
            list.u32(0, if above < NAMESPACE { NAMESPACE } else { 0 });
            Ok(list.0)
        }
    };
    match (what, set) {
        (0x00 | 0x11, _) => in_range().map(|()| of_namespace(facts)),
        (0x01, _) => Ok(of_controller(controller, nqn, facts)),
        (0x02 | 0x10, _) => list(namespace),
        (0x07 | 0x1A, set) if set == command_set(facts) => list(namespace),
        (0x07 | 0x1A, NVM) => Ok(vec![0; BYTES]),
        (0x03, _) => in_range().map(|()| descriptors(facts)),
        (0x04, _) => Ok(vec![0; BYTES]),
        (0x05 | 0x1B, NVM) => in_range().map(|()| vec![0; BYTES]),
        (0x06, NVM) => Ok(of_command_set(facts)),
        (0x05 | 0x1B, zones::COMMAND_SET) => {
            in_range()?;
            facts.zones.as_ref().map(zones::of_namespace).ok_or(status::INVALID_FIELD)
        }
        (0x06, zones::COMMAND_SET) if facts.zones.is_some() => Ok(zones::of_command_set()),
        (0x08, _) => in_range().map(|()| independent()),
        (0x12, _) => in_range().map(|()| controllers(command, controller)),
        (0x13, _) => Ok(controllers(command, controller)),
        (0x19, _) => Ok(endurance_groups(command)),
        (0x1C, _) => Ok(command_sets(facts)),
        _ => Err(status::INVALID_FIELD),
    }
}

fn of_controller(controller: &Controller, nqn: &str, facts: &Facts) -> Vec<u8> {
    let mut page = Structure::new(BYTES);
    page.ascii(4, 20, &facts.serial).ascii(24, 40, &facts.model).ascii(64, 8, env!("CARGO_PKG_VERSION"));
    page.u8(77, MOST_TRANSFER.trailing_zeros() as u8 - 12).u16(78, controller.id).u32(80, VERSION);
    page.u8(111, if controller.is_discovery { 2 } else { 1 });
    // Log pages: by namespace, effects, extended offsets; bit 5 offers the list of log pages.
    page.u8(259, MOST_EVENTS as u8 - 1).u8(261, 0b10_0111).u8(262, ERROR_ENTRIES as u8 - 1);
    page.u16(320, (KEEP_ALIVE_UNIT.as_millis() / 100) as u16);
    page.u16(514, MOST_ENTRIES);
    // Scatter gather lists, with offsets into the capsule.
    page.u32(536, 1 | 1 << 20).text(768, 256, nqn);
    let (in_capsule, response) = ((64 + IN_CAPSULE) / 16, 1);
    page.u32(1792, in_capsule).u32(1796, response).u8(1803, 1);
    if controller.is_discovery {
        return page.0;
    }
    // An endurance group.
    page.u32(96, 1 << 4).u16(340, ENDURANCE_GROUP_ID);
    page.u8(258, 3).u8(260, 0b11);
    page.bytes(280, &facts.bytes().to_le_bytes());
    // Compare, deallocate, write zeroes, save and select of features, verify.
    page.u8(512, 0x66).u8(513, 0x44).u32(516, 1).u16(520, 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 7);
    // A volatile write cache, whose flush takes all namespaces.
    page.u8(525, 0b111).u32(540, 1);
    // One power state, whose power is not reported.
    zones::of_controller(&mut page, facts);
    placement::of_controller(&mut page, facts);
    page.0
}

fn formats(page: &mut Structure, facts: &Facts) {
    if facts.zones.is_some() {
        // Zones have the only format that they are written in.
        page.u32(128, facts.block_bytes.trailing_zeros() << 16);
        return;
    }
    page.u8(25, BLOCK_FORMATS.len() as u8 - 1);
    let at = BLOCK_FORMATS.iter().position(|&format| 1 << format == facts.block_bytes).unwrap_or(0);
    page.u8(26, at as u8);
    for (at, format) in BLOCK_FORMATS.iter().enumerate() {
        page.u32(128 + 4 * at, format << 16);
    }
}

fn of_namespace(facts: &Facts) -> Vec<u8> {
    let mut page = Structure::new(BYTES);
    formats(&mut page, facts);
    page.u64(0, facts.blocks).u64(8, facts.blocks).u64(16, facts.blocks);
    let unit = (facts.unit_bytes / u64::from(facts.block_bytes)).clamp(1, 1 << 16);
    let unit_less_one = (unit - 1) as u16;
    // The best sizes of writes and deallocations.
    page.u8(24, 1 << 4);
    if facts.zones.is_some() {
        // Blocks that were not written read as zeroes.
        page.u8(33, 1);
    } else if facts.trims_last {
        page.u8(33, 0b1001);
    }
    page.bytes(48, &facts.bytes().to_le_bytes());
    for at in [64, 66, 68, 70, 72] {
        page.u16(at, unit_less_one);
    }
    page.u16(102, ENDURANCE_GROUP_ID).bytes(104, &facts.uuid);
    page.0
}

/// Identification descriptors of the namespace: globally unique identifier, UUID, command set.
fn descriptors(facts: &Facts) -> Vec<u8> {
    let mut page = Structure::new(BYTES);
    page.u8(0, 2).u8(1, 16).bytes(4, &facts.uuid);
    page.u8(20, 3).u8(21, 16).bytes(24, &facts.uuid);
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
fn independent() -> Vec<u8> {
    let mut page = Structure::new(BYTES);
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

/// Controllers from the given one on, as this host sees them: the controller itself.
fn controllers(command: &Command, controller: &Controller) -> Vec<u8> {
    let mut list = Structure::new(BYTES);
    if command.dword(10) >> 16 <= u32::from(controller.id) {
        list.u16(0, 1).u16(2, controller.id);
    }
    list.0
}

/// Combinations of command sets: NVM, with zones if the namespace has them.
fn command_sets(facts: &Facts) -> Vec<u8> {
    let mut list = Structure::new(BYTES);
    list.u64(0, 1 << NVM | 1 << command_set(facts));
    list.0
}
