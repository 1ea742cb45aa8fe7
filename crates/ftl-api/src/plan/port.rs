//! The host's data at the controller: what a write brings, what a read delivers, and how a partial write is merged.
//!
//! With fingerprints, the content of a subpage is the fingerprint of (logical number, number of the write); a write of a
//! part of a subpage mixes the old fingerprint in, so that a layer which does not read the old data fails. With
//! bytes, each 512-byte sector holds bytes that derive from the same two numbers, or what a server was sent.

use palimpsest_flash::geometry::{RequestKind, unit_of};
use palimpsest_flash::nand::data::{Buffers, Data, Payload};
use palimpsest_flash::past_caches;
use palimpsest_flash::rng::{mix, split_mix};
use palimpsest_flash::units::SECTOR_BYTES;

/// A run of sectors within one subpage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Logical subpage.
    pub lsn: u32,
    /// First sector within the subpage.
    pub first: u32,
    /// Sectors.
    pub sectors: u32,
}

/// The pieces of `extent`, one for each subpage of `per_subpage` sectors that it touches, in ascending order.
#[inline]
pub fn pieces(extent: palimpsest_flash::geometry::Extent, per_subpage: u32) -> impl Iterator<Item = Piece> {
    let (first, end) =
        (unit_of(extent.sector, per_subpage), unit_of(extent.end() + u64::from(per_subpage - 1), per_subpage));
    let per_subpage = u64::from(per_subpage);
    (first..end).map(move |lsn| {
        let first = extent.sector.max(lsn * per_subpage) - lsn * per_subpage;
        let end = extent.end().min((lsn + 1) * per_subpage) - lsn * per_subpage;
        Piece { lsn: lsn as u32, first: first as u32, sectors: (end - first) as u32 }
    })
}

/// What a server was sent for a write.
#[derive(Debug, Default)]
pub struct Incoming {
    /// First sector of the write.
    pub sector: u64,
    /// Its bytes are here, with others.
    pub bytes: Vec<u8>,
    /// Where they begin.
    pub at: usize,
    /// The fingerprints of its sectors, where they are known, for who verifies contents.
    pub fingerprints: Vec<u32>,
    /// Where it covers whole subpages and buffers have its bytes already: the first of them, and the contents of all. Then the fingerprints are known.
    pub subpages: (u32, Vec<Data>),
}

/// One end of the host link, inside the drive.
pub struct HostPort {
    payload: Payload,
    subpage_bytes: u32,
    /// Number of the present write, unique in the run.
    write_number: u64,
    /// Writes and trims so far.
    changes: u64,
    /// Bytes of the present write where a server brought them.
    incoming: Option<Incoming>,
    /// Contents of logical subpages from this one on, where a layer above sets them.
    subpages: (u32, Vec<Data>),
    delivered: Vec<(u32, Data)>,
    /// Subpages that cross the link at the least.
    pub transfer_subpages: u32,
}

palimpsest_flash::state!(HostPort { write_number, changes } built { payload, subpage_bytes, incoming, subpages, delivered, transfer_subpages });

impl HostPort {
    /// A port for subpages of `subpage_bytes`.
    pub fn new(payload: Payload, subpage_bytes: u32) -> Self {
        HostPort {
            payload,
            subpage_bytes,
            write_number: 0,
            changes: 0,
            incoming: None,
            subpages: (0, Vec::new()),
            delivered: Vec::new(),
            transfer_subpages: 1,
        }
    }

    /// Whether contents matter at all.
    #[inline]
    pub fn has_contents(&self) -> bool {
        self.payload != Payload::None
    }

    /// Sectors of a subpage.
    #[inline]
    pub fn sectors_per_subpage(&self) -> u32 {
        self.subpage_bytes / SECTOR_BYTES as u32
    }

    /// Whether a layer above writes, and not the host.
    #[inline]
    pub(super) fn is_inner(&self) -> bool {
        !self.subpages.1.is_empty()
    }

