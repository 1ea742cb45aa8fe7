//! Tests of generated workloads: shares, positions, bounds, arrivals.

use super::*;
use crate::fio::generated;
use crate::request::Due;
use crate::request::Lifetime;
use palimpsest_flash::error::Error;
use palimpsest_flash::units::{GIB, KIB, MIB};

fn all(text: &str, drive: u64) -> Vec<Request> {
    let spec = FioSpec::parse(text).unwrap();
    let mut source = FioSource::new(&spec, drive, 1).unwrap();
    let expected = source.expected_requests();
    let mut requests = Vec::new();
    while let Some(request) = source.next_request().unwrap() {
        assert!((request.extent.end()) * SECTOR_BYTES <= drive, "{text}: {request:?}");
        requests.push(request);
    }
    assert!(expected.is_none_or(|count| count == requests.len() as u64), "{text}: {expected:?} {}", requests.len());
    requests
}

fn share(requests: &[Request], is_counted: impl Fn(&Request) -> bool) -> f64 {
    requests.iter().filter(|request| is_counted(request)).count() as f64 / requests.len() as f64
}

#[test]
fn sequential_access_wraps_around() {
    let sectors: Vec<u64> =
        all("rw=write,bs=8k,offset=64k,size=28k,n=5", MIB).iter().map(|r| r.extent.sector).collect();
    assert_eq!(sectors, [128, 144, 160, 128, 144]);
}

#[test]
fn each_direction_of_a_mix_keeps_its_position() {
    let requests = all("rw=rw,bs=4k,8k,n=1000,rwmixread=30", GIB);
    for (kind, sectors) in [(RequestKind::Read, 8), (RequestKind::Write, 16)] {
        let own = requests.iter().filter(|request| request.kind == kind);
        assert!(own.zip(0..).all(|(request, at)| request.extent.sector == at * sectors));
    }
    assert!((share(&requests, |r| r.kind == RequestKind::Read) - 0.3).abs() < 0.06);
}

#[test]
fn trimwrite_writes_what_it_trimmed() {
    for text in ["rw=trimwrite,bs=64k,n=100", "rw=randtrimwrite,bssplit=4k/50:8k/50,n=100"] {
        for pair in all(text, GIB).chunks(2) {
            assert_eq!((pair[0].kind, pair[1].kind), (RequestKind::Trim, RequestKind::Write));
            assert_eq!(
                (pair[0].extent.sector, pair[0].extent.sectors),
                (pair[1].extent.sector, pair[1].extent.sectors)
            );
        }
    }
}

#[test]
fn uniform_addresses_cover_the_region_evenly() {
    let requests = all("rw=randwrite,bs=4k,size=40k,n=100k", MIB);
    let mut counts = [0u64; 10];
    requests.iter().for_each(|request| counts[(request.extent.sector / 8) as usize] += 1);
    let chi_square: f64 = counts.iter().map(|&count| (count as f64 - 1e4).powi(2) / 1e4).sum();
    assert!(chi_square < 33.0, "{counts:?}");
}

/// The hottest block of zipf:0.95 over n blocks gets 1 / zeta(n, 0.95) of the requests.
#[test]
fn zipf_gives_its_first_rank_the_exact_share() {
    let requests = all("rw=randwrite,bs=4k,size=4MiB,n=200k,random_distribution=zipf:0.95", GIB);
    let mut counts = vec![0u64; 1024];
    requests.iter().for_each(|request| counts[(request.extent.sector / 8) as usize] += 1);
    let zeta: f64 = (1..=1024).map(|rank| libm::pow(f64::from(rank), -0.95)).sum();
    let expected = 200e3 / zeta;
    let hottest = *counts.iter().max().unwrap() as f64;
    assert!((hottest - expected).abs() < 5.0 * expected.sqrt(), "{hottest} {expected}");
}

