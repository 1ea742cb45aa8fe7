//! A drive and the timeline of its operations, which ends with its window.

use super::Drive;
use crate::timeline::Recording;

impl Drive {
    /// Notes that a request has completed, if a timeline is kept, and what it shows once that is over.
    #[inline]
    pub(super) fn record_completion(&mut self, id: u32) {
        let now = self.engine.now();
        let Some(timeline) = &mut self.engine.timeline else { return };
        timeline.completed(id, now);
        if timeline.is_over(now) {
            self.recording = self.engine.timeline.take().map(|timeline| timeline.recording());
        }
    }

    /// What the timeline shows so far; `None` where none was asked for.
    pub fn recording(&self) -> Option<Recording> {
        self.recording.clone().or_else(|| Some(self.engine.timeline.as_ref()?.recording()))
    }
}
