//! Figures of each section of a job file: requests, bytes, rates and latencies of its copies together.
//!
//! A section whose copies search a depth (`latency_target`) counts each copy from the end of the search on. Ignored:
//! figures of a copy.
//!
//! `jobs`, `recorder` and `summary` use each other: the recorder of a run has one of sections, and a summary has the
//! results of both.

use super::histogram::Histogram;
use super::summary::{JobFigures, TargetFigures};
use super::tenants::{Counts, TenantFigures};
use palimpsest_workload::request::Section;

/// Requests of a section, or of a copy that searches its depth.
type Slot = Counts<Histogram>;

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
        *self.of(job) = Slot::default();
    }

    /// The counts of a job. A single job has all requests, because their owners may be files.
    pub fn of(&mut self, job: u32) -> &mut Slot {
        let at = if self.slot_of.len() == 1 { 0 } else { self.slot_of[job as usize] };
        &mut self.slots[at]
    }

    /// The figures of each of `sections`, without programmed bytes. Without `timed`, times are null.
    pub fn tenants(&self, sections: &[Section], timed: bool) -> Vec<TenantFigures> {
        let section_of = |job: u32| {
            let found = (0..).zip(sections).find(|&(number, _)| jobs_of(sections, number).contains(&(job as usize)));
            found.map(|(number, section)| (number, section.name.clone()))
        };
        let of = |(number, section): (u32, &Section)| {
            let jobs = &self.slot_of[jobs_of(sections, number)];
            let slots = self.slots[jobs[0]..=jobs[jobs.len() - 1]].iter();
            let figures = TenantFigures::of(slots.clone(), timed).with_waits(slots, section_of);
            TenantFigures { tenant: number, name: section.name.clone(), ..figures }
        };
        (0..).zip(sections).map(of).collect()
    }

    /// The figures of each of `sections`. Without `timed`, times are null.
    pub fn figures(&self, sections: &[Section], timed: bool) -> Vec<JobFigures> {
        let of = |(section, figures): (&Section, TenantFigures)| JobFigures {
            job: figures.name,
            copies: section.copies,
            requests: figures.requests,
            bytes_read: figures.bytes_read,
            bytes_written: figures.bytes_written,
            latency_ns: figures.latency_ns,
            throughput: figures.throughput,
            latency_target: section.depth.as_ref().map(|found| TargetFigures {
                target_ns: found.longest,
                window_ns: found.window,
                percentile: found.share as f64 / 1000.0,
                depths: found.depths.clone(),
                met: found.met,
            }),
        };
        sections.iter().zip(self.tenants(sections, timed)).map(of).collect()
    }
}

/// The numbers of the jobs of section `number`.
pub fn jobs_of(sections: &[Section], number: u32) -> std::ops::Range<usize> {
    let (before, rest) = sections.split_at(number as usize);
    let first: u32 = before.iter().map(|section| section.copies).sum();
    first as usize..(first + rest[0].copies) as usize
}

#[cfg(test)]
mod tests;
