//! The drive behind one lock: the thread of each connection serves the requests of that connection.
//!
//! Requests are served one after the other, so each is atomic, except zeroes, which are written in pieces. A read or
//! write of partial sectors is widened: the drive reads the sectors at the edges and writes them back (and counts
//! that). A trim is narrowed to whole sectors, and unmaps the whole units within. Zeroes unmap whole units only if the
//! power cannot fail, because a power cut may bring trimmed data back. A durable write has FUA; a flush follows every
//! other durable request.
//!
//! Writes stay in a volatile cache until a flush, as in NVMe, and a power cut may lose them. So a cut refuses the
//! current request and every later one of the connected clients: their view of the drive may be wrong.

use crate::input::Large;
use crate::request::{Answers, Asked, PowerLost, Refusal, Request};
use palimpsest_lab::command::Command;
use palimpsest_lab::error::{Error, Result};
use palimpsest_lab::geometry::{Extent, RequestKind};
use palimpsest_lab::nand::data::buffers::Step;
use palimpsest_lab::nand::data::buffers::slabs::Slab;
use palimpsest_lab::run::Outcome;
use palimpsest_lab::run::served::{Failure, Reply, Served};
use palimpsest_lab::units::{Nanos, SECTOR_BYTES};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

/// Bytes of zeroes written before other requests have their turn.
const ZEROES: u64 = 1 << 20;

/// Requests whose memory is prefetched together: waiting for memory is the largest part of a small request.
pub const EXPECTED: usize = 8;

/// Receives the events of a drive.
pub trait Witness {
    /// The drive failed for good.
    fn failed(&self, error: &Error);

    /// The power failed, and the drive has recovered.
    fn power_lost(&self);

    /// The drive has planned a request, or has proceeded.
    fn proceeded(&self, _served: &Served<'_>) {}
}

/// The bytes of writes.
pub enum Bytes<'b> {
    /// All bytes, in one piece of memory.
    Together(&'b mut Vec<u8>),
    /// The bytes of one write of whole sectors, and their fingerprints.
    Known(&'b mut Slab, &'b mut Vec<u32>),
}

struct State<'a> {
    served: Served<'a>,
    failed: Option<Error>,
    worn_out: bool,
    ending: bool,
    /// A widened write.
    scratch: Vec<u8>,
}

/// A drive for many connections.
pub struct Drive<'a> {
    state: Mutex<State<'a>>,
    power_cuts: AtomicU64,
    begin: Instant,
}

impl<'a> Drive<'a> {
    pub fn new(served: Served<'a>) -> Self {
        let state = State { served, failed: None, worn_out: false, ending: false, scratch: Vec::new() };
        Drive { state: Mutex::new(state), power_cuts: AtomicU64::new(0), begin: Instant::now() }
    }

    /// Number of power cuts so far.
    pub fn power_cuts(&self) -> u64 {
        self.power_cuts.load(Ordering::SeqCst)
    }

    /// Whether a thread panicked while using the drive.
    pub fn is_broken(&self) -> bool {
        self.state.is_poisoned()
    }

    fn lock(&self) -> MutexGuard<'_, State<'a>> {
        self.state.lock().expect("no request has panicked")
    }

