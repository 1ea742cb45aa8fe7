//! Read-ahead: the controller detects sequential reads, and reads the next pages of such a stream before the host
//! requests them.
//!
//! A read that begins at the end of an earlier one continues its stream. From the second read on, the drive reads
//! [`Settings::pages`] pages ahead, page by page and through the layer, under their own cause. A later host read of
//! such a page is a hit: the data is ready when the page has been read, and crosses the host link as usual. A page is
//! dropped when its stream has passed; writes and trims drop changed subpages. If there are too many streams, the one
//! idle for longest ends. The buffer is memory of the controller, whose peak is [`ReadAheadFigures::pages_peak`].
//!
//! A drive with a file system reads ahead above that file system, in the addresses of the host and up to the end of the
//! file ([`Ftl::file_end`](palimpsest_ftl_api::Ftl::file_end)), because the next page of a file may be on any channel.
//! The file system's own reads, of collection and metadata, do not read ahead.
//!
//! Ignored: backward and strided streams, a depth that grows with the stream, and less read-ahead on busy dies.

use super::Drive;
use crate::settings::ReadAhead as Settings;
use palimpsest_flash::command::Lifetime;
use palimpsest_flash::geometry::{Extent, RequestKind};
use palimpsest_flash::nand::Flash;
use palimpsest_flash::nand::data::Data;
use palimpsest_ftl_api::plan::inner::Inner;
use palimpsest_ftl_api::plan::{Cause, CheckpointIo, FileSystemIo, Gate, Io};
use std::collections::VecDeque;
use std::ops::Range;

/// Results of read-ahead since it was enabled, in subpages unless stated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadAheadFigures {
    /// Read ahead.
    pub read: u64,
    /// Served from the buffer.
    pub hit: u64,
    /// Read ahead, and dropped before a request read them.
    pub wasted: u64,
    /// Largest number of pages in the buffer.
    pub pages_peak: u64,
}

/// A layer's read of an extent.
type ReadLayer<'a> = &'a mut dyn FnMut(&mut Io, Extent) -> Flash<()>;

/// A page, or the rest of one, in the buffer.
struct Held {
    /// Logical subpages of the page.
    subpages: Range<u32>,
    /// Closes when the page has been read.
    gate: Gate,
    /// Contents, if the run models them.
    contents: Vec<Data>,
    /// Bit masks from the first subpage on: still valid, and requested by the host.
    has: u64,
    used: u64,
}

impl Held {
    fn bit(&self, lsn: u32) -> u64 {
        1 << (lsn - self.subpages.start)
    }

    fn holds(&self, lsn: u32) -> bool {
        self.subpages.contains(&lsn) && self.has & self.bit(lsn) != 0
    }

    /// The subpages held without a gap from `first`, which must be held, to `end`.
    fn wanted(&self, first: u32, end: u32) -> Range<u32> {
        first..(first + 1..end).find(|&lsn| !self.holds(lsn)).unwrap_or(end)
    }
}

/// A stream of sequential reads.
#[derive(Default)]
struct Stream {
    /// The sector expected next.
    next: u64,
    /// End of the subpages read ahead.
    ahead: u32,
    /// Number of the last request.
    used: u64,
    held: VecDeque<Held>,
}

/// The streams of a drive, with their buffered pages.
pub struct Streams {
    settings: Settings,
    /// Logical subpages of the drive, and subpages of a page.
    logical: u32,
    width: u32,
    streams: Vec<Stream>,
    requests: u64,
    pages: u64,
    figures: ReadAheadFigures,
    crossings: Vec<(Gate, Gate, u64)>,
}

/// First subpage of `extent`, and the one after the last.
fn span(io: &Io, extent: Extent) -> (u32, u32) {
    let per_subpage = u64::from(io.host.sectors_per_subpage());
    ((extent.sector / per_subpage) as u32, extent.end().div_ceil(per_subpage) as u32)
}

/// Reads the subpages `missing` of `extent` from the layer.
fn read_missing(io: &mut Io, extent: Extent, missing: Range<u32>, layer: ReadLayer<'_>) -> Flash<()> {
    if missing.is_empty() {
        return Ok(());
    }
    let per_subpage = u64::from(io.host.sectors_per_subpage());
    let first = (u64::from(missing.start) * per_subpage).max(extent.sector);
    let end = (u64::from(missing.end) * per_subpage).min(extent.end());
    layer(io, Extent { sector: first, sectors: (end - first) as u32 })
}

impl Streams {
    fn new(settings: Settings, logical: u32, width: u32) -> Self {
        let (streams, figures) = (Vec::new(), ReadAheadFigures::default());
        Streams { settings, logical, width, streams, requests: 0, pages: 0, figures, crossings: Vec::new() }
    }

    /// The buffered page that holds `lsn`.
    fn find(&mut self, lsn: u32) -> Option<&mut Held> {
        let mut held = self.streams.iter_mut().flat_map(|stream| &mut stream.held);
        held.find(|held| held.holds(lsn))
    }

