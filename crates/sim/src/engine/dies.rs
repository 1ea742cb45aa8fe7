//! Dies: what starts next, how long it takes, what runs together, and what is suspended. A read suspends a program also while the cache
//! register holds the next page, which stays there: planes have latches enough. Ignored: parts that must load it again.

use super::super::events::Event;
use super::super::settings::{MultiPlane, Suspend};
use super::energy::energy_of;
use super::ready::{CLASSES, First};
use super::{Engine, NONE, Pending, STEPS};
use crate::events::Key;
use crate::timeline::Span;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::{Io, Operation, OperationKind};

/// The most planes that a multi-plane command addresses.
const MOST_PLANES: usize = 8;
const DIE_BITS: u32 = 16;
const GENERATIONS: u32 = 1 << 13;
/// Steps of collection compete with other programs where more wait in a plane than a block has pages, over this.
const SHARE_OF_STEPS: u32 = 8;

/// Operations that run together in a die.
#[derive(Clone, Copy)]
pub(super) struct Batch {
    kind: OperationKind,
    count: u8,
    /// Operations whose data has not left the die.
    unmoved: u8,
    /// Pages of its word lines that have not had their turn on the bus; then the moments of the array are not known ([`super::shots`]).
    pub(super) unloaded: u8,
    members: [u32; MOST_PLANES],
    /// All data of a program is in the die at this time.
    pub(super) loaded: Nanos,
    /// The array works on it from then on.
    pub(super) array_from: Nanos,
    /// The array has done its work at this time.
    pub(super) array_until: Nanos,
    /// A read whose data is in the page register.
    sensed: bool,
    /// When it was first suspended; `Nanos::MAX` if never.
    suspended_at: Nanos,
}

impl Batch {
    /// Its operations.
    #[inline]
    pub(super) fn operations(&self) -> &[u32] {
        &self.members[..usize::from(self.count)]
    }

    /// When the array begins or has begun to work on it; what is suspended has begun.
    pub(super) fn array_from(&self) -> Nanos {
        self.array_from
    }

    /// When the array has done its work; of what is suspended how much is left.
    pub(super) fn array_until(&self) -> Nanos {
        self.array_until
    }

    /// What it is.
    pub(super) fn kind(&self) -> OperationKind {
        self.kind
    }

    /// Whether it is a read whose data is in the page register.
    pub(super) fn is_sensed(&self) -> bool {
        self.sensed
    }
}

/// State of a die.
#[derive(Clone, Default)]
pub(super) struct Die {
    /// The batch that is moved or in the array.
    pub(super) front: Option<Batch>,
    /// The batch behind it, with the cache register only.
    pub(super) back: Option<Batch>,
    pub(super) suspended: Option<Batch>,
    /// The batch in the cache register behind what is suspended, whose data stays there. Its `array_until` is how long it takes.
    pub(super) behind: Option<Batch>,
    /// Nothing may start before this time.
    closed_until: Nanos,
    generation: u32,
    pub(super) busy: Nanos,
    busy_since: Nanos,
    /// Operations that are ready.
    pub(super) ready: u32,
    /// The operation that goes first of those that are ready, by class.
    pub(super) first: [First; CLASSES],
    /// When a step of collection started last.
    pub(super) stepped: Nanos,
    /// When it wakes, if something is ready by then.
    pub(super) wake: Key,
}

impl Die {
    /// Whether anything is ready.
    #[inline]
    pub(super) fn has_ready(&self) -> bool {
        self.ready > 0
    }

    /// It does nothing any more from `now` on.
    pub(super) fn power_off(&mut self, now: Nanos) {
        let working = if self.front.is_some() { now.saturating_sub(self.busy_since) } else { 0 };
        *self = Die { busy: self.busy + working, generation: self.generation, ..Die::default() };
    }
}

impl Engine {
    /// Starts what `die` can start now.
    #[inline]
    pub(super) fn kick(&mut self, io: &Io, die: u32) {
        let state = &self.dies[die as usize];
        if (state.has_ready() || state.suspended.is_some())
            && state.front.as_ref().is_none_or(|front| self.takes_more(state, front) || self.may_suspend(front))
        {
            self.start_some(io, die);
        }
    }

