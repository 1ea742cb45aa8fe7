//! Commands of the NVM command set, as requests to the drive.
//!
//! Source: NVM Express NVM Command Set Specification 1.0, section 3.2. A copy is a read and a write of the drive, and
//! counts as these. Zones are in [`zones`], reclaim unit handles in [`placement`]. A namespace with zones keeps
//! deallocated data: its zones are reset. Ignored: protection information, hints of access, copies between namespaces.

use super::admin::{Context, Outcome};
use super::entry::Command;
use super::identify::ALL_NAMESPACES;
use super::namespaces::{MOST_UNMAPPED, Namespace};
use super::pdu::{u16_at, u32_at, u64_at};
use super::status::{self, Status};
use super::{Facts, MOST_TRANSFER, Subsystem, placement, reservations, zones};
use crate::request::{Directive, Request};

const FLUSH: u8 = 0x00;
pub const WRITE: u8 = 0x01;
const READ: u8 = 0x02;
const WRITE_UNCORRECTABLE: u8 = 0x04;
pub const COMPARE: u8 = 0x05;
const WRITE_ZEROES: u8 = 0x08;
const DATASET_MANAGEMENT: u8 = 0x09;
const VERIFY: u8 = 0x0C;
const COPY: u8 = 0x19;

/// Commands that the drive executes.
pub const OPCODES: [u8; 13] = [
    FLUSH,
    WRITE,
    READ,
    WRITE_UNCORRECTABLE,
    COMPARE,
    WRITE_ZEROES,
    DATASET_MANAGEMENT,
    VERIFY,
    reservations::REGISTER,
    reservations::REPORT,
    reservations::ACQUIRE,
    reservations::RELEASE,
    COPY,
];

/// Whether a command changes the contents.
pub fn changes(opcode: u8) -> bool {
    matches!(
        opcode,
        WRITE | WRITE_UNCORRECTABLE | WRITE_ZEROES | DATASET_MANAGEMENT | COPY | zones::SEND | zones::APPEND
    )
}

/// Commands that a namespace with zones does not have.
const WITHOUT_ZONES: [u8; 2] = [WRITE_UNCORRECTABLE, COPY];

/// Commands of a command set, on the drive of `facts`.
pub fn opcodes(facts: &Facts, command_set: u8) -> Vec<u8> {
    let has_zones = facts.zones.is_some();
    let general = OPCODES.into_iter().filter(|opcode| !has_zones || !WITHOUT_ZONES.contains(opcode));
    let of_zones = (has_zones && command_set == zones::COMMAND_SET).then_some(zones::OPCODES);
    let of_handles = facts.placement.map(|_| placement::OPCODES);
    general.chain(of_zones.into_iter().flatten()).chain(of_handles.into_iter().flatten()).collect()
}

/// Whether a controller has a command. One that enabled the NVM command set alone has no command of zones.
fn has(opcode: u8, context: &Context<'_>) -> bool {
    let (has_zones, has_handles) = (context.facts.zones.is_some(), context.facts.placement.is_some());
    OPCODES.contains(&opcode) && !(has_zones && WITHOUT_ZONES.contains(&opcode))
        || zones::OPCODES.contains(&opcode) && has_zones && context.controller.takes_command_sets()
        || placement::OPCODES.contains(&opcode) && has_handles
}

/// Bytes of a range of Dataset Management.
const RANGE: u32 = 16;

/// Most bytes of data of Dataset Management. Linux names a buffer of this size for any number of ranges.
const MOST_RANGES: u32 = 256 * RANGE;

/// The format of the ranges of a copy, and the bytes of a range.
pub const COPY_FORMAT: u32 = 0;
const COPY_RANGE: u32 = 32;

/// Most bytes, and most ranges, of a copy.
pub const MOST_COPIED: u32 = MOST_TRANSFER;
pub const MOST_COPY_RANGES: u32 = 128;

/// A valid command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// A request that takes no data from the host.
    Ask(Request),
    /// Writes data of the host.
    Write { offset: u64, length: u32, durable: bool, directive: Option<Directive> },
    /// Compares with data of the host.
    Compare { offset: u64, length: u32 },
    /// Reads without an answer to the host.
    Verify(Request),
    /// Executes the command with `bytes` bytes of data of the host.
    Execute { bytes: u32 },
}

