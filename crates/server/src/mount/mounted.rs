//! A mount from beginning to end.

use super::Settings;
use super::files::Files;
use super::known::Known;
use super::requests::Requests;
use crate::attach::device;
use crate::beside::Beside;
use crate::listen::Listener;
use crate::page::{self, Shown};
use crate::{ASK_EVERY, Ended, Image, open_drive};
use fuser::{Config, MountOption, Session, SessionACL};
use palimpsest_lab::config::Resolved;
use palimpsest_lab::error::{Error, Result};
use palimpsest_lab::host::trace::output::Recorder;
use palimpsest_lab::run::served::Served;
use palimpsest_lab::run::served::volume::Volume;
use palimpsest_lab::run::{Options, Progress};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longest wait of a change for a commit.
const COMMIT_EVERY: Duration = Duration::from_secs(5);

/// Mounts the file system on the drive of `resolved`, an empty one on a new drive. Ends with an unmount, with the end
/// of the command, or when `goes_on` breaks, as in [`crate::serve`].
///
/// # Errors
/// [`Error::Input`] for a folder that cannot be mounted at, and a drive that is too small; the first error of the
/// drive.
pub fn mount(
    resolved: &Resolved,
    options: &Options,
    settings: &Settings,
    record: Option<Recorder>,
    say: &(dyn Fn(&str) + Sync),
    goes_on: &mut (dyn FnMut(Option<Progress>) -> ControlFlow<()> + Send),
) -> Result<Ended> {
    let at = folder(&settings.at, say)?;
    let page = settings.page.as_ref().map(|page| page::open(&page.place)).transpose()?.map(Listener::Tcp);
    let (ask, mounted) = (Mutex::new(goes_on), AtomicBool::new(false));
    let ask = |progress| ask.lock().map_or(ControlFlow::Break(()), |mut ask| ask(progress));
    let mut watcher = |progress| match mounted.load(Ordering::Relaxed) {
        true => ControlFlow::Continue(()),
        false => ask(Some(progress)),
    };
    let image = settings.image.as_deref().map(|path| Image::open(resolved, path, settings.image_sync)).transpose()?;
    let mut served = open_drive(resolved, options, image, false, say, &mut watcher)?;
    served.note_controller(0, 0)?;
    record.into_iter().for_each(|recorder| served.record(recorder));
    mounted.store(true, Ordering::Relaxed);
    let volume = Mutex::new(Volume::open(served, &settings.scheme)?);
    let root = nix::unistd::geteuid().is_root();
    let owner = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
    let known = Known::default();
    let (lost, losses) = mpsc::channel();
    let mut files = Files::new(&volume, &known, lost.clone(), owner).map_err(|error| {
        Error::input("mount", format!("the drive fails: {}", std::io::Error::from_raw_os_error(error)))
    })?;
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName("palimpsest".into()), MountOption::DefaultPermissions];
    if root {
        config.acl = SessionACL::All;
        config.mount_options.push(MountOption::Suid);
    }
    let (requests, jobs) = mpsc::channel();
    let session = Session::new(Requests(requests), &at, &config).map_err(|error| {
        let expected = "expected the right to mount there: root, or the program fusermount3";
        Error::input(at.display().to_string(), format!("{error}; {expected}"))
    })?;
    page.iter().try_for_each(Listener::start).map_err(|error| Error::input("--page", error.to_string()))?;
    if let Some(Ok(address)) = page.as_ref().map(Listener::address) {
        say(&format!("figures at http://{address}"));
    }
    say(&format!("mounted {} ({}) at {}", resolved.drive.name, resolved.drive.ftl.name, at.display()));
    let (begin, over, kernel) = (Instant::now(), AtomicBool::new(false), session.notifier());
    let status = std::thread::scope(|scope| {
        let known = &known;
        scope.spawn(move || known.forget_contents(&kernel, &losses, say));
        let (over, page) = (&over, &page);
        scope.spawn(move || jobs.into_iter().for_each(|job| job(&mut files)));
        scope.spawn(move || {
            // Returns after any unmount.
            let _ = session.run();
            over.store(true, Ordering::SeqCst);
            page.iter().for_each(Listener::wake);
        });
        if let Some((Listener::Tcp(page), wanted)) = page.as_ref().zip(settings.page.as_ref()) {
            let shown = Figures { volume: &volume, over };
            scope.spawn(move || page::run(page, wanted, &shown));
        }
        let asked = || {
            lock(&volume).note_controller(begin.elapsed().as_secs());
            ask(None)
        };
        let status = until_its_end(&volume, settings.run.as_deref(), &at, over, lost, &asked);
        if !over.load(Ordering::SeqCst) {
            device::end_mount(&at, &at, true, say);
        }
        status
    })?;
    let served = begin.elapsed();
    let mut volume = volume.into_inner().unwrap_or_else(PoisonError::into_inner);
    volume.note_controller(served.as_secs());
    Ok(Ended { outcome: volume.finish()?, served, status })
}

