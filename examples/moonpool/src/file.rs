//! A handle of a file: position, and the operation in progress.
//!
//! Ignored: an operation that the caller no longer polls. A later call of the same kind returns its result, as tokio's
//! files do.

use crate::device::{Device, Inode};
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::io::{AsyncRead, AsyncSeek, AsyncWrite};
use moonpool_core::{OpenOptions, StorageFile, TimeProvider};
use std::io::{Error, ErrorKind, Result, SeekFrom};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

/// The mutex is never locked: a file must be `Sync`, and futures are not.
type Operation<R> = Mutex<Option<BoxFuture<'static, Result<R>>>>;

/// An open file of a disk.
pub struct DiskFile<T: TimeProvider> {
    device: Arc<Device<T>>,
    inode: Arc<Inode>,
    options: OpenOptions,
    position: u64,
    reading: Operation<Vec<u8>>,
    /// Bytes, and the position behind them.
    writing: Operation<(usize, u64)>,
}

impl<T: TimeProvider> DiskFile<T> {
    pub(crate) fn new(device: Arc<Device<T>>, inode: Arc<Inode>, options: OpenOptions) -> Self {
        DiskFile { device, inode, options, position: 0, reading: Mutex::default(), writing: Mutex::default() }
    }

    fn require(&self, allowed: bool, access: &str) -> Result<()> {
        if allowed { Ok(()) } else { Err(Error::new(ErrorKind::PermissionDenied, format!("not open for {access}"))) }
    }

    fn is_writable(&self) -> bool {
        self.options.is_write() || self.options.is_append()
    }
}

impl<T: TimeProvider> StorageFile for DiskFile<T> {
    async fn sync_all(&self) -> Result<()> {
        self.device.flush().await
    }

    async fn sync_data(&self) -> Result<()> {
        self.device.flush().await
    }

    async fn size(&self) -> Result<u64> {
        Ok(self.inode.size())
    }

    async fn set_len(&self, size: u64) -> Result<()> {
        self.require(self.is_writable(), "writing")?;
        self.device.set_len(&self.inode, size).await
    }
}

impl<T: TimeProvider> AsyncRead for DiskFile<T> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<Result<usize>> {
        self.require(self.options.is_read(), "reading")?;
        let file = &mut *self;
        let reading = file.reading.get_mut().expect("no holder panics");
        let operation = reading.get_or_insert_with(|| {
            let (device, inode) = (file.device.clone(), file.inode.clone());
            let (position, length) = (file.position, buffer.len() as u64);
            async move { device.read(&inode, position, length).await }.boxed()
        });
        let read = ready!(operation.poll_unpin(context));
        *reading = None;
        let mut bytes = read?;
        bytes.truncate(buffer.len());
        buffer[..bytes.len()].copy_from_slice(&bytes);
        file.position += bytes.len() as u64;
        Poll::Ready(Ok(bytes.len()))
    }
}

impl<T: TimeProvider> AsyncWrite for DiskFile<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &[u8]) -> Poll<Result<usize>> {
        self.require(self.is_writable(), "writing")?;
        if buffer.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let file = &mut *self;
        let writing = file.writing.get_mut().expect("no holder panics");
        let operation = writing.get_or_insert_with(|| {
            let (device, inode, bytes) = (file.device.clone(), file.inode.clone(), buffer.to_vec());
            let position = (!file.options.is_append()).then_some(file.position);
            async move { Ok((bytes.len(), device.write(&inode, position, &bytes).await?)) }.boxed()
        });
        let written = ready!(operation.poll_unpin(context));
        *writing = None;
        let (count, end) = written?;
        file.position = end;
        Poll::Ready(Ok(count))
    }

    /// Nothing to do: a write has reached the drive when `poll_write` returns.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl<T: TimeProvider> AsyncSeek for DiskFile<T> {
    fn poll_seek(mut self: Pin<&mut Self>, _: &mut Context<'_>, to: SeekFrom) -> Poll<Result<u64>> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(offset) => self.inode.size().checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        let position = position.ok_or_else(|| Error::new(ErrorKind::InvalidInput, "a position before the file"))?;
        *self.reading.get_mut().expect("no holder panics") = None;
        self.position = position;
        Poll::Ready(Ok(position))
    }
}
