//! Batched filling and cleaning must equal single operations, to the byte; a timed run with batches must have the
//! result of one without. Not tested here: kept states.

use super::tests::{drive, options, printed};
use super::*;
use crate::run::precondition::precondition as write;
use crate::run::summary::{TraceRead, outcome};
use palimpsest_flash::rng::Rng;
use palimpsest_ftl_api::plan::{PowerIo, SliceIo};
use palimpsest_workload::fio::{FioSpec, generated};
use std::ops::ControlFlow;

/// Makes each operation one of its own, by a power cut that is scheduled after the end of the run.
fn page_by_page(session: &mut Session<'_>) {
    session.drive.io.set_power_cut_at(Some(u64::MAX - 1));
}

/// The state of the drive after preconditioning, with batches or without, and the units of a new drive's first batch.
fn state(resolved: &Resolved, options: &Options, runs: bool) -> (Vec<u8>, u64) {
    let watcher: crate::run::Watcher<'_> = &mut |_| ControlFlow::Continue(());
    let mut session = Session::new(&resolved.drive, options, watcher).unwrap();
    if !runs {
        page_by_page(&mut session);
    }
    let spec = FioSpec::parse("rw=randread,n=1").unwrap();
    let mut source = generated(&spec, resolved.drive.logical_bytes(), 1).unwrap();
    let done = write(&mut session, source.as_mut(), &options.precondition).unwrap_or_else(|error| {
        panic!("{}: {error}", resolved.drive.ftl.name);
    });
    if let Err(what) = session.drive.ftl.check(&session.drive.io) {
        panic!("{}, at once: {runs}: {what}; {:?}", resolved.drive.ftl.name, resolved.values().collect::<Vec<_>>());
    }
    let state = save(&session, &done).expect("a layer with a state");
    let watcher: crate::run::Watcher<'_> = &mut |_| ControlFlow::Continue(());
    let mut new = Session::new(&resolved.drive, options, watcher).unwrap();
    (state, new.fill(0, new.units() / 2).unwrap())
}

fn same(resolved: &Resolved, options: &Options, what: &str) -> u64 {
    let ((with, taken), (without, _)) = (state(resolved, options, true), state(resolved, options, false));
    let name = &resolved.drive.ftl.name;
    let differs = with.iter().zip(&without).position(|(one, other)| one != other);
    assert!(
        with == without,
        "{name}, {what}, {:?}: the states differ from byte {differs:?} of {} and {} on",
        options.precondition,
        with.len(),
        without.len()
    );
    taken
}

#[test]
fn a_fill_at_once_is_a_fill_by_requests_on_every_layer() {
    for layer in crate::layers::layers() {
        let mut taken = 0;
        for payload in [Payload::None, Payload::Tag] {
            for fill in ["fill:100%", "fill:41.3%,random:1x"] {
                let options = options(Fidelity::Count, payload, fill);
                taken += same(&drive(layer, &[]), &options, "as it is");
            }
        }
        let takes = ["page", "subpage", "page-fgm", "dma-fgm", "spftl", "fdp", "fdp-subpage"].contains(&layer.name);
        assert_eq!(taken > 0, takes, "{} takes {taken} units at once", layer.name);
    }
}

/// A former bug: layers that classify writes by their size got the whole drive in units of the map.
#[test]
fn a_fill_is_one_by_writes_of_a_page_on_every_layer() {
    for layer in crate::layers::layers().filter(|layer| !layer.is_file_system()) {
        let resolved = drive(layer, &[]);
        let page = resolved.drive.part.page_bytes;
        let fills = ["fill:77%".to_owned(), format!("fill:77%,bs:{page}B")];
        let [one, other] = fills.map(|fill| state(&resolved, &options(Fidelity::Count, Payload::Tag, &fill), false).0);
        assert!(one == other, "{}: the states differ", layer.name);
    }
}

/// A former bug: `bs` changed no overwrite. No layer may end in one state for two sizes.
#[test]
fn overwrites_have_the_given_size_on_every_layer() {
    for layer in crate::layers::layers() {
        let resolved = drive(layer, &[]);
        let block = resolved.drive.geometry.subpage_bytes;
        let [one, other] = [4, 16].map(|blocks| {
            let precondition = format!("fill:70%,random:1x,bs:{}B", blocks * block);
            state(&resolved, &options(Fidelity::Count, Payload::Tag, &precondition), true).0
        });
        assert!(one != other, "{}: overwrites of {block} bytes times 4 and 16 leave one state", layer.name);
    }
}

