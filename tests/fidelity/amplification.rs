use crate::bench::{Run, drive};
use crate::forms;
use palimpsest_core::config::Resolved;
use palimpsest_core::run::Fidelity;

pub fn flat(kind: &str, blocks: u32, b: u32, op: &str, more: &str) -> Resolved {
    let shape = match kind {
        "page-4k" => "ftl.name=page part.page_size=4KiB",
        "page-16k" => "ftl.name=page part.page_size=16KiB",
        _ => "ftl.name=subpage part.page_size=16KiB",
    };
    let pages = if kind == "subpage" { b / 4 } else { b };
    drive(
        "default",
        &format!(
            "{shape} part.subpage_size=4KiB ssd.channels=1 ssd.planes_per_die=1 ssd.blocks_per_plane={blocks} part.pages_per_block={pages} \
         ssd.over_provisioning={op} ftl.streams=1 ftl.gc_start=1block ftl.gc_stop=1block {more}"
        ),
    )
}

#[test]
#[ignore]
fn explore() {
    for kind in ["page-4k", "page-16k", "subpage"] {
        for (b, blocks) in [(64, 2048u32), (128, 2048), (256, 2048), (64, 256)] {
            for (op, x) in [("7%", 1.07), ("28%", 1.28)] {
                for victim in ["greedy", "fifo"] {
                    let t = std::time::Instant::now();
                    let d = flat(kind, blocks, b, op, &format!("ftl.victim={victim}"));
                    let bs = if kind == "page-16k" { "16k" } else { "4k" };
                    let mut r = Run::new(&d, &format!("rw=randwrite,bs={bs},loops=2"));
                    r.fidelity = Fidelity::Count;
                    r.precondition = "steady";
                    let s = r.result();
                    let wa = s.write_amplification.unwrap();
                    let u = d.drive.logical_bytes() as f64 / if kind == "page-16k" { 16384.0 } else { 4096.0 };
                    let f = |rho| if victim == "fifo" { forms::fifo(rho) } else { forms::greedy(b, rho) };
                    let (plain, less) = (f(1.0 / x), f(u / (f64::from(blocks - 1) * f64::from(b))));
                    println!(
                        "{kind} {victim} b={b} N={blocks} {op}: {wa:.4} plain {plain:.4} {:+.2}% N-1 {less:.4} {:+.2}% pre {:?} {:?} {:.1}s",
                        (wa / plain - 1.0) * 100.0,
                        (wa / less - 1.0) * 100.0,
                        s.precondition.last_write_amplification,
                        s.precondition.bytes_written / d.drive.logical_bytes(),
                        t.elapsed().as_secs_f64()
                    );
                }
            }
        }
    }
}

#[test]
#[ignore]
fn explore2() {
    for (kind, channels, planes, blocks, streams, start, stop, alloc, op, x, b) in [
        ("page-4k", 4, 1, 512u32, 1, 1, 1, "round-robin", "7%", 1.07, 64u32),
        ("page-4k", 4, 1, 512, 1, 1, 1, "static", "7%", 1.07, 64),
        ("page-16k", 4, 1, 512, 1, 1, 1, "round-robin", "7%", 1.07, 64),
        ("subpage", 4, 1, 512, 1, 1, 1, "round-robin", "7%", 1.07, 64),
        ("subpage", 4, 1, 512, 1, 1, 1, "static", "7%", 1.07, 64),
        ("page-4k", 2, 1, 512, 1, 1, 1, "round-robin", "7%", 1.07, 64),
        ("page-4k", 4, 1, 2048, 1, 1, 1, "round-robin", "7%", 1.07, 64),
        ("page-4k", 4, 1, 2048, 1, 1, 1, "static", "7%", 1.07, 64),
    ] {
        let t = std::time::Instant::now();
        let d = flat(
            kind,
            blocks,
            b,
            op,
            &format!(
                "ssd.channels={channels} ssd.planes_per_die={planes} ftl.streams={streams} ftl.gc_start={start}block ftl.gc_stop={stop}block ftl.allocation={alloc}"
            ),
        );
        let unit = if kind == "page-16k" { 16 } else { 4 };
let mut r = Run::new(&d, &format!("rw=randwrite,bs={unit}k,loops=2"));
        r.fidelity = Fidelity::Count;
        r.precondition = "steady";
        let s = r.result();
        let wa = s.write_amplification.unwrap();
        let u = d.drive.logical_bytes() as f64 / 1024.0 / f64::from(unit);
        let n = f64::from(d.drive.geometry.blocks());
        let bb = f64::from(b);
        let p = f64::from(d.drive.geometry.planes());
        // effective lost blocks
        let (mut lo, mut hi) = (0.0, n * 0.06);
        for _ in 0..60 {
            let m = (lo + hi) / 2.0;
            if forms::greedy(b, u / ((n - m) * bb)) < wa { lo = m } else { hi = m }
        }
        let (plain, less) = (forms::greedy(b, 1.0 / x), forms::greedy(b, u / ((n - p) * bb)));
        println!(
            "{kind} P={p} N/P={blocks} b={b} streams={streams} gc {start}/{stop} {alloc} {op}: {wa:.4} plain {plain:.4} {:+.2}% N-P {less:.4} {:+.2}% lost per plane {:.3} pre {:?} {:.1}s",
            (wa / plain - 1.0) * 100.0,
            (wa / less - 1.0) * 100.0,
            lo / p,
            s.precondition.last_write_amplification,
            t.elapsed().as_secs_f64()
        );
    }
}
