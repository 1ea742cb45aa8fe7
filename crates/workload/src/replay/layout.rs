//! Places volumes of a trace, or the used pieces, on one drive.
//!
//! Volumes apart follow each other in order of appearance. Each begins at a multiple of [`ALIGNED`] and ends with the
//! last request of the volume. Compaction reduces a volume to the pieces that reads or writes touch, in their order, so
//! that adjacent used pieces stay adjacent. A trim of pieces that nothing else touches is skipped.

use super::Reopen;
use crate::namespaces::{Namespaces, Room};
use crate::request::{Extent, Request, RequestKind, SECTOR_BYTES, Source, Survey, Volume};
use crate::volume_names::{Selection, VolumeNames};
use palimpsest_flash::error::{Error, Result};
use std::collections::{BTreeSet, HashMap};

/// Volumes begin at multiples of so many sectors.
const ALIGNED: u64 = (1 << 20) / SECTOR_BYTES;
/// Sectors of a piece of the footprint that a survey reports.
const SURVEYED: u64 = (1 << 20) / SECTOR_BYTES;
/// First sector beyond every valid address.
const SECTOR_LIMIT: u64 = (1 << 63) / SECTOR_BYTES;
const LISTED: usize = 8;

/// The volumes of a trace that are played, and their addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Volumes {
    /// Apart, if the streams of the format are volumes.
    #[default]
    OfFormat,
    /// Each stream is a volume with a separate address range.
    Apart,
    /// All share addresses.
    Overlaid,
    /// Only these, apart.
    Only(Selection),
}

impl Volumes {
    /// Reads `apart`, `overlaid`, `3,7` or `xvda1`.
    ///
    /// # Errors
    /// [`Error::Input`] with the expected notation.
    pub fn parse(text: &str) -> Result<Volumes> {
        match text.trim() {
            "apart" => Ok(Volumes::Apart),
            "overlaid" => Ok(Volumes::Overlaid),
            text => Selection::parse(text).map(Volumes::Only).ok_or_else(|| {
                let what = "expected apart, overlaid, or volumes such as 3,7 or xvda1 (`trace info` lists them)";
                Error::input(format!("--volumes {text}"), what)
            }),
        }
    }
}

/// The place of a volume.
struct Place {
    id: u32,
    /// First sector on the drive.
    sector: u64,
    /// Sectors up to the end; 0 if unknown.
    sectors: u64,
}

#[derive(Default)]
struct Found {
    id: u32,
    end: u64,
    /// Pieces that reads and writes touch, in order.
    pieces: Vec<u64>,
    /// The first so many are in order, each once.
    ordered: usize,
}

impl Found {
    fn touch(&mut self, pieces: std::ops::RangeInclusive<u64>) {
        for piece in pieces {
            if self.pieces.last() != Some(&piece) {
                self.pieces.push(piece);
            }
        }
        if self.pieces.len() > 2 * self.ordered + (1 << 16) {
            self.order();
        }
    }

    fn order(&mut self) {
        self.pieces.sort_unstable();
        self.pieces.dedup();
        self.ordered = self.pieces.len();
    }
}

/// The volumes of a trace and their places.
#[derive(Default)]
pub struct Layout {
    /// Streams are volumes.
    by_stream: bool,
    apart: bool,
    only: Option<Selection>,
    /// Sectors of a piece; 0: no compaction.
    piece: u64,
    namespaces: Namespaces,
    volumes: Vec<Place>,
    /// Pieces of each volume, or of all volumes if overlaid.
    pieces: Vec<Vec<u64>>,
    planned: bool,
    // Never iterated, because hash order must not affect a result.
    numbers: HashMap<u32, Option<u32>>,
    /// The stream of the last request, and the number of that volume if played.
    present: Option<(u32, Option<u32>)>,
    left_out: u64,
    others: BTreeSet<u32>,
    empty_trims: u64,
}

