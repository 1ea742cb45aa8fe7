//! Tests of the configuration: presets, overlays, sources, messages.

use super::unread::Gravity;
use super::*;
use crate::metrics::summary::Promise;
use palimpsest_flash::nand::part::{CellKind, ProgramOrder};
use palimpsest_flash::units::{GIB, Rate};
use palimpsest_ftl::log::settings::{Allocation, Moved};
use palimpsest_ftl_api::keys::Need;
use palimpsest_ftl_api::keys::blocks::BlockCount;
use palimpsest_workload::fio::{FioSource, FioSpec};
use palimpsest_workload::lsm::LsmSpec;
use palimpsest_workload::objects::ObjectSpec;
use palimpsest_workload::request::{RequestKind, Source};
use proptest::prelude::*;
use std::collections::BTreeMap;

mod llh_paper;
mod messages;
mod unread_keys;

fn no_file(path: &str) -> Result<String> {
    Err(Error::input(path, "no such file"))
}

/// A preset with overrides.
fn preset(ssd: &str, overrides: &[&str]) -> Result<Resolved> {
    let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
    resolve(ssd, None, &overrides, &no_file)
}

/// The file my.toml with `text`.
fn file(text: &str, overrides: &[&str]) -> Result<Resolved> {
    let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
    resolve("my.toml", None, &overrides, &|path| if path == "my.toml" { Ok(text.into()) } else { no_file(path) })
}

fn source<'a>(resolved: &'a Resolved, key: &str) -> &'a str {
    &resolved.key(key).unwrap().source
}

