//! Jobs on zones: fio's `zonemode=zbd`, as its `zbd.c`.
//!
//! All jobs share the record of the write pointers. A write goes to the write pointer of its zone, or of a zone that is
//! written already if the limits of open zones allow no other; a full zone is reset first, after the requests in flight
//! of the job. A rest of a zone that is smaller than the smallest block is finished. A read is moved below the write
//! pointer, or into the nearest zone with data; a trim resets the zone of its address. Sequential jobs continue where
//! their last request ended, across the part of a zone that holds no data, and a pass ends at the end of the last zone,
//! however few bytes it had. At the start the zones are those of the drive. Ignored: conventional zones, `verify`,
//! `ignore_zone_limits` and `write_zone_remainder`.

use super::spec::FioSpec;
use crate::request::{Command, Extent, Request, RequestKind, SECTOR_BYTES};
use palimpsest_flash::command::ZoneAction;
use std::ops::Range;

/// Thousandths of 1.
const WHOLE: u64 = 1000;

/// The keys of `zonemode=zbd` beside `zonesize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Zoned {
    /// `zonemode=zbd`.
    pub on: bool,
    /// `zonecapacity`, in bytes; 0: `zonesize`.
    pub capacity: u64,
    /// `max_open_zones`; 0: the drive's limit.
    pub max_open: u32,
    /// `job_max_open_zones`; 0: no limit of the job.
    pub job_max_open: u32,
    /// `read_beyond_wp`.
    pub beyond: bool,
    /// `zone_reset_threshold`, in thousandths of the job's zones.
    pub threshold: u32,
    /// `zone_reset_frequency`, in thousandths of writes.
    pub frequency: u32,
}

/// The zones of one job.
#[derive(Debug, Clone)]
pub struct JobZones {
    keys: Zoned,
    /// Numbers of the zones of the job.
    zones: Range<u32>,
    /// Smallest block of each direction, in sectors.
    least: [u64; 3],
    random: bool,
    /// The job reads and writes.
    mixed: bool,
    /// First sector of a sequential pass.
    first: u64,
    /// Nothing but a number of requests or a time ends the job, so sequential requests begin again.
    endless: bool,
    /// The job has written.
    wrote: bool,
    /// Whether a reset by `zone_reset_frequency` is due before the next write, once the write has been counted.
    due: Option<bool>,
}

/// The next step of a job.
pub enum Step {
    /// Issue this request.
    Issue(Request),
    /// Issue this reset or finish first, alone, then the request.
    First(Request, Request),
    /// Wait for the requests in flight, because a reset comes next.
    Wait,
    /// End the pass of sequential requests, without this request.
    EndPass,
    /// End the job: no zone can serve the request.
    End,
}

/// The write pointers of all zones, in sectors from the start of each zone.
#[derive(Debug, Clone)]
pub struct ZoneHost {
    size: u64,
    capacity: u64,
    written: Vec<u64>,
    /// Zones that jobs write, each with the number of a job.
    targets: Vec<(u32, u32)>,
    max_open: u32,
    /// Writes until the next reset by `zone_reset_frequency`.
    until_reset: u64,
}

impl JobZones {
    /// The zones of a job with these keys in the `region`, first sector and number of sectors; `None` without zones.
    pub fn new(spec: &FioSpec, region: (u64, u64)) -> Option<JobZones> {
        let size = spec.zones.bytes / SECTOR_BYTES;
        let least = |kind| spec.sizes(kind).iter().map(|share| share.bytes / SECTOR_BYTES).min().unwrap_or(1).max(1);
        // As in fio, only a job of reads may begin within a zone.
        let is_of_reads = spec.pattern.kinds == [RequestKind::Read];
        let first = if is_of_reads { region.0 } else { region.0.next_multiple_of(size.max(1)) };
        spec.zoned.on.then(|| JobZones {
            keys: spec.zoned,
            zones: (first / size) as u32..((region.0 + region.1) / size) as u32,
            first,
            endless: spec.loops.is_none() && spec.io_size.is_none(),
            wrote: false,
            least: [RequestKind::Read, RequestKind::Write, RequestKind::Trim].map(least),
            random: spec.pattern.random,
            mixed: [RequestKind::Read, RequestKind::Write].iter().all(|kind| spec.pattern.kinds.contains(kind)),
            due: None,
        })
    }
}

impl ZoneHost {
    /// Zones of these keys.
    pub fn new(spec: &FioSpec) -> ZoneHost {
        let size = spec.zones.bytes / SECTOR_BYTES;
        let capacity = if spec.zoned.capacity == 0 { size } else { spec.zoned.capacity / SECTOR_BYTES };
        ZoneHost {
            size,
            capacity,
            written: Vec::new(),
            targets: Vec::new(),
            max_open: spec.zoned.max_open,
            until_reset: 0,
        }
    }

