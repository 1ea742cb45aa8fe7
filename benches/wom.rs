//! Write-once-memory codes: time to encode and decode 4 KiB, and failures against spare.
use palimpsest_core::rng::Rng;
use palimpsest_core::wom::{CODES, Shape};
use std::time::Instant;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let trials: u64 = arguments.get(1).map_or(1000, |text| text.parse().expect("a number of trials"));
    for code in CODES.iter().filter(|code| arguments.first().is_none_or(|name| code.name == name)) {
        for percent in [1.0, 1.2, 1.4, 1.6, 1.95, 3.125, 4.0, 5.5, 6.25, 7.5, 10.0] {
            let spare_bytes = (8192.0 * percent / 100.0f64).round() as usize;
            let Ok(mut code_built) = (code.build)(Shape { message_bytes: 4096, cell_bytes: 8192, spare_bytes }) else {
                continue;
            };
            let mut rng = Rng::new(1, 1);
            let mut equations = 0;
            let mut maxeq = 0;
            let (mut failed, mut encode, mut decode, mut sum) = (0, f64::MAX, f64::MAX, 0.0);
            for seed in 0..trials {
                let mut page: Vec<u8> = vec![0xff; 8192 + spare_bytes];
                let first: Vec<u8> = (0..code_built.first_bytes()).map(|_| rng.next_u64() as u8).collect();
                code_built.write_first(&mut page, &first);
                let message: Vec<u8> = (0..4096).map(|_| rng.next_u64() as u8).collect();
                let begin = Instant::now();
                let done = code_built.encode(&mut page, &message, seed);
                let took = begin.elapsed().as_secs_f64() * 1e6;
                encode = encode.min(took);
                sum += took;
                if let Ok(e) = done {
                    equations += e.equations as u64;
                    maxeq = maxeq.max(e.equations);
                }
                if done.is_err() {
                    failed += 1;
                    continue;
                }
                let mut back = vec![0; 4096];
                let begin = Instant::now();
                code_built.decode(&page, &mut back);
                decode = decode.min(begin.elapsed().as_secs_f64() * 1e6);
                assert_eq!(back, message);
            }
            println!(
                "{:10} {percent:6.3} fail {:9.2e} encode min {encode:7.1} mean {:7.1} decode {decode:6.2} eq {equations} {maxeq}",
                code.name,
                failed as f64 / trials as f64,
                sum / trials as f64
            );
        }
    }
}
