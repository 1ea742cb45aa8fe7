//! Tests of failure rates against the encoders and against the table of `docs/wom-codes.md`.

use super::*;
use crate::measure;

fn page(cell_bytes: usize, spare_bytes: usize) -> Shape {
    Shape { message_bytes: cell_bytes / 2, cell_bytes, spare_bytes }
}

/// Against encodings of random messages over random first writes, within three standard errors and a tenth.
#[test]
fn rates_are_those_of_the_encoders() {
    for (name, shape, scramblings, trials) in [
        ("polar", page(4096, 224), 1, 600),
        ("polar", page(4096, 224), 16, 600),
        ("polar", page(8192, 451), 1, 600),
        ("polar", page(2048, 160), 1, 1000),
        ("fountain", page(4096, 12), 1, 60),
        ("fountain", page(4096, 2), 4, 60),
    ] {
        let mut code = (find(name).unwrap().build)(shape).unwrap();
        let measured = measure(code.as_mut(), 0..trials, 7, 0.5, scramblings).failed as f64 / trials as f64;
        let rate = failure(name, shape, scramblings).unwrap();
        let error = (rate * (1.0 - rate) / trials as f64).sqrt();
        println!("{name} {shape:?}, best of {scramblings}: {rate:.4}, measured {measured:.4}");
        assert!((measured - rate).abs() < 3.0 * error + 0.1 * rate.min(1.0 - rate) + 0.002, "{name} {shape:?}");
    }
}

/// The table of docs/wom-codes.md: 4 KiB over 8 KiB, independent trials.
#[test]
fn rates_are_those_of_the_table() {
    for (name, spare, low, high) in [
        ("table", 0, 0.0, 0.0),
        ("polar", 256, 0.99, 1.0),
        ("polar", 512, 0.02, 0.04),
        ("polar", 614, 0.0012, 0.0028),
        ("polar-repair", 123, 0.04, 0.08),
        ("polar-repair", 205, 0.0008, 0.006),
        ("fountain", 20, 0.11, 0.19),
        ("fountain", 45, 0.003, 0.014),
    ] {
        let rate = failure(name, page(8192, spare), 1).unwrap();
        assert!((low..=high).contains(&rate), "{name} with {spare} bytes: {rate}");
    }
    assert!(failure("fountain", page(8192, 1), 1).unwrap() > 0.3, "random cells are often too few");
    assert!(failure("fountain", page(8192, 1), 16).unwrap() < 0.02, "the best of 16 first writes");
    let needed = spare_for("polar", page(8192, 0), 1, 0.0025).unwrap();
    assert!((560..640).contains(&needed), "{needed}");
    assert_eq!(failure("nothing", page(8192, 1), 1), None);
}
