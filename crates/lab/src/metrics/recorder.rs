//! Measurements during a run: latencies, and a time series of bounded length. Ignored: the warm-up, which precedes the
//! measurement.

use super::histogram::Histogram;
use super::jobs::JobRecorder;
use super::steady::{Latencies, Sample};
use super::tail::Tail;
use super::volumes::VolumeRecorder;
use super::why::Why;
use palimpsest_flash::command::Command;
use palimpsest_flash::geometry::RequestKind;
use palimpsest_flash::units::Nanos;
use palimpsest_sim::observe::Observer;
use palimpsest_sim::timeline::parts::{Parts, Waits};
use serde::Serialize;

/// Most windows of the series; beyond, windows are joined in pairs.
const MOST_WINDOWS: usize = 512;
const FIRST_WINDOW: Nanos = 100_000;
/// A watt in picojoules a nanosecond.
const PICOJOULES_PER_NANOSECOND: f64 = 1000.0;

/// Counters at a point in time, for the series: flash operations that have ended, and bytes planned to store host
/// writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlashTotals {
    /// Page reads.
    pub reads: u64,
    /// Page programs.
    pub programs: u64,
    /// Page programs of cleaning and merging.
    pub gc_programs: u64,
    /// Erases.
    pub erases: u64,
    /// Bytes of data in programs planned.
    pub data_bytes: u64,
    /// Bytes that the host wrote in requests submitted.
    pub host_bytes: u64,
    /// Steps of retries in reads planned.
    pub retries: u64,
    /// Subpages that uncorrectable reads lost.
    pub lost: u64,
}

#[derive(Debug, Clone, Default)]
struct Window {
    requests: u64,
    bytes: u64,
    reads: u64,
    read_sum: u64,
    writes: u64,
    write_sum: u64,
    /// Sum over requests of the time outstanding in this window; only if the recorder notes it.
    outstanding: u64,
    max: Nanos,
    flash: FlashTotals,
    /// Picojoules.
    energy: i64,
    /// The worst read: wrong bits as a share of the correctable bits; 0: none.
    worst: f64,
    read_tail: Tail,
    write_tail: Tail,
}

/// Latencies by kind, collections, and the time series.
pub struct Recorder {
    /// Latencies of reads.
    pub read: Histogram,
    /// Latencies of writes.
    pub write: Histogram,
    /// Latencies of all other requests.
    other: Histogram,
    /// Times of collections.
    pub collections: Histogram,
    /// Parts of latencies, if the run records the slowest requests.
    pub why: Why,
    /// Figures of volumes, if the workload has volumes.
    pub volumes: Option<VolumeRecorder>,
    /// Figures of the sections of a job file, if it has several.
    pub jobs: Option<JobRecorder>,
    start: Nanos,
    window: Nanos,
    windows: Vec<Window>,
    /// The last used window: begin, end, number.
    present: (Nanos, Nanos, usize),
    sampled: FlashTotals,
    next_sample: Nanos,
    /// Picojoules in windows, and the time up to which they are metered.
    metered: i64,
    metered_to: Nanos,
    last_completion: Nanos,
    /// Whether data of a failed die is being moved, and latencies meanwhile.
    pub rebuilding: bool,
    pub rebuild: Histogram,
    /// Whether windows have the requests outstanding in them.
    notes_outstanding: bool,
}

impl Recorder {
    /// An empty recorder that begins at `start` with the counters `totals`; `notes_outstanding`: note the
    /// requests outstanding in each window.
    pub fn new(start: Nanos, totals: FlashTotals, notes_outstanding: bool) -> Self {
        Recorder {
            read: Histogram::new(),
            write: Histogram::new(),
            other: Histogram::new(),
            collections: Histogram::new(),
            why: Why::default(),
            volumes: None,
            jobs: None,
            rebuilding: false,
            rebuild: Histogram::new(),
            start,
            window: FIRST_WINDOW,
            windows: Vec::new(),
            present: (0, 0, 0),
            sampled: totals,
            next_sample: start + FIRST_WINDOW,
            metered: 0,
            metered_to: start,
            last_completion: start,
            notes_outstanding,
        }
    }

    #[inline]
    fn window_at(&mut self, now: Nanos) -> &mut Window {
        let (begin, end, index) = self.present;
        if begin <= now && now < end { &mut self.windows[index] } else { self.find_window(now) }
    }