    /// Starts what `die`, which has something to start or to go on with, can start now.
    #[inline(never)]
    fn start_some(&mut self, io: &Io, die: u32) {
        while let Some(first) = self.next_to_start(die) {
            self.start(io, die, first);
        }
    }

    /// The operation of `die` that starts now, with its class; where there is none, what runs may be suspended for it, or what was suspended goes on.
    #[inline]
    fn next_to_start(&mut self, die: u32) -> Option<(u32, usize)> {
        let state = &self.dies[die as usize];
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
            // What goes next may be a read, which does not go behind a program.
            if next.is_none() && pipelined.is_some() && self.settings.suspend != Suspend::None {
                self.try_suspend(die);
            }
            return next;
        }
        self.next_beside_suspended(die, pipelined)
    }

    /// As [`Self::next_to_start`], where something is suspended.
    #[inline(never)]
    fn next_beside_suspended(&mut self, die: u32, pipelined: Option<OperationKind>) -> Option<(u32, usize)> {
        let Some(suspended) = &self.dies[die as usize].suspended else { return None };
        let next = if self.starves(suspended, 0) { None } else { self.pick(die, Some(OperationKind::Read)) };
        // What is suspended does not wait for steps of collection.
        let next = next.filter(|&(index, _)| !self.pending[index as usize].operation.step);
        match (next, pipelined) {
            (Some(_), _) => {}
            (None, None) => self.resume(die),
            (None, Some(_)) => self.try_suspend(die),
        }
        next
    }

    /// Whether another batch may enter the die behind `front`.
    #[inline]
    fn takes_more(&self, die: &Die, front: &Batch) -> bool {
        self.settings.cache_register && die.back.is_none() && self.may_pipeline(front)
    }

    /// Whether another batch of the same kind may enter the die behind `front`.
    #[inline]
    fn may_pipeline(&self, front: &Batch) -> bool {
        match front.kind {
            OperationKind::Read => front.sensed && self.settings.cache_read,
            OperationKind::Program => front.array_from <= self.now,
            OperationKind::Erase => false,
        }
    }

    /// Whether `batch` will have been held up for as long as the settings allow when it is held up for `more`.
    #[inline]
    fn starves(&self, batch: &Batch, more: Nanos) -> bool {
        self.now + more - batch.suspended_at.min(self.now) >= self.settings.starvation_bound
    }

    #[inline]
    pub(super) fn plane_of(&self, die: u32, index: u32) -> usize {
        (index * self.dies.len() as u32 + die) as usize
    }

    /// The ready operation of `die` that goes next, if it is of the kind `only`.
    #[inline(always)]
    fn pick(&self, die: u32, only: Option<OperationKind>) -> Option<(u32, usize)> {
        let [first, second, step] = self.dies[die as usize].first;
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
        let fits = only.is_none_or(|kind| self.pending[index as usize].operation.kind == kind);
        fits.then_some((index, class))
    }

    #[inline]
    fn has_waited(&self, index: u32) -> bool {
        self.now - self.pending[index as usize].ready_at >= self.settings.starvation_bound
    }

    /// Whether `index`, which has waited long, may go before class 0: all but steps, which may be many. Of these one in such a time
    /// does, or all that a write waits for.
    #[inline]
    fn may_starve(&self, die: u32, index: u32, class: usize) -> bool {
        class != STEPS
            || self.now - self.dies[die as usize].stepped >= self.settings.starvation_bound
            || self.ready[self.pending[index as usize].plane as usize].behind_steps > 0
    }

    /// The ready operation of a die that goes next after those of class 0, and its class, where steps of collection are ready: `step`, the
    /// oldest, goes before `other`, the oldest of class 1, only where it is older and has waited long, or its plane needs the space.
    fn beside_steps(&self, other: First, step: First) -> (First, usize) {
        if other.is_none() {
            return (step, STEPS);
        }
        let plane = &self.ready[self.pending[step.index as usize].plane as usize];
        let urgent = plane.behind_steps > 0 || plane.steps > self.geometry.pages_per_block / SHARE_OF_STEPS;
        let due = step.is_older(other) && (urgent || self.has_waited(step.index));
        let goes = due && !self.pending[other.index as usize].operation.step;
        if goes { (step, STEPS) } else { (other, 1) }
    }

    #[inline]
    fn start(&mut self, io: &Io, die: u32, (first, class): (u32, usize)) {
        let mut batch = Batch {
            kind: self.pending[first as usize].operation.kind,
            count: 0,
            unmoved: 0,
            unloaded: 0,
            members: [NONE; MOST_PLANES],
            loaded: 0,
            array_from: 0,
            array_until: 0,
            sensed: false,
            suspended_at: Nanos::MAX,
        };
        self.gather(die, first, class, &mut batch);
        match batch.kind {
            OperationKind::Read => self.start_read(die, &mut batch),
            OperationKind::Program => self.start_program(die, &mut batch),
            OperationKind::Erase => self.start_erase(die, &mut batch),
        }
        let noted = &batch;
        self.noted(move |engine| {
            if noted.unloaded == 0 {
                engine.record_array(noted.operations(), noted.array_from);
            }
        });
        if self.power_cut.is_some() && batch.unloaded == 0 {
            batch.operations().iter().for_each(|&index| self.time_power_cut(index, batch.array_from.max(self.now)));
        }
        let state = &mut self.dies[die as usize];
        if state.front.is_none() {
            state.front = Some(batch);
            state.busy_since = self.now;
        } else {
            state.back = Some(batch);
        }
        for &index in batch.operations() {
            self.ask_for_end(io, index);
            self.leave_block(index);
        }
    }

    /// Takes `first`, and what the other planes have ready that may run with it, off the ready operations.
    #[inline]
    fn gather(&mut self, die: u32, first: u32, class: usize, batch: &mut Batch) {
        let Pending { operation, plane: home, .. } = self.pending[first as usize];
        self.take_ready(die, home as usize, class);
        batch.members[0] = first;
        batch.count = 1;
        let alone = match self.settings.multi_plane {
            MultiPlane::Off => true,
            MultiPlane::Waiting => false,
            MultiPlane::Group => operation.group == 0,
        };
        if !alone {
            self.gather_beside(die, &operation, home, class, batch);
        }
        self.find_first(die, class);
    }

    /// Takes what planes beside `home` have ready that may run with `operation` off the ready operations.
    #[inline]
    fn gather_beside(&mut self, die: u32, operation: &Operation, home: u32, class: usize, batch: &mut Batch) {
        for plane in 0..self.geometry.planes_per_die.min(MOST_PLANES as u32) {
            let plane = self.plane_of(die, plane);
            if plane == home as usize {
                continue;
            }
            let Some((_, index)) = self.ready[plane].first(class) else { continue };
            let other = &self.pending[index as usize].operation;
            let together = other.kind == operation.kind
                && (self.settings.multi_plane == MultiPlane::Waiting || other.group == operation.group)
                && (other.page == operation.page || self.at_any_page(operation.kind))
                && other.loads == operation.loads
                && usize::from(batch.count) < MOST_PLANES;
            if together {
                self.take_ready(die, plane, class);
                batch.members[usize::from(batch.count)] = index;
                batch.count += 1;
            }
        }
    }

    /// Whether operations of `kind` run together in their planes whatever their pages.
    #[inline]
    fn at_any_page(&self, kind: OperationKind) -> bool {
        match kind {
            OperationKind::Read => self.settings.independent_reads,
            OperationKind::Program => false,
            OperationKind::Erase => true,
        }
    }

    /// An operation starts, and has taken its data in at `loaded`.
    #[inline]
    pub(super) fn note_start(&mut self, index: u32, loaded: Nanos) {
        if let Some(causality) = &mut self.causality {
            causality.started(self.pending[index as usize].order, self.now, loaded);
        }
    }

    fn start_read(&mut self, die: u32, batch: &mut Batch) {
        let channel = self.channel_of[die as usize] as usize;
        let mut sensed = 0;
        for &index in batch.operations() {
            let commanded = self.buses[channel].command(self.now, self.t_command);
            sensed = sensed.max(commanded + Nanos::from(self.pending[index as usize].operation.array));
            self.note_start(index, self.now);
            self.noted(move |engine| engine.record_command(index, commanded - engine.t_command, commanded));
        }
        batch.unmoved = batch.count;
        batch.array_until = sensed;
        self.events.push(sensed, Event::Sensed(die));
    }

    fn start_program(&mut self, die: u32, batch: &mut Batch) {
        if self.pending[batch.members[0] as usize].operation.loads > 1 {
            return self.start_shot(die, batch);
        }
        let channel = self.channel_of[die as usize] as usize;
        let mut array = 0;
        let mut loaded = self.now;
        for &index in batch.operations() {
            let Pending { operation, data_at, .. } = self.pending[index as usize];
            let time = self.t_command + self.transfer_time(operation.bytes);
            loaded = self.buses[channel].take(self.now, time);
            let from = loaded - time;
            // Cut through: the bus streams what the host link brings, but cannot end before it.
            if data_at > loaded {
                loaded = data_at;
                self.buses[channel].free_at = loaded;
            }
            self.noted(move |engine| engine.record_command(index, from, loaded));
            array = array.max(Nanos::from(operation.array));
            self.note_start(index, loaded);
        }
        batch.loaded = loaded;
        batch.array_from = match &self.dies[die as usize].front {
            Some(front) => loaded.max(front.array_until),
            None => loaded,
        };
        batch.array_until = batch.array_from + array;
        if self.dies[die as usize].front.is_none() {
            self.finish_at(die, batch.array_until);
            if self.settings.cache_register || self.settings.suspend == Suspend::ProgramErase {
                self.wake_at(die, batch.array_from);
            }
        }
    }

    fn start_erase(&mut self, die: u32, batch: &mut Batch) {
        let channel = self.channel_of[die as usize] as usize;
        let (mut array, mut commanded) = (0, self.now);
        for &index in batch.operations() {
            commanded = self.buses[channel].command(self.now, self.t_command);
            self.noted(move |engine| engine.record_command(index, commanded - engine.t_command, commanded));
            array = array.max(Nanos::from(self.pending[index as usize].operation.array));
            self.note_start(index, self.now);
        }
        batch.array_from = commanded;
        batch.array_until = batch.array_from + array;
        self.finish_at(die, batch.array_until);
        if self.settings.suspend != Suspend::None {
            self.wake_at(die, batch.array_from);
        }
    }

    pub(super) fn finish_at(&mut self, die: u32, time: Nanos) {
        let generation = self.dies[die as usize].generation;
        self.events.push(time, Event::Finished(generation << DIE_BITS | die));
    }

    /// The array has sensed the newest read of `die`.
    pub(super) fn sensed(&mut self, io: &Io, die: u32) {
        let state = &mut self.dies[die as usize];
        let (batch, moves) = match (&mut state.front, &mut state.back) {
            (Some(front), _) if !front.sensed => (front, true),
            // The register still moves the batch before it.
            (_, Some(back)) => (back, false),
            _ => return,
        };
        batch.sensed = true;
        if io.plan.metered.is_some() {
            self.spent += energy_of(&self.pending, batch.operations());
        }
        if !moves {
            return;
        }
        self.move_front(io, die);
        if self.settings.cache_register {
            self.kick(io, die);
        }
    }

    /// Puts the data of the front batch on the bus.
    fn move_front(&mut self, io: &Io, die: u32) {
        let channel = self.channel_of[die as usize] as usize;
        let Some(Batch { members, count, array_until: sensed, .. }) = self.dies[die as usize].front else { return };
        for &index in members.iter().take(usize::from(count)) {
            let time = self.transfer_time(self.pending[index as usize].operation.bytes);
            let end = self.buses[channel].take(self.now, time);
            self.noted(move |engine| engine.record_move(index, sensed, Span { from: end - time, until: end }));
            self.events.push(end, Event::Moved(index));
            self.ask_for_waiter(io, index);
        }
    }

    /// The data of one read has left the die.
    #[inline]
    pub(super) fn read_left_die(&mut self, io: &Io, die: u32) {
        let Some(front) = &mut self.dies[die as usize].front else { return };
        front.unmoved -= 1;
        if front.unmoved == 0 {
            self.next_batch(io, die);
        }
    }

    /// The front batch has left the die.
    #[inline]
    fn next_batch(&mut self, io: &Io, die: u32) {
        let state = &mut self.dies[die as usize];
        state.front = state.back.take();
        let Some(front) = &mut state.front else {
            state.busy += self.now - state.busy_since;
            return;
        };
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

    /// A program or erase has ended, unless it was suspended before.
    pub(super) fn finished(&mut self, io: &mut Io, tagged: u32) {
        let (die, generation) = (tagged & ((1 << DIE_BITS) - 1), tagged >> DIE_BITS);
        if self.dies[die as usize].generation != generation {
            return;
        }
        let Some(Batch { members, count, .. }) = self.dies[die as usize].front else { return };
        let members = &members[..usize::from(count)];
        self.note_ends(members);
        if io.plan.metered.is_some() {
            self.spent += energy_of(&self.pending, members);
        }
        self.next_batch(io, die);
        for &index in members {
            self.end_on_block(index);
            self.end(io, index);
        }
        self.kick(io, die);
    }

    /// Programs or erases that ran together end at one moment: the check has all their ends before what one of them lets go starts.
    #[inline]
    fn note_ends(&mut self, together: &[u32]) {
        if let Some(causality) = &mut self.causality {
            together.iter().for_each(|&index| causality.ended(self.pending[index as usize].order, self.now));
        }
    }

    /// Whether the settings allow to suspend `front` now.
    #[inline]
    fn may_suspend(&self, front: &Batch) -> bool {
        let allowed = match front.kind {
            OperationKind::Read => false,
            OperationKind::Erase => self.settings.suspend != Suspend::None,
            OperationKind::Program => self.settings.suspend == Suspend::ProgramErase,
        };
        allowed && front.array_from <= self.now && front.array_until > self.now + self.t_suspend
    }

    /// Suspends what `die` does, if a read waits and the settings allow it.
    #[inline(never)]
    fn try_suspend(&mut self, die: u32) {
        let state = &self.dies[die as usize];
        let Some(front) = &state.front else { return };
        if !self.may_suspend(front) || self.starves(front, self.t_suspend) || state.suspended.is_some() {
            return;
        }
        let read = self.pick(die, Some(OperationKind::Read));
        if read.is_none_or(|(index, _)| self.pending[index as usize].operation.step) {
            return;
        }
        let now = self.now;
        let state = &mut self.dies[die as usize];
        let Some(mut batch) = state.front.take() else { return };
        batch.array_until -= now; // what is left to do
        batch.suspended_at = batch.suspended_at.min(now);
        state.suspended = Some(batch);
        state.behind = state.back.take().map(|back| Batch {
            array_from: Nanos::MAX,
            array_until: back.array_until - back.array_from,
            ..back
        });
        state.generation = (state.generation + 1) % GENERATIONS;
        state.busy += now - state.busy_since;
        state.closed_until = now + self.t_suspend;
        self.events.push(now + self.t_suspend, Event::Wake(die));
        self.noted(move |engine| engine.record_suspension(batch.operations()));
    }

    /// Goes on with what was suspended.
    #[inline(never)]
    fn resume(&mut self, die: u32) {
        let now = self.now;
        let state = &mut self.dies[die as usize];
        let Some(mut batch) = state.suspended.take() else { return };
        batch.array_from = now + self.t_resume;
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
            engine.record_resumption(batch.operations(), batch.array_from);
            back.iter().for_each(|back| engine.record_array(back.operations(), back.array_from));
        });
    }
}
