//! Reuse of low pages: the block life cycle, real codes on an overwritten drive, and erases and energy against closed
//! form.

use crate::drives::{build, plain, with};
use crate::harness::Model;
use palimpsest_lab::ftl::{Figure, find};
use palimpsest_lab::geometry::{Extent, RequestKind};
use palimpsest_lab::nand::data::{Data, Payload};
use palimpsest_lab::nand::part::ReadCommand;
use palimpsest_lab::nand::{Nand, Outcome};
use palimpsest_lab::rng::Rng;
use palimpsest_lab::sim::drive::Command;

const SUBPAGE_SECTORS: u64 = 8;

/// A drive of `banks` banks of `blocks` blocks of `pages` pages of `subpages` subpages, under `ftl`.
fn model(
    ftl: &str,
    (banks, blocks, pages, subpages): (u32, u32, u32, u32),
    payload: Payload,
    changes: &[&str],
) -> Model {
    let part = ["part.cell=mlc", "part.order=low-low-high", "part.nop=2", "part.spare_size=640B", "buffer.timeout=0ns"];
    let settings = with(&with(&plain(banks, blocks, pages, subpages), &part), changes);
    let shape = build(ftl, &settings).expect("a possible drive");
    Model::new(&shape, find(ftl).expect("a layer"), payload, 1)
}

fn write(model: &mut Model, unit: u64) {
    let extent = Extent { sector: unit * SUBPAGE_SECTORS, sectors: SUBPAGE_SECTORS as u32 };
    model.count(Command::new(RequestKind::Write, extent)).expect("a write");
}

fn figure(model: &Model, name: &str) -> (u64, u64) {
    match model.drive.ftl.figures().own.iter().find(|(own, _)| *own == name) {
        Some((_, Figure::Count(count) | Figure::Level(count))) => (*count, 1),
        Some((_, Figure::ShareOfCount(part, whole) | Figure::ShareOfLevel(part, whole))) => (*part, *whole),
        None => panic!("{name} is not reported"),
    }
}

fn count(model: &Model, name: &str) -> u64 {
    figure(model, name).0
}

