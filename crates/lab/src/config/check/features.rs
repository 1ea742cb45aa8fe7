//! Checks of features of the controller and of layers: read errors, faults, superblocks, the write buffer.

use super::{Fit, entry_of};
use crate::config::DriveConfig;
use crate::layers::layers;
use palimpsest_flash::keys::Value;
use palimpsest_flash::units::parse::format_bytes;
use palimpsest_ftl::layers::mga::admission;
use palimpsest_ftl::log::settings::Allocation;
use palimpsest_ftl_api::refuse_if;
use palimpsest_sim::faults::{FAULTS, Proposal};
use palimpsest_workload::settings::Acknowledge;

/// Each step of a retry must have a time and a rate, and a patrol needs read errors.
pub(super) fn read_errors(drive: &DriveConfig) -> Fit {
    let errors = &drive.errors;
    refuse_if!(errors.retries.len() != errors.retry_rates.len() => "ecc.t_retries", "ecc.retry_rates";
        "expected a time and a rate for each step");
    refuse_if!(drive.log.patrol > 0 && errors.strength == 0 => "ftl.patrol", "ecc.strength"
        => ["ecc.strength" = "40"], ["ftl.patrol" = "0ns"]; "a patrol looks for read errors");
    Ok(())
}

/// Each fault checks the drive.
pub(super) fn faults(drive: &DriveConfig) -> Fit {
    let proposal = Proposal {
        settings: &drive.ftl,
        dies: drive.physical.dies(),
        layer: entry_of(drive),
        kept_blocks: drive.kept_blocks(),
        layers: &layers().collect::<Vec<_>>(),
    };
    FAULTS.iter().try_for_each(|fault| (fault.check)(&proposal))
}

/// Superblocks must divide the dies evenly, and their planes must take turns.
pub(super) fn superblocks(drive: &DriveConfig) -> Fit {
    // With parity, a group of dies counts as one.
    let parity = drive.stripes.is_some_and(|shape| shape.parity);
    let of = if parity { drive.geometry.dies() } else { drive.physical.dies() };
    if drive.log.superblock_dies == 0 {
        return Ok(());
    }
    refuse_if!(!of.is_multiple_of(drive.log.superblock_dies)
        => "ftl.superblock_dies", "ssd.channels", "ssd.chips_per_channel", "ssd.dies_per_chip";
        "the drive has {of} dies; expected a number that divides it, or 0");
    refuse_if!(drive.log.allocation != Allocation::RoundRobin => "ftl.superblock_dies", "ftl.allocation"
        => ["ftl.allocation" = "round-robin"], ["ftl.superblock_dies" = "0"]; "planes of a superblock take turns");
    Ok(())
}

/// Namespaces with dies of their own must have whole dies, and all of them.
pub(super) fn namespaces(drive: &DriveConfig) -> Fit {
    if drive.log.allocation != Allocation::Namespace || !entry_of(drive).lists("ftl.allocation") {
        return Ok(());
    }
    let (dies, shares) = (drive.geometry.dies(), &drive.namespaces);
    refuse_if!(shares.0.is_empty() || entry_of(drive).is_file_system() => "ftl.allocation", "ssd.namespaces"
        => ["ssd.namespaces" = "50%:50%"]; "dies belong to namespaces, below no file system");
    let mixes = !entry_of(drive).lists("ftl.gc_pace") || entry_of(drive).lists("ftl.log_fraction");
    refuse_if!(mixes => "ftl.allocation", "ftl.name";
        "this layer programs pages with data of several namespaces; expected another layer, or another allocation");
    refuse_if!(shares.ends_of_dies(dies).is_none() => "ssd.namespaces", "ftl.allocation";
        "each namespace has dies of its own, and the layer writes to {dies}; expected shares of whole dies that add up \
         to 100%");
    Ok(())
}

/// Policies outside need one place of decision, and requests of the host.
pub(super) fn outside(drive: &DriveConfig) -> Fit {
    let entry = entry_of(drive);
    let is_placed = drive.log.allocation == Allocation::Outside && entry.lists("ftl.allocation");
    refuse_if!(is_placed && entry.lists("ftl.log_fraction") => "ftl.allocation", "ftl.name";
        "this layer places pages and subpages apart; expected a built-in allocation, or another layer");
    let admits = matches!(drive.ftl.value(admission::OUTSIDE.key), Value::Text(_));
    refuse_if!(admits && entry.is_file_system() && entry.lists(admission::OUTSIDE.key)
        => "ftl.allocation_threshold", "ftl.name";
        "such a policy gets requests of the host, not writes of a file system; expected a percentage");
    Ok(())
}

/// The buffer must hold a program, and a free flush needs a protected one.
pub(super) fn buffer(drive: &DriveConfig) -> Fit {
    let acknowledge = drive.host.acknowledge;
    refuse_if!(drive.host.flush_is_free && acknowledge != Acknowledge::Buffer => "buffer.flush", "buffer.ack"
        => ["buffer.ack" = "buffer"], ["buffer.flush" = "programs"]; "only a protected buffer makes a flush free");
    let is_small = drive.host.buffer_bytes < u64::from(drive.part.page_bytes);
    let page = format_bytes(drive.part.page_bytes.into());
    refuse_if!(is_small && drive.part.pages_per_program > 1
        => "buffer.size", "part.page_size", "part.pages_per_program" => ["buffer.size" = &page];
        "the write buffer must hold at least one word line");
    refuse_if!(is_small => "buffer.size", "part.page_size" => ["buffer.size" = &page];
        "the write buffer must hold at least one page");
    Ok(())
}
