//! A controller: the association of one host with the subsystem, from the connect of the admin queue to its end.
//!
//! Each association gets a controller of its own (dynamic controllers). The end of the admin connection, a reset, or a
//! shutdown ends the connections of all I/O queues. Ignored: subsystem reset, and the persistence of controllers.

use super::features::Features;
use super::queue::Queue;
use super::reservations::Notice;
use super::status::{self, Status};
use super::zones;
use crate::outbox::Outbox;
use crate::socket::Socket;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Most entries of a queue.
pub const MOST_ENTRIES: u16 = 128;

/// Most I/O queues of a controller.
pub const MOST_QUEUES: u16 = 32;

/// Most asynchronous event requests in flight.
pub const MOST_EVENTS: usize = 4;

/// Most unread notices of reservations.
const MOST_NOTICES: usize = 255;

/// Entries of the error log.
pub const ERROR_ENTRIES: usize = 64;

/// Unit of the keep-alive timeout.
pub const KEEP_ALIVE_UNIT: Duration = Duration::from_secs(1);

const ENABLED: u32 = 1;
const READY: u32 = 1;
const FATAL: u32 = 1 << 1;
/// The state of a shutdown: none, in progress until the drive has flushed, or complete.
const SHUTDOWN: u32 = 3 << 2;
const SHUTTING_DOWN: u32 = 1 << 2;
const SHUT_DOWN: u32 = 2 << 2;

/// The host of an association.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    pub name: String,
    pub id: [u8; 16],
}

/// An asynchronous event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    pub kind: u8,
    pub information: u8,
    /// The log page with more about the event; reading it allows the next event of this kind.
    pub log: u8,
    /// The subject: a namespace, or 0.
    pub subject: u32,
}

impl Event {
    /// The drive made zones read only or offline.
    pub const ZONES_CHANGED: Event =
        Event { kind: 2, information: 0xEF, log: zones::CHANGED_ZONES, subject: zones::NAMESPACE };

    /// The drive takes no further writes: a warning of the SMART log (reliability of the subsystem).
    pub const WORN_OUT: Event = Event { kind: 1, information: 0, log: super::logs::SMART, subject: 0 };
    /// The temperature has reached a threshold.
    pub const TEMPERATURE: Event = Event { kind: 1, information: 1, log: super::logs::SMART, subject: 0 };
    /// Few spare blocks are left.
    pub const SPARE_LOW: Event = Event { kind: 1, information: 2, log: super::logs::SMART, subject: 0 };
    /// The drive failed: a persistent internal error.
    pub const FAILED: Event = Event { kind: 0, information: 3, log: super::logs::ERRORS, subject: 0 };
    pub const NAMESPACE_CHANGED: Event =
        Event { kind: 2, information: 0, log: super::logs::CHANGED_NAMESPACES, subject: 0 };
    pub const RESERVATION: Event = Event { kind: 6, information: 0, log: super::logs::RESERVATION, subject: 0 };
    pub const SANITIZED: Event = Event { kind: 6, information: 1, log: super::logs::SANITIZE, subject: 0 };
}

/// An entry of the error log.
#[derive(Debug, Clone, Copy)]
pub struct ErrorEntry {
    /// Number of the error over the life of the drive, from 1.
    pub count: u64,
    pub queue: u16,
    pub command: u16,
    pub status: Status,
}

#[derive(Default)]
struct State {
    configuration: u32,
    status: u32,
    features: Features,
    /// Events that no request has taken, and the kinds, with their log, that wait until the host reads it.
    events: VecDeque<Event>,
    reported: BTreeMap<u8, u8>,
    /// Failed zones that the host knows of.
    zones: zones::Reported,
    /// Namespaces that changed since the host has read their log.
    changed: BTreeSet<u32>,
    /// Unread notices of reservations with their namespaces, and the number of all.
    notices: VecDeque<(Notice, u32)>,
    notice_count: u64,
    /// Masked notices, by namespace.
    masks: BTreeMap<u32, u32>,
    /// Asynchronous event requests in flight.
    requests: VecDeque<u16>,
    errors: VecDeque<ErrorEntry>,
    /// Connections of I/O queues.
    queues: BTreeMap<u16, Option<Socket>>,
    /// The admin queue; none after the end.
    admin: Option<(Arc<Queue>, Arc<Outbox>)>,
    keep_alive: Option<Duration>,
    alive_at: Option<Instant>,
    ended: bool,
}

