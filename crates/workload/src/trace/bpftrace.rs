//! Lines that a one-liner of bpftrace prints for each request: `nanoseconds device letters sector sectors`, by
//! `bpftrace -e 'tracepoint:block:block_rq_issue { printf("%llu %d %s %llu %d\n", nsecs, args.dev, args.rwbs,
//! args.sector, args.nr_sector); }'`.
//!
//! The device is the kernel's number (major << 20 | minor) and the stream; letters are those of
//! [`blkparse`](super::blkparse). `Attaching 1 probe...` and other lines before the first request are header. Other
//! orders of columns are for `--columns`; bpftrace's own `biosnoop.bt` prints neither sectors nor sizes.

use std::fmt::{self, Write};

use super::blkparse::{is_fua, kind_of_letters, letters};
use super::fields::{Fault, Fields, Parse, is_of_loss, lost_or};
use super::line_format::{Holds, LineFormat, Parsed};
use crate::request::{Request, RequestKind};
use crate::volume_names::{VolumeName, VolumeNames};

#[derive(Default)]
pub struct Bpftrace {
    devices: VolumeNames,
}

impl LineFormat for Bpftrace {
    const NAME: &'static str = "bpftrace";
    const ABOUT: &'static str = "bpftrace of block_rq_issue: nsecs args.dev args.rwbs args.sector args.nr_sector";
    const HOLDS: Holds = Holds { fua: true, ..Holds::BARE };
    const HAS_VOLUMES: bool = true;
    const HEADER: &'static str = "Attaching 1 probe...\n";

    fn volume_names(&self) -> &[VolumeName] {
        self.devices.all()
    }

    fn parse(&mut self, line: &[u8]) -> Parse<Parsed> {
        let mut fields = Fields::blank(line);
        let time = fields.number("nsecs").map_err(|fault| lost_or(line, &fault.what))?;
        let device = fields.number("dev")?;
        let device = u32::try_from(device)
            .map_err(|_| Fault::column("dev", "a number below 2^32", device.to_string().as_bytes()))?;
        self.devices.device(device);
        let letters = fields.text("rwbs")?;
        let (sector, sectors) = (fields.number("sector")?, fields.number("nr_sector")?);
        fields.end("5 columns")?;
        match kind_of_letters(letters, sectors)? {
            Some(RequestKind::Flush) => Ok(Parsed::flush(time, device)),
            Some(kind) if sectors > 0 => {
                Ok(Parsed::of_sectors(time, kind, sector, sectors, u64::from(device))?.with_fua(is_fua(letters)))
            }
            _ => Ok(Parsed::Skip),
        }
    }

    fn is_header(&self, line: &[u8]) -> bool {
        !line.first().is_some_and(u8::is_ascii_digit) && !is_of_loss(line)
    }

    fn print(&mut self, request: &Request, _file: Option<&str>, out: &mut String) -> fmt::Result {
        let (op, extent) = (letters(request), request.extent);
        write!(out, "{} {} {op} {} {}", request.arrival, request.owner(), extent.sector, extent.sectors)
    }
}

#[cfg(test)]
mod tests;
