//! Admin commands, and the commands of Fabrics for properties.
//!
//! Sources: NVM Express Base Specification 2.0, section 5; NVM Express over Fabrics 1.1, section 3. Ignored: firmware
//! updates, virtualization, telemetry.

use super::controller::{Controller, Event};
use super::discovery;
use super::entry::{Command, FABRICS};
use super::features::{self, capabilities};
use super::health::Health;
use super::identify::{self, VERSION};
use super::logs::{self, Wanted};
use super::pdu::u64_at;
use super::status::{self, Status};
use super::{Facts, Subsystem, namespaces, placement, sanitize, selftest, zones};
use crate::page::Shown;
use crate::request::Request;
use std::net::SocketAddr;

const GET_LOG_PAGE: u8 = 0x02;
const IDENTIFY: u8 = 0x06;
const ABORT: u8 = 0x08;
const SET_FEATURES: u8 = 0x09;
const GET_FEATURES: u8 = 0x0A;
const EVENT_REQUEST: u8 = 0x0C;
const NAMESPACE_MANAGEMENT: u8 = 0x0D;
const SELF_TEST: u8 = 0x14;
const NAMESPACE_ATTACHMENT: u8 = 0x15;
const KEEP_ALIVE: u8 = 0x18;
const FORMAT: u8 = 0x80;
const SANITIZE: u8 = 0x84;

/// Effects: contents, capabilities of namespaces, and the list of namespaces change; all other commands must wait.
const CHANGES_DATA: u32 = 1 << 1;
const CHANGES_NAMESPACE: u32 = 1 << 2;
const CHANGES_LIST: u32 = 1 << 3;
const ALONE: u32 = 2 << 16;

/// Admin commands that a controller with a drive executes, with their effects.
pub const OPCODES: [(u8, u32); 12] = [
    (GET_LOG_PAGE, 0),
    (IDENTIFY, 0),
    (ABORT, 0),
    (SET_FEATURES, 0),
    (GET_FEATURES, 0),
    (EVENT_REQUEST, 0),
    (NAMESPACE_MANAGEMENT, CHANGES_DATA | CHANGES_LIST),
    (SELF_TEST, 0),
    (NAMESPACE_ATTACHMENT, CHANGES_LIST),
    (KEEP_ALIVE, 0),
    (FORMAT, CHANGES_DATA | CHANGES_NAMESPACE | ALONE),
    (SANITIZE, CHANGES_DATA | ALONE),
];

const PROPERTY_SET: u8 = 0x00;
pub const CONNECT: u8 = 0x01;
const PROPERTY_GET: u8 = 0x04;
pub const DISCONNECT: u8 = 0x08;

/// Commands that a discovery controller does not have.
const MANAGEMENT: [u8; 5] = [NAMESPACE_MANAGEMENT, SELF_TEST, NAMESPACE_ATTACHMENT, FORMAT, SANITIZE];

/// Commands that a drive with zones does not have, whose only namespace is the whole drive.
const WITHOUT_ZONES: [u8; 4] = [NAMESPACE_MANAGEMENT, NAMESPACE_ATTACHMENT, FORMAT, SANITIZE];

/// Bytes of a host identifier.
const HOST_ID_BYTES: u32 = 16;

/// Bytes of a timestamp, and its bits that count milliseconds.
const TIMESTAMP_BYTES: u32 = 8;
const TIMESTAMP_MASK: u64 = (1 << 48) - 1;

/// Features whose value cannot be saved.
const UNSAVED: [u8; 6] = [
    features::QUEUES,
    features::TIMESTAMP,
    features::KEEP_ALIVE,
    features::HOST_ID,
    features::RESERVATION_MASK,
    features::RESERVATION_PERSISTENCE,
];

