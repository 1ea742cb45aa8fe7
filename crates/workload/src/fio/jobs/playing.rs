//! Jobs while they run: which job has the next request, and when.
//!
//! With a clock ([`Jobs`]), as in fio: a closed job issues a request while fewer than `iodepth` are outstanding, but
//! not before the job's rate allows one; an open job issues requests at arrival times. A job begins `startdelay` after
//! the phase (or after the job of `wait_for`) and ends `runtime` after `ramp_time`, or with the last request; a phase
//! ends when all requests have completed. If
//! several requests are due, open jobs go first, by arrival, then closed jobs in turn. A request of a closed job
//! arrives when the job issues the request. After each `thinktime_blocks` requests, flushes included, a job waits for
//! its requests in flight, and then for `thinktime`; a rate goes on meanwhile, and the job catches up. A queue that was
//! full gets requests again when `iodepth_low`, `iodepth_batch` and `iodepth_batch_complete` allow. A job with a `flow`
//! waits while its share of the requests exceeds its share of the weights (`order.rs`, as `exitall`). Reads of a
//! read-back begin after the writes in flight. `pace.rs` varies the depth of a job with `latency_target`, and ends a
//! job that is slower than `rate_min`.
//!
//! Without a clock ([`Source::next_request`]: counted runs, and traces written from a workload), open jobs and jobs
//! with rates for all directions are merged by the times of their requests. Other jobs take turns of `iodepth`
//! requests; `startdelay` does not delay them, and `runtime`, `latency_target` and `rate_min` are refused, because they
//! need times.

mod counted;

use std::collections::VecDeque;
use std::ops::Range;

use super::super::region::Room;
use super::super::source::FioSource;
use super::super::spec::{FioSpec, Flow, Order, Refill, Think};
use super::super::zoned::{JobZones, ZoneHost};
use super::pace::{Floor, Search};
use crate::request::{Arrivals, Command, Due, Jobs, Locality, Request, RequestKind, SECTOR_BYTES, Section, Source};
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::rng::Rng;
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
    /// Notes on the keys of the jobs.
    pub(super) notes: Vec<String>,
    /// Numbers of the first job of each section, and of groups of reports.
    firsts: Vec<u32>,
    groups: u32,
    /// Without a clock: start of the phase.
    base: Nanos,
    latest: Nanos,
    /// Job of the last request, and the number of requests so far.
    last: (u32, u64),
    /// The write pointers of zones, if jobs write zones.
    zones: Option<ZoneHost>,
}

/// Jobs that run at the same time.
#[derive(Debug, Clone, Default)]
pub(super) struct Phase {
    pub(super) jobs: Vec<Playing>,
    /// Number of the first job.
    pub(super) first: u32,
    /// The job that is next, and the requests left in that turn.
    turn: usize,
    left: u32,
    began: Option<Nanos>,
    /// A job has ended, and with it all jobs.
    pub(super) is_last: bool,
}

/// A running job.
#[derive(Debug, Clone)]
pub(super) struct Playing {
    source: FioSource,
    /// Most requests outstanding; `None` for an open loop.
    pub(super) depth: Option<u32>,
    /// Most requests outstanding when a full queue gets requests again, and whether it does.
    low: u32,
    refills: bool,
    is_capped: bool,
    /// Each request has an arrival time.
    has_times: bool,
    /// Begin of the job in the phase, without delay; `None` before the end of the jobs `after`.
    pub(super) begin: Option<Nanos>,
    pub(super) after: Range<u32>,
    pub(super) delay: Nanos,
    runtime: Option<Nanos>,
    /// The time without figures, and whether it is over.
    pub(super) ramp: Nanos,
    ramped: bool,
    restarted: bool,
    pending: Option<Request>,
    pub(super) ended: bool,
    pub(super) outstanding: u32,
    think: Think,
    /// Requests since the last pause, and the end of that pause.
    since_pause: u64,
    pub(super) paused_until: Nanos,
    /// Ends of other jobs with this one, once.
    pub(super) order: Order,
    pub(super) group: u32,
    pub(super) flow: Flow,
    /// Requests that count for the flow.
    pub(super) flowed: u64,
    pub(super) search: Option<Search>,
    pub(super) floor: Option<Floor>,
    /// The job never begins, because another section runs alone.
    pub(super) is_left_out: bool,
    /// The zones of the job, and whether its next request waits for those in flight.
    zones: Option<JobZones>,
    quiesces: bool,
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
    pub(super) fn span(&self) -> (Nanos, Nanos) {
        let Some(begin) = self.begin else { return (Nanos::MAX, Nanos::MAX) };
        let (begin, rest) = (begin.saturating_add(self.delay), self.runtime.map(|rest| rest.saturating_add(self.ramp)));
        (begin, rest.map_or(Nanos::MAX, |rest| begin.saturating_add(rest)))
    }

