//! The host's own record of its data, against which every read is verified.
//!
//! The shadow stores the last content of each logical subpage, merged by the same rule as
//! [`palimpsest_ftl_api::plan::port`] but from the shadow's own earlier content. A layer that loses, mixes up or does
//! not read data therefore fails. For bytes the shadow stores a fingerprint of 32 bits per sector.
//!
//! After a power cut a subpage may also hold an earlier version whose successor was not durable, or the version of the
//! interrupted request. A subpage must never hold a version older than the last durable one. A trim is a version of
//! zeros, which the next flush makes durable. The first read decides between the versions; later reads must agree. In a
//! timed run a cut interrupts many requests, and a change is durable only when a completed request implies it. Ignored:
//! one in 2^32 wrong sectors with an equal fingerprint.

use crate::drive::{Command, Verifier};
use crate::fingerprint::{fingerprint, fingerprints};
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::geometry::{Extent, RequestKind};
use palimpsest_flash::nand::data::buffers::slabs::Loan;
use palimpsest_flash::nand::data::{Buffers, Data, Payload};
use palimpsest_flash::prefetch::prefetch;
use palimpsest_flash::units::SECTOR_BYTES;
use palimpsest_ftl_api::plan::Io;
use palimpsest_ftl_api::plan::port::{HostPort, Piece, pieces};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Largest number of loans for a read, because lent slabs cannot be written until the read is sent.
const MOST_LOANS: usize = 4;

/// The host's record of its data.
pub struct Shadow {
    payload: Payload,
    per_subpage: u32,
    tags: Vec<u64>,
    /// Fingerprint of each sector, if contents are bytes.
    sectors: Vec<u32>,
    /// True if writes are durable when served; `None` unless a power cut is scheduled.
    cut_ahead: Option<bool>,
    /// True if more cuts may follow the first.
    again: bool,
    /// True if operations are timed, so that a change is durable only after [`Self::settle_durable`].
    timed: bool,
    /// Versions of each subpage that a cut may restore, each with the change that replaced it, the oldest first.
    earlier: BTreeMap<u32, Vec<(Content, Change)>>,
    /// After a power cut: the other versions that each subpage may hold, the newest first, each with the acknowledged
    /// write that would then be lost.
    doubt: BTreeMap<u32, Vec<(Content, Option<u64>)>>,
    lost: Lost,
    /// Uncorrectable subpages, counted at each delivery.
    pub unreadable: u64,
    /// True if unknown contents are learned from reads. Stored fingerprints are then one more, and 0 means unknown.
    learns: bool,
}

// States exist only where contents are no bytes and no power cut is scheduled.
palimpsest_flash::state!(Shadow { tags, unreadable } built {
    payload, per_subpage, sectors, cut_ahead, again, timed, earlier, doubt, lost, learns
});

/// Acknowledged but unflushed data that power cuts lost, as far as reads have found it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lost {
    /// Numbers of the writes that are lost, in whole or in part.
    pub writes: BTreeSet<u64>,
    /// Subpages that came back with older data, over all cuts.
    pub subpages: u64,
}

/// The change that replaced a content.
#[derive(Clone, Copy)]
struct Change {
    /// Number of the change.
    number: u64,
    /// True for a trim, which only a flush makes durable.
    trim: bool,
}

/// Content of a subpage.
#[derive(Clone, PartialEq, Eq)]
enum Content {
    Tag(u64),
    /// Fingerprints of the sectors.
    Bytes(Box<[u32]>),
}

/// Drops the versions before the last change that `is_durable`.
fn settle(versions: &mut Vec<(Content, Change)>, is_durable: impl Fn(&Change) -> bool) {
    let settled = versions.iter().rposition(|(_, by)| is_durable(by)).map_or(0, |last| last + 1);
    versions.drain(..settled);
}