/// A controller.
pub struct Controller {
    pub id: u16,
    pub host: Host,
    /// Whether the controller serves the discovery log only.
    pub is_discovery: bool,
    /// Whether writes may stay in the volatile cache.
    write_cache: AtomicBool,
    /// Entries of error logs of all controllers, over the life of the drive.
    error_count: Arc<AtomicU64>,
    state: Mutex<State>,
}

impl Controller {
    pub fn new(id: u16, host: Host, is_discovery: bool, error_count: Arc<AtomicU64>) -> Self {
        let write_cache = AtomicBool::new(true);
        let state = Mutex::default();
        Controller { id, host, is_discovery, write_cache, error_count, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads and changes the features.
    pub fn with_features<T>(&self, change: impl FnOnce(&mut Features) -> T) -> T {
        let mut state = self.state();
        let changed = change(&mut state.features);
        self.write_cache.store(state.features.write_cache(), Ordering::Relaxed);
        changed
    }

    /// Whether every write must be durable when it completes.
    pub fn writes_through(&self) -> bool {
        !self.write_cache.load(Ordering::Relaxed)
    }

    pub fn configuration(&self) -> u32 {
        self.state().configuration
    }

    pub fn status(&self) -> u32 {
        self.state().status
    }

    /// Whether commands beyond those of Fabrics are allowed.
    pub fn is_ready(&self) -> bool {
        self.state().status & (READY | FATAL | SHUTDOWN) == READY
    }

    /// Whether the host enabled all command sets that the controller has.
    pub fn takes_command_sets(&self) -> bool {
        self.state().configuration >> 4 & 7 == 6
    }

    /// The zones of `failed` that the host does not know of, which it then does unless these `stay`.
    pub fn fresh_zones(&self, failed: &zones::Reported, stay: bool) -> Vec<u32> {
        let mut state = self.state();
        let fresh = failed.iter().filter(|(zone, now)| state.zones.get(zone) != Some(now)).map(|(&zone, _)| zone);
        let fresh = fresh.collect();
        if !stay {
            state.zones.clone_from(failed);
        }
        fresh
    }

    /// Sets the controller's configuration; returns whether the host shuts the controller down.
    pub fn configure(&self, configuration: u32) -> bool {
        let mut state = self.state();
        let before = std::mem::replace(&mut state.configuration, configuration);
        let (was_enabled, enabled) = (before & ENABLED != 0, configuration & ENABLED != 0);
        // Entries of 64 and 16 bytes; for the discovery controller, which has no I/O queues, any.
        let entries = configuration >> 16 & 0xFF == 0x46 || self.is_discovery;
        let supported = entries && configuration >> 7 & 0xF == 0 && configuration >> 11 & 7 == 0;
        let command_sets = matches!(configuration >> 4 & 7, 0 | 6);
        if enabled && !was_enabled {
            state.status = if supported && command_sets { READY } else { FATAL };
        } else if was_enabled && !enabled {
            state.status = 0;
            state.hang_up_queues();
        }
        let shutdown = configuration >> 14 & 3 != 0;
        let begins = shutdown && state.status & SHUTDOWN == 0;
        if begins {
            // A discovery controller has no data to flush.
            state.status |= if self.is_discovery { SHUT_DOWN } else { SHUTTING_DOWN };
            state.hang_up_queues();
        }
        begins
    }

    /// Completes a shutdown in progress, because the drive has flushed.
    pub fn flushed(&self) {
        let mut state = self.state();
        if state.status & SHUTDOWN == SHUTTING_DOWN {
            state.status = state.status & !SHUTDOWN | SHUT_DOWN;
        }
    }

    /// Sets the keep-alive timeout in milliseconds, which are rounded up; 0 turns it off.
    pub fn keep_alive_for(&self, milliseconds: u32) {
        let unit = KEEP_ALIVE_UNIT.as_millis() as u64;
        let rounded = u64::from(milliseconds).next_multiple_of(unit);
        let mut state = self.state();
        state.keep_alive = (rounded > 0).then(|| Duration::from_millis(rounded));
        state.alive_at = Some(Instant::now());
    }

    /// The keep-alive timeout in milliseconds.
    pub fn keep_alive_ms(&self) -> u32 {
        self.state().keep_alive.map_or(0, |keep_alive| keep_alive.as_millis() as u32)
    }

    /// Counts a keep-alive command.
    pub fn keep_alive(&self) {
        self.state().alive_at = Some(Instant::now());
    }

    /// When the association ends without a keep-alive command.
    pub fn keep_alive_deadline(&self) -> Option<Instant> {
        let state = self.state();
        Some(state.alive_at? + state.keep_alive?)
    }

    /// Sets the admin queue, for events.
    pub fn attach_admin(&self, queue: Arc<Queue>, outbox: Arc<Outbox>) {
        self.state().admin = Some((queue, outbox));
    }

    /// Adds an I/O queue, whose connection ends with the controller.
    ///
    /// # Errors
    /// The status of a queue that exists, or a controller that is not ready.
    pub fn attach(&self, number: u16, socket: Option<Socket>) -> Result<(), Status> {
        let mut state = self.state();
        if state.ended || state.status & (READY | FATAL | SHUTDOWN) != READY {
            return Err(status::SEQUENCE_ERROR);
        }
        if state.queues.contains_key(&number) {
            return Err(status::SEQUENCE_ERROR);
        }
        state.queues.insert(number, socket);
        Ok(())
    }

    /// Removes an I/O queue.
    pub fn detach(&self, number: u16) {
        self.state().queues.remove(&number);
    }

    /// Whether there is an I/O queue.
    pub fn has_queues(&self) -> bool {
        !self.state().queues.is_empty()
    }

    /// Ends all connections of the association.
    pub fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        state.hang_up_queues();
        state.admin = None;
    }

    /// Adds a failed command to the error log.
    pub fn note_error(&self, queue: u16, command: u16, status: Status) {
        let mut state = self.state();
        let count = self.error_count.fetch_add(1, Ordering::Relaxed) + 1;
        state.errors.push_front(ErrorEntry { count, queue, command, status });
        state.errors.truncate(ERROR_ENTRIES);
    }

    /// The newest failed commands, newest first.
    pub fn errors(&self) -> Vec<ErrorEntry> {
        self.state().errors.iter().copied().collect()
    }

    /// Takes an asynchronous event request.
    ///
    /// # Errors
    /// The status if too many are in flight.
    pub fn request_event(&self, command: u16) -> Result<(), Status> {
        let mut state = self.state();
        if state.requests.len() >= MOST_EVENTS {
            return Err(status::AER_LIMIT_EXCEEDED);
        }
        state.requests.push_back(command);
        state.deliver();
        Ok(())
    }

    /// Reports an event, now or with the next request.
    pub fn report(&self, event: Event) {
        let mut state = self.state();
        if !state.features.wants(event) || state.events.contains(&event) {
            return;
        }
        state.events.push_back(event);
        state.deliver();
    }

    /// Allows the next event about log page `log`, which the host has read.
    pub fn clear_event(&self, log: u8) {
        let mut state = self.state();
        state.reported.retain(|_, reported| *reported != log);
        match log {
            super::logs::CHANGED_NAMESPACES => state.changed.clear(),
            super::logs::RESERVATION => {
                state.notices.pop_front();
                state.events.retain(|event| *event != Event::RESERVATION);
                if !state.notices.is_empty() {
                    state.events.push_back(Event::RESERVATION);
                }
            }
            _ => {}
        }
        state.deliver();
    }

    /// Reports that namespace `id` changed.
    pub fn namespace_changed(&self, id: u32) {
        self.state().changed.insert(id);
        self.report(Event::NAMESPACE_CHANGED);
    }

    /// Namespaces that changed since the host has read their log.
    pub fn changed_namespaces(&self) -> Vec<u32> {
        self.state().changed.iter().copied().collect()
    }

    /// Reports a notice about the reservation of namespace `id`, unless the host masks such notices.
    pub fn notify(&self, id: u32, notice: Notice) {
        let mut state = self.state();
        if state.masks.get(&id).is_some_and(|mask| mask & 1 << notice as u32 != 0) {
            return;
        }
        state.notices.push_back((notice, id));
        state.notices.truncate(MOST_NOTICES);
        state.notice_count += 1;
        drop(state);
        self.report(Event::RESERVATION);
    }

    /// The oldest unread notice with its number, and the number of the unread ones.
    pub fn notice(&self) -> Option<(Notice, u32, u64, usize)> {
        let state = self.state();
        let &(notice, id) = state.notices.front()?;
        let unread = state.notices.len();
        Some((notice, id, state.notice_count + 1 - unread as u64, unread))
    }

    /// The masked notices of namespace `id`.
    pub fn mask(&self, id: u32) -> u32 {
        self.state().masks.get(&id).copied().unwrap_or(0)
    }

    /// Masks notices of namespace `id`.
    pub fn set_mask(&self, id: u32, mask: u32) {
        self.state().masks.insert(id, mask);
    }

    /// Aborts an asynchronous event request; returns whether it was in flight.
    pub fn abort_event(&self, command: u16) -> bool {
        let mut state = self.state();
        let found = state.requests.iter().position(|&request| request == command);
        let admin = found.and_then(|at| {
            state.requests.remove(at);
            state.admin.clone()
        });
        drop(state);
        if let Some((queue, outbox)) = admin {
            let mut reply = Vec::new();
            queue.complete(&mut reply, command, status::ABORT_REQUESTED, 0);
            outbox.deliver(reply, 0, None);
        }
        found.is_some()
    }
}

impl State {
    /// Ends the requests of all I/O queues; answers of served requests still go out.
    fn hang_up_queues(&mut self) {
        self.queues.values().flatten().for_each(|socket| socket.hang_up(false));
    }

