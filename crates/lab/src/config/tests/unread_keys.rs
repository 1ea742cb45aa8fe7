//! Tests of settings that nothing reads ([`super::super::unread`]).

use super::*;
use crate::config::unread::{Reading, reading};
use crate::layers::layers;

#[test]
fn keys_of_other_layers_are_mistakes() {
    let of = |ftl: &str| {
        let keys = ["ftl.log_fraction=4%", "ftl.victim=fifo", "fs.gc_start=6%"];
        unread(&preset("default", &[keys.as_slice(), &[&format!("ftl.name={ftl}")]].concat()).unwrap())
    };
    let log = ("ftl.log_fraction", Gravity::Mistake);
    let space = ("fs.gc_start", Gravity::Mistake);
    assert_eq!(of("page"), [log, space]);
    assert_eq!(of("sector-log"), [space]);
    assert_eq!(of("fs-page"), [log]);
    assert_eq!(of("block"), [("ftl.victim", Gravity::Mistake), log, space]);
    assert_eq!(unread(&preset("mga-16k", &[]).unwrap()), []);
    let above = preset("mga-16k", &["ftl.name=fs-mga", "ftl.allocation_threshold=20%"]).unwrap();
    assert_eq!(unread(&above), [], "a file system above the layer uses it");
}

#[test]
fn keys_of_features_that_are_off_are_mistakes() {
    let idle = preset("default", &["ftl.name=page", "ftl.gc_idle=5ms"]).unwrap();
    let [found] = idle.unread() else { panic!("{:?}", idle.unread()) };
    assert_eq!(found.what, "page does not read ftl.gc_idle without ftl.gc_background = true or ftl.patrol > 0");
    assert_eq!((found.place.as_str(), found.gravity), ("--set ftl.gc_idle=5ms", Gravity::Mistake));
    let works = ["ftl.name=page", "ftl.gc_idle=5ms", "ftl.gc_background=true", "ftl.gc_stop=2 blocks"];
    assert_eq!(unread(&preset("default", &works).unwrap()), []);
    // Other layers read the fast cache and the times of its blocks.
    let block = preset("default", &["ftl.name=block", "part.t_read_slc=20us"]).unwrap();
    assert_eq!(unread(&block), [("part.t_read_slc", Gravity::Mistake)]);
    let off = preset("default", &["ftl.name=block", "ftl.slc_cache=0%"]).unwrap();
    assert_eq!(unread(&off), [("ftl.slc_cache", Gravity::Harmless)], "it is off on every layer");
}

#[test]
fn files_set_keys_for_their_own_layer() {
    let text =
        |ftl: &str| format!("base = \"default\"\n[ftl]\nname = \"{ftl}\"\nvictim = \"fifo\"\ngc_idle = \"3ms\"\n");
    assert_eq!(unread(&file(&text("page"), &[]).unwrap()), [], "a file describes features that are off");
    let own = file(&text("block"), &[]).unwrap();
    assert_eq!(own.unread()[0].place, "my.toml:4");
    assert_eq!(unread(&own), [("ftl.victim", Gravity::Mistake)]);
    let replaced = file(&text("page"), &["ftl.name=block"]).unwrap();
    assert_eq!(unread(&replaced), [("ftl.victim", Gravity::Note)]);
    let saved = preset("default", &[]).unwrap().to_toml();
    assert_eq!(unread(&file(&saved, &["ftl.name=block"]).unwrap()), [], "a saved configuration sets every key");
    let whole = saved.replace("complete = true", "");
    assert_eq!(unread(&file(&whole, &["ftl.name=block"]).unwrap())[0].1, Gravity::Note);
}

/// Defaults of keys that the layer does not read, beside every preset.
#[test]
fn settings_that_no_layer_reads_are_mistakes() {
    let mut refused_before = 0;
    for PresetInfo { name: ssd, .. } in ssd_presets() {
        for entry in layers() {
            let Ok(plain) = resolve(ssd, Some(entry.name), &[], &no_file) else { continue };
            let value = |name: &str| plain.key(name).unwrap().value.clone();
            let is_unread = |key: &&'static Known| reading(key, entry, &value) != Reading::Read;
            let defaults = keys().iter().filter(is_unread).filter_map(|key| Some((key.name, key.fallback.as_ref()?)));
            let defaults = defaults.filter(|(name, default)| !default.is_off() && *name != "ftl.read");
            let set: Vec<String> = defaults.map(|(name, default)| format!("{name}={}", default.to_text())).collect();
            let resolved = resolve(ssd, Some(entry.name), &set, &no_file)
                .unwrap_or_else(|error| panic!("{ssd} {}: {error}", entry.name));
            for each in set.iter().map(|setting| setting.split('=').next().unwrap()) {
                let found = resolved.unread().iter().find(|unread| unread.key == each);
                let gravity = found.map(|unread| unread.gravity);
                assert_eq!(gravity, Some(Gravity::Mistake), "{ssd} {} {each}", entry.name);
                refused_before += 1;
            }
        }
    }
    assert!(refused_before > 1000, "{refused_before}");
}

#[test]
fn a_setting_that_replaces_a_refused_one_is_no_mistake() {
    let text = "base = \"default\"\n[ftl]\nslc_fixed = \"5%\"\nslc_full = \"fold\"\n";
    let without = ["ftl.slc_fixed=0%"];
    let refused = file(text, &without).map(drop).unwrap_err().to_string();
    assert!(refused.contains("expected ftl.slc_full = direct"), "{refused}");
    let restored = file(text, &[&without[..], &["ftl.slc_full=direct"]].concat()).unwrap();
    assert_eq!(unread(&restored), [("ftl.slc_full", Gravity::Harmless)]);
}

#[test]
fn a_layer_says_its_pace_of_collection() {
    for (ftl, what) in [("llh", "whole blocks"), ("hotcold", "whole blocks"), ("block", "merges")] {
        let resolved = preset("llh-64g", &[&format!("ftl.name={ftl}"), "ftl.gc_pace=paced"]).unwrap();
        let [found] = resolved.unread() else { panic!("{ftl}: {:?}", resolved.unread()) };
        assert_eq!(found.gravity, Gravity::Mistake);
        assert!(found.what.starts_with(&format!("{ftl} does not read ftl.gc_pace: ")), "{}", found.what);
        assert!(found.what.contains(what), "{}", found.what);
    }
}
