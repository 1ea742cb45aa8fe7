//! Requests and failures in words. Ignored: the data, which is different in each write.

use crate::trial::{Failure, Form, Trial};
use palimpsest_lab::command::{Command, ZONE_ACTIONS, ZoneAction};
use palimpsest_lab::geometry::{Geometry, RequestKind};
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::units::SECTOR_BYTES;

/// A size in the largest binary unit that gives at most three decimals.
pub fn bytes(size: u64) -> String {
    match size {
        0 => "0".into(),
        size if size.is_multiple_of(1 << 20) => format!("{} MiB", size >> 20),
        size if size.is_multiple_of(1 << 10) => format!("{} KiB", size >> 10),
        size if size > 1024 => format!("{} KiB", size as f64 / 1024.0),
        size => format!("{size} B"),
    }
}

/// A request: kind, size, offset, logical pages, directives.
pub fn request(command: &Command, geometry: &Geometry) -> String {
    let (kind, directives) = (command.kind, &command.directives);
    let kind_name = match kind {
        RequestKind::Read => "read",
        RequestKind::Write => "write",
        RequestKind::Trim => "trim",
        RequestKind::Flush => "flush",
    };
    let action = ZONE_ACTIONS.iter().find(|(_, action)| *action == directives.zone).map(|(name, _)| *name);
    let verb = match (kind, directives.zone) {
        (RequestKind::Flush, _) => {
            return if directives.updates { format!("update handle {}", directives.placement) } else { "flush".into() };
        }
        (RequestKind::Trim, ZoneAction::None) | (_, ZoneAction::None) => kind_name.to_owned(),
        (RequestKind::Trim, _) => format!("{} the zone of", action.unwrap_or("manage")),
        _ => format!("{} to the zone of", action.unwrap_or("manage")),
    };
    let size = u64::from(geometry.page_bytes()) / SECTOR_BYTES;
    let (first, end) = (command.extent.sector, command.extent.end());
    let (page, last) = (first / size, end.div_ceil(size).saturating_sub(1));
    let pages = if page == last { format!("page {page}") } else { format!("pages {page} to {last}") };
    let whole = if first.is_multiple_of(size) && end.is_multiple_of(size) { "" } else { ", in part" };
    let fua = if directives.fua { ", FUA" } else { "" };
    let placed = if directives.placed { format!(", placement {:#x}", directives.placement) } else { String::new() };
    let sectors = u64::from(command.extent.sectors);
    format!("{verb} {} at {} ({pages}{whole}){fua}{placed}", bytes(sectors * SECTOR_BYTES), bytes(first * SECTOR_BYTES))
}

/// The form of the run.
pub fn form(trial: &Trial) -> String {
    let contents = if trial.payload == Payload::Bytes { "contents of bytes" } else { "contents of tags" };
    let form = match &trial.form {
        Form::Counted { .. } => "without time, one request after the other".into(),
        Form::Timed { counted, depth } => timed(*counted, *depth),
        Form::TimedCut { counted, depth, cut } => {
            let cut = cut.map_or(String::new(), |cut| format!(", power cut in flash operation {cut}"));
            format!("{}{cut}", timed(*counted, *depth))
        }
        Form::Cut(cuts) if cuts.first == u64::MAX => "without time, one request after the other".into(),
        Form::Cut(cuts) => {
            let again = cuts.in_recovery.iter().map(|after| format!(", again after {after} operations of recovery"));
            let second = cuts.second.map_or(String::new(), |after| format!(", and {after} operations later"));
            format!("power cut in flash operation {}{}{second}", cuts.first, again.collect::<String>())
        }
        Form::Idle { .. } => "timed, with idle times between groups of four requests".into(),
        Form::Kept => "a run from a kept state after one that makes the state".into(),
    };
    format!("{form}; {contents}; seed of the drive {}", trial.seed)
}

fn timed(counted: usize, depth: u32) -> String {
    let first = if counted > 0 { format!(" after the first {counted} requests") } else { String::new() };
    format!("timed{first}, {depth} in flight")
}

/// The requests up to the failure, numbered, with power cuts and up to `most` flash operations of the last ones.
pub fn history(trial: &Trial, failure: &Failure, most: usize) -> Vec<String> {
    let geometry = &trial.shape.drive.geometry;
    let steps = &failure.story.steps;
    if steps.is_empty() {
        let commands = trial.commands.iter().enumerate();
        return commands.map(|(index, command)| format!("{}. {}", index + 1, request(command, geometry))).collect();
    }
    let oldest = failure.recorded - failure.flash.len() as u64;
    let shown = failure.recorded.saturating_sub(most as u64).max(oldest);
    let is_timed = matches!(trial.form, Form::Timed { .. } | Form::TimedCut { .. });
    let mut lines = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let is_own = step.number >= trial.commands.len();
        let number = if is_own { "at the end:".into() } else { format!("{}.", step.number + 1) };
        lines.push(format!("{number} {}", request(&step.command, geometry)));
        let end = steps.get(index + 1).map_or(failure.recorded, |next| next.recorded);
        for operation in step.recorded.max(shown)..end {
            let is_cut = step.cuts.contains(&(operation + 1));
            let cut = if is_cut { "   <- the power fails" } else { "" };
            lines.push(format!("     {}{cut}", failure.flash[(operation - oldest) as usize]));
        }
        let earlier = step.cuts.iter().filter(|&&cut| cut <= shown).count();
        if earlier > 0 {
            let times = if earlier == 1 { String::new() } else { format!(", {earlier} times") };
            lines.push(format!("     the power fails{times}"));
        }
    }
    if let Form::Cut(cuts) = &trial.form
        && cuts.first < u64::MAX
        && steps.iter().all(|step| step.cuts.is_empty())
    {
        lines.push(format!(
            "     the power fails in flash operation {}; no call of the layer returned the halt",
            cuts.first
        ));
    }
    if is_timed {
        lines.push("     (planned operations; several requests may be in flight)".into());
    }
    lines
}
