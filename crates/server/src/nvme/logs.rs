//! Log pages, whose figures are those of the simulated drive.
//!
//! Sources: NVM Express Base Specification 2.0, section 5.16; OCP Datacenter NVMe SSD Specification 2.0, section 4.8.6
//! (log page C0). Counters cover the life of the drive, as section `life` of the result does. Ignored: controller busy
//! time, telemetry; their fields are zero.

use super::admin::Context;
use super::controller::Controller;
use super::entry::{Command, Structure};
use super::health::{Health, SPARE_THRESHOLD};
use super::identify::ALL_NAMESPACES;
use super::status::{self, Status};
use super::{Facts, placement, zones};
use crate::page::figures;
use serde_json::Value;

pub const SUPPORTED: u8 = 0x00;
pub const ERRORS: u8 = 0x01;
pub const SMART: u8 = 0x02;
pub const FIRMWARE: u8 = 0x03;
pub const CHANGED_NAMESPACES: u8 = 0x04;
pub const EFFECTS: u8 = 0x05;
pub const SELF_TEST: u8 = 0x06;
pub const ENDURANCE_GROUP: u8 = 0x09;
pub const DISCOVERY: u8 = 0x70;
pub const RESERVATION: u8 = 0x80;
pub const SANITIZE: u8 = 0x81;
/// SMART / health information of the Open Compute Project.
pub const OCP_SMART: u8 = 0xC0;

const PAGES: [u8; 11] = [
    SUPPORTED,
    ERRORS,
    SMART,
    FIRMWARE,
    CHANGED_NAMESPACES,
    EFFECTS,
    SELF_TEST,
    ENDURANCE_GROUP,
    RESERVATION,
    SANITIZE,
    OCP_SMART,
];

/// The endurance group: the whole drive.
pub const ENDURANCE_GROUP_ID: u16 = 1;

/// The identifier of log page C0, from its last byte on.
const OCP_SMART_ID: u128 = 0xAFD5_14C9_7C6F_4F9C_A4F2_BFEA_2810_AFC5;

/// A request for a part of a log page.
pub struct Wanted {
    pub log: u8,
    /// Bytes of the part.
    length: usize,
    offset: u64,
    /// The subject of some logs.
    pub subject: u16,
    /// Whether the event that led to the log stays reported.
    retains_event: bool,
    /// The choice of some logs.
    specific: u8,
}

/// Most bytes of one part.
const MOST: usize = super::MOST_TRANSFER as usize;

impl Wanted {
    /// The part that `command` asks for.
    ///
    /// # Errors
    /// The status of a wrong field.
    pub fn new(command: &Command) -> Result<Self, Status> {
        let (what, more) = (command.dword(10), command.dword(11));
        let dwords = u64::from(what >> 16) + (u64::from(more & 0xFFFF) << 16) + 1;
        let length = usize::try_from(dwords * 4).ok().filter(|&length| length <= MOST);
        let length = length.ok_or(status::INVALID_FIELD)?;
        let offset = command.qword(12);
        // An index into a list of entries (bit 23 of dword 14) is not offered.
        if !offset.is_multiple_of(4) || command.dword(14) & 1 << 23 != 0 {
            return Err(status::INVALID_FIELD);
        }
        command.check_data_to_host(length as u32)?;
        let subject = (more >> 16) as u16;
        let (retains_event, specific) = (what & 1 << 15 != 0, (what >> 8 & 0x7F) as u8);
        Ok(Wanted { log: what as u8, length, offset, subject, retains_event, specific })
    }

    /// The wanted part of `log`; zeroes beyond its end.
    ///
    /// # Errors
    /// The status of an offset beyond the end.
    pub fn part(&self, log: &[u8]) -> Result<Vec<u8>, Status> {
        let begin = usize::try_from(self.offset).ok().filter(|&begin| begin <= log.len());
        let begin = begin.ok_or(status::INVALID_FIELD)?;
        let mut part = log[begin..log.len().min(begin + self.length)].to_vec();
        part.resize(self.length, 0);
        Ok(part)
    }

