//! Tests of cells (1 to 0 only, bit by bit), of refusals with their history, of word lines, and of a layer's own bytes.
//! Not tested here: images and read errors.

use super::cells::CellCode;
use super::part::samples::slc;
use super::part::{CellKind, ProgramOrder};
use super::*;
use crate::units::Rate;

fn nand(part: Part) -> Nand {
    let geometry = Geometry {
        channels: 1,
        chips_per_channel: 1,
        dies_per_chip: 1,
        planes_per_die: 1,
        blocks_per_plane: 2,
        pages_per_block: part.pages_per_block,
        subpages_per_page: part.subpages_per_page(),
        subpage_bytes: part.subpage_bytes,
    };
    Nand::new(geometry, part, Payload::Bytes, None)
}

fn filled(nand: &mut Nand, byte: u8) -> Data {
    let bytes = vec![byte; nand.geometry().subpage_bytes as usize];
    nand.buffers().keep(&bytes)
}

#[test]
fn cells_are_programmed_again_from_one_to_zero_only() {
    let mut nand = nand(Part { nop: 3, ..slc() });
    let (first, fewer, more) = (filled(&mut nand, 0b1110), filled(&mut nand, 0b0110), filled(&mut nand, 0b0111));
    assert_eq!(nand.program(0, 1, &[7], &[first]).unwrap(), Outcome::Done);
    assert!(
        matches!(nand.program(0, 1, &[7], &[fewer]), Err(Halt::Refused(refusal)) if refusal.rule == Rule::OneToZero)
    );
    assert_eq!(nand.reprogram(0, 1, &[8], &[fewer], &[0x0f]).unwrap(), Outcome::Done);
    assert!(matches!(
        nand.reprogram(0, 1, &[8], &[more], &[]),
        Err(Halt::Refused(refusal)) if refusal.rule == Rule::OneToZero
    ));
    assert!(
        matches!(
            nand.reprogram(0, 1, &[8], &[fewer], &[0x1f]),
            Err(Halt::Refused(refusal)) if refusal.rule == Rule::OneToZero
        ),
        "spare cells are cells, too"
    );
    assert_eq!(nand.spare(0), Some(&[0x0f][..]));
    assert_eq!((nand.logical(0), nand.counters().reprograms), (8, 1));
    let read = nand.load(0);
    assert!(nand.buffers().get(read).unwrap().iter().all(|&byte| byte == 0b0110));
}

#[test]
fn a_refusal_tells_what_happened_to_the_block() {
    let mut nand = nand(slc());
    let data = filled(&mut nand, 1);
    assert_eq!(nand.program(2, 1, &[0], &[data]).unwrap(), Outcome::Done);
    let Err(Halt::Refused(refusal)) = nand.program(1, 1, &[1], &[data]) else { panic!("not refused") };
    assert_eq!((refusal.rule, refusal.operation), (Rule::PageOrder, 2));
    assert_eq!(refusal.history, ["program page 2 subpages 0b1"]);
}

/// Blocks of pages of two subpages of 4 KiB.
fn of_two_subpages(payload: Payload) -> Nand {
    let geometry = Geometry {
        channels: 1,
        chips_per_channel: 1,
        dies_per_chip: 1,
        planes_per_die: 1,
        blocks_per_plane: 2,
        pages_per_block: 8,
        subpages_per_page: 2,
        subpage_bytes: 4096,
    };
    Nand::new(geometry, Part { page_bytes: 8192, nop: 2, spare_bytes: 16, ..slc() }, payload, None)
}

#[test]
fn bytes_of_the_layer_stay_until_the_erase_with_every_payload() {
    for payload in [Payload::None, Payload::Tag, Payload::Bytes] {
        let mut nand = of_two_subpages(payload);
        let page: Vec<u8> = (0..5000u32).map(|byte| byte as u8).collect();
        let own = Own { page: &page, spare: &[0xf0, 1] };
        assert_eq!(nand.program_own(0, 0b11, &[900, 901], &[Data::ZERO; 2], own).unwrap(), Outcome::Done);
        assert_eq!((nand.own(0), nand.own(1)), (Some(&page[..4096]), Some(&page[4096..])));
        assert_eq!((nand.spare(0), nand.logical(1)), (Some(&[0xf0, 1][..]), 901));
        let mut all = Vec::new();
        nand.own_of(0, &mut all);
        assert_eq!(all, page);
        assert_eq!((nand.own(2), nand.spare(1)), (None, None), "the next page has none");
        assert_eq!(nand.erase(0).unwrap(), Outcome::Done);
        assert_eq!((nand.own(0), nand.own(1), nand.spare(0), nand.has_own()), (None, None, None, false));
    }
}

