//! Requests of jobs on zones, by hand.

use super::super::{FioSpec, JobsSource};
use crate::namespaces::Room;
use crate::request::{RequestKind, Source};
use palimpsest_flash::command::ZoneAction;

const MIB: u64 = 1 << 20;

/// Requests of `text` on a drive of four zones of 16 KiB, in sectors: kind, first sector and sectors.
fn requests(text: &str, most: usize) -> Vec<(char, u64, u32)> {
    let size = if text.contains(",size=") { "" } else { ",size=64k" };
    let spec: FioSpec = format!("zonemode=zbd,zonesize=16k{size},{text}").parse().expect("a workload");
    let mut source = JobsSource::of_spec(&spec, Room { first: 0, bytes: MIB }, 1).expect("a source");
    let mut all = Vec::new();
    while let Some(request) = source.next_request().expect("a request").filter(|_| all.len() < most) {
        let name = match (request.kind, request.directives.zone) {
            (RequestKind::Read, _) => 'r',
            (RequestKind::Write, _) => 'w',
            (_, ZoneAction::Finish) => 'f',
            _ => 't',
        };
        all.push((name, request.extent.sector, request.extent.sectors));
    }
    all
}

#[test]
fn sequential_writes_go_round_and_reset_full_zones() {
    let all = requests("rw=write,bs=8k,n=10", 20);
    let first: Vec<_> = (0..8).map(|at| ('w', at * 16, 16)).collect();
    assert_eq!(all[..8], first);
    assert_eq!(all[8..], [('t', 0, 32), ('w', 0, 16), ('w', 16, 16)]);
}

#[test]
fn sequential_writes_skip_what_a_zone_cannot_hold() {
    let all = requests("rw=write,bs=4k,zonecapacity=8k,n=5", 20);
    assert_eq!(all.iter().map(|&(_, sector, _)| sector).collect::<Vec<_>>(), [0, 8, 32, 40, 64]);
}

#[test]
fn a_rest_smaller_than_a_block_is_finished() {
    let all = requests("rw=write,bs=12k,n=2,offset=0,size=16k", 20);
    assert_eq!(all, [('w', 0, 24), ('f', 0, 32), ('t', 0, 32), ('w', 0, 24)]);
}

#[test]
fn random_writes_stay_in_the_open_zones() {
    let all = requests("rw=randwrite,bs=4k,max_open_zones=1,n=8", 20);
    let zones: Vec<u64> = all.iter().map(|&(_, sector, _)| sector / 32).collect();
    assert_eq!(all.iter().filter(|&&(kind, ..)| kind == 'w').count(), 8);
    // A zone is written to its end before another begins.
    assert!(zones[..4].iter().all(|&zone| zone == zones[0]), "{zones:?}");
    assert_eq!(all[..4].iter().map(|&(_, sector, _)| sector % 32).collect::<Vec<_>>(), [0, 8, 16, 24]);
}

#[test]
fn reads_stay_below_the_write_pointer() {
    assert_eq!(requests("rw=randread,bs=4k,n=4", 20), [], "nothing is written");
    assert_eq!(requests("rw=randread,bs=4k,n=4,read_beyond_wp=1", 20).len(), 4);
    let mut written = [0; 4];
    for (kind, sector, sectors) in requests("rw=randrw,bs=4k,n=300,rwmixread=50", 1000) {
        let (zone, place) = (sector as usize / 32, sector % 32);
        match kind {
            'r' => assert!(place + u64::from(sectors) <= written[zone], "{place} of {}", written[zone]),
            'w' => {
                assert_eq!(place, written[zone], "a write off the pointer");
                written[zone] += u64::from(sectors);
            }
            't' => written[zone] = 0,
            _ => {}
        }
    }
}

#[test]
fn resets_come_by_threshold_and_frequency() {
    let all = requests("rw=randwrite,bs=4k,n=200,zone_reset_threshold=0.5,zone_reset_frequency=0.1", 1000);
    let resets = all.iter().filter(|&&(kind, ..)| kind == 't').count();
    let without = requests("rw=randwrite,bs=4k,n=200", 1000).iter().filter(|&&(kind, ..)| kind == 't').count();
    assert!(resets > without, "{resets} resets, {without} without the keys");
}

