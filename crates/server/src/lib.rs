//! A simulated drive as a network block device, or as a block device of the kernel, so that real programs can use it.
//!
//! It models the data path: bytes pass the translation layer, its garbage collection and its faults, and reads are verified. The time of
//! the drive is not imposed on clients, unless the [`clock`] is paced. The contents are lost when the server ends, unless they are in an
//! [`image`].
//!
//! [`serve`] does it all. [`wire`] holds the protocol's numbers, [`handshake`] and [`transmission`] its two phases over any stream,
//! [`drive`] the drive behind its lock, [`timed`] the one with a time and [`outbox`] its replies, [`listen`] the sockets, [`page`] figures meanwhile, [`patience`] their
//! limits; [`attach`] the block device of the kernel, [`mount`](mod@mount) the file system, `crash` a file whose writes are recorded. Sockets, threads, wall clocks and files that are
//! written in place are here only. For Unix.

pub mod attach;
pub mod beside;
pub mod clock;
#[cfg(target_os = "linux")]
pub mod crash;
pub mod drive;
pub mod engine;
pub mod fuzzing;
pub mod handshake;
pub mod image;
pub mod input;
pub mod listen;
pub mod mount;
pub mod outbox;
pub mod page;
pub mod patience;
pub mod timed;
pub mod transmission;
pub mod wire;

use attach::{Attached, Place};
use beside::Beside;
use clock::Clock;
use drive::Drive;
use engine::Engine;
use handshake::Export;
use image::ImageFile;
use listen::{Listener, Service, Waker};
use palimpsest_lab::config::Resolved;
use palimpsest_lab::error::{Error, Result};
use palimpsest_lab::host::trace::output::Recorder;
use palimpsest_lab::run::image::{Keep, length_of};
use palimpsest_lab::run::served::Served;
use palimpsest_lab::run::{Options, Outcome, Progress, Watcher};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
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
    /// A block device of the kernel that is wanted too.
    pub attach: Option<attach::Wanted>,
    /// How the time of the drive goes; with any but none the options say that the drive is timed.
    pub clock: Clock,
    /// Where figures are shown meanwhile: an address of this machine.
    pub page: Option<String>,
    /// The file that keeps the drive; `None`: memory does.
    pub image: Option<PathBuf>,
    /// Whether what is flushed is to survive a crash of the machine, too.
    pub image_sync: bool,
    /// Whether to end when the last client that used the drive has gone.
    pub once: bool,
    /// A command for the shell, which finds the first address as `$uri`, the device as `$dev` and its file as `$file`: the service ends with it.
    pub run: Option<String>,
    /// Most time for a handshake or a message, more than nothing.
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
    let place = settings.attach.as_ref().map(|wanted| Place::new(wanted, say)).transpose()?;
    let page = settings.page.as_deref().map(page::open).transpose()?.map(Listener::Tcp);
    let (ask, serving) = (Mutex::new(goes_on), AtomicBool::new(false));
    let ask = |progress| ask.lock().map_or(ControlFlow::Break(()), |mut ask| ask(progress));
    let mut watcher = |progress| match serving.load(Ordering::Relaxed) {
        true => ControlFlow::Continue(()),
        false => ask(Some(progress)),
    };
    let mut served =
        open_drive(resolved, options, (settings.image.as_deref(), settings.image_sync), say, &mut watcher)?;
    record.into_iter().for_each(|recorder| served.record(recorder));
    serving.store(true, Ordering::Relaxed);
    let (name, bytes) = (resolved.drive.name.clone(), served.bytes());
    let uris: Vec<String> = listeners.0.iter().map(Listener::uri).collect();
    if let Some(Ok(address)) = page.as_ref().map(Listener::address) {
        say(&format!("figures at http://{address}"));
    }
    let what = format!("{name} ({}), {bytes} bytes", resolved.drive.ftl.name);
    if !uris.is_empty() {
        say(&format!("serving {what}, at {}", uris.join(" and ")));
    }
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
            scope.spawn(move || page::run(page, service as &dyn page::Shown));
        }
        for listener in &listeners.0 {
            scope.spawn(move || listen::accept(listener, service, scope));
        }
        let attached = place.map(|place| place.attach(service, scope)).transpose();
        if let Ok(Some(attached)) = &attached {
            say(&format!("attached {what}, as {}: {}", attached.name(), attached.places()));
        }
        let (mut attached, failed) = attached.map_or_else(|error| (None, Some(error)), |attached| (attached, None));
        let status = match failed {
            Some(error) => Err(error),
            None => until_its_end(service, settings.run.as_deref(), &uris, &mut attached, &|| ask(None)),
        };
        if let Some(attached) = attached {
            attached.end(service);
        }
        service.hang_up(&wakers);
        status
    })?;
    let served = begin.elapsed();
    Ok(Ended { outcome: service.drive.finish()?, served, status })
}

/// Waits until the service ends, or `ask` says so, or the command `run` has ended, whose status this is.
fn until_its_end(
    service: &Service<'_>,
    run: Option<&str>,
    uris: &[String],
    attached: &mut Option<Attached>,
    ask: &dyn Fn() -> ControlFlow<()>,
) -> Result<Option<i32>> {
    let mut beside = run.map(|run| Beside::start(run, uris, attached.as_ref())).transpose()?;
    while !service.wait(ASK_EVERY) && ask().is_continue() {
        if let Some(ended) = beside.as_mut().and_then(Beside::ended) {
            return Ok(ended);
        }
        if let Some(attached) = attached {
            attached.look(service);
        }
    }
    Ok(None)
}

/// The drive: a new one, or the one in the image.
fn open_drive<'a>(
    resolved: &'a Resolved,
    options: &'a Options,
    (image, syncs): (Option<&Path>, bool),
    say: &dyn Fn(&str),
    watcher: Watcher<'a>,
) -> Result<Served<'a>> {
    let Some(path) = image else { return Served::new(resolved, options, watcher) };
    let (begin, name) = (Instant::now(), path.display().to_string());
    let (file, is_new) = ImageFile::open(path, Some(length_of(resolved)?))?;
    let keep = Keep { medium: Box::new(file), name: name.clone(), is_new, syncs };
    let served = Served::keep(resolved, options, Some(keep), watcher)?;
    say(&match served.mounted() {
        None => format!("{name}: a new image"),
        Some(found) => {
            let how = if found.ended_well { "ended well" } else { "was broken off" };
            let (pages, took) = (found.pages, begin.elapsed().as_secs_f64());
            format!("{name}: the service before {how}; {pages} written pages found, and recovered from, in {took:.3} s")
        }
    });
    Ok(served)
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
