//! Snapshots of all blocks agree with the other figures of a run, on every layer, and taking them changes no figure.

use crate::bench::{Run, drive};
use palimpsest_lab::config::Resolved;
use palimpsest_lab::host::{find_layer, layers};
use palimpsest_lab::metrics::snapshots::BlockSeries;
use palimpsest_lab::run::{Detail, Fidelity, Outcome};

const SETS: &str = "ssd.blocks_per_plane=24 part.pages_per_block=32 ssd.over_provisioning=60%";

fn ssd(layer: &str) -> Resolved {
    let entry = find_layer(layer).expect("a registered layer");
    drive("tlc-32g", &format!("ftl.name={layer} ftl.log_blocks=4 {} {SETS}", entry.needs().join(" ")))
}

fn snapshots(outcome: &Outcome) -> &BlockSeries {
    outcome.detail.blocks.as_ref().expect("a run with series")
}

/// Sum over the cells of the last snapshot of `values` in shares of a block, in blocks.
fn blocks_at_the_end(series: &BlockSeries, values: &[f64]) -> f64 {
    let last = &values[values.len() - series.blocks.len()..];
    last.iter().zip(&series.blocks).map(|(share, &blocks)| share * f64::from(blocks)).sum()
}

#[test]
fn snapshots_agree_with_the_result_on_every_layer() {
    for layer in layers().filter(|entry| entry.read.is_none()).map(|entry| entry.name) {
        for fidelity in [Fidelity::Timed, Fidelity::Count] {
            let ssd = ssd(layer);
            let requests = 1500;
            let mut run = Run::new(&ssd, &format!("rw=randwrite,bs=8k,n={requests},iodepth=8"));
            (run.precondition, run.fidelity) = ("fill:100%", fidelity);
            let outcome = run.outcome(true);
            let (plain, summary) = (run.outcome(false), &outcome.summary);
            let printed = |outcome: &Outcome| serde_json::to_string(&outcome.summary).unwrap();
            assert_eq!(printed(&plain), printed(&outcome), "{layer}: snapshots change nothing");
            assert!(plain.detail.blocks.is_none());

            let (series, blocks) = (snapshots(&outcome), ssd.drive.geometry.blocks());
            let (cells, count) = (series.blocks.len(), series.requests.len());
            assert!((20..64).contains(&count) && series.blocks.iter().sum::<u32>() == blocks, "{layer}: {count}");
            for index in 0..count {
                let of = |state: &Vec<u32>| state[index * cells..(index + 1) * cells].iter().sum::<u32>();
                assert_eq!(series.counts.iter().map(of).sum::<u32>(), blocks, "{layer}");
            }
            assert_eq!(series.flash_erases[count - 1], summary.flash.erases, "{layer}");
            assert_eq!(series.programs[count - 1], summary.flash.page_programs, "{layer}");
            assert_eq!(series.host_bytes[count - 1], summary.host.bytes_written, "{layer}");
            assert_eq!(series.requests[count - 1], requests, "{layer}");
            let erased: u32 = outcome.detail.wear.erases.iter().sum();
            let seen = blocks_at_the_end(series, &series.erases);
            assert!((seen - f64::from(erased)).abs() < 1e-6, "{layer}: {seen} of {erased} erases");
            check_validity(layer, &ssd, series);
        }
    }
}

/// Valid subpages are programmed, and their share is the filled one.
fn check_validity(layer: &str, ssd: &Resolved, series: &BlockSeries) {
    let valid = series.valid.as_ref().expect("every layer reports them");
    assert!(valid.iter().zip(&series.programmed).all(|(valid, programmed)| valid <= programmed), "{layer}");
    let geometry = &ssd.drive.geometry;
    let filled = ssd.drive.logical_bytes() as f64;
    let block_bytes = f64::from(geometry.subpages_per_block()) * f64::from(geometry.subpage_bytes);
    let share = blocks_at_the_end(series, valid) * block_bytes / filled;
    // Valid subpages include a file system's metadata, and pages that partly have a newer copy. Page maps have neither.
    let most = if layer == "page" { 1.001 } else { 1.1 };
    // New units in buffers and open pages have no valid copy until they are programmed.
    assert!((0.98..most).contains(&share), "{layer}: {share} of the filled range is valid");
}

#[test]
fn reused_and_partial_blocks_show_in_snapshots() {
    for (layer, state, spec) in [("llh", "reused", "bs=4k"), ("mga", "partial", "bs=4k")] {
        let ssd = ssd(layer);
        let mut run = Run::new(&ssd, &format!("rw=randwrite,{spec},n=60k,iodepth=8,random_distribution=zipf:1.1"));
        (run.precondition, run.fidelity) = ("fill:60%", Fidelity::Count);
        let outcome = run.outcome(true);
        let series = snapshots(&outcome);
        let index = series.states.iter().position(|name| *name == state).unwrap();
        assert!(series.counts[index].iter().any(|&blocks| blocks > 0), "{layer} has no block that is {state}");
    }
}

#[test]
fn percentiles_of_windows_are_between_mean_and_maximum() {
    // Acknowledged at the program, requests keep the queue full.
    let ssd = drive("tlc-32g", &format!("ftl.name=page buffer.ack=program {SETS}"));
    let mut run = Run::new(&ssd, "rw=randrw,bs=4k,n=20k,iodepth=8");
    run.precondition = "fill:80%";
    let Detail { time, .. } = run.outcome(true).detail;
    let time = time.unwrap();
    let percentiles = time.read_p99_ns.iter().zip(&time.read_mean_ns).zip(&time.max_ns);
    let mut windows = 0;
    for ((p99, mean), &max) in percentiles {
        if let (Some(p99), Some(mean)) = (p99, mean) {
            windows += 1;
            // Buckets of percentiles are 1/32 wide.
            assert!(p99 * 64 >= mean * 63 && p99 * 63 <= max * 64, "{mean} {p99} {max}");
        }
    }
    assert!(windows > 50, "{windows}");
    // The queue is empty only while the last requests end.
    let full = time.outstanding.len() - 1;
    assert!(time.outstanding[..full].iter().all(|depth| (7.9..=8.0).contains(depth)), "{:?}", time.outstanding);
}
