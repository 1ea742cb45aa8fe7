//! Dies: which operation starts next, how long it runs, which run together, and which are suspended. A read may suspend
//! a program while the cache register holds the next page, because planes have enough latches to keep that page.
//! Ignored: parts that must load the page again.

use super::super::events::Event;
use super::super::settings::{MultiPlane, Suspend};
use super::ahead::ask_for_waiter;
use super::die::{Batch, Die, MOST_PLANES};
use super::energy::energy_of;
use super::ready::First;
use super::{Engine, STEPS};
use crate::timeline::Span;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::{Io, OperationKind};

const DIE_BITS: u32 = 16;
const GENERATIONS: u32 = 1 << 13;
/// Steps of collection compete with other programs if a plane has more of them than the pages of a block divided by
/// this.
const SHARE_OF_STEPS: u32 = 8;

impl Engine {
    /// Starts the operations that `die` can start now.
    #[inline]
    pub(super) fn kick(&mut self, io: &Io, die: u32) {
        let state = &self.hardware.dies[die as usize];
        if (state.has_ready() || state.suspended.is_some())
            && state.front.as_ref().is_none_or(|front| self.takes_more(state, front) || self.may_suspend(front))
        {
            self.start_some(io, die);
        }
    }

    /// Starts the operations that `die` can start now. The die must have a ready or suspended operation.
    #[inline(never)]
    fn start_some(&mut self, io: &Io, die: u32) {
        while let Some(first) = self.next_to_start(die) {
            self.start(io, die, first);
            if !self.hardware.dies[die as usize].has_ready() {
                return;
            }
        }
    }

    /// The next operation of `die` to start now, with its class. If there is none, may suspend the running batch for a
    /// read, or resume the suspended one.
    #[inline]
    fn next_to_start(&mut self, die: u32) -> Option<(u32, usize)> {
        let state = &self.hardware.dies[die as usize];
        let pipelined = match &state.front {
            None => None,
            Some(front) if self.takes_more(state, front) => Some(front.kind),
            Some(front) => {
                if self.may_suspend(front) {
                    self.try_suspend(die);
                }
                return None;
            }
        };
        if state.closed_until > self.now {
            return None;
        }
        if state.suspended.is_none() {
            let next = self.pick(die, pipelined);
            // The next operation may be a read, which cannot queue behind a program.
            if next.is_none() && pipelined.is_some() && self.setup.settings.suspend != Suspend::None {
                self.try_suspend(die);
            }
            return next;
        }
        self.next_beside_suspended(die, pipelined)
    }

    /// As [`Self::next_to_start`], with a suspended batch.
    #[inline(never)]
    fn next_beside_suspended(&mut self, die: u32, pipelined: Option<OperationKind>) -> Option<(u32, usize)> {
        let Some(suspended) = &self.hardware.dies[die as usize].suspended else { return None };
        let held = self.now.saturating_sub(suspended.stopped_at);
        let next = if self.starves(suspended, held) { None } else { self.pick(die, Some(OperationKind::Read)) };
        // A suspended batch does not wait for collection.
        let next = next.filter(|&(index, _)| self.may_delay(die, index));
        match (next, pipelined) {
            (Some(_), _) => {}
            (None, None) => self.resume(die),
            (None, Some(_)) => self.try_suspend(die),
        }
        next
    }

    /// True if another batch may enter the die behind `front`.
    #[inline]
    fn takes_more(&self, die: &Die, front: &Batch) -> bool {
        self.setup.settings.cache_register && die.back.is_none() && self.may_pipeline(front)
    }

    /// True if another batch of the same kind may enter the die behind `front`.
    #[inline]
    fn may_pipeline(&self, front: &Batch) -> bool {
        match front.kind {
            OperationKind::Read => front.sensed && self.setup.settings.cache_read,
            OperationKind::Program => front.array_from <= self.now,
            OperationKind::Erase => false,
        }
    }

    /// True if a suspension of `time` more would hold up `batch` for the starvation bound.
    #[inline]
    fn starves(&self, batch: &Batch, time: Nanos) -> bool {
        batch.held + time >= self.setup.settings.starvation_bound
    }

    /// True if read `index`, the next of `die`, may delay a running or suspended batch: it serves a request, or goes
    /// before one that does.
    #[inline]
    fn may_delay(&self, die: u32, index: u32) -> bool {
        !self.pending[index].is_low() && self.hardware.dies[die as usize].urgent > 0
    }