/// Some value of each key that changes the place of units or the effect of a write.
fn draw(rng: &mut Rng) -> Vec<String> {
    let mut pick = |choices: &[&str]| choices[rng.below(choices.len() as u64) as usize].to_owned();
    let mut set = vec![
        pick(&["ssd.channels=1", "ssd.channels=2", "ssd.channels=4"]),
        pick(&["ssd.planes_per_die=1", "ssd.planes_per_die=2"]),
        pick(&["part.pages_per_block=8", "part.pages_per_block=2", "part.pages_per_block=12"]),
        pick(&["part.subpage_size=4KiB", "part.subpage_size=8KiB", "part.subpage_size=1KiB"]),
        pick(&["ssd.over_provisioning=60%", "ssd.over_provisioning=100%"]),
        pick(&["part.cell=slc", "part.cell=tlc", "part.cell=mlc"]),
        pick(&["part.pages_per_program=1", "part.pages_per_program=1", "part.pages_per_program=3"]),
        pick(&["ftl.gc_start=2 blocks", "ftl.gc_start=4 blocks"]),
        pick(&["ftl.gc_stop=4 blocks", "ftl.gc_stop=5 blocks"]),
        pick(&["ftl.gc_pace=block", "ftl.gc_pace=paced"]),
        pick(&["ftl.streams=1", "ftl.streams=2", "ftl.streams=3"]),
        pick(&["buffer.ack=buffer", "buffer.ack=program"]),
        pick(&["ftl.wear_leveling=none", "ftl.wear_leveling=static"]),
        pick(&["ssd.blocks_per_plane=30", "ssd.blocks_per_plane=41"]),
    ];
    set.push(pick(&[
        "ftl.allocation=round-robin",
        "ftl.allocation=static",
        "ftl.allocation=channel",
        "ftl.allocation=least-loaded",
        "ftl.superblock_dies=1",
    ]));
    set.push(pick(&["ftl.slc_cache=0 blocks", "ftl.slc_cache=3 blocks"]));
    set.push(pick(&["ftl.slc_fixed=0 blocks", "ftl.slc_fixed=2 blocks"]));
    set.push(pick(&["ftl.slc_full=direct", "ftl.slc_full=direct", "ftl.slc_full=fold"]));
    set.push(pick(&["ftl.classifier=none", "ftl.classifier=none", "ftl.classifier=size"]));
    set
}

#[test]
fn a_fill_at_once_is_a_fill_by_requests_whatever_the_settings() {
    let (mut rng, mut drives, mut taken) = (Rng::new(5, 19), 0, 0);
    while drives < 72 {
        let layer = crate::layers::find_layer(["page", "subpage"][rng.below(2) as usize]).unwrap();
        let set = draw(&mut rng);
        let extra: Vec<&str> = set.iter().map(String::as_str).collect();
        let Ok(resolved) = super::tests::try_drive(layer, &extra) else { continue };
        let payload = [Payload::None, Payload::Tag][rng.below(2) as usize];
        let fill = ["fill:100%", "fill:97%,random:0.6x", "fill:63.1%"][rng.below(3) as usize];
        taken += u64::from(same(&resolved, &options(Fidelity::Count, payload, fill), &set.join(" ")) > 0);
        drives += 1;
    }
    assert!(taken > 40, "{taken} of {drives} drives took units at once");
}

/// Some value of each key that changes the start of operations.
fn draw_times(rng: &mut Rng) -> Vec<String> {
    let mut pick = |choices: &[&str]| choices[rng.below(choices.len() as u64) as usize].to_owned();
    vec![
        pick(&["sim.scheduler=fifo", "sim.scheduler=read-first", "sim.scheduler=host-first"]),
        pick(&["sim.suspend=none", "sim.suspend=erase", "sim.suspend=program-erase"]),
        pick(&["sim.cache_register=true", "sim.cache_register=false"]),
        pick(&["sim.multi_plane=off", "sim.multi_plane=waiting", "sim.multi_plane=group"]),
        pick(&["sim.block_order=needed", "sim.block_order=needed", "sim.block_order=planned"]),
        pick(&["ftl.moved_to=plane", "ftl.moved_to=plane", "ftl.moved_to=die"]),
        pick(&["buffer.ack=buffer", "buffer.ack=program"]),
    ]
}

