//! The timeline of a run as columns: a table of flash operations, and a table of requests.
//!
//! Times are nanoseconds since the start of the measurement. Signed, so that a difference of two columns may be
//! negative.

use palimpsest_flash::geometry::RequestKind;
use palimpsest_flash::units::{Nanos, SECTOR_BYTES};
use palimpsest_ftl_api::plan::{CAUSE_NAMES, OperationKind};
use palimpsest_sim::timeline::{Recording, Span, TimedOperation};
use serde::Serialize;

/// Flash operations, one entry each. Lists are of equal length.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs, reason = "docs/operations.md describes the columns")]
pub struct Operations {
    pub operation: Vec<i64>,
    pub kind: Vec<&'static str>,
    pub cause: Vec<&'static str>,
    pub request: Vec<u64>,
    pub request_kind: Vec<Option<&'static str>>,
    pub channel: Vec<u32>,
    pub die: Vec<u32>,
    pub plane: Vec<u32>,
    pub block: Vec<u32>,
    pub page: Vec<Option<u16>>,
    pub bytes: Vec<u32>,
    pub link_bytes: Vec<u32>,
    pub planned_ns: Vec<i64>,
    pub ready_ns: Vec<i64>,
    pub start_ns: Vec<i64>,
    pub transfer_start_ns: Vec<Option<i64>>,
    pub transfer_end_ns: Vec<Option<i64>>,
    pub array_start_ns: Vec<i64>,
    pub array_end_ns: Vec<i64>,
    pub end_ns: Vec<i64>,
    pub delivered_ns: Vec<Option<i64>>,
    pub suspended_ns: Vec<i64>,
    pub suspended_at_ns: Vec<Vec<i64>>,
    pub resumed_at_ns: Vec<Vec<i64>>,
    pub follows: Vec<Vec<i64>>,
    pub behind: Vec<Option<i64>>,
}

/// Requests, one entry each. Lists are of equal length.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs, reason = "docs/operations.md describes the columns")]
pub struct TimedRequests {
    pub request: Vec<u64>,
    pub kind: Vec<&'static str>,
    pub offset_bytes: Vec<u64>,
    pub size_bytes: Vec<u64>,
    pub arrival_ns: Vec<i64>,
    pub submitted_ns: Vec<i64>,
    pub planned_ns: Vec<Option<i64>>,
    pub completed_ns: Vec<Option<i64>>,
}

fn kind_name(kind: RequestKind) -> &'static str {
    match kind {
        RequestKind::Read => "read",
        RequestKind::Write => "write",
        RequestKind::Trim => "trim",
        RequestKind::Flush => "flush",
    }
}

/// The columns of both tables.
pub fn columns(recording: &Recording) -> (Operations, TimedRequests) {
    let since = |time: Nanos| time as i64 - recording.zero as i64;
    let mut operations = Operations::default();
    for each in &recording.operations {
        operations.push(each, &since);
    }
    let mut requests = TimedRequests::default();
    for each in &recording.requests {
        requests.request.push(each.number);
        requests.kind.push(kind_name(each.kind));
        requests.offset_bytes.push(each.extent.sector * SECTOR_BYTES);
        requests.size_bytes.push(u64::from(each.extent.sectors) * SECTOR_BYTES);
        requests.arrival_ns.push(since(each.arrival));
        requests.submitted_ns.push(since(each.submitted));
        requests.planned_ns.push(each.planned.map(since));
        requests.completed_ns.push(each.completed.map(since));
    }
    (operations, requests)
}

impl Operations {
    fn push(&mut self, timed: &TimedOperation, since: &impl Fn(Nanos) -> i64) {
        let operation = &timed.operation;
        let erases = operation.kind == OperationKind::Erase;
        let moves = |time: Nanos| (!erases).then(|| since(time));
        let times = |of: fn(&Span) -> Nanos| timed.suspensions.iter().map(|span| since(of(span))).collect();
        self.operation.push(timed.number);
        self.kind.push(match operation.kind {
            OperationKind::Read => "read",
            OperationKind::Program => "program",
            OperationKind::Erase => "erase",
        });
        self.cause.push(CAUSE_NAMES[operation.cause as usize]);
        self.request.push(timed.request);
        self.request_kind.push(timed.request_kind.map(kind_name));
        self.channel.push(timed.place.channel);
        self.die.push(timed.place.die);
        self.plane.push(timed.place.plane);
        self.block.push(operation.block);
        self.page.push((!erases).then_some(operation.page));
        self.bytes.push(operation.bytes);
        self.link_bytes.push(if timed.delivered.is_some() { operation.link_bytes } else { 0 });
        self.planned_ns.push(since(timed.planned));
        self.ready_ns.push(since(timed.ready));
        self.start_ns.push(since(timed.start));
        self.transfer_start_ns.push(moves(timed.transfer.from));
        self.transfer_end_ns.push(moves(timed.transfer.until));
        self.array_start_ns.push(since(timed.array.from));
        self.array_end_ns.push(since(timed.array.until));
        self.end_ns.push(since(timed.end));
        self.delivered_ns.push(timed.delivered.map(since));
        self.suspended_ns.push(timed.suspensions.iter().map(|span| (span.until - span.from) as i64).sum());
        self.suspended_at_ns.push(times(|span| span.from));
        self.resumed_at_ns.push(times(|span| span.until));
        self.follows.push(timed.follows.clone());
        self.behind.push(timed.behind);
    }
}
