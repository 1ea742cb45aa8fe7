//! A drive that serves programs outside the simulator. Requests arrive one by one, writes with their bytes; reads
//! return the bytes of flash, verified against the shadow.
//!
//! Each request completes before the next (queue depth one), unless requests are [in flight](flight) together. At timed
//! fidelity a request takes the engine's time, on the drive's own clock, which stops between requests. The result is
//! that of a run. Ignored: the program's own time, so there is no idle time and no background collection.
//!
//! A power cut drops the request in flight: each of its subpages is done or not. The layer's guarantee decides about
//! acknowledged, unflushed data. The program is notified of the cut, and may write the data again.

pub mod cuts;
pub mod flight;
mod life;
pub mod live;
pub mod saved;
pub mod volume;

use super::image::Keep;
use super::{Fidelity, Options, Outcome, Phase, Session, Watcher, precondition, summary};
use crate::config::Resolved;
use crate::metrics::summary::Precondition;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::geometry::{Extent, RequestKind};
use palimpsest_flash::nand::data::Payload;
use palimpsest_flash::nand::data::buffers::Step;
use palimpsest_flash::nand::data::buffers::slabs::{Loan, Slab};
use palimpsest_flash::nand::image::mount::Mounted;
use palimpsest_flash::units::{Nanos, SECTOR_BYTES};
use palimpsest_ftl_api::PlacementEvents;
use palimpsest_ftl_api::plan::port::Incoming;
use palimpsest_ftl_api::zones::{ZoneError, Zones};
use palimpsest_sim::drive::{Command, Directives, Drive, Verifier};
use palimpsest_workload::request::{Arrivals, Request, Source};
use palimpsest_workload::trace::output::Recorder;

/// Keys of the host that only runs of a workload read.
const OF_RUNS: [&str; 4] = ["host.speedup", "host.fold", "host.compact", "host.iodepth"];

/// The empty workload of a served drive.
struct NoFiles;

impl Source for NoFiles {
    fn next_request(&mut self) -> Result<Option<Request>> {
        Ok(None)
    }

    fn place(&self) -> String {
        String::new()
    }

    fn arrivals(&self) -> Arrivals {
        Arrivals::Closed { depth: 1 }
    }
}

/// The reason why a request was not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The power failed during the request. The drive has recovered and serves further requests.
    PowerLost,
    /// The data is uncorrectable, and lost until the next write.
    Unreadable,
    /// The drive is worn out, for this reason, and can only be read.
    WornOut(String),
    /// The drive refused the request, which has no effect, with this status of a zone.
    Zone(ZoneError),
    /// The drive failed.
    Drive(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Drive(error)
    }
}

/// The reply to a served request.
pub type Reply<T> = std::result::Result<T, Failure>;

/// A served drive. Must not be used after [`Failure::Drive`], because flash and shadow may disagree.
pub struct Served<'a> {
    resolved: Box<Resolved>,
    /// Bytes of the drive, which each request is compared with.
    bytes: u64,
    session: Session<'a>,
    precondition: Precondition,
    flights: flight::Flights,
    record: Option<Record>,
    /// Whether an image stores the drive.
    kept: bool,
    mounted: Option<Mounted>,
    book: life::Book,
    /// Memory for the bytes of large writes.
    incoming: Incoming,
    /// The owner of the next requests that are served alone: their queue at the server.
    owner: u32,
}

/// The beginning of a service.
struct Start<'a> {
    /// The image of the drive.
    keep: Option<Keep>,
    saved: Option<&'a [u8]>,
    /// Whether clients send commands of zones.
    takes_zones: bool,
}

/// A record of the requests, as a trace for a later run.
struct Record {
    recorder: Recorder,
    /// Arrival of the next request, if the drive has no time.
    arrival: Nanos,
    requests: u64,
    /// The error that ended the record early.
    ended: Option<Error>,
}

impl<'a> Served<'a> {
    /// A new drive, with the preconditioning of `options`; their limits on requests are ignored.
    ///
    /// # Errors
    /// [`Error::Input`] for contradictory options; errors of preconditioning.
    pub fn new(resolved: &Resolved, options: &Options, watcher: Watcher<'a>) -> Result<Self> {
        Self::keep(resolved, options, None, watcher)
    }