    /// Adds empty zones up to those of `job`.
    pub fn cover(&mut self, job: &JobZones) {
        self.written.resize(self.written.len().max(job.zones.end as usize), 0);
    }

    /// Sectors from one zone to the next, and sectors of a zone that can be written.
    pub fn sizes(&self) -> (u64, u64) {
        (self.size, self.capacity)
    }

    /// Records the zones of the drive: sectors written in each, whether it is open, and the most open zones (0: any).
    pub fn found(&mut self, zones: impl Iterator<Item = (u64, bool)>, max_open: u32) {
        for (number, (written, open)) in (0..).zip(zones).take(self.written.len()) {
            self.written[number as usize] = written;
            if open && written < self.capacity {
                self.targets.push((number, u32::MAX));
            }
        }
        self.max_open = if self.max_open == 0 { max_open } else { self.max_open };
    }

    /// The next step of `job`, which wants `request` and has requests in flight if `busy`.
    pub fn step(&mut self, job: u32, zones: &mut JobZones, mut request: Request, busy: bool) -> Step {
        if zones.zones.is_empty() {
            return Step::End;
        }
        match request.command.kind {
            RequestKind::Write => self.write(job, zones, request, busy),
            RequestKind::Read if zones.keys.beyond => Step::Issue(request),
            // The first request of a mix writes, because nothing may be there to read.
            RequestKind::Read if zones.mixed && !zones.wrote => {
                request.command.kind = RequestKind::Write;
                self.write(job, zones, request, busy)
            }
            RequestKind::Read => self.read(zones, request),
            RequestKind::Trim => self.trim(zones, request, busy),
            RequestKind::Flush => Step::Issue(request),
        }
    }

    /// The zone that a request asks for, and the place in the zone; `None` at the end of a sequential pass.
    fn asked(&self, zones: &JobZones, extent: Extent, kind: RequestKind) -> Option<(u32, u64)> {
        if zones.random {
            let zone = ((extent.sector / self.size) as u32).clamp(zones.zones.start, zones.zones.end - 1);
            return Some((zone, extent.sector % self.size));
        }
        let mut next = extent.sector.max(zones.first);
        if kind == RequestKind::Write && next % self.size >= self.capacity {
            next = next.next_multiple_of(self.size);
        }
        if next >= u64::from(zones.zones.end) * self.size {
            next = zones.endless.then_some(zones.first)?;
        }
        Some(((next / self.size) as u32, next % self.size))
    }

    fn left(&self, zone: u32) -> u64 {
        self.capacity - self.written[zone as usize]
    }

    /// Makes `zone` one that `job` writes, if the limits allow.
    fn open(&mut self, job: u32, zones: &JobZones, zone: u32) -> bool {
        if self.targets.iter().any(|&(other, _)| other == zone) {
            return true;
        }
        let own = self.targets.iter().filter(|&&(_, of)| of == job).count() as u32;
        let (most, own_most) = (self.max_open, zones.keys.job_max_open);
        if most > 0 && self.targets.len() as u32 >= most || own_most > 0 && own >= own_most {
            return false;
        }
        self.targets.push((zone, job));
        true
    }

    /// The zone to write instead of `zone`, if that one cannot be opened.
    fn choose(&mut self, job: u32, zones: &JobZones, zone: u32, extent: Extent) -> Option<u32> {
        if self.open(job, zones, zone) {
            return Some(zone);
        }
        let (first, least) = (u64::from(zones.zones.start) * self.size, zones.least[1]);
        let of_job: Vec<u32> =
            self.targets.iter().map(|&(zone, _)| zone).filter(|zone| zones.zones.contains(zone)).collect();
        let room = zones.zones.len() as u64 * self.size;
        let at = extent.sector.saturating_sub(first).min(room - 1) * of_job.len() as u64 / room;
        let picked = of_job.get(at as usize).copied().filter(|&picked| self.left(picked) >= least);
        let next = |turn: u32| zones.zones.start + (zone - zones.zones.start + turn) % zones.zones.len() as u32;
        if picked.is_some() {
            return picked;
        }
        let other = (1..zones.zones.len() as u32).map(next).find(|&other| self.open(job, zones, other));
        other.or_else(|| of_job.into_iter().find(|&other| self.left(other) >= least))
    }

