//! Jobs while they run: which job has the next request, and when.
//!
//! With a clock ([`Jobs`]), as in fio: a closed job issues a request while fewer than `iodepth` are outstanding, but
//! not before the job's rate allows one; an open job issues requests at arrival times. A job begins `startdelay` after
//! the phase and ends `runtime` later, or with the last request; a phase ends when all requests have completed. If
//! several requests are due, open jobs go first, by arrival, then closed jobs in turn. A request of a closed job
//! arrives when the job issues the request. After each `thinktime_blocks` requests, flushes included, a job waits for
//! its requests in flight, and then for `thinktime`; a rate goes on meanwhile, and the job catches up. `pace.rs` varies
//! the depth of a job with `latency_target`, and ends a job that is slower than `rate_min`.
//!
//! Without a clock ([`Source::next_request`]: counted runs, and traces written from a workload), open jobs and jobs
//! with rates for all directions are merged by the times of their requests. Other jobs take turns of `iodepth`
//! requests; `startdelay` does not delay them, and `runtime`, `latency_target` and `rate_min` are refused, because they
//! need times.

use std::collections::VecDeque;

use super::super::source::FioSource;
use super::super::spec::{FioSpec, Think};
use super::pace::{Floor, Search};
use crate::request::{Arrivals, Command, Due, FoundDepth, Jobs, Request, RequestKind, SECTOR_BYTES, Section, Source};
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::units::Nanos;

/// The requests of jobs on one drive: of a [`JobFile`](super::JobFile), or of one specification that has times.
#[derive(Debug, Clone)]
pub struct JobsSource {
    name: String,
    /// The stream of a request is the number of the job.
    streams: bool,
    arrivals: Arrivals,
    /// The order of requests depends on the drive.
    clocked: bool,
    /// A rate bounds some job, or a job pauses.
    has_pace: bool,
    phases: VecDeque<Phase>,
    jobs: u32,
    /// Names and copies of the jobs, and the outcome of each copy that has ended.
    sections: Vec<(String, u32)>,
    ended: Vec<Outcome>,
    /// Without a clock: start of the phase.
    base: Nanos,
    latest: Nanos,
    /// Job of the last request, and the number of requests so far.
    last: (u32, u64),
}

/// Jobs that run at the same time.
#[derive(Debug, Clone, Default)]
struct Phase {
    jobs: Vec<Playing>,
    /// Number of the first job.
    first: u32,
    /// The job that is next, and the requests left in that turn.
    turn: usize,
    left: u32,
    began: Option<Nanos>,
}

/// A running job.
#[derive(Debug, Clone)]
struct Playing {
    source: FioSource,
    /// Most requests outstanding; `None` for an open loop.
    depth: Option<u32>,
    is_capped: bool,
    /// Each request has an arrival time.
    has_times: bool,
    delay: Nanos,
    runtime: Option<Nanos>,
    pending: Option<Request>,
    ended: bool,
    outstanding: u32,
    think: Think,
    /// Requests since the last pause, and the end of that pause.
    since_pause: u64,
    paused_until: Nanos,
    search: Option<Search>,
    floor: Option<Floor>,
}

/// The search of a job, and the reason why its rate ended it.
#[derive(Debug, Clone)]
struct Outcome {
    search: Option<Search>,
    too_slow: Option<String>,
}

impl Playing {
    fn outcome(&self) -> Outcome {
        let too_slow = self.floor.as_ref().and_then(|floor| floor.missed.clone());
        Outcome { search: self.search.clone(), too_slow }
    }

    /// The depth at `since`, in an open loop the largest; 0 while the job waits for requests in flight. Ends a job
    /// whose search is over, or that is too slow.
    fn depth_at(&mut self, since: Nanos) -> u32 {
        let depth = match &mut self.search {
            Some(search) => search.depth_at(since, self.outstanding),
            None => self.depth.unwrap_or(u32::MAX),
        };
        let is_slow = self.floor.as_mut().is_some_and(|floor| !self.ended && floor.is_missed(since));
        if is_slow || self.search.as_ref().is_some_and(|search| search.ended) {
            self.end();
        }
        depth
    }

    /// Requests of a turn without a clock.
    fn turn(&self) -> u32 {
        self.depth.filter(|_| !self.has_times).unwrap_or(1)
    }

    /// Begin and end of the job, counted from the begin of the phase.
    fn span(&self) -> (Nanos, Nanos) {
        (self.delay, self.runtime.map_or(Nanos::MAX, |runtime| self.delay.saturating_add(runtime)))
    }

