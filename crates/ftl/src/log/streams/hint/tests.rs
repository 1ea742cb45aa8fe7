//! Tests of the module `hint`.

use super::*;
use palimpsest_flash::rng::Rng;

fn is_hot(hint: &mut ByHint, lifetime: Lifetime) -> bool {
    let any = Extent { sector: 0, sectors: 8 };
    hint.stream_of(any, Directives { lifetime, ..Directives::NONE }) == HOT
}

#[test]
fn logarithms() {
    assert_eq!([0, 1, 2, 3, 4, 1 << 31].map(logarithm), [0, 0, 256, 384, 512, 31 << 8]);
    assert!((1..5000).all(|pages| logarithm(pages) <= logarithm(pages + 1)));
}

#[test]
fn half_of_what_is_announced_is_hot_wherever_it_lies() {
    for scale in [1u64, 1000, 1 << 23] {
        let (mut hint, mut rng, mut hot) = (ByHint::default(), Rng::new(1, scale), 0);
        is_hot(&mut hint, Lifetime::Pages(1 << 20));
        for turn in 0..40_000 {
            let is_hot = is_hot(&mut hint, Lifetime::of_pages(scale << rng.below(8) | rng.below(scale)));
            hot += u32::from(is_hot && turn >= 20_000);
        }
        assert!((8_000..12_000).contains(&hot), "{hot} of 20000");
    }
}

#[test]
fn two_kinds_of_files_get_streams_of_their_own() {
    let (mut hint, mut rng, mut wrong) = (ByHint::default(), Rng::new(2, 0), 0);
    for turn in 0..20_000 {
        let short = rng.below(2) == 0;
        let pages = if short { 100 + rng.below(20) } else { 10_000 + rng.below(2000) };
        wrong += u32::from(is_hot(&mut hint, Lifetime::of_pages(pages)) != short && turn > 1000);
    }
    // The median moves between the two clusters, and sometimes into one.
    assert!(wrong < 200, "{wrong} of 19000");
}

#[test]
fn records_are_hot_and_what_moves_is_cold() {
    let mut hint = ByHint::default();
    assert!([Lifetime::Metadata, Lifetime::Unknown].iter().all(|&known| is_hot(&mut hint, known)));
    assert!(!is_hot(&mut hint, Lifetime::Moved));
}