impl Verifier for Shadow {
    fn served(&mut self, io: &mut Io, command: Command) -> Result<()> {
        match command.kind {
            RequestKind::Write => {
                self.write(&io.host, command.extent);
                if command.directives.fua && !self.timed {
                    self.settle_durable(Some(command.extent), u64::MAX);
                }
            }
            RequestKind::Trim => self.trim(&io.host, command.extent),
            RequestKind::Flush => self.flush(),
            RequestKind::Read => {
                let mut delivered = io.host.take_delivered();
                self.verify(command.extent, &mut delivered, io.buffers(), None)?;
                io.host.reuse(delivered);
            }
        }
        Ok(())
    }

    fn filled(&mut self, port: &HostPort, first: u32, writes: u32, width: u32) {
        for (index, tag) in (0..writes * width).zip(self.tags.iter_mut().skip(first as usize)) {
            *tag = port.tag_of(first + index, port.writes() + 1 - u64::from(writes - index / width));
        }
    }

    fn power_failed(&mut self, io: &mut Io, command: Command) {
        let during = |kind: RequestKind| (command.kind == kind).then_some(command.extent);
        self.interrupted(&io.host, during(RequestKind::Write), during(RequestKind::Trim));
    }

    fn durable(&mut self, extent: Option<Extent>, change: u64) {
        self.settle_durable(extent, change);
    }

    fn trims_durable(&mut self, change: u64) {
        self.settle_all(|by| by.trim && by.number <= change);
    }

    fn power_lost(&mut self, unanswered: &[u64]) {
        self.lose_power(unanswered);
    }
}

impl Shadow {
    /// A record of `subpages` logical subpages of `subpage_bytes` bytes, all zeros.
    pub fn new(payload: Payload, subpages: u64, subpage_bytes: u32) -> Self {
        let sized = |wanted: bool| if wanted { subpages as usize } else { 0 };
        let per_subpage = subpage_bytes / SECTOR_BYTES as u32;
        Shadow {
            payload,
            per_subpage,
            tags: vec![0; sized(payload == Payload::Tag)],
            sectors: vec![0; sized(payload == Payload::Bytes) * per_subpage as usize],
            cut_ahead: None,
            again: false,
            timed: false,
            earlier: BTreeMap::new(),
            doubt: BTreeMap::new(),
            lost: Lost::default(),
            unreadable: 0,
            learns: false,
        }
    }

    /// Prefetches the data against which a request to subpage `lsn` will be verified.
    #[inline]
    pub fn expect(&self, lsn: u32) {
        match self.payload {
            Payload::None => {}
            Payload::Tag => prefetch(&self.tags, lsn as usize),
            Payload::Bytes => prefetch(&self.sectors, self.sectors_of(lsn).start),
        }
    }

    /// Data that power cuts lost so far.
    pub fn lost(&self) -> &Lost {
        &self.lost
    }

    /// Prepares for a power cut: records contents that the cut may restore. `durable`: a served write cannot be lost.
    pub fn expect_power_cut(&mut self, durable: bool) {
        self.cut_ahead = Some(durable);
    }

    /// As [`Self::expect_power_cut`], for many cuts. The caller must read everything back after each cut.
    pub fn expect_power_cuts(&mut self, durable: bool) {
        (self.cut_ahead, self.again) = (Some(durable), true);
    }

    /// Starts timing, when everything is programmed. From now on changes are durable only after
    /// [`Self::settle_durable`].
    pub fn start_timing(&mut self) {
        self.settle_durable(None, u64::MAX);
        self.timed = true;
    }

    /// Declares changes of `extent` (everywhere, if `None`) up to number `change` durable.
    pub fn settle_durable(&mut self, extent: Option<Extent>, change: u64) {
        let Some(extent) = extent else { return self.settle_all(|by| by.number <= change) };
        for piece in pieces(extent, self.per_subpage) {
            if let Some(versions) = self.earlier.get_mut(&piece.lsn) {
                settle(versions, |by| by.number <= change);
            }
        }
    }

    fn settle_all(&mut self, is_durable: impl Fn(&Change) -> bool) {
        self.earlier.retain(|_, versions| {
            settle(versions, &is_durable);
            !versions.is_empty()
        });
    }

    /// Declares all changes durable after a flush of the host.
    pub fn flush(&mut self) {
        if !self.timed {
            self.settle_durable(None, u64::MAX);
        }
    }

