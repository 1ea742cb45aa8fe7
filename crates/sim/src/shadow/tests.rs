//! Tests of the module `shadow`.

use super::*;

/// Regression: the shadow accepted any content that a trimmed subpage had ever held.
#[test]
fn a_cut_brings_back_nothing_older_than_what_was_durable() {
    let (extent, buffers) = (Extent { sector: 0, sectors: 1 }, Buffers::new(512));
    // After two writes, a trim and a power cut: is a read of `version` accepted?
    let may_hold = |version: usize, flushes: bool| {
        let mut shadow = Shadow::new(Payload::Tag, 1, 512);
        let mut port = HostPort::new(Payload::Tag, 512);
        shadow.expect_power_cuts(true);
        let mut versions = vec![Data::ZERO];
        for _ in 0..2 {
            port.begin(RequestKind::Write);
            shadow.write(&port, extent);
            versions.push(Data::new(shadow.tags[0]));
        }
        port.begin(RequestKind::Trim);
        shadow.trim(&port, extent);
        if flushes {
            shadow.flush();
        }
        shadow.interrupted(&port, None, None);
        shadow.verify(extent, &mut [(0, versions[version])], &buffers, None).is_ok()
    };
    assert_eq!([0, 1, 2].map(|version| may_hold(version, false)), [true, false, true]);
    assert_eq!([0, 1, 2].map(|version| may_hold(version, true)), [true, false, false]);
}

/// A file system serves a page that was never written with its own zeros, after a cut as before.
#[test]
fn delivered_zeros_are_what_was_never_written() {
    let mut shadow = Shadow::new(Payload::Bytes, 1, 512);
    let mut port = HostPort::new(Payload::Bytes, 512);
    let extent = Extent { sector: 0, sectors: 1 };
    let mut buffers = Buffers::new(512);
    let zeros = buffers.keep(&[0; 512]);
    shadow.verify(extent, &mut [(0, zeros)], &buffers, None).expect("before the cut");
    shadow.expect_power_cut(false);
    port.begin_write();
    shadow.write(&port, extent);
    shadow.interrupted(&port, None, None);
    shadow.verify(extent, &mut [(0, zeros)], &buffers, None).expect("the write is lost");
    assert_eq!(*shadow.lost(), Lost { writes: BTreeSet::from([1]), subpages: 1 });
    shadow.verify(extent, &mut [(0, Data::ZERO)], &buffers, None).expect("nothing is zeros");
    let other = buffers.keep(&[1; 512]);
    shadow.verify(extent, &mut [(0, other)], &buffers, None).expect_err("that was not written");
}