#[test]
fn large_requests_follow_each_other_beside_the_random_ones() {
    let text = "rw=randrw,bssplit=4k/90:64k/9.5:128k/0.5,size=8MiB,sequential_from=64k,n=20k";
    for (own, first) in [("", 0), (",sequential_size=2MiB", 6 * MIB / SECTOR_BYTES)] {
        let requests = all(&format!("{text}{own}"), GIB);
        let large = |request: &&Request| request.extent.sectors >= 128;
        for kind in [RequestKind::Read, RequestKind::Write] {
            let mut next = first;
            for request in requests.iter().filter(|request| request.kind == kind).filter(large) {
                assert!(
                    request.extent.sector == next || request.extent.sector == first,
                    "{own}: {request:?} not at {next}"
                );
                next = request.extent.end();
            }
        }
        let small_end = if own.is_empty() { 8 } else { 6 } * MIB / SECTOR_BYTES;
        let furthest = requests.iter().filter(|r| !large(r)).map(|r| r.extent.sector + 8).max().unwrap();
        assert!(furthest <= small_end && furthest > small_end - 64, "{own}: {furthest}");
        assert!((share(&requests, |r| r.extent.sectors == 256) - 0.005).abs() < 0.0015);
    }
    let spec = FioSpec::parse("rw=randwrite,bssplit=4k/50:64k/50,size=1MiB,sequential_from=64k,sequential_size=1MiB");
    let message = FioSource::new(&spec.unwrap(), GIB, 1).unwrap_err().to_string();
    assert!(
        message.starts_with("--workload sequential_size: sequential requests get 1MiB of the region of 1MiB; expected"),
        "{message}"
    );
}

#[test]
fn splits_give_each_size_its_share_within_the_region() {
    for text in [
        "rw=randread,bssplit=4k/50:16k/30:64k/20,size=256k,n=50k,norandommap",
        "rw=randread,bssplit=4k/50:16k/30:64k/20,size=256k,n=50k,random_distribution=zipf:1.1",
    ] {
        let requests = all(text, 256 * KIB);
        for (sectors, percent) in [(8, 0.5), (32, 0.3), (128, 0.2)] {
            assert!((share(&requests, |r| r.extent.sectors == sectors) - percent).abs() < 0.01);
        }
        assert!(requests.iter().all(|request| request.extent.sector % 8 == 0));
    }
}

#[test]
fn reads_and_writes_share_their_hot_blocks() {
    let requests = all("rw=randrw,bs=4k,size=4MiB,n=100k,random_distribution=zipf:1.2", GIB);
    let hottest = |kind| {
        let mut counts = vec![0u64; 1024];
        let own = requests.iter().filter(|request| request.kind == kind);
        own.for_each(|request| counts[(request.extent.sector / 8) as usize] += 1);
        (0..1024).max_by_key(|&block| counts[block])
    };
    assert_eq!(hottest(RequestKind::Read), hottest(RequestKind::Write));
}

#[test]
fn alignment_and_percentage_random() {
    assert!(all("rw=randread,bs=4k,ba=16k,n=1000", MIB).iter().all(|request| request.extent.sector % 32 == 0));
    let requests = all("rw=randread,bs=4k,percentage_random=20,n=20k", GIB);
    let follows = requests.windows(2).filter(|pair| pair[1].extent.sector == pair[0].extent.sector + 8).count();
    assert!((follows as f64 / 20e3 - 0.8).abs() < 0.02, "{follows}");
}

#[test]
fn flushes_follow_writes_and_do_not_count() {
    let requests = all("rw=randwrite,fsync=3,n=10", MIB);
    let flushes: Vec<usize> = (0..requests.len()).filter(|&at| requests[at].kind == RequestKind::Flush).collect();
    assert_eq!((requests.len(), flushes), (13, vec![3, 7, 11]));
}

#[test]
fn bytes_bound_the_run() {
    assert_eq!(all("rw=write,bs=64k,io_size=1MiB", GIB).len(), 16);
    assert_eq!(all("rw=write,bs=64k,size=1MiB,loops=3", GIB).len(), 48);
    assert_eq!(all("rw=write,bs=64k,size=1MiB,loops=3,n=5", GIB).len(), 5);
    assert_eq!(all("rw=randwrite", GIB).len(), 100_000);
}

