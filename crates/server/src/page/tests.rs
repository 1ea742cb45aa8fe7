//! Tests of the module `page`.

use super::*;

#[test]
fn only_this_machine_is_answered() {
    for host in ["localhost", "localhost:8080", "127.0.0.1:1", "127.0.0.9", "[::1]", "[::1]:80"] {
        assert!(is_this_machine(host), "{host}");
    }
    for host in ["", "example.com", "example.com:8080", "127.0.0.1.example.com", "10.0.0.1", "localhost.example.com:1"]
    {
        assert!(!is_this_machine(host), "{host}");
    }
    for place in ["0.0.0.0:0", "8080", "nowhere"] {
        assert!(matches!(open(place), Err(Error::Input { .. })), "{place} was taken");
    }
}

#[test]
fn figures_that_there_are_not_are_left_out() {
    let figures =
        json!({"requests": {"read": 3, "write": 4, "trim": 0, "flush": 1}, "latency_ns": null, "power": null});
    let text = metrics(&figures);
    assert!(
        text.contains("# TYPE palimpsest_requests_total counter\npalimpsest_requests_total{kind=\"read\"} 3\n"),
        "{text}"
    );
    assert!(!text.contains("latency") && !text.contains("power"), "{text}");
    assert_eq!(smart(&json!({"life": {"host_bytes_read": 512_001}}))["data_units_read"], 2);
}
