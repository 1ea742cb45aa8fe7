//! An attached drive of Linux: place, file, device and end.

use super::device;
pub use super::places::detach;
use super::places::{self, Claim};
use super::{INSTEAD, Wanted, disk, session};
use crate::listen::Service;
use fuser::Notifier;
use palimpsest_lab::error::{Error, Result};
use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::thread::Scope;

/// A claimed place for a drive; drop removes it.
pub struct Place {
    claim: Claim,
    file_only: bool,
}

/// An attached drive.
pub struct Attached {
    claim: Claim,
    bytes: u64,
    device: Option<PathBuf>,
    /// Power cuts at the last look.
    since: u64,
    kernel: Notifier,
}

impl Place {
    /// Claims the `wanted` place, on a machine that can attach drives.
    ///
    /// # Errors
    /// [`Error::Input`] for a name that is wrong or in use, and without FUSE for this user.
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

    /// Mounts the file, serves it on a thread of `scope`, and makes the device.
    ///
    /// # Errors
    /// [`Error::Input`]: the system refuses the mount or the device.
    pub fn attach<'s>(self, service: &'s Service<'_>, scope: &'s Scope<'s, '_>) -> Result<Attached> {
        let Place { claim, file_only } = self;
        let (folder, bytes) = (claim.folder(), service.export.bytes);
        let mut session = session::mount(disk::of(service), &folder).map_err(|error| {
            Error::input(folder.display().to_string(), format!("{error}; expected the right to mount there; {INSTEAD}"))
        })?;
        let kernel = session.notifier();
        scope.spawn(move || {
            // Returns after any unmount, then there is nothing to serve.
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

    /// Name, device and file of the drive, for the user.
    pub fn places(&self) -> String {
        let (name, file) = (self.claim.name(), self.claim.file());
        match &self.device {
            Some(device) => format!("{name}: {} (file {})", device.display(), file.display()),
            None => format!("{name}: {}", file.display()),
        }
    }

    /// Variables for the environment of a command: the device, else the file, and the file.
    pub fn variables(&self) -> [(&'static str, OsString); 2] {
        let file = self.claim.file();
        let device = self.device.clone().unwrap_or_else(|| file.clone());
        [("dev", device.into()), ("file", file.into())]
    }

    /// After a power cut, drops the kernel's cache of the file, which may hold lost data, and makes a new device: the
    /// old one returns errors only, as after a real drive comes back.
    pub fn look(&mut self, service: &Service<'_>) {
        let cuts = service.drive.power_cuts();
        if cuts == self.since {
            return;
        }
        self.since = cuts;
        if let Err(error) = session::forget(&self.kernel) {
            service.say(&format!(
                "{}: {error}; programs may read lost data from the kernel's cache",
                self.claim.file().display()
            ));
        }
        let Some(device) = self.device.take() else { return };
        // Mounted file systems keep the old device for a while.
        device::forget(&device);
        let done = device::unset(&device).and_then(|()| self.set_device());
        match (done, &self.device) {
            (Ok(()), Some(device)) => service.say(&format!("the drive is back at {}", device.display())),
            (Err(error), _) => service.say(&format!("{}: {error}; only the file is left", device.display())),
            (Ok(()), None) => {}
        }
    }

    /// Unmounts the file systems of the device, ends the device, and unmounts the file, which ends the serving thread.
    pub fn end(self, service: &Service<'_>) {
        let (say, folder) = (|line: &str| service.say(line), self.claim.folder());
        places::end_devices(&self.claim.file(), &say);
        if device::is_mounted(&folder) {
            device::end_mount(&folder, &self.claim.file(), true, &say);
        }
    }
}
