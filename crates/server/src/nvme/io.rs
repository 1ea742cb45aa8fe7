//! Commands of the NVM command set, as requests to the drive.
//!
//! Source: NVM Express NVM Command Set Specification 1.0, section 3.2. Ignored: protection information, hints of
//! access, fused commands, copy, write uncorrectable, reservations. Zones are in [`zones`], reclaim unit handles in
//! [`placement`]. A namespace with zones keeps deallocated data: its zones are reset.

use super::entry::Command;
use super::identify::{ALL_NAMESPACES, NAMESPACE};
use super::pdu::{u32_at, u64_at};
use super::status::{self, Status};
use super::{Facts, MOST_TRANSFER, placement, zones};
use crate::request::{Directive, Request};

const FLUSH: u8 = 0x00;
const WRITE: u8 = 0x01;
const READ: u8 = 0x02;
const COMPARE: u8 = 0x05;
const WRITE_ZEROES: u8 = 0x08;
const DATASET_MANAGEMENT: u8 = 0x09;
const VERIFY: u8 = 0x0C;

/// Commands that the drive executes.
pub const OPCODES: [u8; 7] = [FLUSH, WRITE, READ, COMPARE, WRITE_ZEROES, DATASET_MANAGEMENT, VERIFY];

/// Whether a command changes the contents.
pub fn changes(opcode: u8) -> bool {
    matches!(opcode, WRITE | WRITE_ZEROES | DATASET_MANAGEMENT | zones::SEND | zones::APPEND)
}

/// Commands of a command set, on the namespace of `facts`.
pub fn opcodes(facts: &Facts, command_set: u8) -> Vec<u8> {
    let has_zones = facts.zones.is_some() && command_set == zones::COMMAND_SET;
    let of_zones = has_zones.then_some(zones::OPCODES).into_iter().flatten();
    let of_handles = facts.placement.map(|_| placement::OPCODES).into_iter().flatten();
    OPCODES.into_iter().chain(of_zones).chain(of_handles).collect()
}

/// Bytes of a range of Dataset Management.
const RANGE: u32 = 16;

/// Most bytes of data of Dataset Management. Linux names a buffer of this size for any number of ranges.
const MOST_RANGES: u32 = 256 * RANGE;

/// Most bytes of a request that unmaps.
const MOST_UNMAPPED: u64 = 1 << 30;

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
    /// Unmaps the ranges in the first `used` of `bytes` bytes; `acts` is false if these are hints.
    Deallocate { used: u32, bytes: u32, acts: bool },
    /// Updates the reclaim unit handles in the first `used` of `bytes` bytes.
    Update { used: u32, bytes: u32 },
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
    ///
    /// # Errors
    /// The status of a wrong field.
    pub fn new(command: &Command, facts: &Facts, writes_through: bool) -> Result<Self, Status> {
        let (opcode, namespace, flags) = (command.opcode(), command.namespace(), command.dword(12));
        let is_append = opcode == zones::APPEND && facts.zones.is_some();
        if !OPCODES.contains(&opcode) && !is_append && !placement::is_send(opcode) {
            return Err(status::INVALID_OPCODE);
        }
        if namespace != NAMESPACE && !(opcode == FLUSH && namespace == ALL_NAMESPACES) {
            return Err(status::INVALID_NAMESPACE);
        }
        if opcode == FLUSH {
            return Ok(Plan::Ask(Request::Flush));
        }
        if opcode == DATASET_MANAGEMENT {
            let used = ((command.dword(10) & 0xFF) + 1) * RANGE;
            let bytes = command.data_bytes().clamp(used, MOST_RANGES);
            let acts = command.dword(11) & 1 << 2 != 0 && facts.zones.is_none();
            return Ok(Plan::Deallocate { used, bytes, acts });
        }
        if placement::is_send(opcode) {
            let used = placement::updated(command, facts)? * 2;
            let bytes = if used == 0 { 0 } else { command.data_bytes().clamp(used, MOST_RANGES) };
            return Ok(Plan::Update { used, bytes });
        }
        let directive = match opcode {
            WRITE => placement::directive(command, facts)?,
            WRITE_ZEROES | zones::APPEND if flags >> 20 & 0xF != 0 => return Err(status::INVALID_FIELD),
            zones::APPEND => {
                let blocks = u64::from(flags & 0xFFFF) + 1;
                if blocks * u64::from(facts.block_bytes) > MOST_TRANSFER.into() {
                    return Err(status::INVALID_FIELD);
                }
                Some(zones::append(facts, command.qword(10), blocks)?)
            }
            _ => None,
        };
        let (blocks, durable) = ((flags & 0xFFFF) + 1, flags & 1 << 30 != 0 || writes_through);
        let (offset, length) = facts.range(command.qword(10), blocks.into())?;
        let length = u32::try_from(length).map_err(|_| status::INVALID_FIELD)?;
        if (opcode != WRITE_ZEROES || facts.zones.is_some()) && length > MOST_TRANSFER {
            return Err(status::INVALID_FIELD);
        }
        let read = Request::Read { offset, length };
        match opcode {
            WRITE | zones::APPEND => Ok(Plan::Write { offset, length, durable, directive }),
            READ => command.check_data_to_host(length).map(|()| Plan::Ask(read)),
            COMPARE => Ok(Plan::Compare { offset, length }),
            VERIFY => Ok(Plan::Verify(read)),
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
            Plan::Deallocate { bytes, .. } | Plan::Update { bytes, .. } => bytes,
        }
    }
}

/// Requests that unmap the ranges in `data`.
///
/// # Errors
/// The status of a range beyond the namespace; nothing must be unmapped then.
pub fn deallocations(data: &[u8], facts: &Facts) -> Result<Vec<Request>, Status> {
    let mut requests = Vec::new();
    for range in data.chunks_exact(RANGE as usize) {
        let blocks = u32_at(range, 4);
        if blocks == 0 {
            continue;
        }
        let (mut offset, mut left) = facts.range(u64_at(range, 8), blocks.into())?;
        while left > 0 {
            let length = left.min(MOST_UNMAPPED);
            requests.push(Request::Trim { offset, length: length as u32, durable: false });
            (offset, left) = (offset + length, left - length);
        }
    }
    Ok(requests)
}
