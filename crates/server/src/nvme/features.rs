//! Features of a controller: current values, defaults, and capabilities.
//!
//! Source: NVM Express Base Specification 2.0, section 5.27. No feature is saved: the host sets features again after a
//! connect. Ignored: effects of arbitration, write atomicity and temperature thresholds.

use super::controller::{Event, MOST_QUEUES};
use super::status::{self, Status};
use super::zones::EVENT_BIT;

const POWER_MANAGEMENT: u8 = 0x02;
const TEMPERATURE_THRESHOLD: u8 = 0x04;
const ERROR_RECOVERY: u8 = 0x05;
const WRITE_CACHE: u8 = 0x06;
pub const QUEUES: u8 = 0x07;
pub const EVENTS: u8 = 0x0B;
pub const KEEP_ALIVE: u8 = 0x0F;
const COMMAND_SETS: u8 = 0x19;
pub const HOST_ID: u8 = 0x81;

/// A feature with a value of one dword.
struct Simple {
    id: u8,
    default: u32,
    /// The bits that a host may set.
    settable: u32,
    is_namespace_specific: bool,
}

const SIMPLE: [Simple; 8] = [
    Simple { id: 0x01, default: 0, settable: !0xF8, is_namespace_specific: false },
    Simple { id: POWER_MANAGEMENT, default: 0, settable: 0, is_namespace_specific: false },
    Simple { id: TEMPERATURE_THRESHOLD, default: 0xFFFF, settable: 0xFFFF, is_namespace_specific: false },
    Simple { id: ERROR_RECOVERY, default: 0, settable: 0xFFFF, is_namespace_specific: true },
    Simple { id: WRITE_CACHE, default: 1, settable: 1, is_namespace_specific: false },
    Simple { id: 0x0A, default: 0, settable: 1, is_namespace_specific: false },
    Simple { id: EVENTS, default: 0x1FF, settable: 0x1FF | EVENT_BIT, is_namespace_specific: false },
    Simple { id: COMMAND_SETS, default: 0, settable: 0, is_namespace_specific: false },
];

/// Values of the features.
pub struct Features([u32; SIMPLE.len()]);

impl Default for Features {
    fn default() -> Self {
        Features(SIMPLE.each_ref().map(|feature| feature.default))
    }
}

fn find(id: u8) -> Result<usize, Status> {
    SIMPLE.iter().position(|feature| feature.id == id).ok_or(status::INVALID_FIELD)
}

impl Features {
    fn value(&self, id: u8) -> u32 {
        find(id).map_or(0, |at| self.0[at])
    }

    /// Whether writes may stay in the volatile cache.
    pub fn write_cache(&self) -> bool {
        self.value(WRITE_CACHE) != 0
    }

    /// Whether the host wants reports of `event`.
    pub fn wants(&self, event: Event) -> bool {
        match event {
            // Bits of the SMART log's critical warnings: bit 2 is reliability, bit 3 read-only media.
            Event::WORN_OUT => self.value(EVENTS) & 0b1100 != 0,
            Event::ZONES_CHANGED => self.value(EVENTS) & EVENT_BIT != 0,
            _ => true,
        }
    }

    /// Sets feature `id` to `value`.
    ///
    /// # Errors
    /// The status of an unknown feature or a wrong value.
    pub fn set(&mut self, id: u8, value: u32) -> Result<(), Status> {
        let at = find(id)?;
        if value & !SIMPLE[at].settable != 0 {
            return Err(if id == COMMAND_SETS { status::COMBINATION_REJECTED } else { status::INVALID_FIELD });
        }
        self.0[at] = value;
        Ok(())
    }

    /// The value of feature `id` that `select` names: current, default, saved, or capabilities.
    ///
    /// # Errors
    /// The status of an unknown feature or selection.
    pub fn get(&self, id: u8, select: u32) -> Result<u32, Status> {
        let at = find(id)?;
        match select {
            0 => Ok(self.0[at]),
            1 | 2 => Ok(SIMPLE[at].default),
            3 => Ok(capabilities(SIMPLE[at].settable != 0, SIMPLE[at].is_namespace_specific)),
            _ => Err(status::INVALID_FIELD),
        }
    }
}

/// The capabilities of a feature: not saveable.
pub fn capabilities(is_changeable: bool, is_namespace_specific: bool) -> u32 {
    u32::from(is_changeable) << 2 | u32::from(is_namespace_specific) << 1
}

/// The numbers of I/O queues: all that a controller can have, minus one, of each kind.
pub fn queues() -> u32 {
    u32::from(MOST_QUEUES - 1) | u32::from(MOST_QUEUES - 1) << 16
}
