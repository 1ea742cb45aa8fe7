//! The drive of a disk, and files as lists of its blocks.
//!
//! Every waiting request sleeps until the drive's next event, and computes that time again after each submission,
//! because a new request may delay or hasten those in flight.
//!
//! Ignored: a request whose future is dropped still reaches the drive; its blocks may then hold the new data.

use crate::BLOCK;
use futures::future::poll_fn;
use moonpool_core::{TimeError, TimeProvider};
use palimpsest_drive::{Command, Completion, Drive, FLUSH, Figures, Status, Ticket, read, trim, write};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Error, ErrorKind, Result};
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

type Sleep = Pin<Box<dyn Future<Output = std::result::Result<(), TimeError>> + Send>>;

/// A file without its name. The blocks are freed with the last handle.
pub(crate) struct Inode {
    content: Mutex<Content>,
    /// Held by a change of the content, as by a kernel.
    changing: futures::lock::Mutex<()>,
    freed: Arc<Mutex<Vec<u64>>>,
}

#[derive(Default)]
struct Content {
    size: u64,
    /// The block of the drive for each block of the file; `None` reads as zeros.
    blocks: Vec<Option<u64>>,
}

impl Inode {
    fn content(&self) -> std::sync::MutexGuard<'_, Content> {
        self.content.lock().expect("no holder panics")
    }

    pub(crate) fn size(&self) -> u64 {
        self.content().size
    }
}

impl Drop for Inode {
    fn drop(&mut self) {
        self.freed.lock().expect("no holder panics").extend(self.content().blocks.iter().flatten());
    }
}

pub(crate) struct Device<T> {
    time: T,
    /// The simulation's time at which the clock of the drive was 0.
    start: Duration,
    state: Mutex<State>,
    /// Blocks of dropped files, which the next operation trims.
    freed: Arc<Mutex<Vec<u64>>>,
}

struct State {
    drive: Drive,
    /// Blocks from this one on were never used.
    unused: u64,
    spare: BTreeSet<u64>,
    /// Requests that a future waits for, with their completions.
    awaited: BTreeMap<Ticket, Option<Completion>>,
    /// Futures that must compute the next event again.
    wakers: Vec<Waker>,
}

impl<T: TimeProvider> Device<T> {
    pub(crate) fn new(drive: Drive, time: T) -> Self {
        let state = State { drive, unused: 0, spare: BTreeSet::new(), awaited: BTreeMap::new(), wakers: Vec::new() };
        Device { start: time.now(), time, state: Mutex::new(state), freed: Arc::default() }
    }

    pub(crate) fn inode(&self) -> Inode {
        Inode { content: Mutex::default(), changing: Default::default(), freed: self.freed.clone() }
    }

    pub(crate) fn figures(&self) -> Figures {
        self.state().drive.figures()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no holder panics")
    }

    /// The simulation's time on the drive's clock.
    fn now(&self) -> u64 {
        (self.time.now() - self.start).as_nanos() as u64
    }

    /// Reads up to `length` bytes of the file from `position` on; fewer at the end of the file.
    pub(crate) async fn read(&self, inode: &Inode, position: u64, length: u64) -> Result<Vec<u8>> {
        let (range, blocks) = {
            let content = inode.content();
            let end = content.size.min(position.saturating_add(length)).max(position);
            let range = position / BLOCK..end.div_ceil(BLOCK);
            (position..end, if position < end { content.blocks[indices(&range)].to_vec() } else { Vec::new() })
        };
        let skipped = (position % BLOCK) as usize;
        let bytes = self.read_blocks(&blocks).await?;
        Ok(bytes[skipped.min(bytes.len())..][..(range.end - range.start) as usize].to_vec())
    }

    /// Writes `bytes` at `position`, or at the end of the file; returns the position of the end of the write.
    pub(crate) async fn write(&self, inode: &Inode, position: Option<u64>, bytes: &[u8]) -> Result<u64> {
        let _guard = inode.changing.lock().await;
        let position = position.unwrap_or_else(|| inode.size());
        let end = position.checked_add(bytes.len() as u64).ok_or(ErrorKind::InvalidInput)?;
        self.overwrite(inode, position, bytes).await?;
        let mut content = inode.content();
        content.size = content.size.max(end);
        Ok(end)
    }

