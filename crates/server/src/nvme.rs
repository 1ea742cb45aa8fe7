//! An NVMe/TCP target in user space: the served drive as a namespace of an NVMe subsystem, for unmodified hosts.
//!
//! A connection is a queue with a thread. [`pdu`] holds the transport, [`connect`] the begin of a connection,
//! [`connection`] the commands of a queue, [`queue`] their answers. [`controller`] is the association of a host,
//! [`admin`] its commands with [`identify`], [`logs`], [`health`] and [`features`]; [`io`] the commands of the drive,
//! [`fused`] pairs of them. [`namespaces`] are ranges of the drive, with [`reservations`] and [`marks`] of unreadable
//! blocks; [`background`] does the work of [`sanitize`] and [`selftest`].
//! [`discovery`] names the subsystem to hosts. The drive, its clock, image and page are those of the NBD server.
//!
//! [`zones`] and [`placement`] are the commands of drives with zones or reclaim unit handles.
//!
//! Ignored: several subsystems in a process, authentication, TLS.

pub mod admin;
pub mod background;
pub mod connect;
pub mod connection;
pub mod controller;
pub mod discovery;
pub mod entry;
pub mod features;
pub mod fused;
pub mod health;
pub mod identify;
pub mod io;
pub mod logs;
pub mod marks;
pub mod namespaces;
pub mod pdu;
pub mod placement;
pub mod queue;
pub mod reservations;
pub mod sanitize;
pub mod selftest;
pub mod status;
pub mod zones;

use crate::drive::Bytes;
use crate::engine::Engine;
use crate::identity;
use crate::input::{Input, Large};
use crate::listen::{Connected, Service};
use crate::outbox::Outbox;
use crate::patience::{Budget, Patient, Replying};
use crate::request::{Asked, PowerLost, Request};
use crate::socket::Socket;
use crate::timed;
use crate::wire::{Fault, Stream};
use admin::Context;
use background::Bell;
use connection::{Connection, Port};
use controller::{Controller, Event, Host};
use features::Features;
use marks::Marks;
use namespaces::Namespaces;
use palimpsest_lab::error::{Error, Result};
use palimpsest_lab::ftl::PlacementEvents;
use palimpsest_lab::log::Identifiers;
use palimpsest_lab::metrics::life::Life;
use queue::{Completions, Queue};
use reservations::Reservations;
use sanitize::Sanitize;
use selftest::Tests;
use status::Status;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;
use zones::ZoneFacts;

/// Most bytes of data of a command (MDTS), a power of two.
pub const MOST_TRANSFER: u32 = 1 << 20;

/// Memory of writes that wait for data, for all hosts, beside one write of each queue.
const TRANSFERS: u64 = 64 << 20;

/// Numbers of controllers: 1 to FFEFh, the others are reserved.
const MOST_CONTROLLERS: u64 = 0xFFEF;

/// The wanted subsystem.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Name of the subsystem; `None` names it after the UUID of the drive.
    pub nqn: Option<String>,
    /// Names of the hosts that may connect; empty for all.
    pub hosts: Vec<String>,
    /// Bytes of a block: 512 or 4096.
    pub block_bytes: u32,
    /// Bytes of the namespaces; empty for one of the whole drive.
    pub namespaces: Vec<u64>,
    /// Subsystems of other processes, for the discovery log: names and addresses.
    pub others: Vec<(String, SocketAddr)>,
    /// The address of the subsystem for its hosts, such as one outside a translation of addresses; by default the
    /// address at which a host connects.
    pub advertised: Option<SocketAddr>,
}

/// The drive.
#[derive(Debug, Clone)]
pub struct Facts {
    pub blocks: u64,
    pub block_bytes: u32,
    /// Bytes of a unit of the layer's map: of the best deallocations.
    pub unit_bytes: u64,
    /// Bytes of a page, or of a unit if larger: the least that the drive writes without a part from elsewhere.
    pub page_bytes: u64,
    /// Bytes that one program of all planes of a die stores.
    pub program_bytes: u64,
    /// Whether no power cut can bring unmapped data back.
    pub trims_last: bool,
    pub model: String,
    pub serial: String,
    pub uuid: [u8; 16],
    /// The zones, if the layer has some.
    pub zones: Option<ZoneFacts>,
    /// The reclaim unit handles, if the layer has some.
    pub placement: Option<Identifiers>,
}

