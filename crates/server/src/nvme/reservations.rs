//! Reservations: hosts register keys at a namespace, and one of them restricts the access of others.
//!
//! Source: NVM Express Base Specification 2.0, sections 7.2 to 7.5 and 8.19. Hosts of Fabrics have identifiers of 16
//! bytes. Registrations outlast a connect, and with "persist through power loss" a power cut of the drive. Ignored:
//! Preempt and Abort aborts no command, because a command in flight may complete; no state outlasts the process.

use super::admin::{Context, Outcome};
use super::entry::{Command, Structure};
use super::pdu::u64_at;
use super::status::{self, Status};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub const REGISTER: u8 = 0x0D;
pub const REPORT: u8 = 0x0E;
pub const ACQUIRE: u8 = 0x11;
pub const RELEASE: u8 = 0x15;

/// All types of reservations, persistence, and the newer meaning of "ignore existing key".
pub const CAPABILITIES: u8 = 0xFF;

/// Types from here on are those of all registrants: every registrant holds the reservation.
const ALL_REGISTRANTS: u8 = 5;
/// Types from here on give access to every registrant.
const REGISTRANTS_ONLY: u8 = 3;
const LAST_TYPE: u8 = 6;

type HostId = [u8; 16];

/// A notification for a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    RegistrationPreempted = 1,
    ReservationReleased = 2,
    ReservationPreempted = 3,
}

type Notices = Vec<(HostId, Notice)>;

/// The reservation of a namespace.
#[derive(Debug, Default)]
struct State {
    generation: u32,
    registrants: BTreeMap<HostId, u64>,
    /// The type, and the host that acquired the reservation.
    held: Option<(u8, HostId)>,
    persists: bool,
}

impl State {
    fn is_holder(&self, host: &HostId) -> bool {
        self.held.is_some_and(|(kind, holder)| {
            if kind >= ALL_REGISTRANTS { self.registrants.contains_key(host) } else { holder == *host }
        })
    }

    /// Checks that `host` is registered, with `key` unless its key is ignored.
    fn check_key(&self, host: &HostId, key: Option<u64>) -> Result<(), Status> {
        match self.registrants.get(host) {
            Some(known) if key.is_none_or(|key| key == *known) => Ok(()),
            _ => Err(status::RESERVATION_CONFLICT),
        }
    }

    /// `notice` to all registrants except `host`.
    fn others(&self, host: &HostId, notice: Notice) -> Notices {
        self.registrants.keys().filter(|other| *other != host).map(|&other| (other, notice)).collect()
    }

    fn register(&mut self, host: HostId, key: u64) -> Result<Notices, Status> {
        if key == 0 {
            return Err(status::INVALID_FIELD);
        }
        if self.registrants.get(&host).is_some_and(|&known| known != key) {
            return Err(status::RESERVATION_CONFLICT);
        }
        self.registrants.insert(host, key);
        self.generation = self.generation.wrapping_add(1);
        Ok(Vec::new())
    }

    fn unregister(&mut self, host: HostId, key: Option<u64>) -> Result<Notices, Status> {
        self.check_key(&host, key)?;
        self.generation = self.generation.wrapping_add(1);
        self.registrants.remove(&host);
        Ok(self.after_removal())
    }

    /// Releases a reservation that has no holder any more; returns notices for the other registrants.
    fn after_removal(&mut self) -> Notices {
        let Some((kind, holder)) = self.held else { return Vec::new() };
        let is_held = match kind {
            ALL_REGISTRANTS.. => !self.registrants.is_empty(),
            _ => self.registrants.contains_key(&holder),
        };
        if is_held {
            return Vec::new();
        }
        self.held = None;
        if kind >= REGISTRANTS_ONLY { self.others(&holder, Notice::ReservationReleased) } else { Vec::new() }
    }