fn lock<'v, 'a>(volume: &'v Mutex<Volume<'a>>) -> MutexGuard<'v, Volume<'a>> {
    volume.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Figures<'s, 'a> {
    volume: &'s Mutex<Volume<'a>>,
    over: &'s AtomicBool,
}

impl Shown for Figures<'_, '_> {
    fn look(&self, look: &mut dyn FnMut(&Served<'_>)) {
        look(lock(self.volume).served());
    }

    /// The kernel is the only one.
    fn connections(&self) -> usize {
        1
    }

    fn is_ending(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }
}

/// Checks the folder to mount at; unmounts the leftover of a killed server.
fn folder(at: &Path, say: &dyn Fn(&str)) -> Result<std::path::PathBuf> {
    if let Err(error) = fs::metadata(at)
        && error.raw_os_error() == Some(libc::ENOTCONN)
    {
        match device::unmount(at, true) {
            Ok(_) => say(&format!("{}: unmounted, because the server was killed", at.display())),
            Err(error) => say(&format!("{} cannot be unmounted: {error}", at.display())),
        }
    }
    let wrong =
        |what: String| Error::input(at.display().to_string(), format!("{what}; expected an empty folder to mount at"));
    let found = at.canonicalize().map_err(|error| wrong(error.to_string()))?;
    // The mount would hide the contents of the folder.
    let first = fs::read_dir(&found).map_err(|error| wrong(error.to_string()))?.next();
    if let Some(entry) = first {
        let name = entry.map_err(|error| wrong(error.to_string()))?.file_name();
        return Err(wrong(format!("the folder is not empty: it holds {}", name.display())));
    }
    if device::is_mounted(&found) {
        return Err(wrong("a file system is mounted there already".into()));
    }
    Ok(found)
}

/// Waits for the end, and commits changes that have waited long.
fn until_its_end(
    volume: &Mutex<Volume<'_>>,
    run: Option<&str>,
    at: &Path,
    over: &AtomicBool,
    lost: Sender<()>,
    ask: &dyn Fn() -> ControlFlow<()>,
) -> Result<Option<i32>> {
    let mut beside = run.map(|run| Beside::with(run, &[("mount", at.as_os_str())])).transpose()?;
    let mut committed = Instant::now();
    while !over.load(Ordering::SeqCst) && ask().is_continue() {
        if let Some(ended) = beside.as_mut().and_then(Beside::ended) {
            return Ok(ended);
        }
        if committed.elapsed() >= COMMIT_EVERY {
            let mut volume = lock(volume);
            if volume.filesystem().is_dirty() {
                // The next request reports the error.
                let losses = volume.losses();
                let _ = volume.with(|filesystem, device| filesystem.sync(device));
                if volume.losses() > losses {
                    let _ = lost.send(());
                }
            }
            committed = Instant::now();
        }
        std::thread::sleep(ASK_EVERY);
    }
    Ok(None)
}
