//! Small drives of every shape, drawn from a seed and built through the configuration, so that tests cover only drives
//! that users can configure.

use palimpsest_lab::config::{DriveConfig, resolve};
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::geometry::Geometry;
use palimpsest_lab::host::find_layer;
use palimpsest_lab::log::victim::POLICIES;
use palimpsest_lab::nand::part::ReadMode;
use palimpsest_lab::plan::checkpoint::Contents;
use palimpsest_lab::rng::Rng;

/// Blocks of a plane at most, where the over-provisioning is given.
pub const MOST_BLOCKS: u64 = 24;

/// A drawn value, or why the layer or the configuration refuses the draw.
pub type Drawn<T> = Result<T, String>;

/// A drive and its settings, for messages.
#[derive(Clone)]
pub struct Shape {
    pub drive: DriveConfig,
    pub settings: Vec<String>,
}

/// Bounds of the drawn drive.
#[derive(Clone, Copy)]
pub struct Limits {
    /// Physical subpages at the most, approximately: a plane has at least the blocks that the layer needs.
    pub subpages: u64,
    pub planes: u64,
}

/// A random element of `choices`.
pub fn pick<T: Copy>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.below(choices.len() as u64) as usize]
}

/// The drive that `settings` describe, or why there is none.
pub fn build(ftl: &str, settings: &[String]) -> Drawn<Shape> {
    let resolved = resolve("model.toml", Some(ftl), settings, &|_| Ok(String::new()));
    let drive = resolved.map_err(|error| error.to_string())?.drive;
    Ok(Shape { drive, settings: settings.to_vec() })
}

/// `settings` with `blocks` in a plane, of which `spare` are spare when the drive is full. Adds the blocks that the
/// layer reserves.
pub fn build_with_spare(ftl: &str, settings: &[String], blocks: u64, spare: u64) -> Drawn<Shape> {
    let sized = |more: u64| {
        let over_provisioning = ((spare + more) as f64 / (blocks - spare) as f64 * 1e7).ceil() / 1e5;
        let blocks = format!("ssd.blocks_per_plane={}", blocks + more);
        with(settings, &[&blocks, &format!("ssd.over_provisioning={over_provisioning}%")])
    };
    let entry = entry(ftl);
    // A plain layer on the same part.
    let shot = settings.iter().any(|setting| setting.starts_with("part.pages_per_program="));
    let plain = if shot && entry.word_lines { "subpage" } else { "page" };
    let without = ["part.pair_corruption=false", "ftl.checkpoint=0B", "ftl.slc_fixed=0 blocks", "ftl.slc_full=direct"];
    let mut drive = build(plain, &with(&sized(0), &without))?.drive;
    let fixed = settings.iter().find_map(|setting| setting.strip_prefix("ftl.slc_fixed=")?.strip_suffix(" blocks"));
    let fixed = fixed.map_or(0, |blocks| blocks.parse().expect("a number of blocks"));
    drive.part.pair_corruption = settings.iter().any(|setting| setting == "part.pair_corruption=true");
    let mut more = 0;
    loop {
        let geometry = Geometry { blocks_per_plane: (blocks + more) as u32, ..drive.geometry };
        let subpages = geometry.pages() * u64::from(geometry.subpages_per_page);
        let is_set = settings.iter().any(|setting| setting.starts_with("ftl.checkpoint="));
        let tables = (entry.tables)(&drive.ftl, &geometry, subpages);
        let contents = Contents { tables, programs: entry.programs };
        let tables = if is_set { contents.kept_blocks(&geometry) } else { 0 };
        let kept = drive.part.kept_blocks() + tables + fixed;
        match u64::from((entry.reserved)(&drive.ftl, &geometry) + kept) {
            kept if kept > more => more = kept,
            _ => return build(ftl, &sized(more)),
        }
    }
}