impl Layout {
    /// A layout on `namespaces` for a trace whose streams are volumes by default if `has_volumes`; `piece`: sectors of
    /// a compacted piece, or 0.
    pub fn new(volumes: &Volumes, has_volumes: bool, piece: u64, namespaces: Namespaces) -> Layout {
        let by_stream = match volumes {
            Volumes::OfFormat | Volumes::Overlaid => has_volumes,
            Volumes::Apart | Volumes::Only(_) => true,
        };
        Layout {
            by_stream,
            apart: by_stream && *volumes != Volumes::Overlaid,
            only: if let Volumes::Only(only) = volumes { Some(only.clone()) } else { None },
            piece,
            namespaces,
            ..Layout::default()
        }
    }

    /// True if requests have volumes.
    pub fn has_volumes(&self) -> bool {
        self.by_stream
    }

    /// True if some volumes are not played.
    pub fn drops_volumes(&self) -> bool {
        self.only.is_some()
    }

    /// The volumes so far, or all if their places are planned.
    pub fn volumes(&self, names: &VolumeNames) -> Vec<Volume> {
        let of = |&Place { id, sector, sectors }: &Place| Volume { id, name: names.name(id), sector, sectors };
        self.volumes.iter().map(of).collect()
    }

    /// Selects the volume of `stream`; false if that volume is not played.
    #[inline]
    pub fn turn_to(&mut self, stream: u32, reopen: Option<&Reopen>, source: &dyn Source) -> Result<bool> {
        if !self.by_stream {
            return Ok(true);
        }
        match self.present {
            Some((present, Some(_))) if present == stream => Ok(true),
            _ => self.find(stream, reopen, source),
        }
    }

    fn find(&mut self, stream: u32, reopen: Option<&Reopen>, source: &dyn Source) -> Result<bool> {
        let number = match self.numbers.get(&stream) {
            Some(&number) => number,
            None => self.add(stream, reopen, source)?,
        };
        self.present = Some((stream, number));
        self.left_out += u64::from(number.is_none());
        Ok(number.is_some())
    }

    /// The number of a new volume; `None` if not played.
    fn add(&mut self, id: u32, reopen: Option<&Reopen>, source: &dyn Source) -> Result<Option<u32>> {
        if self.only.as_ref().is_some_and(|only| !only.has(id)) {
            self.numbers.insert(id, None);
            self.others.insert(id);
            return Ok(None);
        }
        if self.apart && !self.planned && !self.volumes.is_empty() {
            self.plan(reopen, &source.place())?;
            return match self.numbers.get(&id) {
                Some(&number) => Ok(number),
                None => Err(changed(source)),
            };
        }
        if self.apart && self.planned {
            return Err(changed(source));
        }
        let number = self.volumes.len() as u32;
        self.volumes.push(Place { id, sector: 0, sectors: 0 });
        self.numbers.insert(id, Some(number));
        Ok(Some(number))
    }

    /// Reads the whole trace and assigns a place to every volume.
    pub fn plan(&mut self, reopen: Option<&Reopen>, place: &str) -> Result<()> {
        let Some(reopen) = reopen else {
            let what = if self.namespaces.are_apart() {
                "namespaces need a first reading of the trace, and a pipe can be read once; expected a file, or \
                 ssd.namespaces = none"
            } else if self.piece > 0 {
                "host.compact reads the trace twice, and a pipe can be read once; expected a file, or host.compact = 0B"
            } else {
                "the trace has several volumes, whose sizes need a first reading, and a pipe can be read once; \
                 expected a file, --volumes overlaid, or the number of one volume"
            };
            return Err(Error::input(place, what));
        };
        let found = self.scan(reopen()?, self.piece)?;
        self.planned = true;
        if self.apart {
            self.volumes = Vec::with_capacity(found.len());
        }
        let mut next = 0u64;
        for (tenant, each) in found.into_iter().enumerate() {
            let sectors = if self.piece > 0 { each.pieces.len() as u64 * self.piece } else { each.end };
            if self.namespaces.are_apart() {
                next = self.next_in_namespace(tenant, next, sectors, place)?;
            }
            if self.apart {
                self.numbers.insert(each.id, Some(self.volumes.len() as u32));
                self.volumes.push(Place { id: each.id, sector: next, sectors });
            }
            self.pieces.push(each.pieces);
            next = next.saturating_add(sectors.next_multiple_of(ALIGNED));
            if next > SECTOR_LIMIT {
                let compact = if self.piece > 0 { "" } else { " or host.compact = 1MiB" };
                let what =
                    format!("the volumes take more than 2^63 bytes together; expected --volumes overlaid{compact}");
                return Err(Error::input(place, what));
            }
        }
        Ok(())
    }

