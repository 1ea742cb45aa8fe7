//! Alibaba cloud block traces (Li et al., "An In-Depth Analysis of Cloud Block Storage Workloads", IISWC 2020):
//! `device_id,opcode,offset,length,timestamp`, bytes and microseconds.
//!
//! The device is the stream; devices are volumes, whose addresses start at 0.

use std::fmt::{self, Write};

use super::fields::{Fields, Parse, nanos};
use super::line_format::{Holds, LineFormat, Parsed, kind_of_letter, letter};
use crate::request::Request;

#[derive(Default)]
pub struct Alibaba;

impl LineFormat for Alibaba {
    const NAME: &'static str = "alibaba";
    const ABOUT: &'static str = "Alibaba block CSV: device,R|W,byte offset,bytes,microseconds";
    const HOLDS: Holds = Holds { time_grain: 1000, ..Holds::PLAIN };
    const HAS_VOLUMES: bool = true;
    const IN_SECTORS: Option<&'static str> = Some("time=5:us,op=2,offset=3:sectors,size=4:sectors,volume=1");

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Parse<Parsed> {
        let mut fields = Fields::separated(line, b',');
        let device = match fields.number("device") {
            Ok(device) => device,
            Err(_) if line.starts_with(b"device_id,opcode,") => return Ok(Parsed::Header),
            Err(fault) => return Err(fault),
        };
        let kind = kind_of_letter(fields.text("opcode")?, "opcode")?;
        let offset = fields.number("offset")?;
        let bytes = fields.number("length")?;
        let micros = fields.number("timestamp")?;
        fields.end("5 columns")?;
        Parsed::of_bytes(nanos(micros, 1000, "timestamp")?, kind, offset, bytes, device)
    }

    fn print(&mut self, request: &Request, _file: Option<&str>, out: &mut String) -> fmt::Result {
        let (letter, micros) = (letter(request.kind), request.arrival / 1000);
        let (offset, bytes) = request.in_bytes();
        write!(out, "{},{letter},{offset},{bytes},{micros}", request.owner())
    }
}

#[cfg(test)]
mod tests;
