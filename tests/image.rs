//! Drives in images: a server killed at any write of the image loses nothing acknowledged by a flush, for every layer.
//!
//! The image is in memory, and writes end after a drawn number, the last one halfway; then the drive is opened again,
//! which may be cut off, too. Each sector holds a sector number and the number of the last write, so that the age is
//! known. `IMAGE_CASES` is the number of kills of each layer, `IMAGE_SEED` draws others.

mod kept_inputs;

use kept_inputs::kept;
use palimpsest_lab::command::Command;
use palimpsest_lab::config::Resolved;
use palimpsest_lab::error::Error;
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::geometry::{Extent, RequestKind};
use palimpsest_lab::layers;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::nand::image::Medium;
use palimpsest_lab::nand::image::layout::{Header, PAGE};
use palimpsest_lab::nand::image::memory::Memory;
use palimpsest_lab::rng::Rng;
use palimpsest_lab::run::image::fuzzing::{CHANGE, fuzz_image};
use palimpsest_lab::run::image::{Keep, length_of, resolve_to_keep};
use palimpsest_lab::run::precondition::Precondition;
use palimpsest_lab::run::served::{Failure, Reply, Served};
use palimpsest_lab::run::{Fidelity, Options, Warmup};
use palimpsest_lab::units::SECTOR_BYTES;
use std::ops::ControlFlow;

const DRIVE: [&str; 9] = [
    "ftl.gc_start=2 blocks",
    "ftl.gc_stop=3 blocks",
    "ssd.channels=2",
    "ssd.planes_per_die=1",
    "ssd.chips_per_channel=1",
    "ssd.blocks_per_plane=16",
    "part.pages_per_block=8",
    "ssd.over_provisioning=60%",
    "part.t_read_words=[\"10us\", \"20us\", \"30us\", \"40us\"]",
];

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

fn keep(memory: &Memory, is_new: bool, syncs: bool) -> Keep {
    Keep { medium: Box::new(memory.clone()), name: "drive.pal".into(), is_new, syncs, uuid: [1; 16] }
}

fn drive(ftl: &str, extra: &[&str]) -> Resolved {
    let key = |text: &str| text.split('=').next().map(String::from);
    let kept = DRIVE.iter().filter(|text| !extra.iter().any(|other| key(other) == key(text)));
    let set: Vec<String> = kept.chain(extra).map(|&text| text.into()).collect();
    resolve_to_keep("mga-8k", Some(ftl), &set, &|_| unreachable!()).unwrap_or_else(|error| panic!("{ftl}: {error}")).0
}

fn options(fidelity: Fidelity) -> Options {
    Options {
        workload: "served".into(),
        precondition: Precondition::None,
        requests: None,
        warmup: Warmup::Requests(0),
        fidelity,
        payload: Payload::Bytes,
        seed: 1,
        series: false,
        operations: None,
        strict: false,
    }
}

/// The host's knowledge of a sector.
#[derive(Clone, Copy, Default)]
struct Sector {
    /// Number of the last write or trim.
    last: u64,
    /// Number of the last write or trim that a flush acknowledged: the oldest that may be found.
    durable: u64,
    /// Number of the last trim, which leaves zeros.
    trimmed: u64,
}

/// The host of a drive that is killed.
struct Host {
    name: String,
    sectors: Vec<Sector>,
    dirty: Vec<u64>,
    writes: u64,
    rng: Rng,
    /// A die fails: the data is lost, and reads must say so.
    loses_a_die: bool,
    /// Sectors that could not be read when the drive was opened last.
    unreadable: u64,
}

fn content(sector: u64, write: u64) -> Vec<u8> {
    let mut rng = Rng::new(sector << 20 ^ write, 9);
    let mut bytes = vec![0; SECTOR_BYTES as usize];
    let (words, _) = bytes.as_chunks_mut();
    words[..2].copy_from_slice(&[sector.to_le_bytes(), write.to_le_bytes()]);
    words[2..].fill_with(|| rng.next_u64().to_le_bytes());
    bytes
}

impl Host {
    fn extent(&mut self) -> Extent {
        let sector = self.rng.below(self.sectors.len() as u64);
        Extent { sector, sectors: (1 + self.rng.below(40)).min(self.sectors.len() as u64 - sector) as u32 }
    }

