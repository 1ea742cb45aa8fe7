//! Requests of a server in flight: what a write brings travels with it until it is planned, and completions name its number.
//!
//! A write that waits for the controller, or for room in the buffer, is planned when others have come after it: its bytes cannot stay at
//! the port. A power cut drops them with the requests.

use super::{Drive, Verifier};
use palimpsest_ftl_api::plan::port::Incoming;

/// What travels with requests.
#[derive(Default)]
pub struct Carried {
    /// What the request brings that is submitted next.
    next: Option<Incoming>,
    /// Of each request: what it brings.
    brought: Vec<Option<Incoming>>,
    /// The request that was submitted last.
    pub submitted: u32,
    /// The request that was planned last.
    pub planned: u32,
    /// Requests that have completed.
    pub completed: Vec<u32>,
}

impl Drive {
    /// From now on requests carry what they bring.
    pub fn carry(&mut self) {
        self.carried = Some(Box::default());
    }

    /// What travels with requests, where they do carry.
    pub fn carried(&mut self) -> Option<&mut Carried> {
        self.carried.as_deref_mut()
    }

    /// The request that is submitted next brings this.
    pub fn bring(&mut self, incoming: Option<Incoming>) {
        self.carried.as_mut().expect("requests carry").next = incoming;
    }

    /// Request `id` is submitted.
    #[cold]
    pub(super) fn load(&mut self, id: u32) {
        let Some(carried) = &mut self.carried else { return };
        if carried.brought.len() <= id as usize {
            carried.brought.resize_with(id as usize + 1, || None);
        }
        carried.submitted = id;
        carried.brought[id as usize] = carried.next.take();
    }

    /// Request `id` is planned: the port gets what it brings.
    #[cold]
    pub(super) fn bring_carried(&mut self, id: u32) {
        let Some(carried) = &mut self.carried else { return };
        carried.planned = id;
        let incoming = carried.brought.get_mut(id as usize).and_then(Option::take);
        self.io.host.bring(incoming);
    }

    /// Request `id` was planned.
    #[cold]
    pub(super) fn end_bringing(&mut self, id: u32, verifier: &mut dyn Verifier) {
        self.io.host.bring(None);
        verifier.planned(id);
    }

    /// All requests in flight are dropped.
    pub(super) fn drop_carried(&mut self) {
        if let Some(carried) = &mut self.carried {
            carried.brought.clear();
            carried.completed.clear();
        }
    }
}
