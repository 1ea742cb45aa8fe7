//! ASCII traces of MQSim (Tavakkol et al., FAST 2018) and SSDSim (Hu et al., ICS 2011): `ns device sector sectors op`,
//! op 1 for reads, 0 for writes.
//!
//! DiskSim's traces have the same columns with times in milliseconds. Times distinguish them: only whole numbers in the
//! head of the file mean nanoseconds, a decimal point means DiskSim. The device is the stream.

use std::fmt::{self, Write};

use super::fields::{Fields, Parse};
use super::line_format::{Holds, LineFormat, Parsed, kind_of_read_flag};
use crate::request::{Extent, Request, RequestKind};

#[derive(Default)]
pub struct MqSim;

impl LineFormat for MqSim {
    const NAME: &'static str = "mqsim";
    const ALIASES: &'static [&'static str] = &["ssdsim"];
    const ABOUT: &'static str = "MQSim and SSDSim ASCII: ns device sector sectors 1 (read) or 0 (write)";
    const IN_BYTES: Option<&'static str> = Some("time=1:ns,op=5:read=1,offset=3,size=4,volume=2");
    const HOLDS: Holds = Holds::PLAIN;
    const HAS_VOLUMES: bool = true;

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Parse<Parsed> {
        let mut fields = Fields::blank(line);
        let time = fields.number("time")?;
        let device = fields.number("device")?;
        let sector = fields.number("sector")?;
        let sectors = fields.number("sectors")?;
        let kind = kind_of_read_flag(fields.number("op")?, "op")?;
        fields.end("5 columns")?;
        Parsed::of_sectors(time, kind, sector, sectors, device)
    }

    fn print(&mut self, request: &Request, _file: Option<&str>, out: &mut String) -> fmt::Result {
        let (arrival, stream, Extent { sector, sectors }) = (request.arrival, request.owner(), request.extent);
        write!(out, "{arrival} {stream} {sector} {sectors} {}", u8::from(request.kind == RequestKind::Read))
    }
}

#[cfg(test)]
mod tests;
