//! Every planted fault is found within the default number of cases, with a short history that repeats. The layer
//! without a fault passes, as do the layers of the registry.

use palimpsest_check::check::{Checked, Options, Verdict, check};
use palimpsest_check::trial::{Progress, Watch};
use palimpsest_lab::ftl::Entry;
use palimpsest_planted::{add, layers};
use std::time::Instant;

/// Requests of the longest of the shortest histories.
const LONGEST: usize = 12;

/// A check without a limit of time.
struct Patient;

impl Watch for Patient {
    fn stops(&mut self, _: Progress) -> bool {
        false
    }
}

fn run(entry: &'static Entry, options: &Options) -> Checked {
    check(entry, options, &mut Patient).unwrap_or_else(|error| panic!("{}: {error}", entry.name))
}

fn described(checked: &Checked) -> String {
    let Some(broken) = &checked.broken else { return "passed".into() };
    let place = broken.place.as_deref().unwrap_or("-");
    format!(
        "{}, {} of {} requests: {} [{place}]\n    {}\n    --set {}\n    {}",
        broken.case,
        broken.shortest,
        broken.requests,
        broken.message,
        broken.form,
        broken.settings.join(" --set "),
        broken.history.iter().take(60).cloned().collect::<Vec<_>>().join("\n    ")
    )
}

#[test]
fn every_planted_fault_is_found() {
    add();
    let only = std::env::var("PLANTED").ok();
    let mut longest = 0;
    for entry in layers().1.iter().filter(|entry| only.as_ref().is_none_or(|only| only == entry.name)) {
        let begin = Instant::now();
        let checked = run(entry, &Options::default());
        println!("{} in {:.1} s: {}", entry.name, begin.elapsed().as_secs_f64(), described(&checked));
        let broken = checked.broken.unwrap_or_else(|| panic!("{}: not found", entry.name));
        longest = longest.max(broken.shortest);
        let marks = broken.history.iter().filter(|line| line.contains("the power fails")).count();
        assert!(!broken.form.starts_with("power cut") || marks > 0, "{}: {:#?}", entry.name, broken.history);
        let again = Options { case: Some(broken.case.clone()), ..Options::default() };
        let again = run(entry, &again).broken.expect("the case repeats");
        assert_eq!((again.message, again.history), (broken.message, broken.history), "{}", entry.name);
    }
    assert!(longest <= LONGEST, "{longest} requests");
}

#[test]
fn the_layer_without_a_fault_passes() {
    layer_passes(14);
}

#[test]
#[ignore = "minutes"]
fn long_the_layer_without_a_fault_passes() {
    layer_passes(Options::default().cases);
}

fn layer_passes(cases: u64) {
    add();
    let checked = run(layers().0, &Options { cases, ..Options::default() });
    assert!(checked.broken.is_none(), "{}", described(&checked));
    assert_eq!(checked.verdict, Verdict::Passed);
    assert!(checked.rows.iter().all(|row| row.cases > 0 || row.kind == "kept-state"), "{:#?}", checked.rows);
}

/// Runs so many cases of each kind on the layers of these names, or on all.
fn pass(names: &[&str], cases: u64) {
    add();
    let (only, mut passed) = (std::env::var("MODEL_FTL").ok(), 0);
    for entry in palimpsest_lab::layers::layers().filter(|entry| palimpsest_lab::layers::is_built_in(entry.name)) {
        let is_wanted = names.is_empty() || names.contains(&entry.name);
        if only.as_ref().is_some_and(|only| only != entry.name) || !is_wanted {
            continue;
        }
        let checked = run(entry, &Options { cases, ..Options::default() });
        assert!(checked.broken.is_none(), "{}: {}", entry.name, described(&checked));
        println!("{}: {} cases", entry.name, checked.rows.iter().map(|row| row.cases).sum::<u64>());
        passed += 1;
    }
    assert!(only.is_some() || passed == names.len() || (names.is_empty() && passed > 20), "{passed} layers passed");
}

#[test]
fn layers_of_the_registry_pass() {
    pass(&["page", "subpage", "zns", "fs-page"], 1);
}

#[test]
#[ignore = "minutes"]
fn long_layers_of_the_registry_pass() {
    pass(&[], 1);
}