/// The result of a timed run, and whether it used batches while collecting.
fn timed(resolved: &Resolved, options: &Options, runs: bool) -> (String, bool) {
    let watcher: crate::run::Watcher<'_> = &mut |_| ControlFlow::Continue(());
    let session = Session::new(&resolved.drive, options, watcher).unwrap();
    let spec = FioSpec::parse("rw=randrw,rwmixread=25,bssplit=2k/10:8k/80:64k/10,iodepth=24,n=3000").unwrap();
    let mut source = generated(&spec, resolved.drive.logical_bytes(), options.seed).unwrap();
    let (mut session, done) = precondition(session, source.as_mut(), resolved, &mut NotKept).unwrap();
    session.begin(source.as_mut(), None).unwrap();
    if !runs {
        page_by_page(&mut session);
    }
    session
        .drive_all(source.as_mut())
        .unwrap_or_else(|error| panic!("at once: {runs}, {:?}: {error}", resolved.values().collect::<Vec<_>>()));
    session.check().unwrap_or_else(|error| panic!("{:?}: {error}", resolved.values().collect::<Vec<_>>()));
    let trace = TraceRead::of(source.as_ref());
    let outcome = outcome(resolved, &session, options, trace, done);
    let took = session.drive.io.takes_slices() && outcome.summary.gc.moved_subpages > 0;
    (printed(&outcome), took)
}

#[test]
fn whole_pages_do_not_change_the_result_of_a_timed_run() {
    let (mut rng, mut drives, mut taken) = (Rng::new(6, 19), 0, 0);
    while drives < 120 {
        let layer = crate::layers::find_layer(["page", "page", "subpage"][rng.below(3) as usize]).unwrap();
        let set = [draw(&mut rng), draw_times(&mut rng)].concat();
        let extra: Vec<&str> = set.iter().map(String::as_str).collect();
        let Ok(resolved) = super::tests::try_drive(layer, &extra) else { continue };
        let payload = [Payload::None, Payload::Tag][rng.below(2) as usize];
        let options = options(Fidelity::Timed, payload, "fill:100%");
        let ((with, took), (without, _)) = (timed(&resolved, &options, true), timed(&resolved, &options, false));
        let differs = with.bytes().zip(without.bytes()).position(|(one, other)| one != other);
        let at = differs.map(|at| &with[at.saturating_sub(80)..(at + 40).min(with.len())]);
        assert!(with == without, "{}, {payload:?}, {set:?}: the results differ at {at:?}", layer.name);
        (drives, taken) = (drives + 1, taken + u32::from(took));
    }
    assert!(taken > 45, "{taken} of {drives} drives took whole pages");
}

/// Drives on which a batch would skip effects must fill by requests.
#[test]
fn drives_on_which_writes_do_more_take_nothing_at_once() {
    let page = crate::layers::find_layer("page").unwrap();
    for extra in [
        &["faults.program_fail=1%"][..],
        &["ecc.strength=8"],
        &["faults.power_cut_at=90000"],
        &["ftl.streams=3", "ftl.classifier=recency"],
    ] {
        let resolved = drive(page, extra);
        let options = options(Fidelity::Count, Payload::Tag, "fill:100%");
        let watcher: crate::run::Watcher<'_> = &mut |_| ControlFlow::Continue(());
        let mut new = Session::new(&resolved.drive, &options, watcher).unwrap();
        assert_eq!(new.fill(0, new.units()).unwrap(), 0, "{extra:?}");
    }
    let options = options(Fidelity::Count, Payload::Bytes, "fill:100%");
    let (resolved, watcher) = (drive(page, &[]), &mut |_| ControlFlow::Continue(()));
    let mut new = Session::new(&resolved.drive, &options, watcher).unwrap();
    assert_eq!(new.fill(0, new.units()).unwrap(), 0);
}