/// As [`build_with_spare`] of `settings` changed by `more`, unless `more` fixes the blocks of a plane or the
/// over-provisioning: then the drive has these.
pub fn build_in(ftl: &str, settings: &[String], more: &[&str], blocks: u64, spare: u64) -> Drawn<Shape> {
    let all = with(settings, more);
    let fixed = |key: &str| more.iter().rev().find_map(|setting| setting.strip_prefix(key)?.strip_prefix('='));
    match (fixed("ssd.blocks_per_plane"), fixed("ssd.over_provisioning")) {
        (None, None) => build_with_spare(ftl, &all, blocks, spare),
        (Some(blocks), None) => match blocks.parse() {
            Ok(blocks) if blocks > spare => build_with_spare(ftl, &all, blocks, spare),
            _ => Err(format!("ssd.blocks_per_plane = {blocks}: expected more than {spare}, the spare blocks")),
        },
        (Some(_), Some(_)) => build(ftl, &all),
        (None, Some(_)) => {
            // The fewest blocks of which the over-provisioning leaves the layer enough.
            let sized = |blocks: u64| build(ftl, &with(&all, &[&format!("ssd.blocks_per_plane={blocks}")]));
            let enough = |shape: &Shape| {
                let geometry = &shape.drive.geometry;
                let least = spare * u64::from(geometry.pages_per_block * geometry.planes());
                geometry.pages() - shape.drive.logical_pages() >= least
            };
            let mut refusal = format!("the over-provisioning leaves no {spare} spare blocks of {MOST_BLOCKS} a plane");
            for blocks in spare + 1..=MOST_BLOCKS {
                match sized(blocks) {
                    Ok(shape) if enough(&shape) => return Ok(shape),
                    Ok(_) => {}
                    Err(error) => refusal = error,
                }
            }
            Err(refusal)
        }
    }
}

/// Settings of a small plain drive, a base for later changes.
pub fn plain(channels: u32, blocks: u32, pages: u32, subpages: u32) -> Vec<String> {
    let page_bytes = subpages * 4096;
    let spread: Vec<String> = (1..=page_bytes / 2048).map(|words| format!("\"{}us\"", 20 + 2 * words)).collect();
    [
        format!("ssd.channels={channels}"),
        format!("ssd.blocks_per_plane={blocks}"),
        format!("part.pages_per_block={pages}"),
        format!("part.page_size={page_bytes}B"),
        "part.cell=slc".into(),
        "part.t_read=40us".into(),
        format!("part.t_read_words=[{}]", spread.join(", ")),
        "part.t_program=200us".into(),
        "part.t_erase=2ms".into(),
        "part.t_command=1us".into(),
        "part.bus_rate=400MB/s".into(),
    ]
    .into()
}

/// `base` with `changes`, which name each key once: the later setting of a key counts.
pub fn with(base: &[String], changes: &[&str]) -> Vec<String> {
    let key = |setting: &str| setting.split('=').next().unwrap_or_default().to_owned();
    let changed: Vec<String> = changes.iter().map(|change| key(change)).collect();
    let kept = base.iter().filter(|setting| !changed.contains(&key(setting))).cloned();
    kept.chain(changes.iter().map(|&change| change.to_owned())).collect()
}

/// Draws a drive.
///
/// # Errors
/// The reason why the layer or the configuration refuses the settings.
pub fn draw(ftl: &str, rng: &mut Rng, limits: Limits) -> Drawn<Shape> {
    draw_with(ftl, rng, limits, &[])
}

/// As [`draw`], with `more` settings.
///
/// # Errors
/// As [`draw`].
pub fn draw_with(ftl: &str, rng: &mut Rng, limits: Limits, more: &[&str]) -> Drawn<Shape> {
    let mut settings = Vec::new();
    let mut set = |key: &str, value: String| settings.push(format!("{key}={value}"));
    let (channels, chips, dies, planes) = topology(rng, limits.planes);
    set("ssd.channels", channels.to_string());
    set("ssd.chips_per_channel", chips.to_string());
    set("ssd.dies_per_chip", dies.to_string());
    set("ssd.planes_per_die", planes.to_string());
    let all_planes = channels * chips * dies * planes;

    let streams = 1 + rng.below(3);
    let entry = entry(ftl);
    let subpages = pick(rng, &[1u64, 1, 2, 4, 4, 8, 64]).max(entry.least_subpages().into());
    let subpage_bytes = if subpages == 64 { 512 } else { pick(rng, &[512u64, 1024, 4096]) };
    let page_bytes = subpages * subpage_bytes;
    let pages = pick(rng, &[4u64, 4, 6, 8, 16, 32, 64]);
    let room = limits.subpages / (all_planes * pages * subpages);
    let open = if entry.hot_and_cold { streams.max(2) } else { streams };
    let spare = open + 1 + pick(rng, &[0, 0, 0, 1, 2, 6]);
    let blocks = (spare + 1 + rng.below(4)).max(spare + rng.below(room.saturating_sub(spare).clamp(1, 40)));
    set("part.pages_per_block", pages.to_string());
    set("part.page_size", format!("{page_bytes}B"));
    set("part.subpage_size", format!("{subpage_bytes}B"));
    draw_part(rng, &mut set);
    draw_reads(entry, rng, page_bytes, &mut set);
    draw_layer(rng, streams, spare, &mut set);
    draw_engine(rng, page_bytes, &mut set);
    let settings = of_layer(entry, rng, &settings);
    // Namespaces with dies of their own only where `more` leaves room for them.
    let built = |apart: bool| {
        let settings = with_controller(entry, &settings, apart);
        build_in(ftl, &settings, more, blocks, spare)
    };
    built(true).or_else(|_| built(false))
}

