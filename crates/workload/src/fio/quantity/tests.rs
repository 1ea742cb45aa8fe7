//! Tests of quantities in the notation of fio.

use super::*;

#[test]
fn sizes_are_powers_of_1024() {
    for text in ["4k", "4K", "4kb", "4KiB", "4ki", "4096", "4096b"] {
        assert_eq!(size(text), Some(4096), "{text}");
    }
    assert_eq!(size("1.5g"), Some(3 << 29));
    for text in ["", "k", "4x", "-4k", "4 k", "1e3", "99999999999999999999", "20000000000g", "0.3b", "٣"] {
        assert_eq!(size(text), None, "{text}");
    }
    assert_eq!((size_text(3 << 20), size_text(1000)), ("3MiB".to_string(), "1000".to_string()));
}

/// The block sizes that fio 3.33 prints for `bs=4k`, `bs=4KiB` with each `kb_base`.
#[test]
fn units_of_fio() {
    for (text, swapped, standard) in [
        ("4k", "4096", "4000"),
        ("4KiB", "4000", "4096"),
        ("1m,2mib", "1048576,2000000", "1000000,2097152"),
        ("4k/50:1.5Mb/50", "4096/50:1572864/50", "4000/50:1500000/50"),
        ("50%", "50%", "50%"),
        ("1e6", "1e6", "1e6"),
        ("17x", "17x", "17x"),
        ("512", "512", "512"),
    ] {
        assert_eq!(
            (Units::Swapped.without(text, 1).as_str(), Units::Standard.without(text, 1).as_str()),
            (swapped, standard)
        );
    }
}

#[test]
fn counts_are_powers_of_1000() {
    assert_eq!(
        (count("1e6"), count("100k"), count("2.5M"), count("7")),
        (Some(1_000_000), Some(100_000), Some(2_500_000), Some(7))
    );
    for text in ["", "e", "1e", "1e99", "1e-3", "0.5", "-1", "1e4294967296"] {
        assert_eq!(count(text), None, "{text}");
    }
}

#[test]
fn parts_of_a_drive() {
    assert_eq!(amount("12.5%"), Some(Amount::Millionths(125_000)));
    assert_eq!(amount("101%"), None);
    assert_eq!(repeated_amount("200%").map(|amount| amount.bytes_of(GIB, 4096)), Some(2 * GIB));
    assert_eq!(Amount::Millionths(125_000).bytes_of(GIB, 4096), GIB / 8);
    assert_eq!(Amount::Millionths(1_000_000).bytes_of(GIB, 4096), GIB);
    let third = Amount::Millionths(333_333);
    assert_eq!((third.bytes_of(3 << 20, 16384), third.bytes_up_to(3 << 20, 16384)), (63 << 14, 64 << 14));
    assert_eq!((third.bytes_of(3 << 20, 1), Amount::Bytes(7).bytes_up_to(GIB, 4096)), (1_048_574, 7));
    assert_eq!(
        (Amount::Millionths(125_000).to_string(), Amount::Bytes(GIB).to_string()),
        ("12.5%".into(), "1GiB".into())
    );
}
