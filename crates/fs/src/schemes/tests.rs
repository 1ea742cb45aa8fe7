//! Tests of `schemes`.

use super::{ReadBusy, Rules, Tie, View, new};

pub(super) fn placed(scheme: &str, pages: u32, file: &[u32], issued: &[u64], reading: &[bool]) -> Vec<u32> {
    placed_by(Rules::default(), scheme, pages, file, issued, reading)
}

/// Channels that `scheme` chooses for the pages of a request, called as the file system calls it. Of the pages
/// issued, a multiple of eight is no longer outstanding.
fn placed_by(rules: Rules, scheme: &str, pages: u32, file: &[u32], issued: &[u64], reading: &[bool]) -> Vec<u32> {
    let scheme = new(scheme).unwrap();
    let (mut file, mut issued, channels) = (file.to_vec(), issued.to_vec(), file.len() as u32);
    // A running read takes 35, the write of a page 10, the read of a page 16.
    let mut work: Vec<u64> = reading.iter().map(|&reading| 35 * u64::from(reading)).collect();
    let (mut given, crowded) = (vec![0; file.len()], vec![false; file.len()]);
    let (mut turn, mut placed) = (0, Vec::new());
    let outstanding: Vec<u32> = issued.iter().map(|&issued| issued as u32 & 7).collect();
    while (placed.len() as u32) < pages {
        let view = View {
            pages,
            file: &file,
            given: &given,
            issued: &issued,
            outstanding: &outstanding,
            reading,
            work: &work,
            read_time: 16,
            crowded: &crowded,
            turn,
            rules,
        };
        let channel = (scheme.choose)(&view);
        let share = if pages > scheme.groups_above { view.share() } else { 1 };
        for _ in 0..share.min(pages - placed.len() as u32) {
            placed.push(channel);
            file[channel as usize] += 1;
            given[channel as usize] += 1;
            issued[channel as usize] += 1;
            work[channel as usize] += 10;
        }
        turn = (channel + 1) % channels;
    }
    placed
}

const QUIET: [bool; 4] = [false; 4];

#[test]
fn round_robin_ignores_the_state() {
    assert_eq!(placed("rr", 5, &[9, 0, 0, 0], &[9, 0, 0, 0], &[true; 4]), [0, 1, 2, 3, 0]);
}

#[test]
fn fairness_fills_up_the_file_and_serves_whole_rounds_in_turn() {
    assert_eq!(placed("fairness", 3, &[3, 1, 2, 2], &[0; 4], &QUIET), [1, 2, 3]);
    assert_eq!(placed("fairness", 2, &[2; 4], &[5, 4, 1, 3], &QUIET), [2, 3], "ties by what is outstanding");
    assert_eq!(placed("fairness", 4, &[3, 1, 2, 2], &[0; 4], &QUIET), [0, 1, 2, 3]);
}

#[test]
fn ties_of_fairness_by_outstanding_or_issued_pages_or_in_turn() {
    let chosen = |tie| {
        let rules = Rules { tie, ..Rules::default() };
        placed_by(rules, "fairness", 1, &[2; 4], &[6, 9, 3, 2], &QUIET)
    };
    let all = [Tie::Outstanding, Tie::Issued, Tie::Turn].map(chosen);
    assert_eq!(all, [[1], [3], [0]], "one page is outstanding on 1");
}

#[test]
fn read_busy_to_the_letter_leaves_reading_channels_out() {
    let rules = Rules { read_busy: ReadBusy::Skip, ..Rules::default() };
    let chosen = |scheme| placed_by(rules, scheme, 4, &[0; 4], &[0; 4], &[true, false, true, false]);
    assert_eq!([chosen("read-busy"), chosen("hybrid")], [[1, 3, 1, 3], [1, 3, 1, 3]]);
    assert_eq!(placed_by(rules, "read-busy", 3, &[0; 4], &[0; 4], &[true; 4]), [0, 1, 2]);
}

#[test]
fn busy_channels_are_skipped_while_another_is_quiet() {
    assert_eq!(placed("read-busy", 2, &[0; 4], &[0; 4], &[true, false, true, false]), [1, 3]);
    assert_eq!(
        placed("read-busy", 5, &[0; 4], &[0; 4], &[true, false, true, false]),
        [1, 3, 0, 2, 3],
        "busy with pages of the request is not free either"
    );
    assert_eq!(placed("read-busy", 3, &[0; 4], &[0; 4], &[true; 4]), [0, 1, 2]);
}

#[test]
fn depth_begins_above_sixteen_pages() {
    assert_eq!(placed("depth", 16, &[0; 8], &[0; 8], &[false; 8])[..4], [0, 1, 2, 3]);
    let counts = |pages| {
        let placed = placed("depth", pages, &[0; 8], &[0; 8], &[false; 8]);
        let groups = placed.chunk_by(|one, next| one == next).map(<[u32]>::len);
        groups.collect::<Vec<_>>()
    };
    assert_eq!(counts(17), [3, 2, 2, 2, 2, 2, 2, 2], "one group a channel, whatever the remainder");
    assert_eq!(counts(31), [4, 4, 4, 4, 4, 4, 4, 3]);
    assert_eq!(placed("depth", 32, &[0; 8], &[0; 8], &[false; 8])[..5], [0, 0, 0, 0, 1]);
}

#[test]
fn least_work_waits_for_a_channel_where_that_is_sooner() {
    let busy = [true, false, false, false];
    assert_eq!(placed("least-work", 4, &[0; 4], &[0; 4], &busy), [1, 2, 3, 1], "a read takes as long as three pages");
    assert_eq!(placed("least-work", 3, &[3, 1, 2, 2], &[0; 4], &QUIET), [1, 2, 3], "the file among equals");
    assert_eq!(placed("least-work", 2, &[0, 9, 0, 0], &[0; 4], &QUIET), [0, 2]);
    assert_eq!(placed("least-work", 18, &[0; 4], &[0; 4], &QUIET)[..5], [0, 1, 2, 3, 0]);
}

#[test]
fn hybrid_does_all_three() {
    let reading = [true, false, false, false];
    assert_eq!(placed("hybrid", 2, &[0, 1, 2, 1], &[0; 4], &reading), [1, 3], "the emptiest is busy with reads");
    assert_eq!(placed("hybrid", 3, &[4, 0, 4, 1], &[0; 4], &reading), [1, 3, 2], "a request keeps its breadth");
    assert_eq!(placed("hybrid", 18, &[0; 4], &[0; 4], &QUIET)[..6], [0, 0, 0, 0, 0, 1]);
}
