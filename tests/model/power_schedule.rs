//! When the power fails in whole runs with `faults.power_cuts`: operations that ran count, also those of recovery; not what the verifier
//! reads back, nor what was planned and undone by a cut.

use crate::drives::{build, entry, plain, with};
use crate::power::run_whole;
use palimpsest_lab::run::Fidelity;

/// Once red: what was read back after a cut counted, so that the operations of the next cuts in the list had passed.
#[test]
fn every_cut_of_a_list_comes() {
    let mut shape = build("page", &with(&plain(1, 12, 4, 1), &["ssd.over_provisioning=100%"])).expect("a drive");
    // Recovery reads each of 48 pages, and the verifier 24.
    let list: Vec<String> = (0..5).map(|cut| (200 + 60 * cut).to_string()).collect();
    shape.settings.push(format!("faults.power_cuts=at:{}", list.join(",")));
    for fidelity in [Fidelity::Count, Fidelity::Timed] {
        let power = run_whole(entry("page"), &shape, 1, fidelity, "none").expect("there is room").power;
        assert_eq!(power.expect("cuts were to come").cuts, 5, "{fidelity:?}");
    }
}