impl Facts {
    /// The namespace of the drive `uuid` of `bytes` bytes.
    pub fn new(name: &str, bytes: u64, unit_bytes: u64, trims_last: bool, wanted: &Wanted, uuid: [u8; 16]) -> Self {
        // A copy of an image under another name is another drive.
        let uuid = wanted.nqn.as_deref().map_or(uuid, |nqn| identity::derived(&uuid, nqn));
        let serial = identity::serial_of(&uuid);
        Facts {
            blocks: bytes / u64::from(wanted.block_bytes),
            block_bytes: wanted.block_bytes,
            unit_bytes,
            page_bytes: unit_bytes,
            program_bytes: unit_bytes,
            trims_last,
            model: format!("palimpsest {name}"),
            serial,
            uuid,
            zones: None,
            placement: None,
        }
    }

    /// The namespace with the sizes of flash, and the zones or reclaim unit handles of a drive.
    ///
    /// # Errors
    /// [`Error::Input`] for blocks that do not fit the zones.
    pub fn of_layer(self, served: &palimpsest_lab::run::served::Served<'_>) -> Result<Self> {
        let zones = served.zones().map(|zones| ZoneFacts::new(zones, self.block_bytes)).transpose()?;
        let placement = served.figures().fdp.as_ref().map(placement::identifiers);
        let page_bytes = (served.page_bytes() / served.pages_per_program()).next_multiple_of(self.unit_bytes);
        let program_bytes = served.program_bytes().next_multiple_of(page_bytes);
        Ok(Facts { zones, placement, page_bytes, program_bytes, ..self })
    }

    pub fn bytes(&self) -> u64 {
        self.blocks * u64::from(self.block_bytes)
    }
}

/// The subsystem that hosts see.
pub struct Subsystem {
    pub nqn: String,
    pub facts: Facts,
    hosts: Vec<String>,
    /// Subsystems of other processes.
    others: Vec<(String, SocketAddr)>,
    advertised: Option<SocketAddr>,
    controllers: Mutex<BTreeMap<u16, Arc<Controller>>>,
    namespaces: RwLock<Namespaces>,
    pub reservations: Reservations,
    pub marks: Marks,
    pub sanitize: Sanitize,
    pub tests: Tests,
    /// Tells the thread of [`background`] that there is work.
    pub work: Bell,
    /// Saved features, by host.
    saved: Mutex<BTreeMap<String, Features>>,
    /// The time that a host set, and when; else the time since the begin.
    timestamp: Mutex<Option<(u64, Instant)>>,
    is_worn_out: AtomicBool,
    warned_of_spare: AtomicBool,
    /// Memory of writes that wait for data.
    transfers: Arc<Budget>,
    begin: Instant,
    /// The life of the drive before this service.
    before: Life,
    /// Entries of error logs over the life of the drive.
    errors: Arc<AtomicU64>,
    /// Events of reclaim unit handles.
    placement: Mutex<placement::Events>,
    /// Zones that the drive has changed, as far as reported to hosts.
    changed_zones: AtomicU64,
}

impl Subsystem {
    /// The wanted name of the subsystem, or one for the drive `uuid`.
    pub fn name_of(uuid: &[u8; 16], wanted: &Wanted) -> String {
        wanted.nqn.clone().unwrap_or_else(|| identity::nqn_of(uuid))
    }

