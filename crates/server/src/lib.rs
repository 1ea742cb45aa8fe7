//! Serves a simulated drive to real programs: as a network block device, an NVMe drive over TCP, a block device of the
//! kernel, or a mounted file system.
//!
//! The data path is modelled: bytes pass the FTL, garbage collection and faults, and reads are verified. Clients
//! do not feel the drive's latency unless the [`clock`] is paced. The contents are lost at the end unless an [`image`]
//! keeps them.
//!
//! [`serve`] is the entry. [`request`] holds the requests of every protocol. [`wire`] has the numbers of the NBD
//! protocol, [`handshake`] and [`transmission`] the two phases over any stream, [`nbd`] a client; [`nvme`](mod@nvme)
//! is the other protocol. [`drive`] is the drive behind a lock, [`timed`] the drive with a clock, [`outbox`] the
//! replies, [`identity`] its names. [`listen`] has the sockets, [`patience`] the limits of clients, [`page`] the live
//! figures. [`attach`] makes the block device, [`mount`](mod@mount) the file system, `crash` a recorded file. Sockets,
//! threads, wall clocks and files written in place are in this crate only. For Unix.

pub mod attach;
pub mod beside;
pub mod clock;
#[cfg(target_os = "linux")]
pub mod crash;
pub mod drive;
pub mod engine;
pub mod fuzzing;
pub mod handshake;
pub mod identity;
pub mod image;
pub mod input;
pub mod listen;
pub mod mount;
pub mod nbd;
pub mod nvme;
pub mod outbox;
pub mod page;
pub mod patience;
pub mod request;
pub mod socket;
pub mod timed;
pub mod transmission;
pub mod wire;

use attach::{Attached, Place};
use beside::Beside;
use clock::Clock;
use drive::Drive;
use engine::Engine;
use handshake::Export;
use identity::Claim;
use image::ImageFile;
use listen::{Listener, Service};
use nvme::{Facts, Subsystem};
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

/// Interval between calls of `goes_on` while a drive is served.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// How a drive is served.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Places to listen at: `HOST:PORT`, or `unix:PATH`.
    pub listen: Vec<String>,
    /// The NVMe subsystem that the places offer; `None` offers NBD.
    pub nvme: Option<nvme::Wanted>,
    /// The wanted block device.
    pub attach: Option<attach::Wanted>,
    /// The clock; with any but none the options must say that the drive is timed.
    pub clock: Clock,
    /// The page of live figures.
    pub page: Option<page::Wanted>,
    /// The image file; `None` keeps the drive in memory.
    pub image: Option<PathBuf>,
    /// Whether flushed data must survive a crash of the machine, too.
    pub image_sync: bool,
    /// Whether to end when the last client that used the drive has gone.
    pub once: bool,
    /// A shell command with the first address as `$uri`, the device as `$dev` and the file as `$file`. The service
    /// ends with the command.
    pub run: Option<String>,
    /// Time limit of a handshake or a message, above zero.
    pub timeout: Duration,
}

/// The end of a service.
pub struct Ended {
    /// The result of the drive.
    pub outcome: Outcome,
    /// How long the drive was served.
    pub served: Duration,
    /// Exit status of the command; `None` after a signal, or without a command.
    pub status: Option<i32>,
}

