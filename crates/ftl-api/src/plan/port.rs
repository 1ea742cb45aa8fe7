//! The host's data at the controller: contents of writes, delivered reads, and the merge of partial writes.
//!
//! With fingerprints, the content of a subpage is the fingerprint of (logical number, number of the write). A partial
//! write mixes the old fingerprint in, so that a layer which does not read the old data fails verification. With bytes,
//! each 512-byte sector holds bytes derived from the same two numbers, or bytes received by a server. Ignored: transfer
//! times, which belong to the engine.

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

/// Splits `extent` into one piece per subpage of `per_subpage` sectors, in ascending order.
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

/// Data of a write, received by a server.
#[derive(Debug, Default)]
pub struct Incoming {
    /// First sector of the write.
    pub sector: u64,
    /// The bytes of the write, among others.
    pub bytes: Vec<u8>,
    /// Offset of the first byte of the write.
    pub at: usize,
    /// Fingerprints of the sectors, if a verifier has computed them.
    pub fingerprints: Vec<u32>,
    /// First subpage and contents, if the write covers whole subpages that are already in buffers. The fingerprints
    /// must then be known.
    pub subpages: (u32, Vec<Data>),
}

/// The drive's end of the host link.
pub struct HostPort {
    payload: Payload,
    subpage_bytes: u32,
    /// Number of the present write, unique in the run.
    write_number: u64,
    /// Number of writes and trims.
    changes: u64,
    /// Data of the present write, if a server received it.
    incoming: Option<Incoming>,
    /// First logical subpage and contents, if a layer above sets them.
    subpages: (u32, Vec<Data>),
    delivered: Vec<(u32, Data)>,
}

palimpsest_flash::state!(HostPort { write_number, changes } built {
    payload, subpage_bytes, incoming, subpages, delivered
});

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
        }
    }

    /// True if the run models contents.
    #[inline]
    pub fn has_contents(&self) -> bool {
        self.payload != Payload::None
    }

    /// Sectors of a subpage.
    #[inline]
    pub fn sectors_per_subpage(&self) -> u32 {
        self.subpage_bytes / SECTOR_BYTES as u32
    }

    /// True if a layer above writes, not the host.
    #[inline]
    pub(super) fn is_inner(&self) -> bool {
        !self.subpages.1.is_empty()
    }

    /// Delivered data that [`Self::take_delivered`] has not returned yet.
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

    /// Number of writes and trims, the present one included.
    #[inline]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Sets the data of later writes until the next call, and returns the data before. With `None` the port generates
    /// data. The data stays for a write repeated after a power cut.
    pub fn bring(&mut self, incoming: Option<Incoming>) -> Option<Incoming> {
        std::mem::replace(&mut self.incoming, incoming)
    }

    /// Moves the received data of the present write, a Zone Append, to `sector`, where the drive places the write.
    pub fn place(&mut self, sector: u64) {
        if let Some(incoming) = &mut self.incoming {
            incoming.sector = sector;
        }
    }

    /// Sets the contents of whole subpages of later writes, from logical subpage `first` on, until the next call. With
    /// empty `contents` the host writes.
    pub(super) fn bring_subpages(&mut self, first: u32, contents: &[Data]) {
        self.subpages.0 = first;
        self.subpages.1.clear();
        self.subpages.1.extend_from_slice(contents);
    }

    /// Returns the content of a subpage after the present write of `piece`, from the content `old` ([`Data::ZERO`] if
    /// never written).
    #[inline]
    pub fn written(&self, buffers: &mut Buffers, piece: Piece, old: Data) -> Data {
        let (first, subpages) = &self.subpages;
        match self.payload {
            Payload::None => Data::ZERO,
            // A partial write cannot restore a lost subpage.
            _ if old == Data::LOST && piece.sectors < self.sectors_per_subpage() && subpages.is_empty() => Data::LOST,
            _ if !subpages.is_empty() => subpages[(piece.lsn - first) as usize],
            Payload::Tag => Data::new(self.tag(piece, old)),
            Payload::Bytes => self.bytes(buffers, piece, old),
        }
    }

    /// Number of writes, the present one included.
    #[inline]
    pub fn writes(&self) -> u64 {
        self.write_number
    }

    /// Fingerprint of logical subpage `lsn` after write number `write` of the whole subpage.
    #[inline]
    pub fn tag_of(&self, lsn: u32, write: u64) -> u64 {
        whole_tag(lsn, write)
    }

    /// Counts `writes` more host writes.
    #[inline]
    pub fn skip_writes(&mut self, writes: u32) {
        if self.has_contents() {
            self.write_number += u64::from(writes);
            self.changes += u64::from(writes);
        }
    }

    /// As [`Self::written`], for fingerprints, for a verifier of the host's data.
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

    /// Fills `place` with data of the present write, from sector `number` on.
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

    /// Fingerprints of the sectors of `piece`, if the present write has them.
    pub fn fingerprints(&self, piece: Piece) -> Option<&[u32]> {
        let Incoming { sector, fingerprints, .. } = self.incoming.as_ref()?;
        let first = (self.number(piece) - sector) as usize;
        fingerprints.get(first..first + piece.sectors as usize)
    }

    /// Calls `see` with the bytes of each sector of `piece` in the present write, in order.
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

    /// Delivers subpage `lsn` to the host.
    #[inline]
    pub fn deliver(&mut self, lsn: u32, data: Data) {
        if self.has_contents() {
            self.delivered.push((lsn, data));
        }
    }

    /// Restores data returned by [`Self::take_delivered`].
    pub(super) fn redeliver(&mut self, delivered: Vec<(u32, Data)>) {
        self.delivered = delivered;
    }

    /// Returns data delivered since the last call, in order of delivery.
    pub fn take_delivered(&mut self) -> Vec<(u32, Data)> {
        std::mem::take(&mut self.delivered)
    }

    /// Reuses the memory of `delivered` for later deliveries; the content is dropped.
    pub fn reuse(&mut self, mut delivered: Vec<(u32, Data)>) {
        if self.delivered.is_empty() {
            delivered.clear();
            self.delivered = delivered;
        }
    }
}

/// Fingerprint of write number `write` to any part of subpage `lsn`.
#[inline]
fn fresh(lsn: u32, write: u64) -> u64 {
    mix(u64::from(lsn) ^ write.rotate_left(24))
}

/// Fingerprint of subpage `lsn` after write number `write` of the whole subpage.
#[inline]
fn whole_tag(lsn: u32, write: u64) -> u64 {
    fresh(lsn, write).max(1)
}

/// Fills a sector with bytes derived from its number and the number of the write.
fn fill_sector(place: &mut [u8], number: u64, write: u64) {
    let mut state = mix(number ^ write.rotate_left(32));
    for chunk in place.chunks_exact_mut(8) {
        chunk.copy_from_slice(&split_mix(&mut state).to_le_bytes());
    }
}