    /// Sends `requests` requests, until one fails.
    fn use_drive(&mut self, served: &mut Served<'_>, requests: u64) -> Reply<()> {
        for _ in 0..requests {
            let extent = self.extent();
            let range = extent.sector..extent.end();
            match self.rng.below(16) {
                0 | 1 => {
                    served.flush()?;
                    for sector in self.dirty.drain(..) {
                        self.sectors[sector as usize].durable = self.sectors[sector as usize].last;
                    }
                }
                2 => {
                    // Partly covered units keep their data.
                    let unit = served.unit_bytes() / SECTOR_BYTES;
                    let (first, end) = (range.start.next_multiple_of(unit), range.end / unit * unit);
                    self.writes += 1;
                    for sector in first..end {
                        let known = &mut self.sectors[sector as usize];
                        (known.last, known.trimmed) = (self.writes, self.writes);
                        self.dirty.push(sector);
                    }
                    served.trim(extent)?;
                }
                3..6 => self.read(served, extent)?,
                _ => {
                    self.writes += 1;
                    let write = self.writes;
                    let mut bytes = range.clone().map(|sector| content(sector, write)).collect::<Vec<_>>().concat();
                    for sector in range.clone() {
                        self.sectors[sector as usize].last = write;
                        self.dirty.push(sector);
                    }
                    let fua = write.is_multiple_of(5);
                    served.write(Command::new(RequestKind::Write, extent).with_fua(fua), &mut bytes, 0)?;
                    for sector in range.filter(|_| fua) {
                        self.sectors[sector as usize].durable = write;
                    }
                }
            }
        }
        Ok(())
    }

    fn read(&mut self, served: &mut Served<'_>, extent: Extent) -> Reply<()> {
        let mut bytes = Vec::new();
        match served.read(extent, &mut bytes) {
            Err(Failure::Unreadable) if self.loses_a_die => return Ok(()),
            done => done?,
        };
        for (sector, bytes) in (extent.sector..).zip(bytes.chunks_exact(SECTOR_BYTES as usize)) {
            self.check(sector, bytes);
        }
        Ok(())
    }

    fn check(&mut self, sector: u64, bytes: &[u8]) {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let known = self.sectors[sector as usize];
        let write = if bytes.iter().all(|&byte| byte == 0) { 0 } else { word(8) };
        assert!(
            write == 0 || bytes == content(sector, write),
            "{}: sector {sector} holds what was never written",
            self.name
        );
        let Sector { last, durable, trimmed } = known;
        // Zeros are the last trim, or an older one.
        let right = if write == 0 { trimmed >= durable } else { (durable..=last).contains(&write) };
        let flushed = format!("{durable} was flushed, {trimmed} was its last trim");
        assert!(right, "{}: sector {sector} holds write {write}; the last is {last}, {flushed}", self.name);
    }

    /// Checks a drive opened after a kill of the server; the present contents stay.
    fn look_at_all(&mut self, served: &mut Served<'_>) -> Reply<()> {
        let all = self.sectors.len() as u64;
        let step = if self.loses_a_die { 1 } else { 64 };
        self.unreadable = 0;
        for sector in (0..all).step_by(step as usize) {
            let extent = Extent { sector, sectors: (all - sector).min(step) as u32 };
            let mut bytes = Vec::new();
            match served.read(extent, &mut bytes) {
                Err(Failure::Unreadable) if self.loses_a_die => {
                    self.unreadable += 1;
                    continue;
                }
                done => done?,
            };
            for (sector, bytes) in (sector..).zip(bytes.chunks_exact(SECTOR_BYTES as usize)) {
                self.check(sector, bytes);
                let write = if bytes.iter().all(|&byte| byte == 0) {
                    0
                } else {
                    bytes[8..16].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
                };
                let known = &mut self.sectors[sector as usize];
                let found = if write == 0 { known.trimmed } else { write };
                (known.durable, known.last) = (found, found);
            }
        }
        self.dirty.clear();
        Ok(())
    }
}

/// Kills the server of a drive `kills` times; sometimes the server ends well.
fn killed(ftl: &str, fidelity: Fidelity, extra: &[&str], kills: u64, seed: u64) {
    let _: Vec<u64> = killed_with(ftl, fidelity, extra, kills, seed);
}

