//! Write-once-memory codes: failures against spare, and the time of an encoding and a decoding, for 4 KiB over 8 KiB.
//!
//! Prints the rows of the table in `docs/wom-codes.md`, and the time of a copy. A first argument picks a code;
//! `BENCH_TRIALS=0.1` makes a tenth of the trials.

use palimpsest_lab::rng::Rng;
use palimpsest_lab::wom::{Code, Shape, find, measure, scramble};
use std::hint::black_box;
use std::time::Instant;

const MESSAGE: usize = 4096;
const CELLS: usize = 8192;
const TIMED: usize = 150;

/// Code, spare in percent of the data cells, trials.
const CASES: &[(&str, &[(f64, f64)])] = &[
    ("table", &[(0.0, 1e4)]),
    (
        "polar",
        &[
            (3.125, 1e4),
            (4.0, 1e4),
            (5.5, 1e4),
            (6.25, 2e4),
            (7.0, 5e4),
            (7.5, 1e5),
            (8.0, 1e5),
            (8.5, 1e5),
            (10.0, 1e5),
        ],
    ),
    (
        "polar-repair",
        &[
            (1.0, 400.0),
            (1.5, 1e3),
            (1.95, 2e3),
            (2.5, 4e3),
            (3.125, 1e4),
            (3.5, 1e4),
            (4.0, 2e4),
            (5.5, 5e4),
            (7.5, 5e4),
        ],
    ),
    ("fountain", &[(0.1, 1e3), (0.25, 1e3), (0.4, 2e3), (0.55, 4e3), (0.75, 4e3), (1.0, 4e3), (1.95, 4e3), (7.5, 2e3)]),
];

/// Microseconds of a successful encoding, the best and the median, and of a decoding, the best.
fn times(code: &mut dyn Code) -> Option<(f64, f64, f64)> {
    let shape = code.shape();
    let mut rng = Rng::new(1, 1);
    let (mut encodings, mut decoding) = (Vec::new(), f64::MAX);
    let (mut first, mut message, mut page) =
        (vec![0; code.first_bytes()], vec![0; MESSAGE], vec![0; shape.page_bytes()]);
    for seed in 0..TIMED as u64 {
        scramble(&mut first, rng.next_u64());
        scramble(&mut message, rng.next_u64());
        page.fill(0xff);
        code.write_first(&mut page, &first);
        let begin = Instant::now();
        let outcome = code.encode(&mut page, &message, seed);
        let end = Instant::now();
        if outcome.is_err() {
            continue;
        }
        encodings.push((end - begin).as_secs_f64() * 1e6);
        for _ in 0..5 {
            let begin = Instant::now();
            code.decode(black_box(&page), &mut message);
            decoding = decoding.min(begin.elapsed().as_secs_f64() * 1e6);
        }
    }
    encodings.sort_by(f64::total_cmp);
    Some((*encodings.first()?, encodings[encodings.len() / 2], decoding))
}

/// Microseconds of a copy of the message, the best.
fn copy_time() -> f64 {
    let (from, mut to) = (vec![1u8; MESSAGE], vec![0u8; MESSAGE]);
    let copies = (0..TIMED).map(|_| {
        let begin = Instant::now();
        (0..1000).for_each(|_| black_box(&mut to).copy_from_slice(black_box(&from)));
        begin.elapsed().as_secs_f64() * 1e3
    });
    copies.fold(f64::MAX, f64::min)
}

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let scale: f64 = std::env::var("BENCH_TRIALS").ok().and_then(|text| text.parse().ok()).unwrap_or(1.0);
    println!("| code | spare | bytes | trials | failed | rate | encode best us | encode median us | decode best us |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (name, spares) in CASES.iter().filter(|(name, _)| only.as_deref().is_none_or(|only| *name == only)) {
        for &(percent, trials) in *spares {
            let spare_bytes = (CELLS as f64 * percent / 100.0).round() as usize;
            let shape = Shape { message_bytes: MESSAGE, cell_bytes: CELLS, spare_bytes };
            let mut code = (find(name).expect("a code").build)(shape).expect("a shape that fits");
            let trials = (trials * scale).ceil() as u64;
            let failed = measure(code.as_mut(), 0..trials, 1, 0.5, 1).failed;
            let timed = times(code.as_mut())
                .map_or("- | - | -".into(), |(best, median, decode)| format!("{best:.1} | {median:.1} | {decode:.2}"));
            let rate = failed as f64 / trials as f64;
            println!("| {name} | {percent} % | {spare_bytes} | {trials} | {failed} | {rate:.1e} | {timed} |");
        }
    }
    println!("\nA copy of the message: {:.3} us", copy_time());
}