#[test]
fn arrivals_at_a_rate() {
    let linear = all("rw=read,rate_iops=3,n=7", GIB);
    assert_eq!(linear[1].arrival, 333_333_333);
    assert_eq!((linear[3].arrival, linear[6].arrival), (1_000_000_000, 2_000_000_000));
    let slow = all("rw=read,rate_iops=0.3,n=4", GIB);
    let times: Vec<u64> = slow.iter().map(|request| request.arrival).collect();
    assert_eq!(times, [0, 3_333_333_333, 6_666_666_666, 10_000_000_000]);
    let mixed: Vec<u64> =
        all("rw=rw,rate_iops=1000,500,n=6", GIB).iter().map(|request| request.arrival / 1000).collect();
    assert_eq!(mixed, [0, 0, 1000, 2000, 2000, 3000]);
    // An open loop has one rate for all.
    let open = all("rw=rw,rate_iops=1000,open_loop,n=4", GIB);
    assert_eq!(open.iter().map(|request| request.arrival / 1000).collect::<Vec<_>>(), [0, 1000, 2000, 3000]);
    // The rate of a trimwrite is that of its writes, and a flush comes with the write before.
    let pairs = all("rw=trimwrite,rate_iops=1000,fsync=1,n=4", GIB);
    assert_eq!(pairs.iter().map(|request| request.arrival / 1000).collect::<Vec<_>>(), [0, 0, 0, 1000, 1000]);
    let poisson = all("rw=read,rate_iops=1000,rate_process=poisson,n=100k", GIB);
    let gaps: Vec<f64> = poisson.windows(2).map(|pair| (pair[1].arrival - pair[0].arrival) as f64 / 1e6).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let square = gaps.iter().map(|gap| gap * gap).sum::<f64>() / gaps.len() as f64;
    assert!((mean - 1.0).abs() < 0.02 && (square - 2.0).abs() < 0.1, "{mean} {square}");
    let arrivals = |text| FioSource::new(&FioSpec::parse(text).unwrap(), GIB, 1).unwrap().arrivals();
    assert_eq!(arrivals("rw=read,rate_iops=3,open_loop"), Arrivals::Open);
    assert_eq!(arrivals("rw=read,iodepth=8"), Arrivals::Closed { depth: 8 });
}

#[test]
fn seeds_repeat_and_differ() {
    let draw = |text: &str, seed| {
        let mut source = FioSource::new(&FioSpec::parse(text).unwrap(), GIB, seed).unwrap();
        (0..10).map(|_| source.next_request().unwrap().unwrap().extent.sector).collect::<Vec<_>>()
    };
    assert_eq!(draw("rw=randread", 1), draw("rw=randread", 1));
    assert_ne!(draw("rw=randread", 1), draw("rw=randread", 2));
    assert_eq!(draw("rw=randread,randseed=5", 1), draw("rw=randread,randseed=5", 2));
}

#[test]
fn regions_must_lie_on_the_drive() {
    let wrong = |text: &str| match FioSource::new(&FioSpec::parse(text).unwrap(), GIB, 1) {
        Err(Error::Input { place, what, .. }) => (place, what),
        other => panic!("{other:?}"),
    };
    let (place, what) = wrong("rw=read,size=2GiB");
    assert_eq!(place, "--workload size");
    assert!(what.contains("2GiB") && what.contains("1GiB"), "{what}");
    assert_eq!(wrong("rw=read,offset=2GiB").0, "--workload offset");
    assert!(wrong("rw=read,size=4k,bs=8k").1.contains("8KiB"));
    assert_eq!(wrong("rw=read,size=100%,offset=50%").0, "--workload size");
}

/// As fio computes them (`get_start_offset` and `setup_files` of fio 3.41).
#[test]
fn percentages_are_rounded_as_in_fio() {
    // 20 % of 100 blocks of 4 KiB and one sector are 20 blocks and a part of a sector.
    let drive = 100 * 4096 + 512;
    let region = |keys: &str| {
        let room = Room { first: 0, bytes: drive };
        let region = Region::new(&FioSpec::parse(&format!("rw=randwrite,{keys}")).unwrap(), room, 0).unwrap();
        (region.first, region.sectors, region.drawn)
    };
    let (blocks, rest) = (100 * 8 + 1, 84 * 8);
    assert_eq!(region("bs=4k,offset=20%"), (21 * 8, blocks - 21 * 8, blocks - 21 * 8));
    assert_eq!(region("bs=16k,offset=20%"), (24 * 8, blocks - 24 * 8, blocks - 24 * 8));
    assert_eq!(region("bs=16k,offset=4k,size=85%"), (8, rest, rest));
    // The smallest size is that of all directions: here reads have one of 4 KiB.
    assert_eq!(region("bs=,16k,offset=20%").0, 21 * 8);
    assert_eq!(region("bssplit=12k/50:8k/50,offset=20%,size=33%").0, 22 * 8);
    // Rounding takes the end of the region from beyond the drive.
    assert_eq!(region("bs=16k,offset=20%,size=80%"), (24 * 8, 76 * 8, 76 * 8));
    // Large requests have an aligned part of the region.
    assert_eq!(region("bssplit=8k/50:64k/50,sequential_from=64k,size=90%,sequential_size=25%"), (0, 90 * 8, 66 * 8));
    // A percentage of `io_size` is that of the size.
    assert_eq!(all("rw=write,bs=4k,size=50%,io_size=150%", 100 * 4096).len(), 75);
    assert_eq!(all("rw=randwrite,bs=4k,size=50%,norandommap,io_size=150%", 100 * 4096).len(), 75);
}

