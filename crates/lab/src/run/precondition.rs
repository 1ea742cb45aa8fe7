//! Preconditioning: brings a drive into a defined state before the measurement, at count fidelity, in bounded time.
//!
//! - `none`.
//! - `fill:90%` writes that share of the drive once, sequentially, a page of flash with each write, because no host
//!   fills a drive by fragments of pages. A unit of the map that is larger than a page is written whole.
//! - `random:2x` then overwrites the filled range with that many times its size, in units of the map at uniform random
//!   addresses; a drive with zones in random whole zones.
//! - `bs:64KiB` fills and overwrites with writes of that size instead, for layers that classify writes by their size. A
//!   fill has whole units of the map; overwrites are exact, and begin at multiples of the size.
//! - `steady` fills the whole drive and overwrites it at random until the write amplification of three consecutive
//!   windows of half a drive differs by less than 1 %, or 20 drives have been written.
//! - `layout` writes the files of a workload that has some (`nrfiles`, `filesize`), in their layout, or warms up the
//!   cache of an object workload.
//!
//! Above a file system each ends with a sync. Ignored: the time of preconditioning.

use super::session::AHEAD;
use super::{Fidelity, Options, Phase, Session};
use crate::config::Touched;
use crate::metrics::summary;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::geometry::{Extent, RequestKind};
use palimpsest_flash::nand::data::Payload;
use palimpsest_flash::rng::Rng;
use palimpsest_flash::units::SECTOR_BYTES;
use palimpsest_flash::units::parse::{format_bytes, parse_bytes};
use palimpsest_sim::drive::Command;
use palimpsest_workload::request::Source;
use std::ops::Range;

/// The preconditioning of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Precondition {
    /// Nothing: the drive is new.
    None,
    /// Fill a share of the drive, then overwrite it at random.
    Fill {
        /// Share of the logical space.
        share: f64,
        /// Random overwrites, in multiples of the filled range.
        random: f64,
        /// Bytes of a write of the fill and of the overwrites; 0: a page, then a unit of the map.
        write_bytes: u64,
    },
    /// Overwrite at random until the write amplification is steady.
    Steady,
    /// Write the files of the workload.
    Layout,
}

const EXPECTED: &str =
    "expected none, steady, layout or fill:PERCENT[,random:TIMESx][,bs:SIZE], such as fill:90%,random:2x";
/// Default size of writes that fill a file system: files are not laid out page by page.
const FILE_WRITE_BYTES: u64 = 1 << 20;
/// Largest write of a fill.
const MOST_WRITE_BYTES: u64 = 1 << 30;
/// Writes of a fill before the layer is asked again for a batch.
const WRITES_BETWEEN_RUNS: u64 = 64;
/// Windows of overwrites in one drive.
const WINDOWS_PER_DRIVE: u64 = 2;
const LEAST_WINDOWS: usize = 4;
const MOST_WINDOWS: usize = 40;
const STEADY_WITHIN: f64 = 0.01;

impl Precondition {
    /// Reads the notation above.
    ///
    /// # Errors
    /// [`Error::Input`] with the expected notation.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |what: String| Error::input(format!("--precondition {text}"), format!("{what}; {EXPECTED}"));
        match text.trim() {
            "none" => return Ok(Precondition::None),
            "steady" => return Ok(Precondition::Steady),
            "layout" => return Ok(Precondition::Layout),
            _ => {}
        }
        let (mut share, mut random, mut write_bytes) = (None, None, None);
        for part in text.split(',').map(str::trim) {
            let (name, value) = part.split_once(':').ok_or_else(|| wrong(format!("{part:?} has no value")))?;
            if name == "bs" {
                let bytes = parse_bytes(value).map_err(&wrong)?;
                let is_size = (1..=MOST_WRITE_BYTES).contains(&bytes) && bytes.is_multiple_of(SECTOR_BYTES);
                if !is_size || write_bytes.replace(bytes).is_some() {
                    let what = "is no size of writes (a multiple of 512B up to 1GiB), or the second one";
                    return Err(wrong(format!("{value:?} {what}")));
                }
                continue;
            }
            let (slot, unit) = match name {
                "fill" => (&mut share, '%'),
                "random" => (&mut random, 'x'),
                _ => return Err(wrong(format!("there is no {name:?}"))),
            };
            let number = value.strip_suffix(unit).and_then(|digits| digits.trim().parse::<f64>().ok());
            let number = number.filter(|number| number.is_finite() && *number >= 0.0);
            let number = number.ok_or_else(|| wrong(format!("{value:?} is not a number followed by {unit:?}")))?;
            if slot.replace(number).is_some() {
                return Err(wrong(format!("{name:?} is given twice")));
            }
        }
        let share = share.ok_or_else(|| wrong("what to fill is missing".into()))? / 100.0;
        if share <= 0.0 || share > 1.0 {
            return Err(wrong("a drive can be filled to more than 0 % and at most 100 %".into()));
        }
        let random = random.unwrap_or(0.0);
        if random > 100.0 {
            return Err(wrong("more than 100 overwrites of a drive change nothing".into()));
        }
        Ok(Precondition::Fill { share, random, write_bytes: write_bytes.unwrap_or(0) })
    }
}

