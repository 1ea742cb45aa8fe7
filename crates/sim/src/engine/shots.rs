//! Programs of whole word lines in one shot: their pages cross the bus one after the other, so that other dies have their turn between them,
//! and the array begins when the die has them all.
//!
//! With the cache register a die takes in the first pages of the next word line while its array programs one, as many as it has registers
//! for (`part.cache_pages`), and the others when that has ended. What a suspension finds in the die stays there, and no page follows
//! until the array goes on. Ignored: registers that the array is done with before the shot has ended, and when the host link brings all pages of
//! a word line but the last.

use super::super::events::Event;
use super::super::settings::Suspend;
use super::Engine;
use super::die::Batch;
use palimpsest_flash::units::Nanos;

impl Batch {
    /// The array, which works for `array`, does not begin before a moment that is not known yet.
    pub(super) fn not_before_loaded(&mut self, array: Nanos) {
        (self.array_from, self.array_until) = (Nanos::MAX - array, Nanos::MAX);
    }
}

impl Engine {
    /// Starts the programs of the batch that has entered `die`, of a word line each: the first pages of these go to the die.
    #[inline(never)]
    pub(super) fn start_shot(&mut self, die: u32, behind: bool) {
        let Some(entered) = self.dies[die as usize].entered(behind) else { return };
        let mut batch = *entered;
        let arrays = batch.operations().iter().map(|&index| self.pending[index].array);
        batch.not_before_loaded(arrays.max().unwrap_or(0).into());
        batch.unloaded = self.loads_of(&batch);
        // The last page may come later than the host link has brought it: that is checked then.
        batch.operations().iter().for_each(|&index| self.note_start(index, Nanos::MAX));
        self.load(die, &mut batch);
        if let Some(entered) = self.dies[die as usize].entered(behind) {
            *entered = batch;
        }
    }

    /// Pages of the word lines that `batch` programs.
    fn loads_of(&self, batch: &Batch) -> u8 {
        self.pending.loads(batch.operations()[0])
    }

    /// The next page of each word line of `batch` takes its turn on the bus.
    fn load(&mut self, die: u32, batch: &mut Batch) {
        let channel = self.dies[die as usize].channel as usize;
        let loads = self.loads_of(batch);
        let (first, last) = (batch.unloaded == loads, batch.unloaded == 1);
        batch.unloaded -= 1;
        let mut loaded = self.now;
        for &index in batch.operations() {
            let data_at = self.pending.data_at(index);
            let time = self.t_command + self.transfers.time(self.pending[index].bytes / u32::from(loads));
            loaded = self.buses[channel].take(self.now, time);
            let from = loaded - time;
            // Cut through, as any program: what comes last over the host link is in the last page.
            if last && data_at > loaded {
                loaded = data_at;
                self.buses[channel].free_at = loaded;
            }
            let commanded = from + self.t_command;
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

    /// Goes on loading word lines into `die`, unless a page is on its way or there is no register for the next one.
    pub(super) fn load_on(&mut self, die: u32) {
        let now = self.now;
        let waits = |batch: &Batch| batch.unloaded > 0 && batch.loaded <= now;
        let state = &self.dies[die as usize];
        if let Some(mut front) = state.front.filter(waits) {
            self.load(die, &mut front);
            if front.unloaded == 0 {
                self.fire(&mut front, 0);
                self.finish_at(die, front.array_until);
                if self.settings.cache_register || self.settings.suspend == Suspend::ProgramErase {
                    self.wake_at(die, front.array_from);
                }
            }
            self.dies[die as usize].front = Some(front);
        } else if let (Some(front), Some(mut back)) = (state.front, state.back.filter(waits))
            && self.loads_of(&back) - back.unloaded < self.cache_pages
        {
            self.load(die, &mut back);
            if back.unloaded == 0 {
                self.fire(&mut back, front.array_until);
            }
            self.dies[die as usize].back = Some(back);
        }
    }

    /// All of `batch` is in the die, or on its way: the array begins then, if it is free at `free_at`.
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
