//! Protocol data units of NVMe/TCP: parsing those of hosts, and building those of the controller.
//!
//! Source: NVM Express TCP Transport Specification 1.0, section 3.6. All numbers are little-endian. Digests are CRC32C.
//! Ignored: TLS, and the retry of a PDU with a wrong data digest, which the specification leaves to the host.

use std::ops::Range;

pub const IC_REQ: u8 = 0;
pub const IC_RESP: u8 = 1;
pub const H2C_TERM: u8 = 2;
pub const C2H_TERM: u8 = 3;
pub const COMMAND: u8 = 4;
pub const RESPONSE: u8 = 5;
pub const H2C_DATA: u8 = 6;
pub const C2H_DATA: u8 = 7;
pub const R2T: u8 = 9;

/// Bytes of the header of every PDU.
pub const COMMON: usize = 8;
/// Bytes of the headers of ICReq and ICResp.
const INITIALIZE: usize = 128;
/// Bytes of the header of a command capsule.
pub const CAPSULE: usize = 72;
/// Bytes of the other headers.
pub const SHORT: usize = 24;
const DIGEST: usize = 4;

const HAS_HEADER_DIGEST: u8 = 1;
const HAS_DATA_DIGEST: u8 = 2;
const IS_LAST: u8 = 4;
/// The data completes the command successfully: no response follows.
const SUCCESS: u8 = 8;

/// Most bytes of data in a command capsule.
pub const IN_CAPSULE: u32 = 16 << 10;

/// Most bytes of a PDU with data from the host (MAXH2CDATA).
pub const MOST_DATA: u32 = 1 << 20;

/// Largest padding before data: PDO counts bytes.
const MOST_OFFSET: usize = 255;

/// The terms of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Terms {
    pub header_digest: bool,
    pub data_digest: bool,
    /// Alignment of data that the host asks for, in bytes (HPDA), from 4 to 128.
    pub alignment: usize,
}

/// Why the host broke the protocol: the connection ends with a C2HTermReq.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The fatal error status.
    pub status: u16,
    /// The byte of the wrong field, if one field is wrong.
    pub field: u32,
    pub what: String,
    /// The wrong header.
    pub header: Vec<u8>,
}

pub const WRONG_FIELD: u16 = 1;
pub const WRONG_SEQUENCE: u16 = 2;
pub const WRONG_HEADER_DIGEST: u16 = 3;
pub const OUT_OF_RANGE: u16 = 4;
pub const UNSUPPORTED: u16 = 6;

/// Makes an error about `header`.
pub fn broken(status: u16, field: u32, header: &[u8], what: impl Into<String>) -> Broken {
    Broken { status, field, what: what.into(), header: header[..header.len().min(INITIALIZE)].to_vec() }
}

pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// A PDU of the host, by its places in the received bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pdu {
    pub kind: u8,
    pub is_last: bool,
    /// The header, without digest.
    pub header: Range<usize>,
    /// The data; only its begin is in the received bytes for [`H2C_DATA`].
    pub data: Range<usize>,
    /// The end of the PDU.
    pub end: usize,
    /// Whether a digest follows the data.
    pub has_data_digest: bool,
}

/// The outcome of [`next`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    Pdu(Pdu),
    /// So many bytes must have arrived first.
    Needs(usize),
}

/// Finds the first PDU in `bytes`. A PDU must have arrived whole, except the data of [`H2C_DATA`].
///
/// # Errors
/// [`Broken`]: a header is malformed, or its digest is wrong.
pub fn next(bytes: &[u8], terms: &Terms) -> Result<Next, Broken> {
    if bytes.len() < COMMON {
        return Ok(Next::Needs(COMMON));
    }
    let (kind, flags, header_bytes) = (bytes[0], bytes[1], usize::from(bytes[2]));
    let (offset, end) = (usize::from(bytes[3]), u32_at(bytes, 4) as usize);
    let wrong = |field, what: &str| Err(broken(WRONG_FIELD, field, &bytes[..COMMON], what));
    let (expected, most) = match kind {
        IC_REQ => (INITIALIZE, 0),
        H2C_TERM => (SHORT, INITIALIZE),
        COMMAND => (CAPSULE, IN_CAPSULE as usize),
        H2C_DATA => (SHORT, MOST_DATA as usize),
        _ => return wrong(0, "the type of a PDU is not one of a host"),
    };
    let digests = !matches!(kind, IC_REQ | H2C_TERM);
    let header_digest = if digests && terms.header_digest { DIGEST } else { 0 };
    if header_bytes != expected {
        return wrong(2, "a PDU has the wrong length of header");
    }
    if digests && terms.header_digest != (flags & HAS_HEADER_DIGEST != 0) {
        return wrong(1, "the header digest of a PDU is not as agreed");
    }
    let head = expected + header_digest;
    let has_data = kind == H2C_DATA || end > head;
    let has_data_digest = digests && has_data && flags & HAS_DATA_DIGEST != 0;
    let begin = match kind {
        COMMAND | H2C_DATA if has_data && (offset < head || !offset.is_multiple_of(4)) => {
            return wrong(3, "the data of a PDU begins within the header, or at no multiple of 4");
        }
        COMMAND | H2C_DATA if has_data => offset,
        _ => head,
    };
    let tail = if has_data_digest { DIGEST } else { 0 };
    if end < begin + tail || end - begin - tail > most || (kind == H2C_DATA && end == begin + tail) {
        return wrong(4, "the length of a PDU does not fit its type");
    }
    if digests && has_data && terms.data_digest != has_data_digest {
        return wrong(1, "the data digest of a PDU is not as agreed");
    }
    let needs = if kind == H2C_DATA { begin } else { end };
    if bytes.len() < needs {
        return Ok(Next::Needs(needs));
    }
    if header_digest > 0 && crc32c::crc32c(&bytes[..expected]) != u32_at(bytes, expected) {
        let found = u32_at(bytes, expected);
        return Err(broken(WRONG_HEADER_DIGEST, found, &bytes[..expected], "the digest of a header is wrong"));
    }
    let is_last = flags & IS_LAST != 0;
    Ok(Next::Pdu(Pdu { kind, is_last, header: 0..expected, data: begin..end - tail, end, has_data_digest }))
}

