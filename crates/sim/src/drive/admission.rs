//! From submission to the translation layer: requests pass the controller, and writes of buffered layers wait for room.
//!
//! Ignored: priorities behind the controller; waiting writes are admitted in order.

use super::{Command, Drive, Verifier};
use crate::controller::Controller;
use crate::queues::Class;
use crate::settings::ControllerTimes;
use palimpsest_flash::error::Result;
use palimpsest_flash::geometry::RequestKind;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::arrival::Pace;

impl Drive {
    /// Sets the controller's times for requests submitted from now on.
    pub fn set_controller(&mut self, times: ControllerTimes) {
        self.controller = Controller::new(times);
    }

    /// Names the tenants of the submission queues: the classes of jobs, or of owners in order of appearance if
    /// `by_owner`.
    pub fn set_tenants(&mut self, classes: Vec<Class>, by_owner: bool) {
        self.controller.set_tenants(classes, by_owner);
    }

    /// Plans request `id`, which has passed the controller, or queues the request for room in the write buffer.
    #[inline]
    fn enter(&mut self, id: u32, verifier: &mut dyn Verifier) -> Result<()> {
        if self.has_room(self.flight.get(id).command) {
            self.plan(id, verifier)
        } else {
            self.wait_for_room(id);
            Ok(())
        }
    }

    /// Queues request `id` for room in the write buffer.
    pub(super) fn wait_for_room(&mut self, id: u32) {
        self.buffer.waiting.push_back(id);
        let now = self.engine.now();
        self.engine.timeline.iter_mut().for_each(|timeline| timeline.waits(id, now));
    }

    /// True if the write buffer has room for `command`, and no write waits.
    #[inline]
    pub(super) fn has_room(&self, command: Command) -> bool {
        if command.kind != RequestKind::Write || !self.buffer.exists() {
            return true;
        }
        self.buffer.waiting.is_empty() && self.buffer.fits(self.units.subpages(command.extent))
    }

    /// Advances the controller to `at`, and plans the request that is ready then.
    #[inline]
    pub(super) fn let_in(&mut self, at: Nanos, verifier: &mut dyn Verifier) -> Result<()> {
        let at = at.max(self.engine.now());
        self.engine.advance_to(at);
        match self.controller.ready(at) {
            Some(id) => self.enter(id, verifier),
            None => Ok(()),
        }
    }

    /// Plans the first waiting write if the buffer has room now. Returns true if one was planned.
    pub(super) fn admit(&mut self, verifier: &mut dyn Verifier) -> Result<bool> {
        let Some(&id) = self.buffer.waiting.front() else { return Ok(false) };
        if !self.buffer.fits(self.units.subpages(self.flight.get(id).command.extent)) {
            return Ok(false);
        }
        self.buffer.waiting.pop_front();
        self.plan(id, verifier)?;
        Ok(true)
    }

    /// Speed at which writes cross the host link and enter the write buffer, if there is one.
    #[inline]
    pub(super) fn pace(&self) -> Pace {
        let times = self.controller.times();
        let (first, next) = if self.buffer.exists() { (times.t_buffer, times.t_buffer_next) } else { (0, 0) };
        Pace { link: self.engine.link_rate(), first, next, subpage: self.io.host.sectors_per_subpage() }
    }
}
