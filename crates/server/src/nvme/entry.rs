//! Entries of queues: commands of the host, and completions.
//!
//! Source: NVM Express Base Specification 2.0, sections 3.3.3.1 and 3.3.3.2, with the rules of Fabrics: data is named
//! by one scatter gather list descriptor in the command.

use super::pdu::{u16_at, u32_at, u64_at};
use super::status::{INVALID_FIELD, SGL_LENGTH_INVALID, SGL_OFFSET_INVALID, SGL_TYPE_INVALID, Status};

pub const FABRICS: u8 = 0x7F;

/// Descriptor: data in the capsule, with an offset.
const SGL_IN_CAPSULE: u8 = 0x01;
/// Descriptor: data that the transport carries.
const SGL_TRANSPORT: u8 = 0x5A;

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command([u8; 64]);

/// The place of a command's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the capsule, from this byte of the data on.
    Capsule(usize),
    /// The transport carries the data.
    Transport,
}

impl Command {
    /// The command in the header of a capsule.
    pub fn new(header: &[u8]) -> Self {
        let mut entry = [0; 64];
        entry.copy_from_slice(&header[8..72]);
        Command(entry)
    }

    pub fn opcode(&self) -> u8 {
        self.0[0]
    }

    /// Identifier of the command.
    pub fn id(&self) -> u16 {
        u16_at(&self.0, 2)
    }

    /// Type of a command of Fabrics.
    pub fn fabrics_type(&self) -> u8 {
        self.0[4]
    }

    pub fn namespace(&self) -> u32 {
        u32_at(&self.0, 4)
    }

    /// Dword `number` of the command.
    pub fn dword(&self, number: usize) -> u32 {
        u32_at(&self.0, number * 4)
    }

    /// The two dwords from `number` on.
    pub fn qword(&self, number: usize) -> u64 {
        u64_at(&self.0, number * 4)
    }

    /// The byte at `at`.
    pub fn byte(&self, at: usize) -> u8 {
        self.0[at]
    }

    /// The place of the command in a pair of fused commands: 0 alone, 1 first, 2 second.
    pub fn fusion(&self) -> u8 {
        self.0[1] & 3
    }

    /// Checks flags that every command has: a known fusion, and a descriptor for the data.
    ///
    /// # Errors
    /// The status of a wrong field.
    pub fn check_flags(&self) -> Result<(), Status> {
        if self.fusion() == 3 || !matches!(self.0[1] >> 6, 1 | 2) { Err(INVALID_FIELD) } else { Ok(()) }
    }

    /// Bytes of data that the command names.
    pub fn data_bytes(&self) -> u32 {
        u32_at(&self.0, 32)
    }

    /// The place of `length` bytes of data from the host, with `in_capsule` bytes in the capsule.
    ///
    /// # Errors
    /// The status of a wrong descriptor.
    pub fn data_from_host(&self, length: u32, in_capsule: usize) -> Result<Place, Status> {
        if self.data_bytes() != length {
            return Err(SGL_LENGTH_INVALID);
        }
        match self.0[39] {
            SGL_IN_CAPSULE => {
                let offset = usize::try_from(u64_at(&self.0, 24)).map_err(|_| SGL_OFFSET_INVALID)?;
                let end = offset.checked_add(length as usize).ok_or(SGL_OFFSET_INVALID)?;
                if end > in_capsule { Err(SGL_OFFSET_INVALID) } else { Ok(Place::Capsule(offset)) }
            }
            SGL_TRANSPORT => Ok(Place::Transport),
            _ => Err(SGL_TYPE_INVALID),
        }
    }

    /// Checks the descriptor of `length` bytes of data to the host.
    ///
    /// # Errors
    /// The status of a wrong descriptor.
    pub fn check_data_to_host(&self, length: u32) -> Result<(), Status> {
        match self.0[39] {
            SGL_TRANSPORT if self.data_bytes() == length => Ok(()),
            SGL_TRANSPORT => Err(SGL_LENGTH_INVALID),
            _ => Err(SGL_TYPE_INVALID),
        }
    }
}

/// A completion of command `id`.
pub fn completion(id: u16, status: Status, result: u64, head: u16) -> [u8; 16] {
    let mut entry = [0; 16];
    entry[..8].copy_from_slice(&result.to_le_bytes());
    entry[8..10].copy_from_slice(&head.to_le_bytes());
    entry[12..14].copy_from_slice(&id.to_le_bytes());
    entry[14..16].copy_from_slice(&(status << 1).to_le_bytes());
    entry
}

/// A structure of bytes with little-endian fields, which is zero elsewhere.
pub struct Structure(pub Vec<u8>);

impl Structure {
    pub fn new(bytes: usize) -> Self {
        Structure(vec![0; bytes])
    }

    pub fn u8(&mut self, at: usize, value: u8) -> &mut Self {
        self.0[at] = value;
        self
    }

    pub fn u16(&mut self, at: usize, value: u16) -> &mut Self {
        self.bytes(at, &value.to_le_bytes())
    }

    pub fn u32(&mut self, at: usize, value: u32) -> &mut Self {
        self.bytes(at, &value.to_le_bytes())
    }

    pub fn u64(&mut self, at: usize, value: u64) -> &mut Self {
        self.bytes(at, &value.to_le_bytes())
    }

    pub fn bytes(&mut self, at: usize, bytes: &[u8]) -> &mut Self {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// ASCII in a field of `length` bytes, padded with spaces.
    pub fn ascii(&mut self, at: usize, length: usize, text: &str) -> &mut Self {
        self.0[at..at + length].fill(b' ');
        self.text(at, length, text)
    }

    /// Text in a field of `length` bytes, padded with zeroes.
    pub fn text(&mut self, at: usize, length: usize, text: &str) -> &mut Self {
        let text = &text.as_bytes()[..text.len().min(length)];
        self.bytes(at, text)
    }
}