/// Most bytes that [`next`] needs.
pub const MOST_NEEDED: usize = MOST_OFFSET + IN_CAPSULE as usize + DIGEST;

/// The terms in the header of an ICReq.
///
/// # Errors
/// [`Broken`]: the host wants a version or terms that are not supported.
pub fn initialize(header: &[u8]) -> Result<Terms, Broken> {
    let (version, alignment, digests) = (u16_at(header, 8), header[10], header[11]);
    if version != 0 {
        return Err(broken(UNSUPPORTED, 8, header, format!("PDU format version {version}; expected 0")));
    }
    if alignment > 31 {
        return Err(broken(WRONG_FIELD, 10, header, format!("data alignment {alignment}; expected 0 to 31")));
    }
    if digests > 3 {
        return Err(broken(UNSUPPORTED, 11, header, format!("digests {digests:#x}; expected 0 to 3")));
    }
    let alignment = (usize::from(alignment) + 1) * 4;
    Ok(Terms { header_digest: digests & 1 != 0, data_digest: digests & 2 != 0, alignment })
}

/// The ICResp for `terms`.
pub fn initialized(terms: &Terms) -> Vec<u8> {
    let mut pdu = vec![0; INITIALIZE];
    (pdu[0], pdu[2]) = (IC_RESP, INITIALIZE as u8);
    pdu[4..8].copy_from_slice(&(INITIALIZE as u32).to_le_bytes());
    pdu[11] = u8::from(terms.header_digest) | u8::from(terms.data_digest) << 1;
    pdu[12..16].copy_from_slice(&MOST_DATA.to_le_bytes());
    pdu
}

/// The C2HTermReq about `broken`.
pub fn terminate(broken: &Broken) -> Vec<u8> {
    let mut pdu = vec![0; SHORT];
    (pdu[0], pdu[2]) = (C2H_TERM, SHORT as u8);
    pdu[4..8].copy_from_slice(&((SHORT + broken.header.len()) as u32).to_le_bytes());
    pdu[8..10].copy_from_slice(&broken.status.to_le_bytes());
    pdu[10..14].copy_from_slice(&broken.field.to_le_bytes());
    pdu.extend(&broken.header);
    pdu
}

/// Appends a PDU without data, whose header has `fields` from byte 8 on.
fn append_short(into: &mut Vec<u8>, terms: &Terms, kind: u8, fields: &[u8; 16]) {
    let begin = into.len();
    let digest = if terms.header_digest { DIGEST } else { 0 };
    let flags = if terms.header_digest { HAS_HEADER_DIGEST } else { 0 };
    into.extend([kind, flags, SHORT as u8, 0]);
    into.extend(((SHORT + digest) as u32).to_le_bytes());
    into.extend(fields);
    if terms.header_digest {
        let digest = crc32c::crc32c(&into[begin..]);
        into.extend(digest.to_le_bytes());
    }
}

/// Appends a response capsule.
pub fn append_response(into: &mut Vec<u8>, terms: &Terms, entry: &[u8; 16]) {
    append_short(into, terms, RESPONSE, entry);
}

/// Appends a request for the `length` bytes of command `command`.
pub fn append_r2t(into: &mut Vec<u8>, terms: &Terms, command: u16, tag: u16, length: u32) {
    let mut fields = [0; 16];
    fields[..2].copy_from_slice(&command.to_le_bytes());
    fields[2..4].copy_from_slice(&tag.to_le_bytes());
    fields[8..12].copy_from_slice(&length.to_le_bytes());
    append_short(into, terms, R2T, &fields);
}

/// Appends the header of a PDU with all `length` bytes of command `command`; with `success` no response follows.
pub fn append_data(into: &mut Vec<u8>, terms: &Terms, command: u16, length: u32, success: bool) {
    let begin = into.len();
    let head = SHORT + if terms.header_digest { DIGEST } else { 0 };
    let offset = head.next_multiple_of(terms.alignment.max(4));
    let tail = if terms.data_digest { DIGEST } else { 0 };
    let digests = u8::from(terms.header_digest) | u8::from(terms.data_digest) << 1;
    let flags = digests | IS_LAST | if success { SUCCESS } else { 0 };
    into.extend([C2H_DATA, flags, SHORT as u8, offset as u8]);
    into.extend(((offset + tail) as u32 + length).to_le_bytes());
    into.extend(command.to_le_bytes());
    into.extend([0; 6]);
    into.extend(length.to_le_bytes());
    into.extend([0; 4]);
    if terms.header_digest {
        let digest = crc32c::crc32c(&into[begin..]);
        into.extend(digest.to_le_bytes());
    }
    into.resize(begin + offset, 0);
}
