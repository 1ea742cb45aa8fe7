//! From submission to the translation layer: requests pass the controller, and writes of buffered layers wait for room.
//!
//! Ignored: priorities; waiting writes are admitted in order.

use super::{Command, Drive, Verifier};
use crate::controller::Controller;
use crate::settings::ControllerTimes;
use palimpsest_flash::error::Result;
use palimpsest_flash::geometry::{Extent, RequestKind};
use palimpsest_flash::units::Nanos;

impl Drive {
    /// Sets the controller's times for requests submitted from now on.
    pub fn set_controller(&mut self, times: ControllerTimes) {
        (self.times, self.controller) = (times, Controller::new(times));
    }

    /// Plans request `id`, which has passed the controller, or queues the request for room in the write buffer.
    #[inline]
    pub(super) fn enter(&mut self, id: u32, verifier: &mut dyn Verifier) -> Result<()> {
        if self.has_room(self.in_flight[id as usize].command) {
            self.plan(id, verifier)
        } else {
            self.waiting.push_back(id);
            Ok(())
        }
    }

    /// True if the write buffer has room for `command`. An empty buffer has room for any write.
    #[inline]
    pub(super) fn has_room(&self, command: Command) -> bool {
        let Some(size) = self.buffer else { return true };
        if command.kind != RequestKind::Write {
            return true;
        }
        let subpages = self.subpages_of(command.extent);
        self.waiting.is_empty() && (self.buffer_used + subpages <= size || self.buffer_used == 0)
    }

    /// Advances the controller to `at`, and plans the request that is ready then.
    #[inline]
    pub(super) fn let_in(&mut self, at: Nanos, verifier: &mut dyn Verifier) -> Result<()> {
        let at = at.max(self.engine.now());
        self.engine.advance_to(at);
        match self.controller.as_mut().and_then(|controller| controller.ready(at)) {
            Some(id) => self.enter(id, verifier),
            None => Ok(()),
        }
    }

    /// Plans the first waiting write if the buffer has room now. Returns true if one was planned.
    pub(super) fn admit(&mut self, verifier: &mut dyn Verifier) -> Result<bool> {
        let Some(&id) = self.waiting.front() else { return Ok(false) };
        let (size, command) = (self.buffer.unwrap_or(0), self.in_flight[id as usize].command);
        let subpages = self.subpages_of(command.extent);
        if self.buffer_used + subpages > size && self.buffer_used > 0 {
            return Ok(false);
        }
        self.waiting.pop_front();
        self.plan(id, verifier)?;
        Ok(true)
    }

    /// Time to put `extent` into the write buffer, if there is one.
    #[inline]
    pub(super) fn t_buffer(&self, extent: Extent) -> Nanos {
        if self.buffer.is_none() || self.times.t_buffer + self.times.t_buffer_next == 0 {
            return 0;
        }
        self.times.t_buffer + self.times.t_buffer_next * (self.subpages_of(extent) - 1)
    }
}
