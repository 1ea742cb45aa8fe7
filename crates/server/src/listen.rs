//! Sockets: one thread that accepts, one for each client.
//!
//! Where all places are taken, the client that has been idle for longest leaves its own to a new one. Ignored: access control beyond
//! that of the socket.

use crate::drive::{self, Job, PowerCuts, Witness};
use crate::handshake::{self, Chosen, Export};
use crate::patience::{BUDGET, Budget, Idle, Limited, Log, Patient};
use crate::transmission;
use crate::wire::{Fault, Stream};
use palimpsest_lab::error::Error;
use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Most clients at the same time; more are refused.
const MOST_CLIENTS: usize = 64;

/// Wait after a failure to accept.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// A listening socket.
pub enum Listener {
    /// TCP.
    Tcp(TcpListener),
    /// A socket in the file system, removed when the server ends.
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Opens `HOST:PORT`, or `unix:PATH`.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn open(place: &str) -> io::Result<Listener> {
        match place.strip_prefix("unix:") {
            Some(path) => Ok(Listener::Unix(bind(Path::new(path))?, path.into())),
            None => TcpListener::bind(place).map(Listener::Tcp),
        }
    }

    /// The address as an NBD URI.
    pub fn uri(&self) -> String {
        match self {
            Listener::Tcp(listener) => {
                listener.local_addr().map_or_else(|_| "nbd://".into(), |address| format!("nbd://{address}"))
            }
            Listener::Unix(_, path) => format!("nbd+unix:///?socket={}", path.display()),
        }
    }

    /// Removes the file of the socket.
    pub fn clean_up(path: Option<PathBuf>) {
        if let Some(path) = path {
            let _ = std::fs::remove_file(path);
        }
    }

    /// The file of the socket.
    pub fn path(&self) -> Option<PathBuf> {
        match self {
            Listener::Tcp(_) => None,
            Listener::Unix(_, path) => Some(path.clone()),
        }
    }
}

/// Opens a socket in the file system, in the place of one that no server listens at any more.
fn bind(path: &Path) -> io::Result<UnixListener> {
    let is_socket = || std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_socket() => {
            match UnixStream::connect(path).map_err(|error| error.kind()) {
                Err(io::ErrorKind::ConnectionRefused) => std::fs::remove_file(path)?,
                _ => return Err(error),
            }
            UnixListener::bind(path)
        }
        other => other,
    }
}

/// A connection.
trait Socket: Limited + Send + Sized + 'static {
    /// Another handle of it.
    fn another(&self) -> io::Result<Self>;

    /// Takes no more requests from it; replies still go out.
    fn hang_up(&self);
}

impl Socket for TcpStream {
    fn another(&self) -> io::Result<Self> {
        self.try_clone()
    }

    fn hang_up(&self) {
        let _ = self.shutdown(Shutdown::Read);
    }
}

impl Socket for UnixStream {
    fn another(&self) -> io::Result<Self> {
        self.try_clone()
    }

    fn hang_up(&self) {
        let _ = self.shutdown(Shutdown::Read);
    }
}

impl Limited for TcpStream {
    fn limit(&self, limit: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(limit)?;
        self.set_write_timeout(limit)
    }
}

impl Limited for UnixStream {
    fn limit(&self, limit: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(limit)?;
        self.set_write_timeout(limit)
    }
}

/// A client that is connected.
struct Client {
    hang_up: Box<dyn Fn() + Send>,
    idle: Idle,
}

