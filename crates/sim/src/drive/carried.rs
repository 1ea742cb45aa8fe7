//! Requests of a server in flight: the data of a write travels with the request until it is planned, and completions
//! name the request's number.
//!
//! A write may wait for the controller or for room in the buffer while later requests arrive, so its bytes cannot stay
//! at the port. A power cut drops them with the requests. Ignored: memory of the server.

use super::{Drive, Verifier};
use palimpsest_ftl_api::plan::port::Incoming;
use palimpsest_ftl_api::zones::ZoneError;

/// A request that has completed.
#[derive(Debug, Clone, Copy)]
pub struct Completed {
    /// Number of the request.
    pub flight: u32,
    /// Why a zoned drive refused the request.
    pub refused: Option<ZoneError>,
    /// First sector; of a Zone Append that the drive chose.
    pub sector: u64,
}

/// Data and completions of requests in flight.
#[derive(Default)]
pub struct Carried {
    /// Data of the request submitted next.
    next: Option<Incoming>,
    /// Data of each request.
    brought: Vec<Option<Incoming>>,
    /// The request submitted last.
    pub submitted: u32,
    /// The request planned last.
    pub planned: u32,
    /// Requests that have completed.
    pub completed: Vec<Completed>,
}

impl Drive {
    /// Makes requests carry their data from now on.
    pub fn carry(&mut self) {
        self.carried = Some(Box::default());
    }

    /// The data in flight; `None` unless [`Self::carry`] was called.
    pub fn carried(&mut self) -> Option<&mut Carried> {
        self.carried.as_deref_mut()
    }

    /// Sets the data of the request submitted next. Requires [`Self::carry`].
    pub fn bring(&mut self, incoming: Option<Incoming>) {
        self.carried.as_mut().expect("requests carry").next = incoming;
    }

    /// Attaches the data to request `id`, which is submitted.
    #[cold]
    pub(super) fn load(&mut self, id: u32) {
        let Some(carried) = &mut self.carried else { return };
        if carried.brought.len() <= id as usize {
            carried.brought.resize_with(id as usize + 1, || None);
        }
        carried.submitted = id;
        carried.brought[id as usize] = carried.next.take();
    }

    /// Moves the data of request `id` to the port, before the request is planned.
    #[cold]
    pub(super) fn bring_carried(&mut self, id: u32) {
        let Some(carried) = &mut self.carried else { return };
        carried.planned = id;
        let incoming = carried.brought.get_mut(id as usize).and_then(Option::take);
        self.io.host.bring(incoming);
    }

    /// Clears the port after request `id` was planned.
    #[cold]
    pub(super) fn end_bringing(&mut self, id: u32, verifier: &mut dyn Verifier) {
        self.io.host.bring(None);
        verifier.planned(id);
    }

    /// Drops the data of all requests in flight.
    pub(super) fn drop_carried(&mut self) {
        if let Some(carried) = &mut self.carried {
            carried.brought.clear();
            carried.completed.clear();
        }
    }
}
