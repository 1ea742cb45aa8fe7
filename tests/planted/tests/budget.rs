//! The budget of a check: the default number of cases reaches every value of every dimension in each kind that can have
//! it, equal seeds draw equal cases, and a limit of time ends a check with the verdict that names the kinds left.

use palimpsest_check::check::{CASES, Options, Verdict, check, draw};
use palimpsest_check::drives::{entry, with};
use palimpsest_check::kinds::KINDS;
use palimpsest_check::shapes::wanted;
use palimpsest_check::trial::{Progress, Watch};
use palimpsest_lab::ftl::Entry;
use palimpsest_planted::{add, layers};

/// Seeds from which a kind is known to have a value.
const SEEDS: u64 = 300;

#[test]
fn the_default_budget_wants_every_value() {
    add();
    let values = wanted(entry("page"), &[]);
    assert!((30..CASES as usize).contains(&values.len()), "{} values", values.len());
    let dimensions = |settings: &[String]| -> Vec<&str> {
        wanted(entry("page"), settings).iter().map(|wanted| wanted.dimension).collect()
    };
    assert!(dimensions(&[]).contains(&"planes of a die"));
    let fixed = dimensions(&["ssd.planes_per_die=2".into()]);
    assert!(!fixed.contains(&"planes of a die") && fixed.contains(&"channels"));
}

/// Asserts that each kind draws within the default budget what it can draw at all.
fn covers(entry: &'static Entry) -> usize {
    let (values, mut reached) = (wanted(entry, &[]), 0);
    for kind in KINDS {
        let cases: Vec<_> = (0..CASES).filter_map(|number| draw(entry, kind, (1, number), &[], &values).ok()).collect();
        for value in &values {
            let settings = with(&value.settings, &[]);
            let own: Vec<&str> = settings.iter().map(String::as_str).collect();
            let has =
                || (0..SEEDS).any(|seed| (kind.draw)(entry, seed, &own).is_ok_and(|trial| value.holds(&trial.shape)));
            let is_drawn = cases.iter().any(|trial| value.holds(&trial.shape));
            reached += usize::from(is_drawn);
            assert!(
                is_drawn || !has(),
                "{} {}: no drive with {} {}",
                entry.name,
                kind.name,
                value.dimension,
                value.value
            );
        }
    }
    reached
}

#[test]
fn each_kind_reaches_every_value_of_page() {
    add();
    let reached = covers(entry("page"));
    assert!(reached > KINDS.len() * 28, "{reached} values of all kinds");
}

#[test]
fn declared_keys_are_dimensions() {
    add();
    let layer = layers().1.iter().find(|entry| entry.name == "lost-in-segment").expect("a planted fault");
    let values: Vec<String> = wanted(layer, &[])
        .into_iter()
        .filter(|wanted| wanted.dimension == "lost-in-segment.planes")
        .map(|wanted| wanted.value)
        .collect();
    assert_eq!(values, ["1", "2", "4"]);
}

/// Ends a check after some looks at the time.
struct Looks(u32);

impl Watch for Looks {
    fn stops(&mut self, _: Progress) -> bool {
        false
    }

    fn is_over(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 == 0
    }
}

#[test]
fn a_limit_of_time_passes_in_part() {
    add();
    let options = Options { cases: 2, ..Options::default() };
    let run = |looks| check(entry("page"), &options, &mut Looks(looks)).expect("no mistake of the user");
    let part = run(60);
    assert_eq!(part.verdict, Verdict::Part);
    assert!(part.rows.iter().any(|row| row.supported && row.cases == 0 && row.expected == 2), "{:#?}", part.rows);
    let (one, other) = (run(u32::MAX), run(u32::MAX));
    assert_eq!((one.verdict, &one.cases_digest), (Verdict::Passed, &other.cases_digest));
    assert_ne!(one.cases_digest, part.cases_digest);
    assert!(one.rows.iter().all(|row| row.cases == 2 && row.runs >= 2), "{:#?}", one.rows);
}

#[test]
fn an_unsupported_kind_has_a_reason() {
    add();
    let options = Options { cases: 1, ..Options::default() };
    let checked = check(entry("mga"), &options, &mut Looks(u32::MAX)).expect("no mistake of the user");
    let parity = checked.rows.iter().find(|row| row.kind == "parity").expect("the kind");
    assert!(!parity.supported && parity.expected == 0 && parity.cases == 0);
    assert!(parity.reason.as_ref().is_some_and(|reason| reason.contains("parity")), "{:?}", parity.reason);
    assert_eq!(checked.verdict, Verdict::Passed);
}