    fn replace(&mut self, host: HostId, old: Option<u64>, new: u64) -> Result<Notices, Status> {
        self.check_key(&host, old)?;
        if new == 0 {
            return Err(status::INVALID_FIELD);
        }
        self.registrants.insert(host, new);
        self.generation = self.generation.wrapping_add(1);
        Ok(Vec::new())
    }

    fn acquire(&mut self, host: HostId, kind: u8) -> Result<Notices, Status> {
        match self.held {
            None => self.held = Some((kind, host)),
            Some((held, _)) if held == kind && self.is_holder(&host) => {}
            Some(_) => return Err(status::RESERVATION_CONFLICT),
        }
        Ok(Vec::new())
    }

    fn preempt(&mut self, host: HostId, kind: u8, key: u64) -> Result<Notices, Status> {
        let held = self.held;
        // Whether the preempted key is that of the reservation itself.
        let takes = held.is_some_and(|(kind, holder)| match kind {
            ALL_REGISTRANTS.. => key == 0,
            _ => self.registrants.get(&holder) == Some(&key),
        });
        let everyone = takes && key == 0;
        if key == 0 && !everyone {
            return Err(status::INVALID_FIELD);
        }
        if !everyone && !self.registrants.values().any(|&known| known == key) {
            return Err(status::RESERVATION_CONFLICT);
        }
        let preempted = |(other, known): (&HostId, &u64)| *other != host && (everyone || *known == key);
        let gone: Vec<HostId> =
            self.registrants.iter().filter(|&one| preempted(one)).map(|(&other, _)| other).collect();
        self.registrants.retain(|other, _| !gone.contains(other));
        let mut notices: Notices = gone.iter().map(|&other| (other, Notice::RegistrationPreempted)).collect();
        self.generation = self.generation.wrapping_add(1);
        if takes {
            let was = held.map_or(0, |(was, _)| was);
            self.held = Some((kind, host));
            if was != kind && was >= REGISTRANTS_ONLY {
                notices.extend(self.others(&host, Notice::ReservationReleased));
            }
        } else {
            notices.extend(self.after_removal());
        }
        Ok(notices)
    }

    fn release(&mut self, host: HostId, kind: u8) -> Result<Notices, Status> {
        match self.held {
            Some((held, _)) if self.is_holder(&host) => {
                if held != kind {
                    return Err(status::INVALID_FIELD);
                }
                self.held = None;
                let tells = kind >= REGISTRANTS_ONLY;
                Ok(if tells { self.others(&host, Notice::ReservationReleased) } else { Vec::new() })
            }
            _ => Ok(Vec::new()),
        }
    }

    fn clear(&mut self, host: HostId) -> Notices {
        let notices = self.others(&host, Notice::ReservationPreempted);
        self.registrants.clear();
        self.held = None;
        self.generation = self.generation.wrapping_add(1);
        notices
    }

    /// Whether `host` may read, or else change, the namespace.
    fn allows(&self, host: &HostId, reads: bool) -> bool {
        let Some((kind, _)) = self.held else { return true };
        let excludes_reads = kind.is_multiple_of(2);
        (reads && !excludes_reads)
            || self.is_holder(host)
            || (kind >= REGISTRANTS_ONLY && self.registrants.contains_key(host))
    }
}

/// The reservations of all namespaces.
#[derive(Default)]
pub struct Reservations {
    all: Mutex<BTreeMap<u32, State>>,
    /// Whether a namespace is reserved: most drives have no reservation.
    any: AtomicBool,
}

impl Reservations {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u32, State>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state of a namespace.
    fn change<T>(&self, id: u32, change: impl FnOnce(&mut State) -> T) -> T {
        let mut all = self.all();
        let changed = change(all.entry(id).or_default());
        self.any.store(all.values().any(|state| state.held.is_some()), Ordering::Release);
        changed
    }

