//! The host link: transfers of a request's data, in both directions.
//!
//! Ignored: commands, and contention with other devices.

use super::gates::Waiter;
use super::pending::{Details, Pending};
use super::{Bus, Engine, Event};
use crate::settings::HostTimes;
use palimpsest_flash::units::{Nanos, Rate};
use palimpsest_ftl_api::plan::arrival::Crossing;
use palimpsest_ftl_api::plan::{Cause, Gate, Io};

/// The host link.
pub(super) struct HostLink {
    rate: Rate,
    /// The last request for a time, and the result.
    last: (u64, Nanos),
    /// Time of an answer to the host.
    pub(super) t_request: Nanos,
    pub(super) inward: Bus,
    pub(super) outward: Bus,
    pub(super) crossings: Crossings,
}

/// Transfers over the host link that wait for a gate: the slot of the gate to signal, and bytes.
#[derive(Default)]
pub(super) struct Crossings {
    waiting: Vec<(u32, u64)>,
    free: Vec<u32>,
}

impl Crossings {
    /// Slot of the gate that transfer `index` signals.
    pub(super) fn slot(&self, index: u32) -> u32 {
        self.waiting[index as usize].0
    }
}

impl HostLink {
    /// An idle link with the times of `host`.
    pub(super) fn new(host: HostTimes) -> Self {
        HostLink {
            rate: host.link_rate,
            last: (0, 0),
            t_request: host.t_request,
            inward: Bus::default(),
            outward: Bus::default(),
            crossings: Crossings::default(),
        }
    }

    /// Time of `bytes` on the host link, cached as in [`super::bus::Transfers::time`].
    #[inline]
    fn time(&mut self, bytes: u64) -> Nanos {
        if self.last.0 != bytes {
            self.last = (bytes, self.rate.time_for(bytes));
        }
        self.last.1
    }
}

impl Engine {
    /// Rate of the host link; 0: unlimited.
    #[inline]
    pub fn link_rate(&self) -> Rate {
        self.link.rate
    }

    /// Starts a transfer of `bytes` of a write over the host link.
    #[inline]
    pub fn receive(&mut self, bytes: u64) -> Crossing {
        if self.link.rate.0 == 0 {
            return Crossing { first: self.now, last: self.now };
        }
        let time = self.link.time(bytes);
        let last = self.link.inward.take(self.now, time);
        Crossing { first: last - time, last }
    }

    /// Starts a transfer of `bytes` of a read without flash over the host link, available at `from`. Returns the time
    /// of arrival.
    #[inline]
    pub fn send(&mut self, from: Nanos, bytes: u64) -> Nanos {
        if self.link.rate.0 == 0 {
            return from;
        }
        let time = self.link.time(bytes);
        self.link.outward.take(self.now, time).max(from + time)
    }

    /// Decodes the data of read `index`, and sends it over the host link for a host read. Returns the time of the end.
    #[inline]
    pub(super) fn send_on(&mut self, index: u32) -> Nanos {
        let Pending { cause, bytes, .. } = self.pending[index];
        let &Details { codec, link_bytes, .. } = self.pending.details(index);
        let decoded = self.now + Nanos::from(codec);
        if self.link.rate.0 == 0 || (cause != Cause::Host && link_bytes == 0) {
            return decoded;
        }
        // Cut-through: the link may start with the first byte from the die, but not before. Coded data leaves after
        // decoding.
        let time = self.link.time(u64::from(link_bytes));
        let first_byte = if codec > 0 { decoded } else { self.now - self.hardware.transfers.time(bytes) };
        let end = (self.link.outward.free_at.max(first_byte) + time).max(decoded);
        self.link.outward = Bus { free_at: end, busy: self.link.outward.busy + time, ..self.link.outward };
        end
    }

    /// Sends `bytes` over the host link when `gate` has closed, and makes `later` wait for that. Both gates must be
    /// open.
    pub fn cross_after(&mut self, io: &mut Io, gate: Gate, later: Gate, bytes: u64) {
        if self.link.rate.0 == 0 {
            return io.link(gate, later);
        }
        io.plan.gates.expect(later);
        let crossing = (later.slot(), bytes);
        let index = match self.link.crossings.free.pop() {
            Some(index) => {
                self.link.crossings.waiting[index as usize] = crossing;
                index
            }
            None => {
                self.link.crossings.waiting.push(crossing);
                self.link.crossings.waiting.len() as u32 - 1
            }
        };
        self.add_waiter(io, gate, Waiter::Crossing(index));
        self.hurry(io, gate);
    }

    /// Starts the transfer `index` over the host link.
    #[cold]
    pub(super) fn cross(&mut self, index: u32) {
        self.link.crossings.free.push(index);
        let (slot, bytes) = self.link.crossings.waiting[index as usize];
        let time = self.link.time(bytes);
        let arrives = self.link.outward.take(self.now, time);
        self.events.push(arrives, Event::Accepted(slot));
    }
}
