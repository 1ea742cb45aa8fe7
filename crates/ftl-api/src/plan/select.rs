//! The read selector: chooses the commands that read the wanted code words of one page (SPREAD paper, Sec. IV, "SPREAD
//! mode selector").
//!
//! One command suffices, unless the part's `spread` command reads a single run of words ([`SpreadReach::Run`]) and
//! several runs are wanted. Then each run takes one command. With `gaps`, a command may also sense the words between
//! runs if that is faster. The selector then takes the fastest sequence of commands that covers all runs, and among
//! equally fast ones the sequence with the fewest commands. Only wanted words cross the bus, so transfers cost the same
//! for any choice. Ignored: other operations of the die and its bus meanwhile.

use palimpsest_flash::keys;
use palimpsest_flash::nand::WordMask;
use palimpsest_flash::nand::part::{Part, ReadCommand, ReadMode, SpreadReach};
use palimpsest_flash::units::Nanos;

keys! {
    /// How a layer reads.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct ReadPolicy;

    /// The key of layers that read by a [`ReadPolicy`].
    group pub READ {
        /// read command; page-fgm, dma-fgm and spftl each name one
        pub mode: ReadMode = "ftl.read", ReadMode::KIND, "page";
    }

    /// The key of layers that read words from several places of a page at once.
    group pub GATHER {
        /// whether spread reads of a part that reads runs may sense words in between to save a command
        pub gaps: bool = "ftl.read_gap", Flag, "false", needs["ftl.read = spread", "part.spread_reach = run"];
    }
}

impl ReadPolicy {
    /// Reads whole pages.
    pub const PAGE: ReadPolicy = ReadPolicy { mode: ReadMode::Page, gaps: false };
}

/// True if one command reads any `words` under `mode`.
#[inline]
pub fn one_command(part: &Part, mode: ReadMode, words: WordMask) -> bool {
    mode != ReadMode::Spread || part.spread_reach == SpreadReach::Any || runs(words).count() == 1
}

/// The commands that read the code words `words`, in ascending order. `words` must not be 0.
pub fn commands(part: &Part, policy: ReadPolicy, words: WordMask) -> Vec<ReadCommand> {
    let spans = match () {
        () if one_command(part, policy.mode, words) => vec![words],
        () if policy.gaps => quickest(part, words),
        () => runs(words).collect(),
    };
    spans.into_iter().map(|words| ReadCommand { mode: policy.mode, words }).collect()
}

/// The runs of adjacent words in `words`, in ascending order.
fn runs(mut words: WordMask) -> impl Iterator<Item = WordMask> {
    std::iter::from_fn(move || {
        if words == 0 {
            return None;
        }
        let first = words & words.wrapping_neg();
        let run = words & !words.wrapping_add(first);
        words &= !run;
        Some(run)
    })
}

/// The words from the first of `first` to the last of `last`.
fn span(first: WordMask, last: WordMask) -> WordMask {
    (u64::MAX >> last.leading_zeros()) & (u64::MAX << first.trailing_zeros())
}

/// The fastest cover of `words` by spans (dynamic programming). `best[i]` covers all runs before run `i`: its time,
/// number of commands, and first run of its last span.
fn quickest(part: &Part, words: WordMask) -> Vec<WordMask> {
    let runs: Vec<WordMask> = runs(words).collect();
    let time = |span: WordMask| part.t_command + part.t_read_words[(span.count_ones() - 1) as usize];
    let mut best: Vec<(Nanos, usize, usize)> = vec![(0, 0, 0)];
    for end in 1..=runs.len() {
        let ways = (0..end).map(|from| (best[from].0 + time(span(runs[from], runs[end - 1])), best[from].1 + 1, from));
        best.push(ways.min().expect("there is a way to cover a run"));
    }
    let mut spans = Vec::new();
    let mut end = runs.len();
    while end > 0 {
        let from = best[end].2;
        spans.push(span(runs[from], runs[end - 1]));
        end = from;
    }
    spans.reverse();
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use palimpsest_flash::nand::part::samples::slc;
    use palimpsest_flash::nand::rules::check_read;

    /// Table I of the SPREAD paper, for a command of one run.
    fn part() -> Part {
        Part {
            page_bytes: 16_384,
            word_bytes: 2048,
            t_command: 0,
            t_read_words: vec![35_000, 45_000, 55_000, 65_000, 75_000, 85_000, 95_000, 99_000],
            spread_reach: SpreadReach::Run,
            ..slc()
        }
    }

    fn chosen(part: &Part, gaps: bool, words: WordMask) -> Vec<WordMask> {
        commands(part, ReadPolicy { mode: ReadMode::Spread, gaps }, words).iter().map(|command| command.words).collect()
    }

    #[test]
    fn one_command_names_any_words_of_a_page_with_a_bitmap() {
        let any = Part { spread_reach: SpreadReach::Any, ..part() };
        assert_eq!(chosen(&any, false, 0b1010_0101), [0b1010_0101]);
    }

    #[test]
    fn a_gap_is_sensed_where_two_commands_take_longer() {
        // Fig. 3b of the paper: 35 + 35 us in two commands, 55 us with the word between.
        assert_eq!(chosen(&part(), false, 0b101), [0b001, 0b100]);
        assert_eq!(chosen(&part(), true, 0b101), [0b111]);
        // Words 0 and 4: 70 us apart, 75 us together.
        assert_eq!(chosen(&part(), true, 0b1_0001), [0b1, 0b1_0000]);
        // Words 0 and 7: 70 us apart, 99 us together.
        assert_eq!(chosen(&part(), true, 0b1000_0001), [0b1, 0b1000_0000]);
        // A tie of 70 us goes to the fewer commands.
        let tie = Part { t_read_words: vec![35_000, 45_000, 70_000, 71_000, 72_000, 73_000, 74_000, 75_000], ..part() };
        assert_eq!(chosen(&tie, true, 0b101), [0b111]);
        let slow = Part { t_command: 10_000, ..part() };
        assert_eq!(chosen(&slow, true, 0b1_0001), [0b1_1111], "commands cost bus time too");
    }

    #[test]
    fn every_choice_covers_the_wanted_words_and_none_is_quicker() {
        let part = part();
        let time = |words: WordMask| part.t_read_words[(words.count_ones() - 1) as usize];
        for words in 1..256u64 {
            for gaps in [false, true] {
                let spans = chosen(&part, gaps, words);
                assert_eq!(spans.iter().fold(0, |all, span| all | span) & words, words);
                assert!(spans.windows(2).all(|pair| pair[0] & pair[1] == 0 && pair[0] < pair[1]));
                for &words in &spans {
                    assert_eq!(check_read(&part, ReadCommand { mode: ReadMode::Spread, words }), Ok(()));
                }
                if !gaps {
                    assert_eq!(spans.iter().fold(0, |all, span| all | span), words, "nothing else is sensed");
                }
            }
            // All ways to part the runs, by brute force.
            let runs: Vec<WordMask> = runs(words).collect();
            let quickest = (0..1u32 << (runs.len() - 1))
                .map(|cuts| {
                    let mut from = 0;
                    let mut total = 0;
                    for end in 0..runs.len() {
                        if end + 1 == runs.len() || cuts >> end & 1 == 1 {
                            total += time(span(runs[from], runs[end]));
                            from = end + 1;
                        }
                    }
                    total
                })
                .min();
            assert_eq!(Some(chosen(&part, true, words).into_iter().map(time).sum()), quickest, "{words:08b}");
        }
    }
}