/// Serves the drive of `resolved` until `goes_on` breaks. `goes_on` is called often: with the progress of
/// preconditioning, whose break is an [`Error::Interrupted`], and with `None` while the drive is served. `say` gets
/// lines for the user. `record` gets every request of the drive.
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
    let listeners = Listeners::open(&settings.listen, settings.nvme.is_some())?;
    let place = settings.attach.as_ref().map(|wanted| Place::new(wanted, say)).transpose()?;
    let page = settings.page.as_ref().map(|page| page::open(&page.place)).transpose()?.map(Listener::Tcp);
    let (ask, serving) = (Mutex::new(goes_on), AtomicBool::new(false));
    let ask = |progress| ask.lock().map_or(ControlFlow::Break(()), |mut ask| ask(progress));
    let mut watcher = |progress| match serving.load(Ordering::Relaxed) {
        true => ControlFlow::Continue(()),
        false => ask(Some(progress)),
    };
    let image = settings.image.as_deref().map(|path| Image::open(resolved, path, settings.image_sync)).transpose()?;
    let uuid = image.as_ref().map_or_else(identity::fresh, |image| image.keep.uuid);
    let _claim = settings.nvme.as_ref().map(|wanted| Claim::new(&Subsystem::name_of(&uuid, wanted))).transpose()?;
    let mut served = open_drive(resolved, options, image, settings.nvme.is_some(), say, &mut watcher)?;
    served.note_controller(0, 0)?;
    record.into_iter().for_each(|recorder| served.record(recorder));
    serving.store(true, Ordering::Relaxed);
    let (name, bytes) = (resolved.drive.name.clone(), served.bytes());
    let subsystem = settings.nvme.as_ref().map(|wanted| subsystem(&served, &name, uuid, wanted)).transpose()?;
    listeners.0.iter().chain(&page).try_for_each(Listener::start).map_err(|error| {
        Error::input("--listen", format!("{error}; another program has taken the place meanwhile; expected a free one"))
    })?;
    let uris: Vec<String> = listeners.0.iter().map(|listener| uri_of(listener, subsystem.as_ref())).collect();
    if let Some(Ok(address)) = page.as_ref().map(Listener::address) {
        say(&format!("figures at http://{address}"));
    }
    let what = format!("{name} ({}), {bytes} bytes", resolved.drive.ftl.name);
    if !uris.is_empty() {
        say(&format!("serving {what}, at {}", uris.join(" and ")));
    }
    announce(&listeners, subsystem.as_ref(), say);
    let export = Export { name, bytes, preferred_block: handshake::preferred_block(served.unit_bytes()) };
    let engine = match settings.clock {
        Clock::None => Engine::Counted(Drive::new(served)),
        clock => Engine::Timed(Timed::new(served, clock)),
    };
    let service = Service::new(export, engine, settings.once, settings.timeout, say).with_nvme(subsystem);
    let begin = Instant::now();
    let status = std::thread::scope(|scope| {
        let service = &service;
        if let Engine::Timed(timed) = &service.drive {
            scope.spawn(move || timed.run(service));
        }
        if let Some(subsystem) = &service.nvme {
            scope.spawn(move || nvme::background::run(service, subsystem));
        }
        if let Some((Listener::Tcp(page), wanted)) = page.as_ref().zip(settings.page.as_ref()) {
            scope.spawn(move || page::run(page, wanted, service as &dyn page::Shown));
        }
        for listener in &listeners.0 {
            scope.spawn(move || listen::accept(listener, service, scope));
        }
        let attached = place.map(|place| place.attach(service, scope)).transpose();
        if let Ok(Some(attached)) = &attached {
            say(&format!("attached {what}, as {}", attached.places()));
        }
        let (mut attached, failed) = attached.map_or_else(|error| (None, Some(error)), |attached| (attached, None));
        let status = match failed {
            Some(error) => Err(error),
            None => until_its_end(service, settings.run.as_deref(), &uris, &mut attached, &|| ask(None)),
        };
        if let Some(attached) = attached {
            attached.end(service);
        }
        service.hang_up(listeners.0.iter().chain(&page));
        status
    })?;
    let served = begin.elapsed();
    service.note_controller();
    Ok(Ended { outcome: service.drive.finish()?, served, status })
}

/// The subsystem `wanted` with the drive as the namespace.
fn subsystem(served: &Served<'_>, name: &str, uuid: [u8; 16], wanted: &nvme::Wanted) -> Result<Subsystem> {
    let trims_last = !served.may_lose_power();
    let facts = Facts::new(name, served.bytes(), served.unit_bytes(), trims_last, wanted, uuid);
    let (events, _) = served.placement_events().unwrap_or_default();
    Ok(Subsystem::new(facts.of_layer(served)?, wanted)?.after(events, served.life().unwrap_or_default()))
}

