//! Load files of blkreplay (Schoebel-Theuer, 1&1): text of any kind, then `seconds ; sector ; sectors ; op ; delay ;
//! duration`.
//!
//! Lines before the first request are header unless they start with a number and contain a semicolon. The operation has
//! blktrace's letters, as in [`blkparse`](super::blkparse): reads (also read-ahead, `RA`), writes, discards and
//! flushes. The two replay times are required and ignored. Stacked devices log a request twice; both count.

use std::fmt::{self, Write};

use super::blkparse::{is_fua, kind_of_letters, letters};
use super::fields::{Fields, Parse};
use super::line_format::{Holds, LineFormat, Parsed, Seconds};
use crate::request::{Request, RequestKind};

#[derive(Default)]
pub struct Blkreplay;

impl LineFormat for Blkreplay {
    const NAME: &'static str = "blkreplay";
    const ABOUT: &'static str = "blkreplay load: header text, then seconds ; sector ; sectors ; R|W ; delay ; duration";
    const IN_BYTES: Option<&'static str> = Some("time=1:s,op=4,offset=2,size=3");
    const HOLDS: Holds = Holds { streams: false, fua: true, ..Holds::BARE };
    const HEADER: &'static str = "start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0\n";

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Parse<Parsed> {
        let mut fields = Fields::separated(line, b';');
        let time = fields.decimal("start", 9)?;
        let sector = fields.number("sector")?;
        let sectors = fields.number("length")?;
        let letters = fields.text("op")?.trim_ascii();
        let kind = kind_of_letters(letters, sectors)?;
        fields.decimal("replay_delay", 9)?;
        fields.decimal("replay_duration", 9)?;
        fields.end("6 columns")?;
        match kind {
            Some(RequestKind::Flush) => Ok(Parsed::flush(time, 0)),
            Some(kind) => Ok(Parsed::of_sectors(time, kind, sector, sectors, 0)?.with_fua(is_fua(letters))),
            None => Ok(Parsed::Skip),
        }
    }

    fn is_header(&self, line: &[u8]) -> bool {
        // A line of columns, any of which begins like a number, is a malformed request.
        let starts_number =
            |field: &[u8]| field.trim_ascii_start().first().is_some_and(|byte| b"-.0123456789".contains(byte));
        !(line.contains(&b';') && line.split(|&byte| byte == b';').any(starts_number))
    }

    fn print(&mut self, request: &Request, _file: Option<&str>, out: &mut String) -> fmt::Result {
        let (start, op) = (Seconds(request.arrival), letters(request));
        write!(out, "{start} ; {} ; {} ; {op} ; 0.0 ; 0.0", request.extent.sector, request.extent.sectors)
    }
}

#[cfg(test)]
mod tests;
