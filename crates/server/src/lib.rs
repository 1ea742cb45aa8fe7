//! A simulated drive as a network block device, so that real programs can use it.
//!
//! It models the data path: bytes pass the translation layer, its garbage collection and its faults, and reads are verified. The time of
//! the drive is not imposed on clients, unless the [`clock`] is paced. The contents are lost when the server ends.
//!
//! [`serve`] does it all. [`wire`] holds the protocol's numbers, [`handshake`] and [`transmission`] its two phases over any stream,
//! [`drive`] the drive behind its lock, [`timed`] the one with a time and [`outbox`] its replies, [`listen`] the sockets, [`page`] figures meanwhile, [`patience`] their
//! limits. Sockets, threads and wall clocks of the project are here only. For Unix.

pub mod clock;
pub mod drive;
pub mod engine;
pub mod fuzzing;
pub mod handshake;
pub mod listen;
pub mod outbox;
pub mod page;
pub mod patience;
pub mod timed;
pub mod transmission;
pub mod wire;

use clock::Clock;
use drive::Drive;
use engine::Engine;
use handshake::Export;
use listen::{Listener, Service, Waker};
use palimpsest_lab::config::Resolved;
use palimpsest_lab::error::{Error, Result};
use palimpsest_lab::host::trace::output::Recorder;
use palimpsest_lab::run::served::Served;
use palimpsest_lab::run::{Options, Outcome, Progress};
use std::ops::ControlFlow;
use std::process::{Child, Command};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use timed::Timed;

/// Interval in which the program is asked whether to go on.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// How a drive is served.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Places to listen at: `HOST:PORT`, or `unix:PATH`.
    pub listen: Vec<String>,
    /// How the time of the drive goes; with any but none the options say that the drive is timed.
    pub clock: Clock,
    /// Where figures are shown meanwhile: an address of this machine.
    pub page: Option<String>,
    /// Whether to end when the last client that used the drive has gone.
    pub once: bool,
    /// A command for the shell, which finds the address as `$uri`: the service ends with it.
    pub run: Option<String>,
    /// Most time for a handshake or a message, more than nothing; a client that is idle for so long leaves its place to another.
    pub timeout: Duration,
}

/// A service that has ended.
pub struct Ended {
    /// The result of the drive.
    pub outcome: Outcome,
    /// How long it was served.
    pub served: Duration,
    /// The status of the command that ran beside it; `None` where a signal ended it, or there was none.
    pub status: Option<i32>,
}

/// Serves the drive of `resolved` until `goes_on` says that it must not. That is asked often: with the progress of preconditioning,
/// whose end is an [`Error::Interrupted`], and without while the drive is served. `say` gets a line where there is something to say. Every
/// request of the drive is in the `record`.
///
/// # Errors
/// [`Error::Input`] for wrong options and places; the first error of the drive.
pub fn serve(
    resolved: &Resolved,
    options: &Options,
    settings: &Settings,
    record: Option<Recorder>,
    say: &(dyn Fn(&str) + Sync),
    goes_on: &mut (dyn FnMut(Option<Progress>) -> ControlFlow<()> + Send),
) -> Result<Ended> {
    let listeners = Listeners::open(&settings.listen)?;
    let page = settings.page.as_deref().map(page::open).transpose()?.map(Listener::Tcp);
    let (ask, serving) = (Mutex::new(goes_on), AtomicBool::new(false));
    let ask = |progress| ask.lock().map_or(ControlFlow::Break(()), |mut ask| ask(progress));
    let mut watcher = |progress| match serving.load(Ordering::Relaxed) {
        true => ControlFlow::Continue(()),
        false => ask(Some(progress)),
    };
    let mut served = Served::new(resolved, options, &mut watcher)?;
    record.into_iter().for_each(|recorder| served.record(recorder));
    serving.store(true, Ordering::Relaxed);
    let (name, bytes) = (resolved.drive.name.clone(), served.bytes());
    let uris: Vec<String> = listeners.0.iter().map(Listener::uri).collect();
    if let Some(Ok(address)) = page.as_ref().map(Listener::address) {
        say(&format!("figures at http://{address}"));
    }
    say(&format!("serving {name} ({}), {bytes} bytes, at {}", resolved.drive.ftl.name, uris.join(" and ")));
    let export = Export { name, bytes, preferred_block: handshake::preferred_block(served.unit_bytes()) };
    let engine = match settings.clock {
        Clock::None => Engine::Counted(Drive::new(served)),
        clock => Engine::Timed(Timed::new(served, clock)),
    };
    let service = Service::new(export, engine, settings.once, settings.timeout, say);
    let begin = Instant::now();
    let status = std::thread::scope(|scope| {
        let wakers: Vec<Waker> = listeners.0.iter().chain(&page).map(Waker::of).collect();
        let service = &service;
        if let Engine::Timed(timed) = &service.drive {
            scope.spawn(move || timed.run(service));
        }
        if let Some(Listener::Tcp(page)) = &page {
            scope.spawn(move || page::run(page, service));
        }
        for listener in &listeners.0 {
            scope.spawn(move || listen::accept(listener, service, scope));
        }
        let mut beside = settings.run.as_deref().map(|run| Beside::start(run, &uris[0])).transpose();
        let mut status = None;
        while let Ok(beside) = &mut beside {
            if service.wait(ASK_EVERY) || ask(None).is_break() {
                break;
            }
            if let Some(beside) = beside
                && let Some(ended) = beside.ended()
            {
                status = ended;
                break;
            }
        }
        service.hang_up(&wakers);
        beside.map(|_| status)
    })?;
    let served = begin.elapsed();
    Ok(Ended { outcome: service.drive.finish()?, served, status })
}

/// The sockets; those in the file system are removed with it.
struct Listeners(Vec<Listener>);

impl Listeners {
    fn open(places: &[String]) -> Result<Listeners> {
        let mut listeners = Listeners(Vec::new());
        for place in places {
            listeners.0.push(Listener::open(place).map_err(|error| {
                let expected = "expected HOST:PORT or unix:PATH that this user may open and that is not in use";
                Error::input(format!("--listen {place}"), format!("{error}; {expected}"))
            })?);
        }
        Ok(listeners)
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        self.0.iter().for_each(Listener::clean_up);
    }
}

/// The command that runs beside the service; it does not outlive it.
struct Beside(Child);

impl Beside {
    fn start(run: &str, uri: &str) -> Result<Beside> {
        let started = Command::new("sh").args(["-c", run]).env("uri", uri).spawn();
        started.map(Beside).map_err(|error| Error::input("--run", format!("{error}; expected a shell to run it")))
    }

    /// Its status, when it has ended.
    fn ended(&mut self) -> Option<Option<i32>> {
        match self.0.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(status.code()),
            Err(_) => Some(None),
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
