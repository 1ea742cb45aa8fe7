//! Simulated requests a second of the cases with a goal, on one core, beside the bound of the memory system.
//!
//! `make bench` runs the cases and prints a table in Markdown. Each case runs `ROUNDS` times and prints the best and
//! the median. The last rows are a loop of dependent random accesses over the same footprint, an upper bound of any
//! simulator of this design. `BENCH_REQUESTS=N` runs each case once with N requests and omits that loop: two lengths
//! under a counter of instructions give the cost of one request. `BENCH_FTL` and `BENCH_SET` (`key=value key=value`)
//! run the cases on another layer, and with other settings; `BENCH_SPEC` replaces the workload, and `BENCH_PAYLOAD=tag`
//! verifies all reads, and all times of timed cases.

use palimpsest_lab::config;
use palimpsest_lab::error::{Error, Result};
use palimpsest_lab::host::find_layer;
use palimpsest_lab::host::fio;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::rng::Rng;
use palimpsest_lab::run::precondition::Precondition;
use palimpsest_lab::run::{Fidelity, Options, Phase, Warmup, run};
use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::Instant;

const ROUNDS: usize = 3;

/// As [`Case::page`], the default drive of `palimpsest run`, with controller, host link and collection in steps.
const DEFAULT: &str = "default";

struct Case {
    name: &'static str,
    ftl: &'static str,
    /// Size of a page, or [`DEFAULT`].
    page: &'static str,
    spec: &'static str,
    precondition: &'static str,
    fidelity: Fidelity,
    goal: f64,
}

