//! The timeline of a drive, which is recorded until its window has passed.
//!
//! Ignored here: operations, which the engine records.

use super::Drive;
use crate::timeline::Recording;

impl Drive {
    /// Records the completion of a request, and keeps the recording when the window has passed.
    #[inline]
    pub(super) fn record_completion(&mut self, id: u32) {
        let now = self.engine.now();
        let Some(timeline) = &mut self.engine.timeline else { return };
        timeline.completed(id, now);
        if timeline.is_over(now) {
            self.recording = self.engine.timeline.take().map(|timeline| timeline.recording());
        }
    }

    /// The recording so far; `None` without a timeline.
    pub fn recording(&self) -> Option<Recording> {
        self.recording.clone().or_else(|| Some(self.engine.timeline.as_ref()?.recording()))
    }
}