    /// What was delivered and not taken yet.
    pub fn delivered(&self) -> &[(u32, Data)] {
        &self.delivered
    }

    /// Begins a request of `kind`.
    #[inline]
    pub fn begin(&mut self, kind: RequestKind) {
        self.write_number += u64::from(kind == RequestKind::Write);
        self.changes += u64::from(matches!(kind, RequestKind::Write | RequestKind::Trim));
    }

    /// Begins a write.
    pub fn begin_write(&mut self) {
        self.begin(RequestKind::Write);
    }

    /// Writes and trims so far: the number of the present one.
    #[inline]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Writes bring these bytes until the next call, which gives them back; with `None` the port makes them up. They stay when a write
    /// is repeated after a power cut.
    pub fn bring(&mut self, incoming: Option<Incoming>) -> Option<Incoming> {
        std::mem::replace(&mut self.incoming, incoming)
    }

    /// Writes bring whole subpages with these contents, from logical subpage `first` on, until the next call; with none the
    /// host writes.
    pub(super) fn bring_subpages(&mut self, first: u32, contents: &[Data]) {
        self.subpages.0 = first;
        self.subpages.1.clear();
        self.subpages.1.extend_from_slice(contents);
    }

    /// The content of a subpage after the present write put `piece` over `old`: what it held, [`Data::ZERO`] if it was never
    /// written.
    #[inline]
    pub fn written(&self, buffers: &mut Buffers, piece: Piece, old: Data) -> Data {
        let (first, subpages) = &self.subpages;
        match self.payload {
            Payload::None => Data::ZERO,
            // Of a subpage that is lost, what is not written now stays so, and with it the subpage.
            _ if old == Data::LOST && piece.sectors < self.sectors_per_subpage() && subpages.is_empty() => Data::LOST,
            _ if !subpages.is_empty() => subpages[(piece.lsn - first) as usize],
            Payload::Tag => Data::new(self.tag(piece, old)),
            Payload::Bytes => self.bytes(buffers, piece, old),
        }
    }

    /// Writes so far: the number of the present one.
    #[inline]
    pub fn writes(&self) -> u64 {
        self.write_number
    }

    /// The fingerprint of logical subpage `lsn` after write number `write` of all of it.
    #[inline]
    pub fn tag_of(&self, lsn: u32, write: u64) -> u64 {
        whole_tag(lsn, write)
    }

    /// The host has written `writes` more times.
    #[inline]
    pub fn skip_writes(&mut self, writes: u32) {
        if self.has_contents() {
            self.write_number += u64::from(writes);
            self.changes += u64::from(writes);
        }
    }

    /// As [`Self::written`], of a fingerprint, for who keeps account of the host's data.
    #[inline]
    pub fn written_tag(&self, piece: Piece, old: u64) -> u64 {
        self.tag(piece, Data::new(old))
    }

    fn tag(&self, piece: Piece, old: Data) -> u64 {
        let whole = piece.sectors == self.sectors_per_subpage();
        if whole {
            return whole_tag(piece.lsn, self.write_number);
        }
        let fresh = fresh(piece.lsn, self.write_number);
        mix(old.value.rotate_left(1) ^ fresh ^ (u64::from(piece.first) << 32 | u64::from(piece.sectors))).max(1)
    }

    fn bytes(&self, buffers: &mut Buffers, piece: Piece, old: Data) -> Data {
        if let Some(Incoming { subpages: (first, contents), .. }) = &self.incoming
            && !contents.is_empty()
        {
            let data = contents[(piece.lsn - first) as usize];
            buffers.overwrite(piece.lsn, data);
            return data;
        }
        let whole = piece.sectors == self.sectors_per_subpage();
        let before = if whole { None } else { buffers.get(old).map(<[u8]>::to_vec) };
        buffers.fill_over(piece.lsn, |content| {
            match before {
                Some(before) => content.copy_from_slice(&before),
                None if whole => {}
                None => content.fill(0),
            }
            let per_sector = SECTOR_BYTES as usize;
            let range = piece.first as usize * per_sector..(piece.first + piece.sectors) as usize * per_sector;
            self.bring_to(&mut content[range], self.number(piece));
        })
    }

