//! Default text output of blkparse(1): `major,minor cpu sequence seconds pid action letters sector + sectors
//! [process]`.
//!
//! A request has several actions. One action is chosen for the whole file, because no request may count twice: issue to
//! the device (`D`) if the head of the file has any, else queueing (`Q`), else completion (`C`). Other actions are
//! skipped. A requeued request counts twice. The summary at the end of blkparse's output ends the trace.
//!
//! Letters (the kernel's `blk_fill_rwbs`, and blkparse): `F` (flush first), then the operation, then marks. `D` is a
//! discard, `DE` a secure discard, `W` a write, `R` a read, `ZA` an append to a zone, which is a write. `F` or `FN`
//! without data is a flush; `F` with data belongs to the following write. `N` (no data) and other commands of zones
//! (`ZR`, `ZRA`, `ZF`, `ZO`, `ZC`) are no requests. `F` behind a write is FUA. Sync, metadata, read-ahead and atomic
//! marks are ignored. The device number (major << 20 | minor, as in Linux) is the stream. With stacked devices in one
//! file a request appears on each device; trace or print one device (`blkparse -i`).

use std::fmt::{self, Write};

use super::fields::{Fault, Fields, Parse, number};
use super::head::Head;
use super::line_format::{Holds, LineFormat, Parsed, Seconds, letter};
use crate::request::{Request, RequestKind};
use crate::volume_names::{VolumeName, VolumeNames};

const ACTIONS_BY_PREFERENCE: &[u8] = b"DQC";

/// A note about the played action, by blkparse's letter.
pub(super) fn note_of_action(letter: u8) -> String {
    let what = match letter {
        b'Q' => "queueing (Q; the head of the file has no issue)",
        b'C' => "completion (C; the head of the file has no issue and no queueing)",
        _ => "issue to the device (D)",
    };
    format!("of the actions of requests, {what} is played; others are skipped")
}

/// Reads the events of one action.
pub struct Blkparse {
    action: u8,
    devices: VolumeNames,
    /// Lines printed so far, for sequence numbers.
    printed: u64,
}

impl Default for Blkparse {
    fn default() -> Self {
        Blkparse { action: ACTIONS_BY_PREFERENCE[0], devices: VolumeNames::default(), printed: 0 }
    }
}

impl LineFormat for Blkparse {
    const NAME: &'static str = "blkparse";
    const ABOUT: &'static str =
        "blkparse text: major,minor cpu sequence seconds pid action RWBS sector + sectors [process]";
    const HOLDS: Holds = Holds { fua: true, ..Holds::BARE };
    const HAS_VOLUMES: bool = true;

    fn prepare(&mut self, head: &Head<'_>) {
        let seen = |action: &&u8| head.lines().any(|(_, line)| action_of(line) == Some(**action));
        self.action = ACTIONS_BY_PREFERENCE.iter().find(seen).copied().unwrap_or(ACTIONS_BY_PREFERENCE[0]);
    }

    fn notes(&self) -> Vec<String> {
        vec![note_of_action(self.action)]
    }

    fn volume_names(&self) -> &[VolumeName] {
        self.devices.all()
    }

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Parse<Parsed> {
        let mut fields = Fields::blank(line);
        let device = fields.text("device")?;
        let stream = match device_number(device) {
            Ok(stream) => self.devices.device(stream),
            Err(_) if line.starts_with(b"CPU") || line.starts_with(b"Total (") => return Ok(Parsed::End),
            Err(fault) => return Err(fault),
        };
        fields.number("cpu")?;
        fields.number("sequence")?;
        let time = fields.decimal("time", 9)?;
        fields.number("pid")?;
        if fields.text("action")? != [self.action] {
            return Ok(Parsed::Skip);
        }
        let letters = fields.text("RWBS")?;
        if letters.contains(&b'N') {
            // Bytes of a command may follow in place of sectors.
            let kind = kind_of_letters(letters, 0)?;
            return Ok(kind.map_or(Parsed::Skip, |_| Parsed::flush(time, stream)));
        }
        let sector = fields.text("sector");
        let Some((sector, sectors)) = extent(sector, &mut fields)? else {
            return match kind_of_letters(letters, 0)? {
                Some(RequestKind::Flush) => Ok(Parsed::flush(time, stream)),
                Some(_) => Err(Fault::new("expected `sector + sectors` after the letters of the request")),
                None => Ok(Parsed::Skip),
            };
        };
        match kind_of_letters(letters, sectors)? {
            Some(RequestKind::Flush) => Ok(Parsed::flush(time, stream)),
            Some(kind) => {
                Ok(Parsed::of_sectors(time, kind, sector, sectors, u64::from(stream))?.with_fua(is_fua(letters)))
            }
            None => Ok(Parsed::Skip),
        }
    }

