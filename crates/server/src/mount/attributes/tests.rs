//! Tests of the module `attributes`.

use super::*;

#[test]
fn times_come_back() {
    for (seconds, nanos) in [(0, 0), (1, 999_999_999), (1 << 31, 5), (1 << 32, 1), (15_032_385_535, 7)] {
        let time = UNIX_EPOCH + Duration::new(seconds, nanos);
        assert_eq!(time_of(&time_words(time)), time, "{seconds}.{nanos}");
    }
    for before in [Duration::new(1, 0), Duration::new(0, 1), Duration::new(5, 999_999_999)] {
        let time = UNIX_EPOCH - before;
        assert_eq!(time_of(&time_words(time)), time, "{before:?} before 1970");
    }
    let late = UNIX_EPOCH + Duration::from_secs(1 << 40);
    assert_eq!(time_of(&time_words(late)), UNIX_EPOCH + Duration::from_secs(15_032_385_535), "the last of all");
}