    /// Restarts the figures of the job at the end of its ramp.
    fn ramp(&mut self, since: Nanos) {
        if !self.ramped && since >= self.span().0.saturating_add(self.ramp) {
            (self.ramped, self.restarted) = (true, true);
        }
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

    /// Counts a request that was issued, or else completed, for the next pause; as in fio, flushes do not count.
    fn count_for_pause(&mut self, kind: RequestKind, is_issued: bool) {
        self.since_pause += u64::from(self.think.of_issued == is_issued && kind != RequestKind::Flush);
    }

    /// `since`, or the end of the pause; `None` if the pause begins after requests in flight.
    fn after_pause(&mut self, since: Nanos) -> Option<Nanos> {
        let begun = self.paused_until.max(self.span().0);
        let is_over = self.think.after > 0 && since >= begun.saturating_add(self.think.after);
        if self.think.time > 0 && (self.since_pause >= self.think.requests || is_over) {
            if self.outstanding > 0 {
                return None;
            }
            (self.since_pause, self.paused_until) = (0, since.saturating_add(self.think.time));
        }
        Some(since.max(self.paused_until))
    }

    pub(super) fn end(&mut self) {
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
        self.begin?;
        self.ramp(since);
        let (begin, end) = self.span();
        let depth = self.depth_at(since);
        if self.depth.is_none() {
            return self.within(Some(since.saturating_sub(begin)));
        }
        if self.outstanding >= depth {
            self.refills = false;
            return None;
        }
        if self.quiesces && self.outstanding > 0 {
            return None;
        }
        if !self.refills && self.outstanding > self.low.min(depth - 1) {
            return None;
        }
        self.refills = true;
        let since = self.after_pause(since)?;
        if since >= end {
            self.end();
        }
        let now = Some(since.saturating_sub(begin));
        let due = if self.is_capped { self.within(now) } else { self.fill(now).map(|_| begin.max(since)) };
        due.filter(|_| self.outstanding == 0 || !self.source.is_behind_writes())
    }
}

impl Phase {
    fn has_times(&self) -> bool {
        self.jobs.iter().all(|job| job.has_times)
    }

    /// The request or event due `since` nanoseconds after the begin; [`Due::Nothing`] after the end.
    fn due(&mut self, since: Nanos, zones: &mut Option<ZoneHost>) -> Due {
        loop {
            self.begin_jobs(since);
            let due = self.due_now(since, zones);
            if matches!(due, Due::Request(_)) || !self.is_changed(since) {
                return due;
            }
        }
    }

    fn due_now(&mut self, since: Nanos, zones: &mut Option<ZoneHost>) -> Due {
        let count = self.jobs.len();
        // The open job with the earliest arrival; the first closed job in turn.
        let (mut open, mut closed): (Option<(Nanos, usize)>, Option<usize>) = (None, None);
        let (mut next, mut outstanding, mut ahead) = (Nanos::MAX, 0, None);
        for at in (0..count).map(|step| (self.turn + step) % count) {
            let due = self.jobs[at].due(since);
            let is_ahead = due.is_some_and(|when| when <= since) && self.is_ahead(at, since);
            let job = &mut self.jobs[at];
            outstanding += job.outstanding;
            match due {
                _ if is_ahead => {
                    next = next.min(job.sleep(since));
                    ahead = ahead.or(Some(at));
                }
                None => {}
                Some(when) if when > since => next = next.min(when),
                Some(when) if job.depth.is_none() => {
                    open = Some(open.map_or((when, at), |best| best.min((when, at))));
                }
                Some(_) => _ = closed.get_or_insert(at),
            }
        }
        // If all others have ended, a job that is ahead continues.
        let last = ahead.filter(|_| next == Nanos::MAX && outstanding == 0);
        if let Some(at) = open.map(|(_, at)| at).or(closed).or(last) {
            let (job, number) = (&mut self.jobs[at], self.first + at as u32);
            let Some(mut request) = job.take(number, zones) else { return self.due_now(since, zones) };
            job.outstanding += 1;
            job.flowed += 1;
            job.count_for_pause(request.command.kind, true);
            request.arrival = if open.is_some() { job.span().0.saturating_add(request.arrival) } else { since };
            if open.is_none() {
                self.turn = (at + 1) % count;
            }
            request.command.directives.queue = number;
            return Due::Request(request);
        }
        match (next, outstanding) {
            (Nanos::MAX, 0) => Due::Nothing,
            (Nanos::MAX, _) => Due::Completion,
            (at, _) => Due::At(at),
        }
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
            notes: Vec::new(),
            firsts: Vec::new(),
            groups: 0,
            base: 0,
            latest: 0,
            last: (0, 0),
            zones: None,
        }
    }

