//! MSR Cambridge traces (Narayanan, Donnelly and Rowstron, "Write Off-Loading", FAST 2008), in SNIA IOTTA's format:
//! `timestamp,host,disk,Read|Write,offset,bytes,response`, times in Windows FILETIME (100 ns since 1601).
//!
//! The disk number is the stream. Host name and response time are required and ignored.

use std::fmt::{self, Write};

use super::fields::{Fault, Fields, Parse};
use super::line_format::{Holds, LineFormat, Parsed};
use crate::request::{Request, RequestKind};

#[derive(Default)]
pub struct Msr;

impl LineFormat for Msr {
    const NAME: &'static str = "msr";
    const ABOUT: &'static str = "MSR Cambridge CSV: FILETIME,host,disk,Read|Write,byte offset,bytes,response time";
    const HOLDS: Holds = Holds { time_grain: 100, ..Holds::PLAIN };
    const HAS_VOLUMES: bool = true;
    const IN_SECTORS: Option<&'static str> = Some("time=1:100ns,op=4,offset=5:sectors,size=6:sectors,volume=3");
    const HEADER: &'static str = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n";

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Parse<Parsed> {
        let mut fields = Fields::separated(line, b',');
        let ticks = match fields.number("timestamp") {
            Ok(ticks) => ticks,
            Err(_) if line.starts_with(b"Timestamp,Hostname,") => return Ok(Parsed::Header),
            Err(fault) => return Err(fault),
        };
        fields.text("host")?;
        let disk = fields.number("disk")?;
        let kind = match fields.text("type")? {
            b"Read" => RequestKind::Read,
            b"Write" => RequestKind::Write,
            other if other.trim_ascii().eq_ignore_ascii_case(b"read") => RequestKind::Read,
            other if other.trim_ascii().eq_ignore_ascii_case(b"write") => RequestKind::Write,
            other => return Err(Fault::column("type", "Read or Write", other)),
        };
        let offset = fields.number("offset")?;
        let bytes = fields.number("size")?;
        fields.number("response time")?;
        fields.end("7 columns")?;
        let Some(time) = ticks.checked_mul(100) else {
            return Err(Fault::column("timestamp", "FILETIME before the year 2185", ticks.to_string().as_bytes()));
        };
        Parsed::of_bytes(time, kind, offset, bytes, disk)
    }

    fn print(&mut self, request: &Request, _file: Option<&str>, out: &mut String) -> fmt::Result {
        let kind = if request.kind == RequestKind::Read { "Read" } else { "Write" };
        let (offset, bytes) = request.in_bytes();
        write!(out, "{},palimpsest,{},{kind},{offset},{bytes},0", request.arrival / 100, request.owner())
    }
}

#[cfg(test)]
mod tests;
