//! The commands of an object workload, as requests of a run.
//!
//! Before the run (`--precondition layout`) the cache serves requests until each part has written its size, and all
//! together `warm` times the drive, a trace again from its start as often as needed; only writes and trims reach the
//! drive. The measured part plays the trace from its start, or continues with generated requests, with figures from 0.
//!
//! Sections of the run are the gets, and the fill of each part of the cache, which is its reads, writes and trims.
//! Arrivals are the trace's, or random ones at a `rate`, or a closed loop.

use super::cache::Cache;
use super::commands::Commands;
use super::generator::Generator;
use super::spec::ObjectSpec;
use super::{ObjectRequest, Objects};
use crate::in_order::Disorder;
use crate::object_figures::Figures;
use crate::request::{Arrivals, Request, RequestKind, Section, Source};
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::rng::Rng;
use palimpsest_flash::units::Nanos;

/// Commands in flight of a closed loop without `iodepth`.
const DEPTH: u32 = 32;

/// Opens the trace again at the start.
pub type Reopen = Box<dyn Fn() -> Result<Box<dyn Objects>> + Send>;

/// The requests.
enum Requests {
    Trace { now: Box<dyn Objects>, reopen: Option<Reopen>, played: u64 },
    Generated(Generator),
}

impl Requests {
    fn objects(&self) -> &dyn Objects {
        match self {
            Requests::Trace { now, .. } => now.as_ref(),
            Requests::Generated(generator) => generator,
        }
    }
}

/// The source of the commands.
pub struct ObjectSource {
    spec: ObjectSpec,
    requests: Requests,
    /// The first request, read when the workload opens.
    first: Option<ObjectRequest>,
    left: u64,
    cache: Cache,
    commands: Commands,
    /// Arrival of the commands that wait.
    arrival: Nanos,
    rng: Rng,
    /// Bytes that the cache writes before the run, at least.
    warm: f64,
    /// The cache warms up.
    warming: bool,
    warmed: bool,
    /// Bytes that the cache had written when the present play of the trace began.
    before: u64,
    has_times: bool,
    failure: Option<Error>,
    ended: bool,
}

impl ObjectSource {
    /// The workload `spec` on a drive of `drive_bytes`. `trace` are the requests of a trace, with a function that opens
    /// the trace again, if possible.
    ///
    /// # Errors
    /// [`Error::Input`] if the cache does not fit, or the first request is malformed.
    pub fn new(
        spec: ObjectSpec,
        trace: Option<(Box<dyn Objects>, Option<Reopen>)>,
        drive_bytes: u64,
        seed: u64,
    ) -> Result<Self> {
        let shape = spec.shape(drive_bytes)?;
        let cache = Cache::new(&shape, spec.policy, seed)?;
        let (requests, first, has_times) = match trace {
            Some((mut now, reopen)) => {
                let first = now.next_object()?;
                spec.check_trace(now.as_ref())?;
                let has_times = now.has_times();
                (Requests::Trace { now, reopen, played: 0 }, first, has_times)
            }
            None => (Requests::Generated(Generator::new(&spec, &shape.logs, cache.bytes(), seed)), None, false),
        };
        Ok(ObjectSource {
            left: spec.requests.unwrap_or(u64::MAX),
            requests,
            first,
            cache,
            commands: Commands::default(),
            arrival: 0,
            rng: Rng::new(seed, 0x00ba_4417),
            warm: spec.warm * drive_bytes as f64,
            warming: false,
            warmed: false,
            before: 0,
            has_times,
            failure: None,
            ended: false,
            spec,
        })
    }

    /// The next request of the trace or the generator.
    fn next_object(&mut self) -> Result<Option<ObjectRequest>> {
        if !self.warming && self.left == 0 {
            return Ok(None);
        }
        let next = match (self.first.take(), &mut self.requests) {
            (Some(first), _) => Some(first),
            (None, Requests::Trace { now, .. }) => now.next_object()?,
            (None, Requests::Generated(generator)) => generator.next_object()?,
        };
        self.left -= u64::from(!self.warming && next.is_some());
        Ok(next)
    }

    /// Serves the next request; false after the last.
    fn serve(&mut self) -> Result<bool> {
        let Some(object) = self.next_object()? else { return Ok(false) };
        self.arrival = match self.spec.rate {
            // The gaps of a Poisson process.
            Some(rate) => self.arrival + (-libm::log(1.0 - self.rng.unit()) * 1e9 / rate as f64) as Nanos,
            None => object.arrival,
        };
        self.cache.serve(&object, &mut self.commands);
        Ok(true)
    }