    /// The subsystem `wanted` with its namespaces.
    ///
    /// # Errors
    /// [`Error::Input`] for a malformed name, and for namespaces that the drive has no room for.
    pub fn new(facts: Facts, wanted: &Wanted) -> Result<Self> {
        let nqn = Self::name_of(&facts.uuid, wanted);
        let others = wanted.others.iter().map(|(name, _)| name);
        for name in wanted.hosts.iter().chain([&nqn]).chain(others) {
            let is_name = name.starts_with("nqn.") && name.len() < 224 && !name.contains(char::is_whitespace);
            if !is_name || *name == discovery::NQN {
                let what = "expected an NVMe qualified name such as nqn.2026-11.org.example:drive, below 224 bytes";
                return Err(Error::input(format!("--nqn, --host or --discover {name}"), what));
            }
        }
        let namespaces = RwLock::new(Namespaces::new(&facts, wanted)?);
        Ok(Subsystem {
            nqn,
            facts,
            hosts: wanted.hosts.clone(),
            others: wanted.others.clone(),
            advertised: wanted.advertised,
            controllers: Mutex::default(),
            namespaces,
            reservations: Reservations::default(),
            marks: Marks::default(),
            sanitize: Sanitize::default(),
            tests: Tests::default(),
            work: Bell::default(),
            saved: Mutex::default(),
            timestamp: Mutex::default(),
            is_worn_out: AtomicBool::new(false),
            warned_of_spare: AtomicBool::new(false),
            transfers: Budget::new(TRANSFERS),
            begin: Instant::now(),
            before: Life::default(),
            errors: Arc::default(),
            placement: Mutex::default(),
            changed_zones: AtomicU64::new(0),
        })
    }

    /// The subsystem of a drive that has counted `events` of reclaim unit handles before, after the life `before`.
    #[must_use]
    pub fn after(self, events: PlacementEvents, before: Life) -> Self {
        let errors = Arc::new(AtomicU64::new(before.error_log_entries));
        Subsystem { placement: Mutex::new(placement::Events::new(events)), before, errors, ..self }
    }

