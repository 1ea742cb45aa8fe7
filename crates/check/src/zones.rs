//! A host of drives with zones: turns any request into one that such a drive serves.
//!
//! A write appends to the zone of its first sector, or to the first active zone if no further one may become active. A
//! write to a full zone resets the zone, so that all zones are written again and again. In a zone with a random write
//! area a write is anywhere in the area, or behind it. A trim resets the zone of its first sector, or opens, closes,
//! commits or finishes it. Ignored: several zones in one command.

use palimpsest_lab::command::ZoneAction;
use palimpsest_lab::config::DriveConfig;
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::ftl::zones::{Zone, ZoneState, Zones};
use palimpsest_lab::geometry::{Extent, RequestKind};
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::run::build;
use palimpsest_lab::sim::drive::{Command, Drive};

/// `command` for `drive`: the same, if the drive has no zones.
pub fn legal(drive: &Drive, command: Command) -> Command {
    drive.zones().map_or(command, |zones| legal_for(zones, command))
}

/// `command` for a drive with these zones.
fn legal_for(zones: &Zones, command: Command) -> Command {
    let zone = zones.zone_of(command.extent.sector);
    match command.kind {
        RequestKind::Write => append(zones, zone, command),
        RequestKind::Trim => {
            let action = [0, 0, 0, 0, 1, 2, 3, 1][command.extent.sector as usize / 8 % 8];
            match zones.zone(zone) {
                Zone { random: true, .. } if action != 1 => commit(zones, zone, command),
                Zone { state: ZoneState::Empty, .. } if zones.random() < zones.area.zones => manage(zones, zone, 4),
                _ => manage(zones, zone, action),
            }
        }
        RequestKind::Read | RequestKind::Flush => command,
    }
}

fn append(zones: &Zones, zone: u32, command: Command) -> Command {
    let active = |zone: &u32| zones.zone(*zone).state.is_active();
    let zone = match zones.zone(zone).state {
        ZoneState::Full => return manage(zones, zone, 0),
        ZoneState::Empty if !zones.may_activate() => (0..zones.len()).find(active).expect("an active zone"),
        ZoneState::Empty if zones.random() < zones.area.zones => return manage(zones, zone, 4),
        ZoneState::ReadOnly | ZoneState::Offline => (0..zones.len()).find(active).unwrap_or(zone),
        _ => zone,
    };
    if zones.zone(zone).random {
        return write_area(zones, zone, command);
    }
    let left = (zones.capacity - zones.zone(zone).written).max(zones.block);
    let sectors = u64::from(command.extent.sectors).next_multiple_of(zones.block).min(left) as u32;
    let extent = Extent { sector: u64::from(zone) * zones.size, sectors };
    Command { extent, ..command }.on_zone(ZoneAction::Append)
}

/// A write within the random write area of `zone` and the region behind, as far from the write pointer as `command` is
/// from the zone's start.
fn write_area(zones: &Zones, zone: u32, command: Command) -> Command {
    let written = zones.zone(zone).written;
    let most = (zones.capacity - written).min(2 * zones.area.size);
    let sectors = u64::from(command.extent.sectors).next_multiple_of(zones.block).min(most);
    let place = command.extent.sector % zones.size % (most - sectors + zones.block) / zones.block * zones.block;
    let sector = u64::from(zone) * zones.size + written + place;
    Command { extent: Extent { sector, sectors: sectors as u32 }, ..command }
}

/// The commit of one or more units of the random write area of `zone`.
fn commit(zones: &Zones, zone: u32, command: Command) -> Command {
    let (written, unit) = (zones.zone(zone).written, zones.area.granularity);
    let most = zones.capacity.min(written + zones.area.size);
    let wanted = written + unit * (1 + command.extent.sector % 5);
    let end = (wanted / unit * unit).min(if most == zones.capacity { most } else { most / unit * unit });
    let extent = Extent { sector: u64::from(zone) * zones.size, sectors: end as u32 };
    Command::new(RequestKind::Trim, extent).on_zone(ZoneAction::Commit)
}

fn manage(zones: &Zones, zone: u32, action: usize) -> Command {
    let actions = [ZoneAction::None, ZoneAction::Finish, ZoneAction::Open, ZoneAction::Close, ZoneAction::OpenRandom];
    let action = actions[action];
    let extent = Extent { sector: u64::from(zone) * zones.size, sectors: zones.size as u32 };
    Command::new(RequestKind::Trim, extent).on_zone(action)
}

/// `commands` for the drive of `config` with full zones: the same, if the drive has no zones.
pub fn planned(config: &DriveConfig, entry: &Entry, commands: impl Iterator<Item = Command>) -> Vec<Command> {
    let Some(mut zones) = build::drive(config, entry, Payload::None, 1).zones().cloned() else {
        return commands.collect();
    };
    (0..zones.len()).for_each(|zone| zones.found(zone, zones.capacity));
    let mut all = Vec::new();
    for command in commands {
        let command = legal_for(&zones, command);
        all.push(follow(&mut zones, command));
    }
    all
}

/// Serves `command` on the record of the zones.
fn follow(zones: &mut Zones, command: Command) -> Command {
    let (zone, action) = (zones.zone_of(command.extent.sector), command.directives.zone);
    match command.kind {
        RequestKind::Write => {
            let (Extent { sector, .. }, sectors) = (command.extent, u64::from(command.extent.sectors));
            let random = zones.zone(zone).random;
            if zones.admit_write(sector, sectors, !random).is_ok() {
                let end = sector % zones.size + sectors;
                let moved = if random { zones.implicit_commit(zone, end) } else { sectors };
                zones.advance(zone, zones.zone(zone).written + moved);
            }
        }
        RequestKind::Trim if action == ZoneAction::Commit => {
            let end = u64::from(command.extent.sectors);
            if zones.admit_commit(zone, end).is_ok() {
                zones.advance(zone, end);
            }
        }
        RequestKind::Trim if zones.admit_action(zone, action).is_ok() => match action {
            ZoneAction::None => zones.reset(zone),
            ZoneAction::Finish => zones.advance(zone, zones.capacity),
            _ => {}
        },
        _ => {}
    }
    command
}