/// `cargo test --release -p palimpsest-workload --lib fio -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn measured_speed_of_generation() {
    for text in [
        "rw=randwrite,bs=4k,n=20M",
        "rw=write,bs=4k,n=20M",
        "rw=randrw,bs=4k,n=10M",
        "rw=randwrite,bssplit=4k/50:16k/50,n=10M",
        "rw=randwrite,n=5M,random_distribution=zipf:0.95",
        "rw=randwrite,n=5M,random_distribution=pareto:0.2",
        "rw=randwrite,n=5M,random_distribution=normal:10",
        "rw=randwrite,n=10M,random_distribution=hotspot:20/80",
        "rw=randwrite,n=10M,rate_iops=20k",
    ] {
        let mut source: Box<dyn Source> =
            Box::new(FioSource::new(&FioSpec::parse(text).unwrap(), 64 * GIB, 1).unwrap());
        let (start, mut count, mut sum) = (std::time::Instant::now(), 0u64, 0u64);
        while let Some(request) = source.next_request().unwrap() {
            (count, sum) = (count + 1, sum.wrapping_add(request.extent.sector));
        }
        println!("{:6.2} ns a request: {text} ({sum:x})", start.elapsed().as_nanos() as f64 / count as f64);
    }
}

#[test]
fn files_are_laid_out_and_requests_stay_in_theirs() {
    let text = "rw=randrw,bssplit=4k/50:16k/50,size=1MiB,filesize=8k/50:64k/50,openfiles=4,n=4000";
    let mut source = FioSource::new(&FioSpec::parse(text).unwrap(), 2 * MIB, 7).unwrap();
    let layout: Vec<Request> = std::iter::from_fn(|| source.next_of_layout()).collect();
    // 1 MiB holds 28 files of 36 KiB in the mean, 14 of each size; the large ones come first.
    let streams: std::collections::BTreeSet<u32> = layout.iter().map(|request| request.owner()).collect();
    assert_eq!(streams, (1..=28).collect());
    let written: u64 = layout.iter().map(|request| u64::from(request.extent.sectors)).sum();
    assert_eq!(written, 14 * (128 + 16));
    assert!(layout.windows(2).any(|pair| pair[0].owner() != pair[1].owner() && pair[0].owner() > pair[1].owner()));
    let start = |stream: u64| if stream <= 14 { (stream - 1) * 128 } else { 14 * 128 + (stream - 15) * 16 };
    while let Some(request) = source.next_request().unwrap() {
        let (stream, end) = (u64::from(request.owner()), request.extent.end());
        assert!(request.extent.sector >= start(stream) && end <= start(stream + 1), "{request:?}");
        assert!(request.extent.sectors == 8 || stream <= 14, "only large files hold 16 KiB");
    }
}

#[test]
fn times_of_a_specification() {
    let parse = |text: &str| FioSpec::parse(text).unwrap();
    let spec = parse("rw=read,runtime=10,startdelay=1.5ms");
    assert_eq!((spec.requests, spec.runtime, spec.start_delay), (None, Some(10_000_000_000), 1_500_000));
    assert!(spec.to_string().contains(",runtime=10s,startdelay=1500us"), "{spec}");
    assert_eq!(parse("runtime=2m,time_based,size=1m,io_size=2m").io_size, None);
    assert_eq!(parse("runtime=1h,n=7").requests, Some(7));
    assert_eq!(parse("runtime=0"), FioSpec::default());
    // Files keep their streams, and are laid out.
    let mut source = generated(&parse("rw=read,bs=4k,size=64k,nrfiles=4,runtime=1ms"), MIB, 1).unwrap();
    assert_eq!(source.next_of_layout().map(|request| request.owner()), Some(1));
    let Due::Request(request) = source.jobs().unwrap().due(5).unwrap() else { panic!("a request is due") };
    assert_eq!((request.arrival, request.owner(), request.directives.queue), (5, 1, 0));
}