    /// Handles a power cut in a timed run; writes with the numbers `unanswered` were not acknowledged.
    pub fn lose_power(&mut self, unanswered: &[u64]) {
        self.doubt_earlier(|by| (!by.trim && !unanswered.contains(&by.number)).then_some(by.number));
    }

    /// Allows each subpage to hold an earlier version from now on; `lost` names the acknowledged write that would be
    /// lost.
    fn doubt_earlier(&mut self, lost: impl Fn(Change) -> Option<u64>) {
        for (lsn, versions) in std::mem::take(&mut self.earlier) {
            let back = versions.into_iter().rev().map(|(content, by)| (content, lost(by)));
            self.doubt.entry(lsn).or_default().extend(back);
        }
        if !self.again {
            self.cut_ahead = None;
        }
    }

    /// Handles a power cut while the host wrote or trimmed an extent, or during another request (both `None`).
    pub fn interrupted(&mut self, port: &HostPort, written: Option<Extent>, trimmed: Option<Extent>) {
        if self.payload == Payload::None {
            return;
        }
        self.doubt_earlier(|by| (!by.trim).then_some(by.number));
        for piece in trimmed.into_iter().flat_map(|extent| pieces(extent, self.per_subpage)) {
            let nothing = self.nothing();
            self.doubt.entry(piece.lsn).or_default().insert(0, (nothing, None));
        }
        let per_subpage = self.per_subpage;
        for piece in written.into_iter().flat_map(|extent| pieces(extent, per_subpage)) {
            let new = self.overwritten(port, piece, &self.content(piece.lsn));
            self.doubt.entry(piece.lsn).or_default().insert(0, (new, None));
        }
    }

    fn content(&self, lsn: u32) -> Content {
        match self.payload {
            Payload::Tag => Content::Tag(self.tags[lsn as usize]),
            _ => Content::Bytes(self.sectors[self.sectors_of(lsn)].into()),
        }
    }

    /// Zeros.
    fn nothing(&self) -> Content {
        match self.payload {
            Payload::Tag => Content::Tag(0),
            _ => Content::Bytes(vec![0; self.per_subpage as usize].into()),
        }
    }

    /// Indices of the sectors of `lsn`.
    #[inline]
    fn sectors_of(&self, lsn: u32) -> Range<usize> {
        let per_subpage = self.per_subpage as usize;
        lsn as usize * per_subpage..(lsn as usize + 1) * per_subpage
    }

    /// The content after the present write of `port` puts `piece` over `old`.
    fn overwritten(&self, port: &HostPort, piece: Piece, old: &Content) -> Content {
        match old {
            Content::Tag(tag) => Content::Tag(port.written_tag(piece, *tag)),
            Content::Bytes(sectors) => {
                let mut sectors = sectors.clone();
                put(port, piece, &mut sectors, self.learns);
                Content::Bytes(sectors)
            }
        }
    }

    /// Records the content of `lsn`, which a cut may restore, before a change.
    #[cold]
    fn remember(&mut self, port: &HostPort, lsn: u32, trim: bool) {
        let (now, durable) = (self.content(lsn), self.cut_ahead == Some(true) && !self.timed);
        if durable && !trim {
            self.earlier.remove(&lsn);
        } else {
            self.earlier.entry(lsn).or_default().push((now, Change { number: port.changes(), trim }));
        }
    }

    /// Applies the present write of `port` to the other versions that the subpage of `piece` may hold.
    #[cold]
    fn write_doubtful(&mut self, port: &HostPort, piece: Piece) {
        let Some(contents) = self.doubt.remove(&piece.lsn) else { return };
        if piece.sectors < self.per_subpage {
            let changed = contents.iter().map(|(old, by)| (self.overwritten(port, piece, old), *by)).collect();
            self.doubt.insert(piece.lsn, changed);
        }
    }