    /// The next write or trim of the cache that warms up.
    fn next_of_warm_up(&mut self) -> Result<Option<Request>> {
        loop {
            while let Some(command) = self.commands.next() {
                if command.kind != RequestKind::Read {
                    return Ok(Some(Request::new(0, command)));
                }
            }
            if self.warm == 0.0 || self.cache.is_warm(self.warm) {
                return Ok(None);
            }
            if self.serve()? {
                continue;
            }
            match &mut self.requests {
                Requests::Generated(generator) => generator.restart(None),
                Requests::Trace { .. } if self.cache.written() == self.before => return Ok(None),
                Requests::Trace { .. } => self.rewind()?,
            }
            self.before = self.cache.written();
        }
    }

    /// Opens the trace again at the start.
    fn rewind(&mut self) -> Result<()> {
        if let Requests::Trace { now, reopen, played } = &mut self.requests {
            let Some(reopen) = reopen else {
                let what = "a pipe is read once, and the cache warms up with the trace; expected a file, or warm=0x";
                return Err(Error::input("warm", what));
            };
            (*now, *played) = (reopen()?, *played + 1);
        }
        Ok(())
    }

    /// Ends the warm-up.
    fn start_measuring(&mut self) -> Result<()> {
        (self.warming, self.warmed) = (false, true);
        match &mut self.requests {
            Requests::Generated(generator) => generator.restart(self.spec.requests),
            Requests::Trace { .. } if self.first.is_none() => self.rewind()?,
            Requests::Trace { .. } => {}
        }
        self.cache.restart();
        self.arrival = 0;
        Ok(())
    }
}

impl Source for ObjectSource {
    fn next_request(&mut self) -> Result<Option<Request>> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        loop {
            if let Some(command) = self.commands.next() {
                return Ok(Some(Request::new(self.arrival, command)));
            }
            self.ended = self.ended || !self.serve()?;
            if self.ended {
                return Ok(None);
            }
        }
    }

    fn next_of_layout(&mut self) -> Option<Request> {
        if self.warmed || self.failure.is_some() {
            return None;
        }
        self.warming = true;
        let next = self.next_of_warm_up();
        let ended = matches!(next, Ok(None) | Err(_));
        let outcome = if ended { next.and_then(|_| self.start_measuring().map(|()| None)) } else { next };
        outcome.unwrap_or_else(|failure| {
            self.failure = Some(failure);
            None
        })
    }

    fn place(&self) -> String {
        self.requests.objects().place()
    }

    fn arrivals(&self) -> Arrivals {
        match self.spec.depth {
            None if self.spec.rate.is_some() || self.has_times => Arrivals::Open,
            depth => Arrivals::Closed { depth: depth.unwrap_or(DEPTH) },
        }
    }

    fn can_repeat(&self) -> bool {
        false
    }

    fn format(&self) -> Option<&'static str> {
        self.requests.objects().format().map(|format| format.name)
    }

    fn skipped_lines(&self) -> u64 {
        self.requests.objects().skipped()
    }

    fn disorder(&self) -> Disorder {
        self.requests.objects().disorder()
    }

    fn sections(&self) -> Vec<Section> {
        let section = |name: String| Section { name, copies: 1, depth: None };
        let fills = self.cache.names().into_iter().map(|part| section(format!("fill {part}")));
        std::iter::once(section("get".into())).chain(fills).collect()
    }

    fn handles(&self) -> Vec<(String, u16)> {
        self.cache.names().into_iter().map(|part| format!("{part} of the cache")).zip(self.spec.handles()).collect()
    }

    fn objects(&self) -> Option<Figures> {
        let open_loop = self.arrivals() == Arrivals::Open;
        Some(Figures { open_loop, ..self.cache.figures() })
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Requests::Trace { played, .. } = &self.requests
            && *played > 1
        {
            notes.push(format!("the trace was played {played} times to warm up the cache (warm)"));
        }
        let figures = self.cache.figures();
        let refused: u64 = figures.classes.iter().map(|part| part.refused).sum();
        if refused > 0 {
            notes.push(format!("{refused} objects were larger than a region and not inserted (region)"));
        }
        notes
    }
}