/// As [`killed`]; returns the number of unreadable sectors over all openings.
fn killed_with(ftl: &str, fidelity: Fidelity, extra: &[&str], kills: u64, seed: u64) -> Vec<u64> {
    let resolved = drive(ftl, extra);
    let loses_a_die = extra.iter().any(|text| text.starts_with("faults.die_failure"));
    // The drive may be worn out by blocks that fail, in use or during an open.
    let wears_out = extra.iter().any(|text| text.starts_with("faults"));
    let mut unreadable = Vec::new();
    let options = options(fidelity);
    let memory = Memory::new(length_of(&resolved).expect("an image of this size"));
    let name = format!("{ftl} {fidelity:?} {extra:?} seed {seed}");
    let mut host = Host {
        name,
        sectors: Vec::new(),
        dirty: Vec::new(),
        writes: 0,
        rng: Rng::new(seed, 3),
        loses_a_die,
        unreadable: 0,
    };
    for kill in 0..kills {
        let ends_well = host.rng.below(8) == 0;
        let after = if host.rng.below(4) == 0 { host.rng.below(40) } else { host.rng.below(1500) };
        memory.end_after((kill > 0 && !ends_well).then_some(after));
        let mut watcher = |_| ControlFlow::Continue(());
        let keep = keep(&memory, kill == 0, false);
        let mut served = match Served::keep(&resolved, &options, Some(keep), &mut watcher) {
            Ok(served) => served,
            Err(Error::WornOut(_)) if wears_out && kill > 0 => break,
            Err(error) => {
                assert!(kill > 0 && error.to_string().contains("have ended"), "{}: {error}", host.name);
                continue;
            }
        };
        if kill == 0 {
            host.sectors = vec![Sector::default(); (served.bytes() / SECTOR_BYTES) as usize];
        }
        let looked = host.look_at_all(&mut served);
        if looked.is_ok() {
            unreadable.push(host.unreadable);
        }
        match looked.and_then(|()| host.use_drive(&mut served, 300)) {
            Ok(()) if ends_well => {
                served.finish().unwrap_or_else(|error| panic!("{}: {error}", host.name));
                host.dirty
                    .drain(..)
                    .for_each(|sector| host.sectors[sector as usize].durable = host.sectors[sector as usize].last);
            }
            Ok(()) => {}
            Err(Failure::Drive(error)) => assert!(error.to_string().contains("have ended"), "{}: {error}", host.name),
            Err(Failure::WornOut(_)) if wears_out => break,
            Err(failure) => panic!("{}: {failure:?}", host.name),
        }
    }
    unreadable
}

/// Crashes the machine of a drive `crashes` times; the image survives.
fn crashed(ftl: &str, extra: &[&str], crashes: u64, seed: u64) {
    let resolved = drive(ftl, extra);
    let options = options(Fidelity::Count);
    let mut memory = Memory::new(length_of(&resolved).expect("an image of this size"));
    let name = format!("{ftl} {extra:?} seed {seed}");
    let mut host = Host {
        name,
        sectors: Vec::new(),
        dirty: Vec::new(),
        writes: 0,
        rng: Rng::new(seed, 4),
        loses_a_die: false,
        unreadable: 0,
    };
    for crash in 0..crashes {
        let mut watcher = |_| ControlFlow::Continue(());
        let keep = keep(&memory, crash == 0, true);
        let mut served = Served::keep(&resolved, &options, Some(keep), &mut watcher)
            .unwrap_or_else(|error| panic!("{}: crash {crash}: {error}", host.name));
        memory.keep_before();
        if crash == 0 {
            host.sectors = vec![Sector::default(); (served.bytes() / SECTOR_BYTES) as usize];
        }
        host.look_at_all(&mut served).unwrap_or_else(|failure| panic!("{}: crash {crash}: {failure:?}", host.name));
        let requests = host.rng.below(300);
        host.use_drive(&mut served, requests).unwrap_or_else(|failure| panic!("{}: {failure:?}", host.name));
        drop(served);
        let mut rng = host.rng.clone();
        memory = memory.crash(&mut |below| rng.below(below));
        host.rng = rng;
    }
}

/// The layers of drives that can be served: those without zones.
fn served() -> impl Iterator<Item = &'static Entry> {
    layers::layers().filter(|entry| !entry.zoned)
}

