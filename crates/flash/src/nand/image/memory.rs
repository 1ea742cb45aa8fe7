//! An image in memory, for tests. Writes may be made to end, like at the end of a process or on a full disk, and
//! unsynchronized data may be lost in part, like in a crash of the machine. Ignored: errors of reads.

use super::Medium;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

/// Bytes of a piece.
const PIECE: u64 = 4096;

/// Content of a piece; `None`: zeros without memory.
type Piece = Option<Box<[u8]>>;

#[derive(Default)]
struct Bytes {
    pieces: BTreeMap<u64, Box<[u8]>>,
    length: u64,
    writes: u64,
    /// Number of successful writes. The next write fails halfway, at a border of pieces, and all later ones fail.
    ends_after: Option<u64>,
    synced: u64,
    /// Of each unsynchronized piece, the content before each write; `None`: contents are not recorded.
    before: Option<BTreeMap<u64, Vec<Piece>>>,
}

/// Bytes in memory; clones share them.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<Bytes>>);

impl Memory {
    /// Zeros of `length` bytes.
    pub fn new(length: u64) -> Self {
        Memory(Arc::new(Mutex::new(Bytes { length, ..Bytes::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, Bytes> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Writes so far.
    pub fn writes(&self) -> u64 {
        self.lock().writes
    }

    /// Number of synchronizations.
    pub fn synced(&self) -> u64 {
        self.lock().synced
    }

    /// Bytes of memory in use.
    pub fn taken(&self) -> u64 {
        self.lock().pieces.len() as u64 * PIECE
    }

    /// Makes all writes fail after `writes` more.
    pub fn end_after(&self, writes: Option<u64>) {
        let mut bytes = self.lock();
        bytes.ends_after = writes.map(|writes| bytes.writes + writes);
    }

    /// Starts to record unsynchronized contents for [`Self::crash`].
    pub fn keep_before(&self) {
        self.lock().before = Some(BTreeMap::new());
    }

    /// The image after a crash of the machine: each unsynchronized piece is whole and has its content of any moment
    /// since the synchronization. `choose` draws a number below its argument.
    pub fn crash(&self, choose: &mut dyn FnMut(u64) -> u64) -> Memory {
        let crashed = self.copy();
        let own = self.lock();
        for (&piece, before) in own.before.iter().flatten() {
            let Some(held) = before.get(choose(before.len() as u64 + 1) as usize) else { continue };
            let pieces = &mut crashed.lock().pieces;
            match held {
                Some(bytes) => _ = pieces.insert(piece, bytes.clone()),
                None => _ = pieces.remove(&piece),
            }
        }
        crashed.keep_before();
        crashed
    }

    /// An independent copy.
    pub fn copy(&self) -> Memory {
        let bytes = self.lock();
        let copy = Bytes { pieces: bytes.pieces.clone(), length: bytes.length, ..Bytes::default() };
        Memory(Arc::new(Mutex::new(copy)))
    }

    /// Truncates or extends the image.
    pub fn resize(&self, length: u64) {
        let mut bytes = self.lock();
        bytes.length = length;
        bytes.pieces.retain(|&piece, _| piece * PIECE < length);
    }

    /// Places of pieces with memory.
    pub fn pieces(&self) -> Vec<u64> {
        self.lock().pieces.keys().map(|piece| piece * PIECE).collect()
    }

    /// Changes the byte at `at`.
    pub fn change(&self, at: u64, change: impl FnOnce(u8) -> u8) {
        let mut byte = [0];
        if self.read(at, &mut byte).is_ok() {
            self.lock().put(at, &[change(byte[0])]);
        }
    }
}

impl Bytes {
    /// Records the content of `piece` before a change.
    fn note(&mut self, piece: u64) {
        if let Some(before) = &mut self.before {
            before.entry(piece).or_default().push(self.pieces.get(&piece).cloned());
        }
    }

    fn put(&mut self, mut at: u64, mut bytes: &[u8]) {
        self.length = self.length.max(at + bytes.len() as u64);
        while !bytes.is_empty() {
            let (piece, offset) = (at / PIECE, (at % PIECE) as usize);
            let (now, rest) = bytes.split_at(bytes.len().min(PIECE as usize - offset));
            self.note(piece);
            let place = self.pieces.entry(piece).or_insert_with(|| vec![0; PIECE as usize].into());
            place[offset..offset + now.len()].copy_from_slice(now);
            (at, bytes) = (at + now.len() as u64, rest);
        }
    }
}

impl Medium for Memory {
    fn length(&self) -> io::Result<u64> {
        Ok(self.lock().length)
    }

    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let bytes = self.lock();
        if at.checked_add(into.len() as u64).is_none_or(|end| end > bytes.length) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut done = 0;
        while done < into.len() {
            let (piece, offset) = ((at + done as u64) / PIECE, ((at + done as u64) % PIECE) as usize);
            let count = (into.len() - done).min(PIECE as usize - offset);
            let place = &mut into[done..done + count];
            match bytes.pieces.get(&piece) {
                Some(bytes) => place.copy_from_slice(&bytes[offset..offset + count]),
                None => place.fill(0),
            }
            done += count;
        }
        Ok(())
    }

    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut own = self.lock();
        if own.ends_after.is_some_and(|after| own.writes >= after) {
            if own.ends_after == Some(own.writes) {
                // A process that ends mid-write leaves some whole pages of the page cache.
                let border = (at + bytes.len() as u64 / 2) / PIECE * PIECE;
                own.put(at, &bytes[..border.saturating_sub(at) as usize]);
                own.writes += 1;
            }
            return Err(io::Error::other("the writes of this test have ended"));
        }
        own.writes += 1;
        own.put(at, bytes);
        Ok(())
    }

    fn punch(&self, range: Range<u64>) -> io::Result<()> {
        let mut own = self.lock();
        let (first, end) = (range.start.div_ceil(PIECE), range.end / PIECE);
        let punched: Vec<u64> = own.pieces.range(first..end.max(first)).map(|(&piece, _)| piece).collect();
        for piece in punched {
            own.note(piece);
            own.pieces.remove(&piece);
        }
        for (from, to) in [(range.start, range.end.min(first * PIECE)), (range.start.max(end * PIECE), range.end)] {
            if from < to && own.pieces.contains_key(&(from / PIECE)) {
                own.put(from, &vec![0; (to - from) as usize]);
            }
        }
        Ok(())
    }

    fn next_data(&self, at: u64) -> io::Result<Option<u64>> {
        let own = self.lock();
        Ok(own.pieces.range(at / PIECE..).next().map(|(piece, _)| at.max(piece * PIECE)))
    }

    fn sync(&self) -> io::Result<()> {
        let mut own = self.lock();
        own.synced += 1;
        own.before.iter_mut().for_each(BTreeMap::clear);
        Ok(())
    }
}
