//! The run-in: the measured load, in time and without figures, until the drive is as this load keeps it.
//!
//! Preconditioning is counted, so at its end the write buffer is empty, no operation waits, and the caches of the
//! controller hold what the preconditioning left. A copy of the workload without end brings them to the level of the
//! load. The run-in ends when the rate of the last rounds has a range of at most 20 % of its mean (SNIA's criterion),
//! and the level of the write buffer changes no more; at the latest after [`MOST_ROUNDS`]. Then its requests complete,
//! with `buffer.start=empty` all buffered data is programmed, and the workload begins. Ignored: that collection takes
//! far longer to be steady, which the evidence of the run tells.

use super::Session;
use crate::metrics::summary::RunIn;
use crate::run::{Fidelity, Phase, Warmup};
use palimpsest_flash::error::Result;
use palimpsest_flash::units::Nanos;
use palimpsest_sim::faults;
use palimpsest_workload::request::Source;

/// Requests of the first rounds; after so many rounds the next ones are twice as long, because their rates scatter
/// less.
const FIRST_REQUESTS: u64 = 2000;
const ROUNDS_OF_LENGTH: usize = 8;
/// Rounds that must be alike, and most rounds.
const ALIKE: usize = 4;
const MOST_ROUNDS: usize = 32;
/// The largest range of their rates as a share of the mean, and of the buffer's level as a share of its size.
const MOST_RANGE: f64 = 0.20;
const MOST_CHANGE: f64 = 0.05;

/// A round: requests a nanosecond, and the level of the write buffer at its end as a share of its size.
struct Round {
    rate: f64,
    level: f64,
}

impl Session<'_> {
    /// True if the drive begins the measurement as the load keeps it, and not as preconditioning left it.
    fn needs_run_in(&self) -> bool {
        let faults = faults::of(&self.config.ftl).next().is_some();
        self.options.warmup == Warmup::Auto
            && self.options.fidelity == Fidelity::Timed
            && self.tally.precondition_bytes > 0
            && self.drive.zones().is_none()
            && !faults
    }

    /// Runs `load`, which never ends, until the drive is stationary; `None` if the run needs none.
    ///
    /// # Errors
    /// As the run.
    pub(in crate::run) fn run_in(&mut self, load: Option<&mut dyn Source>) -> Result<Option<RunIn>> {
        let Some(load) = load.filter(|_| self.needs_run_in()) else { return Ok(None) };
        self.expect(Phase::Warmup, 0)?;
        self.drive.reports.warming_up = true;
        let begin = self.drive.engine.now();
        let mut rounds: Vec<Round> = Vec::new();
        while rounds.len() < MOST_ROUNDS && !is_stationary(&rounds) && !self.watch.interrupted {
            rounds.push(self.round(load, rounds.len())?);
        }
        while self.drive.outstanding() > 0 {
            self.advance_to(Nanos::MAX)?;
        }
        if self.config.host.starts_empty {
            self.drive.program_buffers()?;
            self.drain()?;
        }
        self.drive.reports.warming_up = false;
        let requests = self.intake.submitted;
        let now = self.drive.engine.now();
        self.restart_intake(now);
        Ok(Some(RunIn { requests, ns: now - begin, stationary: is_stationary(&rounds) }))
    }

    fn round(&mut self, load: &mut dyn Source, number: usize) -> Result<Round> {
        let begin = self.drive.engine.now();
        let requests = FIRST_REQUESTS << (number / ROUNDS_OF_LENGTH);
        self.drive_some(load, requests)?;
        let time = (self.drive.engine.now() - begin).max(1);
        let (used, size) = self.drive.buffer_level();
        Ok(Round { rate: requests as f64 / time as f64, level: used as f64 / size.max(1) as f64 })
    }
}

/// True if the last rounds are alike.
fn is_stationary(rounds: &[Round]) -> bool {
    let Some(last) = rounds.len().checked_sub(ALIKE).map(|first| &rounds[first..]) else { return false };
    let range = |of: &dyn Fn(&Round) -> f64| {
        let most = last.iter().map(of).fold(f64::NEG_INFINITY, f64::max);
        let least = last.iter().map(of).fold(f64::INFINITY, f64::min);
        most - least
    };
    let mean = last.iter().map(|round| round.rate).sum::<f64>() / ALIKE as f64;
    range(&|round| round.rate) <= MOST_RANGE * mean && range(&|round| round.level) <= MOST_CHANGE
}
