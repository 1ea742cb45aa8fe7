//! Sockets: one thread that accepts, one for each client.
//!
//! Ignored: timeouts of idle clients, and access control beyond that of the socket.

use crate::drive::{self, Job};
use crate::handshake::{self, Chosen, Export};
use crate::transmission;
use crate::wire::Fault;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
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

/// The state that all threads share.
pub struct Service {
    /// The drive as a client finds it.
    pub export: Export,
    /// The queue of the drive.
    pub jobs: SyncSender<Job>,
    /// Whether to end after the last client that used the drive.
    pub once: bool,
    /// Clients that are connected.
    connected: AtomicUsize,
    /// Clients that use the drive.
    using: AtomicUsize,
}

impl Service {
    /// A service without clients.
    pub fn new(export: Export, jobs: SyncSender<Job>, once: bool) -> Arc<Service> {
        Arc::new(Service { export, jobs, once, connected: AtomicUsize::new(0), using: AtomicUsize::new(0) })
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

fn accept_from<S>(service: &Arc<Service>, mut next: impl FnMut() -> io::Result<(S, String)>)
where
    S: Read + Write + Send + 'static,
{
    loop {
        let (mut stream, client) = match next() {
            Ok(accepted) => accepted,
            Err(error) => {
                eprintln!("a client could not be accepted: {error}");
                std::thread::sleep(AFTER_FAILURE);
                continue;
            }
        };
        if service.connected.fetch_add(1, Ordering::SeqCst) >= MOST_CLIENTS {
            service.connected.fetch_sub(1, Ordering::SeqCst);
            eprintln!("client {client}: refused, {MOST_CLIENTS} are connected");
            continue;
        }
        let shared = Arc::clone(service);
        let spawned = std::thread::Builder::new().spawn(move || {
            if let Err(fault) = serve_client(&mut stream, &shared) {
                eprintln!("client {client}: {fault}; connection closed");
            }
            shared.connected.fetch_sub(1, Ordering::SeqCst);
        });
        if let Err(error) = spawned {
            service.connected.fetch_sub(1, Ordering::SeqCst);
            eprintln!("a client was refused: {error}");
        }
    }
}

/// Serves one client from its handshake to its end.
fn serve_client(stream: &mut (impl Read + Write), service: &Service) -> Result<(), Fault> {
    if handshake::negotiate(stream, &service.export)? == Chosen::Nothing {
        return Ok(());
    }
    service.using.fetch_add(1, Ordering::SeqCst);
    let ended = transmission::transmit(stream, &service.export, &mut |request| drive::request(&service.jobs, request));
    if service.using.fetch_sub(1, Ordering::SeqCst) == 1 && service.once {
        let _ = service.jobs.send(Job::Stop);
    }
    ended.map(|_| ())
}