#[test]
fn sequential_requests_go_from_file_to_file() {
    let requests = all("rw=write,bs=12k,size=96k,nrfiles=3,n=7", MIB);
    let places: Vec<(u64, u32)> = requests.iter().map(|request| (request.extent.sector, request.owner())).collect();
    assert_eq!(places, [(0, 1), (24, 1), (64, 2), (88, 2), (128, 3), (152, 3), (0, 1)]);
}

#[test]
fn files_that_do_not_fit_are_refused() {
    for (text, key) in [
        ("rw=read,bs=64k,size=1MiB,nrfiles=64", "filesize"),
        ("rw=read,size=1MiB,nrfiles=64,filesize=64k", "nrfiles"),
        ("rw=read,size=64k,nrfiles=1000", "nrfiles"),
    ] {
        let refused = FioSource::new(&FioSpec::parse(text).unwrap(), 4 * MIB, 1).unwrap_err();
        assert!(matches!(&refused, Error::Input { place, .. } if place.contains(key)), "{text}: {refused}");
    }
    // Without nrfiles, a size is that of the single file, the region.
    let spec = FioSpec::parse("rw=read,filesize=1MiB").unwrap();
    assert_eq!((spec.size, spec.file_sizes), (Some(crate::fio::Amount::Bytes(MIB)), None));
    let shown = FioSpec::parse("rw=read,size=1MiB,filesize=4k/50:8k/50,openfiles=2").unwrap();
    assert_eq!(FioSpec::parse(&shown.to_string()).unwrap(), shown);
}

#[test]
fn writes_have_the_directives_of_the_specification() {
    let directives = |text: &str| {
        let requests = all(text, MIB);
        let of = |kind| {
            let own = requests.iter().filter(move |request| request.kind == kind);
            own.map(|request| (request.directives.fua, request.directives.lifetime, request.directives.placement))
        };
        assert!(of(RequestKind::Read).all(|found| found == (false, Lifetime::Unknown, 0)), "{text}");
        of(RequestKind::Write).take(4).collect::<Vec<_>>()
    };
    assert_eq!(directives("rw=randrw,n=40"), [(false, Lifetime::Unknown, 0); 4]);
    let hint = Lifetime::Pages(1 << 8);
    assert_eq!(directives("rw=randrw,n=40,sync=dsync,write_hint=medium"), [(true, hint, 0); 4]);
    // fio sorts the handles.
    let placed = [0, 3, 7, 0].map(|handle| (false, Lifetime::Unknown, handle));
    assert_eq!(directives("rw=randrw,n=40,plids=3,0,7"), placed);
    let handles =
        |keys: &str| directives(&format!("rw=randrw,n=40,{keys}")).into_iter().map(|of| of.2).collect::<Vec<_>>();
    assert_eq!(handles("plids=1-2,9"), [1, 2, 9, 1]);
    // Without `plids` all identifiers of the drive, which a drive without handles does not have.
    let mut source = FioSource::new(&FioSpec::parse("rw=write,n=4,fdp=1").unwrap(), MIB, 42).unwrap();
    let mut next = || source.next_request().unwrap().unwrap().directives;
    assert!(!next().placed);
    source.name_handles(&[0, 0x4000, 1]);
    let mut next = || source.next_request().unwrap().unwrap().directives.placement;
    assert_eq!([next(), next(), next()], [0, 0x4000, 1]);
    // The first values of fio's generator of handles for job 1 and fio's own seed.
    assert_eq!(handles("plids=0-7,plid_select=random"), [2, 1, 6, 4]);
    // Offsets are those of the device; the first range that fits names the identifier, and none names 0.
    let scheme = "dp_scheme=0,8k,5:4k,20k,9:0,12k,1,plid_select=scheme";
    let placed = |keys: &str| {
        let requests = all(&format!("{keys},{scheme}"), MIB);
        requests.iter().map(|request| (request.directives.placement, request.directives.placed)).collect::<Vec<_>>()
    };
    assert_eq!(placed("rw=write,bs=4k,n=6"), [5, 5, 9, 9, 9, 0].map(|handle| (handle, true)));
    assert_eq!(placed("rw=write,bs=4k,n=2,offset=16k"), [(9, true), (0, true)]);
    let spec = FioSpec::parse(&format!("rw=write,{scheme}")).unwrap();
    assert_eq!(FioSpec::parse(&spec.to_string()).unwrap(), spec);
}