    /// Writes whole blocks, with the old bytes of the first and the last block beside `bytes`.
    async fn overwrite(&self, inode: &Inode, position: u64, bytes: &[u8]) -> Result<()> {
        let end = position + bytes.len() as u64;
        let range = position / BLOCK..end.div_ceil(BLOCK);
        let last = range.end - 1;
        let edges: BTreeSet<u64> = [(position, range.start), (end, last)]
            .into_iter()
            .filter_map(|(edge, block)| (!edge.is_multiple_of(BLOCK)).then_some(block))
            .collect();
        let old: Vec<_> = {
            let content = inode.content();
            edges.iter().map(|&edge| content.blocks.get(edge as usize).copied().flatten()).collect()
        };
        let old = self.read_blocks(&old).await?;
        let mut whole = vec![0; ((range.end - range.start) * BLOCK) as usize];
        for (edge, old) in edges.iter().zip(old.chunks_exact(BLOCK as usize)) {
            whole[((edge - range.start) * BLOCK) as usize..][..BLOCK as usize].copy_from_slice(old);
        }
        whole[(position - range.start * BLOCK) as usize..][..bytes.len()].copy_from_slice(bytes);
        let blocks = self.allocate(inode, &range)?;
        let mut from = 0;
        let commands = runs(&blocks).map(|run| {
            let length = (run.end - run.start) * BLOCK;
            let bytes = whole[from..from + length as usize].to_vec();
            from += length as usize;
            Ok((write(run.start * BLOCK, length).map_err(failed)?, bytes))
        });
        self.run(commands.collect::<Result<_>>()?).await.map(drop)
    }

    /// Changes the size. New bytes are zeros.
    pub(crate) async fn set_len(&self, inode: &Inode, size: u64) -> Result<()> {
        let _guard = inode.changing.lock().await;
        let old = inode.size();
        let zeroed = size..old.min(size.next_multiple_of(BLOCK));
        if !zeroed.is_empty() {
            self.overwrite(inode, size, &vec![0; (zeroed.end - size) as usize]).await?;
        }
        let mut content = inode.content();
        content.size = size;
        let kept = (size.div_ceil(BLOCK) as usize).min(content.blocks.len());
        self.freed.lock().expect("no holder panics").extend(content.blocks.drain(kept..).flatten());
        content.blocks.resize(size.div_ceil(BLOCK) as usize, None);
        Ok(())
    }

    /// Returns when all earlier writes of the disk are durable.
    pub(crate) async fn flush(&self) -> Result<()> {
        self.run(vec![(FLUSH, Vec::new())]).await.map(drop)
    }

    /// The bytes of blocks; `None` is a block of zeros.
    async fn read_blocks(&self, blocks: &[Option<u64>]) -> Result<Vec<u8>> {
        let stored: Vec<u64> = blocks.iter().copied().flatten().collect();
        let commands = runs(&stored)
            .map(|run| Ok((read(run.start * BLOCK, (run.end - run.start) * BLOCK).map_err(failed)?, Vec::new())));
        let read = self.run(commands.collect::<Result<_>>()?).await?;
        let mut read = read.iter().flat_map(|done| done.bytes.chunks_exact(BLOCK as usize));
        let mut bytes = Vec::with_capacity(blocks.len() * BLOCK as usize);
        for block in blocks {
            match block {
                Some(_) => bytes.extend(read.next().expect("a read returns its bytes")),
                None => bytes.resize(bytes.len() + BLOCK as usize, 0),
            }
        }
        Ok(bytes)
    }

    /// The blocks of the drive for `range` of the file, new ones where the file has none.
    fn allocate(&self, inode: &Inode, range: &Range<u64>) -> Result<Vec<u64>> {
        let (mut content, mut state) = (inode.content(), self.state());
        self.trim_freed(&mut state)?;
        if content.blocks.len() < range.end as usize {
            content.blocks.resize(range.end as usize, None);
        }
        let blocks = &mut content.blocks[indices(range)];
        for block in blocks.iter_mut().filter(|block| block.is_none()) {
            *block = Some(state.allocate()?);
        }
        Ok(blocks.iter().copied().flatten().collect())
    }

    fn trim_freed(&self, state: &mut State) -> Result<()> {
        let mut freed = std::mem::take(&mut *self.freed.lock().expect("no holder panics"));
        freed.sort_unstable();
        for run in runs(&freed) {
            let command = trim(run.start * BLOCK, (run.end - run.start) * BLOCK).map_err(failed)?;
            state.submit(command, Vec::new(), self.now())?;
        }
        state.spare.extend(freed);
        Ok(())
    }