/// The plan of `command`.
///
/// # Errors
/// The status of a wrong field, of a reservation of another host, or of blocks that cannot be read.
pub fn plan(command: &Command, context: &Context<'_>) -> Result<Plan, Status> {
    let (opcode, id, controller) = (command.opcode(), command.namespace(), context.controller);
    if !has(opcode, context) {
        return Err(status::INVALID_OPCODE);
    }
    context.subsystem.sanitize.check()?;
    if opcode == FLUSH && id == ALL_NAMESPACES {
        return Ok(Plan::Ask(Request::Flush));
    }
    let namespace = context.subsystem.namespaces().find(id, &controller.host.name)?;
    let bytes = reservations::data_bytes(opcode);
    if bytes > 0 || opcode == reservations::REPORT {
        return Ok(Plan::Execute { bytes });
    }
    let reads = matches!(opcode, READ | COMPARE | VERIFY | zones::RECEIVE | placement::RECEIVE);
    context.subsystem.reservations.check(id, &controller.host.id, reads)?;
    let plan = Plan::new(command, context.facts, &namespace, controller.writes_through())?;
    match plan {
        Plan::Ask(Request::Read { offset, length })
        | Plan::Verify(Request::Read { offset, length })
        | Plan::Compare { offset, length }
            if context.subsystem.marks.has(offset, length.into()) =>
        {
            Err(status::UNRECOVERED_READ)
        }
        plan => Ok(plan),
    }
}

/// The request to write `length` bytes of the input, from `at` on.
pub fn write(offset: u64, length: u32, at: usize, durable: bool, directive: Option<Directive>) -> Request {
    match directive {
        None => Request::Write { offset, length, at, durable },
        Some(directive) => Request::Directed { offset, length, at, durable, directive },
    }
}

impl Plan {
    /// The plan of `command`; every write is durable if the controller `writes_through`.
    fn new(command: &Command, facts: &Facts, namespace: &Namespace, writes_through: bool) -> Result<Self, Status> {
        let (opcode, flags) = (command.opcode(), command.dword(12));
        if opcode == FLUSH {
            return Ok(Plan::Ask(Request::Flush));
        }
        if opcode == DATASET_MANAGEMENT {
            let used = ((command.dword(10) & 0xFF) + 1) * RANGE;
            return Ok(Plan::Execute { bytes: command.data_bytes().clamp(used, MOST_RANGES) });
        }
        if matches!(opcode, zones::SEND | zones::RECEIVE | placement::RECEIVE) {
            return Ok(Plan::Execute { bytes: 0 });
        }
        if opcode == placement::SEND {
            let used = placement::updated(command, facts)? * 2;
            let bytes = if used == 0 { 0 } else { command.data_bytes().clamp(used, MOST_RANGES) };
            return Ok(Plan::Execute { bytes });
        }
        let has_directive = flags >> 20 & 0xF != 0;
        if matches!(opcode, WRITE_ZEROES | COPY | WRITE_UNCORRECTABLE | zones::APPEND) && has_directive {
            return Err(status::INVALID_FIELD);
        }
        if opcode == COPY {
            return Ok(Plan::Execute { bytes: ((flags & 0xFF) + 1) * COPY_RANGE });
        }
        let directive = match opcode {
            WRITE => placement::directive(command, facts)?,
            zones::APPEND => {
                let blocks = u64::from(flags & 0xFFFF) + 1;
                if blocks * u64::from(facts.block_bytes) > MOST_TRANSFER.into() {
                    return Err(status::INVALID_FIELD);
                }
                Some(zones::append(facts, namespace, command.qword(10), blocks)?)
            }
            _ => None,
        };
        let (blocks, durable) = ((flags & 0xFFFF) + 1, flags & 1 << 30 != 0 || writes_through);
        let (offset, length) = namespace.range(command.qword(10), blocks.into())?;
        let length = u32::try_from(length).map_err(|_| status::INVALID_FIELD)?;
        let has_no_limit = opcode == WRITE_UNCORRECTABLE || opcode == WRITE_ZEROES && facts.zones.is_none();
        if !has_no_limit && length > MOST_TRANSFER {
            return Err(status::INVALID_FIELD);
        }
        let read = Request::Read { offset, length };
        match opcode {
            WRITE | zones::APPEND => Ok(Plan::Write { offset, length, durable, directive }),
            READ => command.check_data_to_host(length).map(|()| Plan::Ask(read)),
            COMPARE => Ok(Plan::Compare { offset, length }),
            VERIFY => Ok(Plan::Verify(read)),
            WRITE_UNCORRECTABLE => Ok(Plan::Execute { bytes: 0 }),
            _ => {
                let unmap = flags & 1 << 25 != 0 && facts.zones.is_none();
                Ok(Plan::Ask(Request::Zero { offset, length, unmap, durable }))
            }
        }
    }

    /// Bytes of data from the host.
    pub fn brings(&self) -> u32 {
        match *self {
            Plan::Ask(_) | Plan::Verify(_) => 0,
            Plan::Write { length, .. } | Plan::Compare { length, .. } => length,
            Plan::Execute { bytes } => bytes,
        }
    }