    fn write(&mut self, job: u32, zones: &mut JobZones, request: Request, busy: bool) -> Step {
        let least = zones.least[1];
        let Some((zone, _)) = self.asked(zones, request.command.extent, RequestKind::Write) else {
            return Step::EndPass;
        };
        let Some(zone) = self.choose(job, zones, zone, request.command.extent) else { return Step::End };
        let left = self.left(zone);
        let is_due = zones.due.unwrap_or_else(|| zones.keys.frequency > 0 && self.is_reset_due(zones));
        zones.due = Some(is_due);
        if left < least || is_due {
            if busy {
                return Step::Wait;
            }
            let action = if left > 0 && !is_due { ZoneAction::Finish } else { ZoneAction::None };
            self.targets.retain(|&(other, _)| other != zone);
            self.written[zone as usize] = if action == ZoneAction::Finish { self.capacity } else { 0 };
            zones.due = Some(false);
            // After a finish the next zone follows; of a random job around the end.
            let following = match action {
                ZoneAction::Finish if zones.random && zone + 1 == zones.zones.end => zones.zones.start,
                ZoneAction::Finish => zone + 1,
                _ => zone,
            };
            let next = Extent { sector: u64::from(following) * self.size, ..request.command.extent };
            return Step::First(self.managed(zone, request, action), moved(request, next));
        }
        let sectors = u64::from(request.command.extent.sectors).min(left / least * least);
        let sector = u64::from(zone) * self.size + self.written[zone as usize];
        self.written[zone as usize] += sectors;
        (zones.due, zones.wrote) = (None, true);
        if self.left(zone) < least {
            self.targets.retain(|&(other, _)| other != zone);
        }
        Step::Issue(moved(request, Extent { sector, sectors: sectors as u32 }))
    }

    /// Counts a write towards the next reset if enough is written; true if the reset is due.
    fn is_reset_due(&mut self, zones: &JobZones) -> bool {
        let Zoned { threshold, frequency, .. } = zones.keys;
        let written: u64 = zones.zones.clone().map(|zone| self.written[zone as usize]).sum();
        let room = zones.zones.len() as u64 * self.size;
        if u128::from(written) * u128::from(WHOLE) < u128::from(room) * u128::from(threshold) {
            return false;
        }
        if self.until_reset == 0 {
            self.until_reset = WHOLE / u64::from(frequency);
        }
        self.until_reset -= 1;
        self.until_reset == 0
    }

    fn read(&mut self, zones: &JobZones, request: Request) -> Step {
        let (least, extent) = (zones.least[0], request.command.extent);
        let Some((asked, mut place)) = self.asked(zones, extent, RequestKind::Read) else { return Step::EndPass };
        let mut zone = asked;
        if self.written[zone as usize] < least || !zones.random && place + least > self.written[zone as usize] {
            let Some(found) = self.with_data(zones, zone, least) else {
                return if zones.random { Step::End } else { Step::EndPass };
            };
            zone = found;
            place = if zones.random { place } else { 0 };
        }
        let (written, wanted) = (self.written[zone as usize], u64::from(extent.sectors));
        if written <= wanted {
            place = 0;
        } else if zones.random {
            place = place % (written - wanted) / least * least;
        }
        let sectors = wanted.min((written - place) / least * least);
        let sector = u64::from(zone) * self.size + place;
        Step::Issue(moved(request, Extent { sector, sectors: sectors as u32 }))
    }

    /// The nearest other zone with `least` sectors of data; of a sequential job the next one in the pass.
    fn with_data(&self, zones: &JobZones, zone: u32, least: u64) -> Option<u32> {
        let has_data = |zone: &u32| self.written[*zone as usize] >= least;
        let count = zones.zones.len() as u32;
        if !zones.random && !zones.endless {
            return (zone + 1..zones.zones.end).find(has_data);
        }
        if !zones.random {
            let next = |turn: u32| zones.zones.start + (zone - zones.zones.start + turn) % count;
            return (1..=count).map(next).find(has_data);
        }
        let apart = |apart: u32| [zone.checked_add(apart), zone.checked_sub(apart)].into_iter().flatten();
        (1..count).flat_map(apart).filter(|zone| zones.zones.contains(zone)).find(has_data)
    }

    fn trim(&mut self, zones: &JobZones, request: Request, busy: bool) -> Step {
        let Some((asked, _)) = self.asked(zones, request.command.extent, RequestKind::Trim) else {
            return Step::EndPass;
        };
        let found = if zones.random && self.written[asked as usize] == 0 {
            self.with_data(zones, asked, 1)
        } else {
            Some(asked)
        };
        let Some(zone) = found else { return Step::End };
        if busy {
            return Step::Wait;
        }
        self.written[zone as usize] = 0;
        self.targets.retain(|&(other, _)| other != zone);
        Step::Issue(self.managed(zone, request, ZoneAction::None))
    }

    /// The reset of `zone`, or another action, in place of `request`.
    fn managed(&self, zone: u32, request: Request, action: ZoneAction) -> Request {
        let extent = Extent { sector: u64::from(zone) * self.size, sectors: self.size as u32 };
        let command = Command::new(RequestKind::Trim, extent).with(request.command.directives).on_zone(action);
        Request { command, ..request }
    }
}

fn moved(request: Request, extent: Extent) -> Request {
    Request { command: Command { extent, ..request.command }, ..request }
}

#[cfg(test)]
mod tests;