    /// The next ready operation of `die`, restricted to the kind `only` (any if `None`).
    #[inline(always)]
    fn pick(&self, die: u32, only: Option<OperationKind>) -> Option<(u32, usize)> {
        let [first, second, step] = self.hardware.dies[die as usize].first;
        let (second, class) = if step.is_none() { (second, 1) } else { self.beside_steps(second, step) };
        let (First { index, .. }, class) = if first.is_none() {
            if second.is_none() {
                return None;
            }
            (second, class)
        } else {
            let waited = !second.is_none() && second.is_older(first) && self.has_waited(second.index);
            if waited && self.may_starve(die, second.index, class) { (second, class) } else { (first, 0) }
        };
        let fits = only.is_none_or(|kind| self.pending[index].kind == kind);
        fits.then_some((index, class))
    }

    #[inline]
    fn has_waited(&self, index: u32) -> bool {
        self.now - self.pending[index].ready_at >= self.setup.settings.starvation_bound
    }

    /// True if `index`, which has waited for the starvation bound, may go before class 0. Any operation may, except
    /// steps of collection, which may be many: one step per starvation bound may, or all steps that block a write.
    #[inline]
    fn may_starve(&self, die: u32, index: u32, class: usize) -> bool {
        class != STEPS
            || self.now - self.hardware.dies[die as usize].stepped >= self.setup.settings.starvation_bound
            || self.hardware.ready[self.pending[index].plane as usize].behind_steps > 0
    }

    /// The next operation after class 0 and its class, if steps of collection are ready. `step` is the oldest step,
    /// `other` the oldest of class 1. `step` goes first only if it is older, and has waited for the bound or its plane
    /// needs space.
    fn beside_steps(&self, other: First, step: First) -> (First, usize) {
        if other.is_none() {
            return (step, STEPS);
        }
        let plane = &self.hardware.ready[self.pending[step.index].plane as usize];
        let urgent = plane.behind_steps > 0 || plane.steps > self.setup.geometry.pages_per_block / SHARE_OF_STEPS;
        let due = step.is_older(other) && (urgent || self.has_waited(step.index));
        let goes = due && !self.pending[other.index].is_low();
        if goes { (step, STEPS) } else { (other, 1) }
    }

    #[inline]
    fn start(&mut self, io: &Io, die: u32, (first, class): (u32, usize)) {
        let kind = self.pending[first].kind;
        let (behind, count) = self.gather(die, first, class);
        match kind {
            OperationKind::Read => self.start_read(die, behind),
            OperationKind::Program => self.start_program(die, first, behind),
            OperationKind::Erase => self.start_erase(die, behind),
        }
        if self.timeline.is_some() || self.power_cut.is_some() {
            self.note_array(die, behind);
        }
        let (mut index, mut left) = (first, count);
        loop {
            self.ask_for_end(io, index);
            self.noted(move |engine| engine.record_trigger(index, true));
            self.leave_block(index);
            left -= 1;
            if left == 0 {
                return;
            }
            let Some(batch) = self.hardware.dies[die as usize].entered(behind) else { return };
            index = batch.members[count - left];
        }
    }

    /// Records the start of the array's work for the batch that has just entered `die`, if that time is known.
    #[cold]
    #[inline(never)]
    fn note_array(&mut self, die: u32, behind: bool) {
        let Some(&mut batch) = self.hardware.dies[die as usize].entered(behind) else { return };
        self.record_begin(die, batch.operations());
        if batch.unloaded > 0 {
            return;
        }
        self.record_array(batch.operations(), batch.array_from);
        batch.operations().iter().for_each(|&index| self.time_power_cut(index, batch.array_from.max(self.now)));
    }

