//! The storage of moonpool's simulations on a simulated solid-state drive.
//!
//! A [`Disk`] is a `StorageProvider`: reads, writes and flushes of files are requests of one [`Drive`], whose clock
//! follows the simulation. Collection of garbage, full write buffers and busy dies therefore delay every file of the
//! disk, and no file of another disk. Cells store the bytes, and the drive verifies every read. [`WithDisk`] replaces
//! the storage of any bundle of providers.
//!
//! Files are lists of blocks of 4 KiB. Like direct I/O, each operation reaches the drive; a write of a part of a block
//! first reads the block. Deleted and truncated blocks are trimmed.
//!
//! Ignored: names, sizes and block lists live in memory and cost no requests; crashes of the process, after which the
//! drive keeps its data; power cuts; moonpool's injected storage faults.

mod device;
mod file;

use device::{Device, Inode};
use moonpool_core::{OpenOptions, Providers, StorageProvider, TimeProvider};
use palimpsest_drive::{Builder, Contents, Figures};
use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::sync::{Arc, Mutex};

pub use file::DiskFile;

/// Bytes of a block of a file.
pub const BLOCK: u64 = 4096;

type Names = BTreeMap<String, Arc<Inode>>;

/// A simulated drive with files. Clones are the same disk.
pub struct Disk<T: TimeProvider> {
    device: Arc<Device<T>>,
    names: Arc<Mutex<Names>>,
}

impl<T: TimeProvider> Clone for Disk<T> {
    fn clone(&self) -> Self {
        Disk { device: self.device.clone(), names: self.names.clone() }
    }
}

impl<T: TimeProvider> Disk<T> {
    /// A disk without files on the drive of `builder`, whose clock follows `time` from now on.
    ///
    /// # Errors
    /// `InvalidInput`: the drive cannot be built.
    pub fn new(builder: Builder, time: T) -> Result<Self> {
        let drive = builder.contents(Contents::Bytes).build();
        let drive = drive.map_err(|error| Error::new(ErrorKind::InvalidInput, error.to_string()))?;
        Ok(Disk { device: Arc::new(Device::new(drive, time)), names: Arc::default() })
    }

    /// The figures of the drive so far.
    pub fn figures(&self) -> Figures {
        self.device.figures()
    }

    fn names(&self) -> std::sync::MutexGuard<'_, Names> {
        self.names.lock().expect("no holder panics")
    }

    /// The file at `path`, which is made if the options say so.
    fn find(&self, path: &str, options: &OpenOptions) -> Result<Arc<Inode>> {
        let mut names = self.names();
        let writes = options.is_write() || options.is_append();
        match names.get(path) {
            Some(_) if options.is_create_new() => Err(Error::new(ErrorKind::AlreadyExists, path)),
            Some(inode) => Ok(inode.clone()),
            None if writes && (options.is_create() || options.is_create_new()) => {
                let inode = Arc::new(self.device.inode());
                names.insert(path.into(), inode.clone());
                Ok(inode)
            }
            None => Err(Error::new(ErrorKind::NotFound, path)),
        }
    }
}

impl<T: TimeProvider> StorageProvider for Disk<T> {
    type File = DiskFile<T>;

    async fn open(&self, path: &str, options: OpenOptions) -> Result<Self::File> {
        if !(options.is_read() || options.is_write() || options.is_append()) {
            return Err(Error::new(ErrorKind::InvalidInput, "expected one of read, write and append"));
        }
        let inode = self.find(path, &options)?;
        if options.is_truncate() {
            self.device.set_len(&inode, 0).await?;
        }
        Ok(DiskFile::new(self.device.clone(), inode, options))
    }

    async fn exists(&self, path: &str) -> Result<bool> {
        Ok(self.names().contains_key(path))
    }

    /// Removes the name. Open files keep the data until they are dropped, as on POSIX.
    async fn delete(&self, path: &str) -> Result<()> {
        let removed = self.names().remove(path);
        removed.map(drop).ok_or_else(|| Error::new(ErrorKind::NotFound, path))
    }

    /// Renames a file; a file at `to` is replaced.
    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        let mut names = self.names();
        let inode = names.remove(from).ok_or_else(|| Error::new(ErrorKind::NotFound, from))?;
        names.insert(to.into(), inode);
        Ok(())
    }
}

/// The providers of `P`, with a disk as the storage.
#[derive(Clone)]
pub struct WithDisk<P: Providers> {
    inner: P,
    disk: Disk<P::Time>,
}

impl<P: Providers> WithDisk<P> {
    /// Replaces the storage of `inner`.
    pub fn new(inner: P, disk: Disk<P::Time>) -> Self {
        WithDisk { inner, disk }
    }
}

impl<P: Providers> Providers for WithDisk<P> {
    type Network = P::Network;
    type Time = P::Time;
    type Task = P::Task;
    type Random = P::Random;
    type Storage = Disk<P::Time>;

    fn network(&self) -> &P::Network {
        self.inner.network()
    }

    fn time(&self) -> &P::Time {
        self.inner.time()
    }

    fn task(&self) -> &P::Task {
        self.inner.task()
    }

    fn random(&self) -> &P::Random {
        self.inner.random()
    }

    fn storage(&self) -> &Disk<P::Time> {
        &self.disk
    }
}
