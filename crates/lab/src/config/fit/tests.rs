//! Tests of the module `fit`.

use super::*;
use crate::config::ssd_presets;
use palimpsest_flash::nand::data::Payload;

fn no_file(_: &str) -> Result<String> {
    unreachable!()
}

/// A timed run with the payload `tag` that fills the drive.
fn run() -> Touched {
    Touched { verified: true, requests: Some(100_000), ..Touched::all(Payload::Tag) }
}

fn fitted(ssd: &str, overrides: &[String], memory: u64, most: f64) -> (Fitted, Resolved) {
    let described = Described { ssd, ftl: None, overrides };
    let fitted = fit_memory(described, &run(), memory, most, &no_file).unwrap();
    let resolved = resolve(ssd, None, &fitted.overrides, &no_file).unwrap();
    (fitted, resolved)
}

#[test]
fn large_presets_fit_in_16_gigabytes() {
    for ssd in ["d5-p5336-30.72t", "enterprise-tlc-7.68t", "datacentre-tlc"] {
        let whole = resolve(ssd, None, &[], &no_file).unwrap();
        let (fitted, scaled) = fitted(ssd, &[], 16 << 30, 1.0);
        println!("{ssd}: {}", fitted.text(16 << 30));
        assert!(fitted.factor < 1.0 && fitted.needs[1] <= 12 << 30, "{ssd}: {fitted:?}");
        assert!(fitted.needs[1] > 10 << 30, "{ssd}: not much smaller than needed: {fitted:?}");
        let (before, after) = (&whole.drive, &scaled.drive);
        assert_eq!(after.over_provisioning, before.over_provisioning);
        let ratio = |bytes: f64, drive: &DriveConfig| bytes / drive.logical_bytes() as f64;
        let buffers = [before, after].map(|drive| ratio(drive.host.buffer_bytes as f64, drive));
        assert!((buffers[1] / buffers[0] - 1.0).abs() < 0.05, "{ssd}: {buffers:?}");
        let share = after.logical_bytes() as f64 / before.logical_bytes() as f64;
        assert!((share / fitted.factor - 1.0).abs() < 0.01, "{ssd}: {share} {}", fitted.factor);
        let (spare, open) = check::spare_and_open_blocks(after);
        assert!(spare >= SPARE[0] * open, "{ssd}: {spare} spare blocks, {open} open");
        assert_eq!(scaled.unread(), [], "{ssd}");
    }
}

#[test]
fn absolute_sizes_scale_and_shares_stay() {
    let set = ["ftl.name=dftl", "ftl.cmt=64MiB", "ftl.slc_cache=40 blocks", "ssd.capacity=2TB"].map(String::from);
    let (fitted, scaled) = fitted("980-1t", &set, 4 << 30, 1.0);
    let key = |name: &str| scaled.key(name).unwrap().value.clone();
    let Value::Bytes(cache) = key("ftl.cmt") else { panic!() };
    assert!((cache as f64 / (64 << 20) as f64 / fitted.factor - 1.0).abs() < 0.05, "{cache} {}", fitted.factor);
    let Value::Blocks(BlockCount::Blocks(fast)) = key("ftl.slc_cache") else { panic!() };
    let blocks = f64::from(scaled.drive.physical.blocks_per_plane);
    let whole = resolve("980-1t", None, &set, &no_file).unwrap();
    let plane = blocks / f64::from(whole.drive.physical.blocks_per_plane);
    assert_eq!(fast, (40.0 * plane).round() as u32);
    assert!(fitted.overrides.iter().all(|text| !text.starts_with("ssd.capacity=")), "{:?}", fitted.overrides);
}

#[test]
fn a_drive_that_fits_stays_and_a_smaller_bound_holds() {
    let (fits, resolved) = fitted("tlc-32g", &[], 64 << 30, 1.0);
    assert_eq!((fits.factor, fits.overrides.len()), (1.0, 0));
    assert_eq!(resolved, resolve("tlc-32g", None, &[], &no_file).unwrap());
    let (half, _) = fitted("tlc-32g", &[], 64 << 30, 0.5);
    assert!(half.factor <= 0.5 && half.factor > 0.49, "{half:?}");
    let again =
        fit_memory(Described { ssd: "tlc-32g", ftl: None, overrides: &[] }, &run(), 64 << 30, half.factor, &no_file);
    assert_eq!(again.unwrap(), half, "a factor that was reached is reached again");
}

#[test]
fn too_little_memory_is_refused() {
    let described = Described { ssd: "d5-p5336-30.72t", ftl: None, overrides: &[] };
    let refused = fit_memory(described, &run(), 1 << 20, 1.0, &no_file).unwrap_err().to_string();
    assert!(refused.starts_with("--fit-memory: no drive of these proportions fits in 0.0 GiB of memory"), "{refused}");
}

#[test]
fn every_preset_scales_to_a_tenth() {
    for info in ssd_presets() {
        let whole = resolve(info.name, None, &[], &no_file).unwrap();
        let needs = needed(&whole.drive, &run());
        let described = Described { ssd: info.name, ftl: None, overrides: &[] };
        let fitted = fit_memory(described, &run(), needs / 10 * 4 / 3, 1.0, &no_file);
        let fitted = fitted.unwrap_or_else(|error| panic!("{}: {error}", info.name));
        assert!(fitted.factor < 0.2, "{}: {fitted:?}", info.name);
    }
}
