//! Tests of distributions: their notation, and shares of draws against the formulas.

use super::*;

fn draws(text: &str, n: u64, count: usize) -> Vec<u64> {
    let sampler = Sampler::new(&Distribution::parse(text).unwrap(), n, 5);
    let mut rng = Rng::new(3, 9);
    (0..count).map(|_| sampler.draw(n, &mut rng)).collect()
}

#[test]
fn notation() {
    for text in [
        "random",
        "zipf:0.95",
        "zipf:0.9:0",
        "zipf:1:0.25",
        "pareto:0.2",
        "normal:10",
        "hotblocks:8/12.5",
        "zoned:50/5:30/15:20/80",
    ] {
        assert_eq!(Distribution::parse(text).unwrap().to_string(), text);
    }
    assert_eq!(Distribution::parse("hotspot:20%/80%"), Distribution::parse("zoned:80/20:20/80"));
    assert_eq!(Distribution::parse("zoned:50/5:30/15:20/"), Distribution::parse("zoned:50/5:30/15:20/80"));
    for wrong in [
        "",
        "zipf",
        "zipf:0",
        "zipf:-1",
        "zipf:nan",
        "zipf:1e3",
        "pareto:1",
        "hotspot:0/50",
        "zoned:50/50",
        "x:1",
        "hotblocks:0/5",
        "hotblocks:2/101",
        "hotblocks:2",
    ] {
        assert_eq!(Distribution::parse(wrong), None, "{wrong}");
    }
}

/// Rank k of n is at the center plus k, and gets (k + 1)^-theta / zeta(n, theta) of the requests.
#[test]
fn a_center_puts_the_ranks_in_order() {
    for (text, first) in [("zipf:1:0", 0), ("zipf:1:0.5", 500)] {
        let mut counts = vec![0u32; 1000];
        draws(text, 1000, 200_000).iter().for_each(|&slot| counts[slot as usize] += 1);
        let zeta: f64 = (1..=1000).map(|rank| 1.0 / f64::from(rank)).sum();
        for rank in [0usize, 1, 2, 10, 499] {
            let expected = 200e3 / (zeta * (rank + 1) as f64);
            let got = f64::from(counts[(first + rank) % 1000]);
            assert!((got - expected).abs() < 5.0 * expected.sqrt(), "{text} {rank}: {got} {expected}");
        }
    }
}

#[test]
fn hotspot_shares() {
    let hits = draws("hotspot:20/80", 1000, 100_000).iter().filter(|&&slot| slot < 200).count();
    assert!((79_400..80_600).contains(&hits), "{hits}");
}

#[test]
fn hot_blocks_get_their_share() {
    let mut counts = vec![0u32; 1000];
    draws("hotblocks:4/20", 1000, 100_000).iter().for_each(|&slot| counts[slot as usize] += 1);
    counts.sort_unstable_by(|a, b| b.cmp(a));
    assert!(counts[..4].iter().all(|&count| (4800..5400).contains(&count)), "{:?}", &counts[..5]);
    assert!(counts[4] < 150, "{}", counts[4]);
}

#[test]
fn pareto_gives_one_less_h_of_the_requests_to_h_of_the_blocks() {
    let n = 10_000;
    let mut counts = vec![0u64; n as usize];
    draws("pareto:0.2", n, 200_000).iter().for_each(|&slot| counts[slot as usize] += 1);
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let share = counts[..2000].iter().sum::<u64>() as f64 / 200_000.0;
    assert!((0.79..0.82).contains(&share), "{share}");
}

/// Variances add up: a twelfth of a squared range for each uniform draw, divided by twelve for the mean of twelve.
#[test]
fn normal_is_the_mean_of_twelve_uniform_ranks() {
    for percent in [0.0, 10.0, 40.0] {
        let ranks = 1_000_000;
        let mut rng = Rng::new(1, 2);
        let width = (ranks as f64 * percent / 100.0) as u64;
        let draws: Vec<f64> = (0..200_000).map(|_| normal_rank(ranks, width, &mut rng) as f64).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|rank| (rank - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        let expected = 1e6 * (1.0 / 144.0 + (percent / 100.0f64).powi(2) / 12.0).sqrt();
        assert!((mean - 5e5).abs() < 1500.0, "{percent}: {mean}");
        assert!((variance.sqrt() / expected - 1.0).abs() < 0.01, "{percent}: {} {expected}", variance.sqrt());
    }
}

#[test]
fn one_slot_is_enough_for_every_distribution() {
    for text in ["random", "zipf:1.2", "pareto:0.5", "normal:1", "hotblocks:9/50", "zoned:50/5:30/15:20/80"] {
        assert!(draws(text, 1, 100).iter().all(|&slot| slot == 0), "{text}");
        assert!(draws(text, 3, 100).iter().all(|&slot| slot < 3), "{text}");
    }
}