    /// Moves `first`, ready in `class`, and ready operations of other planes that may run together, into `die`. Returns
    /// whether another batch is in front, and the number of operations.
    // The batch is built in place, because loading a value just stored in parts is slow.
    #[inline]
    fn gather(&mut self, die: u32, first: u32, class: usize) -> (bool, usize) {
        let operation = &self.pending[first];
        let state = &mut self.hardware.dies[die as usize];
        let behind = state.front.is_some();
        let batch = if behind {
            &mut state.back
        } else {
            state.busy_since = self.now;
            &mut state.front
        };
        let batch = batch.insert(Batch::of(operation.kind, first));
        let planes = self.setup.geometry.planes_per_die as usize;
        let ready = &mut self.hardware.ready[die as usize * planes..][..planes];
        let home = operation.plane as usize - die as usize * planes;
        ready[home].take(class);
        state.ready -= 1;
        if class == STEPS {
            state.stepped = self.now;
        }
        let counts = self.setup.suspends() && operation.kind == OperationKind::Read;
        if counts {
            state.urgent -= u32::from(operation.is_urgent());
        }
        if state.ready == 0 {
            state.first[class] = First::NONE;
            return (behind, 1);
        }
        let alone = match self.setup.settings.multi_plane {
            MultiPlane::Off => true,
            MultiPlane::Waiting => false,
            MultiPlane::Group => self.pending.group(first) == 0,
        };
        let any_page = match operation.kind {
            OperationKind::Read => self.setup.settings.independent_reads,
            OperationKind::Program => false,
            OperationKind::Erase => true,
        };
        let mut next = First::NONE;
        for (plane, ready) in ready.iter_mut().enumerate() {
            let Some(mut front) = ready.first(class) else { continue };
            if !alone && plane != home && plane < MOST_PLANES {
                let other = &self.pending[front.index];
                let together = other.kind == operation.kind
                    && (self.setup.settings.multi_plane == MultiPlane::Waiting
                        || self.pending.group(front.index) == self.pending.group(first))
                    && (other.page == operation.page || any_page)
                    && self.pending.loads(front.index) == self.pending.loads(first)
                    && usize::from(batch.count) < MOST_PLANES;
                if together {
                    batch.members[usize::from(batch.count)] = front.index;
                    batch.count += 1;
                    state.ready -= 1;
                    if counts {
                        state.urgent -= u32::from(other.is_urgent());
                    }
                    ready.take(class);
                    let Some(behind) = ready.first(class) else { continue };
                    front = behind;
                }
            }
            if front.turn < next.turn {
                next = front;
            }
        }
        state.first[class] = next;
        let count = usize::from(batch.count);
        self.pending.ask_for(next.index);
        (behind, count)
    }

    /// Reports to the check that an operation starts and has loaded its data at `loaded`.
    #[inline]
    pub(super) fn note_start(&mut self, index: u32, loaded: Nanos) {
        if let Some(causality) = &mut self.causality {
            causality.started(self.pending[index].order, self.now, loaded);
        }
    }

    #[inline]
    fn start_read(&mut self, die: u32, behind: bool) {
        let (now, command) = (self.now, self.setup.t_command);
        let state = &mut self.hardware.dies[die as usize];
        let bus = &mut self.hardware.buses[state.channel as usize];
        let Some(batch) = state.entered(behind) else { return };
        let mut sensed = 0;
        for &index in batch.operations() {
            let commanded = bus.command(now, command);
            let pending = &self.pending[index];
            sensed = sensed.max(commanded + Nanos::from(pending.array));
            if let Some(causality) = &mut self.causality {
                causality.started(pending.order, now, now);
            }
            if let Some(timeline) = &mut self.timeline {
                timeline.commanded(index, commanded - command, commanded, commanded);
            }
        }
        batch.unmoved = batch.count;
        batch.array_until = sensed;
        self.events.push(sensed, Event::Sensed(die));
    }

    #[inline]
    fn start_program(&mut self, die: u32, first: u32, behind: bool) {
        if self.pending.loads(first) > 1 {
            return self.start_shot(die, behind);
        }
        let now = self.now;
        let state = &mut self.hardware.dies[die as usize];
        let free_at = match &state.front {
            Some(front) if behind => front.array_until,
            _ => 0,
        };
        let bus = &mut self.hardware.buses[state.channel as usize];
        let Some(batch) = state.entered(behind) else { return };
        let (mut array, mut loaded) = (0, now);
        for &index in batch.operations() {
            let (pending, data_at) = (&self.pending[index], self.pending.data_at(index));
            let time = self.setup.t_command + self.hardware.transfers.time(pending.bytes);
            loaded = bus.take(now, time);
            let from = loaded - time;
            // Cut-through: the bus streams data from the host link, but cannot end before the link.
            if data_at > loaded {
                loaded = data_at;
                bus.free_at = loaded;
            }
            array = array.max(Nanos::from(pending.array));
            if let Some(causality) = &mut self.causality {
                causality.started(pending.order, now, loaded);
            }
            if let Some(timeline) = &mut self.timeline {
                timeline.commanded(index, from, from + self.setup.t_command, loaded);
            }
        }
        let from = loaded.max(free_at);
        (batch.loaded, batch.array_from, batch.array_until) = (loaded, from, from + array);
        if !behind {
            self.finish_at(die, from + array);
            if self.setup.settings.cache_register || self.setup.settings.suspend == Suspend::ProgramErase {
                self.wake_at(die, from);
            }
        }
    }

