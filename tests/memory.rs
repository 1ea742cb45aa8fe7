//! Memory of the simulator's tables.
//!
//! A separate test binary, because the test measures the whole process.

use palimpsest_lab::config::resolve;
use palimpsest_lab::host::fio::{FioSource, FioSpec};
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::run::precondition::Precondition;
use palimpsest_lab::run::{Fidelity, Options, Warmup, run};
use palimpsest_lab::units::{GIB, MIB};
use std::ops::ControlFlow;

/// Peak memory of this process, in bytes; `None` if the system does not report the peak.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// A drive of 16 GiB of 4 KiB units, without payload, timed: at most 16 bytes a logical unit, and 64 MiB.
#[test]
fn tables_take_sixteen_bytes_a_unit() {
    let Some(before) = peak() else {
        eprintln!("skipped: no /proc/self/status here");
        return;
    };
    for ftl in ["subpage", "page"] {
        let sets = ["ssd.blocks_per_plane=136".into()];
        let ssd = resolve("tlc-32g", Some(ftl), &sets, &|_| unreachable!("presets need no files")).unwrap();
        let bytes = ssd.drive.logical_bytes();
        assert!((16 * GIB..17 * GIB).contains(&bytes), "{bytes}");
        let spec: FioSpec = "rw=randrw,bs=4k,n=100k,iodepth=64".parse().unwrap();
        let options = Options {
            workload: "memory".into(),
            precondition: Precondition::parse("fill:100%,random:0.1x").unwrap(),
            requests: None,
            warmup: Warmup::Requests(0),
            fidelity: Fidelity::Timed,
            payload: Payload::None,
            seed: 1,
            series: false,
            operations: None,
            strict: false,
        };
        let mut source = FioSource::new(&spec, bytes, 1).unwrap();
        run(&ssd, &mut source, &options, &mut |_| ControlFlow::Continue(())).unwrap();
        let (took, units) = (peak().unwrap() - before, bytes / 4096);
        println!("{ftl}: {:.1} MiB, {:.2} bytes a unit", took as f64 / MIB as f64, took as f64 / units as f64);
        assert!(took <= 16 * units + 64 * MIB, "{ftl}: {took} bytes");
    }
}