/// `settings` with a pace of collection. Some drives also get a controller that takes time, a volatile buffer,
/// superblocks or a fast cache, and if `apart` namespaces with dies of their own.
fn with_controller(entry: &Entry, settings: &[String], apart: bool) -> Vec<String> {
    // A separate generator, so that other draws do not depend on these.
    let text = settings.concat();
    let seed = text.bytes().fold(0, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let rng = &mut Rng::new(seed, 0xc7);
    let mut changes = vec![pick(rng, &["ftl.gc_pace=block", "ftl.gc_pace=paced", "ftl.gc_pace=paced"])];
    if rng.below(3) == 0 {
        changes.extend([
            "host.t_link=700ns",
            "controller.iops=300000",
            "controller.t_read=9us",
            "controller.t_write=4us",
        ]);
        changes.extend(["controller.t_end=3us", "buffer.t_write=5us", "buffer.t_write_next=500ns"]);
        if Rng::new(seed, 0x10b5).below(3) == 0 {
            changes.push("controller.write_iops=50000");
        }
    }
    let own = &mut Rng::new(seed, 0x9e5);
    if own.below(4) == 0 {
        changes.push(pick(own, &["controller.commands=1", "controller.commands=2", "controller.commands=7"]));
        changes.push(pick(own, &["host.burst=1", "host.burst=4", "host.burst=0"]));
        if own.below(2) == 0 {
            changes.extend(["host.arbitration=weighted", "host.queues=2"]);
        }
    }
    let own = &mut Rng::new(seed, 0xb57);
    if changes[0] == "ftl.gc_pace=paced" && entry.lists("ftl.gc_burst") && own.below(4) == 0 {
        changes.push(pick(own, &["ftl.gc_burst=1", "ftl.gc_burst=3"]));
    }
    if settings.iter().any(|own| own == "sim.suspend=program-erase") && own.below(3) == 0 {
        changes.push(pick(own, &["sim.suspend_pulse=30us", "sim.suspend_pulse=400us"]));
    }
    if rng.below(4) == 0 {
        changes.push("buffer.ack=volatile");
    }
    // Policies of the registry that the draws above do not name.
    let own = &mut Rng::new(seed, 0x71c);
    let victims: Vec<_> = POLICIES.iter().map(|policy| format!("ftl.victim={}", policy.name)).collect();
    if own.below(5) == 0 && entry.lists("ftl.victim") {
        changes.push(&victims[own.below(victims.len() as u64) as usize]);
    }
    if rng.below(4) == 0 {
        changes.extend(["ftl.allocation=round-robin", "ftl.superblock_dies=1"]);
    }
    let in_turn = Rng::new(seed, 0xd1).below(2) == 0 && !settings.iter().any(|own| own == "ssd.planes_per_die=1");
    if in_turn {
        changes.extend(["ftl.moved_to=die", "ftl.allocation=round-robin"]);
    }
    let has = |setting: &str| settings.iter().any(|own| own == setting);
    if !in_turn && rng.below(3) == 0 && has("part.cell=slc") && has("part.order=strict") && !has("ftl.streams=1") {
        let cell = pick(rng, &["part.cell=tlc", "part.cell=qlc"]);
        changes.extend([cell, "ftl.moved=together", pick(rng, &["ftl.slc_cache=30%", "ftl.slc_cache=2 blocks"])]);
        changes.extend(["part.t_read_slc=20us", "part.t_program_slc=70us"]);
        if entry.lists("ftl.slc_fixed") {
            changes.extend(fixed_share(&mut Rng::new(seed, 0xf1)));
        }
    }
    if apart && let Some(shares) = sets(entry, &mut Rng::new(seed, 0x5e75), settings) {
        changes.extend(["ftl.allocation=namespace", "ftl.superblock_dies=0", shares]);
    }
    with_pairs(rng, &with(settings, &changes))
}

/// For some layers that are one log, namespaces with dies of their own.
fn sets(entry: &Entry, rng: &mut Rng, settings: &[String]) -> Option<&'static str> {
    let number = |key: &str| {
        let value = settings.iter().find_map(|setting| setting.strip_prefix(key)?.strip_prefix('='));
        value.map_or(1, |value| value.parse::<u32>().expect("a number"))
    };
    let dies: u32 = ["ssd.channels", "ssd.chips_per_channel", "ssd.dies_per_chip"].into_iter().map(number).product();
    let mixes = !entry.lists("ftl.gc_pace") || !entry.lists("ftl.allocation") || entry.lists("ftl.log_fraction");
    let shares = match dies {
        2 => "ssd.namespaces=50%:50%",
        4 => pick(rng, &["ssd.namespaces=25%:75%", "ssd.namespaces=50%:25%:25%"]),
        _ => return None,
    };
    (rng.below(3) == 0 && !mixes && !entry.is_file_system()).then_some(shares)
}