    fn find_window(&mut self, now: Nanos) -> &mut Window {
        while (now - self.start) / self.window >= MOST_WINDOWS as u64 {
            self.join_pairs();
        }
        let index = ((now - self.start) / self.window) as usize;
        if index >= self.windows.len() {
            self.windows.resize_with(index + 1, Window::default);
        }
        let begin = self.start + index as u64 * self.window;
        self.present = (begin, begin + self.window, index);
        &mut self.windows[index]
    }

    fn join_pairs(&mut self) {
        for pair in self.windows.chunks_mut(2) {
            if let [one, two] = pair {
                one.requests += two.requests;
                one.bytes += two.bytes;
                one.reads += two.reads;
                one.read_sum += two.read_sum;
                one.writes += two.writes;
                one.write_sum += two.write_sum;
                one.outstanding += two.outstanding;
                one.max = one.max.max(two.max);
                one.flash = add(one.flash, two.flash);
                one.energy += two.energy;
                one.worst = one.worst.max(two.worst);
                one.read_tail.merge(&two.read_tail);
                one.write_tail.merge(&two.write_tail);
            }
        }
        let mut index = 0;
        self.windows.retain(|_| {
            index += 1;
            index % 2 == 1
        });
        self.window *= 2;
    }

    /// Latencies of all requests.
    pub fn all(&self) -> Histogram {
        let mut all = self.read.clone();
        [&self.write, &self.other].into_iter().for_each(|some| all.merge(some));
        all
    }

    /// Time of the last completion; the start if there is none.
    pub fn last_completion(&self) -> Nanos {
        self.last_completion
    }

    /// End of the window that the last call of [`Self::sample`] began; the next call must precede all events from then
    /// on.
    #[inline]
    pub fn next_sample(&self) -> Nanos {
        self.next_sample
    }

    /// Adds the changes of the counters since the last sample to the window of `now`; the next change occurs at `next`.
    pub fn sample(&mut self, now: Nanos, next: Nanos, totals: FlashTotals) {
        let before = std::mem::replace(&mut self.sampled, totals);
        self.window_at(now);
        let window = &mut self.windows[self.present.2];
        window.flash = add(window.flash, subtract(totals, before));
        // A power cut rolls back operations, and the end of the drive's life refuses requests, of earlier windows too.
        let mut undone = subtract(before, totals);
        for window in self.windows[..=self.present.2].iter_mut().rev() {
            if undone == FlashTotals::default() {
                break;
            }
            (window.flash, undone) = (subtract(window.flash, undone), subtract(undone, window.flash));
        }
        let passed = (next - self.start) / self.window;
        self.next_sample = self.start + (passed + 1) * self.window;
    }

    /// Notes for the reads planned up to `now` since the last call: the worst had `share` of the correctable wrong
    /// bits.
    pub fn note_worst_read(&mut self, now: Nanos, share: f64) {
        let window = self.window_at(now);
        window.worst = window.worst.max(share);
    }

    /// Sets the energy of each window that ends by `until`; `at` must return the energy of flash up to a time.
    pub fn meter(&mut self, until: Nanos, at: impl Fn(Nanos) -> i64) {
        loop {
            self.window_at(self.metered_to);
            let end = self.start + ((self.metered_to - self.start) / self.window + 1) * self.window;
            if end > until {
                return;
            }
            self.meter_to(end, at(end));
        }
    }

    /// Ends the run at `end`, up to which flash has taken `energy`.
    pub fn meter_rest(&mut self, end: Nanos, energy: i64) {
        if end > self.metered_to || energy != self.metered {
            self.meter_to(end, energy);
        }
    }

    /// Operations that a power cut tore count nowhere, so the energy may have decreased.
    fn meter_to(&mut self, end: Nanos, energy: i64) {
        let mut taken = energy - std::mem::replace(&mut self.metered, energy);
        self.window_at(end.saturating_sub(1).max(self.start));
        for window in self.windows[..=self.present.2].iter_mut().rev() {
            let sum = window.energy + taken;
            (window.energy, taken) = (sum.max(0), sum.min(0));
            if taken == 0 {
                break;
            }
        }
        // A program may correct the energy of programs before the measurement downwards.
        self.windows[self.present.2].energy += taken;
        self.metered_to = end;
    }

    /// Counts of all windows.
    pub fn flash(&self) -> FlashTotals {
        self.windows.iter().map(|window| window.flash).fold(FlashTotals::default(), add)
    }

