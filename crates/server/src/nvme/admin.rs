//! Admin commands, and the commands of Fabrics for properties.
//!
//! Sources: NVM Express Base Specification 2.0, section 5; NVM Express over Fabrics 1.1, section 3. Ignored: firmware
//! updates, namespace management, format, sanitize, self-test, virtualization, telemetry.

use super::controller::Controller;
use super::discovery;
use super::entry::{Command, FABRICS, Place};
use super::features::{self, capabilities};
use super::identify::{self, VERSION};
use super::logs::{self, Wanted};
use super::status::{self, Status};
use super::{Facts, Subsystem, placement, zones};
use crate::page::Shown;
use std::net::SocketAddr;

const GET_LOG_PAGE: u8 = 0x02;
const IDENTIFY: u8 = 0x06;
const ABORT: u8 = 0x08;
const SET_FEATURES: u8 = 0x09;
const GET_FEATURES: u8 = 0x0A;
const EVENT_REQUEST: u8 = 0x0C;
const KEEP_ALIVE: u8 = 0x18;

/// Admin commands that a controller with a drive executes.
pub const OPCODES: [u8; 7] = [GET_LOG_PAGE, IDENTIFY, ABORT, SET_FEATURES, GET_FEATURES, EVENT_REQUEST, KEEP_ALIVE];

const PROPERTY_SET: u8 = 0x00;
pub const CONNECT: u8 = 0x01;
const PROPERTY_GET: u8 = 0x04;
pub const DISCONNECT: u8 = 0x08;

/// Bytes of a host identifier.
const HOST_ID_BYTES: u32 = 16;

/// The answer to a command.
pub enum Outcome {
    /// Success with this result.
    Done(u64),
    Data(Vec<u8>),
    /// Data, and a result.
    DataAnd(Vec<u8>, u64),
    /// Success once all writes are durable.
    Flushed,
    /// The answer comes with an event.
    Later,
}

/// The surroundings of a command: the drive, and the address at which the host connected.
pub struct Context<'c> {
    pub subsystem: &'c Subsystem,
    pub facts: &'c Facts,
    pub controller: &'c Controller,
    pub shown: &'c dyn Shown,
    pub address: Option<SocketAddr>,
}

/// Admin commands for the namespace of `facts`.
pub fn opcodes(facts: &Facts) -> Vec<u8> {
    let directives = [placement::DIRECTIVE_SEND, placement::DIRECTIVE_RECEIVE];
    OPCODES.into_iter().chain(facts.placement.map(|_| directives).into_iter().flatten()).collect()
}

/// Executes `command`, whose capsule brought `data`.
///
/// # Errors
/// The status of a failed command.
pub fn execute(command: &Command, data: &[u8], context: &Context<'_>) -> Result<Outcome, Status> {
    let controller = context.controller;
    if command.opcode() == FABRICS {
        return fabrics(command, controller);
    }
    if !controller.is_ready() {
        return Err(status::SEQUENCE_ERROR);
    }
    match command.opcode() {
        GET_LOG_PAGE => get_log_page(command, context),
        IDENTIFY => {
            let nqn = if controller.is_discovery { discovery::NQN } else { &context.subsystem.nqn };
            identify::identify(command, controller, nqn, context.facts).map(Outcome::Data)
        }
        ABORT if !controller.is_discovery => {
            // A command of an I/O queue cannot be taken back; bit 0 says that nothing was aborted.
            let (queue, aborted) = (command.dword(10) as u16, (command.dword(10) >> 16) as u16);
            Ok(Outcome::Done(u64::from(!(queue == 0 && controller.abort_event(aborted)))))
        }
        SET_FEATURES => set_features(command, data, context),
        GET_FEATURES => get_features(command, context),
        placement::DIRECTIVE_SEND | placement::DIRECTIVE_RECEIVE if !controller.is_discovery => {
            placement::direct(command, context.facts)
        }
        EVENT_REQUEST => controller.request_event(command.id()).map(|()| Outcome::Later),
        KEEP_ALIVE => {
            controller.keep_alive();
            Ok(Outcome::Done(0))
        }
        _ => Err(status::INVALID_OPCODE),
    }
}

fn get_log_page(command: &Command, context: &Context<'_>) -> Result<Outcome, Status> {
    let (wanted, controller) = (Wanted::new(command)?, context.controller);
    let log = match wanted.log {
        logs::DISCOVERY if controller.is_discovery => discovery::log(context.subsystem, context.address),
        _ if controller.is_discovery => return Err(status::INVALID_LOG_PAGE),
        _ => logs::log(&wanted, command, context)?,
    };
    let part = wanted.part(&log)?;
    wanted.read_by(controller);
    Ok(Outcome::Data(part))
}

fn set_features(command: &Command, data: &[u8], context: &Context<'_>) -> Result<Outcome, Status> {
    let (what, value, controller) = (command.dword(10), command.dword(11), context.controller);
    if what & 1 << 31 != 0 {
        return Err(status::NOT_SAVEABLE);
    }
    match what as u8 {
        features::KEEP_ALIVE => controller.keep_alive_for(value),
        // A connect names the host.
        features::HOST_ID => return Err(status::SEQUENCE_ERROR),
        features::QUEUES if controller.is_discovery => return Err(status::INVALID_FIELD),
        features::QUEUES if controller.has_queues() => return Err(status::SEQUENCE_ERROR),
        features::QUEUES if value & 0xFFFF == 0xFFFF || value >> 16 == 0xFFFF => return Err(status::INVALID_FIELD),
        features::QUEUES => return Ok(Outcome::Done(features::queues().into())),
        feature @ (placement::MODE | placement::EVENTS_ENABLED) if !controller.is_discovery => {
            let named = command.data_bytes();
            let data = match feature {
                placement::MODE => data,
                _ => match command.data_from_host(named, data.len())? {
                    Place::Capsule(at) => &data[at..at + named as usize],
                    Place::Transport => return Err(status::SGL_TYPE_INVALID),
                },
            };
            return placement::set(feature, command, data, context);
        }
        features::EVENTS if value & zones::EVENT_BIT != 0 && context.facts.zones.is_none() => {
            return Err(status::INVALID_FIELD);
        }
        feature => controller.with_features(|features| features.set(feature, value))?,
    }
    Ok(Outcome::Done(0))
}