/// A fast cache of which some drives have a fixed share, beside the dynamic one or alone.
pub fn fixed_share(rng: &mut Rng) -> Vec<&'static str> {
    let blocks = ["ftl.slc_fixed=1 blocks", "ftl.slc_fixed=2 blocks", "ftl.slc_fixed=5 blocks"];
    match rng.below(4) {
        0 => Vec::new(),
        other => {
            let mut share = vec![pick(rng, &blocks), pick(rng, &["ftl.slc_full=direct", "ftl.slc_full=fold"])];
            share.extend((other < 3).then_some("ftl.slc_cache=0 blocks"));
            share
        }
    }
}

/// `settings`; half of the drives whose cells have several bits also get programs that corrupt the other pages of the
/// word line.
pub fn with_pairs(rng: &mut Rng, settings: &[String]) -> Vec<String> {
    let corrupts = rng.below(2) == 0 && !settings.iter().any(|setting| setting == "part.cell=slc");
    with(settings, if corrupts { &["part.pair_corruption=true"] } else { &[] })
}

/// For drives with read errors: early loss of charge, at a temperature, and layers that differ; each on half of them.
pub fn cells(rng: &mut Rng) -> Vec<&'static str> {
    let mut cells = Vec::new();
    if rng.below(2) == 0 {
        cells.extend(["part.ber_retention_early=40%", "part.t_retention_early=1ms"]);
        cells.push(pick(rng, &["ecc.temperature=0", "ecc.temperature=25", "ecc.temperature=70"]));
    }
    if rng.below(2) == 0 {
        cells.push(pick(rng, &["part.ber_layers=[\"30%\", \"100%\"]", "part.ber_layers=[\"100%\", \"90%\"]"]));
    }
    cells
}

/// The layer called `name`.
pub fn entry(name: &str) -> &'static Entry {
    find_layer(name).expect("a layer of the registry")
}

/// `settings` with needs and variations of the layer `entry` and the layer below.
pub fn of_layer(entry: &Entry, rng: &mut Rng, settings: &[String]) -> Vec<String> {
    let below = entry.below.map_or_else(|| settings.to_vec(), |below| of_layer(below, rng, settings));
    let needed = with(&below, entry.model.needs);
    let varied = (entry.model.varies)(rng, &needed);
    with(&needed, &varied.iter().map(String::as_str).collect::<Vec<_>>())
}

/// `settings` with the needs of the layer `entry` and the layer below.
pub fn needed(entry: &Entry, settings: &[String]) -> Vec<String> {
    with(settings, &entry.needs())
}

fn topology(rng: &mut Rng, most: u64) -> (u64, u64, u64, u64) {
    let shapes = [
        (1, 1, 1, 1),
        (1, 1, 1, 2),
        (2, 1, 1, 1),
        (2, 1, 1, 2),
        (3, 1, 1, 1),
        (1, 2, 2, 1),
        (4, 1, 1, 1),
        (2, 2, 1, 2),
    ];
    let fitting: Vec<_> = shapes.into_iter().filter(|(a, b, c, d)| a * b * c * d <= most).collect();
    pick(rng, &fitting)
}