    /// [`Self::new`] for a drive in an image, with the data of an earlier service, if any.
    ///
    /// # Errors
    /// As [`Self::new`]; [`Error::Input`] for an unusable image, or an image of another drive.
    pub fn keep(resolved: &Resolved, options: &Options, keep: Option<Keep>, watcher: Watcher<'a>) -> Result<Self> {
        if options.payload != Payload::Bytes {
            return Err(Error::input("--payload", "a served drive stores the bytes of its client; expected bytes"));
        }
        Self::with_any_payload(resolved, options, keep, watcher)
    }

    /// [`Self::keep`], also for a drive with zones, whose clients send commands of zones.
    ///
    /// # Errors
    /// As [`Self::keep`].
    pub fn keep_zoned(
        resolved: &Resolved,
        options: &Options,
        keep: Option<Keep>,
        watcher: Watcher<'a>,
    ) -> Result<Self> {
        Self::open(resolved, options, Start { keep, saved: None, takes_zones: true }, watcher)
    }

    /// [`Self::keep`], also for a drive that stores no bytes: its writes bring none, and its reads return none.
    ///
    /// # Errors
    /// As [`Self::keep`].
    pub fn with_any_payload(
        resolved: &Resolved,
        options: &Options,
        keep: Option<Keep>,
        watcher: Watcher<'a>,
    ) -> Result<Self> {
        Self::open(resolved, options, Start { keep, saved: None, takes_zones: false }, watcher)
    }

    /// A drive without a preconditioning that continues from the state `saved`, of any payload that states may have.
    ///
    /// # Errors
    /// As [`Self::new`]; [`Error::Input`] for the state of another drive.
    pub fn restored(resolved: &Resolved, options: &Options, saved: &[u8], watcher: Watcher<'a>) -> Result<Self> {
        Self::open(resolved, options, Start { keep: None, saved: Some(saved), takes_zones: false }, watcher)
    }

    fn open(resolved: &Resolved, options: &Options, start: Start<'_>, watcher: Watcher<'a>) -> Result<Self> {
        let Start { keep, saved, takes_zones } = start;
        let mut session = Session::new(&resolved.drive, options, watcher)?;
        if session.drive.zones().is_some() && !takes_zones {
            let expected = "expected a layer without zones, or palimpsest nvme";
            return Err(Error::input("--ftl", format!("these clients send no commands of zones; {expected}")));
        }
        if !resolved.drive.namespaces.0.is_empty() {
            let what = "the clients of a served drive address one range; expected ssd.namespaces = none";
            return Err(Error::input("ssd.namespaces", what));
        }
        let unread = OF_RUNS.into_iter().filter_map(|key| resolved.key(key));
        if let Some(key) = unread.into_iter().find(|key| key.source.starts_with("--set ")) {
            let what = "the clients of a drive submit requests as they are; expected other keys";
            return Err(Error::input(&key.source, what));
        }
        let kept = keep.is_some();
        let mounted = keep.map(|keep| session.keep_in(resolved, keep)).transpose()?.flatten();
        let book = life::Book::new(session.drive.io.nand.kept_life());
        if mounted.is_some() && options.precondition != precondition::Precondition::None {
            let what = "the image holds a drive that was served before; expected none, or a new image";
            return Err(Error::input("--precondition", what));
        }
        // Preconditioning is repeated for each drive, because states with bytes are never kept.
        let precondition = match saved {
            None => precondition::precondition(&mut session, &mut NoFiles, &options.precondition)?,
            Some(saved) => session.restore(resolved, saved)?,
        };
        session.start_timing()?;
        session.start_faults();
        session.drive.power.drops_requests = true;
        session.start_measuring();
        session.drive.reports.refused.clear();
        session.go_on_with_ages();
        session.expect(Phase::Run, 0)?;
        let drive = &resolved.drive;
        // A power cut may restore overwritten data, and a voltage code programs over it.
        let comes_back = kept || drive.loses_power() || drive.part.paired() || drive.part.code.is_some();
        if options.fidelity == Fidelity::Count && !comes_back {
            session.drive.io.buffers().forget_overwritten(drive.logical_subpages() as usize);
        }
        Ok(Served {
            resolved: Box::new(resolved.clone()),
            bytes: drive.logical_bytes(),
            session,
            precondition,
            flights: flight::Flights::default(),
            record: None,
            kept,
            mounted,
            book,
            incoming: Incoming::default(),
            owner: 0,
        })
    }

