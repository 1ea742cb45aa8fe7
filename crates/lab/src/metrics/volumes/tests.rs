//! Tests of the module `volumes`.

use super::*;
use palimpsest_flash::geometry::RequestKind;

#[test]
fn volumes_have_figures_of_their_own() {
    let mut recorder = VolumeRecorder::default();
    for at in 0..100 {
        let stream = [7, 3][at % 2];
        recorder.of(stream).submitted(RequestKind::Write, 8);
        let latency = 1000 * (1 + stream as Nanos) + at as Nanos;
        recorder.of(stream).completed(RequestKind::Write, latency, latency);
    }
    recorder.of(7).submitted(RequestKind::Flush, 0);
    let volume = |id| Volume { id, name: "v".into(), sector: 0, sectors: 0 };
    let found = recorder.figures(&[volume(7), volume(3), volume(9)], true);
    assert_eq!((found[0].requests.write, found[0].requests.flush, found[0].bytes_written), (50, 1, 50 * 4096));
    let write = found[1].latency_ns.as_ref().unwrap().write.as_ref().unwrap();
    assert_eq!((write.mean, write.max), (4050, 4099));
    assert!(write.p99.abs_diff(4099) < 64 && found[1].latency_ns.as_ref().unwrap().read.is_none());
    assert_eq!((found[2].volume, found[2].bytes_written, found[2].size_bytes), (9, 0, None));
    assert!(recorder.figures(&[volume(7)], true).is_empty());
}
