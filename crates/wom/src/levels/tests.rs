//! Tests of voltage-based codes against levels written out by hand and against all other labellings.

use super::*;

#[test]
fn codes_of_four_bit_cells_have_15_5_and_2_generations() {
    let found: Vec<(u32, u32, f64)> =
        WOM_V.iter().map(|code| (code.data_bits(), code.generations(), code.gain())).collect();
    assert_eq!(found, [(1, 15, 3.75), (2, 5, 2.5), (3, 2, 1.5)]);
}

/// Written out by hand for WOM-v(2, 4): four levels a generation, the last of each shared with the next.
#[test]
fn generations_share_a_level() {
    let levels = |generation| std::array::from_fn(|value| WOM_V[1].level(generation, value as u32));
    assert_eq!(levels(0), [0u8, 1, 2, 3]);
    assert_eq!(levels(1), [4u8, 5, 6, 3]);
    assert_eq!(levels(2), [8u8, 9, 6, 7]);
    assert_eq!(levels(3), [12u8, 9, 10, 11]);
    assert_eq!(levels(4), [12u8, 13, 14, 15]);
    let levels = |generation| std::array::from_fn(|value| WOM_V[2].level(generation, value as u32));
    assert_eq!(levels(0), [0u8, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(levels(1), [8u8, 9, 10, 11, 12, 13, 14, 7]);
}

/// Every value after every value: levels never fall, and store the written value.
#[test]
fn no_level_falls_from_one_generation_to_a_later_one() {
    for code in &WOM_V {
        let values = 0..1u32 << code.data_bits();
        for generation in 0..code.generations() {
            for value in values.clone() {
                let level = code.level(generation, value);
                assert_eq!(code.value(level), value);
                assert!(level <= code.top());
                for (earlier, before) in (0..generation).flat_map(|earlier| values.clone().map(move |v| (earlier, v))) {
                    assert!(code.level(earlier, before) <= level, "{} {generation} {value}", code.name);
                }
            }
        }
    }
}

/// Groups of cells in words, against one bit after the other, for every length and every part that is read.
#[test]
fn messages_are_stored_bit_by_bit() {
    for code in &WOM_V {
        let k = code.data_bits() as usize;
        for (bytes, generation) in (0..20).flat_map(|bytes| (0..code.generations()).map(move |it| (bytes, it))) {
            let message: Vec<u8> = (0..bytes).map(|at| (at * 151 + generation as usize * 29 + 77) as u8).collect();
            let bit = |at: usize| message.get(at / 8).map_or(0, |byte| u32::from(byte >> (at % 8) & 1));
            let mut levels = vec![0; (bytes * 8).div_ceil(k) + bytes % 3];
            code.write(&mut levels, generation, &message);
            for (cell, &level) in levels.iter().enumerate() {
                let value = (0..k).map(|at| bit(cell * k + at) << at).sum();
                assert_eq!(level, code.level(generation, value), "{} cell {cell} of {bytes} bytes", code.name);
            }
            for (first, length) in (0..bytes).flat_map(|first| (0..=bytes - first).map(move |it| (first, it))) {
                let mut read = vec![0xff; length];
                code.read(&levels, first * 8, &mut read);
                assert_eq!(read, message[first..first + length], "{} from byte {first}", code.name);
            }
        }
    }
}

/// The fewest writes that any labelling of the levels can promise is (q - 1) / (2^k - 1), rounded down, by search over
/// all message sequences: from each level, the adversary asks for the value that takes the lowest place last.
#[test]
fn no_other_labelling_promises_more_writes() {
    // Four levels, one bit: all 16 labellings; eight levels, one bit: all 256; eight levels, two bits: all 65,536.
    for (levels, values) in [(4usize, 2u32), (8, 2), (8, 4)] {
        let most = (0..u64::from(values).pow(levels as u32)).map(|labelling| {
            let label = |level: usize| (labelling / u64::from(values).pow(level as u32) % u64::from(values)) as u32;
            // Writes that are promised from a level on; the erased level has stored nothing yet.
            let mut promised = vec![0u32; levels];
            for level in (0..levels).rev() {
                let next = |value| (level..levels).find(|&other| label(other) == value);
                let others = (0..values).filter(|&value| value != label(level)).map(next);
                promised[level] =
                    others.map(|to| to.map_or(0, |to| 1 + promised[to])).min().expect("there are other values");
            }
            promised[0]
        });
        assert_eq!(most.max(), Some((levels as u32 - 1) / (values - 1)), "{levels} levels, {values} values");
    }
}
