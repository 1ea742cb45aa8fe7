//! The controller's journal of trims: after a power cut, trimmed data stays trimmed although flash still holds copies
//! of it.
//!
//! A record stores, for a logical subpage, the number of the last flash operation before its trim. A power cut makes
//! every copy with this or a smaller program number void, because recovery finds data by the numbers in out-of-band
//! areas. A record is durable with the next flush, before the next program or erase, because a layer may then act on
//! the trim, and at once if a trim may drop acknowledged data from a buffer. Until then a power cut may bring back the
//! last durable version, and never an older one. Ignored: the flash pages, time and wear of the journal.

use super::{Flash, Nand, PADDING};
use std::collections::BTreeMap;
use std::ops::Range;

/// The journal of a drive.
pub(super) struct Trims {
    /// Whether records are durable at once.
    at_once: bool,
    /// Logical subpages that the layer trims, and may write, as one unit.
    unit: u32,
    /// Bit map of units with data in flash or a buffer that may be newer than their record.
    written: Vec<u64>,
    /// The durable record of each logical subpage; 0 without one.
    records: Vec<u64>,
    /// Records that a power cut would lose.
    pending: Vec<(Range<u32>, u64)>,
    /// Void copies: program number and former logical subpage of each.
    void: BTreeMap<u32, (u64, u32)>,
}

impl Trims {
    #[inline]
    fn is_written(&self, lsn: u32) -> bool {
        let unit = lsn / self.unit;
        self.written[unit as usize / 64] >> (unit % 64) & 1 == 1
    }

    #[inline]
    fn set_written(&mut self, lsn: u32) {
        let unit = lsn / self.unit;
        self.written[unit as usize / 64] |= 1 << (unit % 64);
    }
}

impl Nand {
    /// Starts the journal of a drive with `logical` logical subpages, which the layer trims in units of `unit`;
    /// `at_once`: a record is durable without a flush.
    pub fn keep_trims(&mut self, logical: u32, unit: u32, at_once: bool) {
        self.records.trims = Some(Box::new(Trims {
            at_once,
            unit,
            written: vec![0; logical.div_ceil(unit).div_ceil(64) as usize],
            records: vec![0; logical as usize],
            pending: Vec::new(),
            void: BTreeMap::new(),
        }));
    }

    /// Whether this drive journals trims.
    #[inline]
    pub fn keeps_trims(&self) -> bool {
        self.records.trims.is_some()
    }

    /// The host writes the logical subpages `lsns`. Must be called before the write.
    pub fn note_written(&mut self, lsns: Range<u32>) {
        if let Some(trims) = &mut self.records.trims {
            lsns.for_each(|lsn| trims.set_written(lsn));
        }
    }

    /// Notes a trim of the logical subpages `lsns`, which must be whole units. Must be called before the trim, because
    /// the trim may destroy data, and with `done` after the trim, because the trim may move data before unmapping it.
    ///
    /// # Errors
    /// [`super::Halt::Image`].
    pub fn note_trimmed(&mut self, lsns: Range<u32>, done: bool) -> Flash<()> {
        let operations = self.schedule.operations;
        let Some(trims) = &mut self.records.trims else { return Ok(()) };
        let mut first = lsns.start;
        while first < lsns.end {
            let written = trims.is_written(first);
            let end = (first..lsns.end).find(|&lsn| trims.is_written(lsn) != written).unwrap_or(lsns.end);
            if written {
                trims.pending.push((first..end, operations));
            }
            first = end;
        }
        if done {
            let units = lsns.start / trims.unit..lsns.end.div_ceil(trims.unit);
            units.for_each(|unit| trims.written[unit as usize / 64] &= !(1 << (unit % 64)));
        }
        if trims.at_once { self.commit_trims() } else { Ok(()) }
    }

    /// Makes all records durable. Must be called on a flush, and before each program and erase.
    ///
    /// # Errors
    /// [`super::Halt::Image`].
    #[inline]
    pub fn commit_trims(&mut self) -> Flash<()> {
        match &self.records.trims {
            Some(trims) if !trims.pending.is_empty() => self.commit_pending(),
            _ => Ok(()),
        }
    }

    #[cold]
    fn commit_pending(&mut self) -> Flash<()> {
        let Some(trims) = &mut self.records.trims else { return Ok(()) };
        for (lsns, operation) in trims.pending.drain(..) {
            let records = &mut trims.records[lsns.start as usize..lsns.end as usize];
            records.fill(operation);
            if let Some(image) = &self.payload.image {
                image.write_trims(lsns.start, records)?;
            }
        }
        Ok(())
    }

    /// Voids copies older than their trim after a power cut, and drops records that were not durable.
    pub fn void_trimmed(&mut self) {
        let Some(mut trims) = self.records.trims.take() else { return };
        trims.pending.clear();
        for psn in 0..self.geometry.subpages() as u32 {
            let lsn = self.logical(psn);
            match trims.records.get(lsn as usize) {
                Some(&record) if self.sequence(psn) > record => trims.set_written(lsn),
                Some(_) => {
                    self.logical[psn as usize] = PADDING;
                    trims.void.insert(psn, (self.sequence(psn), lsn));
                }
                None => {}
            }
        }
        self.records.trims = Some(trims);
    }

    /// [`Self::logical`], also for a copy that a trim made void, because recovery identifies blocks by these numbers.
    pub fn logical_before_trims(&self, psn: u32) -> u32 {
        let void = self.records.trims.as_ref().and_then(|trims| trims.void.get(&psn));
        let logical = self.logical(psn);
        match void {
            Some(&(sequence, lsn)) if logical == PADDING && sequence == self.sequence(psn) => lsn,
            _ => logical,
        }
    }

    /// Whether physical subpage `psn` holds a copy that a trim made void.
    pub fn is_trimmed(&self, psn: u32) -> bool {
        self.logical_before_trims(psn) != self.logical(psn)
    }

    /// Restores the record `operation` of logical subpage `lsn` from an image.
    pub(super) fn found_trim(&mut self, lsn: u32, operation: u64) {
        self.schedule.operations = self.schedule.operations.max(operation);
        if let Some(record) = self.records.trims.as_mut().and_then(|trims| trims.records.get_mut(lsn as usize)) {
            *record = operation;
        }
    }
}
