//! Sockets: one thread that accepts, one for each client.
//!
//! Ignored: timeouts of idle clients, and access control beyond that of the socket.

use crate::drive::{self, Job, PowerCuts, Witness};
use crate::handshake::{self, Chosen, Export};
use crate::transmission;
use crate::wire::Fault;
use palimpsest_lab::error::Error;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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
            Some(path) => Ok(Listener::Unix(UnixListener::bind(path)?, path.into())),
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

/// A connection.
trait Socket: Read + Write + Send + Sized + 'static {
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

/// Ends a connection.
type HangUp = Box<dyn Fn() + Send>;

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
    connected: Mutex<BTreeMap<u64, HangUp>>,
    /// Clients that use the drive.
    using: AtomicUsize,
}

impl Service {
    /// A service without clients.
    pub fn new(export: Export, jobs: SyncSender<Job>, once: bool) -> Arc<Service> {
        let (power_cuts, connected, using) = (Arc::default(), Mutex::default(), AtomicUsize::new(0));
        Arc::new(Service { export, jobs, once, power_cuts, connected, using })
    }

    fn clients(&self) -> MutexGuard<'_, BTreeMap<u64, HangUp>> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Witness for Service {
    fn failed(&self, error: &Error) {
        eprintln!("error: {error}; every further request is refused");
    }

    fn power_lost(&self) {
        let clients = self.clients();
        clients.values().for_each(|hang_up| hang_up());
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
        let (mut stream, client) = match next() {
            Ok(accepted) => accepted,
            Err(error) => {
                eprintln!("a client could not be accepted: {error}");
                std::thread::sleep(AFTER_FAILURE);
                continue;
            }
        };
        if service.clients().len() >= MOST_CLIENTS {
            eprintln!("client {client}: refused, {MOST_CLIENTS} are connected");
            continue;
        }
        let since = service.power_cuts.count();
        let another = match stream.another() {
            Ok(another) => another,
            Err(error) => {
                eprintln!("client {client}: refused, {error}");
                continue;
            }
        };
        service.clients().insert(number, Box::new(move || another.hang_up()));
        let shared = Arc::clone(service);
        let spawned = std::thread::Builder::new().spawn(move || {
            if let Err(fault) = serve_client(&mut stream, &shared, since) {
                eprintln!("client {client}: {fault}; connection closed");
            }
            shared.clients().remove(&number);
        });
        if let Err(error) = spawned {
            service.clients().remove(&number);
            eprintln!("a client was refused: {error}");
        }
    }
}

/// Serves one client from its handshake to its end; `since`: how often the power had failed when it connected.
fn serve_client(stream: &mut (impl Read + Write), service: &Service, since: u64) -> Result<(), Fault> {
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