    /// The next request, which stays pending until taken. `now` counts from the begin of the job; `None` without a
    /// clock.
    fn fill(&mut self, now: Option<Nanos>) -> Option<&Request> {
        if self.pending.is_none() && !self.ended {
            self.pending = self.source.next_from(now);
            self.ended = self.pending.is_none();
        }
        self.pending.as_ref()
    }

    /// `since`, or the end of the pause; `None` if the pause begins after requests in flight.
    fn after_pause(&mut self, since: Nanos) -> Option<Nanos> {
        if self.think.time > 0 && self.since_pause >= self.think.requests {
            if self.outstanding > 0 {
                return None;
            }
            (self.since_pause, self.paused_until) = (0, since.saturating_add(self.think.time));
        }
        Some(since.max(self.paused_until))
    }

    fn end(&mut self) {
        (self.pending, self.ended) = (None, true);
    }

    /// The time of the next request, if before the end of the job.
    fn within(&mut self, now: Option<Nanos>) -> Option<Nanos> {
        let (begin, end) = self.span();
        let arrival = begin.saturating_add(self.fill(now)?.arrival);
        if arrival >= end {
            self.end();
            return None;
        }
        Some(arrival)
    }

    /// The time of the next request, past or future, `since` nanoseconds after the begin of the phase; `None` before a
    /// request completes.
    fn due(&mut self, since: Nanos) -> Option<Nanos> {
        let (begin, end) = self.span();
        let depth = self.depth_at(since);
        if self.depth.is_none() {
            return self.within(Some(since.saturating_sub(begin)));
        }
        if self.outstanding >= depth {
            return None;
        }
        let since = self.after_pause(since)?;
        if since >= end {
            self.end();
        }
        let now = Some(since.saturating_sub(begin));
        if self.is_capped { self.within(now) } else { self.fill(now).map(|_| begin.max(since)) }
    }
}

impl Phase {
    fn has_times(&self) -> bool {
        self.jobs.iter().all(|job| job.has_times)
    }

    /// The request or event due `since` nanoseconds after the begin; [`Due::Nothing`] after the end.
    fn due(&mut self, since: Nanos) -> Due {
        let count = self.jobs.len();
        // The open job with the earliest arrival; the first closed job in turn.
        let (mut open, mut closed): (Option<(Nanos, usize)>, Option<usize>) = (None, None);
        let (mut next, mut outstanding) = (Nanos::MAX, 0);
        for at in (0..count).map(|step| (self.turn + step) % count) {
            let job = &mut self.jobs[at];
            outstanding += job.outstanding;
            match job.due(since) {
                None => {}
                Some(when) if when > since => next = next.min(when),
                Some(when) if job.depth.is_none() => {
                    open = Some(open.map_or((when, at), |best| best.min((when, at))));
                }
                Some(_) => _ = closed.get_or_insert(at),
            }
        }
        if let Some(at) = open.map(|(_, at)| at).or(closed) {
            let job = &mut self.jobs[at];
            let mut request = job.pending.take().expect("it is due");
            job.outstanding += 1;
            job.since_pause += u64::from(job.think.of_issued);
            request.arrival = if open.is_some() { job.delay.saturating_add(request.arrival) } else { since };
            if open.is_none() {
                self.turn = (at + 1) % count;
            }
            request.command.directives.queue = self.first + at as u32;
            return Due::Request(request);
        }
        match (next, outstanding) {
            (Nanos::MAX, 0) => Due::Nothing,
            (Nanos::MAX, _) => Due::Completion,
            (at, _) => Due::At(at),
        }
    }

    /// The next request without a clock, and the job's number; `None` after the end.
    fn next(&mut self, latest: Nanos, base: Nanos) -> Option<(Request, u32)> {
        let count = self.jobs.len();
        if self.has_times() {
            let mut first: Option<(Nanos, usize)> = None;
            for at in 0..count {
                let Some(arrival) = self.jobs[at].within(None) else { continue };
                first = Some(first.map_or((arrival, at), |best| best.min((arrival, at))));
            }
            let (arrival, at) = first?;
            let request = self.jobs[at].pending.take().expect("it is due");
            return Some((Request { arrival: base.saturating_add(arrival), ..request }, self.first + at as u32));
        }
        for _ in 0..=count {
            let at = self.turn;
            let job = &mut self.jobs[at];
            let has = if job.has_times { job.within(None).is_some() } else { job.fill(None).is_some() };
            if self.left > 0 && has {
                self.left -= 1;
                let request = self.jobs[at].pending.take().expect("it was filled");
                return Some((Request { arrival: latest, ..request }, self.first + at as u32));
            }
            self.turn = (at + 1) % count;
            self.left = self.jobs[self.turn].turn();
        }
        None
    }
}