    /// Checks that `host` may read, or else change, namespace `id`.
    ///
    /// # Errors
    /// The status of a conflict.
    pub fn check(&self, id: u32, host: &HostId, reads: bool) -> Result<(), Status> {
        if !self.any.load(Ordering::Acquire) {
            return Ok(());
        }
        match self.all().get(&id) {
            Some(state) if !state.allows(host, reads) => Err(status::RESERVATION_CONFLICT),
            _ => Ok(()),
        }
    }

    /// Forgets a deleted namespace.
    pub fn forget(&self, id: u32) {
        self.change(id, |state| *state = State::default());
    }

    /// The power failed: registrations and reservations are lost unless they persist.
    pub fn power_lost(&self) {
        let ids: Vec<u32> = self.all().iter().filter(|(_, state)| !state.persists).map(|(&id, _)| id).collect();
        ids.into_iter().for_each(|id| self.forget(id));
    }

    /// Whether registrations and reservations of a namespace persist.
    pub fn persists(&self, id: u32) -> bool {
        self.all().get(&id).is_some_and(|state| state.persists)
    }

    /// Sets whether registrations and reservations of a namespace persist.
    pub fn persist(&self, id: u32, persists: bool) {
        self.change(id, |state| state.persists = persists);
    }
}

/// Bytes of data that a reservation command brings.
pub fn data_bytes(opcode: u8) -> u32 {
    match opcode {
        REGISTER | ACQUIRE => 16,
        RELEASE => 8,
        _ => 0,
    }
}

/// Executes a reservation command for namespace `id`.
///
/// # Errors
/// The status of a wrong field, or of a conflict.
pub fn execute(command: &Command, data: &[u8], id: u32, context: &Context<'_>) -> Result<Outcome, Status> {
    let (host, what) = (context.controller.host.id, command.dword(10));
    if host == [0; 16] {
        return Err(status::HOST_ID_NOT_INITIALIZED);
    }
    if command.opcode() == REPORT {
        return report(command, id, context);
    }
    let (action, ignores, kind) = (what & 7, what & 1 << 3 != 0, (what >> 8) as u8);
    let (current, second) = (u64_at(data, 0), if data.len() < 16 { 0 } else { u64_at(data, 8) });
    let key = (!ignores).then_some(current);
    let reservations = &context.subsystem.reservations;
    let notices = match command.opcode() {
        REGISTER => {
            let persistence = what >> 30;
            if persistence == 1 || action > 2 {
                return Err(status::INVALID_FIELD);
            }
            reservations.change(id, |state| -> Result<Notices, Status> {
                let notices = match action {
                    0 => state.register(host, second)?,
                    1 => state.unregister(host, key)?,
                    _ => state.replace(host, key, second)?,
                };
                state.persists = if persistence == 0 { state.persists } else { persistence == 3 };
                Ok(notices)
            })?
        }
        _ if ignores => return Err(status::INVALID_FIELD),
        ACQUIRE => {
            if action > 2 || !(1..=LAST_TYPE).contains(&kind) {
                return Err(status::INVALID_FIELD);
            }
            reservations.change(id, |state| {
                state.check_key(&host, key)?;
                if action == 0 { state.acquire(host, kind) } else { state.preempt(host, kind, second) }
            })?
        }
        _ => {
            if action > 1 || (action == 0 && !(1..=LAST_TYPE).contains(&kind)) {
                return Err(status::INVALID_FIELD);
            }
            reservations.change(id, |state| {
                state.check_key(&host, key)?;
                if action == 0 { state.release(host, kind) } else { Ok(state.clear(host)) }
            })?
        }
    };
    let all = context.subsystem.namespaces();
    for (host, notice) in notices {
        let has = |name: &str| all.is_attached(id, name);
        context
            .subsystem
            .tell(|other| other.host.id == host && has(&other.host.name), |other| other.notify(id, notice));
    }
    Ok(Outcome::Done(0))
}