    /// The place of the volume at `tenant`, of `sectors` sectors, in the namespace of the volume; `next` is free if an
    /// earlier volume has the same namespace.
    fn next_in_namespace(&self, tenant: usize, next: u64, sectors: u64, place: &str) -> Result<u64> {
        let Room { first, bytes } = self.namespaces.of(tenant);
        let next = next.max(first.div_ceil(SECTOR_BYTES));
        let (end, needed) = ((first + bytes) / SECTOR_BYTES, next.saturating_add(sectors));
        if needed > end {
            let number = self.namespaces.number(tenant);
            let (has, needs) = (about(bytes), about(needed * SECTOR_BYTES - first));
            let what = format!("namespace {number} has {has}, and its volumes need {needs}; expected a larger share");
            return Err(Error::input(format!("ssd.namespaces, {place}"), what));
        }
        Ok(next)
    }

    /// All played volumes in order of appearance, or one if they share addresses. Ends at a malformed line without an
    /// error, because the run reports that line.
    fn scan(&self, mut source: Box<dyn Source>, piece: u64) -> Result<Vec<Found>> {
        let mut found: Vec<Found> = Vec::new();
        let mut numbers: HashMap<u32, usize> = HashMap::new();
        loop {
            let request = match source.next_request() {
                Ok(Some(request)) => request,
                Ok(None) | Err(Error::Input { .. }) => break,
                Err(error) => return Err(error),
            };
            if self.only.as_ref().is_some_and(|only| !only.has(request.owner())) {
                continue;
            }
            let id = if self.apart { request.owner() } else { 0 };
            let number = *numbers.entry(id).or_insert_with(|| {
                found.push(Found { id, ..Found::default() });
                found.len() - 1
            });
            let (each, end) = (&mut found[number], request.extent.end());
            each.end = each.end.max(end);
            if piece > 0 && matches!(request.kind, RequestKind::Read | RequestKind::Write) {
                each.touch(request.extent.sector / piece..=(end - 1) / piece);
            }
        }
        found.iter_mut().for_each(Found::order);
        Ok(found)
    }

    /// The demand of the whole trace; `None` if the trace cannot be read again.
    pub fn survey(&self, reopen: Option<&Reopen>) -> Result<Option<Survey>> {
        let Some(reopen) = reopen else { return Ok(None) };
        let found = self.scan(reopen()?, SURVEYED)?;
        let sum = |of: &dyn Fn(&Found) -> u64| found.iter().fold(0u64, |sum, each| sum.saturating_add(of(each)));
        let volumes = if self.apart { found.len() } else { 1 };
        let footprint_bytes = sum(&|each| each.pieces.len() as u64) * SURVEYED * SECTOR_BYTES;
        let end_bytes = match self.piece {
            0 => sum(&|each| each.end.next_multiple_of(ALIGNED)).saturating_mul(SECTOR_BYTES),
            piece => {
                let found = self.scan(reopen()?, piece)?;
                let sectors = |each: &Found| (each.pieces.len() as u64 * piece).next_multiple_of(ALIGNED);
                found.iter().map(sectors).sum::<u64>() * SECTOR_BYTES
            }
        };
        Ok(Some(Survey { volumes, end_bytes, footprint_bytes }))
    }

