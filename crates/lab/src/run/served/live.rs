//! Figures of a served drive while it is served: those that its result would have now, and all blocks.

use super::super::summary;
use super::Served;
use crate::metrics::snapshots::{BlockMap, Snapshots};
use crate::metrics::summary::Summary;

impl Served<'_> {
    /// The result as it would be now; requests in flight are not in it.
    pub fn figures(&self) -> Summary {
        let read = summary::TraceRead::default();
        summary::outcome(self.resolved, &self.session, self.options, read, self.precondition.clone()).summary
    }

    /// All blocks as they are now, with what is planned.
    pub fn blocks(&self) -> BlockMap {
        let drive = &self.session.drive;
        Snapshots::new(&self.resolved.drive.geometry).map(&drive.io.nand, &*drive.ftl)
    }
}