    /// Notes that the host has read the log.
    pub fn read_by(&self, controller: &Controller) {
        if !self.retains_event {
            controller.clear_event(self.log);
        }
    }
}

/// A log page of a controller with a drive.
///
/// # Errors
/// The status of an unknown page, namespace or endurance group.
pub fn log(wanted: &Wanted, command: &Command, context: &Context<'_>) -> Result<Vec<u8>, Status> {
    let (log, controller, shown) = (wanted.log, context.controller, context.shown);
    let (subsystem, namespace, command_set) = (context.subsystem, command.namespace(), command.byte(59));
    // All counters cover the whole drive.
    if log == SMART && !matches!(namespace, 0 | ALL_NAMESPACES) {
        return Err(status::INVALID_FIELD);
    }
    match log {
        SUPPORTED => Ok(supported(context.facts)),
        ERRORS => Ok(errors(controller)),
        SMART => Ok(smart(&figures(shown), context)),
        FIRMWARE => Ok(firmware()),
        CHANGED_NAMESPACES => Ok(changed_namespaces(controller)),
        EFFECTS => effects(context.facts, command_set),
        SELF_TEST => Ok(subsystem.tests.log()),
        RESERVATION => Ok(notice(controller)),
        SANITIZE => Ok(subsystem.sanitize.log()),
        zones::CHANGED_ZONES => zones::changed(context, namespace, wanted.retains_event),
        log if placement::LOGS.contains(&log) => placement::log(log, wanted.subject, wanted.specific & 1 != 0, context),
        ENDURANCE_GROUP if wanted.subject != ENDURANCE_GROUP_ID => Err(status::INVALID_FIELD),
        ENDURANCE_GROUP => Ok(endurance_group(&figures(shown), context)),
        OCP_SMART => Ok(ocp_smart(&figures(shown))),
        _ => Err(status::INVALID_LOG_PAGE),
    }
}

fn supported(facts: &Facts) -> Vec<u8> {
    let mut page = Structure::new(1024);
    let of_zones = facts.zones.map(|_| zones::CHANGED_ZONES);
    let of_handles = facts.placement.map(|_| placement::LOGS).into_iter().flatten();
    for log in PAGES.into_iter().chain(of_zones).chain(of_handles) {
        page.u32(usize::from(log) * 4, 1);
    }
    page.0
}

/// Numbers of changed namespaces.
fn changed_namespaces(controller: &Controller) -> Vec<u8> {
    let mut page = Structure::new(4096);
    for (at, id) in controller.changed_namespaces().into_iter().enumerate() {
        page.u32(4 * at, id);
    }
    page.0
}

/// The oldest unread notice about a reservation, and the number of further ones.
fn notice(controller: &Controller) -> Vec<u8> {
    let mut page = Structure::new(64);
    if let Some((notice, namespace, count, unread)) = controller.notice() {
        page.u64(0, count).u8(8, notice as u8).u8(9, (unread - 1) as u8).u32(12, namespace);
    }
    page.0
}

fn errors(controller: &Controller) -> Vec<u8> {
    let mut page = Structure::new(64 * super::controller::ERROR_ENTRIES);
    for (at, error) in controller.errors().iter().enumerate() {
        let at = at * 64;
        page.u64(at, error.count).u16(at + 8, error.queue).u16(at + 10, error.command);
        // No parameter is named as wrong.
        page.u16(at + 12, error.status << 1).u16(at + 14, 0xFFFF);
    }
    page.0
}

fn count(value: &Value) -> u128 {
    u128::from(value.as_u64().unwrap_or(0))
}

