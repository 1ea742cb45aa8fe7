//! Counts and energies of flash operations.

use crate::units::Picojoules;

/// Flash operations since the run began.
// Each energy is beside its count: grouped energies would be loaded in pairs after single stores, which is slow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NandCounters {
    /// Reads of pages.
    pub reads: u64,
    /// Energy of reads.
    pub read_energy: Picojoules,
    /// Reads whose first attempt was uncorrectable.
    pub retries: u64,
    /// Programs of pages, all kinds.
    pub programs: u64,
    /// Energy of first programs.
    pub program_energy: Picojoules,
    /// Programs that wrote only part of a page.
    pub partial_programs: u64,
    /// Programs of pages that were programmed already since their erase.
    pub reprograms: u64,
    /// Energy of re-programs.
    pub reprogram_energy: Picojoules,
    /// Erases of blocks.
    pub erases: u64,
    /// Energy of erases.
    pub erase_energy: Picojoules,
    /// Erases of blocks with a low page that had been programmed again.
    pub reused_erases: u64,
    /// Erases of blocks that always hold one bit a cell.
    pub single_erases: u64,
    /// Programs that reported failure.
    pub failed_programs: u64,
    /// Erases that reported failure.
    pub failed_erases: u64,
    /// Pages copied before a program of another page of their word line.
    pub pair_copies: u64,
    /// Pages that such a program corrupted and that are since read from a copy; counted again after each power cut.
    pub pair_rescues: u64,
}

crate::state!(NandCounters {
    reads,
    retries,
    programs,
    partial_programs,
    reprograms,
    erases,
    reused_erases,
    single_erases,
    failed_programs,
    failed_erases,
    pair_copies,
    pair_rescues,
    read_energy,
    program_energy,
    reprogram_energy,
    erase_energy
});

impl NandCounters {
    /// Energy of all operations, modulo 2^64.
    #[inline]
    pub fn energy(&self) -> Picojoules {
        let programs = self.program_energy.wrapping_add(self.reprogram_energy);
        self.read_energy.wrapping_add(programs).wrapping_add(self.erase_energy)
    }

    fn each(&mut self) -> [&mut u64; 16] {
        [
            &mut self.reads,
            &mut self.retries,
            &mut self.programs,
            &mut self.partial_programs,
            &mut self.reprograms,
            &mut self.erases,
            &mut self.reused_erases,
            &mut self.single_erases,
            &mut self.failed_programs,
            &mut self.failed_erases,
            &mut self.pair_copies,
            &mut self.pair_rescues,
            &mut self.read_energy,
            &mut self.program_energy,
            &mut self.reprogram_energy,
            &mut self.erase_energy,
        ]
    }

    /// The difference to the earlier counters `before`, modulo 2^64, because energies of programs are corrected
    /// downwards.
    pub(super) fn since(&self, before: &NandCounters) -> NandCounters {
        let mut added = self.clone();
        added.take_back(before);
        added
    }

    /// These counters with the erases of `other`.
    pub fn with_erases_of(self, other: &NandCounters) -> NandCounters {
        let &NandCounters { erases, erase_energy, reused_erases, single_erases, failed_erases, .. } = other;
        NandCounters { erases, erase_energy, reused_erases, single_erases, failed_erases, ..self }
    }

    /// Subtracts `added`.
    pub(super) fn take_back(&mut self, added: &NandCounters) {
        let mut added = added.clone();
        self.each().into_iter().zip(added.each()).for_each(|(count, added)| *count = count.wrapping_sub(*added));
    }
}