    /// Number of the first sector of `piece`.
    fn number(&self, piece: Piece) -> u64 {
        u64::from(piece.lsn) * u64::from(self.sectors_per_subpage()) + u64::from(piece.first)
    }

    /// Fills `place` with what the present write brings, from sector `number` on.
    fn bring_to(&self, place: &mut [u8], number: u64) {
        let per_sector = SECTOR_BYTES as usize;
        match &self.incoming {
            Some(Incoming { sector, bytes, at, .. }) => {
                past_caches::copy(place, &bytes[at + (number - sector) as usize * per_sector..][..place.len()]);
            }
            None => {
                for (number, place) in (number..).zip(place.chunks_exact_mut(per_sector)) {
                    fill_sector(place, number, self.write_number);
                }
            }
        }
    }

    /// The fingerprints of the sectors of `piece`, where the present write brings them.
    pub fn fingerprints(&self, piece: Piece) -> Option<&[u32]> {
        let Incoming { sector, fingerprints, .. } = self.incoming.as_ref()?;
        let first = (self.number(piece) - sector) as usize;
        fingerprints.get(first..first + piece.sectors as usize)
    }

    /// Calls `see` with the bytes of each sector of `piece` that the present write brings, in order.
    pub fn each_sector(&self, piece: Piece, mut see: impl FnMut(&[u8])) {
        let (number, per_sector) = (self.number(piece), SECTOR_BYTES as usize);
        if let Some(Incoming { sector, bytes, at, .. }) = &self.incoming {
            let bytes = &bytes[at + (number - sector) as usize * per_sector..][..piece.sectors as usize * per_sector];
            bytes.chunks_exact(per_sector).for_each(see);
            return;
        }
        let mut made = [0; SECTOR_BYTES as usize];
        for number in number..number + u64::from(piece.sectors) {
            fill_sector(&mut made, number, self.write_number);
            see(&made);
        }
    }

    /// Hands subpage `lsn` to the host.
    #[inline]
    pub fn deliver(&mut self, lsn: u32, data: Data) {
        if self.has_contents() {
            self.delivered.push((lsn, data));
        }
    }

    /// Puts back what [`Self::take_delivered`] took.
    pub(super) fn redeliver(&mut self, delivered: Vec<(u32, Data)>) {
        self.delivered = delivered;
    }

    /// What was delivered since the last call, in order of delivery.
    pub fn take_delivered(&mut self) -> Vec<(u32, Data)> {
        std::mem::take(&mut self.delivered)
    }

    /// Gives back memory for what will be delivered; what it has is forgotten.
    pub fn reuse(&mut self, mut delivered: Vec<(u32, Data)>) {
        if self.delivered.is_empty() {
            delivered.clear();
            self.delivered = delivered;
        }
    }
}

/// What write number `write` puts into subpage `lsn`, whatever part of it that is.
#[inline]
fn fresh(lsn: u32, write: u64) -> u64 {
    mix(u64::from(lsn) ^ write.rotate_left(24))
}

/// The fingerprint of subpage `lsn` as write number `write` wrote all of it.
#[inline]
fn whole_tag(lsn: u32, write: u64) -> u64 {
    fresh(lsn, write).max(1)
}

/// Fills a sector with bytes that depend on its number and the number of the write.
fn fill_sector(place: &mut [u8], number: u64, write: u64) {
    let mut state = mix(number ^ write.rotate_left(32));
    for chunk in place.chunks_exact_mut(8) {
        chunk.copy_from_slice(&split_mix(&mut state).to_le_bytes());
    }
}
