//! Tests of successive cancellation against the definition, bit by bit.

use super::*;

/// The definition, bit by bit: result, and true if something conflicted.
fn reference(known: &[bool], values: &[bool], message: &[bool]) -> (Vec<bool>, bool) {
    if message.iter().all(|message| !message) {
        return (known.iter().zip(values).map(|(known, value)| *known && *value).collect(), false);
    }
    if let ([known], [value]) = (known, values) {
        return (vec![false], *known && *value);
    }
    let half = known.len() / 2;
    let pair = |at: usize| ((known[at], values[at]), (known[at + half], values[at + half]));
    let (mut k, mut v) = (vec![false; half], vec![false; half]);
    for at in 0..half {
        let ((ka, va), (kb, vb)) = pair(at);
        (k[at], v[at]) = (ka && kb, va != vb);
    }
    let (x1, wrong1) = reference(&k, &v, &message[..half]);
    for at in 0..half {
        let ((ka, va), (kb, vb)) = pair(at);
        (k[at], v[at]) = (ka || kb, if kb { vb } else { va != x1[at] });
    }
    let (x2, wrong2) = reference(&k, &v, &message[half..]);
    let x = x1.iter().zip(&x2).map(|(a, b)| a != b).chain(x2.iter().copied()).collect();
    (x, wrong1 || wrong2)
}

fn bits(words: &[u64]) -> Vec<bool> {
    words.iter().flat_map(|word| (0..64).map(move |bit| word >> bit & 1 == 1)).collect()
}

#[test]
fn words_do_what_bits_do() {
    let mut rng = Rng::new(2, 2);
    let mut outcomes = [0; 2];
    for round in 0..600 {
        let words = 1 << (round % 4);
        let few = |rng: &mut Rng| rng.next_u64() & rng.next_u64() & rng.next_u64();
        // Whole words of one content, mixed ones and runs within words, message bits first more often than last.
        let message: Vec<u64> = (0..words)
            .map(|_| match rng.below(4) {
                0 => 0,
                1 => u64::MAX,
                2 => u64::MAX >> rng.below(64),
                _ => few(&mut rng),
            })
            .collect();
        let known: Vec<u64> =
            (0..words).map(|_| if round % 3 == 0 { few(&mut rng) & few(&mut rng) } else { rng.next_u64() }).collect();
        let values: Vec<u64> = known.iter().map(|known| known & rng.next_u64()).collect();
        let mut code = Cancellation::new(message.clone());
        let (mut x, mut conflicts) = (vec![0; words], vec![0; words]);
        code.solve(&known, &values, &mut x, &mut conflicts);
        let (expected, wrong) = reference(&bits(&known), &bits(&values), &bits(&message));
        assert_eq!(bits(&x), expected);
        assert_eq!(conflicts.iter().any(|&word| word != 0), wrong);
        outcomes[usize::from(wrong)] += 1;
        if !wrong {
            assert!(x.iter().zip(&known).zip(&values).all(|((x, known), value)| x & known == *value));
            transform::transform(&mut x);
            assert!(x.iter().zip(&message).all(|(u, message)| u & message == 0));
        }
    }
    assert!(outcomes.iter().all(|&count| count > 50), "{outcomes:?}");
}

#[test]
fn results_and_conflicts_are_linear() {
    let mut rng = Rng::new(4, 4);
    let mut draw = |words: usize| -> Vec<u64> { (0..words).map(|_| rng.next_u64()).collect() };
    let mut code = Cancellation::new(vec![u64::MAX, 0x00ff_1337_8000_ffff, 0xffff, 0]);
    let known = draw(4);
    let mut solve = |values: &[u64]| {
        let (mut x, mut conflicts) = (vec![0; 4], vec![0; 4]);
        code.solve(&known, values, &mut x, &mut conflicts);
        x.into_iter().chain(conflicts).collect::<Vec<u64>>()
    };
    for _ in 0..100 {
        let [a, b] = [draw(4), draw(4)]
            .map(|words| -> Vec<u64> { words.iter().zip(&known).map(|(word, known)| word & known).collect() });
        let sum: Vec<u64> = a.iter().zip(&b).map(|(a, b)| a ^ b).collect();
        let sums: Vec<u64> = solve(&a).iter().zip(solve(&b)).map(|(a, b)| a ^ b).collect();
        assert_eq!(solve(&sum), sums);
    }
}
