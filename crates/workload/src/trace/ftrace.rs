//! Events of the kernel's block layer as text: ftrace (`trace`, `trace_pipe`), `trace-cmd report` and `perf script`:
//! `process [cpu] seconds: [block:]block_rq_issue: major,minor letters [bytes (command)] sector + sectors [process]`.
//!
//! A request has several events. One kind of event is chosen for the whole file, because no request may count twice:
//! issue to the device if the head of the file has any, else the first of the queue, insertion and completion. Other
//! events, of other subsystems too, are skipped; lost events are an error. Letters and device numbers are those of
//! [`blkparse`](super::blkparse).

use std::fmt::{self, Write};

use super::blkparse::{device_number, is_fua, kind_of_letters, letters};
use super::fields::{Fields, Parse, decimal, lost_or, number};
use super::head::Head;
use super::line_format::{Holds, LineFormat, Parsed, Seconds};
use crate::request::{Request, RequestKind};
use crate::volume_names::{VolumeName, VolumeNames};

const BY_PREFERENCE: [&str; 5] =
    ["block_rq_issue", "block_bio_queue", "block_rq_insert", "block_rq_complete", "block_bio_complete"];

/// Reads the events of one kind.
pub struct Ftrace {
    event: &'static str,
    devices: VolumeNames,
}

impl Default for Ftrace {
    fn default() -> Self {
        Ftrace { event: BY_PREFERENCE[0], devices: VolumeNames::default() }
    }
}

/// Time, name and content of an event.
struct Event<'a> {
    time: &'a [u8],
    name: &'a [u8],
    content: &'a [u8],
}

/// The event of a line: the first word that ends in a colon and follows a time that does.
fn event(line: &[u8]) -> Option<Event<'_>> {
    let mut words = line.split_inclusive(|&byte| byte == b' ' || byte == b'\t');
    let (mut time, mut at) = (None, 0);
    words.find_map(|word| {
        at += word.len();
        let name = word.trim_ascii_end().strip_suffix(b":");
        match (name, time) {
            (Some(name), Some(time)) if !name.is_empty() => {
                let name = name.strip_prefix(b"block:").unwrap_or(name);
                return Some(Event { time, name, content: &line[at..] });
            }
            (Some(name), _) => time = Some(name).filter(|name| decimal(name, "time", 9).is_ok()),
            (None, _) if !word.trim_ascii().is_empty() => time = None,
            (None, _) => {}
        }
        None
    })
}

impl LineFormat for Ftrace {
    const NAME: &'static str = "ftrace";
    const ALIASES: &'static [&'static str] = &["perf", "trace-cmd"];
    const ABOUT: &'static str = "block events of ftrace, trace-cmd or perf script: \
                                 process [cpu] seconds: block_rq_issue: major,minor RWBS bytes () sector + sectors";
    const HOLDS: Holds = Holds { fua: true, ..Holds::BARE };
    const HAS_VOLUMES: bool = true;

    fn prepare(&mut self, head: &Head<'_>) {
        let seen =
            |name: &&&str| head.lines().any(|(_, line)| event(line).is_some_and(|event| event.name == name.as_bytes()));
        self.event = BY_PREFERENCE.iter().find(seen).copied().unwrap_or(BY_PREFERENCE[0]);
    }

    fn notes(&self) -> Vec<String> {
        vec![format!("of the events of requests, {} is played; others are skipped", self.event)]
    }

    fn volume_names(&self) -> &[VolumeName] {
        self.devices.all()
    }

    fn parse(&mut self, line: &[u8]) -> Parse<Parsed> {
        let Some(event) = event(line) else {
            return Err(lost_or(line, "expected `seconds: event:` in the line"));
        };
        if event.name != self.event.as_bytes() {
            return Ok(Parsed::Skip);
        }
        let time = decimal(event.time, "time", 9)?;
        let mut fields = Fields::blank(event.content);
        let stream = self.devices.device(device_number(fields.text("device")?)?);
        let letters = fields.text("RWBS")?;
        // Bytes and a command in brackets precede the sector in events of requests, the number of an error follows.
        let (mut sector, mut word) = (&b""[..], fields.text("sector")?);
        while word != b"+" {
            sector = word;
            word = fields.text("sector + sectors")?;
        }
        let sectors = fields.number("sectors")?;
        match kind_of_letters(letters, sectors)? {
            Some(RequestKind::Flush) => Ok(Parsed::flush(time, stream)),
            Some(kind) if sectors > 0 => {
                let sector = number(sector, "sector")?;
                Ok(Parsed::of_sectors(time, kind, sector, sectors, u64::from(stream))?.with_fua(is_fua(letters)))
            }
            _ => Ok(Parsed::Skip),
        }
    }

    fn is_header(&self, line: &[u8]) -> bool {
        event(line).is_none()
    }

    fn print(&mut self, request: &Request, _file: Option<&str>, out: &mut String) -> fmt::Result {
        let (major, minor) = (request.owner() >> 20, request.owner() & ((1 << 20) - 1));
        let (time, op, (_, bytes)) = (Seconds(request.arrival), letters(request), request.in_bytes());
        let (sector, sectors) = (request.extent.sector, request.extent.sectors);
        write!(
            out,
            "palimpsest-0 [000] {time}: block_rq_issue: {major},{minor} {op} {bytes} () {sector} + {sectors} [-]"
        )
    }
}

#[cfg(test)]
mod tests;