const CASES: &[Case] = &[
    Case {
        name: "counted random reads",
        ftl: "page",
        page: "4KiB",
        spec: "rw=randread,bs=4k,n=1e7,norandommap",
        precondition: "fill:100%",
        fidelity: Fidelity::Count,
        goal: 4e6,
    },
    Case {
        name: "counted sequential writes",
        ftl: "page",
        page: "4KiB",
        spec: "rw=write,bs=4k,n=4e6",
        precondition: "none",
        fidelity: Fidelity::Count,
        goal: 4e6,
    },
    Case {
        name: "timed sequential writes",
        ftl: "page",
        page: "4KiB",
        spec: "rw=write,bs=4k,n=4e6,iodepth=32",
        precondition: "none",
        fidelity: Fidelity::Timed,
        goal: 2e6,
    },
    Case {
        name: "counted random writes without GC",
        ftl: "page",
        page: "4KiB",
        spec: "rw=randwrite,bs=4k,n=1e6,norandommap",
        precondition: "none",
        fidelity: Fidelity::Count,
        goal: 4e6,
    },
    Case {
        name: "timed random reads",
        ftl: "page",
        page: "4KiB",
        spec: "rw=randread,bs=4k,n=3e6,norandommap,iodepth=32",
        precondition: "fill:100%",
        fidelity: Fidelity::Timed,
        goal: 3e6,
    },
    Case {
        name: "timed random reads, subpages",
        ftl: "subpage",
        page: "16KiB",
        spec: "rw=randread,bs=4k,n=3e6,norandommap,iodepth=32",
        precondition: "fill:100%",
        fidelity: Fidelity::Timed,
        goal: 3e6,
    },
    Case {
        name: "timed random writes without GC",
        ftl: "page",
        page: "4KiB",
        spec: "rw=randwrite,bs=4k,n=1e6,norandommap,iodepth=32",
        precondition: "none",
        fidelity: Fidelity::Timed,
        goal: 2e6,
    },
    Case {
        name: "timed random writes without GC, subpages",
        ftl: "subpage",
        page: "16KiB",
        spec: "rw=randwrite,bs=4k,n=3e6,norandommap,iodepth=32",
        precondition: "none",
        fidelity: Fidelity::Timed,
        goal: 2e6,
    },
    Case {
        name: "timed random reads, default drive",
        ftl: "subpage",
        page: DEFAULT,
        spec: "rw=randread,bs=4k,n=3e6,norandommap,iodepth=32",
        precondition: "fill:100%",
        fidelity: Fidelity::Timed,
        goal: 3e6,
    },
    Case {
        name: "timed steady random writes, default drive",
        ftl: "subpage",
        page: DEFAULT,
        spec: "rw=randwrite,bs=4k,n=3e6,norandommap,iodepth=32",
        precondition: "fill:100%,random:1x",
        fidelity: Fidelity::Timed,
        goal: 1e6,
    },
    Case {
        name: "timed steady random writes, OP 28 %",
        ftl: "page",
        page: "4KiB",
        spec: "rw=randwrite,bs=4k,n=3e6,norandommap,iodepth=32",
        precondition: "fill:100%,random:1x",
        fidelity: Fidelity::Timed,
        goal: 1e6,
    },
    Case {
        name: "timed steady random writes, subpages",
        ftl: "subpage",
        page: "16KiB",
        spec: "rw=randwrite,bs=4k,n=3e6,norandommap,iodepth=32",
        precondition: "fill:100%,random:1x",
        fidelity: Fidelity::Timed,
        goal: 1e6,
    },
    Case {
        name: "timed steady random writes, two-level map",
        ftl: "mga",
        page: "16KiB",
        spec: "rw=randwrite,bs=4k,n=3e6,norandommap,iodepth=32",
        precondition: "fill:100%,random:1x",
        fidelity: Fidelity::Timed,
        goal: 1e6,
    },
    Case {
        name: "counted steady random writes, hot and cold",
        ftl: "hotcold",
        page: "16KiB",
        spec: "rw=randwrite,bs=4k,n=1e7,norandommap",
        precondition: "fill:100%,random:1x",
        fidelity: Fidelity::Count,
        goal: 4e6,
    },
    Case {
        name: "counted steady random writes, reuse",
        ftl: "llh",
        page: "16KiB",
        spec: "rw=randwrite,bs=4k,n=1e7,norandommap",
        precondition: "fill:100%,random:1x",
        fidelity: Fidelity::Count,
        goal: 4e6,
    },
    Case {
        name: "timed steady random writes, reuse",
        ftl: "llh",
        page: "16KiB",
        spec: "rw=randwrite,bs=4k,n=3e6,norandommap,iodepth=32",
        precondition: "fill:100%,random:1x",
        fidelity: Fidelity::Timed,
        goal: 1e6,
    },
    Case {
        name: "timed steady 4 KiB writes, page map",
        ftl: "page",
        page: "16KiB",
        spec: "rw=randwrite,bs=4k,n=3e6,norandommap,iodepth=32",
        precondition: "fill:100%,random:1x",
        fidelity: Fidelity::Timed,
        goal: 5e5,
    },
    Case {
        name: "counted steady random writes, OP 28 %",
        ftl: "page",
        page: "4KiB",
        spec: "rw=randwrite,bs=4k,n=1e7,norandommap",
        precondition: "fill:100%,random:1x",
        fidelity: Fidelity::Count,
        goal: 4e6,
    },
    Case {
        name: "counted steady random writes, subpages",
        ftl: "subpage",
        page: "16KiB",
        spec: "rw=randwrite,bs=4k,n=1e7,norandommap",
        precondition: "fill:100%,random:1x",
        fidelity: Fidelity::Count,
        goal: 4e6,
    },
    Case {
        name: "timed steady random writes, parts of pages",
        ftl: "page",
        page: "16KiB",
        spec: "rw=randwrite,bs=4k,n=2e6,norandommap,iodepth=32",
        precondition: "fill:100%,random:1x",
        fidelity: Fidelity::Timed,
        goal: 4e5,
    },
    Case {
        name: "timed steady random writes, sector log",
        ftl: "sector-log",
        page: "16KiB",
        spec: "rw=randwrite,bs=4k,n=2e6,norandommap,iodepth=32",
        precondition: "fill:100%,random:1x",
        fidelity: Fidelity::Timed,
        goal: 2e5,
    },
    Case {
        name: "timed steady random writes, copies of a job",
        ftl: "page",
        page: "4KiB",
        spec: "rw=randwrite,bs=4k,n=1e6,norandommap,iodepth=16,numjobs=2,name=a",
        precondition: "fill:100%,random:1x",
        fidelity: Fidelity::Timed,
        goal: 1e6,
    },
    Case {
        name: "timed steady random writes, two tenants",
        ftl: "page",
        page: "4KiB",
        spec: "rw=randwrite,bs=4k,n=1e6,norandommap,iodepth=16,name=a,name=b",
        precondition: "fill:100%,random:1x",
        fidelity: Fidelity::Timed,
        goal: 1e6,
    },
    Case {
        name: "timed steady random writes, cached map",
        ftl: "dftl",
        page: "4KiB",
        spec: "rw=randwrite,bs=4k,norandommap,n=2e6,iodepth=32",
        precondition: "fill:100%,random:1x",
        fidelity: Fidelity::Timed,
        goal: 1e6,
    },
    Case {
        name: "timed steady random writes, handles",
        ftl: "fdp",
        page: "4KiB",
        spec: "rw=randwrite,bs=4k,norandommap,n=2e6,iodepth=32",
        precondition: "fill:100%,random:1x",
        fidelity: Fidelity::Timed,
        goal: 1e6,
    },
    Case {
        name: "counted steady random writes, copies of a job",
        ftl: "page",
        page: "4KiB",
        spec: "rw=randwrite,bs=4k,n=2e6,norandommap,numjobs=2,name=a",
        precondition: "fill:100%,random:1x",
        fidelity: Fidelity::Count,
        goal: 4e6,
    },
    Case {
        name: "counted steady random writes, two tenants",
        ftl: "page",
        page: "4KiB",
        spec: "rw=randwrite,bs=4k,n=2e6,norandommap,name=a,name=b",
        precondition: "fill:100%,random:1x",
        fidelity: Fidelity::Count,
        goal: 4e6,
    },
    Case {
        name: "counted steady random writes, cached map",
        ftl: "dftl",
        page: "4KiB",
        spec: "rw=randwrite,bs=4k,norandommap,n=4e6",
        precondition: "fill:100%,random:1x",
        fidelity: Fidelity::Count,
        goal: 4e6,
    },
    Case {
        name: "counted steady random writes, handles",
        ftl: "fdp",
        page: "4KiB",
        spec: "rw=randwrite,bs=4k,norandommap,n=4e6",
        precondition: "fill:100%,random:1x",
        fidelity: Fidelity::Count,
        goal: 4e6,
    },
    Case {
        name: "timed file system, as exchange",
        ftl: "codesign",
        page: "4KiB",
        spec: "rw=randrw,rwmixread=32.1,bssplit=4k/16:8k/45:16k/14:32k/13:64k/9:128k/3,size=70%,\
               filesize=8k/74:32k/6:1m/20,openfiles=64,random_distribution=random,iodepth=16,n=5e5",
        precondition: "layout",
        fidelity: Fidelity::Timed,
        goal: 2e5,
    },
    Case {
        name: "timed file system, small writes",
        ftl: "codesign",
        page: "4KiB",
        spec: "rw=randwrite,bs=4k,size=70%,filesize=8k/74:32k/6:1m/20,openfiles=64,iodepth=16,n=1e6",
        precondition: "layout",
        fidelity: Fidelity::Timed,
        goal: 2e5,
    },
    Case {
        name: "counted file system, small writes",
        ftl: "codesign",
        page: "4KiB",
        spec: "rw=randwrite,bs=4k,size=70%,filesize=8k/74:32k/6:1m/20,openfiles=64,n=2e6",
        precondition: "layout",
        fidelity: Fidelity::Count,
        goal: 1e6,
    },
];