    #[inline(never)]
    fn start_erase(&mut self, die: u32, behind: bool) {
        let (now, command) = (self.now, self.setup.t_command);
        let state = &mut self.hardware.dies[die as usize];
        let bus = &mut self.hardware.buses[state.channel as usize];
        let Some(batch) = state.entered(behind) else { return };
        let (mut array, mut commanded) = (0, now);
        for &index in batch.operations() {
            let pending = &self.pending[index];
            commanded = bus.command(now, command);
            array = array.max(Nanos::from(pending.array));
            if let Some(causality) = &mut self.causality {
                causality.started(pending.order, now, now);
            }
            if let Some(timeline) = &mut self.timeline {
                timeline.commanded(index, commanded - command, commanded, commanded);
            }
        }
        (batch.array_from, batch.array_until) = (commanded, commanded + array);
        self.finish_at(die, commanded + array);
        if self.setup.settings.suspend != Suspend::None {
            self.wake_at(die, commanded);
        }
    }

    pub(super) fn finish_at(&mut self, die: u32, time: Nanos) {
        let generation = self.hardware.dies[die as usize].generation;
        self.events.push(time, Event::Finished(generation << DIE_BITS | die));
    }

    /// The array has sensed the newest read of `die`.
    #[inline(always)]
    pub(super) fn sensed(&mut self, io: &Io, die: u32) {
        let state = &mut self.hardware.dies[die as usize];
        let (batch, moves) = match (&mut state.front, &mut state.back) {
            (Some(front), _) if !front.sensed => (front, true),
            // The register still transfers the batch before.
            (_, Some(back)) => (back, false),
            _ => return,
        };
        batch.sensed = true;
        if io.plan.metered.is_some() {
            for &index in batch.operations() {
                let energy = &mut self.pending[index].energy;
                self.results.spent += *energy;
                *energy = -*energy;
            }
        }
        if !moves {
            return;
        }
        self.move_front(io, die);
        if self.setup.settings.cache_register {
            self.kick(io, die);
        }
    }

    /// Transfers the data of the front batch over the bus.
    #[inline(always)]
    fn move_front(&mut self, io: &Io, die: u32) {
        let now = self.now;
        let state = &self.hardware.dies[die as usize];
        let bus = &mut self.hardware.buses[state.channel as usize];
        let Some(batch) = &state.front else { return };
        for &index in batch.operations() {
            let time = self.hardware.transfers.time(self.pending[index].bytes);
            let end = bus.take(now, time);
            if let Some(timeline) = &mut self.timeline {
                timeline.moved(index, batch.array_until, Span { from: end - time, until: end });
            }
            self.events.push(end, Event::Moved(index));
            ask_for_waiter(&self.pending, io, index);
        }
    }

    /// Counts one read whose data has left the die.
    #[inline]
    pub(super) fn read_left_die(&mut self, io: &Io, die: u32) {
        let Some(front) = &mut self.hardware.dies[die as usize].front else { return };
        front.unmoved -= 1;
        if front.unmoved == 0 {
            self.next_batch(io, die);
        }
    }

    /// Replaces the front batch, which has left the die, by the batch behind.
    #[inline(always)]
    fn next_batch(&mut self, io: &Io, die: u32) {
        let state = &mut self.hardware.dies[die as usize];
        if state.back.is_none() {
            state.front = None;
            state.busy += self.now - state.busy_since;
            return self.noted(move |engine| engine.record_holder(die));
        }
        state.front = state.back.take();
        self.noted(move |engine| engine.record_holder(die));
        let state = &self.hardware.dies[die as usize];
        let Some(front) = &state.front else { return };
        match front.kind {
            OperationKind::Read if front.sensed => self.move_front(io, die),
            OperationKind::Read => {}
            _ if front.unloaded > 0 => self.load_on(die),
            _ => {
                let (from, until) = (front.array_from, front.array_until);
                self.finish_at(die, until);
                if from > self.now {
                    self.wake_at(die, from);
                }
            }
        }
    }

    /// Ends the programs or erases of a batch, unless a suspension has invalidated the event.
    pub(super) fn finished(&mut self, io: &mut Io, tagged: u32) {
        let (die, generation) = (tagged & ((1 << DIE_BITS) - 1), tagged >> DIE_BITS);
        if self.hardware.dies[die as usize].generation != generation {
            return;
        }
        let Some(Batch { members, count, .. }) = self.hardware.dies[die as usize].front else { return };
        let members = &members[..usize::from(count)];
        self.note_ends(members);
        if io.plan.metered.is_some() {
            self.results.spent += energy_of(&self.pending, members);
        }
        self.next_batch(io, die);
        for &index in members {
            self.noted(move |engine| engine.record_trigger(index, false));
            self.end_on_block(index);
            self.end(io, index);
        }
        self.kick(io, die);
    }