    /// Records a write of `extent`; `port` has the data.
    pub fn write(&mut self, port: &HostPort, extent: Extent) {
        if self.cut_ahead.is_some() {
            pieces(extent, self.per_subpage).for_each(|piece| self.remember(port, piece.lsn, false));
        }
        if !self.doubt.is_empty() {
            pieces(extent, self.per_subpage).for_each(|piece| self.write_doubtful(port, piece));
        }
        match self.payload {
            Payload::None => {}
            Payload::Tag => {
                for piece in pieces(extent, self.per_subpage) {
                    let tag = &mut self.tags[piece.lsn as usize];
                    *tag = port.written_tag(piece, *tag);
                }
            }
            Payload::Bytes => {
                for piece in pieces(extent, self.per_subpage) {
                    let sectors = self.sectors_of(piece.lsn);
                    put(port, piece, &mut self.sectors[sectors], self.learns);
                }
            }
        }
    }

    /// Records a trim of whole subpages.
    pub fn trim(&mut self, port: &HostPort, extent: Extent) {
        for piece in pieces(extent, self.per_subpage) {
            if self.cut_ahead.is_some() {
                self.remember(port, piece.lsn, true);
            }
            self.doubt.remove(&piece.lsn);
            match self.payload {
                Payload::None => return,
                Payload::Tag => self.tags[piece.lsn as usize] = 0,
                Payload::Bytes => self.zero(piece.lsn),
            }
        }
    }

    fn zero(&mut self, lsn: u32) {
        let sectors = self.sectors_of(lsn);
        self.sectors[sectors].fill(self.learns.into());
    }

    /// Verifies a read of `extent`: `delivered` must hold every subpage once, with the content that the host wrote.
    /// Sorts `delivered`, and appends the bytes of `extent` to `into`; bytes of lost subpages are undefined.
    ///
    /// # Errors
    /// [`Error::Rule`] with the first wrong subpage.
    pub fn verify(
        &mut self,
        extent: Extent,
        delivered: &mut [(u32, Data)],
        buffers: &Buffers,
        mut into: Option<&mut Vec<u8>>,
    ) -> Result<()> {
        if self.payload == Payload::None {
            return Ok(());
        }
        into.iter_mut().for_each(|into| into.reserve(extent.sectors as usize * SECTOR_BYTES as usize));
        if delivered.len() > 1 {
            delivered.sort_unstable_by_key(|&(lsn, _)| lsn);
        }
        let wanted = || pieces(extent, self.per_subpage).map(|piece| piece.lsn);
        let got = || delivered.iter().map(|&(lsn, _)| lsn);
        if !wanted().eq(got()) {
            let (wanted, got): (Vec<u32>, Vec<u32>) = (wanted().collect(), got().collect());
            return Err(Error::Rule(format!("a read of logical subpages {wanted:?} delivered {got:?}")));
        }
        let is_bytes = self.payload == Payload::Bytes;
        if is_bytes {
            delivered.iter().for_each(|&(_, data)| buffers.prefetch_place(data));
        }
        for (index, &(lsn, data)) in delivered.iter().enumerate() {
            if is_bytes && let Some(&(_, next)) = delivered.get(index + 1) {
                buffers.prefetch(next);
            }
            // First, because the fingerprint then finds the bytes in the cache.
            into.iter_mut().for_each(|into| self.append(extent, lsn, buffers.get(data), into));
            if data == Data::LOST {
                // The host gets an error, and must write the subpage again.
                self.unreadable += 1;
                continue;
            }
            if !self.doubt.is_empty()
                && let Some(contents) = self.doubt.remove(&lsn)
            {
                self.settle(lsn, &contents, data, buffers);
            }
            let right = match self.payload {
                Payload::Tag => data.value == self.tags[lsn as usize],
                _ if self.learns => self.learned(lsn, buffers.get(data)),
                _ => same(&self.sectors[self.sectors_of(lsn)], buffers.get(data)),
            };
            if !right {
                return Err(Error::Rule(format!(
                    "logical subpage {lsn} came back with data that the host did not put there"
                )));
            }
        }
        Ok(())
    }

    /// Learns unknown contents from reads and writes, for a drive that was served before. Power cuts are not supported
    /// then.
    pub fn learn(&mut self) {
        self.learns = true;
        self.sectors.fill(0);
    }