    fn print(&mut self, request: &Request, _file: Option<&str>, out: &mut String) -> fmt::Result {
        self.printed += 1;
        let (major, minor) = (request.owner() >> 20, request.owner() & ((1 << 20) - 1));
        let (sequence, time, op) = (self.printed, Seconds(request.arrival), letters(request));
        write!(out, "{major:3},{minor:<3} 0 {sequence:8} {time} 0  D {op:>3} ")?;
        match request.kind {
            RequestKind::Flush => out.write_str("[palimpsest]"),
            _ => write!(out, "{} + {} [palimpsest]", request.extent.sector, request.extent.sectors),
        }
    }
}

/// `sector + sectors`; `None` if `[process]` or the end follows directly.
#[inline]
fn extent(sector: Parse<&[u8]>, fields: &mut Fields<'_>) -> Parse<Option<(u64, u64)>> {
    let sector = match sector {
        Ok(text) if !text.starts_with(b"[") && !text.starts_with(b"(") => number(text, "sector")?,
        _ => return Ok(None),
    };
    let plus = fields.text("+")?;
    if plus != b"+" {
        return Err(Fault::column("after the sector", "+", plus));
    }
    Ok(Some((sector, fields.number("sectors")?)))
}

fn action_of(line: &[u8]) -> Option<u8> {
    let mut fields = Fields::blank(line);
    device_number(fields.text("device").ok()?).ok()?;
    for column in ["cpu", "sequence", "time", "pid"] {
        fields.text(column).ok()?;
    }
    match fields.text("action") {
        Ok(&[action]) => Some(action),
        _ => None,
    }
}

/// The stream of a device `major,minor`.
#[inline]
pub fn device_number(text: &[u8]) -> Parse<u32> {
    let mut fields = Fields::separated(text, b',');
    let (major, minor) = (fields.number("major device number")?, fields.number("minor device number")?);
    if major >= 1 << 12 || minor >= 1 << 20 {
        return Err(Fault::column("device", "major,minor below 4096,1048576", text));
    }
    Ok((major << 20 | minor) as u32)
}

/// The kind of blktrace's letters (column RWBS); `None` if neither data nor flush. Letters with `N` are a flush or
/// `None`.
#[inline]
pub fn kind_of_letters(letters: &[u8], sectors: u64) -> Parse<Option<RequestKind>> {
    let known = |byte: &u8| b"RWDFNSMABEVUZOC".contains(byte);
    if letters.is_empty() || !letters.iter().all(known) {
        return Err(Fault::column("operation", "letters of blktrace such as R, W, D, WS or FF", letters));
    }
    if let Some(zone) = letters.iter().position(|&byte| byte == b'Z') {
        return Ok((letters.get(zone + 1) == Some(&b'A') && sectors > 0).then_some(RequestKind::Write));
    }
    let (data, flushes) = (letters.iter().find(|byte| b"RWDE".contains(byte)), letters.contains(&b'F'));
    match data {
        _ if sectors == 0 && flushes => Ok(Some(RequestKind::Flush)),
        _ if letters.contains(&b'N') => Ok(None),
        Some(b'R') => Ok(Some(RequestKind::Read)),
        Some(b'W') => Ok(Some(RequestKind::Write)),
        Some(_) => Ok(Some(RequestKind::Trim)),
        None if flushes => Ok(Some(RequestKind::Flush)),
        None => Ok(None),
    }
}

/// True if the letters of a write have the mark of FUA.
pub fn is_fua(letters: &[u8]) -> bool {
    letters.iter().position(|&byte| byte == b'W').is_some_and(|at| letters[at..].contains(&b'F'))
}

/// blktrace's letters of a request.
pub fn letters(request: &Request) -> String {
    let mark = if request.directives.fua { "F" } else { "" };
    format!("{}{mark}", letter(request.kind))
}

#[cfg(test)]
mod tests;
