//! Live figures of a served drive: its present result and the states of all blocks. Ignored: requests in flight.

use super::super::summary;
use super::Served;
use crate::metrics::snapshots::{BlockMap, Snapshots};
use crate::metrics::summary::Summary;

impl Served<'_> {
    /// The present result, without requests in flight.
    pub fn figures(&self) -> Summary {
        let (read, options) = (summary::TraceRead::default(), &self.session.options);
        summary::outcome(&self.resolved, &self.session, options, read, self.precondition.clone()).summary
    }

    /// The present state of all blocks, with planned operations.
    pub fn blocks(&self) -> BlockMap {
        let drive = &self.session.drive;
        Snapshots::new(&self.resolved.drive.geometry).map(&drive.io.nand, &*drive.ftl)
    }
}