#[test]
fn trims_reset_zones_with_data() {
    assert_eq!(requests("rw=trim,bs=16k,n=2", 20), [('t', 0, 32), ('t', 32, 32)]);
    assert_eq!(requests("rw=randtrim,bs=16k,n=2", 20), [], "no zone has data");
}

/// Writes, resets, finishes and reads of `text`, on 59 zones of 32 MiB.
fn counts(text: &str) -> [usize; 4] {
    let spec: FioSpec = format!("zonemode=zbd,zonesize=32m,{text}").parse().expect("a workload");
    let mut source = JobsSource::of_spec(&spec, Room { first: 0, bytes: 1888 * MIB }, 1).expect("a source");
    let mut counts = [0; 4];
    while let Some(request) = source.next_request().expect("a request") {
        let at = match (request.kind, request.directives.zone) {
            (RequestKind::Write, _) => 0,
            (RequestKind::Trim, ZoneAction::Finish) => 2,
            (RequestKind::Trim, _) => 1,
            _ => 3,
        };
        counts[at] += 1;
    }
    counts
}

/// `loops=1` is what a job file has; the first two rows are counts of fio 3.33 and 3.42, the others follow from the
/// rules of its `zbd.c` by hand: a pass ends at the end of the last zone, and a full zone is reset before a write.
#[test]
fn sequential_passes_end_where_fio_ends_them() {
    const PLAIN: &str = "zonecapacity=24m,rw=write,bs=256k";
    for (text, expected) in [
        ("size=256m,loops=1", [768, 0, 0, 0]),
        ("offset=40m,size=64m,loops=1", [96, 0, 0, 0]),
        ("size=256m,loops=2", [1536, 8, 0, 0]),
        ("size=256m,loops=1,n=1000", [768, 0, 0, 0]),
        ("size=256m,loops=2,n=1000", [1000, 3, 0, 0]),
        // Three passes of 192 MiB, the last of 128 MiB.
        ("size=256m,io_size=512m", [2048, 14, 0, 0]),
        // The copy that does not fill the first zone resets it, and then each zone that the other has filled.
        ("size=256m,loops=1,numjobs=2", [1536, 8, 0, 0]),
        ("size=128m,loops=1,numjobs=2,offset_increment=128m", [768, 0, 0, 0]),
        // A rest of 5 MiB is smaller than a block and finished; the job ends with the finish of its last zone.
        ("size=64m,loops=1,zonecapacity=29m,bs=8m", [6, 0, 2, 0]),
        // The last block of a zone is cut to the smallest block, and its bytes do not count.
        ("size=64m,loops=1,zonecapacity=30m,bssplit=4m/100:2m/0", [16, 0, 0, 0]),
    ] {
        let keys = if text.contains("zonecapacity") { "rw=write" } else { PLAIN };
        assert_eq!(counts(&format!("{keys},{text}")), expected, "{text}");
    }
}

#[test]
fn trims_of_whole_zones_reset_them() {
    assert_eq!(counts("zonecapacity=24m,rw=trim,bs=32m,size=256m,loops=1"), [0, 8, 0, 0]);
    assert_eq!(counts("zonecapacity=24m,rw=trim,bs=32m,offset=40m,size=64m,loops=2"), [0, 2, 0, 0]);
}

#[test]
fn refused_in_one_line() {
    for (text, expected) in [
        ("zonemode=zbd,rw=write", "zonesize"),
        ("zonemode=zbd,zonesize=1m,zonecapacity=2m", "no more than zonesize"),
        ("zonemode=zbd,zonesize=64k,bs=128k", "larger than what a zone holds"),
        ("zonemode=zbd,zonesize=1m,rw=trim,bs=64k", "expected trims of zonesize"),
        ("zonemode=zbd,zonesize=1m,zoneskip=1m", "strides"),
        ("max_open_zones=3", "zonemode=zbd"),
        ("zonemode=zbd,zonesize=1m,verify=crc32c", "reset"),
    ] {
        let error = text.parse::<FioSpec>().expect_err(text).to_string();
        assert!(error.contains(expected) && error.len() < 200, "{text}: {error}");
    }
}