#[test]
fn nothing_that_was_flushed_is_lost_by_a_crash_of_the_machine() {
    let only = std::env::var("IMAGE_FTL").ok();
    for entry in served().filter(|entry| only.as_ref().is_none_or(|only| entry.name == only)) {
        let blocks = format!("ssd.blocks_per_plane={}", 16 + entry.model.blocks);
        let mut needs: Vec<&str> = vec![blocks.as_str()];
        needs.extend(entry.needs());
        crashed(entry.name, &needs, number("IMAGE_CASES", 8), number("IMAGE_SEED", 1));
    }
    let checkpoint = ["ftl.checkpoint=256KiB", "ssd.blocks_per_plane=24"];
    crashed("page", &checkpoint, number("IMAGE_CASES", 8), number("IMAGE_SEED", 1));
}

fn every_layer(fidelity: Fidelity, extra: &[&str], kills: u64) {
    let only = std::env::var("IMAGE_FTL").ok();
    let (kills, seed) = (number("IMAGE_CASES", kills), number("IMAGE_SEED", 1));
    for entry in served().filter(|entry| only.as_ref().is_none_or(|only| entry.name == only)) {
        let blocks = format!("ssd.blocks_per_plane={}", 16 + entry.model.blocks);
        let mut needs: Vec<&str> = vec![blocks.as_str()];
        needs.extend(extra);
        needs.extend(entry.needs());
        killed(entry.name, fidelity, &needs, kills, seed);
    }
}

#[test]
fn a_drive_that_an_image_cannot_keep_is_refused() {
    let refused = |ftl: &str, set: &[&str]| {
        let set: Vec<String> = set.iter().map(|&text| text.into()).collect();
        resolve_to_keep("mga-8k", Some(ftl), &set, &|_| unreachable!()).expect_err("it is refused").to_string()
    };
    assert!(refused("codesign", &["fs.files=names"]).contains("expected fs.files=addresses"));
    assert!(
        refused("page", &["faults.power_cut_at=7"]).starts_with("--image: its power fails when the server is killed")
    );
    assert!(refused("subpage", &["buffer.ack=buffer"]).contains("expected buffer.ack=program"));
    assert!(refused("subpage", &["buffer.ack=buffer", "buffer.flush=free"]).contains("expected buffer.flush=programs"));
}

/// The hash must be the hash of the keys of that version.
#[test]
fn an_image_of_a_version_with_fewer_keys_opens() {
    let (resolved, options) = (drive("page", &[]), options(Fidelity::Count));
    let memory = Memory::new(length_of(&resolved).expect("an image of this size"));
    let keep = |is_new| keep(&memory, is_new, false);
    let mut watcher = |_| ControlFlow::Continue(());
    Served::keep(&resolved, &options, Some(keep(true)), &mut watcher).expect("a new image").finish().expect("it works");
    let mut page = vec![0; PAGE as usize];
    memory.read(0, &mut page).expect("a header");
    let (header, layout) = Header::read(&page, memory.length().expect("a length")).expect("a header");
    assert!(header.hash != 7 && layout.end > 0);
    memory.write(0, &Header { hash: 7, ..header }.bytes()).expect("memory");
    let mut watcher = |_| ControlFlow::Continue(());
    Served::keep(&resolved, &options, Some(keep(false)), &mut watcher).expect("the same drive");
    let other = drive("page", &["ssd.over_provisioning=50%"]);
    let mut watcher = |_| ControlFlow::Continue(());
    let refused = Served::keep(&other, &options, Some(keep(false)), &mut watcher).err().expect("another drive");
    assert!(refused.to_string().contains("ssd.over_provisioning"), "{refused}");
}

