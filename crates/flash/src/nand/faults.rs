//! Injected faults: kinds, probabilities, and the moment of a power cut.
//!
//! Faults use a random source of their own, so that they do not disturb the workload. Probabilities apply to each
//! operation independently, whatever the wear. In addition, a block fails its next erase when its erases reach its own
//! endurance. Ignored: correlated faults, except failures of dies.
//!
//! `faults` and `dies` use each other: dies are a part of the faults of a drive, and the first failure of a die creates
//! those of a drive without any.

use super::dies::Dies;
use crate::keys::SHARE;
use crate::rng::Rng;

crate::keys! {
    /// The faults to inject. The default injects none.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub struct FaultSettings;

    /// The key of failed programs.
    group pub PROGRAM_FAIL {
        /// probability that a program fails and its block goes bad
        pub program_fail: f64 = "faults.program_fail", SHARE, "0%";
    }
    /// The key of failed erases.
    group pub ERASE_FAIL {
        /// probability that an erase fails and its block goes bad
        pub erase_fail: f64 = "faults.erase_fail", SHARE, "0%";
    }
    /// The key of failed reads.
    group pub READ_FAIL {
        /// probability that a read needs a retry
        pub read_fail: f64 = "faults.read_fail", SHARE, "0%";
    }
    /// The key of blocks that are bad from the factory.
    group pub INITIAL_BAD {
        /// share of blocks that are bad from the factory
        pub initial_bad: f64 = "faults.initial_bad", SHARE, "0%";
    }
    /// The key of blocks that wear out.
    group pub WEAR_OUT {
        /// whether a block fails its erase when its erases have come to what it endures (part.endurance)
        pub wear_out: bool = "faults.wear_out", Flag, "false";
    }
    /// The key of a single power cut.
    group pub POWER_CUT_AT {
        /// flash operation in which the power is cut, in a timed run half-way through its time; 0: never
        pub power_cut_at: Option<u64> = "faults.power_cut_at", Count { min: 0, max: i64::MAX as u64 }, "0";
    }
}

impl FaultSettings {
    /// Whether any fault is injected.
    pub fn any(&self) -> bool {
        *self != FaultSettings::default()
    }
}

/// The random source of injected faults.
#[derive(Debug, Clone)]
pub struct Faults {
    settings: FaultSettings,
    seed: u64,
    rng: Rng,
    pub(super) dies: Dies,
}

// States are kept before any die fails.
crate::state!(Faults { rng } built { settings, seed, dies });

impl Faults {
    /// Faults of `settings`, drawn from `seed`.
    pub fn new(settings: FaultSettings, seed: u64) -> Self {
        Faults { settings, seed, rng: Rng::new(seed, 0xfa17), dies: Dies::default() }
    }

    /// Reseeds for a drive that has done this many operations, so that no earlier fault repeats.
    pub fn go_on(&mut self, operations: u64) {
        self.rng = Rng::new(self.seed ^ operations.rotate_left(20), 0xfa17);
    }

    /// Whether the next program, in `block`, fails.
    pub fn program_fails(&mut self, block: u32) -> bool {
        self.rng.chance(self.settings.program_fail) || self.dies.is_dead(block)
    }

    /// Whether the next erase, of `block`, fails.
    pub fn erase_fails(&mut self, block: u32) -> bool {
        self.rng.chance(self.settings.erase_fail) || self.dies.is_dead(block)
    }

    /// Whether the first attempt of the next read fails.
    pub fn read_fails(&mut self) -> bool {
        self.rng.chance(self.settings.read_fail)
    }

    /// The erases that each of `blocks` blocks endures: normal around `mean`, with the standard deviation `deviation`
    /// as a share of `mean`. Empty if blocks do not wear out.
    pub fn endurances(&self, blocks: u32, mean: u32, deviation: f64) -> Vec<u32> {
        let draw = |block: u32| {
            let mut rng = Rng::new(self.seed ^ u64::from(block) << 32, 0x3ea6);
            // The sum of twelve uniform numbers has a deviation of one.
            let normal = (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
            (f64::from(mean) * (1.0 + deviation * normal)).round().clamp(1.0, f64::from(u32::MAX)) as u32
        };
        if self.settings.wear_out { (0..blocks).map(draw).collect() } else { Vec::new() }
    }

    /// Whether a block is bad from the start.
    pub fn bad_from_factory(&mut self) -> bool {
        self.rng.chance(self.settings.initial_bad)
    }

    /// The operation during which the power fails.
    pub fn power_cut_at(&self) -> Option<u64> {
        self.settings.power_cut_at
    }

    /// Sets the operation during which the power fails next.
    pub fn set_power_cut_at(&mut self, operation: Option<u64>) {
        self.settings.power_cut_at = operation;
    }
}
