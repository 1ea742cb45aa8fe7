//! An attached drive of Linux: its place, its file, its device, and its end.

use super::device::{self, Unmounted};
use super::places::{self, Claim};
use super::{INSTEAD, Wanted, disk, session};
use crate::listen::Service;
use fuser::Notifier;
use palimpsest_lab::error::{Error, Result};
use std::fs::File;
use std::path::PathBuf;
use std::thread::Scope;

/// A place for a drive that is to be attached; nothing is left of it when it is dropped.
pub struct Place {
    claim: Claim,
    file_only: bool,
}

/// An attached drive.
pub struct Attached {
    claim: Claim,
    bytes: u64,
    device: Option<PathBuf>,
    /// How often the power had failed when it was last looked at.
    since: u64,
    /// Tells the kernel what it must forget.
    kernel: Notifier,
}

impl Place {
    /// A place as it is `wanted`, on a machine that can attach drives.
    ///
    /// # Errors
    /// [`Error::Input`] for a name that is wrong or in use, and where there is no FUSE for this user.
    pub fn new(wanted: &Wanted, say: &dyn Fn(&str)) -> Result<Place> {
        if let Some(name) = wanted.name.as_ref().filter(|name| !places::is_name(name)) {
            return Err(Error::input(format!("--name {name}"), "expected up to 32 letters, digits, - and _"));
        }
        if let Err(error) = File::options().read(true).write(true).open("/dev/fuse") {
            return Err(Error::input("/dev/fuse", format!("{error}; expected FUSE, to attach a drive; {INSTEAD}")));
        }
        let is_root = nix::unistd::geteuid().is_root();
        let helper = || std::process::Command::new("fusermount3").arg("-V").output().is_ok();
        if !is_root && !helper() {
            return Err(Error::input("attach", format!("expected root, or the program fusermount3; {INSTEAD}")));
        }
        Ok(Place { claim: Claim::new(wanted.name.as_deref(), say)?, file_only: wanted.file_only || !is_root })
    }

    /// Mounts the file, serves it by a thread of `scope`, and makes the device.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn attach<'s>(self, service: &'s Service<'_>, scope: &'s Scope<'s, '_>) -> Result<Attached> {
        let Place { claim, file_only } = self;
        let (folder, bytes) = (claim.folder(), service.export.bytes);
        let mut session = session::mount(disk::of(service), &folder).map_err(|error| {
            Error::input(folder.display().to_string(), format!("{error}; expected the right to mount there; {INSTEAD}"))
        })?;
        let kernel = session.notifier();
        scope.spawn(move || {
            // It ends when it is unmounted, also by another; then there is nothing to serve.
            let _ = session.run();
            service.stop();
        });
        let mut attached = Attached { claim, bytes, device: None, since: service.drive.power_cuts(), kernel };
        if !file_only && let Err(error) = attached.set_device() {
            attached.end(service);
            let expected = "expected a free loop device and losetup; --file attaches the file alone";
            return Err(Error::input("/dev/loop-control", format!("{error}; {expected}")));
        }
        Ok(attached)
    }
}

impl Attached {
    fn set_device(&mut self) -> std::io::Result<()> {
        self.device = Some(device::set(&self.claim.file(), self.bytes)?);
        self.claim.note(self.device.as_deref()).map_err(std::io::Error::other)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.claim.name()
    }

    /// Its file.
    pub fn file(&self) -> PathBuf {
        self.claim.file()
    }

    /// Where it is found: its device, and its file.
    pub fn places(&self) -> String {
        let file = self.file();
        match &self.device {
            Some(device) => format!("{} (file {})", device.display(), file.display()),
            None => file.display().to_string(),
        }
    }

    /// Its device, or its file if it has none.
    pub fn place(&self) -> PathBuf {
        self.device.clone().unwrap_or_else(|| self.file())
    }

    /// After a power cut the kernel forgets what it had of file and device, which may be lost. The device gets errors only: as when a drive
    /// comes back, there is a new one.
    pub fn look(&mut self, service: &Service<'_>) {
        let cuts = service.drive.power_cuts();
        if cuts == self.since {
            return;
        }
        self.since = cuts;
        if let Err(error) = session::forget(&self.kernel) {
            service.say(&format!("{}: {error}; the kernel may show what is lost", self.claim.file().display()));
        }
        let Some(device) = self.device.take() else { return };
        // What is mounted from it keeps it for a while.
        device::forget(&device);
        let done = device::unset(&device).and_then(|()| self.set_device());
        match (done, &self.device) {
            (Ok(()), Some(device)) => service.say(&format!("the drive is back at {}", device.display())),
            (Err(error), _) => service.say(&format!("{}: {error}; only the file is left", device.display())),
            (Ok(()), None) => {}
        }
    }

    /// Unmounts what is mounted from the device, ends the device, and unmounts the file. The thread that serves it ends.
    pub fn end(self, service: &Service<'_>) {
        let (say, folder) = (|line: &str| service.say(line), self.claim.folder());
        places::end_devices(&self.claim.file(), &say);
        match device::is_mounted(&folder).then(|| device::unmount(&folder, true)) {
            Some(Ok(Unmounted::InUse)) => {
                say(&format!("{}: a program uses it, and gets errors from now on", self.claim.file().display()));
            }
            Some(Err(error)) => say(&format!("{} cannot be unmounted: {error}", folder.display())),
            Some(Ok(Unmounted::Now)) | None => {}
        }
    }
}

/// Ends the attached drives of these `names`, or `all`; removes what killed servers left, and `say` says so.
///
/// # Errors
/// [`Error::Input`] for a name that is none, [`Error::Io`] for a server that does not end.
pub fn detach(names: &[String], all: bool, say: &dyn Fn(&str)) -> Result<()> {
    places::detach(names, all, say)
}
