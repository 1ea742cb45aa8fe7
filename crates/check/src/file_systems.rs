//! Small drives for file systems as layers, drawn from a seed.

use crate::drives::{self, Drawn, Limits, Shape, build, cells, of_layer, pick, plain, with};
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::rng::Rng;

/// A drive of any shape for any layer; `limits` do not apply to file systems.
pub fn any_shape(entry: &Entry, rng: &mut Rng, limits: Limits, more: &[&str]) -> Drawn<Shape> {
    match entry.below {
        Some(_) => draw_with(entry, rng, 120, more),
        None => drives::draw_with(entry.name, rng, limits, more),
    }
}

/// A drive for a file system: about `blocks` blocks, of which the smaller part is logical space.
pub fn draw(entry: &Entry, rng: &mut Rng, blocks: u64) -> Drawn<Shape> {
    draw_with(entry, rng, blocks, &[])
}

/// As [`draw`], with `more` settings.
pub fn draw_with(entry: &Entry, rng: &mut Rng, blocks: u64, more: &[&str]) -> Drawn<Shape> {
    let (channels, dies, planes) = pick(rng, &[(1, 1, 1), (2, 1, 1), (2, 1, 2), (4, 1, 1), (2, 2, 1), (8, 1, 1)]);
    let subpages = pick(rng, &[1u32, 1, 2, 4]);
    let subpages = subpages.max(entry.least_subpages());
    let base =
        plain(channels, (blocks / u64::from(channels * dies * planes)) as u32, pick(rng, &[8, 16, 32]), subpages);
    let order = pick(rng, &[("slc", "strict"), ("mlc", "strict"), ("mlc", "low-low-high")]);
    let settings = with(
        &base,
        &[
            &format!("ssd.dies_per_chip={dies}"),
            &format!("ssd.planes_per_die={planes}"),
            &format!("part.cell={}", order.0),
            &format!("part.order={}", order.1),
            &format!("ftl.wear_leveling={}", pick(rng, &["none", "dynamic", "static"])),
            "ftl.wear_threshold=2",
            &format!("sim.cache_register={}", pick(rng, &["true", "false"])),
        ],
    );
    let drawn = draw_below(entry, rng, &settings);
    // Another source of random numbers, so that the drives of each seed stay as they were.
    let features = features(entry, &mut Rng::new(rng.clone().next_u64(), 0xfea7));
    build(entry.name, &with(&with(&drawn, &features), more))
}

/// Features of the controller and of the part that some drives have.
fn features(entry: &Entry, rng: &mut Rng) -> Vec<&'static str> {
    let mut features = Vec::new();
    if rng.below(3) == 0 {
        features.extend(READ_ERRORS);
        features.push(pick(rng, &["ecc.disturb_reads=4", "ecc.disturb_reads=15", "ecc.disturb_reads=60"]));
        features.push(pick(rng, &["ecc.refresh_retries=0", "ecc.refresh_retries=1", "ecc.refresh_retries=2"]));
        features.push(pick(rng, &["ftl.patrol=0ns", "ftl.patrol=20ms"]));
        features.extend(cells(&mut Rng::new(rng.clone().next_u64(), 0xce11)));
    }
    if rng.below(3) == 0 {
        features.push(pick(rng, &["controller.read_ahead=1", "controller.read_ahead=3"]));
        features.push(pick(rng, &["controller.read_streams=1", "controller.read_streams=3"]));
    }
    if entry.word_lines && rng.below(4) == 0 {
        features.extend(WORD_LINES);
    } else if entry.takes_parity && rng.below(4) == 0 {
        let of_dies = ["ftl.superblocks=collected", "ftl.superblocks=collected", "ftl.rain=1", "ftl.rain=3"];
        features.push(pick(&mut Rng::new(rng.next_u64(), 0x5b15), &of_dies));
        features.extend(["part.cell=slc", "part.order=strict"]);
    }
    features
}

/// Bit errors that grow with the reads of a block: some reads need retries, some are uncorrectable.
pub const READ_ERRORS: [&str; 4] = [
    "part.ber_fresh=0.05%",
    "ecc.strength=18",
    "ecc.t_retries=[\"50us\", \"90us\"]",
    "ecc.retry_rates=[\"80%\", \"60%\"]",
];

/// Word lines of three pages that are programmed in one shot.
const WORD_LINES: [&str; 8] = [
    "part.cell=tlc",
    "part.order=strict",
    "part.nop=1",
    "part.pages_per_program=3",
    "part.pages_per_block=24",
    "part.pair_corruption=false",
    "part.t_read_high=40us",
    "part.t_program_high=200us",
];

/// Variations of the layer, and of the buffer if the layer has one.
fn draw_below(entry: &Entry, rng: &mut Rng, settings: &[String]) -> Vec<String> {
    let below = entry.below.expect("a file system is above a layer");
    let streams = ["ftl.streams=3", "buffer.timeout=300us"];
    let streams: &[&str] = if below.gathers { &streams } else { &[] };
    let mut drawn = of_layer(entry, rng, &with(settings, streams));
    if below.gathers {
        let classifiers: &[&str] =
            if entry.lists("ftl.classifier") { &["none", "size", "hint", "hint"] } else { &["none", "size"] };
        let classifier = format!("ftl.classifier={}", pick(rng, classifiers));
        drawn = with(&drawn, &[&classifier, &format!("buffer.ack={}", pick(rng, &["buffer", "program"]))]);
    }
    // Another source of random numbers, so that the drives of each seed stay as they were.
    let mut other = Rng::new(rng.clone().next_u64(), 0xb0f);
    if !below.gathers || other.below(4) == 0 {
        drawn = with(&drawn, &[&format!("buffer.ack={}", pick(&mut other, &["buffer", "program", "volatile"]))]);
    }
    let protected = !drawn.iter().any(|set| set == "buffer.ack=program" || set == "buffer.ack=volatile");
    if protected && rng.clone().below(3) == 0 {
        drawn = with(&drawn, &["buffer.flush=free"]);
    }
    if other.below(5) == 0 {
        return with(&drawn, &["ftl.checkpoint=40KiB", "ssd.over_provisioning=500%"]);
    }
    let over_provisioning = format!("ssd.over_provisioning={}%", pick(rng, &[150, 200, 400]));
    with(&drawn, &[&over_provisioning])
}
