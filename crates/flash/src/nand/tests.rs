//! Cells go from 1 to 0 only, bit by bit, refusals state their history, and bytes of a layer's own are kept.

use super::part::samples::slc;
use super::*;

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
    assert!(
        matches!(nand.reprogram(0, 1, &[8], &[more], &[]), Err(Halt::Refused(refusal)) if refusal.rule == Rule::OneToZero)
    );
    assert!(
        matches!(nand.reprogram(0, 1, &[8], &[fewer], &[0x1f]), Err(Halt::Refused(refusal)) if refusal.rule == Rule::OneToZero),
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
fn bytes_of_a_layers_own_are_kept_in_every_payload_until_the_erase() {
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