/// `FILE:LINE` of the line of a preset that starts with `start`.
fn line_of(file: &str, start: &str) -> String {
    let text = std::fs::read_to_string(format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    format!("{file}:{}", 1 + text.lines().position(|line| line.starts_with(start)).unwrap())
}

/// The settings without a reader, with their gravity.
fn unread(resolved: &Resolved) -> Vec<(&'static str, Gravity)> {
    resolved.unread().iter().map(|unread| (unread.key, unread.gravity)).collect()
}

#[test]
fn a_layer_fixes_settings_of_its_paper() {
    let drive = preset("llh-16g", &["ftl.name=hotcold", "ftl.streams=2", "ftl.allocation=channel"]).unwrap();
    assert_eq!(unread(&drive), [("ftl.streams", Gravity::Mistake), ("ftl.allocation", Gravity::Mistake)]);
    let log = &drive.drive.log;
    assert_eq!((log.streams, log.moved, log.allocation), (3, Moved::Cold, Allocation::Unit));
    let above = preset("llh-16g", &["ftl.name=fs-hotcold", "ssd.over_provisioning=100%"]).unwrap();
    assert_eq!(above.drive.log.moved, Moved::Cold, "below a file system, too");
}

#[test]
fn a_copied_preset_is_the_drive_of_the_preset() {
    for PresetInfo { name, .. } in ssd_presets() {
        let path = format!("{}/../../presets/ssds/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let copy = |path: &str| if path == "my.toml" { Ok(text.clone()) } else { no_file(path) };
        for ftl in std::iter::once(None).chain(crate::layers::layers().map(|entry| Some(entry.name))) {
            let (known, copied) = (resolve(name, ftl, &[], &no_file), resolve("my.toml", ftl, &[], &copy));
            let (known, copied) = match (known, copied) {
                (Ok(known), Ok(copied)) => (known, copied),
                (known, copied) => {
                    assert!(known.is_err() && copied.is_err(), "{name} {ftl:?}");
                    continue;
                }
            };
            assert!(copied.values().eq(known.values()), "{name} {ftl:?}");
            assert!(unread(&copied).iter().all(|&(_, gravity)| gravity != Gravity::Mistake), "{name} {ftl:?}");
        }
    }
}

#[test]
fn shares_that_are_no_block_are_refused() {
    for (key, blocks, least) in
        [("ftl.slc_fixed", 15, "6.67%"), ("ftl.slc_fixed", 30, "3.34%"), ("ftl.slc_cache", 30, "3.34%")]
    {
        let blocks = format!("ssd.blocks_per_plane={blocks}");
        let with = |share: &str| preset("tlc-32g", &[&blocks, "ssd.over_provisioning=60%", &format!("{key}={share}")]);
        let refused = with("3%").unwrap_err().to_string();
        let expected = format!("expected {key} = \"1 block\" or {key} = \"{least}\" or {key} = \"0%\"");
        assert!(refused.contains(&format!("no whole block; {expected}")), "{refused}");
        let taken = |share: &str| with(share).unwrap().drive.ftl.get::<BlockCount>(key).of(30);
        assert_eq!((taken("0%"), taken("1 block")), (0, 1));
        assert!(taken(least) > 0, "{key} {least}");
    }
}

#[test]
fn keys_of_layers_name_them() {
    for key in keys() {
        assert!(key.split().0 != "fs" || key.layers.is_some(), "{}: {}", key.name, key.doc);
        assert!(key.split().0 != "ssd" || key.layers.is_none(), "{}", key.name);
    }
    let layers = |name| schema::known(name).layers.clone().unwrap_or_default();
    assert_eq!((layers("ftl.low_pages_first"), layers("ftl.wom")), (vec!["mga"], vec!["llh"]));
    assert!(!layers("ftl.victim").contains(&"block") && layers("ftl.read").contains(&"block"));
}

/// An unreadable condition would panic only when a drive sets the key.
#[test]
fn conditions_of_keys_name_keys_and_values() {
    for key in keys() {
        for need in key.needs.iter().chain(key.readers.iter().flat_map(|reader| reader.needs)) {
            let need = Need::parse(need);
            let known = |word: &str| schema::known(need.key).value_type.read_text(word).is_ok();
            assert!(need.exceeds || need.operand.split('|').all(known), "{}: {need:?}", key.name);
            assert!(!need.exceeds || need.operand.parse::<f64>().is_ok(), "{}: {need:?}", key.name);
        }
    }
}

#[test]
fn every_scheme_can_be_named() {
    use palimpsest_fs::schemes::SCHEMES;
    let kind = keys()[schema::position("fs.scheme").unwrap()].value_type;
    assert_eq!(kind.words(), ["rr", "static", "fairness", "read-busy", "depth", "hybrid", "least-work"]);
    for scheme in SCHEMES {
        let resolved = preset("codesign-8ch", &["ftl.name=codesign", &format!("fs.scheme={}", scheme.name)]).unwrap();
        assert_eq!(resolved.drive.ftl.get::<String>("fs.scheme"), scheme.name);
    }
}

#[test]
fn a_file_system_needs_room() {
    let refused =
        preset("codesign-8ch", &["ftl.name=codesign", "ssd.blocks_per_plane=24", "ssd.over_provisioning=15%"]);
    let Err(Error::Input { what, .. }) = refused else { panic!("not refused") };
    assert!(what.contains("the file system of codesign needs") && what.contains("more spare pages"), "{what}");
}

#[test]
fn every_preset_resolves_and_survives_being_written() {
    assert_eq!(ssd_presets().len(), 23);
    for info in ssd_presets() {
        let resolved = preset(info.name, &[]).unwrap();
        assert_eq!(resolved.drive.name, info.name);
        let text = resolved.to_toml();
        let again = file(&text, &[]).unwrap_or_else(|error| panic!("{error} in\n{text}"));
        assert_eq!(again.drive, resolved.drive);
        assert_eq!(again.to_json(), resolved.to_json());
        assert!(!info.source.is_empty() && !info.description.contains('\n'));
    }
}

#[test]
fn over_provisioning_adds_flash_where_that_is_asked_for() {
    let own = preset("mga-16k", &[]).unwrap().drive;
    let more = preset("mga-16k", &["ssd.over_provisioning=200%", "ssd.spare=added"]).unwrap();
    let capacities = (own.logical_bytes(), more.drive.logical_bytes());
    let planes = u64::from(own.geometry.planes()) * own.geometry.pages() / u64::from(own.geometry.blocks());
    assert!(capacities.1 >= capacities.0 && capacities.1 - capacities.0 <= planes * u64::from(own.part.page_bytes));
    assert!(more.drive.geometry.blocks_per_plane > own.geometry.blocks_per_plane);
    let taken = preset("mga-16k", &["ssd.over_provisioning=200%"]).unwrap().drive;
    assert!(taken.logical_bytes() < own.logical_bytes() && taken.geometry == own.geometry);
    // `show` must write a file of the same drive.
    assert_eq!(file(&more.to_toml(), &[]).unwrap().drive.geometry, more.drive.geometry);
    // The over-provisioning of the drive itself changes nothing.
    assert_eq!(preset("mga-16k", &["ssd.spare=added"]).unwrap().drive.geometry, own.geometry);
}

#[test]
fn a_capacity_sets_the_blocks_and_nothing_else() {
    for name in ["default", "mga-16k", "enterprise-tlc-7.68t"] {
        let (whole, scaled) = (preset(name, &[]).unwrap(), preset(name, &["ssd.capacity=256GiB"]).unwrap());
        let (drive, geometry) = (&scaled.drive, &scaled.drive.geometry);
        let a_block_each = geometry.pages() * u64::from(geometry.page_bytes()) / u64::from(geometry.blocks_per_plane);
        assert!((256 * GIB..256 * GIB + a_block_each).contains(&drive.logical_bytes()), "{name}");
        let blocks = whole.drive.geometry.blocks_per_plane;
        assert_eq!(Geometry { blocks_per_plane: blocks, ..*geometry }, whole.drive.geometry);
        let rest = |drive: &DriveConfig| {
            (drive.over_provisioning, drive.part.clone(), drive.sim.clone(), drive.controller.clone())
        };
        assert_eq!(rest(drive), rest(&whole.drive));
        assert_eq!(source(&scaled, "ssd.blocks_per_plane"), "--set ssd.capacity=256GiB");
        assert_eq!(file(&scaled.to_toml(), &[]).unwrap().drive, *drive, "what is printed is the same drive");
        // Blocks of a later overlay replace the capacity.
        let later = file(&format!("base = \"{name}\"\nssd.capacity = \"256GiB\"\n"), &["ssd.blocks_per_plane=999"]);
        assert_eq!(later.unwrap().drive.geometry.blocks_per_plane, 999);
    }
}

#[test]
fn every_part_and_workload_can_be_had() {
    let names: Vec<&str> = part_presets().iter().map(|info| info.name).collect();
    let llh = ["mlc-8k", "mlc-32k", "a16", "a27", "b16", "b29", "b29-two-plane", "c35"];
    assert_eq!(
        names,
        [&["k9-slc-8k", "k9-slc-16k", "vnand-16k"][..], &llh, &["mlc-4k", "tlc-16k", "tlc-32k", "qlc-16k"]].concat()
    );
    for name in names {
        let resolved = preset("default", &[&format!("ssd.part={name}")]).unwrap();
        assert_eq!(resolved.drive.part.name, name);
    }
    for info in workload_presets() {
        let spec = workload_spec(info.name).unwrap();
        let faults = [LsmSpec::parse(&spec).err(), ObjectSpec::parse(&spec).err(), FioSpec::parse(&spec).err()];
        assert!(faults.contains(&None), "{}: {faults:?}", info.name);
    }
    assert_eq!(workload_spec("nothing"), None);
    assert_eq!(workload_spec("KV1"), workload_spec("kv1"));
    assert!(workload_spec("Synth-A").is_some());
}

/// A page of a drive under a code of cells is a word line; times, energies and the rate follow from the part's.
#[test]
fn a_code_makes_word_lines_of_pages() {
    let plain = preset("womv-16g", &["ftl.name=subpage"]).unwrap().drive;
    assert_eq!((plain.part.code, plain.geometry.pages_per_block, plain.geometry.subpages_per_page), (None, 192, 4));
    for (code, stored, generations) in [("1/4", 1, 15), ("2/4", 2, 5), ("3/4", 3, 2)] {
        let drive = preset("womv-16g", &[&format!("ftl.womv_code={code}")]).unwrap().drive;
        assert_eq!(drive.part.code.expect("a code").0.generations(), generations);
        assert_eq!((drive.geometry.pages_per_block, drive.geometry.subpages_per_page), (48, 4 * stored));
        assert_eq!((drive.part.t_read, drive.part.t_program, drive.part.t_erase), (680_000, 8_600_000, 10_000_000));
        assert_eq!(drive.part.bus_rate, Rate(200_000_000 * u64::from(stored)));
        assert_eq!(drive.part.e_reprogram, 4 * plain.part.e_program);
        let at_once = [&format!("ftl.womv_code={code}"), "part.pages_per_program=4", "part.t_program_slc=300us"];
        let shot = preset("womv-16g", &at_once).unwrap().drive;
        assert_eq!((shot.geometry, shot.part.loads, shot.part.bus_rate), (drive.geometry, 4, drive.part.bus_rate));
        assert_eq!((shot.part.t_program, shot.part.e_program), (plain.part.t_program, plain.part.e_program));
        assert_eq!((shot.part.t_program_slc, shot.part.t_read), (300_000 * u64::from(stored), drive.part.t_read));
        let share = drive.logical_bytes() as f64 / plain.logical_bytes() as f64;
        assert!((share - f64::from(stored) / 4.0).abs() < 1e-3, "{code}: {share} of the uncoded drive");
    }
}

#[test]
fn presets_have_the_numbers_of_their_papers() {
    let mga = preset("mga-16k", &[]).unwrap().drive;
    assert_eq!((mga.part.cell, mga.part.nop, mga.part.order), (CellKind::Slc, 4, ProgramOrder::Ascending));
    assert_eq!((mga.geometry.pages_per_block, mga.geometry.blocks_per_plane), (128, 512));
    assert_eq!((mga.part.t_read, mga.part.t_program, mga.part.t_erase), (25_000, 200_000, 1_500_000));
    assert_eq!((mga.log.gc_start, mga.log.gc_stop), (BlockCount::Share(0.2), BlockCount::Share(0.4)));
    let spread = preset("spread-16g", &[]).unwrap().drive;
    assert_eq!(spread.part.t_read_words, [35_000, 45_000, 55_000, 65_000, 75_000, 85_000, 95_000, 99_000]);
    assert_eq!(spread.part.t_dma_words, [2_500, 5_000, 7_500, 10_000, 12_500, 15_000, 17_500, 20_000]);
    let with = |set: &str| preset("spread-16g", &[set]).unwrap().drive.ftl;
    assert_eq!(
        (with("sim.suspend=none").name.as_str(), with("sim.suspend=none").get::<ReadMode>("ftl.read")),
        ("spftl", ReadMode::Spread)
    );
    for (layer, set, mode) in [
        ("dma-fgm", "ftl.read=dma", ReadMode::Dma),
        ("page-fgm", "ftl.name=page-fgm", ReadMode::Page),
        ("subpage", "ftl.name=subpage", ReadMode::Page),
    ] {
        assert_eq!((with(set).name.as_str(), with(set).get::<ReadMode>("ftl.read")), (layer, mode));
    }
    assert_eq!(spread.geometry.pages() * u64::from(spread.geometry.page_bytes()), 16 * GIB);
    for (name, gib) in
        [("llh-16g", 16), ("llh-32g", 32), ("llh-64g", 64), ("llh32-16g", 16), ("llh32-32g", 32), ("llh32-64g", 64)]
    {
        let llh = preset(name, &[]).unwrap().drive;
        assert_eq!(llh.geometry.planes(), 16, "{name}: banks");
        assert_eq!(llh.geometry.pages() * u64::from(llh.geometry.page_bytes()), gib * GIB, "{name}");
        assert_eq!(llh.part.e_erase, 192_790_000, "{name}");
    }
    let default = preset("default", &[]).unwrap().drive;
    assert!((32 * GIB..33 * GIB).contains(&default.logical_bytes()), "{}", default.logical_bytes());
    assert_eq!(default.host.link_rate, Rate(7_000_000_000));
}

#[test]
fn logical_pages_are_the_most_that_leave_the_over_provisioning() {
    let mut drive = preset("llh32-16g", &[]).unwrap().drive;
    drive.geometry =
        Geometry { channels: 1, chips_per_channel: 1, blocks_per_plane: 128, pages_per_block: 1, ..drive.geometry };
    assert_eq!(drive.logical_pages(), 100);
    for op in [0.0, 0.07, 0.11, 0.28, 1.0, 3.0] {
        drive.over_provisioning = op;
        let (physical, logical) = (128.0, drive.logical_pages() as f64);
        assert!((physical - logical) / logical >= op && (physical - logical - 1.0) / (logical + 1.0) < op, "{op}");
    }
    drive.over_provisioning = 200.0;
    assert_eq!(drive.logical_pages(), 0);
}

#[test]
fn higher_layers_win_and_sources_are_remembered() {
    let text = "base = \"mga-16k\"\n\n[part]\nnop = 2\n[ftl]\nvictim = \"d-choices\"\n";
    let resolved = file(text, &["part.t_read = 30us", "host.fold=true", "ssd.over_provisioning=150%"]).unwrap();
    assert_eq!((resolved.drive.part.nop, resolved.drive.part.t_read, resolved.drive.host.fold), (2, 30_000, true));
    assert_eq!(resolved.drive.ftl.get::<String>("ftl.victim"), "d-choices:10");
    assert_eq!((resolved.drive.name.as_str(), resolved.drive.part.name.as_str()), ("my", "k9-slc-16k"));
    assert_eq!(source(&resolved, "part.nop"), "my.toml:4");
    assert_eq!(source(&resolved, "part.t_read"), "--set part.t_read = 30us");
    assert_eq!(source(&resolved, "part.t_read_high"), "default, as part.t_read");
    assert_eq!(resolved.drive.part.t_read_high, 30_000);
    assert_eq!(source(&resolved, "part.order"), line_of("presets/parts/k9-slc-16k.toml", "order ="));
    assert_eq!(source(&resolved, "ftl.gc_stop"), line_of("presets/ssds/mga-16k.toml", "gc_stop ="));
    assert_eq!(source(&resolved, "sim.suspend"), "default");
    let other = resolve("mga-8k", Some("subpage"), &[], &no_file).unwrap();
    assert_eq!((other.drive.ftl.name.as_str(), source(&other, "ftl.name")), ("subpage", "--ftl subpage"));
}

#[test]
fn naming_another_part_drops_what_lower_layers_said_of_it() {
    let default = preset("default", &[]).unwrap().drive;
    assert_eq!(default.part.pages_per_block, 176);
    let other = preset("default", &["part.nop=3", "ssd.part=k9-slc-16k"]).unwrap().drive;
    assert_eq!((other.part.pages_per_block, other.part.nop), (128, 3));
    let written = preset("default", &[]).unwrap().to_toml();
    assert_eq!(file(&written, &["ssd.part=vnand-16k"]).unwrap().drive.part.t_read, 99_000);
}

#[test]
fn a_later_sensing_time_scales_the_types_of_pages() {
    let types = |set: &[&str]| preset("default", set).unwrap().drive.part.t_read_types;
    assert_eq!(types(&[]), [35_300, 48_400, 66_300]);
    assert_eq!(types(&["part.t_read=25us"]), [17_650, 24_200, 33_150], "the mean was 50 us");
    assert!(types(&["part.t_read=25us", "part.t_read_types=[]"]).is_empty());
    let scaled = preset("default", &["part.t_read=25us"]).unwrap();
    assert_eq!(source(&scaled, "part.t_read_types"), "--set part.t_read=25us");
    assert_eq!(file(&scaled.to_toml(), &[]).unwrap().drive, scaled.drive, "what is printed is the same drive");
}

#[test]
fn a_part_may_be_a_file_or_stand_in_the_drive() {
    let part = "description = \"mine\"\n[part]\ncell = \"slc\"\npage_size = \"4KiB\"\npages_per_block = 64\n\
                t_read = \"25us\"\nt_program = \"200us\"\nt_erase = \"1.5ms\"\nbus_rate = \"40MB/s\"\n";
    let drive = "[ssd]\nchannels = 2\nblocks_per_plane = 64\n";
    let read = |path: &str| match path {
        "a/b/my.toml" => Ok(format!("{drive}part = \"parts/mine.toml\"\n")),
        "a/b/parts/mine.toml" => Ok(part.into()),
        _ => no_file(path),
    };
    let outside = resolve("a/b/my.toml", None, &[], &read).unwrap();
    assert_eq!((outside.drive.name.as_str(), outside.drive.part.name.as_str()), ("my", "mine"));
    assert_eq!(source(&outside, "part.t_read"), "a/b/parts/mine.toml:6");
    let written = outside.to_toml();
    assert_eq!(resolve("config.toml", None, &[], &|_| Ok(written.clone())).unwrap().drive, outside.drive);
    let inside = file(&format!("{drive}{}", part.replace("description = \"mine\"\n", "")), &[]).unwrap();
    assert_eq!(inside.drive.part.name, "my");
    assert_eq!(inside.drive.part, Part { name: "my".into(), ..outside.drive.part });
    assert_eq!(file(&inside.to_toml(), &[]).unwrap().drive, inside.drive);
}

/// The buffer is the drive's: every layer has the drive's promise.
#[test]
fn a_saved_drive_states_the_promise_of_its_layer() {
    for entry in crate::layers::layers() {
        for (ack, expected) in
            [("buffer", "in a protected buffer"), ("program", "when programmed"), ("volatile", "in a volatile buffer")]
        {
            let sets = [format!("buffer.ack={ack}"), "buffer.flush=programs".into()];
            for ssd in ["default", "llh-64g", "womv-16g", "spread-16g"] {
                let Ok(resolved) = resolve(ssd, Some(entry.name), &sets, &no_file) else { continue };
                let promise = Promise::of(resolved.drive.guarantee(entry), ack == "volatile");
                assert_eq!(promise.acknowledged, expected, "{} on {ssd}", entry.name);
                let saved = resolve("saved.toml", None, &[], &|_| Ok(resolved.to_toml())).unwrap();
                assert_eq!(saved.drive, resolved.drive, "{} on {ssd}", entry.name);
            }
        }
    }
}

#[test]
fn json_nests_tables_and_keeps_units() {
    let json = preset("spread-16g", &["host.speedup=2.5"]).unwrap().to_json();
    assert_eq!(json["name"], "spread-16g");
    assert_eq!(json["part"]["t_read"], "99us");
    assert_eq!(json["part"]["t_dma_words"][0], "2.5us");
    assert_eq!(json["part"]["nop"], 1);
    assert_eq!(json["part"]["bus_rate"], "800MB/s");
    assert_eq!(json["ssd"]["over_provisioning"], "7%");
    assert_eq!(json["ftl"]["gc_start"], "1 block");
    assert_eq!(json["host"]["speedup"], 2.5);
    assert_eq!(json["host"]["link_rate"], "unlimited");
    assert_eq!(json["sim"]["multi_plane"], "waiting");
}

#[test]
fn toml_tells_meaning_and_source_of_every_key() {
    let text = preset("mga-16k", &["part.nop=3"]).unwrap().to_toml();
    assert!(text.starts_with("name = \"mga-16k\"\ncomplete = true\n\n[ssd]\npart = \"k9-slc-16k\" "), "{text}");
    assert!(
        text.contains("  # programs of a page between two erases, re-programs included [--set part.nop=3]\n"),
        "{text}"
    );
    assert_eq!(text.lines().filter(|line| line.contains(" # ")).count(), keys().len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_text_panics(text: String, override_text in "[a-z_.]{0,20}=?.{0,20}") {
        let _ = file(&text, &[]);
        let _ = preset("default", &[&override_text, &text]);
        let _ = resolve(&text, Some(&text), &[], &no_file);
    }

    #[test]
    fn times_and_sizes_survive(
        time in 0u64..=2_000_000_000, spare in 0u32..=1 << 24, op in 0.7f64..99.0, reads in 0.0..=1.0f64
    ) {
        let overrides = [
            format!("part.t_read_retry={time}ns"),
            format!("part.spare_size={spare}B"),
            format!("ssd.over_provisioning={}", palimpsest_flash::units::parse::format_ratio(op)),
            format!("faults.read_fail={}", palimpsest_flash::units::parse::format_ratio(reads)),
        ];
        let resolved = preset("mga-16k", &overrides.each_ref().map(String::as_str)).unwrap();
        prop_assert_eq!(resolved.drive.part.t_read_retry, time);
        prop_assert_eq!(resolved.drive.over_provisioning, op);
        prop_assert_eq!(file(&resolved.to_toml(), &[]).unwrap().drive, resolved.drive);
    }
}

/// Statistics of a workload preset: mean sizes of reads and writes in units of 4 KiB, and in percent the share of reads
/// and the share of requests of 4 KiB.
fn generated(name: &str, seed: u64) -> [f64; 4] {
    let spec = FioSpec::parse(&workload_spec(name).unwrap()).unwrap();
    let mut source = FioSource::new(&spec, 1 << 33, seed).unwrap();
    let (mut count, mut sectors, mut small) = ([0u64; 2], [0u64; 2], 0u64);
    while let Some(request) = source.next_request().unwrap() {
        let direction = usize::from(request.kind == RequestKind::Write);
        count[direction] += 1;
        sectors[direction] += u64::from(request.extent.sectors);
        small += u64::from(request.extent.sectors == 8);
    }
    let mean = |direction: usize| sectors[direction] as f64 / 8.0 / count[direction] as f64;
    let percent = |part: u64| 100.0 * part as f64 / (count[0] + count[1]) as f64;
    [mean(0), mean(1), percent(count[0]), percent(small)]
}

/// Table II of the MGA paper, within 2 %.
#[test]
fn workloads_of_the_mga_paper_have_the_statistics_of_its_table() {
    let table = [
        ("cfs", 23.90, 81.99, 90.6, None),
        ("radius", 210.67, 22.51, 8.1, None),
        ("ads", 63.80, 11.28, 86.7, None),
        ("trade", 3.23, 5.91, 18.8, None),
        ("synth-a", 1.0, 1.0, 40.8, Some(100.0)),
        ("synth-b", 6.58, 5.38, 45.5, Some(50.0)),
    ];
    for (name, read, write, reads, small) in table {
        let near = |what: &str, own: f64, table: f64| {
            assert!((own / table - 1.0).abs() < 0.02, "{name}, {what}: {own} against {table}");
        };
        for seed in 1..=3 {
            let [own_read, own_write, own_reads, own_small] = generated(name, seed);
            near("mean read", own_read, read);
            near("mean write", own_write, write);
            near("reads", own_reads, reads);
            near("writes", 100.0 - own_reads, 100.0 - reads);
            if let Some(small) = small {
                near("requests of 4 KiB", own_small, small);
            }
        }
    }
}

/// Sec. IV of the co-design paper, within 2 %; every request is inside its file.
#[test]
fn workloads_of_the_codesign_paper_have_its_statistics() {
    let paper =
        [("livemaps", 64.4, 49.1), ("exchange", 32.1, 20.2), ("development", 95.9, 24.2), ("msnstorage", 64.6, 9.99)];
    for (name, reads, kib) in paper {
        for (seed, uneven) in (1..=3).flat_map(|seed| [(seed, false), (seed, true)]) {
            let preset = if uneven { format!("{name}-uneven") } else { name.to_string() };
            let spec = FioSpec::parse(&workload_spec(&preset).unwrap()).unwrap();
            let mut source = FioSource::new(&spec, 1 << 31, seed).unwrap();
            let mut files: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
            while let Some(piece) = source.next_of_layout() {
                let end = piece.extent.end();
                let file = files.entry(piece.owner()).or_insert((piece.extent.sector, piece.extent.sector));
                assert_eq!(file.1, piece.extent.sector, "{name}: files are written in order");
                file.1 = end;
            }
            assert!(files.len() > if uneven { 400 } else { 1000 }, "{preset}: {} files", files.len());
            let (mut count, mut sectors) = ([0.0f64; 2], 0u64);
            while let Some(request) = source.next_request().unwrap() {
                count[usize::from(request.kind == RequestKind::Write)] += 1.0;
                sectors += u64::from(request.extent.sectors);
                let (first, end) = files[&request.owner()];
                assert!(first <= request.extent.sector && request.extent.end() <= end, "{name}");
            }
            let total = count[0] + count[1];
            let (own_reads, own_kib) = (100.0 * count[0] / total, sectors as f64 / 2.0 / total);
            assert!((own_kib / kib - 1.0).abs() < 0.02, "{name}: mean request of {own_kib} KiB against {kib}");
            assert!((own_reads / reads - 1.0).abs() < 0.02, "{name}: {own_reads} % reads against {reads}");
        }
    }
}

/// Reads and writes of a workload preset, counted by size in bytes.
fn sizes(name: &str, seed: u64) -> [BTreeMap<u64, u64>; 2] {
    let spec = FioSpec::parse(&workload_spec(name).unwrap()).unwrap();
    let mut source = FioSource::new(&spec, 1 << 33, seed).unwrap();
    let mut counts = [BTreeMap::new(), BTreeMap::new()];
    while let Some(request) = source.next_request().unwrap() {
        let direction = usize::from(request.kind == RequestKind::Write);
        *counts[direction].entry(u64::from(request.extent.sectors) * 512).or_default() += 1;
    }
    counts
}

/// Table II and Fig. 1 of the SPREAD paper: shares within 2 %, and bounds kept.
#[test]
fn workloads_of_the_spread_paper_have_its_statistics() {
    const ALL: u64 = u64::MAX;
    for seed in 1..=3 {
        let percent = |name: &str, direction: usize, least: u64, most: u64| {
            let counts = sizes(name, seed);
            let of =
                |direction: usize| counts[direction].range(least..=most).map(|(_, count)| count).sum::<u64>() as f64;
            100.0 * of(direction) / counts[direction].values().sum::<u64>() as f64
        };
        let reads = |name: &str| {
            let [reads, writes] = sizes(name, seed).map(|counts| counts.values().sum::<u64>() as f64);
            100.0 * reads / (reads + writes)
        };
        let near = |what: &str, own: f64, paper: f64| {
            assert!((own / paper - 1.0).abs() < 0.02, "{what}: {own} against {paper}");
        };
        for name in ["kv1", "kv2", "gr1", "su", "kv", "grp"] {
            assert_eq!(reads(name), 100.0, "{name} is read only");
        }
        for name in ["kv1", "kv2"] {
            assert!(percent(name, 0, 0, 1024) > 90.0, "{name}: values below 1 KB");
        }
        assert!(percent("gr1", 0, 0, 4096) > 99.0, "gr1: lists below 4 KB");
        assert!(percent("kv", 0, 2048, 2048) > 90.0, "kv: reads of 2 KB");
        near("grp, 4 KB to 8 KB", percent("grp", 0, 4096, 4096) / percent("grp", 0, 8192, 8192), 1.5);
        near("grp, both", percent("grp", 0, 4096, 8192), 100.0);
        for (name, paper) in [("prj", 90.0), ("usr", 70.0), ("stg", 30.0)] {
            near(&format!("{name}, reads"), reads(name), paper);
            near(&format!("{name}, writes"), 100.0 - reads(name), 100.0 - paper);
            near(&format!("{name}, writes of 4 KB"), percent(name, 1, 0, 4096), 100.0);
        }
        near("prj, 4 KB", percent("prj", 0, 4096, 4096), 50.0);
        near("prj, 16 KB", percent("prj", 0, 16_384, ALL), 50.0);
        for name in ["su", "usr", "stg"] {
            assert_eq!(percent(name, 0, 16_384, 16_384), 100.0, "{name}: reads of 16 KB");
        }
    }
}