    /// Shows a drive to `look`, except a broken one.
    pub fn look(&self, look: &mut dyn FnMut(&Served<'_>)) {
        if let Ok(state) = self.state.lock() {
            look(&state.served);
        }
    }

    /// [`Served::note_controller`], except for a broken drive; the next write reports errors of the image.
    pub fn note_controller(&self, powered_s: u64, error_entries: u64) {
        if let Ok(mut state) = self.state.lock() {
            let _ = state.served.note_controller(powered_s, error_entries);
        }
    }

    /// Prefetches the memory of `requests`, at most [`EXPECTED`], which are served next.
    pub fn expect(&self, requests: &[Request]) {
        if let Ok(mut state) = self.state.lock() {
            state.expect(requests.iter().copied());
        }
    }

    /// Refuses every later request.
    pub fn end(&self) {
        if let Ok(mut state) = self.state.lock() {
            state.ending = true;
        }
    }

    /// The result of the drive.
    ///
    /// # Errors
    /// The first error of the drive, and errors of [`Served::finish`].
    pub fn finish(self) -> Result<Outcome> {
        let State { served, failed, .. } = self.state.into_inner().expect("no request has panicked");
        failed.map_or_else(|| served.finish(), Err)
    }

    /// Serves `all` in order for client `queue`, which connected after `since` power cuts. After the first error of the
    /// drive every request is refused, because flash may hold part of a write; a worn-out drive refuses all but reads.
    /// `witness` is called for errors and power cuts at once.
    ///
    /// # Errors
    /// [`PowerLost`]; every request has an answer nevertheless.
    pub fn serve(
        &self,
        queue: u32,
        since: u64,
        all: &[Asked],
        mut bytes: Bytes<'_>,
        replies: &mut impl Answers,
        witness: &dyn Witness,
    ) -> std::result::Result<(), PowerLost> {
        let mut lost = Ok(());
        let mut state = self.lock();
        state.served.set_queue(queue, self.begin.elapsed().as_nanos() as Nanos);
        for (index, asked) in all.iter().enumerate() {
            if index % EXPECTED == 0 && all.len() > 1 {
                state.expect(all[index..].iter().take(EXPECTED).filter_map(|asked| asked.request.ok()));
            }
            let request = match asked.request {
                Ok(request) => request,
                Err(error) => {
                    replies.refuse(asked, Refusal::Malformed(error));
                    continue;
                }
            };
            let refusal = if state.failed.is_some() {
                Err(Refusal::Failed)
            } else if since < self.power_cuts() {
                Err(Refusal::PowerLost)
            } else if state.ending {
                Err(Refusal::Ending)
            } else {
                let done;
                (state, done) = self.perform(state, queue, request, asked, &mut bytes, replies);
                witness.proceeded(&state.served);
                done.map_err(|failure| self.refusal(&mut state, failure, witness))
            };
            if let Err(refusal) = refusal {
                replies.refuse(asked, refusal);
                if refusal == Refusal::PowerLost {
                    lost = Err(PowerLost);
                }
            }
        }
        lost
    }

    fn refusal(&self, state: &mut State<'a>, failure: Failure, witness: &dyn Witness) -> Refusal {
        match failure {
            Failure::PowerLost => {
                self.power_cuts.fetch_add(1, Ordering::SeqCst);
                witness.power_lost();
                return Refusal::PowerLost;
            }
            Failure::Unreadable => return Refusal::Unreadable,
            Failure::Zone(status) => return Refusal::Zone(status),
            Failure::WornOut(why) => {
                if !std::mem::replace(&mut state.worn_out, true) {
                    witness.failed(&Error::WornOut(why));
                }
                return Refusal::WornOut;
            }
            Failure::Drive(error) => {
                witness.failed(&error);
                state.failed = Some(error);
            }
        }
        Refusal::Failed
    }

    /// Serves one request, with an answer unless the drive fails. Releases the lock between pieces of zeroes.
    fn perform<'s>(
        &'s self,
        mut state: MutexGuard<'s, State<'a>>,
        queue: u32,
        request: Request,
        asked: &Asked,
        bytes: &mut Bytes<'_>,
        replies: &mut impl Answers,
    ) -> (MutexGuard<'s, State<'a>>, Reply<()>) {
        let (request, directives) = request.split();
        let flush = match request {
            Request::Read { offset, length } if replies.lends() && Large::takes(offset, length) => {
                let extent = widened(offset, length.into());
                let done =
                    replies.read(asked, offset, length, |bytes, loans| state.served.read_lent(extent, bytes, loans));
                return (state, done);
            }
            Request::Read { offset, length } => {
                let done = replies.read(asked, offset, length, |bytes, _| state.read(offset, length, bytes));
                return (state, done);
            }
            Request::Write { offset, length, at, durable } => {
                let command = Command::new(RequestKind::Write, widened(offset, length.into())).with(directives);
                let command = command.with_fua(durable);
                let done = match bytes {
                    Bytes::Together(input) => state.write(command, offset, length, input, at),
                    Bytes::Known(slab, fingerprints) => state.served.write_slab(command, slab, fingerprints),
                };
                done.map(|()| false)
            }
            Request::Trim { offset, length, durable } => state.trim(offset, length).map(|()| durable),
            Request::Copy { from, offset, length, durable } => {
                state.copy(from, offset, length, durable).map(|()| false)
            }
            Request::Swap { offset, length, at, durable } => {
                let Bytes::Together(input) = bytes else { unreachable!("a swap brings two pieces of bytes") };
                match state.swap(offset, length, (input, at), durable) {
                    Ok(false) => {
                        replies.refuse(asked, Refusal::Differs);
                        return (state, Ok(()));
                    }
                    done => done.map(|_| false),
                }
            }
            Request::Flush => Ok(true),
            Request::Manage { sector, sectors, action } => {
                state.served.manage(action.command(Extent { sector, sectors })).map(|()| false)
            }
            Request::Directed { .. } => unreachable!("the directive was split off"),
            Request::Zero { offset, length, unmap, durable } => {
                let (mut from, end) = (offset, offset + u64::from(length));
                let unmap = unmap && !state.served.may_lose_power();
                loop {
                    let to = if unmap { end } else { end.min(from + ZEROES) };
                    match state.zero(from, to, unmap) {
                        Err(failure) => break Err(failure),
                        Ok(()) if to == end => break Ok(durable),
                        Ok(()) => from = to,
                    }
                    drop(state);
                    std::thread::yield_now();
                    state = self.lock();
                    state.served.set_queue(queue, self.begin.elapsed().as_nanos() as Nanos);
                }
            }
        };
        let done = flush.and_then(|flush| if flush { state.served.flush() } else { Ok(()) });
        if done.is_ok() {
            replies.done(&asked.placed(state.served.placed() * SECTOR_BYTES));
        }
        (state, done)
    }
}