/// The answer to a command.
pub enum Outcome {
    /// Success with this result.
    Done(u64),
    Data(Vec<u8>),
    /// Data, and a result.
    DataAnd(Vec<u8>, u64),
    /// Success with this result once the drive has done all of these requests.
    Requests(Vec<Request>, u64),
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

/// Admin commands for the drive of `facts`, with their effects.
pub fn opcodes(facts: &Facts) -> Vec<(u8, u32)> {
    let directives = [(placement::DIRECTIVE_SEND, 0), (placement::DIRECTIVE_RECEIVE, 0)];
    let general = OPCODES.into_iter().filter(|(opcode, _)| facts.zones.is_none() || !WITHOUT_ZONES.contains(opcode));
    general.chain(facts.placement.map(|_| directives).into_iter().flatten()).collect()
}

/// Bytes of data that `command` brings.
pub fn data_bytes(command: &Command) -> u32 {
    match command.opcode() {
        NAMESPACE_MANAGEMENT if namespaces::creates(command) => namespaces::DATA_BYTES,
        NAMESPACE_ATTACHMENT => namespaces::DATA_BYTES,
        SET_FEATURES if command.dword(10) as u8 == features::TIMESTAMP => TIMESTAMP_BYTES,
        SET_FEATURES if command.dword(10) as u8 == placement::EVENTS_ENABLED => command.data_bytes().min(4096),
        _ => 0,
    }
}

/// Executes `command` with its `data`.
///
/// # Errors
/// The status of a failed command.
pub fn execute(command: &Command, data: &[u8], context: &Context<'_>) -> Result<Outcome, Status> {
    let controller = context.controller;
    if command.opcode() == FABRICS {
        return fabrics(command, context);
    }
    if !controller.is_ready() {
        return Err(status::SEQUENCE_ERROR);
    }
    let is_zoned = context.facts.zones.is_some() && WITHOUT_ZONES.contains(&command.opcode());
    if is_zoned || controller.is_discovery && MANAGEMENT.contains(&command.opcode()) {
        return Err(status::INVALID_OPCODE);
    }
    match command.opcode() {
        GET_LOG_PAGE => get_log_page(command, context),
        IDENTIFY => {
            let nqn = if controller.is_discovery { discovery::NQN } else { &context.subsystem.nqn };
            identify::identify(command, nqn, context).map(Outcome::Data)
        }
        ABORT if !controller.is_discovery => {
            // A command of an I/O queue cannot be taken back; bit 0 says that nothing was aborted.
            let (queue, aborted) = (command.dword(10) as u16, (command.dword(10) >> 16) as u16);
            Ok(Outcome::Done(u64::from(!(queue == 0 && controller.abort_event(aborted)))))
        }
        SET_FEATURES => set_features(command, data, context),
        GET_FEATURES => get_features(command, context),
        placement::DIRECTIVE_SEND | placement::DIRECTIVE_RECEIVE if !controller.is_discovery => {
            placement::direct(command, context)
        }
        EVENT_REQUEST => controller.request_event(command.id()).map(|()| Outcome::Later),
        KEEP_ALIVE => {
            controller.keep_alive();
            Ok(Outcome::Done(0))
        }
        SANITIZE => sanitize::execute(command, context),
        NAMESPACE_MANAGEMENT | NAMESPACE_ATTACHMENT | SELF_TEST | FORMAT => {
            context.subsystem.sanitize.check()?;
            match command.opcode() {
                NAMESPACE_MANAGEMENT => namespaces::manage(command, data, context),
                NAMESPACE_ATTACHMENT => namespaces::attach(command, data, context),
                SELF_TEST => selftest::execute(command, context),
                _ => format(command, context),
            }
        }
        _ => Err(status::INVALID_OPCODE),
    }
}

/// Formats namespaces: unmaps all of their data, which is the erase, too, and may change their block size.
fn format(command: &Command, context: &Context<'_>) -> Result<Outcome, Status> {
    let (what, subsystem) = (command.dword(10), context.subsystem);
    let (index, protection, erase) = (what as u8 & 0xF | (what >> 8 & 0x30) as u8, what >> 4 & 0x1F, what >> 9 & 7);
    let block_bytes = namespaces::block_bytes_of(index)?;
    if protection != 0 {
        return Err(status::INVALID_FORMAT);
    }
    if erase > 2 {
        return Err(status::INVALID_FIELD);
    }
    let found = subsystem.namespaces().named(command.namespace(), &context.controller.host.name)?;
    for one in &found {
        subsystem.reservations.check(one.id, &context.controller.host.id, false)?;
    }
    subsystem.check_writable()?;
    subsystem.tests.abort(selftest::BY_FORMAT);
    let mut requests = Vec::new();
    for one in &found {
        subsystem.namespaces_mut().reformat(one.id, block_bytes);
        subsystem.marks.clear(one.base, one.capacity);
        requests.extend(one.unmapped());
        if one.block_bytes != block_bytes {
            let has = |name: &str| subsystem.namespaces().is_attached(one.id, name);
            subsystem.tell(|other| has(&other.host.name), |other| other.namespace_changed(one.id));
        }
    }
    Ok(Outcome::Requests(requests, 0))
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

/// The namespaces that a feature of reservations means.
fn reserved(command: &Command, context: &Context<'_>) -> Result<Vec<u32>, Status> {
    let named = context.subsystem.namespaces().named(command.namespace(), &context.controller.host.name)?;
    Ok(named.iter().map(|one| one.id).collect())
}

fn set_features(command: &Command, data: &[u8], context: &Context<'_>) -> Result<Outcome, Status> {
    let (controller, subsystem) = (context.controller, context.subsystem);
    let (what, value, saves) = (command.dword(10), command.dword(11), command.dword(10) & 1 << 31 != 0);
    match what as u8 {
        feature if saves && UNSAVED.contains(&feature) => return Err(status::NOT_SAVEABLE),
        features::TIMESTAMP | features::RESERVATION_MASK | features::RESERVATION_PERSISTENCE
            if controller.is_discovery =>
        {
            return Err(status::INVALID_FIELD);
        }
        features::TIMESTAMP => subsystem.set_timestamp(u64_at(data, 0) & TIMESTAMP_MASK),
        features::RESERVATION_MASK if value & !0b1110 == 0 => {
            reserved(command, context)?.into_iter().for_each(|id| controller.set_mask(id, value));
        }
        features::RESERVATION_PERSISTENCE if value < 2 => {
            reserved(command, context)?.into_iter().for_each(|id| subsystem.reservations.persist(id, value == 1));
        }
        features::RESERVATION_MASK | features::RESERVATION_PERSISTENCE => return Err(status::INVALID_FIELD),
        features::KEEP_ALIVE => controller.keep_alive_for(value),
        // A connect names the host.
        features::HOST_ID => return Err(status::SEQUENCE_ERROR),
        features::QUEUES if controller.is_discovery => return Err(status::INVALID_FIELD),
        features::QUEUES if controller.has_queues() => return Err(status::SEQUENCE_ERROR),
        features::QUEUES if value & 0xFFFF == 0xFFFF || value >> 16 == 0xFFFF => return Err(status::INVALID_FIELD),
        features::QUEUES => return Ok(Outcome::Done(features::queues().into())),
        feature @ (placement::MODE | placement::EVENTS_ENABLED) if !controller.is_discovery => {
            return placement::set(feature, command, data, context);
        }
        features::EVENTS if value & zones::EVENT_BIT != 0 && context.facts.zones.is_none() => {
            return Err(status::INVALID_FIELD);
        }
        feature => {
            controller.with_features(|features| features.set(feature, value))?;
            if saves {
                let host = controller.host.name.clone();
                subsystem.with_saved(|saved| saved.entry(host).or_default().set(feature, value))?;
            }
            let health = Health::of(context.shown, false);
            if feature == features::TEMPERATURE_THRESHOLD
                && controller.with_features(|features| health.is_temperature_reached(features))
            {
                controller.report(Event::TEMPERATURE);
            }
        }
    }
    Ok(Outcome::Done(0))
}

fn get_features(command: &Command, context: &Context<'_>) -> Result<Outcome, Status> {
    let (controller, subsystem) = (context.controller, context.subsystem);
    let (feature, select) = (command.dword(10) as u8, command.dword(10) >> 8 & 7);
    let fixed = |value: u32, is_changeable| match select {
        0..=2 => Ok(value),
        3 => Ok(capabilities(is_changeable, false, false)),
        _ => Err(status::INVALID_FIELD),
    };
    let of_namespace = |value: &dyn Fn(u32) -> u32| match (select, reserved(command, context)?.as_slice()) {
        (3, _) => Ok(capabilities(true, true, false)),
        (0, &[id]) if command.namespace() == id => Ok(value(id)),
        (1 | 2, _) => Ok(0),
        _ => Err(status::INVALID_FIELD),
    };
    let value = match feature {
        features::TIMESTAMP | features::RESERVATION_MASK | features::RESERVATION_PERSISTENCE
            if controller.is_discovery =>
        {
            return Err(status::INVALID_FIELD);
        }
        features::TIMESTAMP if select == 3 => fixed(0, true)?,
        features::TIMESTAMP => {
            command.check_data_to_host(TIMESTAMP_BYTES)?;
            let (milliseconds, is_set) = subsystem.timestamp();
            // The origin: set by a host, or counted from the begin.
            let origin = u64::from(is_set) << 1;
            return Ok(Outcome::Data((milliseconds & TIMESTAMP_MASK | origin << 48).to_le_bytes().to_vec()));
        }
        features::RESERVATION_MASK => of_namespace(&|id| controller.mask(id))?,
        features::RESERVATION_PERSISTENCE => of_namespace(&|id| subsystem.reservations.persists(id).into())?,
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
        _ => {
            let saved = subsystem.with_saved(|saved| saved.get(&controller.host.name).cloned()).unwrap_or_default();
            controller.with_features(|features| features.get(feature, select, command.dword(11), &saved))?
        }
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

fn fabrics(command: &Command, context: &Context<'_>) -> Result<Outcome, Status> {
    let controller = context.controller;
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
            let was_ready = controller.is_ready();
            let shuts_down = controller.configure(command.dword(12));
            if was_ready && !controller.is_ready() {
                context.subsystem.tests.reset();
            }
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
