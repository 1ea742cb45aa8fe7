//! Tests of [`super`]: examples, messages, and round trips.

use super::*;
use proptest::prelude::*;

#[test]
fn times_are_exact() {
    let cases = [
        ("35us", 35_000),
        ("0.1us", 100),
        ("3.5ms", 3_500_000),
        ("99 us", 99_000),
        ("99\u{b5}s", 99_000),
        (" 1s ", 1_000_000_000),
    ];
    for (text, nanos) in cases {
        assert_eq!(parse_time(text), Ok(nanos), "{text}");
    }
    assert_eq!(parse_time("18446744073709551615ns"), Ok(u64::MAX));
}

#[test]
fn the_other_dimensions() {
    assert_eq!(parse_age("90d"), Ok(7_776_000_000_000_000));
    assert_eq!(parse_age("1.5h"), Ok(5_400_000_000_000));
    assert_eq!([7_776_000_000_000_000, 90_000_000_000_000, 100_000_000].map(format_age), ["90d", "25h", "0.1s"]);
    assert_eq!(parse_bytes("16KiB"), Ok(16_384));
    assert_eq!(parse_bytes("1.5KiB"), Ok(1_536));
    assert_eq!(parse_rate("1.2GB/s"), Ok(Rate(1_200_000_000)));
    assert_eq!(parse_rate("800MB/s"), Ok(Rate(800_000_000)));
    assert_eq!(parse_rate("1MiB/s"), Ok(Rate(1_048_576)));
    assert_eq!(parse_rate("unlimited"), Ok(Rate(0)));
    assert_eq!(parse_energy("50.37uJ"), Ok(50_370_000));
    assert_eq!(parse_ratio("28%"), Ok(0.28));
    assert_eq!(parse_ratio("0.28"), Ok(0.28));
    assert_eq!(parse_ratio("1e-6"), Ok(1e-6));
    assert_eq!(parse_ratio("250 %"), Ok(2.5));
}

#[test]
fn messages_say_what_was_expected_and_what_was_near() {
    let time = "expected a time such as \"35us\" (units: ns, us, ms, s)";
    let bytes = "expected a number of bytes such as \"16KiB\" (units: B, KiB, MiB, GiB, TiB)";
    let rate = "expected a rate such as \"1.2GB/s\" (units: B/s, kB/s, MB/s, GB/s)";
    let ratio = "expected a percentage such as \"28%\", or a number below 1 such as 0.28";
    let cases = [
        (parse_time("35").unwrap_err(), format!("\"35\" has no unit; {time}")),
        (parse_time("").unwrap_err(), format!("\"\" is not a time; {time}")),
        (parse_time("-1us").unwrap_err(), format!("\"-1us\" is not a time; {time}")),
        (parse_time("1.us").unwrap_err(), format!("\"1.us\" is not a time; {time}")),
        (
            parse_time("35usec").unwrap_err(),
            format!("\"35usec\": usec is not a unit of nanoseconds; did you mean us? {time}"),
        ),
        (parse_time("0.1ns").unwrap_err(), "\"0.1ns\" is not a whole number of nanoseconds".into()),
        (
            parse_time("99999999999999s").unwrap_err(),
            "\"99999999999999s\" is too large: at most 18446744073709551615 nanoseconds".into(),
        ),
        (
            parse_age("2y").unwrap_err(),
            "\"2y\": y is not a unit of nanoseconds; did you mean d? expected an age such as \"90d\" \
             (units: ns, us, ms, s, h, d)"
                .into(),
        ),
        (parse_bytes("16MB").unwrap_err(), format!("\"16MB\": MB is not a unit of bytes; did you mean MiB? {bytes}")),
        (parse_bytes("4k").unwrap_err(), format!("\"4k\": k is not a unit of bytes; did you mean KiB? {bytes}")),
        (parse_bytes("4us").unwrap_err(), format!("\"4us\": us is not a unit of bytes; {bytes}")),
        (parse_rate("0MB/s").unwrap_err(), format!("\"0MB/s\" moves nothing; {rate} or \"unlimited\"")),
        (
            parse_rate("0.8Gb/s").unwrap_err(),
            format!("\"0.8Gb/s\" counts bits; {rate}: 0.8 Gb/s a pin on 8 pins is \"800MB/s\""),
        ),
        (
            parse_ratio("28").unwrap_err(),
            "28.0 may be a ratio or a percentage; expected \"28%\", or a number below 1".into(),
        ),
        (parse_ratio("x").unwrap_err(), format!("\"x\" is not a ratio; {ratio}")),
    ];
    for (got, expected) in cases {
        assert_eq!(got, expected);
    }
}

#[test]
fn the_shortest_text_is_printed() {
    let times: Vec<String> = [0, 100, 35_000, 99_000, 1_500_000, 2_000_000_000].map(format_time).into();
    assert_eq!(times, ["0s", "100ns", "35us", "99us", "1.5ms", "2s"]);
    assert_eq!(format_bytes(16_384), "16KiB");
    assert_eq!(format_bytes(1_663), "1663B");
    assert_eq!(format_rate(Rate(800_000_000)), "800MB/s");
    assert_eq!(format_energy(50_370_000), "50.37uJ");
    let ratios: Vec<String> = [0.28, 0.07, 1.0, 0.0025, 1e-6, 12.0, 0.0].map(format_ratio).into();
    assert_eq!(ratios, ["28%", "7%", "100%", "0.25%", "0.0001%", "1200%", "0%"]);
}

proptest! {
    #[test]
    fn what_is_printed_parses_back(amount: u64, ratio in 0.0..1e9f64) {
        prop_assert_eq!(parse_time(&format_time(amount)), Ok(amount));
        prop_assert_eq!(parse_age(&format_age(amount)), Ok(amount));
        prop_assert_eq!(parse_age(&format_age(amount / HOUR * HOUR)), Ok(amount / HOUR * HOUR));
        prop_assert_eq!(parse_bytes(&format_bytes(amount)), Ok(amount));
        prop_assert_eq!(parse_rate(&format_rate(Rate(amount))), Ok(Rate(amount)));
        prop_assert_eq!(parse_energy(&format_energy(amount)), Ok(amount));
        prop_assert_eq!(parse_ratio(&format_ratio(ratio)), Ok(ratio));
    }

    #[test]
    fn no_text_panics(text: String, number in "[0-9.]{0,40}[a-zA-Z/% ]{0,6}") {
        for text in [&text, &number] {
            let _ = (parse_time(text), parse_bytes(text), parse_rate(text), parse_energy(text), parse_ratio(text));
        }
    }
}