    /// A specification with times (`runtime`, `startdelay`) or copies (`numjobs`). Each copy has random numbers and
    /// positions of its own; equal seeds give equal requests.
    ///
    /// # Errors
    /// As [`FioSource::new`].
    pub fn of_spec(spec: &FioSpec, room: Room, seed: u64) -> Result<JobsSource> {
        let mut source = JobsSource { streams: spec.copies > 1, ..JobsSource::new("--workload") };
        source.begin_section("the workload", spec);
        for number in 1..=spec.copies {
            source.push(spec, FioSource::of_job(spec, room, seed, (number, number - 1))?, number - 1, seed);
        }
        Ok(source)
    }

    /// Begins a section, whose copies follow.
    pub(super) fn begin_section(&mut self, name: &str, spec: &FioSpec) {
        let Order { stonewall, new_group, .. } = spec.order;
        self.sections.push((name.to_string(), spec.copies as u32));
        self.firsts.push(self.jobs);
        self.groups += u32::from(stonewall || new_group);
    }

    /// The numbers of the jobs of the section called `name`.
    fn numbers(&self, name: &str) -> Range<u32> {
        let at = self.sections.iter().position(|(other, _)| other == name);
        at.map_or(0..0, |at| self.firsts[at]..self.firsts[at] + self.sections[at].1)
    }

    /// The outcomes of all copies so far, in order.
    fn outcomes(&self) -> impl Iterator<Item = Outcome> {
        let playing = self.phases.iter().flat_map(|phase| &phase.jobs);
        self.ended.iter().cloned().chain(playing.map(Playing::outcome))
    }