    /// Moves the last completion to `time`, when the drive refuses a request at the end of its life.
    pub fn end_at(&mut self, time: Nanos) {
        self.last_completion = self.last_completion.max(time);
    }

    /// Picojoules of all windows.
    pub fn energy(&self) -> i64 {
        self.windows.iter().map(|window| window.energy).sum()
    }

    /// Watts of a window; the last window ends when flash becomes idle.
    fn watts(&self, index: u64, window: &Window) -> f64 {
        let length = self.window.min((self.metered_to - self.start).saturating_sub(index * self.window));
        window.energy as f64 / length.max(1) as f64 / PICOJOULES_PER_NANOSECOND
    }

    /// Watts of flash: the mean over time, and the mean of the window with the most.
    pub fn power(&self) -> Watts {
        let time = self.metered_to - self.start;
        if time == 0 {
            return Watts::default();
        }
        let watts = (0..).zip(&self.windows).map(|(index, window)| self.watts(index, window));
        Watts {
            mean: Some(self.energy() as f64 / time as f64 / PICOJOULES_PER_NANOSECOND),
            peak: watts.reduce(f64::max),
            window_ns: Some(self.window),
            time_ns: Some(time),
        }
    }

    /// Mean of the requests outstanding in a window. The last window ends with the last completion.
    fn outstanding(&self, index: u64, window: &Window) -> f64 {
        let length = self.window.min((self.last_completion - self.start).saturating_sub(index * self.window));
        window.outstanding as f64 / length.max(1) as f64
    }

    /// Adds a request that was outstanding for `latency` up to `now` to the windows of that time.
    fn note_outstanding(&mut self, latency: Nanos, now: Nanos) {
        let mut end = now - self.start;
        let begin = end.saturating_sub(latency);
        while end > begin {
            let index = (end - 1) / self.window;
            let from = begin.max(index * self.window);
            self.windows[index as usize].outstanding += end - from;
            end = from;
        }
    }

    /// The whole windows, and the length of one, as evidence of a steady drive.
    pub fn samples(&self) -> (Vec<Sample<'_>>, Nanos) {
        let whole = (self.last_completion - self.start) / self.window;
        let samples = self.windows.iter().take(whole as usize).map(|window| Sample {
            requests: window.requests,
            kinds: [
                Latencies { count: window.reads, sum: window.read_sum, tail: &window.read_tail },
                Latencies { count: window.writes, sum: window.write_sum, tail: &window.write_tail },
            ],
            host_bytes: window.flash.host_bytes,
            data_bytes: window.flash.data_bytes,
        });
        (samples.collect(), self.window)
    }

    /// The time series; without power if the part has no energies.
    pub fn series(&self, has_energies: bool) -> Series {
        let mean = |sum: u64, count: u64| sum.checked_div(count);
        let column = |value: fn(&Window) -> u64| self.windows.iter().map(value).collect::<Vec<u64>>();
        Series {
            window_ns: self.window,
            start_ns: (0..self.windows.len() as u64).map(|index| index * self.window).collect(),
            requests: column(|window| window.requests),
            bytes: column(|window| window.bytes),
            read_mean_ns: self.windows.iter().map(|window| mean(window.read_sum, window.reads)).collect(),
            write_mean_ns: self.windows.iter().map(|window| mean(window.write_sum, window.writes)).collect(),
            read_p99_ns: self.windows.iter().map(|window| window.read_tail.p99()).collect(),
            write_p99_ns: self.windows.iter().map(|window| window.write_tail.p99()).collect(),
            max_ns: column(|window| window.max),
            outstanding: (0..).zip(&self.windows).map(|(index, window)| self.outstanding(index, window)).collect(),
            programs: column(|window| window.flash.programs),
            reads: column(|window| window.flash.reads),
            erases: column(|window| window.flash.erases),
            gc_programs: column(|window| window.flash.gc_programs),
            write_amplification: self
                .windows
                .iter()
                .map(|window| window.flash)
                .map(|flash| (flash.host_bytes > 0).then(|| flash.data_bytes as f64 / flash.host_bytes as f64))
                .collect(),
            power_w: (0..)
                .zip(&self.windows)
                .map(|(index, window)| has_energies.then(|| self.watts(index, window)))
                .collect(),
            read_retries: column(|window| window.flash.retries),
            lost_subpages: column(|window| window.flash.lost),
            ecc_margin: self.windows.iter().map(|window| (window.worst > 0.0).then_some(1.0 - window.worst)).collect(),
        }
    }
}

