//! Die failures: from an operation on, a die reads, programs and erases no more. Flash models the effect.
//!
//! The schedule counts planned flash operations from the start of the measured part of the run or of its warm-up; each
//! die fails at most once. Ignored: dies that recover.

use super::Fault;
use super::schedule::{Draws, Schedule};
use palimpsest_flash::rng::Rng;
use palimpsest_flash::units::parse::Parsed;
use palimpsest_ftl_api::keys::Notated;
use palimpsest_ftl_api::{keys, refuse_if};

pub const FAULT: Fault = Fault {
    keys: KEYS,
    loses_data: true,
    check: |proposal| {
        let (failures, dies) = (DieFailureSettings::new(proposal.settings).failures.0, proposal.dies);
        if failures == Schedule::Never {
            return Ok(());
        }
        let named = failures.listed();
        let missing = named.len() > dies as usize || named.iter().any(|(_, die)| die.is_some_and(|die| die >= dies));
        refuse_if!(missing => "faults.die_failure";
            "the drive has {dies} dies; expected each to fail once, and dies from 0 to {}", dies - 1);
        refuse_if!(!proposal.layer.outlives_dies => "faults.die_failure", "ftl.name";
            "this layer does not go on when a die has failed; expected never, or one of {}",
            proposal.layers_with(|layer| layer.outlives_dies));
        refuse_if!(proposal.kept_blocks > 0 => "faults.die_failure", "ftl.checkpoint", "part.pair_corruption"
            => ["faults.die_failure" = "never"], ["ftl.checkpoint" = "0B", "part.pair_corruption" = "false"];
            "checkpoints and pair copies are on one die");
        Ok(())
    },
    start: |start, drive| {
        let nand = &mut drive.io.nand;
        // An image is served many times, so operations count from its creation.
        let begun = if nand.has_image() { 0 } else { nand.operations() };
        let failures = DieFailureSettings::new(start.settings).failures.0;
        nand.fail_dies(&draw(failures, start.dies, start.seed, begun));
    },
    note: |drive| {
        let failed: Vec<String> = drive.io.nand.failed_dies().iter().map(u32::to_string).collect();
        Some(match failed.len() {
            0 => "no die failed: the run had fewer flash operations than that (faults.die_failure)".into(),
            1 => format!("die {} failed", failed[0]),
            _ => format!("dies {} failed, in this order", failed.join(", ")),
        })
    },
    draw: |rng, _| vec![format!("faults.die_failure=at:{}", 1 + rng.below(600))],
    ..Fault::PLAIN
};

keys! {
    /// The settings of die failures.
    struct DieFailureSettings;

    /// The key of die failures.
    group KEYS {
        /// flash operations after preconditioning in which a die fails: never, at:N@DIE,N (a die is drawn where none is
        /// named), every:N, or poisson:N
        failures: DieFailures = "faults.die_failure", DieFailures::KIND, "never";
    }
}

/// The schedule of die failures.
struct DieFailures(Schedule);

impl Notated for DieFailures {
    const WORDS: &'static [&'static str] = &["never"];
    const EXPECTED: &'static str = "never, at:50k@3,80k (ascending operations, a die once), every:50k, or \
                                    poisson:50k (flash operations)";

    fn parse(text: &str) -> Parsed<DieFailures> {
        Schedule::parse(text, true, "failing dies", Self::EXPECTED).map(DieFailures)
    }

    fn text(&self) -> String {
        self.0.text()
    }
}

/// The failures of a drive of `dies` dies, drawn from `seed`: pairs of operation and die, after `operations` flash
/// operations. Each die fails at most once.
fn draw(schedule: Schedule, dies: u32, seed: u64, operations: u64) -> Vec<(u64, u32)> {
    let is_named = |die: &u32| schedule.listed().iter().any(|(_, named)| named == &Some(*die));
    let mut left: Vec<u32> = (0..dies).filter(|die| !is_named(die)).collect();
    let (mut draws, mut last) = (Draws::new(schedule, Rng::new(seed, 0xd1ef), operations), operations);
    std::iter::from_fn(|| {
        let (at, named) = draws.next_with_die(last)?;
        last = at;
        let die = match named {
            Some(die) => die,
            None if left.is_empty() => return None,
            None => left.swap_remove(draws.rng.below(left.len() as u64) as usize),
        };
        Some((at, die))
    })
    .collect()
}

#[cfg(test)]
mod tests;