    /// Adds a job with the requests of `source`.
    pub(super) fn push(&mut self, spec: &FioSpec, source: FioSource, copy: u64, seed: u64) {
        let Refill { low, submit, complete } = spec.refill;
        let submit = if submit == 0 { spec.iodepth } else { submit };
        let spread = Rng::new(seed, 7 + u64::from(self.jobs)).below(spec.delay_spread.saturating_add(1));
        let delay = spec.start_delay.saturating_add(spread);
        let after = spec.order.after.as_deref().map_or(0..0, |name| self.numbers(name));
        let zones = JobZones::new(spec, source.region());
        if let Some(own) = &zones {
            self.zones.get_or_insert_with(|| ZoneHost::new(spec)).cover(own);
        }
        let job = Playing {
            source,
            zones,
            quiesces: false,
            depth: (!spec.open_loop).then_some(spec.iodepth),
            low: low.min(spec.iodepth.saturating_sub(submit.max(complete))),
            refills: true,
            begin: after.is_empty().then_some(0),
            after,
            ramp: spec.ramp,
            ramped: spec.ramp == 0,
            restarted: false,
            order: spec.order.clone(),
            group: self.groups,
            flow: spec.flow,
            flowed: 0,
            is_capped: spec.is_capped(),
            has_times: spec.has_times() && spec.think.time == 0,
            delay,
            runtime: spec.runtime,
            pending: None,
            ended: false,
            outstanding: 0,
            think: spec.think,
            since_pause: 0,
            paused_until: 0,
            search: (spec.target.time > 0).then(|| Search::new(spec.target, spec.iodepth, delay)),
            floor: spec.floor.rates.iter().any(Option::is_some).then(|| Floor::new(spec.floor, delay)),
            is_left_out: false,
        };
        if (spec.order.stonewall && copy == 0) || self.phases.is_empty() {
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
        let is_full = job.depth.is_none_or(|depth| job.low >= depth - 1);
        let is_bound = job.flow.weight > 0 || job.order.exits || job.begin.is_none() || spec.reads_back();
        self.has_pace |= has_pace;
        self.clocked |=
            phases > 1 || has_pace || job.delay > 0 || job.ramp > 0 || ends_by_clock || is_bound || !is_full;
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
            match phase.due(now - began, &mut self.zones) {
                Due::Request(request) => {
                    let request = Request { arrival: began.saturating_add(request.arrival), ..request };
                    return Ok(Due::Request(self.given(request, request.directives.queue)));
                }
                Due::At(since) => return Ok(Due::At(began.saturating_add(since))),
                Due::Completion => return Ok(Due::Completion),
                Due::Nothing => {
                    let over = if phase.is_last { self.phases.len() } else { 1 };
                    let over: Vec<Phase> = self.phases.drain(..over).collect();
                    self.ended.extend(over.iter().flat_map(|phase| &phase.jobs).map(Playing::outcome));
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
        job.count_for_pause(command.kind, false);
        if let Some(search) = job.search.as_mut().filter(|_| command.kind != RequestKind::Flush) {
            search.completed(latency);
        }
        if let Some(floor) = &mut job.floor {
            floor.completed(command.kind, u64::from(command.extent.sectors) * SECTOR_BYTES);
        }
    }

    fn is_ramping(&mut self, now: Nanos) -> bool {
        let Some(phase) = self.phases.front_mut() else { return false };
        let since = now - *phase.began.get_or_insert(now);
        phase.jobs.iter().any(|job| job.is_ramping(since))
    }

    fn take_restarted(&mut self) -> Option<u32> {
        let phase = self.phases.front_mut()?;
        let is_restarted = |job: &mut Playing| {
            std::mem::take(&mut job.restarted) || job.search.as_mut().is_some_and(Search::take_restarted)
        };
        phase.jobs.iter_mut().position(is_restarted).map(|at| phase.first + at as u32)
    }
}

impl Source for JobsSource {
    fn next_request(&mut self) -> Result<Option<Request>> {
        while let Some(phase) = self.phases.front_mut() {
            if phase.jobs.iter().any(|job| job.search.is_some() || job.floor.is_some() || job.ramp > 0) {
                let what = "latency_target and the least rates need simulated time, as ramp_time does; expected a \
                            timed run without a depth of the host (host.iodepth), or a workload without them";
                return Err(Error::input(&self.name, what));
            }
            if phase.jobs.iter().any(|job| job.runtime.is_some() && !job.has_times) {
                let what = "the number of requests in a runtime is known in timed runs without host.iodepth only; \
                            expected rate_iops, or number_ios or io_size instead of runtime";
                return Err(Error::input(&self.name, what));
            }
            if let Some((request, job)) = phase.next(self.latest, self.base, &mut self.zones) {
                return Ok(Some(self.given(request, job)));
            }
            let over = if phase.is_last { self.phases.len() } else { 1 };
            self.phases.drain(..over);
            self.base = self.latest;
        }
        Ok(None)
    }

    fn can_repeat(&self) -> bool {
        false
    }

    fn locality(&self) -> Locality {
        let sources = || self.phases.iter().flat_map(|phase| &phase.jobs).map(|job| &job.source);
        let is_shared = sources().all(|source| Some(source.region()) == sources().next().map(FioSource::region));
        if is_shared { sources().map(Source::locality).max().unwrap_or(Locality::Uniform) } else { Locality::Favoured }
    }

    fn uses_up_addresses(&self) -> bool {
        self.phases.iter().flat_map(|phase| &phase.jobs).any(|job| job.source.uses_up_addresses())
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
            Section { name: name.clone(), copies: *copies, depth: Search::found(&searches) }
        };
        self.sections.iter().map(of).collect()
    }

    fn keep_only(&mut self, tenant: u32) -> bool {
        let Some(&(_, copies)) = self.sections.get(tenant as usize) else { return false };
        let first = self.firsts[tenant as usize];
        self.phases.iter_mut().for_each(|phase| phase.keep_only(&(first..first + copies)));
        true
    }

    fn notes(&self) -> Vec<String> {
        let names = self.sections.iter().flat_map(|(name, copies)| (0..*copies).map(move |_| name));
        let of = |(name, end): (&String, Outcome)| match (end.too_slow, end.search.as_ref().and_then(Search::failure)) {
            (Some(why), _) => Some(format!("{name} ended early: {why}")),
            (None, Some(why)) => Some(format!("{name} found no depth: {why}")),
            (None, None) => None,
        };
        self.notes.iter().cloned().chain(names.zip(self.outcomes()).filter_map(of)).collect()
    }

    fn name_handles(&mut self, identifiers: &[u16]) {
        let jobs = self.phases.iter_mut().flat_map(|phase| &mut phase.jobs);
        jobs.for_each(|job| job.source.name_handles(identifiers));
    }

    fn zones(&mut self) -> Option<&mut ZoneHost> {
        self.zones.as_mut()
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
        let jobs = jobs.filter(|job| !job.is_left_out);
        // Resets are requests too, whose number is unknown.
        let expected =
            |job: &Playing| (job.runtime.is_none() && job.zones.is_none()).then(|| job.source.expected_requests())?;
        jobs.map(expected).try_fold(0u64, |sum, next| sum.checked_add(next?))
    }
}
