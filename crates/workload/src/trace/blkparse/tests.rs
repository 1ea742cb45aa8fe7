//! Tests of the lines of blkparse.

use super::*;

fn record(line: &str) -> Option<(RequestKind, u64, u32)> {
    match Blkparse::default().parse(line.as_bytes()) {
        Ok(Parsed::Record(record)) => Some((record.kind, record.extent.sector, record.extent.sectors)),
        Ok(_) => None,
        Err(fault) => panic!("{line}: {}", fault.what),
    }
}

#[test]
fn kinds_by_letters() {
    let event = |letters, rest| record(&format!("  8,16   1        2     1.135905917   723  D   {letters} {rest}"));
    assert_eq!(event("W", "766637768 + 56 [723]"), Some((RequestKind::Write, 766_637_768, 56)));
    assert_eq!(event("RA", "8 + 8 [723]"), Some((RequestKind::Read, 8, 8)));
    assert_eq!(event("DS", "8 + 8 [723]"), Some((RequestKind::Trim, 8, 8)));
    assert_eq!(event("FWFS", "8 + 8 [723]"), Some((RequestKind::Write, 8, 8)));
    assert_eq!(event("FWS", "0 + 0 [723]"), Some((RequestKind::Flush, 0, 0)));
    assert_eq!(event("FF", "[723]"), Some((RequestKind::Flush, 0, 0)));
    assert_eq!(event("N", "0 (12 00) [sd]"), None);
    for flush in ["[kworker/0:1H]", "0 + 0 [kworker/0:1H]", "0 (35 00 00) [sd]", ""] {
        assert_eq!(event("FN", flush), Some((RequestKind::Flush, 0, 0)), "{flush}");
    }
    assert_eq!(event("N", "0 + 0 [x]"), None);
    assert_eq!(event("WFS", "8 + 8 [x]"), Some((RequestKind::Write, 8, 8)));
    assert_eq!(event("WSU", "8 + 8 [x]"), Some((RequestKind::Write, 8, 8)));
    assert_eq!(event("DE", "8 + 8 [x]"), Some((RequestKind::Trim, 8, 8)));
    assert_eq!(event("ZA", "8 + 8 [x]"), Some((RequestKind::Write, 8, 8)));
    for zone in ["ZR", "ZRA", "ZF", "ZO", "ZC"] {
        assert_eq!((event(zone, "8 + 8 [x]"), event(zone, "[x]"), event(zone, "8 + 0 [x]")), (None, None, None));
    }
    assert_eq!(record("8,0 0 1 0.1 7 Q W 8 + 8 [x]"), None);
    assert_eq!(record("8,0 0 0 0.1 0 m N cfq7 Not idling"), None);
}

#[test]
fn fua_is_the_mark_behind_a_write() {
    for (letters, expected) in [("W", false), ("WFS", true), ("FW", false), ("FWFS", true), ("RF", false), ("D", false)]
    {
        let line = format!("8,0 0 1 0.1 7 D {letters} 8 + 8 [x]");
        let Ok(Parsed::Record(record)) = Blkparse::default().parse(line.as_bytes()) else { panic!("{line}") };
        assert_eq!(record.directives.fua, expected, "{letters}");
    }
}

#[test]
fn one_action_is_chosen_from_the_head() {
    let choose = |bytes: &'static [u8]| {
        let mut format = Blkparse::default();
        format.prepare(&Head { bytes, whole: true });
        let [note] = format.notes().try_into().expect("a note");
        (format.action, note)
    };
    let chosen =
        |action: u8, what: &str| (action, format!("of the actions of requests, {what} is played; others are skipped"));
    assert_eq!(
        choose(b"8,0 0 1 0.1 7 Q W 8 + 8 [x]\n8,0 0 1 0.1 7 D W 8 + 8 [x]\n"),
        chosen(b'D', "issue to the device (D)")
    );
    assert_eq!(
        choose(b"8,0 0 1 0.1 7 C W 8 + 8 [x]\n8,0 0 1 0.1 7 Q W 8 + 8 [x]\n"),
        chosen(b'Q', "queueing (Q; the head of the file has no issue)")
    );
    let completion = "completion (C; the head of the file has no issue and no queueing)";
    assert_eq!(choose(b"8,0 0 1 0.1 7 C W 8 + 8 [0]\n"), chosen(b'C', completion));
}

#[test]
fn summary_ends_the_trace() {
    assert_eq!(Blkparse::default().parse(b"CPU0 (8,16):"), Ok(Parsed::End));
    assert!(Blkparse::default().parse(b"garbage").is_err());
    assert!(Blkparse::default().parse(b"8,0 0 1 0.1 7 D W 8 * 8 [x]").is_err());
}