/// Prints how hosts connect, and a warning if other machines can.
fn announce(listeners: &Listeners, subsystem: Option<&Subsystem>, say: &(dyn Fn(&str) + Sync)) {
    for listener in subsystem.iter().flat_map(|_| &listeners.0) {
        let address = listener.outside().or(listener.address().ok());
        for (subsystem, at) in subsystem.iter().zip(address) {
            say(&subsystem.connect_line(&subsystem.address_for_hosts(at)));
        }
    }
    if listeners.0.iter().any(|listener| listener.outside().is_some()) {
        say("warning: every machine that reaches the address can read and write the drive: the protocol here has no \
             password and no encryption");
    }
}

/// The address of a socket as a URI, by NVMe/TCP if there is a `subsystem`.
fn uri_of(listener: &Listener, subsystem: Option<&Subsystem>) -> String {
    match (subsystem, listener.outside().or(listener.address().ok())) {
        (Some(subsystem), Some(address)) => format!("nvme+tcp://{address}/{}", subsystem.nqn),
        _ => listener.uri(),
    }
}

/// Waits until the service ends, `ask` breaks, or the command `run` ends; returns the status of the command.
fn until_its_end(
    service: &Service<'_>,
    run: Option<&str>,
    uris: &[String],
    attached: &mut Option<Attached>,
    ask: &dyn Fn() -> ControlFlow<()>,
) -> Result<Option<i32>> {
    let mut beside = run.map(|run| Beside::start(run, uris, attached.as_ref())).transpose()?;
    while !service.wait(ASK_EVERY) && ask().is_continue() {
        service.note_controller();
        if let Some(ended) = beside.as_mut().and_then(Beside::ended) {
            return Ok(ended);
        }
        if let Some(attached) = attached {
            attached.look(service);
        }
    }
    Ok(None)
}

/// The opened file of an image.
struct Image {
    keep: Keep,
    since: Instant,
}

impl Image {
    /// Opens the image of the drive of `resolved` at `path`, a new one if there is none.
    fn open(resolved: &Resolved, path: &Path, syncs: bool) -> Result<Self> {
        let since = Instant::now();
        let name = path.display().to_string();
        let (file, is_new) = ImageFile::open(path, Some(length_of(resolved)?))?;
        let uuid = file.uuid().unwrap_or_else(identity::fresh);
        Ok(Image { keep: Keep { medium: Box::new(file), name, is_new, syncs, uuid }, since })
    }
}

fn open_drive<'a>(
    resolved: &'a Resolved,
    options: &'a Options,
    image: Option<Image>,
    takes_zones: bool,
    say: &dyn Fn(&str),
    watcher: Watcher<'a>,
) -> Result<Served<'a>> {
    let open = if takes_zones { Served::keep_zoned } else { Served::keep };
    let Some(Image { keep, since }) = image else { return open(resolved, options, None, watcher) };
    let name = keep.name.clone();
    let served = open(resolved, options, Some(keep), watcher)?;
    say(&match served.mounted() {
        None => format!("{name}: a new image"),
        Some(found) => {
            let how = if found.ended_well { "ended well" } else { "was interrupted" };
            let pages = found.pages;
            let took = since.elapsed().as_secs_f64();
            format!("{name}: the previous service {how}; {pages} written pages recovered in {took:.3} s")
        }
    });
    Ok(served)
}

/// The sockets; drop removes their files.
struct Listeners(Vec<Listener>);

impl Listeners {
    fn open(places: &[String], is_nvme: bool) -> Result<Listeners> {
        let mut listeners = Listeners(Vec::new());
        for place in places {
            if is_nvme && place.starts_with("unix:") {
                return Err(Error::input(format!("--listen {place}"), "NVMe/TCP has TCP only; expected HOST:PORT"));
            }
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