    /// Records requests from now on: their time on the drive's clock, and their queue as their stream.
    pub fn record(&mut self, recorder: Recorder) {
        self.record = Some(Record { recorder, arrival: 0, requests: 0, ended: None });
    }

    /// Sets the queue of later requests that are served alone, a stream of the host, and if the drive has no time,
    /// their `arrival`.
    pub fn set_queue(&mut self, queue: u32, arrival: Nanos) {
        self.owner = queue;
        if let Some(record) = &mut self.record {
            record.arrival = arrival;
        }
    }

    /// Prefetches `step` for a coming read or write of `extent`, which must be in the drive; the earlier steps must be
    /// in the cache.
    #[inline]
    pub fn expect(&mut self, extent: Extent, step: Step) {
        let lsn = self.session.tally.subpage_of(extent.sector);
        self.session.drive.io.buffers().expect(lsn, step);
        match step {
            Step::Name => self.session.foresee(extent, false),
            Step::Place => self.session.foresee(extent, true),
            Step::Bytes => {}
        }
    }

    /// Records a request that arrives now.
    fn note(&mut self, command: Command) {
        let Some(record) = &mut self.record else { return };
        if record.ended.is_some() {
            return;
        }
        let timed = self.session.options.fidelity == Fidelity::Timed;
        let arrival = if timed { self.session.drive.engine.now() } else { record.arrival };
        let request = Request::new(arrival, command);
        match record.recorder.add(request, None) {
            Ok(()) => record.requests += 1,
            Err(error) => record.ended = Some(error),
        }
    }

    /// The contents of the image, if it existed before.
    pub fn mounted(&self) -> Option<Mounted> {
        self.mounted
    }

    /// Bytes of the drive, a multiple of a sector.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of a unit of the layer's map: the best size of writes and trims.
    pub fn unit_bytes(&self) -> u64 {
        self.session.unit_bytes()
    }

    /// Bytes of a page of flash.
    pub fn page_bytes(&self) -> u64 {
        self.resolved.drive.geometry.page_bytes().into()
    }

    /// Pages that one program stores: 1, or those of a word line that one shot programs.
    pub fn pages_per_program(&self) -> u64 {
        self.resolved.drive.part.loads.into()
    }

    /// Bytes that one program of all planes of a die stores: pages, or whole word lines if one shot programs them.
    pub fn program_bytes(&self) -> u64 {
        let drive = &self.resolved.drive;
        u64::from(drive.physical.page_bytes()) * u64::from(drive.physical.planes_per_die)
    }

    /// Whether the power may fail, so that a trim may be undone. For a drive in an image, the end of the server is a
    /// power cut.
    pub fn may_lose_power(&self) -> bool {
        self.resolved.drive.loses_power() || self.kept
    }

    /// The zones, if the drive has some.
    pub fn zones(&self) -> Option<&Zones> {
        self.session.drive.zones()
    }

    /// The first sector of the last request; of a Zone Append that the drive chose.
    pub fn placed(&self) -> u64 {
        self.session.drive.io.present.placed.sector
    }

    /// The events of reclaim unit handles since the drive was new, if the layer has handles, and the directives of the
    /// last planned request.
    pub fn placement_events(&self) -> Option<(PlacementEvents, Directives)> {
        let Drive { ftl, io, .. } = &self.session.drive;
        Some((ftl.placement_events()?, io.present.directives))
    }

    /// Serves the write `command`, whose extent must be in the drive, from `bytes` at `at`. `bytes` is returned.
    ///
    /// # Errors
    /// [`Failure`]: a power cut, errors of flash.
    pub fn write(&mut self, command: Command, bytes: &mut Vec<u8>, at: usize) -> Reply<()> {
        let extent = command.extent;
        assert!(bytes.len() - at >= extent.sectors as usize * SECTOR_BYTES as usize, "a write brings its bytes");
        let brought = Incoming { sector: extent.sector, bytes: std::mem::take(bytes), at, ..Incoming::default() };
        let (done, incoming) = self.write_brought(command, brought);
        *bytes = incoming.bytes;
        done
    }

