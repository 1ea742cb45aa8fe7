//! A script of requests on a drive, and the content of the drive after a power cut in any one flash operation.
//!
//! Each cut starts with a new drive, which gets the script up to the request with the operation. The layer recovers
//! from flash, and all data of the script is read back. The power may fail again in the recovery. The verifier checks
//! the layer's guarantee: durable data must survive. Ignored: time, because requests are counted one by one, and an
//! operation is complete or torn.

use super::super::precondition::Precondition;
use super::{Failure, Served};
use crate::config::Resolved;
use crate::run::{Fidelity, Options};
use palimpsest_flash::command::Command;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::geometry::{Extent, RequestKind};
use palimpsest_flash::units::SECTOR_BYTES;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// A request of a script.
#[derive(Debug, Clone, Copy)]
pub enum Step<'a> {
    /// Writes whole units from this byte on.
    Write {
        /// First byte.
        offset: u64,
        /// The written bytes.
        bytes: &'a [u8],
    },
    /// Makes all earlier writes durable.
    Flush,
}

/// Power cuts of one life.
#[derive(Debug, Clone, Default)]
pub struct Cut {
    /// The flash operation of the cut since the drive was new, from 1.
    pub operation: u64,
    /// The operations of further cuts in consecutive recoveries.
    pub in_recovery: Vec<u64>,
}

/// The result of a cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// The step in which the power failed.
    pub step: usize,
    /// Flash operations of the layer's last recovery, in each of which another cut is possible.
    pub recovery_operations: u64,
    /// Units with another content than the earlier steps wrote, by number, with their content. Contents of
    /// preconditioning are unknown: a unit that the step wrote first is listed only with the step's content.
    pub changed: Vec<(u64, Vec<u8>)>,
}

/// The drive for scripts. Power cuts must be enabled (`faults.power_cut_at`), so that reads are verified as after a
/// cut.
pub struct Scripts<'a> {
    /// The drive.
    pub resolved: &'a Resolved,
    /// Options of a served, counted drive.
    pub options: &'a Options,
    /// Bytes of a unit.
    pub unit: u64,
}

fn failed(failure: Failure) -> Error {
    match failure {
        Failure::PowerLost => Error::DriveFailed("the power failed".into()),
        Failure::Unreadable => Error::DriveFailed("what was written cannot be read (ecc.*)".into()),
        Failure::WornOut(why) => Error::WornOut(why),
        Failure::Zone(status) => Error::DriveFailed(format!("the drive refused with {}", status.name())),
        Failure::Drive(error) => error,
    }
}

