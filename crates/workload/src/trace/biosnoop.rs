//! Output of biosnoop, of bcc and of libbpf-tools: `TIME(s) COMM PID DISK T SECTOR BYTES [QUE(ms)] LAT(ms)`.
//!
//! A line is printed when a request ends, so its arrival is that time less the latency (of 60 s at most). The
//! operation has one letter or those of the kernel. The name of the disk is the stream, as a hash. Columns are counted
//! from the right, because names of processes may have blanks. Ignored: processes, and the time in
//! the queue of the operating system. bpftrace's `biosnoop.bt` prints neither sectors nor sizes.

use std::fmt::{self, Write};

use super::blkparse::{is_fua, kind_of_letters, letters};
use super::fields::{Fault, Parse, decimal, lost_or, number};
use super::line_format::{Holds, LineFormat, Parsed, Seconds};
use crate::in_order::LONGEST_DISORDER;
use crate::request::{Request, RequestKind};
use crate::volume_names::{VolumeName, VolumeNames};
use palimpsest_flash::units::SECTOR_BYTES;

/// Added to all times, because requests that end first have arrived before time 0.
const BEFORE: u64 = LONGEST_DISORDER;

#[derive(Default)]
pub struct Biosnoop {
    disks: VolumeNames,
}

impl LineFormat for Biosnoop {
    const NAME: &'static str = "biosnoop";
    const ABOUT: &'static str = "biosnoop of bcc: TIME(s) COMM PID DISK T SECTOR BYTES [QUE(ms)] LAT(ms)";
    const HOLDS: Holds = Holds { streams: false, fua: true, ..Holds::BARE };
    const HAS_VOLUMES: bool = true;
    const HEADER: &'static str = "TIME(s)     COMM           PID     DISK    T  SECTOR     BYTES   LAT(ms)\n";

    fn volume_names(&self) -> &[VolumeName] {
        self.disks.all()
    }

    fn parse(&mut self, line: &[u8]) -> Parse<Parsed> {
        if line.trim_ascii_start().starts_with(b"TIME(s)") {
            return Ok(Parsed::Header);
        }
        let blank = |byte: &u8| byte.is_ascii_whitespace();
        let mut words = line.rsplit(blank).filter(|word| !word.is_empty());
        let mut numbers = [&b""[..]; 4];
        let (mut count, mut op) = (0, None);
        for word in words.by_ref() {
            if !word[0].is_ascii_digit() || count == numbers.len() {
                op = Some(word);
                break;
            }
            numbers[count] = word;
            count += 1;
        }
        let (Some(op), 3 | 4) = (op, count) else {
            return Err(lost_or(
                line,
                "expected the columns DISK T SECTOR BYTES [QUE(ms)] LAT(ms) at the end of the line",
            ));
        };
        let disk = words.next().ok_or_else(|| Fault::new("the line ends before column DISK"))?;
        number(words.next().unwrap_or_default(), "PID")?;
        let first = line.split(blank).find(|word| !word.is_empty()).unwrap_or_default();
        let latency = decimal(numbers[0], "LAT(ms)", 6)?.min(LONGEST_DISORDER);
        let Some(time) = decimal(first, "TIME(s)", 9)?.checked_add(BEFORE - latency) else {
            return Err(Fault::column("TIME(s)", "a time below 2^64 ns", first));
        };
        let (sector, bytes) = (number(numbers[count - 1], "SECTOR")?, number(numbers[count - 2], "BYTES")?);
        let stream = self.disks.stream(disk);
        match kind_of_letters(op, bytes)? {
            Some(RequestKind::Flush) => Ok(Parsed::flush(time, stream)),
            Some(kind) if bytes > 0 => {
                let sectors = bytes.div_ceil(SECTOR_BYTES);
                Ok(Parsed::of_sectors(time, kind, sector, sectors, u64::from(stream))?.with_fua(is_fua(op)))
            }
            _ => Ok(Parsed::Skip),
        }
    }

    fn print(&mut self, request: &Request, _file: Option<&str>, out: &mut String) -> fmt::Result {
        let (time, op, (_, bytes)) = (Seconds(request.arrival), letters(request), request.in_bytes());
        write!(out, "{time} palimpsest 0 nvme0n1 {op} {} {bytes} 0.000", request.extent.sector)
    }
}

#[cfg(test)]
mod tests;