    /// Notes that the drive gets the plan's request: a write removes marks of unreadable blocks.
    pub fn note_begin(&self, subsystem: &Subsystem) {
        if let Plan::Write { offset, length, .. } | Plan::Ask(Request::Zero { offset, length, .. }) = *self {
            note_write(offset, length.into(), subsystem);
        }
    }
}

/// Notes a write of a range of the drive.
pub fn note_write(offset: u64, length: u64, subsystem: &Subsystem) {
    subsystem.sanitize.note_write();
    // A worn-out drive refuses the write.
    if !subsystem.is_worn_out() {
        subsystem.marks.clear(offset, length);
    }
}

/// Executes `command`, of a plan to execute, with its `data`.
///
/// # Errors
/// The status of a wrong field.
pub fn execute(command: &Command, data: &[u8], context: &Context<'_>) -> Result<Outcome, Status> {
    let (id, host) = (command.namespace(), &context.controller.host.name);
    let namespace = context.subsystem.namespaces().find(id, host)?;
    match command.opcode() {
        DATASET_MANAGEMENT => {
            let used = ((command.dword(10) & 0xFF) + 1) * RANGE;
            if command.dword(11) & 1 << 2 == 0 || context.facts.zones.is_some() {
                // The ranges are hints.
                return Ok(Outcome::Done(0));
            }
            let requests = deallocations(&data[..used as usize], &namespace)?;
            for request in &requests {
                if let Request::Trim { offset, length, .. } = *request {
                    note_write(offset, length.into(), context.subsystem);
                }
            }
            Ok(Outcome::Requests(requests, 0))
        }
        WRITE_UNCORRECTABLE => {
            context.subsystem.check_writable()?;
            let blocks = u64::from(command.dword(12) & 0xFFFF) + 1;
            let (offset, length) = namespace.range(command.qword(10), blocks)?;
            context.subsystem.marks.mark(offset, length);
            Ok(Outcome::Done(0))
        }
        COPY => copy(command, data, &namespace, context),
        zones::SEND | zones::RECEIVE => zones::execute(command, &namespace, context),
        placement::SEND | placement::RECEIVE => placement::execute(command, data, &namespace, context),
        _ => reservations::execute(command, data, id, context),
    }
}

/// Requests that unmap the ranges in `data`.
///
/// # Errors
/// The status of a range beyond the namespace; nothing must be unmapped then.
fn deallocations(data: &[u8], namespace: &Namespace) -> Result<Vec<Request>, Status> {
    let mut requests = Vec::new();
    for range in data.chunks_exact(RANGE as usize) {
        let blocks = u32_at(range, 4);
        if blocks == 0 {
            continue;
        }
        let (mut offset, mut left) = namespace.range(u64_at(range, 8), blocks.into())?;
        while left > 0 {
            let length = left.min(MOST_UNMAPPED);
            requests.push(Request::Trim { offset, length: length as u32, durable: false });
            (offset, left) = (offset + length, left - length);
        }
    }
    Ok(requests)
}

/// Copies the ranges in `data` one after the other to the destination. A single range, which is read as a whole, may
/// overlap the destination; several may not, because they may be copied in any order.
fn copy(command: &Command, data: &[u8], namespace: &Namespace, context: &Context<'_>) -> Result<Outcome, Status> {
    let (flags, subsystem) = (command.dword(12), context.subsystem);
    if flags >> 8 & 0xF != COPY_FORMAT || flags >> 12 & 0xF != 0 || flags >> 26 & 0xF != 0 {
        return Err(status::INVALID_FIELD);
    }
    let durable = flags & 1 << 30 != 0 || context.controller.writes_through();
    let most = MOST_COPIED / namespace.block_bytes;
    let ranges: Vec<(u64, u32)> = data
        .chunks_exact(COPY_RANGE as usize)
        .map(|range| (u64_at(range, 8), u32::from(u16_at(range, 16)) + 1))
        .collect();
    let total: u64 = ranges.iter().map(|&(_, blocks)| u64::from(blocks)).sum();
    if ranges.len() > MOST_COPY_RANGES as usize || total > most.into() {
        return Err(status::COMMAND_SIZE_EXCEEDED);
    }
    let (mut offset, length) = namespace.range(command.qword(10), total)?;
    let destination = offset..offset + length;
    let mut requests = Vec::new();
    let is_single = ranges.len() == 1;
    for (first, blocks) in ranges {
        let (from, length) = namespace.range(first, blocks.into())?;
        if !is_single && from < destination.end && destination.start < from + length {
            return Err(status::OVERLAPPING_RANGE);
        }
        if subsystem.marks.has(from, length) {
            return Err(status::UNRECOVERED_READ);
        }
        requests.push(Request::Copy { from, offset, length: length as u32, durable });
        offset += length;
    }
    subsystem.reservations.check(namespace.id, &context.controller.host.id, true)?;
    note_write(destination.start, length, subsystem);
    Ok(Outcome::Requests(requests, 0))
}