    /// Releases a page and counts unused subpages as wasted.
    fn drop_page(&mut self, io: &mut Io, held: Held) {
        self.pages -= 1;
        self.figures.wasted += u64::from((held.has & !held.used).count_ones());
        held.contents.into_iter().for_each(|data| io.unpin(data));
    }

    fn drop_pages(&mut self, io: &mut Io, stream: usize, count: usize) {
        for _ in 0..count {
            let held = self.streams[stream].held.pop_front();
            self.drop_page(io, held.expect("as many as are counted"));
        }
    }

    /// The end of the subpages to read ahead after `end`, if their stream continues.
    fn reach(&self, end: u32) -> u32 {
        (end.next_multiple_of(self.width) + self.settings.pages * self.width).min(self.logical)
    }

    /// Advances the stream that `extent` continues. Returns the stream and the subpages to read ahead.
    fn follow(&mut self, io: &mut Io, extent: Extent, until: u32) -> Option<(usize, Range<u32>)> {
        self.requests += 1;
        let Some(index) = self.streams.iter().position(|stream| stream.next == extent.sector) else {
            self.begin(io, extent.end());
            return None;
        };
        let per_subpage = u64::from(io.host.sectors_per_subpage());
        let stream = &mut self.streams[index];
        (stream.next, stream.used) = (extent.end(), self.requests);
        let is_behind = |held: &&Held| u64::from(held.subpages.end) * per_subpage <= extent.end();
        let passed = stream.held.iter().take_while(is_behind).count();
        self.drop_pages(io, index, passed);
        let end = extent.end().div_ceil(per_subpage) as u32;
        let from = self.streams[index].ahead.max(end);
        (from < until).then_some((index, from..until))
    }

    /// Begins a stream that expects sector `next`, in place of the one idle for longest if there are too many.
    fn begin(&mut self, io: &mut Io, next: u64) {
        let used = self.requests;
        if self.streams.len() < self.settings.streams as usize {
            self.streams.push(Stream { next, ahead: 0, used, held: VecDeque::new() });
            return;
        }
        let oldest =
            self.streams.iter().enumerate().min_by_key(|(_, stream)| stream.used).expect("there is a stream").0;
        self.drop_pages(io, oldest, self.streams[oldest].held.len());
        let stream = &mut self.streams[oldest];
        (stream.next, stream.ahead, stream.used) = (next, 0, used);
    }

    /// Serves the subpages `wanted` from the page that holds the first. If a host reads them, they cross the host link
    /// once they are read, with as many bytes as from flash.
    fn deliver_held(&mut self, io: &mut Io, wanted: Range<u32>) {
        let count = wanted.end - wanted.start;
        let Some(held) = self.find(wanted.start) else { return };
        io.count_buffered(count);
        for lsn in wanted {
            if let Some(&data) = held.contents.get((lsn - held.subpages.start) as usize) {
                io.deliver(lsn, data);
            }
        }
        let ready = io.all_of(&[held.gate, io.arrival()]);
        if !io.is_open(ready) {
            return;
        }
        let request = io.request();
        if !io.present.is_from_host(Cause::Host) {
            return io.link(ready, request);
        }
        let subpage_bytes = u64::from(io.geometry().subpage_bytes);
        let bytes = (u64::from(count) * subpage_bytes).min(io.present.link_left);
        io.present.link_left -= bytes;
        self.crossings.push((ready, request, bytes));
    }

    /// Reads the subpages `range` ahead for `stream`, page by page.
    fn read_pages(&mut self, io: &mut Io, stream: usize, range: Range<u32>, layer: ReadLayer<'_>) -> Flash<()> {
        let per_subpage = io.host.sectors_per_subpage();
        let mut first = range.start;
        self.streams[stream].ahead = range.end;
        while first < range.end {
            let end = (first + 1).next_multiple_of(self.width).min(range.end);
            let gate = io.gate();
            let inner = Inner { cause: Cause::ReadAhead, after: Gate::NONE, signal: gate, lifetime: Lifetime::Unknown };
            let extent =
                Extent { sector: u64::from(first) * u64::from(per_subpage), sectors: (end - first) * per_subpage };
            let (mut contents, before) = (Vec::new(), io.counters.clone());
            io.serve_inner_read(inner, &mut contents, |io| layer(io, extent))?;
            let gate = io.used(gate);
            let counters = &mut io.counters;
            let unwritten = counters.unwritten_subpages - before.unwritten_subpages;
            let lost = counters.lost != before.lost;
            // Reads that needed no flash are not the host's, so their counts are restored.
            counters.unwritten_subpages = before.unwritten_subpages;
            counters.memory_reads[Cause::Host as usize] = before.memory_reads[Cause::Host as usize];
            // Lost data is not kept, because the host's own read must report the loss. Unwritten pages are not kept
            // either.
            if !lost && unwritten < u64::from(end - first) {
                contents.iter().for_each(|&data| io.pin(data));
                let has = u64::MAX >> (64 - (end - first));
                self.streams[stream].held.push_back(Held { subpages: first..end, gate, contents, has, used: 0 });
                self.pages += 1;
                self.figures.read += u64::from(end - first);
                self.figures.pages_peak = self.figures.pages_peak.max(self.pages);
            }
            first = end;
        }
        Ok(())
    }

