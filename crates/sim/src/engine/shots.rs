//! Programs of whole word lines in one shot: the pages cross the bus one after another, so that other dies may use the
//! bus between them. The array starts when the die has all pages.
//!
//! With the cache register a die loads the first pages of the next word line while its array programs another, up to
//! its number of registers (`part.cache_pages`). The other pages follow after that program has ended. Loaded pages stay
//! in the die during a suspension, and no more are loaded until the array resumes. Ignored: registers that the array
//! frees before the shot has ended, and the arrival over the host link of all pages of a word line but the last.

use super::super::events::Event;
use super::super::settings::Suspend;
use super::Engine;
use super::die::Batch;
use palimpsest_flash::units::Nanos;

impl Batch {
    /// Keeps the array's work of length `array` from starting, because the time of the last page is not known yet.
    pub(super) fn not_before_loaded(&mut self, array: Nanos) {
        (self.array_from, self.array_until) = (Nanos::MAX - array, Nanos::MAX);
    }
}

impl Engine {
    /// Starts the programs of the batch that has entered `die`, one word line each, and loads their first pages.
    #[inline(never)]
    pub(super) fn start_shot(&mut self, die: u32, behind: bool) {
        let Some(entered) = self.hardware.dies[die as usize].entered(behind) else { return };
        let mut batch = *entered;
        let arrays = batch.operations().iter().map(|&index| self.pending[index].array);
        batch.not_before_loaded(arrays.max().unwrap_or(0).into());
        batch.unloaded = self.loads_of(&batch);
        // The last page may arrive over the host link after this start; `fire` checks that.
        batch.operations().iter().for_each(|&index| self.note_start(index, Nanos::MAX));
        self.load(die, &mut batch);
        if let Some(entered) = self.hardware.dies[die as usize].entered(behind) {
            *entered = batch;
        }
    }

    /// Pages per word line of `batch`.
    fn loads_of(&self, batch: &Batch) -> u8 {
        self.pending.loads(batch.operations()[0])
    }

    /// Sends the next page of each word line of `batch` over the bus.
    fn load(&mut self, die: u32, batch: &mut Batch) {
        let channel = self.hardware.dies[die as usize].channel as usize;
        let loads = self.loads_of(batch);
        let (first, last) = (batch.unloaded == loads, batch.unloaded == 1);
        batch.unloaded -= 1;
        let mut loaded = self.now;
        for &index in batch.operations() {
            let data_at = self.pending.data_at(index);
            let time =
                self.setup.t_command + self.hardware.transfers.time(self.pending[index].bytes / u32::from(loads));
            loaded = self.hardware.buses[channel].take(self.now, time);
            let from = loaded - time;
            // Cut-through, as for any program: the last page holds the data that arrives last over the host link.
            if last && data_at > loaded {
                loaded = data_at;
                self.hardware.buses[channel].free_at = loaded;
            }
            let commanded = from + self.setup.t_command;
            if let Some(timeline) = &mut self.timeline {
                match first {
                    true => timeline.commanded(index, from, commanded, loaded),
                    false => timeline.loaded(index, loaded),
                }
            }
        }
        batch.loaded = loaded;
        if !last {
            self.events.push(loaded, Event::Loaded(die));
        }
    }

    /// Continues to load word lines into `die`, unless a page is on the bus or no register is free.
    pub(super) fn load_on(&mut self, die: u32) {
        let now = self.now;
        let waits = |batch: &Batch| batch.unloaded > 0 && batch.loaded <= now;
        let state = &self.hardware.dies[die as usize];
        if let Some(mut front) = state.front.filter(waits) {
            self.load(die, &mut front);
            if front.unloaded == 0 {
                self.fire(&mut front, 0);
                self.finish_at(die, front.array_until);
                if self.setup.settings.cache_register || self.setup.settings.suspend == Suspend::ProgramErase {
                    self.wake_at(die, front.array_from);
                }
            }
            self.hardware.dies[die as usize].front = Some(front);
        } else if let (Some(front), Some(mut back)) = (state.front, state.back.filter(waits))
            && self.loads_of(&back) - back.unloaded < self.setup.cache_pages
        {
            self.load(die, &mut back);
            if back.unloaded == 0 {
                self.fire(&mut back, front.array_until);
            }
            self.hardware.dies[die as usize].back = Some(back);
        }
    }

    /// Sets the array's times of `batch`, which is loaded or has its last page on the bus. The array is free at
    /// `free_at`.
    fn fire(&mut self, batch: &mut Batch, free_at: Nanos) {
        let array = batch.array_until - batch.array_from;
        batch.array_from = batch.loaded.max(free_at);
        batch.array_until = batch.array_from + array;
        for &index in batch.operations() {
            if self.power_cut.is_some() {
                self.time_power_cut(index, batch.array_from);
            }
            if let Some(causality) = &mut self.causality {
                causality.loaded(self.pending[index].order, batch.loaded);
            }
        }
        let noted = &*batch;
        self.noted(move |engine| engine.record_array(noted.operations(), noted.array_from));
    }
}