    /// Entries of error logs in this service.
    pub fn new_errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed) - self.before.error_log_entries
    }

    fn placement(&self) -> MutexGuard<'_, placement::Events> {
        self.placement.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the events of the drive.
    pub fn proceeded(&self, served: &palimpsest_lab::run::served::Served<'_>) {
        if let Some(zones) = served.zones().filter(|_| self.facts.zones.is_some()) {
            let changed = zones.changed().number();
            if self.changed_zones.swap(changed, Ordering::Relaxed) < changed {
                self.tell(|_| true, |controller| controller.report(Event::ZONES_CHANGED));
            }
        }
        if let Some(facts) = &self.facts.placement
            && let Some((events, directives)) = served.placement_events()
        {
            self.placement().note(events, directives, facts, self.begin.elapsed());
        }
    }

    pub fn namespaces(&self) -> RwLockReadGuard<'_, Namespaces> {
        self.namespaces.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn namespaces_mut(&self) -> RwLockWriteGuard<'_, Namespaces> {
        self.namespaces.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the saved features.
    fn with_saved<T>(&self, change: impl FnOnce(&mut BTreeMap<String, Features>) -> T) -> T {
        change(&mut self.saved.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whole hours for which the drive was served in its life.
    pub fn hours(&self) -> u64 {
        (self.before.powered_s + self.begin.elapsed().as_secs()) / 3600
    }

    /// Milliseconds of the timestamp, and whether a host set it.
    pub fn timestamp(&self) -> (u64, bool) {
        let set = *self.timestamp.lock().unwrap_or_else(PoisonError::into_inner);
        let (from, since) = set.unwrap_or((0, self.begin));
        (from.wrapping_add(since.elapsed().as_millis() as u64), set.is_some())
    }

    fn set_timestamp(&self, milliseconds: u64) {
        *self.timestamp.lock().unwrap_or_else(PoisonError::into_inner) = Some((milliseconds, Instant::now()));
    }

    /// Whether the drive takes no further writes.
    pub fn is_worn_out(&self) -> bool {
        self.is_worn_out.load(Ordering::Acquire)
    }

    /// Checks that the drive takes writes.
    ///
    /// # Errors
    /// The status of a worn-out drive.
    pub fn check_writable(&self) -> std::result::Result<(), Status> {
        if self.is_worn_out() { Err(status::WRITE_PROTECTED) } else { Ok(()) }
    }

    /// Notes a warning of few spare blocks; returns whether it is the first.
    fn warn_of_spare(&self) -> bool {
        !self.warned_of_spare.swap(true, Ordering::AcqRel)
    }

    /// Tells all controllers of a drive that `of` chooses.
    fn tell(&self, of: impl Fn(&Controller) -> bool, tell: impl Fn(&Controller)) {
        let all: Vec<_> = self.controllers().values().cloned().collect();
        all.iter().filter(|one| !one.is_discovery && of(one)).for_each(|controller| tell(controller));
    }

    /// Numbers of the controllers of a drive that hosts with this identifier have.
    fn controllers_of(&self, host: &[u8; 16]) -> Vec<u16> {
        let all = self.controllers();
        all.values().filter(|one| !one.is_discovery && one.host.id == *host).map(|one| one.id).collect()
    }

    /// Numbers of the controllers of a drive whose host `has` something.
    fn controllers_with(&self, has: impl Fn(&str) -> bool) -> Vec<u16> {
        let all = self.controllers();
        all.values().filter(|one| !one.is_discovery && has(&one.host.name)).map(|one| one.id).collect()
    }

    fn controllers(&self) -> MutexGuard<'_, BTreeMap<u16, Arc<Controller>>> {
        self.controllers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn allows(&self, host: &str) -> bool {
        self.hosts.is_empty() || self.hosts.iter().any(|allowed| allowed == host)
    }

    /// A new controller; `None` if there is no free number. Numbers begin at a place of the drive's own, because a host
    /// takes controllers with equal numbers for one.
    pub(crate) fn add(&self, host: Host, is_discovery: bool) -> Option<Arc<Controller>> {
        let mut all = self.controllers();
        let first = identity::number_of(&self.facts.uuid);
        let id = (0..MOST_CONTROLLERS).map(|at| 1 + ((first + at) % MOST_CONTROLLERS) as u16);
        let id = id.into_iter().find(|id| !all.contains_key(id))?;
        let controller = Arc::new(Controller::new(id, host, is_discovery, Arc::clone(&self.errors)));
        if let Some(saved) = self.with_saved(|saved| saved.get(&controller.host.name).cloned()) {
            controller.with_features(|features| *features = saved);
        }
        for (holds, event) in [(&self.is_worn_out, Event::WORN_OUT), (&self.warned_of_spare, Event::SPARE_LOW)] {
            if holds.load(Ordering::Acquire) {
                controller.report(event);
            }
        }
        all.insert(id, Arc::clone(&controller));
        Some(controller)
    }

    fn find(&self, id: u16) -> Option<Arc<Controller>> {
        self.controllers().get(&id).cloned()
    }

    fn remove(&self, id: u16) {
        self.controllers().remove(&id);
    }

    /// Number of controllers.
    pub fn associations(&self) -> usize {
        self.controllers().len()
    }

    /// Tells all hosts that the drive takes no further writes.
    pub fn worn_out(&self) {
        self.is_worn_out.store(true, Ordering::Release);
        self.tell(|_| true, |controller| controller.report(Event::WORN_OUT));
    }

    /// Tells all hosts that the drive failed for good.
    pub fn failed(&self) {
        self.tell(|_| true, |controller| controller.report(Event::FAILED));
    }

    /// The power failed, and the drive has recovered.
    pub fn power_lost(&self) {
        self.reservations.power_lost();
    }

    /// The address for hosts of a socket at `address`.
    pub fn address_for_hosts(&self, address: SocketAddr) -> SocketAddr {
        self.advertised.unwrap_or(address)
    }

    /// The command that connects a host to `address`.
    pub fn connect_line(&self, address: &SocketAddr) -> String {
        format!("nvme connect -t tcp -a {} -s {} -n {}", address.ip(), address.port(), self.nqn)
    }
}

/// Where the answers of a queue go.
enum Route {
    /// To the socket, from the thread of the connection.
    Direct(Replying),
    /// To the outbox, from any thread.
    Outbox(Arc<Outbox>),
}

/// The served drive for one queue.
struct Served<'s, 'a> {
    service: &'s Service<'a>,
    client: Arc<timed::Client>,
    route: Route,
}

impl Port for Served<'_, '_> {
    fn serve(
        &mut self,
        asked: &[Asked],
        input: &mut Vec<u8>,
        out: &mut Completions,
    ) -> std::result::Result<(), PowerLost> {
        let (service, client) = (self.service, &self.client);
        match &service.drive {
            Engine::Counted(drive) => {
                drive.serve(client.queue, client.since, asked, Bytes::Together(input), out, service)
            }
            Engine::Timed(drive) => drive.serve(client, asked, input, &service.budget, service),
        }
    }

    fn serve_large(
        &mut self,
        asked: &Asked,
        large: &mut Large,
        out: &mut Completions,
    ) -> std::result::Result<(), PowerLost> {
        let (service, client) = (self.service, &self.client);
        match &service.drive {
            Engine::Counted(drive) => {
                // The drive is not locked meanwhile.
                large.seal();
                let bytes = Bytes::Known(&mut large.slab, &mut large.fingerprints);
                drive.serve(client.queue, client.since, std::slice::from_ref(asked), bytes, out, service)
            }
            Engine::Timed(drive) => {
                let (bytes, begin) = large.slab.lend();
                let mut asked = *asked;
                asked.request.iter_mut().filter_map(Request::bytes_at).for_each(|at| *at += begin);
                let served = drive.serve(client, &[asked], &bytes, &service.budget, service);
                large.slab.take_back(bytes);
                served
            }
        }
    }

    fn send(&mut self, out: &mut Completions) -> std::io::Result<()> {
        match &mut self.route {
            Route::Direct(writer) => {
                let sent = out.out.write_to(writer);
                out.out.clear();
                sent
            }
            Route::Outbox(outbox) => {
                let bytes = std::mem::take(&mut out.out.bytes);
                if !bytes.is_empty() {
                    outbox.deliver(bytes, 0, None);
                }
                Ok(())
            }
        }
    }
}

/// Serves one queue of a host until the connection ends.
///
/// # Errors
/// [`Fault`]: the connection must be closed.
pub fn serve_client(
    stream: &mut Patient,
    service: &Service<'_>,
    subsystem: &Subsystem,
    connected: Connected,
) -> std::result::Result<(), Fault> {
    let Connected { number, since, socket } = connected;
    let (mut input, mut writer) = (Input::default(), Replying { socket: socket.another()?, timeout: service.timeout });
    let another = || socket.another().map(Some);
    let Some(mut opened) = connect::open(stream, &mut writer, &mut input, subsystem, another)? else { return Ok(()) };
    let (queue, response) = (Arc::clone(&opened.queue), std::mem::take(&mut opened.response));
    if !queue.controller.is_discovery {
        service.used();
    }
    // A host that sends no keep-alive commands may be gone, so another host may take the place.
    if queue.controller.keep_alive_ms() > 0 {
        stream.stay();
    }
    let client = client_of(&queue, &socket, number, since)?;
    // Events, and completions of a drive with a clock, come from other threads.
    let is_direct = queue.number > 0 && matches!(service.drive, Engine::Counted(_));
    let outbox = (!is_direct).then(|| Arc::clone(&client.outbox));
    let route = outbox.clone().map_or(Route::Direct(Replying { socket: socket.another()?, ..writer }), Route::Outbox);
    let context = Context {
        subsystem,
        facts: &subsystem.facts,
        controller: &queue.controller,
        shown: service,
        address: socket.address(),
    };
    let port = Served { service, client, route };
    let lends = is_direct;
    let mut connection =
        Connection::new((stream, port, input), (Arc::clone(&queue), response), context, service.timeout, lends);
    let Some(outbox) = outbox else { return connection.run() };
    let mut sender = socket.another()?;
    std::thread::scope(|scope| {
        let sending = &outbox;
        scope.spawn(move || sending.run(&mut sender));
        if queue.number == 0 {
            queue.controller.attach_admin(Arc::clone(&queue), Arc::clone(&outbox));
        }
        let ended = connection.run();
        outbox.close(service.timeout);
        ended
    })
}

/// The queue as a client of the drive.
fn client_of(queue: &Arc<Queue>, socket: &Socket, number: u64, since: u64) -> std::io::Result<Arc<timed::Client>> {
    let (another, answering) = (socket.another()?, Arc::clone(queue));
    let outbox = Arc::new(Outbox::new(Box::new(move |bytes| another.send_now(bytes))));
    let form = Box::new(move |asked: &Asked, answer| answering.answer(asked, answer));
    Ok(Arc::new(timed::Client { queue: number as u32, outbox, form, since }))
}
