//! Tests of the module `size`.

use super::*;
use crate::config::resolve;

#[test]
fn drives_that_do_not_fit_are_refused() {
    let drive = |blocks: u32| {
        let set = [format!("ssd.blocks_per_plane={blocks}")];
        resolve("tlc-32g", None, &set, &|_| unreachable!()).unwrap().drive
    };
    let all = Touched::all(Payload::Tag);
    let refused = check_memory(&drive(10_000), &all, Some(1 << 30)).unwrap_err().to_string();
    assert_eq!(
        refused,
        "--ssd tlc-32g: the tables of this drive take more than 9.9 GiB of memory, and 1.0 GiB are free; expected \
         --fit-memory or --set ssd.capacity=90GiB"
    );
    let served = check_memory(&drive(10_000), &Touched { served: true, ..all }, Some(1 << 30)).unwrap_err();
    assert!(served.to_string().ends_with("expected --set ssd.capacity=90GiB"), "{served}");
    assert!(check_memory(&drive(10_000), &all, None).is_ok());
    assert!(check_memory(&drive(100), &all, Some(1 << 30)).is_ok());
    let bytes = Touched { filled: 0.5, requests: Some(1000), ..Touched::all(Payload::Bytes) };
    let refused = check_memory(&drive(100), &bytes, Some(1 << 30)).unwrap_err().to_string();
    assert_eq!(
        refused,
        "--ssd tlc-32g: the tables and the data of this drive take more than 6.1 GiB of memory, \
         and 1.0 GiB are free; expected --fit-memory or --payload tag or --set ssd.capacity=1GiB"
    );
    assert!(check_memory(&drive(100), &Touched { served: true, ..bytes }, Some(1 << 30)).is_ok());
    assert!(check_memory(&drive(100), &Touched { filled: 0.0, ..bytes }, Some(1 << 30)).is_ok());
    let part = |filled, times, requests| Touched { filled, times, requests, ..Touched::all(Payload::None) };
    let fits = |touched| check_memory(&drive(10_000), &touched, Some(1 << 30)).is_ok();
    assert!(!fits(part(1.0, 1.0, Some(1000))) && !fits(part(0.2, 9.0, Some(1000))) && !fits(part(0.2, 1.0, None)));
    assert!(fits(part(0.2, 1.0, Some(1000))) && !fits(part(0.2, 1.0, Some(100_000))));
    assert!(check_length("a.toml", 1 << 20).is_ok());
    assert!(check_length("/dev/zero", (LARGEST_FILE + 1) as usize).is_err());
}