/// The sectors that overlap a range of bytes.
fn widened(offset: u64, length: u64) -> Extent {
    let sector = offset / SECTOR_BYTES;
    Extent { sector, sectors: ((offset + length).div_ceil(SECTOR_BYTES) - sector) as u32 }
}

impl State<'_> {
    fn expect(&mut self, requests: impl Iterator<Item = Request> + Clone) {
        for step in [Step::Name, Step::Place, Step::Bytes] {
            for request in requests.clone() {
                if let Request::Read { offset, length } | Request::Write { offset, length, .. } = request {
                    self.served.expect(widened(offset, length.into()), step);
                }
            }
        }
    }

    fn read(&mut self, offset: u64, length: u32, into: &mut Vec<u8>) -> Reply<()> {
        let begin = into.len();
        self.served.read(widened(offset, u64::from(length)), into)?;
        into.drain(begin..begin + (offset % SECTOR_BYTES) as usize);
        into.truncate(begin + length as usize);
        Ok(())
    }

    /// Serves the write `command`, which covers `length` bytes from `offset` on.
    fn write(&mut self, command: Command, offset: u64, length: u32, input: &mut Vec<u8>, at: usize) -> Reply<()> {
        let extent = command.extent;
        if offset.is_multiple_of(SECTOR_BYTES) && u64::from(length).is_multiple_of(SECTOR_BYTES) {
            return self.served.write(command, input, at);
        }
        let per_sector = SECTOR_BYTES as usize;
        let mut sectors = std::mem::take(&mut self.scratch);
        sectors.clear();
        self.served.read(Extent { sectors: 1, ..extent }, &mut sectors)?;
        sectors.resize(extent.sectors as usize * per_sector, 0);
        if extent.sectors > 1 {
            sectors.truncate((extent.sectors as usize - 1) * per_sector);
            self.served.read(Extent { sector: extent.end() - 1, sectors: 1 }, &mut sectors)?;
        }
        let begin = (offset - extent.sector * SECTOR_BYTES) as usize;
        sectors[begin..begin + length as usize].copy_from_slice(&input[at..at + length as usize]);
        let done = self.served.write(command, &mut sectors, 0);
        sectors.shrink_to(ZEROES as usize);
        self.scratch = sectors;
        done
    }

    fn copy(&mut self, from: u64, to: u64, length: u32, durable: bool) -> Reply<()> {
        let mut bytes = Vec::new();
        self.read(from, length, &mut bytes)?;
        let command = Command::new(RequestKind::Write, widened(to, length.into())).with_fua(durable);
        self.write(command, to, length, &mut bytes, 0)
    }

    /// Writes the second `length` bytes of `input` from `at` on, if the range holds the first; returns whether it did.
    fn swap(&mut self, offset: u64, length: u32, (input, at): (&mut Vec<u8>, usize), durable: bool) -> Reply<bool> {
        let (mut found, middle) = (Vec::new(), at + length as usize);
        self.read(offset, length, &mut found)?;
        if found != input[at..middle] {
            return Ok(false);
        }
        let command = Command::new(RequestKind::Write, widened(offset, length.into())).with_fua(durable);
        self.write(command, offset, length, input, middle).map(|()| true)
    }

    fn trim(&mut self, offset: u64, length: u32) -> Reply<()> {
        let first = offset.div_ceil(SECTOR_BYTES);
        let sectors = ((offset + u64::from(length)) / SECTOR_BYTES).saturating_sub(first) as u32;
        if sectors > 0 { self.served.trim(Extent { sector: first, sectors }) } else { Ok(()) }
    }

    /// Zeroes a range of bytes. `unmap` unmaps whole units; the power must not be able to fail then.
    fn zero(&mut self, from: u64, to: u64, unmap: bool) -> Reply<()> {
        let unit = self.served.unit_bytes();
        let (first, last) = (from.next_multiple_of(unit), to / unit * unit);
        if !unmap || first >= last {
            return self.write_zeroes(from, to);
        }
        self.write_zeroes(from, first)?;
        self.write_zeroes(last, to)?;
        // Requests and trims both have at most 2^32 bytes.
        self.served.trim(Extent { sector: first / SECTOR_BYTES, sectors: ((last - first) / SECTOR_BYTES) as u32 })
    }

    fn write_zeroes(&mut self, mut from: u64, to: u64) -> Reply<()> {
        let mut zeroes = vec![0; (to - from).min(ZEROES) as usize];
        while from < to {
            let length = (to - from).min(ZEROES);
            let command = Command::new(RequestKind::Write, widened(from, length));
            self.write(command, from, length as u32, &mut zeroes, 0)?;
            from += length;
        }
        Ok(())
    }
}