fn get_features(command: &Command, context: &Context<'_>) -> Result<Outcome, Status> {
    let controller = context.controller;
    let (feature, select) = (command.dword(10) as u8, command.dword(10) >> 8 & 7);
    let fixed = |value: u32, is_changeable| match select {
        0..=2 => Ok(value),
        3 => Ok(capabilities(is_changeable, false)),
        _ => Err(status::INVALID_FIELD),
    };
    let value = match feature {
        features::KEEP_ALIVE => fixed(controller.keep_alive_ms(), true)?,
        features::QUEUES if !controller.is_discovery => fixed(features::queues(), true)?,
        features::HOST_ID if select == 3 => fixed(0, false)?,
        features::HOST_ID => {
            // Fabrics has identifiers of 16 bytes only.
            if command.dword(11) & 1 == 0 {
                return Err(status::INVALID_FIELD);
            }
            command.check_data_to_host(HOST_ID_BYTES)?;
            return Ok(Outcome::Data(controller.host.id.to_vec()));
        }
        placement::MODE | placement::EVENTS_ENABLED if !controller.is_discovery => {
            return placement::get(feature, select, command, context);
        }
        _ => controller.with_features(|features| features.get(feature, select))?,
    };
    Ok(Outcome::Done(value.into()))
}

const CAPABILITIES: u32 = 0x00;
const CURRENT_VERSION: u32 = 0x08;
const CONFIGURATION: u32 = 0x14;
const STATUS: u32 = 0x1C;

/// Capabilities: entries, queues in one piece of memory, ten seconds to be ready, and command sets by name or NVM.
fn controller_capabilities() -> u64 {
    let (entries, contiguous, timeout) = (u64::from(super::controller::MOST_ENTRIES - 1), 1 << 16, 20 << 24);
    entries | contiguous | timeout | 1 << 37 | 1 << 43
}

fn fabrics(command: &Command, controller: &Controller) -> Result<Outcome, Status> {
    let (is_long, at) = (command.byte(40) & 7, command.dword(11));
    match command.fabrics_type() {
        PROPERTY_GET => match (at, is_long) {
            (CAPABILITIES, 1) => Ok(Outcome::Done(controller_capabilities())),
            (CURRENT_VERSION, 0) => Ok(Outcome::Done(VERSION.into())),
            (CONFIGURATION, 0) => Ok(Outcome::Done(controller.configuration().into())),
            (STATUS, 0) => Ok(Outcome::Done(controller.status().into())),
            _ => Err(status::INVALID_FIELD),
        },
        PROPERTY_SET if at == CONFIGURATION && is_long == 0 => {
            let shuts_down = controller.configure(command.dword(12));
            Ok(if shuts_down && !controller.is_discovery { Outcome::Flushed } else { Outcome::Done(0) })
        }
        PROPERTY_SET => Err(status::INVALID_FIELD),
        CONNECT => Err(status::SEQUENCE_ERROR),
        _ => Err(status::INVALID_OPCODE),
    }
}

/// The parameters of a connect.
pub struct Connect {
    pub queue: u16,
    pub size: u16,
    pub no_flow_control: bool,
    pub keep_alive_ms: u32,
    pub host_id: [u8; 16],
    pub controller: u16,
    pub subsystem: String,
    pub host: String,
}

/// Bytes of the data of a connect.
pub const CONNECT_BYTES: u32 = 1024;

/// A wrong parameter of a connect: the status, and the result that names the parameter.
pub type Wrong = (Status, u64);

/// A wrong field at byte `at` of the command, or of its `data`.
pub fn wrong(at: u64, in_data: bool) -> Wrong {
    (status::INVALID_PARAMETERS, at | u64::from(in_data) << 16)
}

impl Connect {
    /// Reads a connect and its `data`.
    ///
    /// # Errors
    /// [`Wrong`].
    pub fn new(command: &Command, data: &[u8]) -> Result<Self, Wrong> {
        if command.dword(10) as u16 != 0 {
            return Err((status::INCOMPATIBLE_FORMAT, 0));
        }
        let name = |at: usize| {
            let field = &data[at..at + 256];
            let end = field.iter().position(|&byte| byte == 0).filter(|&end| end > 0 && end < 224);
            let name = end.and_then(|end| std::str::from_utf8(&field[..end]).ok());
            name.map(String::from).ok_or(wrong(at as u64, true))
        };
        let mut host_id = [0; 16];
        host_id.copy_from_slice(&data[..16]);
        Ok(Connect {
            queue: (command.dword(10) >> 16) as u16,
            size: command.dword(11) as u16,
            no_flow_control: command.byte(46) & 4 != 0,
            keep_alive_ms: command.dword(12),
            host_id,
            controller: u16::from_le_bytes([data[16], data[17]]),
            subsystem: name(256)?,
            host: name(512)?,
        })
    }
}