    /// Serves the read of `extent` from the buffered pages, and missing parts by `layer`.
    fn read_held(&mut self, io: &mut Io, extent: Extent, layer: ReadLayer<'_>) -> Flash<()> {
        let (first, end) = span(io, extent);
        let (mut missing, mut lsn) = (first, first);
        while lsn < end {
            let Some(held) = self.find(lsn) else {
                lsn += 1;
                continue;
            };
            let wanted = held.wanted(lsn, end);
            held.used |= wanted.clone().fold(0, |used, lsn| used | held.bit(lsn));
            self.figures.hit += u64::from(wanted.end - lsn);
            read_missing(io, extent, missing..lsn, layer)?;
            self.deliver_held(io, wanted.clone());
            (missing, lsn) = (wanted.end, wanted.end);
        }
        read_missing(io, extent, missing..end, layer)
    }
}

impl Streams {
    /// Serves the read of `extent` from the buffer, and missing parts by `layer`. Reads ahead to `until`.
    fn read(&mut self, io: &mut Io, extent: Extent, until: u32, layer: ReadLayer<'_>) -> Flash<()> {
        if self.pages == 0 {
            layer(io, extent)?
        } else {
            self.read_held(io, extent, layer)?
        }
        let Some((stream, range)) = self.follow(io, extent, until) else { return Ok(()) };
        self.read_pages(io, stream, range, layer)
    }

    /// Drops the logical subpages from `first` to `end`, which change.
    fn forget(&mut self, io: &mut Io, first: u32, end: u32) {
        if self.pages == 0 {
            return;
        }
        for index in 0..self.streams.len() {
            for held in &mut self.streams[index].held {
                for lsn in first.max(held.subpages.start)..end.min(held.subpages.end) {
                    let bit = held.bit(lsn);
                    self.figures.wasted += u64::from(held.has & !held.used & bit != 0);
                    held.has &= !bit;
                }
            }
            while let Some(at) = self.streams[index].held.iter().position(|held| held.has == 0) {
                let held = self.streams[index].held.remove(at).expect("it was found");
                self.drop_page(io, held);
            }
        }
    }

    /// Empties the buffer and ends all streams.
    fn clear(&mut self, io: &mut Io) {
        for index in 0..self.streams.len() {
            self.drop_pages(io, index, self.streams[index].held.len());
        }
        self.streams.clear();
        self.crossings.clear();
    }
}

impl Drive {
    /// Enables read-ahead by `settings` on a drive of `logical` subpages.
    pub fn read_ahead(&mut self, settings: Settings, logical: u64) {
        let width = self.io.geometry().subpages_per_page;
        self.ahead = (settings.pages > 0).then(|| Box::new(Streams::new(settings, logical as u32, width)));
    }

    /// Results of read-ahead; `None` without read-ahead.
    pub fn read_ahead_figures(&self) -> Option<ReadAheadFigures> {
        self.ahead.as_ref().map(|ahead| ahead.figures)
    }

    #[inline]
    pub(super) fn serve(&mut self, kind: RequestKind, extent: Extent) -> Flash<()> {
        if self.io.checkpoint_due() && kind == RequestKind::Write {
            self.checkpoint()?;
        }
        if self.surface.is_zoned() {
            return self.serve_zoned(kind, extent);
        }
        if self.ahead.is_some() { self.serve_ahead(kind, extent) } else { self.serve_layer(kind, extent) }
    }

    /// Serves a request on a drive with read-ahead.
    #[cold]
    #[inline(never)]
    pub(super) fn serve_ahead(&mut self, kind: RequestKind, extent: Extent) -> Flash<()> {
        let Drive { io, ftl, ahead: Some(ahead), .. } = self else { return self.serve_layer(kind, extent) };
        let (first, end) = span(io, extent);
        match kind {
            RequestKind::Read => {
                let until = ftl.file_end(end, ahead.reach(end));
                ahead.read(io, extent, until, &mut |io, extent| ftl.read(io, extent))?;
            }
            RequestKind::Flush => self.serve_layer(kind, extent)?,
            RequestKind::Write | RequestKind::Trim => {
                ahead.forget(io, first, end);
                self.serve_layer(kind, extent)?;
            }
        }
        let crossings = self.ahead.as_mut().map(|ahead| std::mem::take(&mut ahead.crossings));
        for (ready, request, bytes) in crossings.unwrap_or_default() {
            self.engine.cross_after(&mut self.io, ready, request, bytes);
        }
        Ok(())
    }

    /// Empties the buffer and ends all streams after a power cut.
    pub(super) fn lose_streams(&mut self) {
        if let Some(ahead) = &mut self.ahead {
            ahead.clear(&mut self.io);
        }
    }
}

#[cfg(test)]
mod tests;
