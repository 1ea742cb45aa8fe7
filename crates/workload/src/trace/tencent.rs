//! Tencent cloud block storage traces (Zhang et al., "OSCA", USENIX ATC 2020): `seconds,sector,sectors,op,volume`, op 1
//! for writes, 0 for reads.
//!
//! The clock has whole seconds, so requests of one second arrive together, with any speed-up. The volume is the stream.

use std::fmt::{self, Write};

use super::fields::{Fault, Fields, Parse};
use super::line_format::{Holds, LineFormat, Parsed};
use crate::request::{Request, RequestKind};

#[derive(Default)]
pub struct Tencent;

impl LineFormat for Tencent {
    const NAME: &'static str = "tencent";
    const ABOUT: &'static str = "Tencent block CSV: seconds,sector,sectors,1 (write) or 0 (read),volume";
    const IN_BYTES: Option<&'static str> = Some("time=1:s,op=4:write=1,offset=2,size=3,volume=5");
    const HOLDS: Holds = Holds { time_grain: 1_000_000_000, ..Holds::PLAIN };
    const HAS_VOLUMES: bool = true;

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Parse<Parsed> {
        let mut fields = Fields::separated(line, b',');
        let time = fields.decimal("timestamp", 9)?;
        let sector = fields.number("offset")?;
        let sectors = fields.number("size")?;
        let kind = match fields.number("op")? {
            0 => RequestKind::Read,
            1 => RequestKind::Write,
            other => return Err(Fault::column("op", "0 (read) or 1 (write)", other.to_string().as_bytes())),
        };
        let volume = fields.number("volume")?;
        fields.end("5 columns")?;
        Parsed::of_sectors(time, kind, sector, sectors, volume)
    }

    fn print(&mut self, request: &Request, _file: Option<&str>, out: &mut String) -> fmt::Result {
        let (seconds, op) = (request.arrival / 1_000_000_000, u8::from(request.kind == RequestKind::Write));
        write!(out, "{seconds},{},{},{op},{}", request.extent.sector, request.extent.sectors, request.owner())
    }
}

#[cfg(test)]
mod tests;
