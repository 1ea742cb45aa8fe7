//! A map in flash (`dftl`): response times of single requests are sums of part timings, to the nanosecond. Source: DFTL
//! paper, Sec. 3.3: a miss reads a translation page; a miss with a dirty victim first reads and programs another.

use crate::bench::{Run, drive};
use palimpsest_lab::config::Resolved;
use palimpsest_lab::units::Nanos;
use serde_json::Value;

/// A drive whose table holds a single entry, so that every page of a sequence is a miss, with space enough never to
/// collect.
fn latencies(ssd: &Resolved, direction: &str) -> [Nanos; 4] {
    let bytes = ssd.drive.part.page_bytes;
    let mut run = Run::new(ssd, &format!("rw={direction},bs={bytes},n=300"));
    // The first victim is the last entry of the precondition, which is dirty.
    (run.precondition, run.warmup) = ("fill:60%", 1);
    let printed: Value = serde_json::to_value(run.result()).unwrap();
    ["mean", "p50", "p99", "max"].map(|name| printed["latency_ns"][direction][name].as_u64().unwrap())
}

/// Miss with a clean victim: 2 (command + tR + transfer). Miss with a dirty victim, for a write: the layer reads and
/// programs the translation page, then programs the page. The wanted entry is in the same translation page: the layer
/// reads the entry from memory or, if operations of a block keep their order, from flash.
#[test]
fn misses_add_reads_and_programs_of_translation_pages() {
    for part in ["mlc-4k", "mlc-8k", "tlc-16k"] {
        let same = "part.t_read=50us part.t_read_high=50us part.t_program=600us part.t_program_high=600us";
        let ssd = |layer: &str| {
            drive(
                "tlc-32g",
                &format!(
                    "ssd.part={part} ftl.name={layer} buffer.ack=program ftl.cmt=8B host.link_rate=unlimited \
                     ssd.channels=2 \
                     ssd.planes_per_die=1 ssd.blocks_per_plane=64 ssd.over_provisioning=200% part.pages_per_block=32 \
                     {same}"
                ),
            )
        };
        let dftl = ssd("dftl");
        let on_bus = dftl.drive.part.t_command + dftl.drive.part.bus_rate.time_for(dftl.drive.part.page_bytes.into());
        let (read, program): (Nanos, Nanos) = (50_000 + on_bus, 600_000 + on_bus);
        assert_eq!(latencies(&ssd("page"), "read"), [read; 4], "{part}");
        assert_eq!(latencies(&dftl, "read"), [2 * read; 4], "{part}");
        assert_eq!(latencies(&ssd("page"), "write"), [program; 4], "{part}");
        assert_eq!(latencies(&dftl, "write"), [read + 2 * program; 4], "{part}");
        assert_eq!(latencies(&ssd("dftl sim.block_order=planned"), "write"), [2 * read + 2 * program; 4], "{part}");
    }
}