/// The layer of `case`.
fn layer_of(case: &Case) -> String {
    std::env::var("BENCH_FTL").unwrap_or_else(|_| case.ftl.into())
}

/// The contents of cells that `BENCH_PAYLOAD` names.
fn payload() -> Payload {
    match std::env::var("BENCH_PAYLOAD").as_deref() {
        Ok("tag") => Payload::Tag,
        Ok("bytes") => Payload::Bytes,
        _ => Payload::None,
    }
}

/// The preset of the drive of `case`, and the overrides.
fn drive_of(case: &Case) -> (&'static str, Vec<String>) {
    let set = |key: &str, value: &str| format!("{key}={value}");
    // A drive that fits the caches shows processor time only.
    let gibibytes: f64 = std::env::var("BENCH_GIB").ok().and_then(|text| text.parse().ok()).unwrap_or(16.0);
    if case.page == DEFAULT {
        return (DEFAULT, vec![set("ssd.capacity", &format!("{gibibytes}GiB"))]);
    }
    let page_kib: u64 = case.page.trim_end_matches("KiB").parse().expect("a size in KiB");
    // 16 GiB logical at OP 28 %: 8 channels x 4 dies x 2 planes, 256 pages a block.
    let blocks = (gibibytes * f64::from(1 << 20) * 1.28 / (page_kib * 256 * 64) as f64).round() as u64;
    let mut overrides = vec![
        set("part.page_size", case.page),
        set("part.subpage_size", "4KiB"),
        set("part.pages_per_block", "256"),
        set("ssd.channels", "8"),
        set("ssd.chips_per_channel", "4"),
        set("ssd.dies_per_chip", "1"),
        set("ssd.planes_per_die", "2"),
        set("ssd.blocks_per_plane", &blocks.to_string()),
        set("ssd.over_provisioning", "28%"),
        // The settings for which the goals were set.
        set("ftl.gc_pace", "block"),
        set("ftl.moved_to", "plane"),
        // No effect on layers that program each page once.
        set("part.nop", "4"),
        set("part.order", "ascending"),
    ];
    if find_layer(&layer_of(case)).is_some_and(|entry| entry.lists("ftl.cmt")) {
        // Room for the whole map.
        overrides.push(set("ftl.cmt", "1GiB"));
    }
    if find_layer(&layer_of(case)).is_some_and(|entry| entry.hot_and_cold) {
        overrides.pop();
        // A merge buffer for each stream of each of 64 banks.
        overrides.extend([set("part.cell", "mlc"), set("part.order", "low-low-high"), set("part.spare_size", "1664B")]);
        overrides.extend([set("buffer.timeout", "0ns"), set("buffer.size", "8MiB")]);
    }
    ("tlc-32g", overrides)
}

