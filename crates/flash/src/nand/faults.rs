//! Injected faults: what goes wrong, how often, and when the power fails.
//!
//! Faults are drawn from a seeded source of their own, so that they do not disturb the workload. Probabilities hold for
//! each operation alone; dependence on wear is ignored.

use crate::rng::Rng;

/// What to inject. The default injects nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FaultSettings {
    /// Probability that a page program reports failure; the block is bad from then on, its earlier pages stay readable.
    pub program_fail: f64,
    /// Probability that an erase reports failure; the block is bad from then on.
    pub erase_fail: f64,
    /// Probability that the first attempt to read a page cannot be corrected; a retry with shifted references can.
    pub read_fail: f64,
    /// Share of blocks that are bad when the drive leaves the factory.
    pub initial_bad: f64,
    /// The power fails during this flash operation (1 = the first), which is left undone or half done.
    pub power_cut_at: Option<u64>,
}

impl FaultSettings {
    /// Whether anything at all is injected.
    pub fn any(&self) -> bool {
        *self != FaultSettings::default()
    }
}

/// The source of injected faults during one run.
#[derive(Debug, Clone)]
pub struct Faults {
    settings: FaultSettings,
    rng: Rng,
}

impl Faults {
    /// Faults of `settings`, drawn from `seed`.
    pub fn new(settings: FaultSettings, seed: u64) -> Self {
        Faults { settings, rng: Rng::new(seed, 0xfa17) }
    }

    /// Whether the next program fails.
    pub fn program_fails(&mut self) -> bool {
        self.rng.chance(self.settings.program_fail)
    }

    /// Whether the next erase fails.
    pub fn erase_fails(&mut self) -> bool {
        self.rng.chance(self.settings.erase_fail)
    }

    /// Whether the first attempt of the next read fails.
    pub fn read_fails(&mut self) -> bool {
        self.rng.chance(self.settings.read_fail)
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