    /// Reports the ends of programs or erases that ran together. The check must receive all of them before any
    /// operation that they release starts.
    #[inline]
    fn note_ends(&mut self, together: &[u32]) {
        if let Some(causality) = &mut self.causality {
            together.iter().for_each(|&index| causality.ended(self.pending[index].order, self.now));
        }
    }

    /// True if the settings allow to suspend `front` now.
    #[inline]
    fn may_suspend(&self, front: &Batch) -> bool {
        let allowed = match front.kind {
            OperationKind::Read => false,
            OperationKind::Erase => self.setup.settings.suspend != Suspend::None,
            OperationKind::Program => self.setup.settings.suspend == Suspend::ProgramErase,
        };
        let limit = self.setup.settings.suspend_limit;
        allowed
            && (limit == 0 || front.suspensions < limit)
            && front.array_from <= self.now
            && front.array_until > self.now + self.t_suspend(front)
    }

    /// The time from the suspend command until the die can read.
    #[inline]
    fn t_suspend(&self, front: &Batch) -> Nanos {
        let time = if front.kind == OperationKind::Erase { self.setup.t_suspend_erase } else { self.setup.t_suspend };
        time + self.rest_of_pulse(front)
    }

    /// The time for which a running program goes on before it can be suspended.
    #[inline]
    fn rest_of_pulse(&self, front: &Batch) -> Nanos {
        match self.setup.settings.suspend_pulse {
            pulse if pulse > 0 && front.kind == OperationKind::Program => (front.array_until - self.now) % pulse,
            _ => 0,
        }
    }

    /// Suspends the running batch of `die` if a read waits and the settings allow it.
    #[inline(never)]
    fn try_suspend(&mut self, die: u32) {
        let state = &self.hardware.dies[die as usize];
        let Some(front) = &state.front else { return };
        let (t_suspend, rest) = (self.t_suspend(front), self.rest_of_pulse(front));
        if !self.may_suspend(front) || self.starves(front, t_suspend) || state.suspended.is_some() {
            return;
        }
        let read = self.pick(die, Some(OperationKind::Read));
        if read.is_none_or(|(index, _)| !self.may_delay(die, index)) {
            return;
        }
        let now = self.now;
        let state = &mut self.hardware.dies[die as usize];
        let Some(mut batch) = state.front.take() else { return };
        batch.array_until -= now + rest; // remaining work
        batch.stopped_at = now + rest;
        batch.suspensions = batch.suspensions.saturating_add(1);
        state.suspended = Some(batch);
        state.behind = state.back.take().map(|back| Batch {
            array_from: Nanos::MAX,
            array_until: back.array_until - back.array_from,
            ..back
        });
        state.generation = (state.generation + 1) % GENERATIONS;
        state.busy += now + rest - state.busy_since;
        state.closed_until = now + t_suspend;
        self.events.push(now + t_suspend, Event::Wake(die));
        self.noted(move |engine| {
            engine.record_suspension(batch.operations(), now + rest);
            engine.record_holder(die);
        });
    }

    /// Resumes the suspended batch.
    #[inline(never)]
    fn resume(&mut self, die: u32) {
        let now = self.now;
        let state = &mut self.hardware.dies[die as usize];
        let Some(mut batch) = state.suspended.take() else { return };
        batch.array_from = now + self.setup.t_resume;
        batch.held += batch.array_from - batch.stopped_at;
        batch.array_until += batch.array_from;
        state.busy_since = now;
        state.front = Some(batch);
        state.back = state.behind.take().map(|back| Batch {
            array_from: batch.array_until.max(back.loaded),
            array_until: batch.array_until.max(back.loaded) + back.array_until,
            ..back
        });
        if let Some(back) = state.back.as_mut().filter(|back| back.unloaded > 0) {
            back.not_before_loaded(back.array_until - back.array_from);
        }
        let back = state.back;
        self.finish_at(die, batch.array_until);
        self.wake_at(die, batch.array_from);
        if back.is_some_and(|back| back.unloaded > 0) {
            self.load_on(die);
        }
        self.noted(move |engine| {
            engine.record_holder(die);
            engine.record_resumption(batch.operations(), batch.array_from);
            back.iter().for_each(|back| engine.record_array(back.operations(), back.array_from));
        });
    }
}