    /// Checks `bytes` of `lsn` against known fingerprints, and learns unknown ones.
    fn learned(&mut self, lsn: u32, bytes: Option<&[u8]>) -> bool {
        let sectors = self.sectors_of(lsn);
        let mut found = bytes.into_iter().flat_map(|bytes| bytes.chunks_exact(SECTOR_BYTES as usize));
        self.sectors[sectors].iter_mut().all(|known| {
            let is_there = found.next().map_or(0, fingerprint).wrapping_add(1);
            let right = [0, is_there].contains(known);
            *known = is_there;
            right
        })
    }

    /// Adopts the version among `contents` that a read found, if the present one was not found.
    #[cold]
    fn settle(&mut self, lsn: u32, contents: &[(Content, Option<u64>)], data: Data, buffers: &Buffers) {
        let is_found = |content: &Content| match content {
            Content::Tag(tag) => *tag == data.value,
            Content::Bytes(sectors) => same(sectors, buffers.get(data)),
        };
        if is_found(&self.content(lsn)) {
            return;
        }
        let Some(found) = contents.iter().position(|(content, _)| is_found(content)) else { return };
        match &contents[found].0 {
            Content::Tag(tag) => self.tags[lsn as usize] = *tag,
            Content::Bytes(sectors) => {
                let place = self.sectors_of(lsn);
                self.sectors[place].copy_from_slice(sectors);
            }
        }
        let lost: Vec<u64> = contents[..=found].iter().filter_map(|(_, by)| *by).collect();
        self.lost.subpages += u64::from(!lost.is_empty());
        self.lost.writes.extend(lost);
    }

    /// Byte range of subpage `lsn` within `extent`.
    fn part(&self, extent: Extent, lsn: u32) -> Range<usize> {
        let begin = u64::from(lsn) * u64::from(self.per_subpage);
        let place = |sector: u64| (sector - begin) as usize * SECTOR_BYTES as usize;
        place(extent.sector.max(begin))..place(extent.end().min(begin + u64::from(self.per_subpage)))
    }

    /// Appends the part of subpage `lsn` within `extent` to `into`; `None` means zeros.
    fn append(&self, extent: Extent, lsn: u32, bytes: Option<&[u8]>, into: &mut Vec<u8>) {
        let part = self.part(extent, lsn);
        match bytes {
            Some(subpage) => into.extend_from_slice(&subpage[part]),
            None => into.resize(into.len() + part.len(), 0),
        }
    }

    /// Returns the bytes of `extent`, for which `delivered` was verified: as loans, or as a copy appended to `into` if
    /// the bytes are in too many places or some have no memory.
    pub fn lend(
        &self,
        extent: Extent,
        delivered: &[(u32, Data)],
        buffers: &Buffers,
        (loans, into): (&mut Vec<Loan>, &mut Vec<u8>),
    ) {
        let before = loans.len();
        let lent = delivered.iter().all(|&(lsn, data)| {
            buffers.lend(data, self.part(extent, lsn), loans) && loans.len() <= before + MOST_LOANS
        });
        if !lent {
            loans.truncate(before);
            delivered.iter().for_each(|&(lsn, data)| self.append(extent, lsn, buffers.get(data), into));
        }
    }
}

/// Applies the present write of `port` to `piece` of a subpage with these fingerprints, each stored as one more if
/// `more`.
fn put(port: &HostPort, piece: Piece, sectors: &mut [u32], more: bool) {
    let mut places = sectors[piece.first as usize..].iter_mut();
    if let Some(found) = port.fingerprints(piece) {
        return places.zip(found).for_each(|(place, found)| *place = found.wrapping_add(more.into()));
    }
    port.each_sector(piece, |bytes| {
        *places.next().expect("a piece is within its subpage") = fingerprint(bytes).wrapping_add(more.into());
    });
}

/// True if a subpage with these fingerprints holds `bytes`; `None` means zeros.
fn same(sectors: &[u32], bytes: Option<&[u8]>) -> bool {
    match bytes {
        None => sectors.iter().all(|&sector| sector == 0),
        Some(bytes) => {
            let (mut known, mut right) = (sectors.iter(), true);
            fingerprints(bytes, |found| right &= known.next() == Some(&found));
            right
        }
    }
}

#[cfg(test)]
mod tests;