    /// [`Self::write`] from the beginning of `slab`, with the `fingerprints` of its sectors, because computing
    /// fingerprints costs as much as the write itself. If `slab` has no other data and whole subpages are written, it
    /// becomes memory of the drive and is replaced by another slab of its size, with any content.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_slab(&mut self, command: Command, slab: &mut Slab, fingerprints: &mut Vec<u32>) -> Reply<()> {
        let extent = command.extent;
        let bytes = extent.sectors as usize * SECTOR_BYTES as usize;
        assert!(slab.len() >= bytes && fingerprints.len() == extent.sectors as usize, "a write brings its bytes");
        // A drive with zones may refuse the write, or place it elsewhere.
        let is_zoned = self.session.drive.zones().is_some();
        let buffers = self.session.drive.io.buffers();
        let per_subpage = buffers.subpage_bytes() as u64 / SECTOR_BYTES;
        let mut incoming = std::mem::take(&mut self.incoming);
        (incoming.sector, incoming.fingerprints) = (extent.sector, std::mem::take(fingerprints));
        incoming.subpages.0 = (extent.sector / per_subpage) as u32;
        let is_whole = !is_zoned && slab.len() == bytes && extent.sector.is_multiple_of(per_subpage);
        let adopted = is_whole && buffers.adopt(slab, &mut incoming.subpages.1);
        if !adopted {
            (incoming.bytes, incoming.at) = slab.lend();
        }
        let (done, mut incoming) = self.write_brought(command, incoming);
        if !adopted {
            slab.take_back(std::mem::take(&mut incoming.bytes));
        }
        *fingerprints = std::mem::take(&mut incoming.fingerprints);
        incoming.subpages.1.clear();
        self.incoming = incoming;
        done
    }

    fn write_brought(&mut self, command: Command, incoming: Incoming) -> (Reply<()>, Incoming) {
        self.session.drive.io.host.bring(Some(incoming));
        let done = self.serve(command);
        (done, self.session.drive.io.host.bring(None).unwrap_or_default())
    }

    /// Appends the bytes of `extent`, which must be in the drive, to `into`.
    ///
    /// # Errors
    /// [`Failure`]: a power cut, errors of flash, and [`Error::Rule`] if the bytes differ from the written ones.
    pub fn read(&mut self, extent: Extent, into: &mut Vec<u8>) -> Reply<()> {
        self.read_into(extent, into, None)
    }

    /// [`Self::read`] without a copy, if the bytes are in a few pieces of the drive's memory: appends [`Loan`]s to
    /// `loans`, and nothing to `into`. Writes during the loans use other memory. The drive must not have time.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_lent(&mut self, extent: Extent, into: &mut Vec<u8>, loans: &mut Vec<Loan>) -> Reply<()> {
        self.read_into(extent, into, Some(loans))
    }

    fn read_into(&mut self, extent: Extent, into: &mut Vec<u8>, mut loans: Option<&mut Vec<Loan>>) -> Reply<()> {
        let lent = loans.as_ref().map_or(0, |loans| loans.len());
        self.session.verifier.loans = loans.as_mut().map(|loans| std::mem::take(*loans));
        let begin = into.len();
        self.session.verifier.returned = Some(std::mem::take(into));
        let failed = self.session.verifier.failed;
        let served = self.serve(Command::new(RequestKind::Read, extent));
        let verifier = &mut self.session.verifier;
        *into = verifier.returned.take().or(verifier.set_aside.take()).expect("the bytes of reads are kept");
        let read = served.and(if verifier.failed > failed { Err(Failure::Unreadable) } else { Ok(()) });
        if let (Some(loans), Some(found)) = (&mut loans, verifier.loans.take()) {
            **loans = found;
        }
        if read.is_err() {
            into.truncate(begin);
            loans.into_iter().for_each(|loans| loans.truncate(lent));
        }
        read
    }

    /// Unmaps the whole units inside `extent`, which must be in the drive: they read as zeros. The rest does not
    /// change.
    ///
    /// # Errors
    /// [`Failure`]: a power cut, errors of flash.
    pub fn trim(&mut self, extent: Extent) -> Reply<()> {
        self.serve(Command::new(RequestKind::Trim, extent))
    }

    /// Makes all writes durable.
    ///
    /// # Errors
    /// [`Failure`]: a power cut, errors of flash.
    pub fn flush(&mut self) -> Reply<()> {
        self.serve(Command::FLUSH)
    }

    fn serve(&mut self, command: Command) -> Reply<()> {
        let (session, command) = (&mut self.session, command.of(self.owner));
        let Command { kind, extent, .. } = command;
        assert!(kind == RequestKind::Flush || extent.sectors > 0, "a request covers a sector");
        assert!(extent.end() * SECTOR_BYTES <= self.bytes, "a request is in the drive");
        let cuts = session.drive.power.cuts;
        match &session.worn_out {
            Some(why) if kind != RequestKind::Read => return Err(Failure::WornOut(why.clone())),
            _ => {}
        }
        self.note(command);
        match self.serve_alone(command) {
            Err(Error::WornOut(why)) => return Err(self.end_life(command, why)),
            done => done?,
        }
        let refused = self.take_refused();
        let session = &mut self.session;
        if session.drive.power.cuts > cuts {
            return Err(Failure::PowerLost);
        }
        if let Some(error) = refused {
            return Err(Failure::Zone(error));
        }
        session.tally(command);
        if self.kept {
            self.note_in_image(command)?;
        }
        Ok(self.session.watch_one()?)
    }

    /// The status of the last request, if a drive with zones refused it. A power cut reads zones that may refuse, too.
    fn take_refused(&mut self) -> Option<ZoneError> {
        self.session.drive.reports.refused.drain(..).next_back().map(|refused| refused.error)
    }

    /// Serves a command without data: an action on zones, or the update of a reclaim unit handle.
    ///
    /// # Errors
    /// [`Failure`]: a power cut, a refusal, errors of flash.
    pub fn manage(&mut self, command: Command) -> Reply<()> {
        self.serve(command)
    }

    /// Serves `command`, and waits for its completion.
    fn serve_alone(&mut self, command: Command) -> Result<()> {
        let session = &mut self.session;
        if session.options.fidelity == Fidelity::Count || session.worn_out.is_some() {
            session.drive.count(command, &mut session.verifier)?;
        } else {
            let now = session.drive.engine.now();
            session.drive.submit(command, now, &mut session.verifier)?;
            session.drive.harvest(&mut session.recorder, &mut session.verifier)?;
            while session.drive.outstanding() > 0 {
                session.advance()?;
            }
        }
        Ok(())
    }

    /// Ends the life of the drive, which has no block left for `command`. The command may be done in part; later reads
    /// take no time.
    fn end_life(&mut self, command: Command, why: String) -> Failure {
        let session = &mut self.session;
        if let Err(error) = session.end_life(why.clone(), false) {
            return Failure::Drive(error);
        }
        session.drive.io.buffers().forget_nothing();
        session.verifier.power_failed(&mut session.drive.io, command);
        Failure::WornOut(why)
    }

    /// Programs the drive's buffered data, without time, so that the image has all data.
    fn program_all(&mut self) -> Result<()> {
        let session = &mut self.session;
        let flush = Command::FLUSH;
        session.end_timing();
        session.drive.count(flush, &mut session.verifier)
    }

    /// Waits for all running operations, checks every conservation law, and returns the result.
    ///
    /// # Errors
    /// [`Error::Rule`] with the broken law; errors of flash.
    pub fn finish(mut self) -> Result<Outcome> {
        self.land()?;
        if self.session.worn_out.is_none() {
            self.session.drain()?;
            if self.kept {
                self.program_all()?;
            }
        }
        self.session.end_series();
        self.session.check()?;
        if self.kept {
            self.close_image()?;
        }
        let life = self.life();
        let recorded = self.record.map(|Record { recorder, requests, ended, .. }| {
            ended.map_or_else(|| recorder.finish().map(|_| ()), Err).map_err(|error| (error, requests))
        });
        let read = summary::TraceRead::default();
        let options = &self.session.options;
        let mut outcome = summary::outcome(&self.resolved, &self.session, options, read, self.precondition);
        outcome.summary.life = life;
        if let Some(Err((error, requests))) = recorded {
            outcome.summary.notes.push(format!("the record ends after {requests} requests: {error}"));
        }
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests;
