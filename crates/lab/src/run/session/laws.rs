//! The conservation laws at the end of every run: counts of operations and requests from two sources must agree.
//! Ignored: contents, which the shadow verifies.

use super::super::Fidelity;
use super::Session;
use crate::metrics::summary::Requests;
use palimpsest_flash::error::{Error, Result};
use palimpsest_ftl_api::plan::Cause;

impl Session<'_> {
    /// Checks the laws at the end of a run.
    ///
    /// # Errors
    /// [`Error::Rule`] with the broken law: a bug of the simulator.
    pub fn check(&mut self) -> Result<()> {
        let broken = |law: String| Error::Rule(format!("a conservation law does not hold: {law}"));
        if self.worn_out.is_none() {
            self.drive.ftl.check(&self.drive.io).map_err(broken)?;
        }
        let same = |what: &str, one: u64, two: u64| {
            if one == two { Ok(()) } else { Err(broken(format!("{what}: {one} against {two}"))) }
        };
        let nand = self.drive.io.nand.counters();
        let io = &self.drive.io.counters;
        same("programs by cause and programs of flash", io.programs.iter().sum(), nand.programs)?;
        same("reads by cause and reads of flash", io.reads.iter().sum(), nand.reads)?;
        same("erases of all blocks and erases of flash", self.drive.io.nand.sum_of_erases(), nand.erases)?;
        if self.options.fidelity == Fidelity::Timed {
            let Requests { read, write, trim, flush } = self.tally.requests;
            let answered = self.recorder.all().count() + self.tally.untimed;
            same("requests submitted and completed", read + write + trim + flush, answered)?;
            same("requests still outstanding", u64::from(self.drive.outstanding()), 0)?;
            same("flash operations still outstanding", u64::from(self.drive.engine.outstanding()), 0)?;
            let planned = self.planned();
            let series = self.recorder.flash();
            let nand_before = &self.baseline.nand;
            let io_before = &self.baseline.io;
            let sum = |counts: &[u64]| counts.iter().sum::<u64>();
            same("programs of flash and over time", nand.programs - nand_before.programs, series.programs)?;
            same("reads of flash and over time", nand.reads - nand_before.reads, series.reads)?;
            same("erases of flash and over time", nand.erases - nand_before.erases, series.erases)?;
            let moved = [Cause::Gc, Cause::Merge].map(|cause| io_before.programs[cause as usize]);
            same("programs of collection, and over time", planned.gc_programs - sum(&moved), series.gc_programs)?;
            same("data programmed, and over time", io.data_bytes - io_before.data_bytes, series.data_bytes)?;
            same("bytes of the host, and over time", planned.host_bytes, series.host_bytes)?;
            same("retries, and over time", nand.retries - nand_before.retries, series.retries)?;
            same("lost subpages, and over time", planned.lost - sum(&io_before.lost), series.lost)?;
            self.check_energy()?;
        }
        Ok(())
    }

    /// The energy of the windows must equal the energy of all operations since the measurement began.
    fn check_energy(&self) -> Result<()> {
        let flash = self.energy_planned();
        let series = self.recorder.energy();
        if flash != series {
            let law = format!("energy over time and of flash: {series} against {flash} pJ");
            return Err(Error::Rule(format!("a conservation law does not hold: {law}")));
        }
        Ok(())
    }
}