    /// Submits `commands` together, each with the bytes of a write, and waits for all.
    async fn run(&self, commands: Vec<(Command, Vec<u8>)>) -> Result<Vec<Completion>> {
        let mut tickets = Vec::with_capacity(commands.len());
        {
            let mut state = self.state();
            for (command, bytes) in commands {
                let ticket = state.submit(command, bytes, self.now())?;
                state.awaited.entry(ticket).or_insert(None);
                tickets.push(ticket);
            }
            state.collect(self.now())?;
        }
        let mut sleep: (u64, Option<Sleep>) = (0, None);
        poll_fn(|context| self.poll(&tickets, &mut sleep, context)).await
    }

    fn poll(
        &self,
        tickets: &[Ticket],
        sleep: &mut (u64, Option<Sleep>),
        context: &mut Context<'_>,
    ) -> Poll<Result<Vec<Completion>>> {
        loop {
            let mut state = self.state();
            let now = self.now();
            state.collect(now)?;
            let ends = tickets.iter().map(|ticket| state.awaited[ticket].as_ref().map(|done| done.at));
            let ends = ends.collect::<Option<Vec<_>>>().map(|ends| ends.into_iter().max().unwrap_or(0));
            if ends.is_some_and(|end| end <= now) {
                return Poll::Ready(tickets.iter().map(|ticket| state.take(*ticket)).collect());
            }
            // A flush of the buffer that only a waiting write causes may put the drive's clock ahead.
            let next = ends.or_else(|| state.drive.next_time()).unwrap_or(u64::MAX);
            if sleep.1.is_none() || sleep.0 != next {
                let (time, length) = (self.time.clone(), Duration::from_nanos(next.saturating_sub(now)));
                *sleep = (next, Some(Box::pin(async move { time.sleep(length).await })));
            }
            state.wakers.push(context.waker().clone());
            drop(state);
            match sleep.1.as_mut().expect("set above").as_mut().poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(Error::other(error))),
                Poll::Ready(Ok(())) => sleep.1 = None,
            }
        }
    }
}

impl State {
    fn submit(&mut self, command: Command, bytes: Vec<u8>, now: u64) -> Result<Ticket> {
        let at = now.max(self.drive.now());
        let submitted = match bytes.is_empty() {
            true => self.drive.submit(command, at),
            false => self.drive.submit_bytes(command, bytes, at),
        };
        self.wakers.drain(..).for_each(Waker::wake);
        submitted.map_err(failed)
    }

    /// Advances the drive to `now` and stores the completions that a future waits for.
    fn collect(&mut self, now: u64) -> Result<()> {
        loop {
            self.drive.advance(now).map_err(failed)?;
            let mut is_idle = true;
            for done in self.drive.completed() {
                is_idle = false;
                let ticket = done.ticket;
                self.awaited.entry(ticket).and_modify(|awaited| *awaited = Some(done));
            }
            if is_idle {
                return Ok(());
            }
        }
    }

    fn take(&mut self, ticket: Ticket) -> Result<Completion> {
        let done = self.awaited.remove(&ticket).flatten().expect("the request has completed");
        match done.status {
            Status::Done => Ok(done),
            Status::Unreadable => Err(Error::new(ErrorKind::InvalidData, "the drive cannot correct the data")),
            Status::PowerLost => Err(Error::other("the drive lost its power")),
            Status::WornOut => Err(Error::new(ErrorKind::ReadOnlyFilesystem, "the drive is worn out")),
        }
    }

    fn allocate(&mut self) -> Result<u64> {
        if let Some(block) = self.spare.pop_first() {
            return Ok(block);
        }
        if (self.unused + 1) * BLOCK > self.drive.bytes() {
            return Err(Error::new(ErrorKind::StorageFull, "every block of the drive is used"));
        }
        self.unused += 1;
        Ok(self.unused - 1)
    }
}

fn failed(error: palimpsest_drive::Error) -> Error {
    Error::other(error.to_string())
}

fn indices(range: &Range<u64>) -> Range<usize> {
    range.start as usize..range.end as usize
}

/// Runs of consecutive numbers.
fn runs(blocks: &[u64]) -> impl Iterator<Item = Range<u64>> {
    blocks.chunk_by(|one, next| one + 1 == *next).map(|run| run[0]..run[0] + run.len() as u64)
}
