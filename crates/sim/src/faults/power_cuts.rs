//! Power cuts: a schedule that repeats from recovery to recovery, and the single cut of `faults.power_cut_at`.
//!
//! The schedule counts flash operations that have run since its start; operations of a timed run that are planned but
//! not begun do not count. The single cut counts all operations of the drive, preconditioning included. Ignored: cuts
//! during recovery (the model suite has them), and the time without power.

use super::schedule::{Draws, Schedule};
use super::{Fault, Power};
use palimpsest_flash::nand::faults::POWER_CUT_AT;
use palimpsest_flash::rng::Rng;
use palimpsest_flash::units::parse::Parsed;
use palimpsest_ftl_api::keys::Notated;
use palimpsest_ftl_api::{keys, refuse_if};

/// One cut, which flash itself counts.
pub const ONE: Fault = Fault {
    keys: POWER_CUT_AT,
    power: Power::FailsOnce,
    draw: |rng, geometry| vec![format!("faults.power_cut_at={}", 1 + rng.below(2 * geometry.pages()))],
    ..Fault::PLAIN
};

/// Cuts by a schedule.
pub const MANY: Fault = Fault {
    keys: KEYS,
    power: Power::FailsAgain,
    check: |proposal| {
        refuse_if!(ONE.is_on(proposal.settings) && MANY.is_on(proposal.settings)
            => "faults.power_cut_at", "faults.power_cuts"
            => ["faults.power_cut_at" = "0"], ["faults.power_cuts" = "never"]; "the power fails by one of the two");
        Ok(())
    },
    start: |start, drive| {
        let schedule = PowerCutSettings::new(start.settings).cuts.0;
        drive.schedule_power_cuts(draws(schedule, start.seed, drive.operations_run()));
    },
    draw: |rng, _| {
        let kind = ["every", "poisson"][rng.below(2) as usize];
        vec![format!("faults.power_cuts={kind}:{}", 150 + rng.below(300)), "ssd.over_provisioning=400%".into()]
    },
    ..Fault::PLAIN
};

keys! {
    /// The settings of power cuts.
    struct PowerCutSettings;

    /// The key of power cuts.
    group KEYS {
        /// flash operations after preconditioning in which the power fails: never, every:N, at:N,N, or poisson:N (N
        /// apart in the mean)
        cuts: PowerCuts = "faults.power_cuts", PowerCuts::KIND, "never";
    }
}

/// The schedule of power cuts.
struct PowerCuts(Schedule);

impl Notated for PowerCuts {
    const WORDS: &'static [&'static str] = &["never"];
    const EXPECTED: &'static str =
        "never, every:50k, at:1000,2000 (ascending), or poisson:50k, in flash operations from 1";

    fn parse(text: &str) -> Parsed<PowerCuts> {
        Schedule::parse(text, false, "power cuts", Self::EXPECTED).map(PowerCuts)
    }

    fn text(&self) -> String {
        self.0.text()
    }
}

/// The power cuts of `schedule`, drawn from `seed`, after `operations` flash operations.
pub fn draws(schedule: Schedule, seed: u64, operations: u64) -> Draws {
    Draws::new(schedule, Rng::new(seed, 0xc075), operations)
}