/// The status of a reservation, with extended entries of the registered controllers.
fn report(command: &Command, id: u32, context: &Context<'_>) -> Result<Outcome, Status> {
    const HEADER: usize = 64;
    const ENTRY: usize = 64;
    let length = (u64::from(command.dword(10)) + 1) * 4;
    if length > u64::from(super::MOST_TRANSFER) {
        return Err(status::INVALID_FIELD);
    }
    // The hosts' identifiers have 16 bytes, so that the short structure cannot name them.
    if command.dword(11) & 1 == 0 {
        return Err(status::HOST_ID_INCONSISTENT);
    }
    command.check_data_to_host(length as u32)?;
    let all = context.subsystem.reservations.all();
    let fresh = State::default();
    let state = all.get(&id).unwrap_or(&fresh);
    let mut entries = Vec::new();
    for (host, &key) in &state.registrants {
        let mut controllers = context.subsystem.controllers_of(host);
        if controllers.is_empty() {
            controllers.push(u16::MAX);
        }
        entries.extend(controllers.into_iter().map(|controller| (controller, host, key)));
    }
    let mut page = Structure::new((HEADER + ENTRY * entries.len()).max(length as usize));
    page.u32(0, state.generation).u8(4, state.held.map_or(0, |(kind, _)| kind));
    page.u16(5, entries.len() as u16).u8(9, state.persists.into());
    for (at, (controller, host, key)) in entries.into_iter().enumerate() {
        let at = HEADER + ENTRY * at;
        page.u16(at, controller).u8(at + 2, state.is_holder(host).into());
        page.u64(at + 8, key).bytes(at + 16, host);
    }
    page.0.truncate(length as usize);
    Ok(Outcome::Data(page.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTS: [HostId; 3] = [[1; 16], [2; 16], [3; 16]];

    /// The access of a holder, another registrant, and a stranger, to read and to write.
    fn access(kind: u8) -> [(bool, bool); 3] {
        let mut state = State::default();
        for (host, key) in HOSTS.into_iter().zip([10, 20]) {
            state.register(host, key).unwrap();
        }
        state.acquire(HOSTS[0], kind).unwrap();
        HOSTS.map(|host| (state.allows(&host, true), state.allows(&host, false)))
    }

    #[test]
    fn access_is_that_of_the_specification() {
        let (all, reads, none) = ((true, true), (true, false), (false, false));
        assert_eq!(access(1), [all, reads, reads]);
        assert_eq!(access(2), [all, none, none]);
        for kind in [3, 5] {
            assert_eq!(access(kind), [all, all, reads]);
        }
        for kind in [4, 6] {
            assert_eq!(access(kind), [all, all, none]);
        }
    }

    #[test]
    fn a_preempted_holder_loses_the_registration() {
        let mut state = State::default();
        for (host, key) in HOSTS.into_iter().zip([10, 20, 30]) {
            state.register(host, key).unwrap();
        }
        state.acquire(HOSTS[0], 3).unwrap();
        assert_eq!(state.preempt(HOSTS[1], 1, 99), Err(status::RESERVATION_CONFLICT));
        assert_eq!(state.preempt(HOSTS[1], 1, 0), Err(status::INVALID_FIELD));
        let notices = state.preempt(HOSTS[1], 1, 10).unwrap();
        let expected = [(HOSTS[0], Notice::RegistrationPreempted), (HOSTS[2], Notice::ReservationReleased)];
        assert_eq!((notices.as_slice(), state.held), (&expected[..], Some((1, HOSTS[1]))));
        assert_eq!((state.registrants.len(), state.generation), (2, 4));
    }

    #[test]
    fn all_registrants_hold_until_the_last_leaves() {
        let mut state = State::default();
        for (host, key) in HOSTS.into_iter().zip([10, 20]) {
            state.register(host, key).unwrap();
        }
        state.acquire(HOSTS[0], 5).unwrap();
        assert!(state.unregister(HOSTS[0], Some(10)).unwrap().is_empty());
        assert!(state.is_holder(&HOSTS[1]));
        state.unregister(HOSTS[1], None).unwrap();
        assert_eq!(state.held, None);
    }
}
