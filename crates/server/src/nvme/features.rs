//! Features of a controller: current values, saved values, defaults, and capabilities.
//!
//! Source: NVM Express Base Specification 2.0, section 5.27. A value that a host saves is that of its later
//! controllers, until the end of the process. Ignored: effects of arbitration and write atomicity.

use super::controller::{Event, MOST_QUEUES};
use super::status::{self, Status};
use super::zones::EVENT_BIT;

const POWER_MANAGEMENT: u8 = 0x02;
pub const TEMPERATURE_THRESHOLD: u8 = 0x04;
const ERROR_RECOVERY: u8 = 0x05;
const WRITE_CACHE: u8 = 0x06;
pub const QUEUES: u8 = 0x07;
pub const EVENTS: u8 = 0x0B;
pub const TIMESTAMP: u8 = 0x0E;
pub const KEEP_ALIVE: u8 = 0x0F;
const COMMAND_SETS: u8 = 0x19;
pub const HOST_ID: u8 = 0x81;
pub const RESERVATION_MASK: u8 = 0x82;
pub const RESERVATION_PERSISTENCE: u8 = 0x83;

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
#[derive(Clone)]
pub struct Features {
    values: [u32; SIMPLE.len()],
    /// The threshold under which the temperature is a warning.
    under: u32,
}

impl Default for Features {
    fn default() -> Self {
        Features { values: SIMPLE.each_ref().map(|feature| feature.default), under: 0 }
    }
}

fn find(id: u8) -> Result<usize, Status> {
    SIMPLE.iter().position(|feature| feature.id == id).ok_or(status::INVALID_FIELD)
}

/// Whether the selection of a threshold in `dword` is that of the lower one; `sets`: for all sensors, too.
fn is_under(dword: u32, sets: bool) -> Result<bool, Status> {
    let (sensor, kind) = (dword >> 16 & 0xF, dword >> 20 & 3);
    match (sensor, kind) {
        (0, 0 | 1) => Ok(kind == 1),
        (0xF, 0 | 1) if sets => Ok(kind == 1),
        _ => Err(status::INVALID_FIELD),
    }
}

impl Features {
    fn value(&self, id: u8) -> u32 {
        find(id).map_or(0, |at| self.values[at])
    }

    /// Whether writes may stay in the volatile cache.
    pub fn write_cache(&self) -> bool {
        self.value(WRITE_CACHE) != 0
    }

    /// The thresholds from which on, and until which, the temperature is a warning, in kelvins.
    pub fn temperatures(&self) -> (u16, u16) {
        (self.value(TEMPERATURE_THRESHOLD) as u16, self.under as u16)
    }

    /// Whether the host wants reports of `event`.
    pub fn wants(&self, event: Event) -> bool {
        // Bits of the SMART log's critical warnings, and of notices.
        let wanted = match event {
            Event::WORN_OUT => 0b1100,
            Event::TEMPERATURE => 1 << 1,
            Event::SPARE_LOW => 1,
            Event::NAMESPACE_CHANGED => 1 << 8,
            Event::ZONES_CHANGED => EVENT_BIT,
            _ => return true,
        };
        self.value(EVENTS) & wanted != 0
    }

    /// Sets feature `id` to `value`.
    ///
    /// # Errors
    /// The status of an unknown feature or a wrong value.
    pub fn set(&mut self, id: u8, value: u32) -> Result<(), Status> {
        let at = find(id)?;
        if id == TEMPERATURE_THRESHOLD {
            if value >> 22 != 0 {
                return Err(status::INVALID_FIELD);
            }
            *(if is_under(value, true)? { &mut self.under } else { &mut self.values[at] }) = value & 0xFFFF;
            return Ok(());
        }
        if value & !SIMPLE[at].settable != 0 {
            return Err(if id == COMMAND_SETS { status::COMBINATION_REJECTED } else { status::INVALID_FIELD });
        }
        self.values[at] = value;
        Ok(())
    }

    /// The value of feature `id` that `select` names: current, default, saved, or capabilities; `dword` selects one of
    /// several values.
    ///
    /// # Errors
    /// The status of an unknown feature or selection.
    pub fn get(&self, id: u8, select: u32, dword: u32, saved: &Features) -> Result<u32, Status> {
        let at = find(id)?;
        let features = match select {
            0 => self,
            1 => &Features::default(),
            2 => saved,
            3 => {
                let changes = SIMPLE[at].settable != 0;
                return Ok(capabilities(changes, SIMPLE[at].is_namespace_specific, changes));
            }
            _ => return Err(status::INVALID_FIELD),
        };
        if id == TEMPERATURE_THRESHOLD && is_under(dword, false)? {
            return Ok(features.under);
        }
        Ok(features.values[at])
    }
}

/// The capabilities of a feature.
pub fn capabilities(is_changeable: bool, is_namespace_specific: bool, is_saveable: bool) -> u32 {
    u32::from(is_changeable) << 2 | u32::from(is_namespace_specific) << 1 | u32::from(is_saveable)
}

/// The numbers of I/O queues: all that a controller can have, minus one, of each kind.
pub fn queues() -> u32 {
    u32::from(MOST_QUEUES - 1) | u32::from(MOST_QUEUES - 1) << 16
}
