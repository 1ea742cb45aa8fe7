//! Cells go from 1 to 0 only, bit by bit, and refusals tell their history.

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
