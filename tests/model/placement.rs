//! Adversarial placement: workloads that give one plane nothing but cold data.

use crate::drives::{build_with_spare, needed, plain, with};
use crate::harness::{Model, for_each_seed, note};
use palimpsest_lab::geometry::{Extent, RequestKind};
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::rng::Rng;
use palimpsest_lab::sim::drive::Command;

/// Every `stride`-th write is new and never written again, the others go round a few hot pages: with as many planes as
/// `stride`, one plane gets the cold writes only.
#[test]
fn cold_data_in_one_plane_leaves_room() {
    for_each_seed("placement::cold_data_in_one_plane_leaves_room", 48, |entry, seed| {
        let mut rng = Rng::new(seed, 0xc01d);
        let planes = [2, 3, 4][(seed % 3) as usize];
        let streams = 1 + rng.below(3);
        let (blocks, pages, subpages) =
            (streams + 3 + rng.below(6), [4, 8][rng.below(2) as usize], [1, 4][rng.below(2) as usize]);
        let spare = streams + 1;
        let subpages = subpages.max(entry.least_subpages());
        let settings = with(
            &plain(planes, blocks as u32, pages, subpages),
            &[
                &format!("ftl.streams={streams}"),
                &format!(
                    "ftl.allocation={}",
                    ["static", "channel", "round-robin", "least-loaded"][rng.below(4) as usize]
                ),
                &format!("ftl.victim={}", ["greedy", "fifo", "d-choices:2", "cost-benefit"][rng.below(4) as usize]),
                &format!("ftl.wear_leveling={}", ["dynamic", "static"][rng.below(2) as usize]),
                "ftl.wear_threshold=2",
                &format!("buffer.ack={}", ["buffer", "program"][rng.below(2) as usize]),
            ],
        );
        // A separate generator, so that other draws do not depend on these.
        let own = &mut Rng::new(seed, 0x11c0);
        let pace = ["ftl.gc_pace=block", "ftl.gc_pace=paced"][own.below(2) as usize];
        let mut changes =
            if streams == 3 { vec![pace, "ftl.moved=cold", "ftl.classifier=recency"] } else { Vec::new() };
        changes.extend((own.below(4) == 0).then_some("ftl.allocation=unit"));
        let settings = needed(entry, &with(&settings, &changes));
        let Ok(shape) = build_with_spare(entry.name, &settings, blocks, spare) else { return false };
        note(&shape.settings);
        let mut model = Model::new(&shape, entry, Payload::Tag, seed);
        let sectors = subpages * 8;
        let logical = shape.drive.logical_pages();
        let stride = u64::from(planes) * [1, 1, 2][rng.below(3) as usize];
        let hot = (1 + rng.below(3)).min(logical / 2);
        let (mut next_cold, mut turn) = (hot, 0u64);
        while next_cold < logical || turn < 40 * logical {
            let page = if turn % stride == seed % stride && next_cold < logical {
                next_cold += 1;
                next_cold - 1
            } else {
                turn % hot
            };
            turn += 1;
            let extent = Extent { sector: page * u64::from(sectors), sectors };
            let command = Command::new(RequestKind::Write, extent);
            model.count(command).unwrap_or_else(|error| panic!("write {turn} of page {page}: {error}"));
            if turn % 16 == 0 {
                model.check();
            }
        }
        model.read_back().unwrap_or_else(|error| panic!("at the end: {error}"));
        true
    });
}