impl Options {
    /// The use of a drive's tables by a run with `requests` requests; `None`: unknown.
    pub fn touches(&self, requests: Option<u64>) -> Touched {
        let payload = self.payload;
        let requests = match (self.requests, requests) {
            (Some(most), Some(all)) => Some(most.min(all)),
            (one, other) => one.or(other),
        };
        let verified = payload != Payload::None && self.fidelity == Fidelity::Timed;
        let touched = Touched { verified, ..Touched::all(payload) };
        match self.precondition {
            Precondition::None => Touched { filled: 0.0, times: 1.0, requests, ..touched },
            Precondition::Fill { share, random, .. } => {
                Touched { filled: share, times: 1.0 + random, requests, ..touched }
            }
            Precondition::Steady | Precondition::Layout => touched,
        }
    }
}

/// Preconditions the drive; returns the figures of the writes.
pub(super) fn precondition(
    session: &mut Session<'_>,
    source: &mut dyn Source,
    what: &Precondition,
) -> Result<summary::Precondition> {
    let mut done = summary::Precondition { spec: describe(what), ..Default::default() };
    match *what {
        Precondition::None => {}
        Precondition::Fill { share, random, write_bytes } => {
            let units = ((session.units() as f64 * share) as u64).max(1);
            let overwrites = (units as f64 * random) as u64;
            // Filling is much faster than overwriting, so each has its own rate and remaining time.
            session.expect(Phase::Precondition, units)?;
            fill(session, units, write_bytes)?;
            let writes = match write_bytes {
                bytes if bytes > 0 && session.drive.zones().is_none() => {
                    (overwrites * session.unit_bytes()).div_ceil(bytes)
                }
                _ => overwrites,
            };
            session.expect(Phase::Precondition, writes)?;
            let before = session.written();
            overwrite(session, units, overwrites, write_bytes)?;
            done.last_write_amplification = session.amplification_since(before);
        }
        Precondition::Steady => {
            let units = session.units();
            let window = (units / WINDOWS_PER_DRIVE).max(1);
            session.expect(Phase::Precondition, units)?;
            fill(session, units, 0)?;
            session.expect(Phase::Precondition, window * MOST_WINDOWS as u64)?;
            let steady = settle(session, units, window)?;
            (done.last_write_amplification, done.converged) = (Some(steady.0), Some(steady.1));
        }
        Precondition::Layout => lay_out(session, source)?,
    }
    if session.drive.surface.is_files() && *what != Precondition::None {
        // Otherwise the run would commit the files of the preconditioning.
        session.count(Command::FLUSH)?;
    }
    done.bytes_written = session.tally.precondition_bytes;
    Ok(done)
}

pub(super) fn describe(what: &Precondition) -> String {
    match what {
        Precondition::None => "none".into(),
        Precondition::Steady => "steady".into(),
        Precondition::Layout => "layout".into(),
        Precondition::Fill { share, random, write_bytes } => {
            let mut text = format!("fill:{}%", share * 100.0);
            if *random > 0.0 {
                text += &format!(",random:{random}x");
            }
            if *write_bytes > 0 {
                text += &format!(",bs:{}", format_bytes(*write_bytes));
            }
            text
        }
    }
}

/// Overwrites in windows until their write amplification is steady; returns the last one, and whether it is steady.
fn settle(session: &mut Session<'_>, units: u64, window: u64) -> Result<(f64, bool)> {
    let mut seen: Vec<f64> = Vec::new();
    while seen.len() < MOST_WINDOWS {
        let before = session.written();
        overwrite(session, units, window, 0)?;
        seen.push(session.amplification_since(before).unwrap_or(1.0));
        if let [.., a, b, c] = seen[..] {
            let close = |one: f64, two: f64| (one - two).abs() < STEADY_WITHIN * two;
            if seen.len() >= LEAST_WINDOWS && close(a, b) && close(b, c) && close(a, c) {
                return Ok((c, true));
            }
        }
    }
    Ok((seen.last().copied().unwrap_or(1.0), false))
}

/// Writes the files of the workload.
fn lay_out(session: &mut Session<'_>, source: &mut dyn Source) -> Result<()> {
    session.expect(Phase::Precondition, 0)?;
    let mut written = false;
    while let Some(request) = source.next_of_layout() {
        session.count_request(source, request)?;
        written = true;
    }
    expect_files(written, source)
}

