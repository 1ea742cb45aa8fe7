//! Figures of each section of a job file: requests, bytes, rates and latencies of its copies together.
//!
//! A section whose copies search a depth (`latency_target`) counts each copy from the end of the search on. Ignored:
//! flash operations by section, because the layer mixes the data of all.
//!
//! `jobs`, `recorder` and `summary` use each other: the recorder of a run has one of sections, and a summary has the
//! results of both.

use super::histogram::Histogram;
use super::summary::{JobFigures, Latencies, Latency, Requests, TargetFigures, Throughput};
use super::volumes::Counts;
use palimpsest_flash::geometry::RequestKind;
use palimpsest_flash::units::Nanos;
use palimpsest_workload::request::Section;

/// Requests of a section, or of a copy that searches its depth.
#[derive(Default)]
struct Slot {
    counts: Counts<Histogram>,
    other: Histogram,
    /// Arrival of the first completed request, and the last completion.
    span: Option<(Nanos, Nanos)>,
}

/// Counts by section.
pub struct JobRecorder {
    slots: Vec<Slot>,
    /// The slot of each job, by its number.
    slot_of: Vec<usize>,
}

impl JobRecorder {
    /// A recorder of `sections`; `None` if the figures of the only section are the run's.
    pub fn new(sections: &[Section]) -> Option<JobRecorder> {
        if sections.len() < 2 && sections.iter().all(|section| section.depth.is_none()) {
            return None;
        }
        let (mut slots, mut slot_of) = (Vec::new(), Vec::new());
        for section in sections {
            for copy in 0..section.copies {
                if copy == 0 || section.depth.is_some() {
                    slots.push(Slot::default());
                }
                slot_of.push(slots.len() - 1);
            }
        }
        Some(JobRecorder { slots, slot_of })
    }

    /// Forgets all requests.
    pub fn restart_all(&mut self) {
        self.slots.fill_with(Slot::default);
    }

    /// Forgets the requests of a copy that searched its depth.
    pub fn restart(&mut self, job: u32) {
        *self.slot(job) = Slot::default();
    }

    /// The slot of a job. A single job has all requests, because their owners may be files.
    fn slot(&mut self, job: u32) -> &mut Slot {
        let at = if self.slot_of.len() == 1 { 0 } else { self.slot_of[job as usize] };
        &mut self.slots[at]
    }

    /// Counts a request that is submitted.
    pub fn submitted(&mut self, job: u32, kind: RequestKind, sectors: u32) {
        self.slot(job).counts.submitted(kind, sectors);
    }

    /// Uncounts a request that the drive refused.
    pub fn refused(&mut self, job: u32, kind: RequestKind, sectors: u32) {
        self.slot(job).counts.refused(kind, sectors);
    }

    /// Counts a request that has completed at `now`.
    pub fn completed(&mut self, job: u32, kind: RequestKind, latency: Nanos, now: Nanos) {
        let slot = self.slot(job);
        slot.span = Some((slot.span.map_or(Nanos::MAX, |span| span.0).min(now - latency), now));
        match kind {
            RequestKind::Read => slot.counts.read.record(latency),
            RequestKind::Write => slot.counts.write.record(latency),
            _ => slot.other.record(latency),
        }
    }

    /// The figures of each of `sections`. Without `timed`, times are null.
    pub fn figures(&self, sections: &[Section], timed: bool) -> Vec<JobFigures> {
        let mut first = 0;
        let of = |section: &Section| {
            let jobs = &self.slot_of[first..first + section.copies as usize];
            first += section.copies as usize;
            let slots = &self.slots[jobs[0]..=jobs[jobs.len() - 1]];
            figures(section, slots, timed)
        };
        sections.iter().map(of).collect()
    }
}

fn figures(section: &Section, slots: &[Slot], timed: bool) -> JobFigures {
    let (mut requests, mut bytes) = (Requests::default(), [0, 0]);
    let [mut all, mut read, mut write] = [Histogram::new(), Histogram::new(), Histogram::new()];
    let mut throughput = Throughput::default();
    for Slot { counts, other, span } in slots {
        requests.read += counts.requests.read;
        requests.write += counts.requests.write;
        requests.trim += counts.requests.trim;
        requests.flush += counts.requests.flush;
        bytes = [bytes[0] + counts.bytes[0], bytes[1] + counts.bytes[1]];
        read.merge(&counts.read);
        write.merge(&counts.write);
        all.merge(other);
        if let Some((begin, end)) = span.filter(|(begin, end)| timed && end > begin) {
            let each_second = |number: u64| number as f64 * 1e9 / (end - begin) as f64;
            let count = counts.read.count() + counts.write.count() + other.count();
            let [iops, rate] = [count, counts.bytes[0] + counts.bytes[1]].map(each_second);
            throughput = Throughput {
                iops: Some(throughput.iops.unwrap_or(0.0) + iops),
                bytes_per_s: Some(throughput.bytes_per_s.unwrap_or(0.0) + rate),
            };
        }
    }
    all.merge(&read);
    all.merge(&write);
    JobFigures {
        job: section.name.clone(),
        copies: section.copies,
        requests,
        bytes_read: bytes[0],
        bytes_written: bytes[1],
        latency_ns: timed.then(|| Latencies {
            all: Latency::of(&all),
            read: Latency::of(&read),
            write: Latency::of(&write),
        }),
        throughput,
        latency_target: section.depth.as_ref().map(|found| TargetFigures {
            target_ns: found.longest,
            window_ns: found.window,
            percentile: found.share as f64 / 1000.0,
            depths: found.depths.clone(),
            met: found.met,
        }),
    }
}

#[cfg(test)]
mod tests;