/// The SMART log of the drive's `figures`.
fn smart(figures: &Value, context: &Context<'_>) -> Vec<u8> {
    let mut page = Structure::new(512);
    let known = crate::page::smart(figures);
    let health = Health::of(context.shown, figures["lifetime"]["worn_out"] == true);
    page.u8(0, context.controller.with_features(|features| health.warnings(features))).u16(1, health.kelvins);
    page.u8(3, health.spare).u8(4, SPARE_THRESHOLD).u8(5, known["percent_used"].as_u64().unwrap_or(0) as u8);
    let counters = [
        (32, count(&known["data_units_read"])),
        (48, count(&known["data_units_written"])),
        (64, count(&known["host_read_commands"])),
        (80, count(&known["host_write_commands"])),
        (112, count(&known["power_cycles"])),
        (128, context.subsystem.hours().into()),
        (144, count(&known["unsafe_shutdowns"])),
        (160, count(&known["media_errors"])),
        (176, count(&known["num_err_log_entries"])),
    ];
    for (at, value) in counters {
        page.bytes(at, &value.to_le_bytes());
    }
    page.0
}

fn firmware() -> Vec<u8> {
    let mut page = Structure::new(512);
    page.u8(0, 1).ascii(8, 8, env!("CARGO_PKG_VERSION"));
    page.0
}

/// Effects of the commands of a command set: supported; writes change the contents.
fn effects(facts: &Facts, command_set: u8) -> Result<Vec<u8>, Status> {
    if command_set != 0 && (command_set != zones::COMMAND_SET || facts.zones.is_none()) {
        return Err(status::INVALID_FIELD);
    }
    let mut page = Structure::new(4096);
    let (supported, changes) = (1, 1 << 1);
    for (opcode, effects) in super::admin::opcodes(facts) {
        page.u32(usize::from(opcode) * 4, supported | effects);
    }
    for opcode in super::io::opcodes(facts, command_set) {
        let changed = if super::io::changes(opcode) { changes } else { 0 };
        page.u32(1024 + usize::from(opcode) * 4, supported | changed);
    }
    Ok(page.0)
}

/// Log page 09: units are thousands of millions of bytes, rounded up.
fn endurance_group(figures: &Value, context: &Context<'_>) -> Vec<u8> {
    let mut page = Structure::new(512);
    let life = &figures["life"];
    let known = crate::page::smart(figures);
    let is_read_only = figures["lifetime"]["worn_out"] == true;
    let health = Health::of(context.shown, is_read_only);
    let (capacity, unallocated) = (context.facts.bytes(), context.subsystem.namespaces().unallocated());
    let billions = |bytes: u128| bytes.div_ceil(1_000_000_000);
    page.u8(0, u8::from(health.is_spare_low()) | u8::from(is_read_only) << 3);
    page.u8(3, health.spare).u8(4, SPARE_THRESHOLD).u8(5, known["percent_used"].as_u64().unwrap_or(0) as u8);
    let counters = [
        (48, billions(count(&life["host_bytes_read"]))),
        (64, billions(count(&life["host_bytes_written"]))),
        (80, billions(count(&life["media_bytes_written"]))),
        (96, count(&known["host_read_commands"])),
        (112, count(&known["host_write_commands"])),
        (128, count(&life["media_errors"])),
        (160, capacity.into()),
        (176, unallocated.into()),
    ];
    for (at, value) in counters {
        page.bytes(at, &value.to_le_bytes());
    }
    page.0
}

/// Log page C0: media units are bytes.
fn ocp_smart(figures: &Value) -> Vec<u8> {
    let mut page = Structure::new(512);
    let life = &figures["life"];
    for (at, name) in [(0, "media_bytes_written"), (16, "media_bytes_read")] {
        page.bytes(at, &count(&life[name]).to_le_bytes());
    }
    page.u64(32, figures["lifetime"]["retired_blocks"].as_u64().unwrap_or(0));
    page.u64(56, count(&life["media_errors"]) as u64);
    page.u32(88, figures["lifetime"]["max_erases"].as_u64().unwrap_or(0) as u32);
    page.u32(92, figures["lifetime"]["min_erases"].as_u64().unwrap_or(0) as u32);
    page.u32(112, count(&life["unsafe_shutdowns"]) as u32);
    page.u16(494, 2).bytes(496, &OCP_SMART_ID.to_le_bytes());
    page.0
}
