//! Saved states: a drive from a state does as the saved drive would, and wrong states are refused.

use palimpsest_drive::{Builder, Contents, Drive, Nanos, read, trim, write};
use palimpsest_lab::layers::{find_layer, layers};
use palimpsest_lab::rng::Rng;

/// Small drives of `layer` with 28 % spare space.
fn small(layer: &str) -> Builder {
    let blocks = if layer.starts_with("fs-") || layer == "codesign" { "96" } else { "64" };
    let collects = find_layer(layer).unwrap().lists("ftl.gc_stop");
    let thresholds = [("ftl.gc_start", "2 blocks"), ("ftl.gc_stop", "3 blocks")];
    let drive = Drive::builder("mga-8k")
        .layer(layer)
        .set("ssd.channels", "2")
        .set("ssd.blocks_per_plane", blocks)
        .set("part.pages_per_block", "16")
        .set("ssd.over_provisioning", "60%");
    let thresholds = thresholds.into_iter().filter(|_| collects);
    thresholds.fold(drive, |drive, (key, value)| drive.set(key, value))
}

/// Serves `count` random requests from now on, and waits for them.
fn serve(drive: &mut Drive, count: u64, seed: u64) {
    let (mut rng, pages) = (Rng::new(seed, 0), drive.bytes() / 8192);
    let mut at = drive.now();
    for number in 0..count {
        at += rng.below(400_000);
        let offset = rng.below(pages) * 8192;
        let command = match rng.below(9) {
            0 => trim(offset, 8192),
            1..4 => read(offset, 4096),
            4 if number % 5 == 0 => Ok(palimpsest_drive::FLUSH),
            _ => write(offset, 8192),
        };
        drive.submit(command.unwrap(), at).unwrap();
        drive.completed().for_each(drop);
    }
    while drive.in_flight() > 0 {
        drive.advance(Nanos::MAX).unwrap();
        drive.completed().for_each(drop);
    }
}

/// The figures of `count` requests on `drive`, and the state afterwards.
fn go_on(mut drive: Drive, count: u64, seed: u64) -> (Vec<u8>, String) {
    serve(&mut drive, count, seed);
    let state = drive.save().unwrap();
    (state, serde_json::to_string(&drive.finish().unwrap()).unwrap())
}

#[test]
fn a_drive_from_a_state_does_as_the_saved_one() {
    let (mut saved, mut left_out) = (0, Vec::new());
    for entry in layers().filter(|entry| !entry.zoned) {
        let Ok(mut drive) = small(entry.name).precondition("fill:80%").build() else { continue };
        serve(&mut drive, 1500, 1);
        let Ok(state) = drive.save() else {
            left_out.push(entry.name);
            continue;
        };
        let time = drive.now();
        let restore = || small(entry.name).state(state.clone()).build().unwrap();
        assert_eq!(restore().now(), time, "{}", entry.name);
        let (once, again) = (go_on(restore(), 1500, 2), go_on(restore(), 1500, 2));
        assert_eq!(once.1, again.1, "{}: two drives from one state", entry.name);
        let expected = go_on(drive, 1500, 2).0;
        assert_eq!(once.0.len(), expected.len(), "{}", entry.name);
        let differs = once.0.iter().zip(&expected).position(|(one, other)| one != other);
        assert_eq!(differs, None, "{}: of {} bytes", entry.name, expected.len());
        saved += 1;
    }
    assert_eq!(left_out, ["fdp", "fdp-subpage", "fdp-dftl", "fs-zns", "fs-fdp"], "layers without a state");
    assert!(saved >= 15, "{saved} layers were saved");
}

#[test]
fn contents_of_a_state_read_back() {
    let mut drive = small("page").contents(Contents::Tags).build().unwrap();
    serve(&mut drive, 800, 7);
    let state = drive.save().unwrap();
    let mut restored = small("page").state(state).build().unwrap();
    // The drive verifies each read.
    for offset in (0..restored.bytes()).step_by(8192) {
        let now = restored.now();
        restored.submit(read(offset, 8192).unwrap(), now).unwrap();
        while restored.in_flight() > 0 {
            restored.advance(Nanos::MAX).unwrap();
            restored.completed().for_each(drop);
        }
    }
    assert_eq!(restored.finish().unwrap().host.bytes_read, small("page").build().unwrap().bytes());
}

#[test]
fn times_may_change_and_other_settings_not() {
    let mut drive = small("page").build().unwrap();
    serve(&mut drive, 300, 3);
    let state = drive.save().unwrap();
    small("page").set("part.t_program", "1ms").state(state.clone()).build().unwrap();
    let message = |builder: Builder| builder.build().map(drop).unwrap_err().to_string();
    let other = message(small("page").set("ftl.victim", "fifo").state(state.clone()));
    assert!(other.contains("another drive or build (ftl.victim = ") && other.contains("here"), "{other}");
    assert!(message(small("page").seed(2).state(state.clone())).contains("seed 1"));
    assert!(message(small("page").precondition("fill:10%").state(state.clone())).contains("expected one of both"));
    for at in [0, 1, state.len() / 2, state.len() - 1] {
        let mut damaged = state.clone();
        damaged[at] ^= 1;
        assert!(message(small("page").state(damaged)).contains("damaged bytes"));
        assert!(message(small("page").state(state[..at].to_vec())).contains("damaged bytes"));
    }
}

#[test]
fn a_drive_that_cannot_be_saved_says_why() {
    let message = |builder: Builder| builder.build().unwrap().save().unwrap_err().to_string();
    assert!(message(small("page").contents(Contents::Bytes)).contains("are not saved"));
    assert!(message(small("page").power_cuts()).contains("are not saved"));
    let mut busy = small("page").set("buffer.ack", "program").build().unwrap();
    busy.submit(write(0, 8192).unwrap(), 0).unwrap();
    assert_eq!(busy.in_flight(), 1);
    assert!(busy.save().unwrap_err().to_string().contains("requests are in flight"));
}