fn share(model: &Model, name: &str) -> f64 {
    let (part, whole) = figure(model, name);
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Fig. 6: clean, partially-used (`write L1`), reused (`write L2 H`), clean (erase); clean, used (`write L1 H`), clean.
#[test]
fn blocks_go_through_the_states_of_the_paper() {
    // Blocks of 8 pages, 16 subpages; the first half of the logical space is hot.
    let changes = [
        "ssd.over_provisioning=100%",
        "ftl.classifier=address",
        "ftl.streams=3",
        "ftl.hot_below=64KiB",
        "ftl.threshold_pu=1 block",
        "ftl.threshold_window=0",
        "ftl.wom_failure=0%",
    ];
    let mut model = model("llh", (1, 12, 8, 2), Payload::Tag, &changes);
    let step = |model: &mut Model, unit: u64, writes: u64| {
        (0..writes).for_each(|index| write(model, unit + index));
        model.check();
    };
    // Four low pages take eight subpages.
    step(&mut model, 0, 8);
    assert_eq!(count(&model, "transition_clean_partially_used"), 1);
    assert_eq!(count(&model, "partially_used_blocks"), 1);
    // The threshold is reached, so the block is reused pair by pair: a low page now stores one subpage, a high page
    // two. The low pages still hold the present content of the written units: only the first overwrites make room.
    step(&mut model, 8, 8);
    assert_eq!(count(&model, "reused_low_pages"), 0, "all low pages hold valid data");
    assert_eq!(count(&model, "transition_partially_used_used"), 1, "high pages alone: write H");
    // Hot data that goes round in half a block: now low pages are invalid when their turn comes.
    for _ in 0..40 {
        step(&mut model, 0, 4);
    }
    assert!(count(&model, "reused_low_pages") > 8 && count(&model, "transition_partially_used_reused") > 2);
    assert_eq!(count(&model, "second_write_logical_pages"), count(&model, "reused_low_pages"), "half a page of two");
    // Cold data: used, then cleaned; reused blocks are cleaned, too.
    for _ in 0..20 {
        step(&mut model, 20, 16);
        step(&mut model, 0, 8);
    }
    for name in ["transition_clean_used", "transition_used_clean", "transition_reused_clean"] {
        assert!(count(&model, name) > 0, "{name}");
    }
    assert_eq!(count(&model, "transition_used_reused"), 0, "not on this part");
    model.read_back().expect("what was written");
}

/// As in the FTL that the authors of the LLH paper published. Overwrites of data in a merge buffer take new places and
/// leave a hole at the old one, and collection leaves one more clean block if blocks are opened before.
#[test]
fn the_baseline_writes_and_cleans_as_the_published_ftl() {
    let run = |changes: &[&str]| {
        let mut model =
            model("hotcold", (1, 12, 8, 2), Payload::Tag, &[&["ssd.over_provisioning=100%"], changes].concat());
        (0..50).for_each(|_| write(&mut model, 7));
        let programs = model.drive.io.nand().counters().programs;
        let clean = |model: &Model| (0..12).filter(|&block| model.drive.io.nand().next_page(block) == 0).count();
        let mut fewest = 12;
        for index in 0..1000 {
            write(&mut model, index * 7 % 48);
            fewest = fewest.min(clean(&model));
        }
        model.check();
        model.read_back().expect("what was written");
        (programs, fewest)
    };
    assert_eq!(run(&[]), (0, 1), "one unit never fills a page");
    assert_eq!(run(&["ftl.absorb=false"]), (25, 1), "a page of two subpages for two writes");
    assert_eq!(run(&["ftl.open_block=before"]), (0, 2));
    assert_eq!(run(&["ftl.absorb=false", "buffer.ack=program"]).0, 0, "what is acknowledged must be durable");
}

/// Every unit is in the bank that its number names. Cleaning moves to blocks of cold data, so blocks of hot data hold
/// what the host wrote as hot, and nothing else.
#[test]
fn the_baseline_keeps_banks_and_moves_to_cold_blocks() {
    let changes = ["ssd.over_provisioning=50%", "ftl.classifier=address", "ftl.hot_below=64KiB"];
    let mut model = model("hotcold", (4, 24, 8, 2), Payload::Tag, &changes);
    let (geometry, units) = (model.config.geometry, model.config.logical_subpages());
    let mut rng = Rng::new(1, 7);
    (0..units).for_each(|unit| write(&mut model, unit));
    for _ in 0..20_000 {
        let unit = if rng.below(2) == 0 { rng.below(16) } else { rng.below(units) };
        write(&mut model, unit);
    }
    model.check();
    assert!(model.drive.ftl.figures().gc_moved_subpages > 1000);
    let nand = model.drive.io.nand();
    let (mut hot, mut cold) = (0, 0);
    for block in 0..geometry.blocks() {
        let psns = block * geometry.subpages_per_block()..(block + 1) * geometry.subpages_per_block();
        let held: Vec<u32> = psns.map(|psn| nand.logical(psn)).filter(|&unit| u64::from(unit) < units).collect();
        assert!(held.iter().all(|unit| unit % 4 == geometry.plane_of_block(block)), "block {block}: {held:?}");
        hot += u32::from(!held.is_empty() && held.iter().all(|&unit| unit < 16));
        cold += u32::from(held.iter().any(|&unit| unit >= 16));
    }
    assert!(hot >= 4 && cold > 40, "{hot} blocks of hot data and {cold} others");
}

/// Half of all encodings fail: with `ftl.wom_retry` the next hot data retries the page, so that no low page is left.
#[test]
fn a_failed_encoding_is_tried_again() {
    let run = |retry: &str| {
        let changes = [
            "ssd.over_provisioning=100%",
            "ftl.threshold_pu=1 block",
            "ftl.threshold_window=0",
            "ftl.wom_failure=50%",
            retry,
        ];
        let mut model = model("llh", (1, 12, 8, 2), Payload::Tag, &changes);
        (0..4000).for_each(|index| write(&mut model, index % 4));
        model.check();
        model.read_back().expect("what was written");
        let blocks =
            count(&model, "transition_partially_used_reused") + count(&model, "transition_partially_used_used");
        (count(&model, "reused_low_pages") as f64 / (4 * blocks) as f64, count(&model, "wom_failures"))
    };
    let ((left, _), (again, failures)) = (run("ftl.wom_retry=false"), run("ftl.wom_retry=true"));
    assert!((left - 0.5).abs() < 0.1 && again > 0.95, "{left} and {again} of low pages are programmed again");
    assert!(failures > 100);
}

#[test]
fn outside_the_safe_share_of_life_nothing_is_reused() {
    let changes = ["ssd.over_provisioning=100%", "part.endurance=10", "ftl.threshold_pu=1 block", "ftl.wom_failure=0%"];
    let mut model = model("llh", (1, 12, 8, 2), Payload::None, &changes);
    let round = |model: &mut Model| (0..2000).for_each(|index| write(model, index % 4));
    while model.drive.io.nand().sum_of_erases() < 12 * 6 {
        round(&mut model);
    }
    let before = count(&model, "reused_low_pages");
    assert!(before > 0);
    // Blocks that wait may be reused once more.
    round(&mut model);
    let settled = count(&model, "reused_low_pages");
    round(&mut model);
    assert_eq!(count(&model, "reused_low_pages"), settled);
}

/// All data is really encoded, and flash checks each bit: random overwrites of ten times the drive, read back.
#[test]
fn a_drive_overwritten_ten_times_reads_back_through_every_code() {
    for code in ["polar", "polar-repair", "table", "fountain"] {
        for subpages in [2u32, 8] {
            let changes = [
                format!("ftl.wom={code}"),
                format!("ftl.wom_scramblings={}", 32 / subpages),
                format!("part.spare_size={}B", 320 * subpages),
                "ssd.over_provisioning=80%".into(),
                "ftl.classifier=address".into(),
                "ftl.streams=3".into(),
                format!("ftl.hot_below={}KiB", 32 * subpages),
                "ftl.threshold_pu=4 blocks".into(),
            ];
            let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
            let mut model = model("llh", (2, 18, 8, subpages), Payload::Bytes, &changes);
            let units = model.config.logical_subpages();
            let mut rng = Rng::new(7, u64::from(subpages));
            for index in 0..11 * units {
                // Two of three writes are hot.
                let hot = (u64::from(subpages) * 8).min(units);
                let unit = if index < units { index } else { rng.below(if index % 3 > 0 { hot } else { units }) };
                write(&mut model, unit);
            }
            model.check();
            model.read_back().unwrap_or_else(|error| panic!("{code}, {subpages} subpages: {error}"));
            let (second, failures) = (count(&model, "second_write_logical_pages"), share(&model, "wom_failure_share"));
            assert!(second > units / 5, "{code}, {subpages} subpages: {second} of {units} in second writes");
            assert!(failures < 0.02, "{code}, {subpages} subpages: {failures} failed");
        }
    }
}

/// Erases for `writes` logical pages, a share `hot` of which is hot; hot and cold data each cycle through their range.
fn erases(ftl: &str, hot: f64, failure: &str, writes: u64) -> (f64, f64, f64) {
    let changes = [
        "ssd.over_provisioning=100%".to_owned(),
        "ftl.classifier=address".into(),
        "ftl.streams=3".into(),
        "ftl.hot_below=1MiB".into(),
        "ftl.threshold_pu=8 blocks".into(),
        "ftl.threshold_window=0".into(),
        "part.endurance=1000000".into(),
        format!("ftl.wom_failure={failure}"),
    ];
    let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
    // Blocks of 64 subpages; eight waiting blocks hold 256 hot ones, which is all hot data.
    let mut model = model(ftl, (1, 64, 32, 2), Payload::None, &changes);
    let (hot_units, units) = (256, model.config.logical_subpages());
    let (mut next, mut sum) = ([0u64; 2], 0.0);
    let mut one = |model: &mut Model| {
        sum += hot;
        if sum >= 1.0 {
            sum -= 1.0;
            next[0] += 1;
            write(model, next[0] % hot_units);
        } else {
            next[1] += 1;
            write(model, hot_units + next[1] % (units - hot_units));
        }
    };
    (0..4 * units).for_each(|_| one(&mut model));
    let before = model.drive.io.nand().counters().erases;
    (0..writes).for_each(|_| one(&mut model));
    model.check();
    let erases = (model.drive.io.nand().counters().erases - before) as f64;
    let reuse = ftl == "llh";
    let reusable = if reuse { share(&model, "reusable_share") } else { 0.0 };
    (erases, reusable, if reuse { share(&model, "wom_failure_share") } else { 0.0 })
}

/// E'/E = (1 - X) + X / (1 + y (1 - p) / 4) (LLH paper, Sec. 4, where y = 1 and p = 0: (5 - X) / 5). X is the hot
/// share; y and p, the reusable low pages and the failures, are the run's measurements. Cyclic hot data leaves whole
/// blocks invalid, so that y = 1 except at the start. The page of a failed encoding goes to a used block: with p = 10 %
/// that adds X (p / 5) (1 - 1 / 1.225), 0.4 %.
#[test]
fn erases_fall_as_the_closed_form_says() {
    for (hot, failure) in [(0.0, "0%"), (0.25, "0.25%"), (0.5, "0%"), (0.9, "0.25%"), (0.9, "10%")] {
        let (base, ..) = erases("hotcold", hot, failure, 100_000);
        let (ours, y, p) = erases("llh", hot, failure, 100_000);
        let expected = (1.0 - hot) + hot / (1.0 + y * (1.0 - p) / 4.0);
        assert!(hot == 0.0 || y > 0.99, "X {hot}: y is {y}");
        let got = ours / base;
        assert!((got - expected).abs() < 0.01, "X {hot}, y {y}, p {p}: E'/E is {got}, expected {expected}");
    }
}

/// Table 5 of the LLH paper on chip A16: the energies of an LLH cycle give the paper's average of a logical write,
/// 145.71 uJ, and of a read, 60.79 uJ. The average of the baseline, 132.64 uJ, follows with the erase of the LLH
/// column, 186.49 uJ; the baseline's erase, 192.79 uJ, gives 132.67 uJ.
#[test]
fn energies_of_a_cycle_give_the_averages_of_the_paper() {
    let settings = ["ssd.part=a16", "ssd.channels=1", "ssd.blocks_per_plane=8", "ssd.over_provisioning=100%"];
    let shape = build("page", &settings.map(String::from)).expect("a possible drive");
    let flash = || Nand::new(shape.drive.geometry, shape.drive.part.clone(), Payload::Tag, None);
    let part = &shape.drive.part;
    let (logical, data) = ([0u32, 1, 2, 3], [Data::new(1); 4]);
    let total = |nand: &Nand| {
        let counters = nand.counters();
        let energy = counters.read_energy + counters.program_energy + counters.reprogram_energy + counters.erase_energy;
        energy as f64 / 1e6
    };
    let done = |outcome| assert_eq!(outcome, Outcome::Done);

    let mut nand = flash();
    (0..256).for_each(|page| done(nand.program(page, 0b1111, &logical, &data).expect("in order")));
    done(nand.erase(0).expect("an erase"));
    assert!((total(&nand) / 256.0 - 132.67).abs() < 0.005, "{}", total(&nand) / 256.0);
    assert!((total(&nand) - 192.79 + 186.49) / 256.0 - 132.64 < 0.005);

    let mut nand = flash();
    let lows: Vec<u32> = (0..256).filter(|&page| !part.is_high(page)).collect();
    lows.iter().for_each(|&page| done(nand.program(page, 0b1111, &logical, &data).expect("low pages first")));
    for &page in &lows {
        nand.read(page, 0b1111, ReadCommand::PAGE).expect("a prefetch");
        done(nand.reprogram(page, 0b1111, &logical, &data, &[]).expect("a second write"));
        done(nand.program(part.partner(page), 0b1111, &logical, &data).expect("its high page"));
    }
    let before = total(&nand);
    (0..256).for_each(|page| assert!(!nand.read(page, 0b1111, ReadCommand::PAGE).expect("a read")));
    // Data of a low page takes two pages.
    let reads = (total(&nand) - before + 128.0 * 50.37) / 320.0;
    assert!((reads - 60.79).abs() < 0.01 || (reads - 60.80).abs() < 0.01, "{reads}");
    let erased = total(&nand);
    done(nand.erase(0).expect("an erase"));
    let writes = (before + total(&nand) - erased) / 320.0;
    assert!((writes - 145.71).abs() < 0.005, "{writes}");
}