impl JobsSource {
    /// An empty file of jobs, called `name` in messages.
    pub(super) fn new(name: &str) -> JobsSource {
        JobsSource {
            name: name.to_string(),
            streams: true,
            arrivals: Arrivals::Open,
            clocked: false,
            has_pace: false,
            phases: VecDeque::new(),
            jobs: 0,
            sections: Vec::new(),
            ended: Vec::new(),
            base: 0,
            latest: 0,
            last: (0, 0),
        }
    }

    /// A specification with times (`runtime`, `startdelay`) or copies (`numjobs`). Each copy has random numbers and
    /// positions of its own; equal seeds give equal requests.
    ///
    /// # Errors
    /// As [`FioSource::new`].
    pub fn of_spec(spec: &FioSpec, drive_bytes: u64, seed: u64) -> Result<JobsSource> {
        let mut source = JobsSource { streams: spec.copies > 1, ..JobsSource::new("--workload") };
        source.begin_section("the workload", spec);
        for number in 1..=spec.copies {
            source.push(spec, FioSource::of_job(spec, drive_bytes, seed, number)?, number == 1);
        }
        Ok(source)
    }

    /// Begins a section, whose copies follow.
    pub(super) fn begin_section(&mut self, name: &str, spec: &FioSpec) {
        self.sections.push((name.to_string(), spec.copies as u32));
    }

    /// The outcomes of all copies so far, in order.
    fn outcomes(&self) -> impl Iterator<Item = Outcome> {
        let playing = self.phases.iter().flat_map(|phase| &phase.jobs);
        self.ended.iter().cloned().chain(playing.map(Playing::outcome))
    }

    /// Adds a job with the requests of `source`.
    pub(super) fn push(&mut self, spec: &FioSpec, source: FioSource, starts_phase: bool) {
        let job = Playing {
            source,
            depth: (!spec.open_loop).then_some(spec.iodepth),
            is_capped: spec.is_capped(),
            has_times: spec.has_times() && spec.think.time == 0,
            delay: spec.start_delay,
            runtime: spec.runtime,
            pending: None,
            ended: false,
            outstanding: 0,
            think: spec.think,
            since_pause: 0,
            paused_until: 0,
            search: (spec.target.time > 0).then(|| Search::new(spec.target, spec.iodepth, spec.start_delay)),
            floor: spec.floor.rates.iter().any(Option::is_some).then(|| Floor::new(spec.floor, spec.start_delay)),
        };
        if starts_phase || self.phases.is_empty() {
            self.phases.push_back(Phase { first: self.jobs, left: job.turn(), ..Phase::default() });
        }
        self.arrivals = match (self.arrivals, job.depth.filter(|_| !job.has_times)) {
            (_, Some(depth)) if self.jobs == 0 => Arrivals::Closed { depth },
            (Arrivals::Closed { depth: sum }, Some(depth)) if self.phases.len() == 1 => {
                Arrivals::Closed { depth: sum.saturating_add(depth) }
            }
            (arrivals, _) => arrivals,
        };
        let phases = self.phases.len();
        let phase = self.phases.back_mut().expect("one was pushed");
        let ends_by_clock = job.runtime.is_some() && !job.has_times;
        let has_pace = job.is_capped || job.think.time > 0 || job.search.is_some() || job.floor.is_some();
        self.has_pace |= has_pace;
        self.clocked |= phases > 1 || has_pace || job.delay > 0 || ends_by_clock;
        phase.jobs.push(job);
        self.clocked |= phase.jobs.len() > 1 && !phase.has_times();
        self.jobs += 1;
    }

    fn given(&mut self, request: Request, job: u32) -> Request {
        self.last = (job, self.last.1 + 1);
        self.latest = request.arrival;
        if self.streams { Request { command: request.command.of(job), ..request } } else { request }
    }
}

impl Jobs for JobsSource {
    fn due(&mut self, now: Nanos) -> Result<Due> {
        while let Some(phase) = self.phases.front_mut() {
            let began = *phase.began.get_or_insert(now);
            match phase.due(now - began) {
                Due::Request(request) => {
                    let request = Request { arrival: began.saturating_add(request.arrival), ..request };
                    return Ok(Due::Request(self.given(request, request.directives.queue)));
                }
                Due::At(since) => return Ok(Due::At(began.saturating_add(since))),
                Due::Completion => return Ok(Due::Completion),
                Due::Nothing => {
                    self.ended.extend(phase.jobs.iter().map(Playing::outcome));
                    self.phases.pop_front();
                }
            }
        }
        Ok(Due::Nothing)
    }

