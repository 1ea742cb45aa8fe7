//! Traces of the Storage Performance Council ("SPC Trace File Format Specification", revision 1.0.1, 2002), the format
//! of the UMass OLTP and web-search traces: `ASU,LBA,bytes,R|W,seconds`, further columns allowed.
//!
//! The specification leaves the block size to the trace's description; here it is 512 bytes, as in the UMass traces.
//! Sizes are widened to whole blocks. The application-specific unit is the stream; units are volumes, whose addresses
//! start at 0 (most published uses of these traces overlay them). Blanks around fields are legal.

use std::fmt::{self, Write};

use super::fields::{Fields, Parse};
use super::line_format::{Holds, LineFormat, Parsed, Seconds, kind_of_letter, letter};
use crate::request::{Request, SECTOR_BYTES};

#[derive(Default)]
pub struct Spc;

impl LineFormat for Spc {
    const NAME: &'static str = "spc";
    const ALIASES: &'static [&'static str] = &["umass"];
    const ABOUT: &'static str = "SNIA/UMass SPC: ASU,512-byte block,bytes,R|W,seconds";
    const HOLDS: Holds = Holds::PLAIN;
    const HAS_VOLUMES: bool = true;

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Parse<Parsed> {
        let mut fields = Fields::separated(line, b',');
        let unit = fields.number("ASU")?;
        let block = fields.number("LBA")?;
        let bytes = fields.number("size")?;
        let kind = kind_of_letter(fields.text("opcode")?, "opcode")?;
        let time = fields.decimal("timestamp", 9)?;
        Parsed::of_sectors(time, kind, block, bytes.div_ceil(SECTOR_BYTES), unit)
    }

    fn print(&mut self, request: &Request, _file: Option<&str>, out: &mut String) -> fmt::Result {
        let (bytes, letter) = (u64::from(request.extent.sectors) * SECTOR_BYTES, letter(request.kind));
        write!(out, "{},{},{bytes},{letter},{}", request.owner(), request.extent.sector, Seconds(request.arrival))
    }
}

#[cfg(test)]
mod tests;
