//! Tests of the module `served`.

use super::*;
use crate::config;
use crate::run::Warmup;
use palimpsest_flash::command::ZoneAction;
use palimpsest_flash::rng::Rng;
use palimpsest_sim::fingerprint::fingerprint;
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

fn options(fidelity: Fidelity) -> Options {
    Options {
        workload: "served".into(),
        precondition: super::super::precondition::Precondition::None,
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

/// Serves a request, and repeats it after a power cut.
fn again<T>(served: &mut Served<'_>, mut request: impl FnMut(&mut Served<'_>) -> Reply<T>) -> T {
    match request(served) {
        Err(Failure::PowerLost) => request(served).unwrap(),
        reply => reply.unwrap(),
    }
}

/// Random requests against a plain array; a trim of the array zeroes whole units only, as on the drive. Returns the
/// number of writes that left their memory to the drive.
fn against_array(ftl: &str, fidelity: Fidelity, extra: &[&str], trims: bool) -> usize {
    // Extra settings replace those of the drive.
    let key = |text: &str| text.split('=').next().map(String::from);
    let kept = DRIVE.iter().filter(|text| !extra.iter().any(|other| key(other) == key(text)));
    let set: Vec<String> = kept.chain(extra).map(|&text| text.into()).collect();
    let resolved = config::resolve("mga-8k", Some(ftl), &set, &|_| unreachable!()).unwrap();
    let (options, mut watcher) = (options(fidelity), |_| ControlFlow::Continue(()));
    let mut served = Served::new(&resolved, &options, &mut watcher).unwrap();
    let (sectors, unit) = (served.bytes() / SECTOR_BYTES, served.unit_bytes() as usize);
    let mut array = vec![0; served.bytes() as usize];
    let (mut rng, mut adopted) = (Rng::new(7, 0), 0);
    for _ in 0..3000 {
        let sector = rng.below(sectors);
        let extent = Extent { sector, sectors: (1 + rng.below(40)).min(sectors - sector) as u32 };
        let range = (sector * SECTOR_BYTES) as usize..(extent.end() * SECTOR_BYTES) as usize;
        [Step::Name, Step::Place, Step::Bytes].into_iter().for_each(|step| served.expect(extent, step));
        match rng.below(16) {
            0 => again(&mut served, |served| served.flush()),
            1 if !trims => {}
            1 => {
                again(&mut served, |served| served.trim(extent));
                let (from, to) = (range.start.div_ceil(unit) * unit, range.end / unit * unit);
                array.get_mut(from..to).unwrap_or_default().fill(0);
            }
            2..8 => {
                let mut read = Vec::new();
                again(&mut served, |served| served.read(extent, &mut read));
                assert!(read == array[range], "{extent:?} differs");
            }
            8..11 => {
                // In one range, all is overwritten often.
                let places = rng.below(4) * 32 + 32;
                let first = sector % places / 32 * 32;
                let end = (first + 32).min(sectors);
                let whole = Extent { sector: first, sectors: (end - first) as u32 };
                let range = (first * SECTOR_BYTES) as usize..(end * SECTOR_BYTES) as usize;
                let bytes: Vec<u8> = range.clone().map(|_| rng.below(256) as u8).collect();
                array[range].copy_from_slice(&bytes);
                again(&mut served, |served| {
                    let mut slab = Slab::new(bytes.len());
                    slab.copy_from_slice(&bytes);
                    let mut fingerprints = bytes.chunks_exact(SECTOR_BYTES as usize).map(fingerprint).collect();
                    let before = slab.as_ptr();
                    let done = served.write_slab(Command::new(RequestKind::Write, whole), &mut slab, &mut fingerprints);
                    assert_eq!((slab.len(), fingerprints.len()), (bytes.len(), whole.sectors as usize));
                    adopted += usize::from(slab.as_ptr() != before);
                    done
                });
            }
            _ => {
                let mut bytes: Vec<u8> = range.clone().map(|_| rng.below(256) as u8).collect();
                array[range].copy_from_slice(&bytes);
                bytes.insert(0, 0);
                let write = Command::new(RequestKind::Write, extent).with_fua(sector % 5 == 0);
                again(&mut served, |served| served.write(write, &mut bytes, 1));
            }
        }
    }
    let summary = served.finish().unwrap().summary;
    assert_eq!(summary.latency_ns.is_some(), fidelity == Fidelity::Timed);
    assert!(
        summary.gc.runs + summary.gc.erased_blocks + summary.merge.count > 0,
        "the drive was not erased often enough for an estimate"
    );
    assert_eq!(summary.payload, "bytes");
    adopted
}

#[test]
fn every_layer_returns_what_was_written() {
    let mut adopted = 0;
    let drive = config::resolve("mga-8k", Some("zns"), &DRIVE.map(String::from), &|_| unreachable!()).unwrap();
    let options = options(Fidelity::Count);
    let refused = Served::new(&drive, &options, &mut |_| ControlFlow::Continue(())).err().unwrap().to_string();
    assert!(refused.contains("send no commands of zones; expected a layer without zones"), "{refused}");
    for entry in crate::layers::layers().filter(|entry| !entry.zoned) {
        let blocks = format!("ssd.blocks_per_plane={}", 16 + entry.model.blocks);
        let needs: Vec<&str> = entry.needs().into_iter().chain([blocks.as_str()]).collect();
        adopted += against_array(entry.name, Fidelity::Count, &needs, true);
        adopted += against_array(entry.name, Fidelity::Timed, &needs, true);
    }
    assert!(adopted > 200, "{adopted} writes left their memory to the drive");
}

#[test]
fn a_write_that_the_power_cut_keeps_its_bytes() {
    // Without trims, because a power cut may undo a trim, which the shadow does not model.
    against_array("page", Fidelity::Count, &["faults.power_cut_at=1500"], false);
}

#[test]
fn a_drive_without_bytes_is_refused() {
    let resolved = config::resolve("mga-8k", None, &[], &|_| unreachable!()).unwrap();
    let options = Options { payload: Payload::Tag, ..options(Fidelity::Count) };
    let refused = Served::new(&resolved, &options, &mut |_| ControlFlow::Continue(())).err().unwrap();
    assert!(matches!(refused, Error::Input { .. }));
}

#[test]
fn zones_place_appends_and_refuse_with_a_status() {
    let set = ["zns.zone_dies=1", "zns.max_open=2", "zns.max_active=2"].map(String::from);
    let drive =
        config::resolve("mga-8k", Some("zns"), &[&DRIVE.map(String::from)[..], &set].concat(), &|_| unreachable!());
    let drive = drive.unwrap();
    for fidelity in [Fidelity::Count, Fidelity::Timed] {
        let mut watcher = |_| ControlFlow::Continue(());
        let mut served = Served::keep_zoned(&drive, &options(fidelity), None, &mut watcher).unwrap();
        let (size, capacity) = served.zones().map(|zones| (zones.size, zones.capacity)).unwrap();
        let zone = |at: u64| Extent { sector: at * size, sectors: size as u32 };
        let append = |sectors| Command::new(RequestKind::Write, Extent { sector: size, sectors });
        let append = |sectors| append(sectors).on_zone(ZoneAction::Append);
        let (first, mut second) = (vec![1; 8 * 512], vec![2; 16 * 512]);
        // A slab is copied, because the drive chooses the place.
        let mut slab = Slab::new(first.len());
        slab.copy_from_slice(&first);
        let mut fingerprints = first.chunks_exact(512).map(fingerprint).collect();
        served.write_slab(append(8), &mut slab, &mut fingerprints).unwrap();
        assert_eq!((served.placed(), slab[0]), (size, 1));
        served.write(append(16), &mut second, 0).unwrap();
        assert_eq!(served.placed(), size + 8);
        let mut read = Vec::new();
        served.read(Extent { sector: size, sectors: 32 }, &mut read).unwrap();
        assert_eq!(read, [first, second.clone(), vec![0; 8 * 512]].concat());
        let wrong = Command::new(RequestKind::Write, Extent { sector: size + 8, sectors: 16 });
        assert_eq!(served.write(wrong, &mut second, 0), Err(Failure::Zone(ZoneError::ZoneInvalidWrite)));
        for at in [0, 2] {
            let opened = served.manage(Command::new(RequestKind::Trim, zone(at)).on_zone(ZoneAction::Open));
            assert_eq!(opened, if at == 0 { Ok(()) } else { Err(Failure::Zone(ZoneError::TooManyActiveZones)) });
        }
        served.manage(Command::new(RequestKind::Trim, zone(1)).on_zone(ZoneAction::Finish)).unwrap();
        served.manage(Command::new(RequestKind::Trim, zone(1))).unwrap();
        let summary = served.finish().unwrap().summary;
        let zns = summary.zns.unwrap();
        assert_eq!((zns.appends, zns.finishes, zns.resets), (2, 1, 1));
        assert_eq!((zns.padded_bytes > 0, zns.zone_capacity_bytes), (true, capacity * 512));
        assert_eq!((summary.requests.write, summary.requests.trim, summary.host.bytes_written), (2, 3, 24 * 512));
    }
}
