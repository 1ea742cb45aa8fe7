//! Drives with many streams: the data of each placement handle has blocks of its own, through power cuts too.

use crate::drives::{Shape, build_with_spare, of_layer, pick, plain, with};
use crate::harness::{Model, for_each_seed_of, note};
use crate::power::{Cuts, cut_everywhere, workload};
use palimpsest_lab::ftl::{Entry, REGISTRY};
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::rng::Rng;

/// Layers with any number of streams of the host.
fn layers() -> impl Iterator<Item = &'static Entry> {
    let has = |entry: &&Entry| ["ftl.streams", "ftl.classifier"].iter().all(|key| entry.lists(key));
    REGISTRY.iter().filter(has)
}

/// A drive with four to eight streams and a classifier that uses all.
fn draw(entry: &Entry, seed: u64) -> Option<Shape> {
    let mut rng = Rng::new(seed, 0x57e);
    let (streams, least) = (4 + rng.below(5), entry.least_subpages());
    let (planes, spare) = (1 + rng.below(2), streams + 1 + rng.below(3));
    let blocks = spare + 2 + rng.below(3);
    let settings = with(
        &plain(planes as u32, blocks as u32, 4, pick(&mut rng, &[least, 2, 4])),
        &[&format!("buffer.ack={}", pick(&mut rng, &["buffer", "program", "volatile"]))],
    );
    let settings = with(
        &of_layer(entry, &mut rng, &settings),
        &[
            &format!("ftl.streams={streams}"),
            "ftl.classifier=placement",
            &format!("ftl.moved={}", pick(&mut rng, &["together", "class"])),
        ],
    );
    build_with_spare(entry.name, &settings, blocks, spare).ok()
}

#[test]
fn many_streams_survive_a_cut() {
    for_each_seed_of(layers(), "streams::many_streams_survive_a_cut", 4, |entry, seed| {
        let Some(shape) = draw(entry, seed) else { return false };
        cut_everywhere(entry, &shape, seed, 9, |first, _| Cuts { first, in_recovery: vec![], second: None });
        true
    });
}

#[test]
fn many_streams_serve_timed_requests() {
    for_each_seed_of(layers(), "streams::many_streams_serve_timed_requests", 6, |entry, seed| {
        let Some(shape) = draw(entry, seed) else { return false };
        note(&shape.settings);
        let mut model = Model::new(&shape, entry, Payload::Tag, seed);
        model.drive.verify_times(None);
        let commands = workload(&shape, seed, 300);
        let (before, timed) = commands.split_at(commands.len() - 200);
        before.iter().for_each(|&command| model.count(command).expect("room"));
        model.drive.start_timing().expect("room");
        model.run_timed(timed.iter().copied(), 8).expect("a drive that works");
        model.check();
        model.read_back().expect("a drive that works");
        true
    });
}
