//! Failure rates of codes over pages with exactly half the cells stuck: the `curves` of codes in `crates/wom`.
//!
//! Messages of half a page, and pages of several sizes. A random first write is changed until half of the cells are
//! stuck. `curves.rs` adds the spread of the number of stuck cells, and the choice of the best of several first writes.
//! `fountain` needs only a few bytes of spare, and their number depends on the last words of the message: the code has
//! 0.6 % of spare, and as many more cells stuck.
//!
//! Prints the rows: bytes of spare, trials and failures. A point ends at 150 failures or after `BENCH_SECONDS` (3). A
//! first argument picks a code.

use palimpsest_lab::rng::Rng;
use palimpsest_lab::wom::{Shape, find, scramble, writable};
use std::time::Instant;

const FAILURES: u64 = 150;

/// Code, bytes of data cells, spare in bytes.
const CASES: &[(&str, usize, &[usize])] = &[
    ("polar", 1024, &[41, 61, 82, 102, 123, 143]),
    ("polar", 4096, &[143, 184, 204, 225, 266, 307, 348]),
    ("polar", 8192, &[246, 328, 410, 451, 512, 573, 614, 655]),
    ("polar", 16384, &[410, 573, 655, 737, 819, 901, 983, 1065]),
    ("polar", 32768, &[819, 983, 1147, 1311, 1475, 1638]),
    ("polar-repair", 1024, &[20, 31, 41, 51]),
    ("polar-repair", 4096, &[51, 72, 92, 113, 133]),
    ("polar-repair", 8192, &[66, 92, 123, 160, 184, 205]),
    ("polar-repair", 16384, &[98, 131, 164, 197, 229]),
    ("fountain", 1024, &[0, 1, 2, 4, 6]),
    ("fountain", 4096, &[1, 2, 3, 4, 6]),
    ("fountain", 8192, &[1, 2, 3, 4, 6]),
    ("fountain", 16384, &[2, 4, 6, 8, 10]),
];

/// Spare of the fountain code, bytes: half a word more than whole words.
fn fountain_spare(cell_bytes: usize) -> usize {
    cell_bytes * 6 / 1000 / 8 * 8 + 4
}

/// A first write of `cells` that leaves `ones` of them writable.
fn first_write(cells: &mut [u8], ones: u64, rng: &mut Rng) {
    cells.fill(0);
    scramble(cells, rng.next_u64());
    let mut count = writable(cells);
    while count != ones {
        let bit = rng.below(8 * cells.len() as u64) as usize;
        let is_one = cells[bit / 8] >> (bit % 8) & 1 == 1;
        if is_one == (count > ones) {
            cells[bit / 8] ^= 1 << (bit % 8);
            count = if is_one { count - 1 } else { count + 1 };
        }
    }
}

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let seconds: f64 = std::env::var("BENCH_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3.0);
    for &(name, cell_bytes, spares) in
        CASES.iter().filter(|(name, ..)| only.as_deref().is_none_or(|only| *name == only))
    {
        let mut rows = Vec::new();
        for &effective in spares {
            let spare_bytes = if name == "fountain" { fountain_spare(cell_bytes) } else { effective };
            let ones = (4 * cell_bytes + 8 * effective - 8 * spare_bytes) as u64;
            let shape = Shape { message_bytes: cell_bytes / 2, cell_bytes, spare_bytes };
            let mut code = (find(name).expect("a code").build)(shape).expect("a shape that fits");
            let (mut page, mut message) = (vec![0; shape.page_bytes()], vec![0; shape.message_bytes]);
            let (begin, mut trials, mut failed) = (Instant::now(), 0u64, 0u64);
            while failed < FAILURES && begin.elapsed().as_secs_f64() < seconds {
                let mut rng = Rng::new(1, trials);
                page.fill(0xff);
                first_write(&mut page[..cell_bytes], ones, &mut rng);
                message.fill(0);
                scramble(&mut message, rng.next_u64());
                failed += u64::from(code.encode(&mut page, &message, rng.next_u64()).is_err());
                trials += 1;
            }
            rows.push(format!("({effective}, {trials}, {failed})"));
        }
        println!("{name}: Curve {{ cell_bytes: {cell_bytes}, points: &[{}] }},", rows.join(", "));
    }
}
