//! Tests of the module `window`.

use super::*;

#[test]
fn requests_and_times_are_read() {
    assert_eq!(Window::parse("1..1000").unwrap(), Window::Requests { first: 1, last: 1000 });
    assert_eq!(Window::parse(" 7 .. 7 ").unwrap(), Window::Requests { first: 7, last: 7 });
    assert_eq!(Window::parse("slowest:20").unwrap(), Window::Slowest(20));
    assert_eq!(Window::parse("0ns..1.5ms").unwrap(), Window::Time { from: 0, until: 1_500_000 });
}

#[test]
fn anything_else_says_what_was_expected() {
    for (text, says) in [
        ("", "expected requests such as"),
        ("5", "expected requests such as"),
        ("0..5", "from 1"),
        ("5..4", "nothing lies"),
        ("2ms..2ms", "nothing lies"),
        ("1..2ms", "no unit"),
        ("a..b", "expected"),
        ("slowest:0", "lies in 1..1000"),
        ("slowest:1001", "lies in 1..1000"),
        ("slowest", "or slowest:20"),
    ] {
        let error = Window::parse(text).unwrap_err().to_string();
        assert!(error.starts_with(&format!("--operations-window {text}: ")), "{error}");
        assert!(error.contains(says) && !error.contains('\n'), "{text}: {error}");
    }
}
