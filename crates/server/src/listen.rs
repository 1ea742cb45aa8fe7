//! Sockets: one thread accepts for each, and each client has one thread.
//!
//! If all places are taken, a new client displaces a client in the handshake, else the client that has been idle for
//! longest. The place is free when the thread of the displaced client has ended, so that places bound threads and
//! descriptors. A socket in the file system is for this user alone (mode 0600). Ignored: further access control.

use crate::drive::Witness;
use crate::engine::Engine;
use crate::handshake::Export;
use crate::nvme::Subsystem;
use crate::page::Shown;
use crate::patience::{BUDGET, Budget, Idle, Log, Patient};
use crate::socket::Socket;
use crate::wire::Fault;
use crate::{nbd, nvme};
use palimpsest_lab::error::Error;
use palimpsest_lab::run::served::Served;
use socket2::{Domain, SockRef, Type};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};

/// Most clients at the same time; more are refused.
const MOST_CLIENTS: usize = 64;

/// Idle time for which a client that finished the handshake keeps the place.
const GRACE: Duration = Duration::from_secs(1);

/// Wait for the thread of a displaced client, whose connection has ended in both directions.
const LEAVE: Duration = Duration::from_secs(1);

/// Time that clients have for their last replies when the service ends.
const FAREWELL: Duration = Duration::from_secs(2);

/// Wait after a failure to accept.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// Connections that the kernel keeps for a socket until the service accepts them.
const BACKLOG: i32 = 128;

/// A socket, which takes clients from [`Listener::start`] on.
pub enum Listener {
    Tcp(TcpListener),
    /// A socket in the file system, removed at the end.
    Unix(UnixListener, Place),
}

/// The paths of a socket in the file system.
pub struct Place {
    path: PathBuf,
    /// The path until [`Listener::start`]: in a folder that no other user can enter.
    hidden: PathBuf,
}

