//! The conservation laws at the end of every run: counts of operations and requests from two sources must agree.
//! Ignored: contents, which the shadow verifies.

use super::super::Fidelity;
use super::Session;
use palimpsest_flash::error::{Error, Result};

impl Session<'_> {
    /// Checks the laws at the end of a run.
    ///
    /// # Errors
    /// [`Error::Rule`] with the broken law: a bug of the simulator.
    pub fn check(&mut self) -> Result<()> {
        let broken = |law: String| Error::Rule(format!("a conservation law does not hold: {law}"));
        self.drive.ftl.check(&self.drive.io).map_err(broken)?;
        let (nand, io) = (self.drive.io.nand.counters(), &self.drive.io.counters);
        let same = |what: &str, one: u64, two: u64| {
            if one == two { Ok(()) } else { Err(broken(format!("{what}: {one} against {two}"))) }
        };
        same("programs by cause and programs of flash", io.programs.iter().sum(), nand.programs)?;
        same("reads by cause and reads of flash", io.reads.iter().sum(), nand.reads)?;
        same("erases of all blocks and erases of flash", self.drive.io.nand.sum_of_erases(), nand.erases)?;
        if self.options.fidelity == Fidelity::Timed {
            let requests = &self.tally.requests;
            let submitted = requests.read + requests.write + requests.trim + requests.flush;
            same("requests submitted and completed", submitted, self.recorder.all().count())?;
            same("requests still outstanding", u64::from(self.drive.outstanding()), 0)?;
            self.check_energy()?;
        }
        Ok(())
    }

    /// The energy of the windows must equal the energy of all operations since the measurement began.
    fn check_energy(&mut self) -> Result<()> {
        let now = self.drive.engine.now();
        self.recorder.meter_rest(now, self.drive.engine.energy_at(now));
        let planned = self.drive.io.nand.counters().energy().wrapping_sub(self.baseline.nand.energy()) as i64;
        if self.worn_out.is_none() && planned != self.recorder.energy() {
            let law = format!("energy over time and of flash: {} against {planned} pJ", self.recorder.energy());
            return Err(Error::Rule(format!("a conservation law does not hold: {law}")));
        }
        Ok(())
    }
}
