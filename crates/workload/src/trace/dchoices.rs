//! Traces of the d-choices flash simulator (Van Houdt, "Performance of garbage collection algorithms for flash-based
//! solid state drives with hot/cold data", 2013, and successors): `ms device sector pages flag`, separated by tabs,
//! flag 1 for reads.
//!
//! Addresses are 512-byte sectors, but sizes are pages of 4 KiB: the format mixes the two units. DiskSim's columns with
//! tabs look the same, with sizes in sectors; addresses of subsequent requests decide (see
//! [`Contest`](super::votes::Contest)).

use std::fmt::{self, Write};

use super::fields::{Fault, Fields, Parse};
use super::line_format::{Holds, LineFormat, Millis, Parsed, kind_of_read_flag};
use crate::request::{Request, RequestKind};

const SECTORS_PER_PAGE: u64 = 8;

#[derive(Default)]
pub struct Dchoices;

impl LineFormat for Dchoices {
    const NAME: &'static str = "dchoices";
    const ABOUT: &'static str =
        "d-choices: milliseconds, device, sector, 4 KiB pages, 1 (read) or 0 (write), with tabs";
    const IN_BYTES: Option<&'static str> = Some("time=1:ms,op=5:read=1,offset=3,size=4,volume=2");
    const HOLDS: Holds = Holds { size_grain: SECTORS_PER_PAGE as u32, ..Holds::PLAIN };
    const HAS_VOLUMES: bool = true;

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Parse<Parsed> {
        let mut fields = Fields::separated(line, b'\t');
        let time = fields.decimal("time", 6)?;
        let device = fields.number("device")?;
        let sector = fields.number("sector")?;
        let pages = fields.number("pages")?;
        let kind = kind_of_read_flag(fields.number("flag")?, "flag")?;
        fields.end("5 columns")?;
        let Some(sectors) = pages.checked_mul(SECTORS_PER_PAGE) else {
            return Err(Fault::column("pages", "a number of 4 KiB pages", pages.to_string().as_bytes()));
        };
        Parsed::of_sectors(time, kind, sector, sectors, device)
    }

    const IS_CONTESTED: bool = true;

    fn could_be(line: &[u8]) -> bool {
        line.contains(&b'.')
    }

    fn print(&mut self, request: &Request, _file: Option<&str>, out: &mut String) -> fmt::Result {
        let (time, flag) = (Millis(request.arrival), u8::from(request.kind == RequestKind::Read));
        let pages = u64::from(request.extent.sectors) / SECTORS_PER_PAGE;
        write!(out, "{time}\t{}\t{}\t{pages}\t{flag}", request.owner(), request.extent.sector)
    }
}

#[cfg(test)]
mod tests;
