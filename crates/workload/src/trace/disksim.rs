//! ASCII traces of DiskSim (Bucy et al., "The DiskSim Simulation Environment", CMU-PDL-08-101, section 3.4): `ms device
//! sector sectors flags`, flag 1 for reads, 0 for writes.
//!
//! Whole numbers as times mean MQSim's nanoseconds. Tabs between the columns may mean the d-choices simulator;
//! addresses of subsequent requests decide (see [`Contest`](super::votes::Contest)). A named format overrides both.
//! Other flag bits (asynchronous, and so on) are refused. The device is the stream.

use std::fmt::{self, Write};

use super::fields::{Fields, Parse};
use super::line_format::{Holds, LineFormat, Millis, Parsed, kind_of_read_flag};
use crate::request::{Request, RequestKind};

#[derive(Default)]
pub struct DiskSim;

impl LineFormat for DiskSim {
    const NAME: &'static str = "disksim";
    const ABOUT: &'static str = "DiskSim ASCII: milliseconds device sector sectors 1 (read) or 0 (write)";
    const IN_BYTES: Option<&'static str> = Some("time=1:ms,op=5:read=1,offset=3,size=4,volume=2");
    const HOLDS: Holds = Holds::PLAIN;
    const HAS_VOLUMES: bool = true;

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Parse<Parsed> {
        let mut fields = Fields::blank(line);
        let time = fields.decimal("time", 6)?;
        let device = fields.number("device")?;
        let sector = fields.number("sector")?;
        let sectors = fields.number("sectors")?;
        let kind = kind_of_read_flag(fields.number("flags")?, "flags")?;
        fields.end("5 columns")?;
        Parsed::of_sectors(time, kind, sector, sectors, device)
    }

    const IS_CONTESTED: bool = true;

    fn print(&mut self, request: &Request, _file: Option<&str>, out: &mut String) -> fmt::Result {
        let (time, flag) = (Millis(request.arrival), u8::from(request.kind == RequestKind::Read));
        write!(out, "{time} {} {} {} {flag}", request.owner(), request.extent.sector, request.extent.sectors)
    }
}

#[cfg(test)]
mod tests;