/// Once wrong: a kill restored data that a flush had made zeros. Writes after the trim make the layer collect the older
/// copies.
#[test]
fn a_flushed_trim_stays_after_a_kill() {
    for entry in served() {
        let blocks = format!("ssd.blocks_per_plane={}", 16 + entry.model.blocks);
        let mut needs = vec![blocks.as_str()];
        needs.extend(entry.needs());
        let (resolved, options) = (drive(entry.name, &needs), options(Fidelity::Count));
        let memory = Memory::new(length_of(&resolved).expect("an image of this size"));
        for (service, collects) in [(0, false), (1, true), (2, false)] {
            let keep = keep(&memory, service == 0, false);
            let mut watcher = |_| ControlFlow::Continue(());
            let mut served = Served::keep(&resolved, &options, Some(keep), &mut watcher).expect("an image");
            let unit = served.unit_bytes() / SECTOR_BYTES;
            let all = served.bytes() / SECTOR_BYTES / unit;
            let write = |served: &mut Served<'_>, at: u64| {
                let extent = Extent { sector: at * unit, sectors: unit as u32 };
                let bytes = &mut vec![7; (unit * SECTOR_BYTES) as usize];
                served.write(Command::new(RequestKind::Write, extent), bytes, 0).expect("room");
            };
            if service == 0 {
                (0..all).chain(0..all / 2).for_each(|at| write(&mut served, at));
                served.flush().expect("a drive");
                served.trim(Extent { sector: 0, sectors: (all / 4 * unit) as u32 }).expect("a drive");
                served.flush().expect("a drive");
            }
            if collects {
                (0..3).flat_map(|_| all / 4..all).for_each(|at| write(&mut served, at));
            }
            let mut bytes = Vec::new();
            served.read(Extent { sector: 0, sectors: (all / 4 * unit) as u32 }, &mut bytes).expect("a drive");
            assert!(bytes.iter().all(|&byte| byte == 0), "{}: trimmed data is back in service {service}", entry.name);
        }
    }
}

/// Once wrong: after a kill the journal of trims counted only the host's part of a unit as written, and not the rest
/// that a merge stored. The next trim left the rest, and thereby the old data of the part.
#[test]
fn a_trim_after_a_kill_covers_merged_units() {
    let resolved = drive("sector-log", &[]);
    let options = options(Fidelity::Count);
    let memory = Memory::new(length_of(&resolved).expect("an image of this size"));
    let sectors = |sector, sectors| Extent { sector, sectors };
    for service in 0..3 {
        let keep = keep(&memory, service == 0, false);
        let mut watcher = |_| ControlFlow::Continue(());
        let mut served = Served::keep(&resolved, &options, Some(keep), &mut watcher).expect("an image");
        let unit = (served.unit_bytes() / SECTOR_BYTES) as u32;
        let write = |served: &mut Served<'_>, extent: Extent| {
            let bytes = &mut vec![7; extent.sectors as usize * SECTOR_BYTES as usize];
            served.write(Command::new(RequestKind::Write, extent), bytes, 0).expect("room");
        };
        match service {
            0 => {
                write(&mut served, sectors(0, unit));
                served.trim(sectors(0, unit)).expect("a drive");
                write(&mut served, sectors(0, 4));
            }
            1 => {
                // The log fills with pieces of other units, and is merged.
                (0..600).for_each(|at| write(&mut served, sectors(u64::from(unit * (1 + at % 40)), 4)));
                served.trim(sectors(0, unit)).expect("a drive");
            }
            _ => {
                let mut bytes = Vec::new();
                served.read(sectors(0, unit), &mut bytes).expect("a drive");
                assert!(bytes.iter().all(|&byte| byte == 0), "trimmed data is back");
            }
        }
        served.flush().expect("a drive");
    }
}

#[test]
fn nothing_that_was_flushed_is_lost_by_a_kill() {
    every_layer(Fidelity::Count, &[], 4);
}

#[test]
fn nothing_that_was_flushed_is_lost_by_a_kill_of_a_timed_drive() {
    every_layer(Fidelity::Timed, &[], 2);
}

/// Blocks fail, and some are bad from the factory; a failed program corrupts other pages of the word line, which are
/// read from their copies.
const FAULTS: [&str; 3] = ["faults.program_fail=0.1%", "faults.erase_fail=0.1%", "faults.initial_bad=5%"];

#[test]
fn nothing_that_was_flushed_is_lost_by_a_kill_where_blocks_fail() {
    every_layer(Fidelity::Count, &FAULTS, 2);
    let pairs = ["part.cell=tlc", "part.pages_per_block=12", "part.pair_corruption=true", "ssd.blocks_per_plane=24"];
    killed("page", Fidelity::Count, &[&pairs[..], &FAULTS[..1]].concat(), number("IMAGE_CASES", 12), 3);
}

