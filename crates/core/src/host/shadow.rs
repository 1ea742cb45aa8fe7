//! The host's own view of its data, against which every read is verified.
//!
//! Holds for each logical subpage what the host last put there, by the same rule of merging as [`crate::plan::port`] but with
//! the shadow's own copy of what was there before: a layer that loses, mixes up or forgets to read data is found out.

use crate::error::{Error, Result};
use crate::geometry::Extent;
use crate::nand::data::{Buffers, Data, Payload};
use crate::plan::port::{HostPort, Piece, pieces};

/// The view.
pub struct Shadow {
    payload: Payload,
    per_subpage: u32,
    tags: Vec<u64>,
    bytes: Vec<Option<Box<[u8]>>>,
    buffers: Buffers,
}

impl Shadow {
    /// A view of `subpages` logical subpages of `subpage_bytes` bytes that hold zeros.
    pub fn new(payload: Payload, subpages: u64, subpage_bytes: u32) -> Self {
        let sized = |wanted: bool| if wanted { subpages as usize } else { 0 };
        Shadow {
            payload,
            per_subpage: subpage_bytes / crate::units::SECTOR_BYTES as u32,
            tags: vec![0; sized(payload == Payload::Tag)],
            bytes: vec![None; sized(payload == Payload::Bytes)],
            buffers: Buffers::new(subpage_bytes as usize),
        }
    }

    /// The host has written `extent`; `port` knows what.
    pub fn write(&mut self, port: &HostPort, extent: Extent) {
        match self.payload {
            Payload::None => {}
            Payload::Tag => {
                for piece in pieces(extent, self.per_subpage) {
                    let tag = &mut self.tags[piece.lsn as usize];
                    *tag = port.written(&mut self.buffers, piece, Data(*tag)).0;
                }
            }
            Payload::Bytes => pieces(extent, self.per_subpage).for_each(|piece| self.write_bytes(port, piece)),
        }
    }

    fn write_bytes(&mut self, port: &HostPort, piece: Piece) {
        let place = &mut self.bytes[piece.lsn as usize];
        let old = place.as_ref().map_or(Data::ZERO, |bytes| self.buffers.keep(bytes));
        let new = port.written(&mut self.buffers, piece, old);
        *place = self.buffers.get(new).map(Box::from);
        self.buffers.end_request();
    }

    /// The host has trimmed whole subpages.
    pub fn trim(&mut self, extent: Extent) {
        for piece in pieces(extent, self.per_subpage) {
            match self.payload {
                Payload::None => return,
                Payload::Tag => self.tags[piece.lsn as usize] = 0,
                Payload::Bytes => self.bytes[piece.lsn as usize] = None,
            }
        }
    }

    /// Checks what a read of `extent` delivered: every subpage once, with the content that the host put there.
    ///
    /// # Errors
    /// [`Error::Rule`] with the first subpage that is wrong.
    pub fn verify(&self, extent: Extent, mut delivered: Vec<(u32, Data)>, buffers: &Buffers) -> Result<()> {
        if self.payload == Payload::None {
            return Ok(());
        }
        delivered.sort_unstable_by_key(|&(lsn, _)| lsn);
        let wanted: Vec<u32> = pieces(extent, self.per_subpage).map(|piece| piece.lsn).collect();
        let got: Vec<u32> = delivered.iter().map(|&(lsn, _)| lsn).collect();
        if wanted != got {
            return Err(Error::Rule(format!("a read of logical subpages {wanted:?} delivered {got:?}")));
        }
        for (lsn, data) in delivered {
            let right = match self.payload {
                Payload::Tag => data.0 == self.tags[lsn as usize],
                _ => self.same_bytes(lsn, buffers.get(data)),
            };
            if !right {
                return Err(Error::Rule(format!(
                    "logical subpage {lsn} came back with data that the host did not put there"
                )));
            }
        }
        Ok(())
    }

    /// The bytes of `extent` out of what a verified read of it delivered.
    pub fn assemble(&self, extent: Extent, delivered: &[(u32, Data)], buffers: &Buffers) -> Vec<u8> {
        let sector_bytes = crate::units::SECTOR_BYTES as usize;
        let mut bytes = vec![0; extent.sectors as usize * sector_bytes];
        for &(lsn, data) in delivered {
            let Some(subpage) = buffers.get(data) else { continue };
            let begin = u64::from(lsn) * u64::from(self.per_subpage);
            let (from, to) = (extent.sector.max(begin), extent.end().min(begin + u64::from(self.per_subpage)));
            let range = |zero: u64| (from - zero) as usize * sector_bytes..(to - zero) as usize * sector_bytes;
            bytes[range(extent.sector)].copy_from_slice(&subpage[range(begin)]);
        }
        bytes
    }

    fn same_bytes(&self, lsn: u32, got: Option<&[u8]>) -> bool {
        match (&self.bytes[lsn as usize], got) {
            (Some(wanted), Some(got)) => **wanted == *got,
            (None, Some(bytes)) => bytes.iter().all(|&byte| byte == 0),
            (Some(bytes), None) => bytes.iter().all(|&byte| byte == 0),
            (None, None) => true,
        }
    }
}
