//! Traces of Florida International University (Koller and Rangaswami, "I/O Deduplication", FAST 2010): `ns pid process
//! sector sectors R|W major minor hash`.
//!
//! Process names may hold blanks, so the columns after them are read from the right. The content hash is required and
//! ignored, as is the process; the stream is 0.
//!
//! Some copies contain headers and padding of tar between the lines. If a file starts with a tar header, the bytes of a
//! line up to the last NUL are skipped, and so are lines with an equals sign before the first request (attributes of a
//! PAX header).

use std::fmt::{self, Write};

use super::fields::{Fault, Parse, decimal, number, quoted};
use super::head::Head;
use super::line_format::{Holds, LineFormat, Parsed, kind_of_letter, letter};
use crate::request::Request;

#[derive(Default)]
pub struct Fiu {
    in_tar: bool,
}

impl LineFormat for Fiu {
    const NAME: &'static str = "fiu";
    const ABOUT: &'static str = "FIU IODedup: ns pid process sector sectors R|W major minor hash";
    const HOLDS: Holds = Holds { streams: false, ..Holds::PLAIN };
    const IN_BYTES: Option<&'static str> = Some("time=1:ns,op=6,offset=4,size=5");

    fn prepare(&mut self, head: &Head<'_>) {
        self.in_tar = head.bytes.get(257..262) == Some(b"ustar");
    }

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Parse<Parsed> {
        let noise = line.iter().rposition(|&byte| byte == 0).filter(|_| self.in_tar);
        let line = &line[noise.map_or(0, |last| last + 1)..];
        if line.is_empty() {
            return Ok(Parsed::Skip);
        }
        let (time, rest) = left_column(line, "time")?;
        let time = decimal(time, "time", 0)?;
        let (pid, rest) = left_column(rest, "pid")?;
        number(pid, "pid")?;
        let (rest, _hash) = right_column(rest, "hash")?;
        let (rest, minor) = right_column(rest, "minor")?;
        let (rest, major) = right_column(rest, "major")?;
        let (rest, op) = right_column(rest, "op")?;
        let (rest, sectors) = right_column(rest, "sectors")?;
        let (_process, sector) = right_column(rest, "sector")?;
        number(major, "major")?;
        number(minor, "minor")?;
        let kind = kind_of_letter(op, "op")?;
        Parsed::of_sectors(time, kind, number(sector, "sector")?, number(sectors, "sectors")?, 0)
    }

    fn is_header(&self, line: &[u8]) -> bool {
        self.in_tar && (line.contains(&0) || line.contains(&b'='))
    }

    fn print(&mut self, request: &Request, _file: Option<&str>, out: &mut String) -> fmt::Result {
        let (time, letter) = (request.arrival, letter(request.kind));
        write!(out, "{time} 0 palimpsest {} {} {letter} 0 0 {:032}", request.extent.sector, request.extent.sectors, 0)
    }
}

fn left_column<'a>(line: &'a [u8], column: &str) -> Parse<(&'a [u8], &'a [u8])> {
    split(line, line.iter().position(|&byte| byte == b' '), column)
}

fn right_column<'a>(line: &'a [u8], column: &str) -> Parse<(&'a [u8], &'a [u8])> {
    split(line, line.iter().rposition(|&byte| byte == b' '), column)
}

fn split<'a>(line: &'a [u8], blank: Option<usize>, column: &str) -> Parse<(&'a [u8], &'a [u8])> {
    let too_few = || Fault::new(format!("expected 9 columns, found no column {column} apart from {}", quoted(line)));
    blank.map(|blank| (&line[..blank], &line[blank + 1..])).ok_or_else(too_few)
}

#[cfg(test)]
mod tests;