/// A failed die stays dead when the drive is served again, also if the server was killed in the failure: only the data
/// of that die is lost, until the host writes again.
#[test]
fn a_die_that_failed_is_dead_in_an_image() {
    let only = std::env::var("IMAGE_FTL").ok();
    let (kills, seed) = (number("IMAGE_CASES", 12), number("IMAGE_SEED", 1));
    let outlives = |entry: &&Entry| entry.outlives_dies && !entry.is_file_system();
    for entry in served().filter(outlives).filter(|entry| only.as_ref().is_none_or(|only| entry.name == only)) {
        for (fidelity, at) in
            [(Fidelity::Count, "faults.die_failure=at:900@1"), (Fidelity::Timed, "faults.die_failure=at:1500@2")]
        {
            let blocks = format!("ssd.blocks_per_plane={}", 16 + entry.model.blocks);
            let mut extra = vec![blocks.as_str(), "ssd.channels=4", "ssd.over_provisioning=100%", at];
            extra.extend(entry.needs());
            let unreadable = killed_with(entry.name, fidelity, &extra, kills, seed);
            let found = unreadable.iter().filter(|&&sectors| sectors > 0).count();
            assert!(found > 1, "{} {fidelity:?}: it was opened with a dead die: {unreadable:?}", entry.name);
        }
    }
}

/// A fast cache with static SLC blocks survives.
#[test]
fn a_fast_cache_is_found_in_an_image() {
    let cache = [
        "part.cell=tlc",
        "part.pages_per_block=12",
        "ftl.streams=2",
        "ftl.slc_fixed=2 blocks",
        "ftl.slc_cache=3 blocks",
    ];
    for (full, fidelity) in [("ftl.slc_full=direct", Fidelity::Count), ("ftl.slc_full=fold", Fidelity::Timed)] {
        let more = [&cache[..], &[full, "part.nop=1", "part.order=strict", "ssd.blocks_per_plane=24"]].concat();
        killed("page", fidelity, &more, number("IMAGE_CASES", 12), 3);
        killed("subpage", fidelity, &[&more[..], &["ftl.checkpoint=256KiB"]].concat(), number("IMAGE_CASES", 12), 5);
        crashed("dftl", &[&more[..], &["ssd.over_provisioning=100%"]].concat(), number("IMAGE_CASES", 6), 7);
    }
}

#[test]
fn checkpoints_of_tables_are_found_in_an_image() {
    killed(
        "page",
        Fidelity::Count,
        &["ftl.checkpoint=256KiB", "ssd.blocks_per_plane=24"],
        number("IMAGE_CASES", 25),
        4,
    );
    killed(
        "subpage",
        Fidelity::Timed,
        &["ftl.checkpoint=256KiB", "ssd.blocks_per_plane=24"],
        number("IMAGE_CASES", 10),
        4,
    );
}

fn changed(cases: u64, seed: u64) {
    let mut rng = Rng::new(seed, 8);
    for case in 0..cases {
        let changes = 1 + if rng.below(3) == 0 { rng.below(20) } else { 0 };
        let mut bytes: Vec<u8> = (0..1 + CHANGE as u64 * changes).map(|_| rng.below(256) as u8).collect();
        // Half of the damaged images have correct checksums.
        if case % 2 == 0 {
            bytes[1..].chunks_exact_mut(CHANGE).for_each(|change| change[0] %= 4);
        }
        let ended = std::panic::catch_unwind(|| fuzz_image(&bytes));
        assert!(ended.is_ok(), "case {case} of seed {seed}: {bytes:?}");
    }
}

#[test]
fn images_that_lie_are_refused_or_lose_data_and_never_panic() {
    changed(number("IMAGE_CASES", 200), number("IMAGE_SEED", 1));
    for (name, bytes) in kept("image") {
        println!("{name}");
        fuzz_image(&bytes);
    }
}

#[test]
#[ignore = "minutes"]
fn long_damaged_images_are_refused_or_lose_data_without_a_panic() {
    changed(number("IMAGE_CASES", 30_000), number("IMAGE_SEED", 2));
}

#[test]
#[ignore = "minutes"]
fn long_nothing_that_was_flushed_is_lost_by_many_kills() {
    for (fidelity, extra) in [(Fidelity::Count, &[][..]), (Fidelity::Timed, &[][..]), (Fidelity::Count, &FAULTS[..])] {
        every_layer(fidelity, extra, 300);
    }
}
