//! Everything outside `sim` is a function of configuration, workload and seed (design/contract.md).

use crate::bench::{Run, drive};
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::run::Fidelity;

/// The result without the fields `without`.
fn printed(run: &Run<'_>, without: &[&str]) -> String {
    let mut result = serde_json::to_value(run.result()).unwrap();
    let names = result.as_object_mut().unwrap();
    for name in without {
        names.remove(*name).unwrap_or_else(|| panic!("a result has {name}"));
    }
    result.to_string()
}

#[test]
fn equal_seeds_give_equal_results_and_others_do_not() {
    const FAULTS: &str = "faults.program_fail=0.01% faults.erase_fail=0.1% faults.read_fail=1% faults.initial_bad=1% \
        ftl.victim=d-choices:4";
    for layer in ["page", "subpage"] {
        for (fidelity, more, payload) in [
            (Fidelity::Timed, "", Payload::None),
            (Fidelity::Count, "", Payload::None),
            (Fidelity::Timed, FAULTS, Payload::None),
            (Fidelity::Count, FAULTS, Payload::Tag),
            (Fidelity::Timed, FAULTS, Payload::Tag),
        ] {
            let sets = "ssd.blocks_per_plane=48 part.pages_per_block=32 ssd.over_provisioning=28%";
            let ssd = drive("tlc-32g", &format!("ftl.name={layer} {sets} {more}"));
            let mut run = Run::new(&ssd, "rw=randrw,bs=4k,n=30k,iodepth=16,random_distribution=zipf:0.9");
            (run.precondition, run.fidelity, run.payload) = ("fill:100%,random:1x", fidelity, payload);
            let first = printed(&run, &["sim"]);
            assert_eq!(first, printed(&run, &["sim"]), "{layer}, {fidelity:?}, {payload:?}, {more}");
            let other = printed(&Run { seed: 2, ..run }, &["sim"]).replace("\"seed\":2", "\"seed\":1");
            assert_ne!(first, other, "{layer}, {fidelity:?}, {payload:?}, {more}");
        }
    }
}

/// Without data, whole pages take a shorter path than with data. The model suite never takes this path, because all its
/// drives keep data.
#[test]
fn kept_data_changes_no_figure() {
    for layer in ["page", "subpage", "mga", "dftl"] {
        for fidelity in [Fidelity::Timed, Fidelity::Count] {
            let sets = "ssd.blocks_per_plane=48 part.pages_per_block=32 ssd.over_provisioning=28%";
            let ssd = drive("tlc-32g", &format!("ftl.name={layer} {sets}"));
            let mut run = Run::new(&ssd, "rw=randrw,bs=16k,n=20k,iodepth=16,random_distribution=zipf:0.9");
            (run.precondition, run.fidelity, run.payload) = ("fill:100%,random:1x", fidelity, Payload::None);
            let of = |payload| printed(&Run { payload, ..run.clone() }, &["sim", "payload", "notes"]);
            let (without, with) = (of(Payload::None), of(Payload::Tag));
            assert_eq!(without, with, "{layer}, {fidelity:?}");
        }
    }
}