/// Reserves one of `addresses`: until [`Listener::start`], a client is refused and does not wait for an answer.
///
/// # Errors
/// Those of the last address.
pub(crate) fn reserve(addresses: impl Iterator<Item = SocketAddr>) -> io::Result<TcpListener> {
    let mut last = io::Error::new(io::ErrorKind::InvalidInput, "no address");
    for address in addresses {
        let bound = socket2::Socket::new(Domain::for_address(address), Type::STREAM, None).and_then(|socket| {
            socket.set_reuse_address(true)?;
            socket.bind(&address.into())?;
            Ok(socket)
        });
        match bound {
            Ok(socket) => return Ok(socket.into()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl Listener {
    /// Reserves `HOST:PORT`, or `unix:PATH`.
    pub fn open(place: &str) -> io::Result<Listener> {
        match place.strip_prefix("unix:") {
            Some(path) => Place::new(path.into()).bind().map(|(listener, place)| Listener::Unix(listener, place)),
            None => reserve(place.to_socket_addrs()?).map(Listener::Tcp),
        }
    }

    /// Takes clients from now on.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] if another server has taken the place meanwhile.
    pub fn start(&self) -> io::Result<()> {
        match self {
            Listener::Tcp(listener) => SockRef::from(listener).listen(BACKLOG),
            Listener::Unix(_, place) => place.publish(),
        }
    }

    /// The address of a TCP socket.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] for a socket in the file system.
    pub fn address(&self) -> io::Result<SocketAddr> {
        match self {
            Listener::Tcp(listener) => listener.local_addr(),
            Listener::Unix(..) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// The address for clients of other machines, if some can reach the socket: of the first interface, if the socket
    /// listens at all of them.
    pub fn outside(&self) -> Option<SocketAddr> {
        let address = self.address().ok().filter(|address| !address.ip().is_loopback())?;
        let is_other = |one: &IpAddr| one.is_ipv4() == address.is_ipv4() && !one.is_loopback() && !is_link_local(one);
        let own = || interfaces().into_iter().find(is_other).unwrap_or(address.ip());
        let ip = if address.ip().is_unspecified() { own() } else { address.ip() };
        Some(SocketAddr::new(ip, address.port()))
    }

    /// The address as an NBD URI.
    pub fn uri(&self) -> String {
        match self {
            Listener::Tcp(_) => {
                let address = self.outside().or(self.address().ok());
                address.map_or_else(|| "nbd://".into(), |address| format!("nbd://{address}"))
            }
            Listener::Unix(_, place) => format!("nbd+unix:///?socket={}", place.path.display()),
        }
    }

    /// Ends the wait for clients by a connection.
    pub fn wake(&self) {
        match self {
            Listener::Tcp(listener) => {
                let Ok(mut address) = listener.local_addr() else { return };
                match address.ip() {
                    IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
                    IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
                    _ => {}
                }
                drop(TcpStream::connect_timeout(&address, FAREWELL));
            }
            Listener::Unix(_, place) => drop(UnixStream::connect(&place.path)),
        }
    }

    /// Removes the file of the socket.
    pub fn clean_up(&self) {
        if let Listener::Unix(_, place) = self {
            // Before the start the file at the path is not ours.
            let is_hidden = place.hidden.exists();
            let _ = std::fs::remove_file(if is_hidden { &place.hidden } else { &place.path });
            place.leave();
        }
    }
}

/// The addresses of this machine, in the order of the interfaces.
fn interfaces() -> Vec<IpAddr> {
    let all = nix::ifaddrs::getifaddrs().into_iter().flatten().filter_map(|one| one.address);
    let ip = |address: nix::sys::socket::SockaddrStorage| {
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::from(v4.ip()));
        v4.or(address.as_sockaddr_in6().map(|v6| IpAddr::from(v6.ip())))
    };
    all.filter_map(ip).collect()
}

/// True for an address that names no machine without an interface.
fn is_link_local(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

impl Place {
    fn new(path: PathBuf) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let hidden = path.with_file_name(format!(".{}.{number}", std::process::id())).join("s");
        Place { path, hidden }
    }

    /// Opens the hidden socket, for this user alone.
    fn bind(self) -> io::Result<(UnixListener, Self)> {
        if let Some(why) = self.taken() {
            return Err(why.into());
        }
        self.hidden.parent().map_or(Ok(()), |folder| std::fs::DirBuilder::new().mode(0o700).create(folder))?;
        let bound = UnixListener::bind(&self.hidden).and_then(|listener| {
            std::fs::set_permissions(&self.hidden, std::fs::Permissions::from_mode(0o600))?;
            Ok(listener)
        });
        if bound.is_err() {
            let _ = std::fs::remove_file(&self.hidden);
            self.leave();
        }
        Ok((bound?, self))
    }

    /// Why the path is taken: a server takes clients there, or another kind of file exists.
    fn taken(&self) -> Option<io::ErrorKind> {
        let found = std::fs::symlink_metadata(&self.path).ok()?;
        if !found.file_type().is_socket() {
            return Some(io::ErrorKind::AlreadyExists);
        }
        let is_refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        (!UnixStream::connect(&self.path).is_err_and(is_refused)).then_some(io::ErrorKind::AddrInUse)
    }

    /// Moves the hidden socket to the path; replaces a socket without a server.
    fn publish(&self) -> io::Result<()> {
        match std::fs::hard_link(&self.hidden, &self.path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && self.taken().is_none() => {
                std::fs::remove_file(&self.path)?;
                std::fs::hard_link(&self.hidden, &self.path)?;
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(io::ErrorKind::AddrInUse.into()),
            other => other?,
        }
        std::fs::remove_file(&self.hidden)?;
        self.leave();
        Ok(())
    }

    /// Removes the folder of the hidden socket.
    fn leave(&self) {
        self.hidden.parent().into_iter().for_each(|folder| drop(std::fs::remove_dir(folder)));
    }
}

struct Client {
    hang_up: Box<dyn Fn(bool) + Send>,
    idle: Idle,
    /// Whether another client gets the place.
    is_displaced: bool,
}

impl Client {
    fn idle(&self) -> Option<(bool, Instant)> {
        *self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shown for Service<'_> {
    fn look(&self, look: &mut dyn FnMut(&Served<'_>)) {
        self.note_controller();
        self.drive.look(look);
    }

    fn connections(&self) -> usize {
        self.clients().len()
    }

    fn is_ending(&self) -> bool {
        *self.ending()
    }
}

/// The state that all threads share.
pub struct Service<'a> {
    /// The drive that clients see.
    pub export: Export,
    pub drive: Engine<'a>,
    /// The subsystem that NVMe hosts see; without one clients speak NBD.
    pub(crate) nvme: Option<Subsystem>,
    /// Whether to end after the last client that used the drive; clients may reconnect after a power cut.
    once: bool,
    /// Connected clients, by number.
    connected: Mutex<BTreeMap<u64, Client>>,
    /// A client has left the list.
    left: Condvar,
    /// Whether the service must end.
    ending: Mutex<bool>,
    changed: Condvar,
    /// Clients that use the drive, or are in the handshake.
    using: AtomicUsize,
    /// Whether a client has used the drive since the start or the last power cut.
    was_used: AtomicBool,
    /// Number of the next client.
    next: AtomicU64,
    /// Time limit of a handshake or a message.
    pub(crate) timeout: Duration,
    /// Memory for large requests and replies.
    pub(crate) budget: Arc<Budget>,
    log: Log,
    begin: Instant,
    say: &'a (dyn Fn(&str) + Sync),
}

impl<'a> Service<'a> {
    /// A service without clients; `say` gets lines for the user.
    pub fn new(
        export: Export,
        drive: Engine<'a>,
        once: bool,
        timeout: Duration,
        say: &'a (dyn Fn(&str) + Sync),
    ) -> Self {
        Service {
            export,
            drive,
            nvme: None,
            once,
            connected: Mutex::default(),
            left: Condvar::new(),
            ending: Mutex::new(false),
            changed: Condvar::new(),
            using: AtomicUsize::new(0),
            was_used: AtomicBool::new(false),
            next: AtomicU64::new(0),
            timeout,
            budget: Budget::new(BUDGET),
            log: Log::default(),
            begin: Instant::now(),
            say,
        }
    }

    /// The service for NVMe hosts, which see `subsystem`, if any.
    pub fn with_nvme(self, subsystem: Option<Subsystem>) -> Self {
        Service { nvme: subsystem, ..self }
    }

    /// Counts a client that uses the drive.
    pub(crate) fn used(&self) {
        self.was_used.store(true, Ordering::SeqCst);
    }

    /// Serves a client; the last client that used the drive may end the service.
    fn attend(&self, stream: &mut Patient, connected: Connected) -> Result<(), Fault> {
        // A client in the handshake counts because that client may be the next to use the drive.
        self.using.fetch_add(1, Ordering::SeqCst);
        let since = connected.since;
        let ended = match &self.nvme {
            None => nbd::serve_client(stream, self, connected),
            Some(subsystem) => nvme::serve_client(stream, self, subsystem, connected),
        };
        let is_last = self.using.fetch_sub(1, Ordering::SeqCst) == 1;
        if is_last && self.once && self.was_used.load(Ordering::SeqCst) && self.drive.power_cuts() == since {
            self.stop();
        }
        ended
    }

    fn clients(&self) -> MutexGuard<'_, BTreeMap<u64, Client>> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ending(&self) -> MutexGuard<'_, bool> {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub fn say(&self, line: &str) {
        (self.say)(line);
    }

    fn log(&self, line: &str) {
        self.log.say(line, &self.say);
    }

    /// Completes the book of the drive's life.
    pub(crate) fn note_controller(&self) {
        let errors = self.nvme.as_ref().map_or(0, Subsystem::new_errors);
        self.drive.note_controller(self.begin.elapsed().as_secs(), errors);
    }

    /// Makes the service end.
    pub fn stop(&self) {
        *self.ending() = true;
        self.changed.notify_all();
    }

    /// Waits up to `at_most`; returns whether the service must end.
    pub fn wait(&self, at_most: Duration) -> bool {
        let ending = self.ending();
        let waited = self.changed.wait_timeout_while(ending, at_most, |ending| !*ending);
        *waited.unwrap_or_else(PoisonError::into_inner).0 || self.drive.is_broken()
    }

    /// Ends all connections. Replies of served requests go out if their clients take them.
    pub fn hang_up<'l>(&self, listeners: impl IntoIterator<Item = &'l Listener>) {
        self.stop();
        self.drive.end();
        self.clients().values().for_each(|client| (client.hang_up)(false));
        listeners.into_iter().for_each(Listener::wake);
        let begin = Instant::now();
        while !self.clients().is_empty() && begin.elapsed() < FAREWELL {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.clients().values().for_each(|client| (client.hang_up)(true));
    }

    /// Whether there is a place for one more client; an idle client may lose a place.
    fn make_room(&self) -> bool {
        let mut clients = self.clients();
        if clients.len() < MOST_CLIENTS {
            return true;
        }
        let may_leave = |(is_client, since): (bool, Instant)| !is_client || since.elapsed() >= GRACE.min(self.timeout);
        let idle = clients.values_mut().filter(|client| !client.is_displaced);
        let idle = idle.filter_map(|client| Some((client.idle().filter(|&idle| may_leave(idle))?, client)));
        if let Some((_, client)) = idle.min_by_key(|&(idle, _)| idle) {
            client.is_displaced = true;
            // A client that takes no reply would hold the thread in a write.
            (client.hang_up)(true);
        }
        let is_full = |clients: &mut BTreeMap<u64, Client>| {
            clients.len() >= MOST_CLIENTS && clients.values().any(|client| client.is_displaced)
        };
        let waited = self.left.wait_timeout_while(clients, LEAVE, is_full);
        waited.unwrap_or_else(PoisonError::into_inner).0.len() < MOST_CLIENTS
    }

    /// Frees the place of client `number`.
    fn remove(&self, number: u64) {
        self.clients().remove(&number);
        self.left.notify_all();
    }
}

impl Witness for Service<'_> {
    fn failed(&self, error: &Error) {
        // A worn-out drive can still be read.
        if matches!(error, Error::WornOut(_)) {
            self.nvme.iter().for_each(Subsystem::worn_out);
            return (self.say)(&format!("error: {error}; every further write is refused"));
        }
        self.nvme.iter().for_each(Subsystem::failed);
        (self.say)(&format!("error: {error}; every further request is refused, and the server ends"));
        self.stop();
    }

    fn proceeded(&self, served: &Served<'_>) {
        self.nvme.iter().for_each(|subsystem| subsystem.proceeded(served));
    }

    fn power_lost(&self) {
        self.was_used.store(false, Ordering::SeqCst);
        self.nvme.iter().for_each(Subsystem::power_lost);
        let clients = self.clients();
        clients.values().for_each(|client| (client.hang_up)(false));
        (self.say)(&format!(
            "the power failed, and the drive has recovered; {} connections end: unflushed writes may be lost",
            clients.len()
        ));
    }
}

/// Send buffer of sockets in the file system, so that large reads are on their way while the next are served. TCP sizes
/// buffers.
const SEND_BUFFER: usize = 1 << 20;

/// A connection of a client.
pub struct Connected {
    /// Number of the client.
    pub number: u64,
    /// Power cuts before the client connected.
    pub since: u64,
    /// The connection, for replies.
    pub socket: Socket,
}

/// Accepts clients until the service ends.
pub fn accept<'s>(listener: &'s Listener, service: &'s Service<'_>, scope: &'s Scope<'s, '_>) {
    match listener {
        Listener::Tcp(listener) => accept_from(service, scope, || {
            let (stream, address) = listener.accept()?;
            stream.set_nodelay(true)?;
            Ok((Socket::new(stream), address.to_string()))
        }),
        Listener::Unix(listener, _) => {
            let mut number = 0;
            accept_from(service, scope, || {
                number += 1;
                let stream = listener.accept()?.0;
                // A smaller buffer is only slower.
                let _ = SockRef::from(&stream).set_send_buffer_size(SEND_BUFFER);
                Ok((Socket::new(stream), number.to_string()))
            });
        }
    }
}

fn accept_from<'s>(
    service: &'s Service<'_>,
    scope: &'s Scope<'s, '_>,
    mut next: impl FnMut() -> io::Result<(Socket, String)>,
) {
    loop {
        let accepted = next();
        if *service.ending() {
            return;
        }
        let (stream, client) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                service.log(&format!("a client could not be accepted: {error}"));
                std::thread::sleep(AFTER_FAILURE);
                continue;
            }
        };
        if !service.make_room() {
            service.log(&format!("client {client}: refused, {MOST_CLIENTS} clients are connected"));
        } else if let Err(error) = admit(service, scope, stream, &client) {
            service.log(&format!("client {client}: refused, {error}"));
        }
    }
}

fn admit<'s>(service: &'s Service<'_>, scope: &'s Scope<'s, '_>, mut stream: Socket, client: &str) -> io::Result<()> {
    let (since, number) = (service.drive.power_cuts(), service.number());
    stream.limit_writes(service.timeout)?;
    let (another, third) = (stream.another()?, stream.another()?);
    let idle = Idle::default();
    let stream = Patient::new(stream, service.timeout, Arc::clone(&service.budget), Arc::clone(&idle));
    let hang_up = Box::new(move |whole| another.hang_up(whole));
    service.clients().insert(number, Client { hang_up, idle, is_displaced: false });
    let client = client.to_owned();
    let spawned = std::thread::Builder::new().spawn_scoped(scope, move || {
        let _gone = Gone { service, number };
        // The descriptors close before the place is free.
        let mut stream = stream;
        if let Err(fault) = service.attend(&mut stream, Connected { number, since, socket: third }) {
            service.log(&format!("client {client}: {fault}; connection closed"));
        }
    });
    if spawned.is_err() {
        service.remove(number);
    }
    if *service.ending() {
        // `hang_up` may have run before this client was in the list.
        service.clients().get(&number).into_iter().for_each(|client| (client.hang_up)(false));
    }
    spawned.map(|_| ())
}

/// Takes a client out of the list, after a panic too.
struct Gone<'s, 'a> {
    service: &'s Service<'a>,
    number: u64,
}

impl Drop for Gone<'_, '_> {
    fn drop(&mut self) {
        self.service.remove(self.number);
    }
}