    /// Answers requests with events.
    fn deliver(&mut self) {
        let Some((queue, outbox)) = &self.admin else { return };
        while !self.requests.is_empty() {
            let next = self.events.iter().position(|event| !self.reported.contains_key(&event.kind));
            let Some(event) = next.and_then(|at| self.events.remove(at)) else { return };
            let Some(request) = self.requests.pop_front() else { return };
            self.reported.insert(event.kind, event.log);
            let result = u64::from(event.kind) | u64::from(event.information) << 8 | u64::from(event.log) << 16;
            let result = result | u64::from(event.subject) << 32;
            let mut reply = Vec::new();
            queue.complete(&mut reply, request, status::SUCCESS, result);
            outbox.deliver(reply, 0, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shutdown_is_complete_after_the_flush() {
        let host = || Host { name: "nqn.2026-11.org.example:host".into(), id: [0; 16] };
        let drive = Controller::new(1, host(), false, Arc::default());
        let enabled = ENABLED | 6 << 16 | 4 << 20;
        assert!(!drive.configure(enabled));
        assert!(drive.configure(enabled | 1 << 14), "the shutdown begins");
        assert_eq!(drive.status() & SHUTDOWN, SHUTTING_DOWN, "data may still be in the write buffer");
        assert!(!drive.is_ready());
        drive.flushed();
        assert_eq!(drive.status() & SHUTDOWN, SHUT_DOWN);
        let discovery = Controller::new(2, host(), true, Arc::default());
        discovery.configure(enabled);
        discovery.configure(enabled | 1 << 14);
        assert_eq!(discovery.status() & SHUTDOWN, SHUT_DOWN);
    }
}