    fn lift_depths(&mut self) -> Result<bool> {
        for job in self.phases.iter_mut().flat_map(|phase| &mut phase.jobs).filter(|_| self.has_pace) {
            if job.search.is_some() {
                let what = "latency_target searches a depth for the job; expected no depth of the host for all jobs";
                return Err(Error::input("host.iodepth", what));
            }
            job.depth = job.depth.map(|_| u32::MAX);
        }
        Ok(self.has_pace)
    }

    fn completed(&mut self, command: &Command, latency: Nanos) {
        let Some(phase) = self.phases.front_mut() else { return };
        let at = command.directives.queue.checked_sub(phase.first);
        let Some(job) = at.and_then(|at| phase.jobs.get_mut(at as usize)) else { return };
        job.outstanding -= 1;
        job.since_pause += u64::from(!job.think.of_issued);
        if let Some(search) = job.search.as_mut().filter(|_| command.kind != RequestKind::Flush) {
            search.completed(latency);
        }
        if let Some(floor) = &mut job.floor {
            floor.completed(command.kind, u64::from(command.extent.sectors) * SECTOR_BYTES);
        }
    }

    fn take_restarted(&mut self) -> Option<u32> {
        let phase = self.phases.front_mut()?;
        let is_restarted = |job: &mut Playing| job.search.as_mut().is_some_and(Search::take_restarted);
        phase.jobs.iter_mut().position(is_restarted).map(|at| phase.first + at as u32)
    }
}

impl Source for JobsSource {
    fn next_request(&mut self) -> Result<Option<Request>> {
        while let Some(phase) = self.phases.front_mut() {
            if phase.jobs.iter().any(|job| job.search.is_some() || job.floor.is_some()) {
                let what = "latency_target and the least rates need simulated time; expected a timed run without a \
                            depth of the host (host.iodepth), or a workload without them";
                return Err(Error::input(&self.name, what));
            }
            if phase.jobs.iter().any(|job| job.runtime.is_some() && !job.has_times) {
                let what = "the number of requests in a runtime is known in timed runs without host.iodepth only; \
                            expected rate_iops, or number_ios or io_size instead of runtime";
                return Err(Error::input(&self.name, what));
            }
            if let Some((request, job)) = phase.next(self.latest, self.base) {
                return Ok(Some(self.given(request, job)));
            }
            self.phases.pop_front();
            self.base = self.latest;
        }
        Ok(None)
    }

    fn can_repeat(&self) -> bool {
        false
    }

    fn next_of_layout(&mut self) -> Option<Request> {
        match self.phases.front_mut()?.jobs.as_mut_slice() {
            [only] if !self.streams => only.source.next_of_layout(),
            _ => None,
        }
    }

    fn sections(&self) -> Vec<Section> {
        let mut outcomes = self.outcomes();
        let of = |(name, copies): &(String, u32)| {
            let searches: Vec<Search> = outcomes.by_ref().take(*copies as usize).filter_map(|end| end.search).collect();
            let depth = searches.first().map(|Search { target, .. }| FoundDepth {
                longest: target.time,
                window: target.window,
                share: target.share,
                depths: searches.iter().map(|search| search.depth).collect(),
                met: searches.iter().all(|search| search.met),
            });
            Section { name: name.clone(), copies: *copies, depth }
        };
        self.sections.iter().map(of).collect()
    }

    fn notes(&self) -> Vec<String> {
        let names = self.sections.iter().flat_map(|(name, copies)| (0..*copies).map(move |_| name));
        let of = |(name, end): (&String, Outcome)| match (end.too_slow, end.search.as_ref().and_then(Search::failure)) {
            (Some(why), _) => Some(format!("{name} ended early: {why}")),
            (None, Some(why)) => Some(format!("{name} found no depth: {why}")),
            (None, None) => None,
        };
        names.zip(self.outcomes()).filter_map(of).collect()
    }

    fn jobs(&mut self) -> Option<&mut dyn Jobs> {
        if self.clocked { Some(self) } else { None }
    }

    fn place(&self) -> String {
        format!("{}, job {}, request {}", self.name, self.last.0, self.last.1)
    }

    fn arrivals(&self) -> Arrivals {
        self.arrivals
    }

    fn expected_requests(&self) -> Option<u64> {
        let jobs = self.phases.iter().flat_map(|phase| &phase.jobs);
        let expected = |job: &Playing| job.runtime.is_none().then(|| job.source.expected_requests())?;
        jobs.map(expected).try_fold(0u64, |sum, next| sum.checked_add(next?))
    }
}