#[test]
fn bytes_of_a_layers_own_obey_the_rules_of_cells() {
    let mut nand = of_two_subpages(Payload::None);
    let own = |page, spare| Own { page, spare };
    assert_eq!(nand.program_own(0, 0b01, &[0, 0], &[Data::ZERO; 2], own(&[7], &[0xf0])).unwrap(), Outcome::Done);
    let set = nand.program_own(0, 0b10, &[0, 1], &[Data::ZERO; 2], own(&[8], &[0xf1]));
    assert!(
        matches!(set, Err(Halt::Refused(refusal)) if refusal.rule == Rule::OneToZero),
        "a bit of the spare area rises"
    );
    assert_eq!(nand.program_own(0, 0b10, &[0, 1], &[Data::ZERO; 2], own(&[8], &[0x70])).unwrap(), Outcome::Done);
    assert_eq!((nand.own(0), nand.own(1), nand.spare(0)), (Some(&[7][..]), Some(&[8][..]), Some(&[0x70][..])));
    nand.set_power_cut_at(Some(nand.operations() + 1));
    let cut = nand.program_own(1, 0b11, &[2, 3], &[Data::ZERO; 2], own(&[9], &[9]));
    assert!(matches!(cut, Err(Halt::PowerCut)));
    assert_eq!((nand.own(2), nand.spare(1)), (None, None), "a program that is cut off leaves none");
}

/// One bit in a cell of four bits: generation g has the levels 2 g and 2 g + 1.
pub(super) struct Pairs;

impl CellCode for Pairs {
    fn name(&self) -> &'static str {
        "pairs"
    }

    fn data_bits(&self) -> u32 {
        1
    }

    fn cell_bits(&self) -> u32 {
        4
    }

    fn generations(&self) -> u32 {
        8
    }

    fn write(&self, levels: &mut [u8], generation: u32, message: &[u8]) {
        for (cell, level) in levels.iter_mut().enumerate() {
            *level = 2 * generation as u8 + (message[cell / 8] >> (cell % 8) & 1);
        }
    }

    fn read(&self, levels: &[u8], first: usize, message: &mut [u8]) {
        for (at, byte) in message.iter_mut().enumerate() {
            *byte = (0..8).fold(0, |byte, bit| byte | (levels[first + 8 * at + bit] & 1) << bit);
        }
    }
}

/// Blocks of four word lines of [`Pairs`], each of one subpage of 4 KiB.
fn coded() -> Nand {
    let qlc = Part { cell: CellKind::Qlc, pages_per_block: 16, t_program: 500, e_program: 7, ..slc() };
    let part = qlc.coded(&Pairs).expect("four pages a word line");
    assert_eq!((part.page_bytes, part.pages_per_block, part.t_program, part.e_reprogram), (4096, 4, 2000, 28));
    assert_eq!((part.t_read, part.bus_rate, part.nop), (100_000, Rate(10_000_000), 8));
    assert_eq!(slc().coded(&Pairs), None, "one page a word line");
    assert_eq!(Part { pages_per_block: 14, ..qlc }.coded(&Pairs), None, "half a word line");
    nand(part)
}

fn done(outcome: Flash<Outcome>) {
    assert_eq!(outcome.unwrap(), Outcome::Done);
}