fn draw_part(rng: &mut Rng, set: &mut impl FnMut(&str, String)) {
    let (cell, order) = pick(
        rng,
        &[("slc", "strict"), ("slc", "ascending"), ("slc", "any"), ("mlc", "strict"), ("mlc", "low-low-high")],
    );
    set("part.cell", cell.into());
    set("part.order", order.into());
    set("part.nop", pick(rng, &[1, 2, 4, 8]).to_string());
    set("part.t_read", "40us".into());
    set("part.t_program", "200us".into());
    set("part.t_erase", "2ms".into());
    if cell == "mlc" {
        set("part.t_read_high", "60us".into());
        set("part.t_program_high", "900us".into());
    }
    set("part.t_command", pick(rng, &["0ns", "200ns"]).into());
    set("part.bus_rate", pick(rng, &["40MB/s", "400MB/s", "unlimited"]).into());
    set("part.t_suspend", pick(rng, &["0ns", "20us"]).into());
    set("part.t_resume", pick(rng, &["0ns", "10us"]).into());
}

/// Draws a read command if the layer fixes none, and the abilities of spread commands.
fn draw_reads(entry: &Entry, rng: &mut Rng, page_bytes: u64, set: &mut impl FnMut(&str, String)) {
    let words: Vec<u64> = [512, 1024, 2048].into_iter().filter(|word| page_bytes.is_multiple_of(*word)).collect();
    let word = pick(rng, &words);
    set("part.word_size", format!("{word}B"));
    let mode = match entry.read {
        Some(ReadMode::Page) => "page",
        Some(ReadMode::Dma) => "dma",
        Some(ReadMode::Spread) => "spread",
        None => pick(rng, &["page", "dma", "spread"]),
    };
    set("ftl.read", mode.into());
    if mode == "spread" {
        let slope = pick(rng, &[1, 5, 30]);
        let list = |unit: &str| {
            let entries: Vec<String> =
                (1..=page_bytes / word).map(|words| format!("\"{}{unit}\"", 20 + slope * words)).collect();
            format!("[{}]", entries.join(", "))
        };
        set("part.t_read_words", list("us"));
        if rng.below(2) == 0 {
            set("part.e_read_words", list("uJ"));
        }
        set("part.spread_reach", pick(rng, &["any", "run"]).into());
        set("ftl.read_gap", pick(rng, &["false", "true"]).into());
    }
}

fn draw_layer(rng: &mut Rng, streams: u64, spare: u64, set: &mut impl FnMut(&str, String)) {
    set("ftl.streams", streams.to_string());
    let classifiers: &[&str] = if streams == 3 { &["none", "size", "recency"] } else { &["none"] };
    set("ftl.classifier", pick(rng, classifiers).into());
    set("ftl.moved", if streams == 3 && rng.below(2) == 0 { "class" } else { "together" }.into());
    set(
        "ftl.victim",
        pick(rng, &["greedy", "greedy", "fifo", "d-choices:1", "d-choices:4", "cost-benefit", "windowed:3"]).into(),
    );
    set("ftl.allocation", pick(rng, &["static", "channel", "round-robin", "least-loaded"]).into());
    set("ftl.wear_leveling", pick(rng, &["none", "dynamic", "static"]).into());
    set("ftl.wear_threshold", (1 + rng.below(4)).to_string());
    let start = 1 + rng.below((spare - 1).min(3));
    let stop = start + rng.below(spare - start);
    set("ftl.gc_start", format!("{start} blocks"));
    set("ftl.gc_stop", format!("{stop} blocks"));
}

fn draw_engine(rng: &mut Rng, page_bytes: u64, set: &mut impl FnMut(&str, String)) {
    set("buffer.ack", pick(rng, &["buffer", "program"]).into());
    set("buffer.size", format!("{}B", page_bytes * pick(rng, &[1, 1, 2, 16])));
    set("buffer.timeout", pick(rng, &["0ns", "300us", "1ms"]).into());
    set("sim.scheduler", pick(rng, &["fifo", "read-first", "host-first"]).into());
    set("sim.starvation_bound", pick(rng, &["0ns", "1ms", "10ms"]).into());
    set("sim.suspend", pick(rng, &["none", "erase", "program-erase"]).into());
    set("sim.cache_register", pick(rng, &["true", "false"]).into());
    set("sim.block_order", pick(rng, &["needed", "needed", "planned"]).into());
    set("sim.multi_plane", pick(rng, &["waiting", "waiting", "group", "off"]).into());
    set("host.link_rate", pick(rng, &["unlimited", "100MB/s", "2GB/s"]).into());
}
