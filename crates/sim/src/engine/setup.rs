//! Settings, shape and times that do not change during a run, and the dies, planes and buses.
//!
//! Ignored: the host link, which `link` models.

use super::Engine;
use super::bus::{Bus, Transfers};
use super::die::Die;
use super::ready::Ready;
use crate::settings::{Scheduler, SimSettings, Suspend};
use palimpsest_flash::geometry::{Divisor, Geometry};
use palimpsest_flash::nand::part::Part;
use palimpsest_flash::units::Nanos;

/// Settings, shape and times of a drive.
pub(super) struct Setup {
    pub(super) settings: SimSettings,
    pub(super) geometry: Geometry,
    plane_size: Divisor,
    die_count: Divisor,
    pub(super) t_command: Nanos,
    pub(super) cache_pages: u8,
    pub(super) t_suspend: Nanos,
    pub(super) t_suspend_erase: Nanos,
    pub(super) t_resume: Nanos,
    /// See [`Engine::looks_twice`].
    pub(super) wakes_always: bool,
}

impl Setup {
    pub(super) fn new(settings: &SimSettings, geometry: &Geometry, part: &Part) -> Self {
        Setup {
            settings: settings.clone(),
            geometry: *geometry,
            plane_size: Divisor::new(geometry.blocks_per_plane),
            die_count: Divisor::new(geometry.dies()),
            t_command: part.t_command,
            cache_pages: part.cache_pages as u8,
            t_suspend: part.t_suspend,
            t_suspend_erase: part.t_suspend_erase,
            t_resume: part.t_resume,
            wakes_always: Engine::looks_twice(settings.suspend, part),
        }
    }

    /// True if reads may suspend programs or erases.
    #[inline]
    pub(super) fn suspends(&self) -> bool {
        self.settings.suspend != Suspend::None
    }

    /// True if some reads have less urgency than others, unless a request waits for them.
    #[inline]
    pub(super) fn has_ranks(&self) -> bool {
        self.settings.scheduler != Scheduler::Fifo || self.suspends()
    }

    /// Die and plane of `block`.
    #[inline]
    pub(super) fn place_of(&self, block: u32) -> (u32, u32) {
        let (in_die, die) = self.die_count.split(self.plane_size.divide(block));
        (die, die * self.geometry.planes_per_die + in_die)
    }
}

/// Dies, planes and buses.
pub(super) struct Hardware {
    /// Ready operations of each plane.
    pub(super) ready: Vec<Ready>,
    pub(super) dies: Vec<Die>,
    pub(super) buses: Vec<Bus>,
    pub(super) transfers: Transfers,
}

impl Hardware {
    /// Idle dies and buses of `geometry`.
    pub(super) fn new(geometry: &Geometry, part: &Part) -> Self {
        Hardware {
            ready: (0..geometry.planes()).map(|_| Ready::default()).collect(),
            dies: (0..geometry.dies()).map(|die| Die::on(geometry.channel_of_die(die))).collect(),
            buses: vec![Bus::default(); geometry.channels as usize],
            transfers: Transfers::new(part),
        }
    }
}

impl Engine {
    /// Time for which each channel's bus was busy.
    pub fn bus_busy(&self) -> Vec<Nanos> {
        self.hardware.buses.iter().map(|bus| bus.busy).collect()
    }

    /// Time for which each die was busy.
    pub fn die_busy(&self) -> Vec<Nanos> {
        self.hardware.dies.iter().map(|die| die.busy).collect()
    }
}