/// Requests a second, and the write amplification.
fn measure(case: &Case, requests: Option<u64>) -> Result<(f64, Option<f64>)> {
    let (preset, mut overrides) = drive_of(case);
    let key_of = |set: &str| set.split('=').next().map(String::from);
    for set in std::env::var("BENCH_SET").unwrap_or_default().split_whitespace() {
        overrides.retain(|other| key_of(other) != key_of(set));
        overrides.push(set.into());
    }
    let no_files = |path: &str| Err(Error::input(path, "there are no files here"));
    let resolved = config::resolve(preset, Some(&layer_of(case)), &overrides, &no_files)?;
    let options = Options {
        workload: case.name.into(),
        precondition: Precondition::parse(case.precondition)?,
        requests,
        warmup: Warmup::Requests(0),
        fidelity: case.fidelity,
        payload: payload(),
        seed: 1,
        series: false,
        operations: None,
        strict: false,
    };
    let spec = std::env::var("BENCH_SPEC").unwrap_or_else(|_| case.spec.into());
    let mut source = fio::of_text(&spec, resolved.drive.logical_bytes(), 1)?;
    let mut begin = Instant::now();
    let mut measuring = false;
    let mut end = begin;
    let outcome = run(&resolved, &mut *source, &options, &mut |progress| {
        end = Instant::now();
        if progress.phase == Phase::Run && !measuring {
            (measuring, begin) = (true, end);
        }
        ControlFlow::Continue(())
    })?;
    let requests = outcome.summary.requests.read + outcome.summary.requests.write;
    Ok((requests as f64 / (end - begin).as_secs_f64(), outcome.summary.write_amplification))
}

/// Dependent random accesses a second over `bytes`.
fn pointer_chase(bytes: usize) -> f64 {
    let length = bytes / 8;
    let mut next: Vec<u64> = (0..length as u64).collect();
    let mut rng = Rng::new(1, 1);
    for index in (1..length).rev() {
        next.swap(index, rng.below(index as u64) as usize);
    }
    let steps = 5_000_000u64;
    let begin = Instant::now();
    let mut place = 0;
    for _ in 0..steps {
        place = next[place as usize];
    }
    black_box(place);
    steps as f64 / begin.elapsed().as_secs_f64()
}

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let requests = std::env::var("BENCH_REQUESTS").ok().and_then(|text| text.parse().ok());
    let rounds = if requests.is_some() { 1 } else { ROUNDS };
    println!("| case | best/s | median/s | goal/s | write amplification |");
    println!("| --- | --- | --- | --- | --- |");
    let named = CASES.iter().any(|case| only.as_deref() == Some(case.name));
    let picked = |case: &&Case| match only.as_deref() {
        Some(only) if named => case.name == only,
        only => only.is_none_or(|only| case.name.contains(only)),
    };
    for case in CASES.iter().filter(picked) {
        let mut rates: Vec<(f64, Option<f64>)> = Vec::new();
        for _ in 0..rounds {
            match measure(case, requests) {
                Ok(rate) => rates.push(rate),
                Err(error) => return eprintln!("error: {error}"),
            }
        }
        rates.sort_by(|one, two| one.0.total_cmp(&two.0));
        let (best, median, amplification) = (rates[rounds - 1].0, rates[rounds / 2].0, rates[0].1);
        let amplification = amplification.map_or("-".into(), |value| format!("{value:.3}"));
        println!("| {} | {best:.3e} | {median:.3e} | {:.0e} | {amplification} |", case.name, case.goal);
    }
    for mebibytes in [16, 40, 64].into_iter().filter(|_| requests.is_none()) {
        println!("| dependent random accesses, {mebibytes} MiB | {:.3e} | | | |", pointer_chase(mebibytes << 20));
    }
}
