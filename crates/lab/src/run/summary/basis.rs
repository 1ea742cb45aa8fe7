//! The conditions of a run in the result, and the busy shares of buses and dies. Ignored: when parts were busy, which
//! the timeline has.

use crate::metrics::basis::{Basis, Busy, Share};
use crate::run::{Session, Utilization, registered};
use palimpsest_flash::units::{Nanos, SECTOR_BYTES};
use palimpsest_ftl::log::streams;
use palimpsest_ftl_api::LayerFigures;

/// Shares of the `simulated` time in which each bus and each die was busy.
pub(super) fn utilization(session: &Session<'_>, simulated: Nanos) -> Utilization {
    let shares = |now: Vec<u64>, before: &[u64]| {
        let busy = now.iter().zip(before).map(|(now, before)| (now - before) as f64);
        busy.map(|busy| (busy / simulated.max(1) as f64).min(1.0)).collect()
    };
    Utilization {
        channels: shares(session.drive.engine.bus_busy(), &session.baseline.bus_busy),
        dies: shares(session.drive.engine.die_busy(), &session.baseline.die_busy),
    }
}

/// The conditions of a run of `simulated` time, `None` at count fidelity; `is_open`: requests have arrival times.
pub(super) fn basis(session: &Session<'_>, simulated: Option<Nanos>, is_open: bool, figures: &LayerFigures) -> Basis {
    let config = &session.config;
    let [spare_blocks, reserved_blocks, open_blocks] = config.spare_blocks();
    let (unit, unit_bytes) = unit(session, figures);
    let busy = simulated.map(|simulated| utilization(session, simulated));
    Basis {
        physical_bytes: config.physical.pages() * u64::from(config.physical.page_bytes()),
        logical_bytes: config.logical_bytes(),
        unit_bytes,
        unit,
        spare_blocks,
        reserved_blocks,
        open_blocks: (!registered(config).zoned).then_some(open_blocks),
        buffer_bytes: config.host.buffer_bytes,
        busy: busy.map(|busy| Busy { channels: Share::of(&busy.channels), dies: Share::of(&busy.dies) }),
        is_open: is_open && config.host.iodepth == 0,
        named: named(session, figures),
    }
}

/// Whether a write named the handle or lifetime by which the layer places data. File systems name lifetimes themselves.
fn named(session: &Session<'_>, figures: &LayerFigures) -> Option<bool> {
    let (settings, named) = (&session.config.ftl, session.tally.named);
    let (has_classifier, reads_identifiers) = streams::classifies(settings);
    let reads_lifetimes = streams::reads_lifetimes(settings) && !registered(&session.config).is_file_system();
    if reads_identifiers || (figures.placement.is_some() && !has_classifier) {
        return Some(named.placement);
    }
    reads_lifetimes.then_some(named.lifetime)
}

/// Name and bytes of the unit that is erased together.
fn unit(session: &Session<'_>, figures: &LayerFigures) -> (&'static str, u64) {
    let (layer, flash) = (&session.config.geometry, &session.config.physical);
    let of_layer = u64::from(layer.pages_per_block) * u64::from(layer.page_bytes());
    if let Some(zones) = &figures.zones {
        return ("zone", zones.size * SECTOR_BYTES);
    }
    let is_joined = layer.blocks() < flash.blocks();
    match (&figures.placement, is_joined) {
        (Some(_), _) => ("reclaim unit", of_layer),
        (None, true) => ("superblock", of_layer),
        (None, false) => ("block", of_layer),
    }
}