fn rule_of(outcome: Flash<Outcome>) -> Rule {
    match outcome {
        Err(Halt::Refused(refusal)) => refusal.rule,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn word_lines_are_programmed_again_as_later_generations_only() {
    let mut nand = coded();
    let (one, two) = (filled(&mut nand, 0b1010), filled(&mut nand, 0b0101));
    let program = |nand: &mut Nand, page, generation, logical, data| {
        nand.program_generation(page, generation, &[logical], &[data], Own::NONE)
    };
    assert_eq!((nand.generation(0), nand.pass(0)), (None, 0));
    (0..4).for_each(|page| done(program(&mut nand, page, 0, page, one)));
    assert_eq!(rule_of(program(&mut nand, 0, 0, 0, two)), Rule::GenerationPassed);
    // A pass may skip a generation; the rest of the block keeps its data until the pass arrives.
    done(program(&mut nand, 0, 2, 9, two));
    assert_eq!((nand.generation(0), nand.generation(1), nand.pass(0), nand.next_page(0)), (Some(2), Some(0), 2, 1));
    assert_eq!((nand.is_of_earlier_pass(0), nand.is_of_earlier_pass(1), nand.logical(1)), (false, true, 1));
    assert_eq!(rule_of(program(&mut nand, 2, 1, 0, two)), Rule::GenerationPassed, "the block is further");
    done(program(&mut nand, 2, 2, 8, two));
    assert_eq!(rule_of(program(&mut nand, 1, 2, 0, two)), Rule::PageOrder);
    assert_eq!(nand.levels(0).unwrap()[..4], [5, 4, 5, 4]);
    let read = nand.load(0);
    assert!(nand.buffers().get(read).unwrap().iter().all(|&byte| byte == 0b0101));
    // The last generation; each operation costs as much as four pages.
    done(program(&mut nand, 0, 7, 3, one));
    assert_eq!(rule_of(program(&mut nand, 1, 8, 0, two)), Rule::NoGeneration);
    assert_eq!((nand.counters().programs, nand.counters().reprograms), (7, 3));
    assert_eq!((nand.counters().program_energy, nand.counters().reprogram_energy), (4 * 28, 3 * 28));
    assert_eq!(nand.erase(0).unwrap(), Outcome::Done);
    assert_eq!((nand.generation(0), nand.pass(0), nand.levels(0)), (None, 0, None));
    done(program(&mut nand, 0, 0, 1, one));
}

#[test]
fn a_generation_that_is_cut_off_has_begun_its_pass_or_never_was() {
    let mut nand = coded();
    let data = filled(&mut nand, 3);
    (0..4).for_each(|page| done(nand.program_generation(page, 0, &[page], &[data], Own::NONE)));
    nand.set_power_cut_at(Some(5));
    assert!(matches!(nand.program_generation(0, 1, &[9], &[data], Own::NONE), Err(Halt::PowerCut)));
    assert_eq!((nand.generation(0), nand.pass(0), nand.next_page(0), nand.logical(0)), (Some(1), 1, 1, TORN));
    assert_eq!(rule_of(nand.program_generation(0, 1, &[9], &[data], Own::NONE)), Rule::GenerationPassed);
    // In a timed run: a rolled back program leaves no trace, and a torn one has begun the pass.
    for torn in [false, true] {
        let mut nand = coded();
        let (old, new) = (filled(&mut nand, 3), filled(&mut nand, 5));
        (0..4).for_each(|page| done(nand.program_generation(page, 0, &[page], &[old], Own::NONE)));
        let levels = nand.levels(0).unwrap().to_vec();
        nand.keep_undo();
        (0..2).for_each(|page| done(nand.program_generation(page, 1, &[9], &[new], Own::NONE)));
        nand.lose_power(if torn { &[5] } else { &[] });
        assert_eq!((nand.pass(0), nand.next_page(0)), if torn { (1, 1) } else { (0, 4) });
        assert_eq!((nand.generation(0), nand.logical(0)), if torn { (Some(1), TORN) } else { (Some(0), 0) });
        assert_eq!((nand.generation(1), nand.logical(1)), (Some(0), 1));
        assert_eq!(nand.levels(0).unwrap() == levels, !torn);
        let before = nand.load(1);
        assert!(nand.buffers().get(before).unwrap().iter().all(|&byte| byte == 3));
    }
}

/// MLC whose programs corrupt the other page of the pair.
fn corrupting() -> Nand {
    nand(Part { cell: CellKind::Mlc, pair_corruption: true, ..slc() })
}

#[test]
fn a_high_page_that_is_cut_off_corrupts_its_low_page() {
    let mut nand = corrupting();
    let data = filled(&mut nand, 3);
    for page in 0..2 {
        assert_eq!(nand.program(page, 1, &[page], &[data]).unwrap(), Outcome::Done);
    }
    nand.set_power_cut_at(Some(3));
    assert!(matches!(nand.program(2, 1, &[2], &[data]), Err(Halt::PowerCut)));
    let refused = |nand: &Nand, page| nand.probe_read(page, 1, ReadCommand::PAGE).err();
    assert_eq!([0, 1, 2].map(|page| refused(&nand, page)), [Some(Rule::ReadTorn), None, Some(Rule::ReadTorn)]);
    assert_eq!(nand.mates(1).collect::<Vec<_>>(), [4], "low page 1 goes with high page 4");
}

#[test]
fn a_corrupted_page_is_read_from_its_copy_until_the_erase() {
    let mut nand = corrupting();
    let data = filled(&mut nand, 3);
    nand.keep_block(1);
    assert!(nand.is_bad(1), "it is no block of the layer");
    for page in 0..2 {
        assert_eq!(nand.program(page, 1, &[page], &[data]).unwrap(), Outcome::Done);
    }
    assert_eq!(nand.worth_copying(0), 1);
    assert_eq!(nand.copy_page(0, 8, 1).unwrap(), Outcome::Done);
    nand.set_power_cut_at(Some(4));
    assert!(matches!(nand.program(2, 1, &[2], &[data]), Err(Halt::PowerCut)));
    assert!(!nand.rescue(1, 8), "that is no copy of page 1");
    assert!(nand.rescue(0, 8));
    assert_eq!((nand.copy_of(0), nand.copy_of(1), nand.logical(0)), (8, 1, 0));
    nand.forget_rescued();
    assert_eq!((nand.copy_of(0), nand.logical(0)), (0, TORN), "it must be found again after each cut");
    assert_eq!(nand.copied(8), Some(0));
    assert!(nand.rescue(0, 8));
    assert_eq!(nand.erase(0).unwrap(), Outcome::Done);
    assert_eq!(nand.program(0, 1, &[5], &[data]).unwrap(), Outcome::Done);
    assert_eq!((nand.copy_of(0), nand.logical(0)), (0, 5));
}

#[test]
fn word_lines_are_programmed_whole_and_read_page_by_page() {
    let tlc = Part { cell: CellKind::Tlc, page_bytes: 8192, pages_per_block: 12, pair_corruption: true, ..slc() };
    assert!(
        tlc.shares_word_lines()
            && tlc.shot(4).is_none()
            && Part { pages_per_block: 10, ..tlc.clone() }.shot(3).is_none()
    );
    let part = Part { t_read_types: vec![10, 20, 30], ..tlc }.shot(3).expect("whole word lines");
    assert_eq!((part.page_bytes, part.pages_per_block, part.sensed_bytes(), part.kept_blocks()), (24_576, 4, 8192, 0));
    assert_eq!([0, 1, 2, 3, 4, 5].map(|subpage| part.sensing_time(7, subpage)), [10, 10, 20, 20, 30, 30]);
    let mut nand = nand(part);
    let (logical, data) = ([0, 1, 2, 3, 4, PADDING], [Data::ZERO; 6]);
    assert_eq!(rule_of(nand.program(0, 0b011_111, &logical, &data)), Rule::PartOfWordLine);
    done(nand.program(0, 0b111_111, &logical, &data));
    assert_eq!(rule_of(nand.program(0, 0b111_111, &logical, &data)), Rule::TooManyPrograms);
    for (subpages, rule) in [(0b11, None), (0b1000, None), (0b110_000, None), (0b110, Some(Rule::PagesTogether))] {
        let read = nand.read(0, subpages, ReadCommand::PAGE);
        let broken = match read {
            Ok(_) => None,
            Err(Halt::Refused(refusal)) => Some(refusal.rule),
            Err(other) => panic!("{other:?}"),
        };
        assert_eq!(broken, rule, "{subpages:06b}");
    }
    // A cut tears all of the word line, and no other.
    nand.set_power_cut_at(Some(nand.operations() + 1));
    assert!(matches!(nand.program(1, 0b111_111, &logical, &data), Err(Halt::PowerCut)));
    assert!((0..6).all(|subpage| nand.logical(6 + subpage) == TORN && nand.logical(subpage) != TORN));
}

/// Die 0 of a superblock of two lags behind when the power fails. The die continues in order until a later page of the
/// die is programmed.
#[test]
fn pages_left_out_of_a_superblock_follow_the_order_of_their_die() {
    let part = slc();
    let subpages = part.subpages_per_page();
    let shape = stripes::StripeShape { data: 2, parity: false, planes: 1 };
    let physical = Geometry { channels: 2, ..*nand(part.clone()).geometry() };
    let (logical, data) = (vec![0; subpages as usize], vec![Data::new(1); subpages as usize]);
    let program = |nand: &mut Nand, page| nand.program(page, first_subpages(subpages), &logical, &data);
    let begun = || {
        let mut nand = Nand::new(stripes::striped(&physical, shape), part.clone(), Payload::Tag, None);
        nand.set_stripes(physical, shape);
        nand.keep_undo();
        (0..6).for_each(|page| done(program(&mut nand, page)));
        // Pages 0 and 1 have ended, and on die 1 also pages 3 and 5.
        [1, 2, 4, 6].into_iter().for_each(|number| nand.ended(number));
        assert_eq!(nand.lose_power(&[]), 2);
        assert_eq!((nand.next_page(0), nand.left_out(0)), (6, vec![4, 2]));
        nand
    };
    let mut nand = begun();
    for (page, left) in [(2, vec![4]), (4, vec![]), (6, vec![])] {
        done(program(&mut nand, page));
        assert_eq!(nand.left_out(0), left);
    }
    let mut nand = begun();
    for (page, left) in [(7, vec![6, 4, 2]), (4, vec![6])] {
        done(program(&mut nand, page));
        assert_eq!(nand.left_out(0), left);
    }
    assert_eq!(rule_of(program(&mut nand, 2)), Rule::PageOrder);
}

/// Pages of MLC pair on a die of a superblock, whatever the progress of the other dies. A cut leaves each die its own.
#[test]
fn pages_of_a_superblock_pair_on_their_die() {
    let part = Part { cell: CellKind::Mlc, order: ProgramOrder::LowLowHigh, nop: 2, ..slc() };
    let shape = stripes::StripeShape { data: 2, parity: false, planes: 1 };
    let physical = Geometry { channels: 2, ..*nand(part.clone()).geometry() };
    let mut nand = Nand::new(stripes::striped(&physical, shape), part, Payload::Tag, None);
    nand.set_stripes(physical, shape);
    // A die programs L0 L1 H0 L2 H1 L3 H2 H3, and the dies take turns.
    assert_eq!([4, 5, 6, 14, 15].map(|page| nand.is_high(page)), [true, true, false, true, true]);
    assert_eq!([0, 1, 4, 5, 11, 15].map(|page| nand.partner(page)), [4, 5, 0, 1, 15, 11]);
    let program = |nand: &mut Nand, page| nand.program(page, 1, &[0], &[Data::new(1)]);
    let again = |nand: &mut Nand, page| nand.reprogram(page, 1, &[0], &[Data::new(1)], &[]);
    [0, 2, 4].into_iter().for_each(|page| done(program(&mut nand, page)));
    assert_eq!(rule_of(program(&mut nand, 5)), Rule::HighBeforeLow);
    [1, 3].into_iter().for_each(|page| done(program(&mut nand, page)));
    assert_eq!(rule_of(again(&mut nand, 0)), Rule::LowAfterHigh);
    done(again(&mut nand, 1));
    nand.keep_undo();
    let before = nand.operations();
    [6, 7, 5, 8].into_iter().for_each(|page| done(program(&mut nand, page)));
    // Only L2 and H1 of die 0 have ended.
    [1, 4].into_iter().for_each(|number| nand.ended(before + number));
    assert_eq!(nand.lose_power(&[]), 2);
    assert_eq!((nand.next_page(0), nand.left_out(0)), (9, vec![7, 5]));
    assert_eq!(rule_of(again(&mut nand, 2)), Rule::LowAfterHigh);
    [5, 11].into_iter().for_each(|page| done(program(&mut nand, page)));
    assert_eq!(rule_of(program(&mut nand, 7)), Rule::PageOrder);
}

/// Parity is programmed once its data is in memory, so before pages of its stripe on a lagging die. After a cut these
/// pages are programmed in the order of their die, whether or not the stripe can still have parity; after a die
/// failure, as long as a place is left.
#[test]
fn pages_left_out_of_stripes_are_programmed_into_their_place() {
    let part = slc();
    let subpages = part.subpages_per_page();
    let shape = stripes::StripeShape { data: 2, parity: true, planes: 1 };
    let physical = Geometry { channels: 3, ..*nand(part.clone()).geometry() };
    let (logical, data) = (vec![0; subpages as usize], vec![Data::new(1); subpages as usize]);
    let program = |nand: &mut Nand, page| nand.program(page, first_subpages(subpages), &logical, &data);
    // Die 0 has P0 2 4, die 1 has 0 P1 5, and die 2 has 1 3 P2. `on_dies` counts the ended programs of each.
    let cut = |on_dies: [usize; 3]| {
        let mut nand = Nand::new(stripes::striped(&physical, shape), part.clone(), Payload::Tag, None);
        nand.set_stripes(physical, shape);
        nand.keep_undo();
        for page in 0..6 {
            done(program(&mut nand, page));
            if page % 2 == 1 {
                let parity = nand.parity_of(0).start + page / 2;
                nand.program_parity(parity, &data, 0b11).expect("power");
            }
        }
        let in_order: [[u64; 3]; 3] = [[3, 4, 7], [1, 6, 8], [2, 5, 9]];
        in_order
            .iter()
            .zip(on_dies)
            .for_each(|(of_die, ended)| of_die[..ended].iter().for_each(|&one| nand.ended(one)));
        assert_eq!(nand.lose_power(&[]), 9 - on_dies.iter().sum::<usize>() as u64);
        nand
    };
    let fail = |nand: &mut Nand, die| {
        nand.fail_dies(&[(nand.operations() + 1, die)]);
        assert!(nand.read(0, 1, ReadCommand::PAGE).is_ok());
    };
    let parity_is_taken =
        |nand: &Nand| -> Vec<bool> { nand.parity_of(0).take(3).map(|parity| nand.takes_parity(parity)).collect() };

    // The parity pages of stripes 1 and 2 exist, but match no present data.
    let mut nand = cut([1, 3, 3]);
    assert_eq!((nand.next_page(0), nand.left_out(0), nand.written_up_to(0)), (6, vec![4, 2], 2));
    let mut failed = cut([1, 3, 3]);
    for (page, left) in [(2, vec![4]), (4, vec![])] {
        done(program(&mut nand, page));
        assert_eq!(nand.left_out(0), left);
    }
    assert!(!nand.holds_parity(nand.parity_of(0).start + 1), "another page came since");
    fail(&mut failed, 0);
    assert_eq!((failed.left_out(0), failed.written_up_to(0)), (vec![], 6), "the place of the parity is taken");
    assert_eq!(rule_of(program(&mut failed, 2)), Rule::PageOrder);

    // Stripe 2 is full, but earlier pages of the parity's die come first.
    let mut nand = cut([3, 3, 0]);
    assert_eq!((nand.next_page(0), nand.left_out(0), nand.written_up_to(0)), (6, vec![3, 1], 1));
    [1, 3].into_iter().for_each(|page| done(program(&mut nand, page)));
    assert_eq!((nand.left_out(0), parity_is_taken(&nand)), (vec![], vec![false, false, true]));
    // A parity program before them would lose them.
    let mut nand = cut([3, 3, 0]);
    nand.program_parity(nand.parity_of(0).start + 2, &data, 0b11).expect("power");
    assert_eq!(nand.left_out(0), vec![]);

    // A page of a failed die replaces a missing parity.
    let mut nand = cut([1, 1, 3]);
    assert_eq!((nand.next_page(0), nand.left_out(0)), (6, vec![5, 4, 2]));
    fail(&mut nand, 0);
    assert_eq!(nand.left_out(0), vec![5, 2]);
    for (page, left) in [(2, vec![5]), (5, vec![])] {
        done(program(&mut nand, page));
        assert_eq!((nand.left_out(0), nand.is_unreadable(page)), (left, false));
    }
}

/// The power fails while a superblock is erased and one die lags behind: its programs of data that the other die has
/// erased are lost.
#[test]
fn a_partly_erased_superblock_is_torn() {
    let part = slc();
    let subpages = part.subpages_per_page();
    let (logical, data) = (vec![0; subpages as usize], vec![Data::new(1); subpages as usize]);
    for (parity, running) in [(false, None), (false, Some(2)), (true, None), (true, Some(2))] {
        let shape = stripes::StripeShape { data: if parity { 1 } else { 2 }, parity, planes: 1 };
        let physical = Geometry { channels: 2, ..*nand(part.clone()).geometry() };
        let mut nand = Nand::new(stripes::striped(&physical, shape), part.clone(), Payload::Tag, None);
        nand.set_stripes(physical, shape);
        nand.keep_undo();
        done(nand.program(0, first_subpages(subpages), &logical, &data));
        match parity {
            true => nand.program_parity(nand.parity_of(0).start, &data, 1).expect("power"),
            false => done(nand.program(1, first_subpages(subpages), &logical, &data)),
        }
        nand.erase_together(2);
        done(nand.erase(0));
        nand.erase_also(0).expect("power");
        [1, 3].into_iter().for_each(|number| nand.ended(number));
        assert_eq!(nand.lose_power(running.as_slice()), 2 - u64::from(running.is_some()));
        assert_eq!((nand.is_torn(0), nand.next_page(0), nand.erases(0)), (true, 0, 1));
        assert_eq!((nand.sum_of_erases(), nand.counters().erases), (1, 1));
    }
}