    /// Moves a request of the present volume to the place of the volume; false if no sector is left.
    #[inline]
    pub fn place(&mut self, request: &mut Request) -> bool {
        if !self.planned || request.kind == RequestKind::Flush { true } else { self.moved(request) }
    }

    fn moved(&mut self, request: &mut Request) -> bool {
        let number = self.present.filter(|_| self.apart).and_then(|(_, number)| number).unwrap_or(0) as usize;
        let base = if self.apart { self.volumes[number].sector } else { 0 };
        if self.piece > 0 {
            let (piece, pieces) = (self.piece, &self.pieces[number]);
            let last = request.extent.end() - 1;
            let begin = match pieces.binary_search(&(request.extent.sector / piece)) {
                Ok(at) => at as u64 * piece + request.extent.sector % piece,
                Err(at) => at as u64 * piece,
            };
            let end = match pieces.binary_search(&(last / piece)) {
                Ok(at) => at as u64 * piece + last % piece + 1,
                Err(at) => at as u64 * piece,
            };
            if begin >= end {
                self.empty_trims += 1;
                return false;
            }
            request.command.extent = Extent { sector: begin, sectors: (end - begin) as u32 };
        }
        request.command.extent.sector += base;
        true
    }

    /// Checks, at the end of the trace, that every volume of [`Volumes::Only`] was in the trace.
    ///
    /// # Errors
    /// [`Error::Input`] if one was not.
    pub fn expect_requests(&self, place: &str, names: &VolumeNames) -> Result<()> {
        let is_played = |id: u32| matches!(self.numbers.get(&id), Some(Some(_)));
        let Some(missing) = self.only.as_ref().and_then(|only| only.missing(is_played)) else { return Ok(()) };
        let known = self.volumes.iter().map(|volume| volume.id).chain(self.others.iter().copied());
        let mut listed: Vec<String> = known.take(LISTED).map(|id| names.name(id).to_string()).collect();
        let more = self.volumes.len() + self.others.len() > LISTED;
        listed.extend(more.then(|| "...".into()));
        let what = format!(
            "there is no volume {missing} in the trace; expected some of {}, or apart or overlaid",
            listed.join(", ")
        );
        Err(Error::input(format!("--volumes, {place}"), what))
    }

    /// Notes for the user.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let (count, end) = (self.volumes.len(), self.volumes.last().map_or(0, |last| last.sector + last.sectors));
        if self.apart && count > 1 {
            notes.push(format!(
                "the {count} volumes of the trace lie apart, in order of appearance, on {} (--volumes overlaid: they \
                 share addresses)",
                about(end * SECTOR_BYTES)
            ));
        } else if count > 1 {
            notes.push(format!("the {count} volumes of the trace share addresses (--volumes overlaid)"));
        }
        if self.only.is_some() {
            let (left, others) = (self.left_out, self.others.len());
            let plural = if others == 1 { "" } else { "s" };
            notes.push(format!("{left} requests of {others} other volume{plural} were skipped (--volumes)"));
        }
        if self.piece > 0 {
            let pieces: usize = self.pieces.iter().map(Vec::len).sum();
            notes.push(format!(
                "addresses are compacted: the {pieces} pieces of {} that the trace reads or writes are adjacent \
                 (host.compact)",
                about(self.piece * SECTOR_BYTES)
            ));
        }
        if self.empty_trims > 0 {
            notes.push(format!("{} trims of pieces that are never read or written were skipped", self.empty_trims));
        }
        notes
    }
}

#[cold]
fn changed(source: &dyn Source) -> Error {
    Error::input(source.place(), "the file changed between two readings; expected a file that does not change")
}

/// A size with three digits.
fn about(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1023.5 && unit + 1 < units.len() {
        (value, unit) = (value / 1024.0, unit + 1);
    }
    if value.fract() == 0.0 || value >= 99.95 {
        format!("{value:.0} {}", units[unit])
    } else {
        format!("{value:.1} {}", units[unit])
    }
}