/// `one` with each count changed by `change` from the count of `two`.
fn joined(one: FlashTotals, two: FlashTotals, change: fn(u64, u64) -> u64) -> FlashTotals {
    FlashTotals {
        reads: change(one.reads, two.reads),
        programs: change(one.programs, two.programs),
        gc_programs: change(one.gc_programs, two.gc_programs),
        erases: change(one.erases, two.erases),
        data_bytes: change(one.data_bytes, two.data_bytes),
        host_bytes: change(one.host_bytes, two.host_bytes),
        retries: change(one.retries, two.retries),
        lost: change(one.lost, two.lost),
    }
}

fn add(one: FlashTotals, two: FlashTotals) -> FlashTotals {
    joined(one, two, |one, two| one + two)
}

/// The counts between two moments; 0 if a power cut rolled back more.
pub(crate) fn subtract(later: FlashTotals, earlier: FlashTotals) -> FlashTotals {
    joined(later, earlier, u64::saturating_sub)
}

impl Observer for Recorder {
    #[inline]
    fn request_completed(&mut self, kind: RequestKind, bytes: u64, latency: Nanos, now: Nanos) {
        self.last_completion = now;
        match kind {
            RequestKind::Read => self.read.record(latency),
            RequestKind::Write => self.write.record(latency),
            _ => self.other.record(latency),
        }
        if self.rebuilding {
            self.rebuild.record(latency);
        }
        let window = self.window_at(now);
        window.requests += 1;
        if matches!(kind, RequestKind::Read | RequestKind::Write) {
            window.bytes += bytes;
        }
        window.max = window.max.max(latency);
        match kind {
            RequestKind::Read => {
                (window.reads, window.read_sum) = (window.reads + 1, window.read_sum + latency);
                window.read_tail.record(latency);
            }
            RequestKind::Write => {
                (window.writes, window.write_sum) = (window.writes + 1, window.write_sum + latency);
                window.write_tail.record(latency);
            }
            _ => {}
        }
        if self.notes_outstanding {
            self.note_outstanding(latency, now);
        }
    }

    fn owner_completed(&mut self, stream: u32, kind: RequestKind, latency: Nanos, now: Nanos) {
        if let Some(volumes) = &mut self.volumes {
            volumes.of(stream).completed(kind, latency, now);
        }
        if let Some(jobs) = &mut self.jobs {
            jobs.of(stream).completed(kind, latency, now);
        }
    }

    fn request_explained(&mut self, &Command { kind, directives, .. }: &Command, parts: &Parts, waits: &Waits) {
        self.why.add(kind, parts);
        if let Some(volumes) = &mut self.volumes {
            volumes.of(directives.owner).explained(kind, parts, waits);
        }
        if let Some(jobs) = &mut self.jobs {
            jobs.of(directives.owner).explained(kind, parts, waits);
        }
    }

    fn collection_ended(&mut self, took: Nanos) {
        self.collections.record(took);
    }
}

/// The time series of a run, one entry a window.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names are clear; they are the keys of the series' JSON")]
pub struct Series {
    pub window_ns: Nanos,
    pub start_ns: Vec<Nanos>,
    pub requests: Vec<u64>,
    pub bytes: Vec<u64>,
    pub read_mean_ns: Vec<Option<Nanos>>,
    pub write_mean_ns: Vec<Option<Nanos>>,
    pub read_p99_ns: Vec<Option<Nanos>>,
    pub write_p99_ns: Vec<Option<Nanos>>,
    pub max_ns: Vec<Nanos>,
    pub outstanding: Vec<f64>,
    pub programs: Vec<u64>,
    pub reads: Vec<u64>,
    pub erases: Vec<u64>,
    pub gc_programs: Vec<u64>,
    pub write_amplification: Vec<Option<f64>>,
    pub power_w: Vec<Option<f64>>,
    pub read_retries: Vec<u64>,
    pub lost_subpages: Vec<u64>,
    pub ecc_margin: Vec<Option<f64>>,
}

/// Power of flash in watts: the mean over `time_ns`, which ends with the last flash operation, and the maximum over
/// windows of `window_ns`. Null at count fidelity, and if the part has no energies.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Watts {
    pub mean: Option<f64>,
    pub peak: Option<f64>,
    pub window_ns: Option<Nanos>,
    pub time_ns: Option<Nanos>,
}
