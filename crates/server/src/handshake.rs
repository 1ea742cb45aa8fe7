//! The handshake: fixed newstyle negotiation, up to the choice of the export.
//!
//! The export is known by the drive's name and by the empty name, NBD's default. Ignored: TLS, extended headers,
//! metadata contexts; the server refuses these options as unknown, and the client continues without them.

use crate::wire::{self, Fault, Fields};
use std::io::{Read, Write};

/// The drive that clients see.
#[derive(Debug, Clone)]
pub struct Export {
    pub name: String,
    /// Size of the drive.
    pub bytes: u64,
    /// Preferred block size; see [`preferred_block`].
    pub preferred_block: u32,
}

/// The preferred block size of a map of `unit_bytes`: NBD requires a power of two of at least a sector.
pub fn preferred_block(unit_bytes: u64) -> u32 {
    unit_bytes.clamp(4096, u64::from(wire::MAX_BYTES)).next_power_of_two() as u32
}

/// The outcome of a valid handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chosen {
    /// The client uses the export, and wants structured replies to reads or not.
    Export { structured: bool },
    /// The client closed the connection.
    Nothing,
}

/// Negotiates with a client.
///
/// # Errors
/// [`Fault`]: the connection must be closed.
pub fn negotiate(stream: &mut (impl Read + Write), export: &Export) -> Result<Chosen, Fault> {
    let mut greeting = Vec::with_capacity(18);
    greeting.extend(wire::INIT_MAGIC.to_be_bytes());
    greeting.extend(wire::OPTION_MAGIC.to_be_bytes());
    greeting.extend((wire::FIXED_NEWSTYLE | wire::NO_ZEROES).to_be_bytes());
    stream.write_all(&greeting)?;
    let Some(flags) = wire::read_array_or_end(stream)? else { return Ok(Chosen::Nothing) };
    let flags = u32::from_be_bytes(flags);
    if flags & !u32::from(wire::FIXED_NEWSTYLE | wire::NO_ZEROES) != 0 {
        return Err(Fault::Protocol(format!("client flags {flags:#x} are not known; expected 0 to 3")));
    }
    let mut terms = Terms { padded: flags & u32::from(wire::NO_ZEROES) == 0, structured: false };
    while let Some(header) = wire::read_array_or_end::<16>(stream)? {
        let mut fields = Fields(&header);
        let (magic, option, length) = (fields.u64(), fields.u32().unwrap_or(0), fields.u32().unwrap_or(0));
        if magic != Some(wire::OPTION_MAGIC) {
            return Err(Fault::Protocol("an option does not begin with IHAVEOPT; is this an NBD client?".into()));
        }
        if length > wire::MAX_OPTION_BYTES {
            let most = wire::MAX_OPTION_BYTES;
            return Err(Fault::Protocol(format!("option {option} has {length} bytes; expected at most {most}")));
        }
        let data = wire::read_bytes(stream, length)?;
        if let Some(chosen) = answer(stream, export, option, &data, &mut terms)? {
            return Ok(chosen);
        }
    }
    Ok(Chosen::Nothing)
}

struct Terms {
    padded: bool,
    structured: bool,
}

impl Terms {
    fn flags(&self) -> u16 {
        wire::TRANSMISSION_FLAGS | if self.structured { wire::DONT_FRAGMENT } else { 0 }
    }
}

/// Answers one option; `None` if the negotiation continues.
fn answer(
    stream: &mut impl Write,
    export: &Export,
    option: u32,
    data: &[u8],
    terms: &mut Terms,
) -> Result<Option<Chosen>, Fault> {
    match option {
        wire::OPT_EXPORT_NAME => {
            if !goes_by(export, data) {
                let name = shown(data);
                return Err(Fault::Protocol(format!(
                    "there is no export {name:?}; expected \"\" or {:?}",
                    export.name
                )));
            }
            let mut begin = export.bytes.to_be_bytes().to_vec();
            begin.extend(terms.flags().to_be_bytes());
            begin.extend(vec![0; if terms.padded { 124 } else { 0 }]);
            stream.write_all(&begin)?;
            return Ok(Some(Chosen::Export { structured: terms.structured }));
        }
        wire::OPT_ABORT => {
            // The client may be gone before the answer.
            let _ = reply(stream, option, wire::REP_ACK, &[]);
            return Ok(Some(Chosen::Nothing));
        }
        wire::OPT_LIST if data.is_empty() => {
            let mut entry = (export.name.len() as u32).to_be_bytes().to_vec();
            entry.extend(export.name.as_bytes());
            reply(stream, option, wire::REP_SERVER, &entry)?;
            reply(stream, option, wire::REP_ACK, &[])?;
        }
        wire::OPT_LIST => reply(stream, option, wire::REP_ERR_INVALID, b"a list takes no data")?,
        wire::OPT_STRUCTURED_REPLY if data.is_empty() => {
            terms.structured = true;
            reply(stream, option, wire::REP_ACK, &[])?;
        }
        wire::OPT_STRUCTURED_REPLY => {
            reply(stream, option, wire::REP_ERR_INVALID, b"structured replies take no data")?;
        }
        wire::OPT_INFO | wire::OPT_GO => match wanted_name(data) {
            None => reply(stream, option, wire::REP_ERR_INVALID, b"expected a name and a list of facts")?,
            Some(name) if !goes_by(export, name) => {
                reply(stream, option, wire::REP_ERR_UNKNOWN, b"there is no export of this name")?;
            }
            Some(_) => {
                describe(stream, option, export, terms.flags())?;
                let chosen = Chosen::Export { structured: terms.structured };
                return Ok((option == wire::OPT_GO).then_some(chosen));
            }
        },
        _ => reply(stream, option, wire::REP_ERR_UNSUP, b"this option is not supported")?,
    }
    Ok(None)
}

fn goes_by(export: &Export, name: &[u8]) -> bool {
    name.is_empty() || name == export.name.as_bytes()
}

fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).chars().take(80).collect()
}

/// The name in the data of `OPT_INFO` and `OPT_GO`. The list of wanted facts is ignored because all facts are sent.
fn wanted_name(data: &[u8]) -> Option<&[u8]> {
    let mut fields = Fields(data);
    let length = fields.u32()?;
    let name = fields.bytes(length as usize)?;
    let facts = fields.u16()?;
    (fields.0.len() == usize::from(facts) * 2).then_some(name)
}

fn describe(stream: &mut impl Write, option: u32, export: &Export, flags: u16) -> Result<(), Fault> {
    let mut size = wire::INFO_EXPORT.to_be_bytes().to_vec();
    size.extend(export.bytes.to_be_bytes());
    size.extend(flags.to_be_bytes());
    reply(stream, option, wire::REP_INFO, &size)?;
    let mut blocks = wire::INFO_BLOCK_SIZE.to_be_bytes().to_vec();
    for bytes in [512, export.preferred_block, wire::MAX_BYTES] {
        blocks.extend(bytes.to_be_bytes());
    }
    reply(stream, option, wire::REP_INFO, &blocks)?;
    reply(stream, option, wire::REP_ACK, &[])
}

fn reply(stream: &mut impl Write, option: u32, kind: u32, data: &[u8]) -> Result<(), Fault> {
    let mut message = wire::OPTION_REPLY_MAGIC.to_be_bytes().to_vec();
    for number in [option, kind, data.len() as u32] {
        message.extend(number.to_be_bytes());
    }
    message.extend(data);
    Ok(stream.write_all(&message)?)
}
