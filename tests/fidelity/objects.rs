//! A cache of objects on reclaim unit handles against closed forms.
//!
//! Inserts of small objects rewrite uniformly random buckets, so the handle of the buckets has the form of its share
//! (Desnoyers 2014, as in `placement.rs`). A log of regions is written in sequence, so its handle moves nothing.

use crate::bench::Run;
use crate::placement::{form, with_handles};
use palimpsest_lab::metrics::summary::Summary;
use palimpsest_lab::run::Fidelity;

/// About half of the bytes are writes of buckets. Each bucket has hundreds of keys, so that all are written equally
/// often; with four keys a bucket the rates differ, and write amplification is 1.6 % lower.
const CACHE: &str = "cache=100%,region=64KiB,policy=fifo,puts=100%,sizes=3000/8:12k/3,threshold=4096,zipf=0.01,\
                     footprint=400x,warm=10x,n=400000";

fn run(sets: &str, cache: &str) -> Summary {
    let ssd = with_handles(&format!("fdp.handles=2 fdp.isolation=persistent {sets}"));
    let mut run = Run::new(&ssd, &cache.replace("\\\n", ""));
    (run.precondition, run.fidelity) = ("layout", Fidelity::Count);
    run.result()
}

#[test]
fn buckets_have_the_form_of_their_share_and_a_log_has_none() {
    let shares = "fdp.shares=[\"54%\",\"46%\"]";
    let found = run(shares, &format!("{CACHE},small=50%,handles=0:1"));
    let ssd = with_handles("fdp.handles=2 fdp.isolation=persistent");
    let expected = form(&ssd, (0.54, 0.5), 1.5);
    let handles = found.fdp.expect("a drive with handles").handles;
    let [buckets, log] = [0, 1].map(|at: usize| handles[at].write_amplification.unwrap());
    println!("buckets {buckets:.4}, form {expected:.4}; log {log:.4}");
    assert!((buckets / expected - 1.0).abs() < 0.01);
    assert_eq!(log, 1.0);
    // Bytes of the host are those of the cache, in requests that were read ahead at most.
    let cache = found.objects.expect("a cache");
    let written: u64 = cache.classes.iter().map(|part| part.written_bytes).sum();
    assert!(written.abs_diff(found.host.bytes_written) < 16 << 20);
    assert_eq!((cache.puts, cache.gets), (400_000, 0));
}

/// The same cache with floating spare space: placement lowers the write amplification of the drive.
#[test]
fn one_handle_for_all_moves_more() {
    let [placed, together] = ["", ",placement=off"]
        .map(|end| run("", &format!("{CACHE},small=4%,handles=0:1{end}")).write_amplification.unwrap());
    println!("a handle each {placed:.3}, one handle {together:.3}");
    assert!(placed < 1.2 && together > 1.2 * placed, "{placed} {together}");
}

/// Three logs of one size and unequal rates: lives of 1, 2 and 4. Whole reclaim units die together with a handle each.
#[test]
fn logs_of_unequal_lifetime_move_nothing_apart() {
    let logs =
        "cache=95%,small=0%,region=64KiB,policy=fifo,puts=100%,sizes=12k/1,logs=1:1:1,mix=4:2:1,warm=3x,n=200000";
    let ssd = with_handles("fdp.handles=3 fdp.isolation=persistent");
    let [placed, together] = ["", ",placement=off"].map(|end| {
        let mut run = Run::new(&ssd, &format!("{logs},handles=0:1:2{end}"));
        (run.precondition, run.fidelity) = ("layout", Fidelity::Count);
        run.result().write_amplification.unwrap()
    });
    println!("a handle each {placed:.3}, one handle {together:.3}");
    assert_eq!(placed, 1.0);
    assert!(together > 1.01, "{together}");
}
