//! A source whose caller moves requests: sequential jobs on zones continue from the places of their requests, and zones
//! end passes. Ignored: rates, which count a request that was drawn at the end of a pass.

use super::{FioSource, Request, RequestKind, SECTOR_BYTES, direction};

impl FioSource {
    /// Notes the place of the last `request` in a zone, from which a sequential job continues.
    pub fn placed(&mut self, request: &Request, issued: &Request) {
        let cut = u64::from(request.extent.sectors.saturating_sub(issued.extent.sectors)) * SECTOR_BYTES;
        self.bytes_left = self.bytes_left.saturating_add(cut);
        let end = issued.extent.end().saturating_sub(self.region.first);
        self.lanes[direction(issued.kind)].next = end;
        if let Some(passes) = &mut self.passes {
            passes.cut(request.kind, cut);
            passes.placed(issued.kind, end * SECTOR_BYTES);
        }
    }

    /// Ends the pass without `request`, which was the last; false at the end of the workload.
    pub fn end_pass(&mut self, request: &Request) -> bool {
        let kind = request.kind;
        let bytes = u64::from(request.extent.sectors) * SECTOR_BYTES;
        self.requests_left += 1;
        self.issued -= 1;
        self.bytes_left = self.bytes_left.saturating_add(bytes);
        if kind == RequestKind::Write && self.flushes.every.is_some() {
            self.flushes.writes -= 1;
            self.flushes.due = false;
        }
        self.fetched = None;
        self.passes.as_mut().is_none_or(|passes| passes.end_pass(kind, bytes))
    }
}
