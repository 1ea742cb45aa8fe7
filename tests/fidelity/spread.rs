//! SPREAD: times of reads on an idle drive (Table I of the paper), and figures that the three layers share.

use crate::bench::{Run, drive};
use palimpsest_lab::metrics::summary::Summary;
use palimpsest_lab::nand::data::Payload;

const LAYERS: [&str; 3] = ["page-fgm", "dma-fgm", "spftl"];

fn result(ftl: &str, sets: &str, precondition: &str, workload: &str, seed: u64) -> Summary {
    let ssd = drive("spread-16g", &format!("ftl.name={ftl} ssd.blocks_per_plane=64 {sets}"));
    let mut run = Run::new(&ssd, workload);
    (run.precondition, run.payload, run.seed) = (precondition, Payload::Tag, seed);
    run.result()
}

/// A read of n KiB takes tR(n) + tDMA(n): Table I to the nanosecond, and the baselines' words.
#[test]
fn table_1_is_what_a_host_read_takes() {
    let t_read = [35_000u64, 45_000, 55_000, 65_000, 75_000, 85_000, 95_000, 99_000];
    let t_spread = [37_500, 50_000, 62_500, 75_000, 87_500, 100_000, 112_500, 119_000];
    for words in 1..=8u64 {
        // Addresses within one page: 16 KiB of logical addresses that were written together.
        let workload = format!("rw=randread,bs={}k,size=16k,n=64", 2 * words);
        let dma = 2_500 * words;
        for (ftl, expected) in LAYERS.into_iter().zip([119_000, 99_000 + dma, t_read[words as usize - 1] + dma]) {
            let latency = result(ftl, "", "fill:50%", &workload, 1).latency_ns.unwrap();
            let read = serde_json::to_value(&latency).unwrap()["read"].clone();
            for figure in ["mean", "p50", "p99", "max"] {
                assert_eq!(read[figure], expected, "{ftl}, {} KiB, {figure}", 2 * words);
            }
        }
        assert_eq!(t_read[words as usize - 1] + dma, t_spread[words as usize - 1], "the paper's own sum");
    }
}

/// The host link carries only the requested bytes: 2 KiB of a mapping unit of 4 KiB take half of the unit's time, and a
/// request over two units takes no more than a request of the same size within one.
#[test]
fn the_host_link_carries_what_is_asked() {
    let read = |layer: &str, workload: &str| {
        let run = result(layer, "host.link_rate=10MB/s", "fill:50%", &format!("rw=randread,n=64,{workload}"), 1);
        let json = serde_json::to_value(&run).unwrap();
        let asked = json["host"]["bytes_read"].as_u64().unwrap();
        assert_eq!(json["host"]["bytes_transferred"], asked, "{layer}, {workload}");
        let latency = json["latency_ns"]["read"].clone();
        assert_eq!(latency["mean"], latency["max"], "{layer}, {workload}");
        latency["mean"].as_u64().unwrap()
    };
    // The link sends from the first byte on that leaves the chip.
    for (layer, sensing) in LAYERS.into_iter().zip([99_000, 99_000, 35_000]) {
        assert_eq!(read(layer, "bs=2k,size=16k"), sensing + 204_800, "{layer}");
        assert_eq!(read(layer, "bs=512,size=2k"), sensing + 51_200, "{layer}");
    }
    assert_eq!(read("page-fgm", "bs=4k,size=6k,blockalign=2k,offset=2k"), 99_000 + 409_600, "over two units");
}

/// A retry of a spread read senses the code words again, and costs their time.
#[test]
fn a_retry_costs_what_is_sensed() {
    let read = |layer: &str| {
        let latency = result(layer, "faults.read_fail=100%", "fill:50%", "rw=randread,bs=2k,size=16k,n=64", 1)
            .latency_ns
            .unwrap();
        serde_json::to_value(&latency).unwrap()["read"]["mean"].as_u64().unwrap()
    };
    assert_eq!(LAYERS.map(read), [99_000 * 2 + 20_000, 99_000 * 2 + 2_500, 35_000 * 2 + 2_500]);
}

/// One layer, three commands: all operations except reads are the same, and only `spftl` senses no more than the wanted
/// words.
#[test]
fn the_three_layers_differ_in_their_reads_only() {
    let workload = "rw=randrw,rwmixread=50,bssplit=4k/50:16k/50,n=30k,size=90%,norandommap";
    // Without the timeout: the padding of a partly filled page would depend on arrival times.
    let results = LAYERS.map(|ftl| result(ftl, "buffer.timeout=0ns", "fill:90%,random:1x", workload, 3));
    let json = results.each_ref().map(|result| serde_json::to_value(result).unwrap());
    for other in &json[1..] {
        for figure in ["page_programs", "erases", "reprograms"] {
            assert_eq!(other["flash"][figure], json[0]["flash"][figure], "{figure}");
        }
        for figure in ["write_amplification", "padding_bytes", "host", "requests", "mapping", "ftl_stats"] {
            assert_eq!(other[figure], json[0][figure], "{figure}");
        }
        assert_eq!(other["gc"]["moved_subpages"], json[0]["gc"]["moved_subpages"]);
        assert_eq!(other["flash"]["by_cause"], json[0]["flash"]["by_cause"], "reads are as many");
    }
    let amplification = |at: usize, of: &str| json[at]["read_amplification"][of].as_f64().unwrap();
    for of in ["host", "gc"] {
        assert!(amplification(0, of) > 1.2, "whole pages are read for pieces of them");
        assert_eq!(amplification(0, of), amplification(1, of), "dma senses whole pages, too");
        assert_eq!(amplification(2, of), 1.0, "spread senses the wanted words only");
    }
    let gc = |at: usize, figure: &str| json[at]["gc"][figure].as_u64().unwrap();
    for figure in ["mean_ns", "p99_ns"] {
        assert!(gc(2, figure) < gc(0, figure), "{figure} of a collection");
    }
    let moved = |at: usize| json[at]["flash"]["bytes_transferred"].as_u64().unwrap();
    assert!(moved(0) > moved(1) && moved(1) == moved(2), "the bus transfers the wanted words only");
}

/// Energy follows the sensed words where the part has a table.
#[test]
fn energy_follows_what_is_sensed() {
    let table: Vec<String> = (1..=8).map(|words| format!("\"{words}uJ\"")).collect();
    let table = format!("part.e_read_words=[{}]", table.join(","));
    let workload = "rw=randread,bs=4k,n=1000";
    let energy = |sets: &str| result("spftl", sets, "fill:100%", workload, 1).energy_uj.read.unwrap();
    assert!((energy(&table) - 2.0 * 1000.0).abs() < 1e-6, "two words a read");
    assert!(
        (energy("part.e_read_words=[]") - 8.1675 * 1000.0).abs() < 1e-6,
        "a part without the table spends a page's energy"
    );
}