impl Scripts<'_> {
    fn extent(offset: u64, length: u64) -> Extent {
        Extent { sector: offset / SECTOR_BYTES, sectors: (length / SECTOR_BYTES) as u32 }
    }

    fn play(&self, served: &mut Served<'_>, step: Step<'_>, bytes: &mut Vec<u8>) -> std::result::Result<(), Failure> {
        match step {
            Step::Flush => served.flush(),
            Step::Write { offset, bytes: written } => {
                bytes.clear();
                bytes.extend_from_slice(written);
                let extent = Self::extent(offset, written.len() as u64);
                served.write(Command::new(RequestKind::Write, extent), bytes, 0)
            }
        }
    }

    /// # Errors
    /// [`Error::Input`] for a drive or steps that do not fit.
    fn check(&self, steps: &[Step<'_>]) -> Result<()> {
        let (unit, bytes) = (self.unit, self.resolved.drive.logical_bytes());
        if self.options.fidelity == Fidelity::Timed || !self.resolved.drive.loses_power() {
            return Err(Error::input("crash", "expected a counted drive whose power may fail (faults.power_cut_at)"));
        }
        let fits = |step: &Step<'_>| match *step {
            Step::Flush => true,
            Step::Write { offset, bytes: written } => {
                let length = written.len() as u64;
                let whole = length > 0 && offset.is_multiple_of(unit) && length.is_multiple_of(unit);
                whole && offset.checked_add(length).is_some_and(|end| end <= bytes)
            }
        };
        match unit > 0 && unit.is_multiple_of(SECTOR_BYTES) && steps.iter().all(fits) {
            true => Ok(()),
            false => {
                Err(Error::input("crash", format!("expected writes of whole units within the drive, {bytes} bytes")))
            }
        }
    }

    /// Flash operations of the drive after each of `steps`, without a power cut.
    ///
    /// # Errors
    /// Errors of the drive.
    pub fn operations(&self, steps: &[Step<'_>]) -> Result<Vec<u64>> {
        self.check(steps)?;
        let (mut watcher, mut bytes) = (|_| ControlFlow::Continue(()), Vec::new());
        let mut served = Served::new(self.resolved, self.options, &mut watcher)?;
        served.session.drive.io.nand.set_power_cut_at(None);
        let after = steps.iter().map(|&step| {
            self.play(&mut served, step, &mut bytes).map_err(failed)?;
            Ok(served.session.drive.io.nand.operations())
        });
        after.collect()
    }

    /// The result of `cut` in `steps`; `None` if the cut is after their end.
    ///
    /// # Errors
    /// Errors of the drive; [`Error::Rule`] if the layer lost durable data.
    pub fn left(&self, steps: &[Step<'_>], cut: &Cut) -> Result<Option<Left>> {
        self.check(steps)?;
        let (mut watcher, mut bytes) = (|_| ControlFlow::Continue(()), Vec::new());
        let mut served = Served::new(self.resolved, self.options, &mut watcher)?;
        served.session.drive.io.nand.set_power_cut_at(Some(cut.operation));
        served.session.drive.cut_recoveries(cut.in_recovery.clone());
        let mut cut_in = None;
        for (number, &step) in steps.iter().enumerate() {
            match self.play(&mut served, step, &mut bytes) {
                Ok(()) => {}
                Err(Failure::PowerLost) => {
                    cut_in = Some(number);
                    break;
                }
                Err(failure) => return Err(failed(failure)),
            }
        }
        let Some(step) = cut_in else { return Ok(None) };
        let recovery_operations =
            served.session.drive.power.recoveries.last().map_or(0, |recovery| recovery.operations);
        let changed = self.changed(&mut served, &steps[..step], &steps[step])?;
        Ok(Some(Left { step, recovery_operations, changed }))
    }

    /// Units written by `done` or the interrupted step `broken` whose content differs from `done`.
    fn changed(&self, served: &mut Served<'_>, done: &[Step<'_>], broken: &Step<'_>) -> Result<Vec<(u64, Vec<u8>)>> {
        let zeros = vec![0; self.unit as usize];
        let mut holds: BTreeMap<u64, &[u8]> = BTreeMap::new();
        let units = |offset: u64, bytes: &'_ [u8]| (offset / self.unit..).take(bytes.len() / self.unit as usize);
        for step in done {
            if let Step::Write { offset, bytes } = *step {
                holds.extend(units(offset, bytes).zip(bytes.chunks_exact(self.unit as usize)));
            }
        }
        let (mut changed, mut read) = (Vec::new(), Vec::new());
        let is_new = self.options.precondition == Precondition::None;
        if let Step::Write { offset, bytes } = *broken {
            for (unit, written) in units(offset, bytes).zip(bytes.chunks_exact(self.unit as usize)) {
                if is_new {
                    holds.entry(unit).or_insert(&zeros);
                } else if !holds.contains_key(&unit) {
                    read.clear();
                    served.read(Self::extent(unit * self.unit, self.unit), &mut read).map_err(failed)?;
                    changed.extend((read == written).then(|| (unit, read.clone())));
                }
            }
        }
        for (unit, held) in holds {
            read.clear();
            served.read(Self::extent(unit * self.unit, self.unit), &mut read).map_err(failed)?;
            if read != held {
                changed.push((unit, read.clone()));
            }
        }
        Ok(changed)
    }
}