impl Client {
    fn idle_since(&self) -> Option<Instant> {
        *self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state that all threads share.
pub struct Service {
    /// The drive as a client finds it.
    pub export: Export,
    /// The queue of the drive.
    pub jobs: SyncSender<Job>,
    /// Whether to end after the last client that used the drive; those whom a power cut disconnects may come back.
    pub once: bool,
    /// Power cuts of the drive.
    pub power_cuts: Arc<PowerCuts>,
    /// Clients that are connected, by number.
    connected: Mutex<BTreeMap<u64, Client>>,
    /// Clients that use the drive.
    using: AtomicUsize,
    /// How long a handshake or a message may take, and a client is idle before it leaves its place to another.
    timeout: Duration,
    /// Memory for requests and replies.
    budget: Arc<Budget>,
    log: Log,
}

impl Service {
    /// A service without clients.
    pub fn new(export: Export, jobs: SyncSender<Job>, once: bool, timeout: Duration) -> Arc<Service> {
        Arc::new(Service {
            export,
            jobs,
            once,
            power_cuts: Arc::default(),
            connected: Mutex::default(),
            using: AtomicUsize::new(0),
            timeout,
            budget: Budget::new(BUDGET),
            log: Log::default(),
        })
    }

    fn clients(&self) -> MutexGuard<'_, BTreeMap<u64, Client>> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is a place for one more; an idle client may have to leave its own.
    fn make_room(&self) -> bool {
        let mut clients = self.clients();
        if clients.len() < MOST_CLIENTS {
            return true;
        }
        let idle = clients.iter().filter_map(|(&number, client)| Some((client.idle_since()?, number)));
        match idle.min().filter(|(since, _)| since.elapsed() >= self.timeout) {
            Some((_, number)) => {
                clients.remove(&number).into_iter().for_each(|client| (client.hang_up)());
                true
            }
            None => false,
        }
    }
}

impl Witness for Service {
    fn failed(&self, error: &Error) {
        eprintln!("error: {error}; every further request is refused");
    }

    fn power_lost(&self) {
        let clients = self.clients();
        clients.values().for_each(|client| (client.hang_up)());
        eprintln!(
            "the power failed, and the drive has recovered; {} connections end: what they wrote and did not flush may be lost",
            clients.len()
        );
    }
}

/// Accepts clients for ever.
pub fn accept(listener: Listener, service: Arc<Service>) {
    match listener {
        Listener::Tcp(listener) => accept_from(&service, || {
            let (stream, address) = listener.accept()?;
            stream.set_nodelay(true)?;
            Ok((stream, address.to_string()))
        }),
        Listener::Unix(listener, _) => {
            let mut number = 0;
            accept_from(&service, || {
                number += 1;
                Ok((listener.accept()?.0, number.to_string()))
            });
        }
    }
}

fn accept_from<S: Socket>(service: &Arc<Service>, mut next: impl FnMut() -> io::Result<(S, String)>) {
    for number in 0.. {
        let (stream, client) = match next() {
            Ok(accepted) => accepted,
            Err(error) => {
                service.log.say(&format!("a client could not be accepted: {error}"));
                std::thread::sleep(AFTER_FAILURE);
                continue;
            }
        };
        if !service.make_room() {
            service.log.say(&format!("client {client}: refused, {MOST_CLIENTS} are connected"));
            continue;
        }
        let since = service.power_cuts.count();
        let another = match stream.another() {
            Ok(another) => another,
            Err(error) => {
                service.log.say(&format!("client {client}: refused, {error}"));
                continue;
            }
        };
        let idle = Idle::default();
        let entry = Client { hang_up: Box::new(move || another.hang_up()), idle: Arc::clone(&idle) };
        service.clients().insert(number, entry);
        let mut stream = Patient::new(stream, service.timeout, Arc::clone(&service.budget), idle);
        let shared = Arc::clone(service);
        let spawned = std::thread::Builder::new().spawn(move || {
            if let Err(fault) = serve_client(&mut stream, &shared, since) {
                shared.log.say(&format!("client {client}: {fault}; connection closed"));
            }
            shared.clients().remove(&number);
        });
        if let Err(error) = spawned {
            service.clients().remove(&number);
            service.log.say(&format!("a client was refused: {error}"));
        }
    }
}

/// Serves one client from its handshake to its end; `since`: how often the power had failed when it connected.
fn serve_client(stream: &mut impl Stream, service: &Service, since: u64) -> Result<(), Fault> {
    if handshake::negotiate(stream, &service.export)? == Chosen::Nothing {
        return Ok(());
    }
    service.using.fetch_add(1, Ordering::SeqCst);
    let mut serve = |request| drive::request(&service.jobs, since, request);
    let ended = transmission::transmit(stream, &service.export, &mut serve);
    let is_last = service.using.fetch_sub(1, Ordering::SeqCst) == 1;
    if is_last && service.once && service.power_cuts.count() == since {
        let _ = service.jobs.send(Job::Stop);
    }
    ended.map(|_| ())
}
