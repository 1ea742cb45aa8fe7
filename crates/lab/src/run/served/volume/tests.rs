//! Files on a drive against a model in memory: every byte, with power cuts, and until the drive is full.

use super::*;
use crate::config;
use crate::run::precondition::Precondition;
use crate::run::{Fidelity, Options, Warmup};
use palimpsest_flash::nand::data::Payload;
use palimpsest_flash::rng::Rng;
use palimpsest_fs::{FileType, ROOT};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

type Model = BTreeMap<String, Vec<u8>>;

fn resolved(ftl: &str, blocks: u32, more: &[&str]) -> Resolved {
    let blocks = format!("ssd.blocks_per_plane={blocks}");
    let set = [
        "ssd.channels=2",
        "ssd.planes_per_die=1",
        "ssd.chips_per_channel=1",
        "ftl.gc_start=2 blocks",
        "ftl.gc_stop=3 blocks",
        "part.pages_per_block=8",
        "ssd.over_provisioning=60%",
    ];
    let set: Vec<String> = set.iter().chain(more).chain([&blocks.as_str()]).map(|&text| text.into()).collect();
    config::resolve("mga-8k", Some(ftl), &set, &|_| unreachable!()).unwrap()
}

fn with_volume(ftl: &str, fidelity: Fidelity, blocks: u32, more: &[&str], test: impl FnOnce(Volume<'_>)) {
    let resolved = resolved(ftl, blocks, more);
    let options = Options {
        workload: "files".into(),
        precondition: Precondition::None,
        requests: None,
        warmup: Warmup::Requests(0),
        fidelity,
        payload: Payload::Bytes,
        seed: 1,
        series: false,
        operations: None,
        strict: false,
    };
    let mut watcher = |_| ControlFlow::Continue(());
    let served = Served::new(&resolved, &options, &mut watcher).unwrap();
    test(Volume::open(served, "rr").unwrap());
}

fn found(volume: &mut Volume<'_>) -> Model {
    let read = volume.with(|filesystem, device| {
        let mut model = Model::new();
        let names: Vec<(String, u32)> =
            filesystem.list(ROOT)?.map(|(name, ino)| (String::from_utf8_lossy(name).into_owned(), ino)).collect();
        for (name, ino) in names {
            let size = filesystem.stat(ino)?.1;
            model.insert(name, filesystem.read(device, ino, 0, size)?);
        }
        Ok(model)
    });
    read.unwrap()
}

/// A random operation on both sides.
fn step(volume: &mut Volume<'_>, model: &mut Model, rng: &mut Rng) -> std::result::Result<bool, Trouble> {
    let name = format!("f{}", rng.below(4));
    let choice = rng.below(20);
    let (at, length, fill) = (rng.below(60_000), 1 + rng.below(20_000), rng.below(255) as u8 + 1);
    let known = model.contains_key(&name);
    let before = model.clone();
    let file = model.entry(name.clone()).or_default();
    let done = volume.with(|filesystem, device| {
        let ino = match filesystem.lookup(ROOT, &name) {
            Ok(ino) => ino,
            Err(_) => filesystem.create(device, ROOT, &name, FileType::File)?,
        };
        match choice {
            0..10 => filesystem.write(device, ino, at, &vec![fill; length as usize]),
            10..13 => filesystem.truncate(device, ino, at),
            13..16 if known => filesystem.unlink(device, ROOT, &name),
            16..18 => filesystem.sync(device),
            _ => {
                let read = filesystem.read(device, ino, at, length)?;
                let (from, end) = ((at as usize).min(file.len()), ((at + length) as usize).min(file.len()));
                assert!(read == file[from..end], "{name} from {from} to {end}");
                Ok(())
            }
        }
    });
    match choice {
        0..10 => {
            let end = (at + length) as usize;
            file.resize(file.len().max(end), 0);
            file[at as usize..end].fill(fill);
        }
        10..13 => file.resize(at as usize, 0),
        13..16 if known => _ = model.remove(&name),
        _ => {}
    }
    if done.is_err() {
        *model = before;
    }
    done.map(|()| (16..18).contains(&choice))
}

#[test]
fn files_on_any_layer_are_what_was_written() {
    for (ftl, fidelity) in [
        ("block", Fidelity::Count),
        ("page", Fidelity::Count),
        ("subpage", Fidelity::Timed),
        ("block", Fidelity::Timed),
    ] {
        with_volume(ftl, fidelity, 64, &[], |mut volume| {
            let (mut model, mut rng) = (Model::new(), Rng::new(3, 0xf11e));
            for number in 0..600 {
                step(&mut volume, &mut model, &mut rng).unwrap_or_else(|trouble| panic!("{ftl}: {trouble:?}"));
                if number % 60 == 59 {
                    assert!(found(&mut volume) == model, "{ftl} at {number}");
                    volume.filesystem().check(|block| volume.disk.written(block)).unwrap();
                }
            }
            volume.with(|filesystem, device| filesystem.sync(device)).unwrap();
            volume.mount_again().unwrap();
            assert!(found(&mut volume) == model, "{ftl} after it was mounted again");
            let outcome = volume.finish().unwrap();
            assert!(outcome.summary.notes.iter().any(|note| note.contains("commits")));
        });
    }
}

#[test]
fn a_power_cut_leaves_the_files_of_a_moment_since_the_last_sync() {
    let mut cuts = 0;
    for at in (20..560).step_by(11) {
        for ftl in ["block", "page"] {
            let cut = format!("faults.power_cut_at={at}");
            with_volume(ftl, Fidelity::Count, 64, &[&cut], |mut volume| {
                let (mut model, mut rng) = (Model::new(), Rng::new(at, 0xc07));
                let mut since = vec![model.clone()];
                for _ in 0..300 {
                    match step(&mut volume, &mut model, &mut rng) {
                        Ok(true) => since = vec![model.clone()],
                        Ok(false) => since.push(model.clone()),
                        Err(Trouble::PowerLost) => {
                            cuts += 1;
                            let found = found(&mut volume);
                            // Names created in the interrupted operation have no contents yet.
                            let found: Model = found.into_iter().filter(|(_, bytes)| !bytes.is_empty()).collect();
                            let known = since.iter().any(|known| {
                                let known: Model = known
                                    .iter()
                                    .filter(|(_, bytes)| !bytes.is_empty())
                                    .map(|(name, bytes)| (name.clone(), bytes.clone()))
                                    .collect();
                                found == known
                            });
                            assert!(known, "{ftl}, cut at {at}");
                            break;
                        }
                        Err(trouble) => panic!("{ftl}: {trouble:?}"),
                    }
                }
                volume.filesystem().check(|block| volume.disk.written(block)).unwrap();
            });
        }
    }
    assert!(cuts > 60, "only {cuts} cuts");
}

#[test]
fn it_is_full_when_it_says_so_and_no_sooner() {
    with_volume("block", Fidelity::Count, 128, &[], |mut volume| {
        let page = u64::from(volume.page_bytes());
        let ino = volume.with(|filesystem, device| filesystem.create(device, ROOT, "all", FileType::File)).unwrap();
        let room = volume.filesystem().room() * page;
        let mut written = 0;
        loop {
            let wrote =
                volume.with(|filesystem, device| filesystem.write(device, ino, written, &vec![7; page as usize]));
            match wrote {
                Ok(()) => written += page,
                Err(Trouble::Refused(Fault::Full)) => break,
                Err(trouble) => panic!("{trouble:?}"),
            }
        }
        assert!(written * 100 >= room * 95, "{written} of {room} bytes");
        // Files can still be read, overwritten and emptied.
        volume.with(|filesystem, device| filesystem.write(device, ino, 0, &vec![8; page as usize])).unwrap();
        volume.with(|filesystem, device| filesystem.unlink(device, ROOT, "all")).unwrap();
        volume.with(|filesystem, device| filesystem.sync(device)).unwrap();
        assert!(volume.filesystem().room() * page >= room * 99 / 100);
    });
}

#[test]
fn what_cannot_be_is_one_line() {
    let resolved = resolved("page", 12, &[]);
    let options = Options {
        workload: "files".into(),
        precondition: Precondition::None,
        requests: None,
        warmup: Warmup::Requests(0),
        fidelity: Fidelity::Count,
        payload: Payload::Bytes,
        seed: 1,
        series: false,
        operations: None,
        strict: false,
    };
    let mut watcher = |_| ControlFlow::Continue(());
    let served = Served::new(&resolved, &options, &mut watcher).unwrap();
    let refused = Volume::open(served, "rr").err().unwrap();
    assert!(refused.to_string().contains("too few for a file system"), "{refused}");
}