/// Refuses `layout` for a workload without files.
pub(super) fn expect_files(has_any: bool, source: &dyn Source) -> Result<()> {
    if has_any || source.objects().is_some() {
        return Ok(());
    }
    let what = "the requests have no files to lay out (traces and programs do not give their sizes); expected a \
                workload with nrfiles or filesize, or fill:PERCENT";
    Err(Error::input("--precondition layout", what))
}

/// Writes `units` units of the new drive sequentially, as [`fill_range`]; of a drive with zones the capacity of each.
fn fill(session: &mut Session<'_>, units: u64, write_bytes: u64) -> Result<()> {
    let Some((size, capacity)) = session.drive.zones().map(|zones| (zones.size, zones.capacity)) else {
        return fill_range(session, 0..units, write_bytes);
    };
    let sectors = session.unit_bytes() / SECTOR_BYTES;
    for first in (0..units).step_by((size / sectors) as usize) {
        fill_range(session, first..units.min(first + capacity / sectors), write_bytes)?;
    }
    Ok(())
}

/// Writes a range of units sequentially, `write_bytes` at a time; 0: a page, or the default of file systems.
fn fill_range(session: &mut Session<'_>, range: Range<u64>, write_bytes: u64) -> Result<()> {
    let page_bytes = u64::from(session.config.part.page_bytes);
    let usual = if session.drive.surface.is_files() { FILE_WRITE_BYTES } else { page_bytes };
    let write_bytes = if write_bytes == 0 { usual } else { write_bytes };
    let at_a_time = (write_bytes / session.unit_bytes()).max(1);
    let by_pages = at_a_time == (page_bytes / session.unit_bytes()).max(1);
    let Range { start: mut first, end: units } = range;
    while first < units {
        if by_pages {
            first += session.fill(first, units - first)?;
        }
        // If the layer takes no batch, for example because it collects: some writes, then another attempt.
        let end = units.min(first + WRITES_BETWEEN_RUNS * at_a_time);
        let written = end - first;
        session.count_all(|session| {
            let count = at_a_time.min(end - first);
            let command = Command::new(RequestKind::Write, extent(session, first, count));
            first += count;
            (count > 0).then_some(command)
        })?;
        session.watch_many(written - written.div_ceil(at_a_time))?;
    }
    Ok(())
}

/// Overwrites the first `units` units at random, `times` units in all, by writes of `write_bytes`; 0: of a unit.
/// Addresses are drawn ahead, so that the layer can prefetch its tables.
fn overwrite(session: &mut Session<'_>, units: u64, times: u64, write_bytes: u64) -> Result<()> {
    const MASK: usize = AHEAD - 1;
    if session.drive.zones().is_some() {
        return rewrite_zones(session, units, times, write_bytes);
    }
    let unit = session.unit_bytes() / SECTOR_BYTES;
    let size = if write_bytes == 0 { unit } else { (write_bytes / SECTOR_BYTES).min(units * unit) };
    let places = units * unit / size;
    let times = (times * unit).div_ceil(size);
    let mut rng = Rng::new(session.seed(), 0x9e_c0 + session.written().0);
    let place = |number: u64| Extent { sector: number * size, sectors: size as u32 };
    let mut drawn = [0; AHEAD];
    let mut draw = |session: &Session<'_>| {
        let number = rng.below(places);
        session.foresee(place(number), false);
        number
    };
    let first = times.min(AHEAD as u64);
    for slot in &mut drawn[..first as usize] {
        *slot = draw(session);
    }
    let mut all = 0..times as usize;
    session.count_all(|session| {
        let done = all.next()?;
        let extent = place(drawn[done & MASK]);
        if done + AHEAD < times as usize {
            drawn[done & MASK] = draw(session);
        }
        session.foresee(place(drawn[(done + AHEAD / 2) & MASK]), true);
        Some(Command::new(RequestKind::Write, extent))
    })
}

/// Resets and rewrites random zones of the first `units` units, until `times` units have been written.
fn rewrite_zones(session: &mut Session<'_>, units: u64, times: u64, write_bytes: u64) -> Result<()> {
    let Some((size, capacity)) = session.drive.zones().map(|zones| (zones.size, zones.capacity)) else { return Ok(()) };
    let sectors = session.unit_bytes() / SECTOR_BYTES;
    let (zones, mut left) = (units.div_ceil(size / sectors), times as i64);
    let mut rng = Rng::new(session.seed(), 0x20_4e + session.written().0);
    while left > 0 {
        let sector = rng.below(zones) * size;
        session.count(Command::new(RequestKind::Trim, Extent { sector, sectors: size as u32 }))?;
        fill_range(session, sector / sectors..(sector + capacity) / sectors, write_bytes)?;
        left -= (capacity / sectors) as i64;
    }
    Ok(())
}

#[inline]
fn extent(session: &Session<'_>, first: u64, units: u64) -> Extent {
    let sectors = session.unit_bytes() / SECTOR_BYTES;
    Extent { sector: first * sectors, sectors: (units * sectors) as u32 }
}

#[cfg(test)]
mod tests;
