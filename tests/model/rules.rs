//! The rules of flash refuse illegal operations: each case by hand, with its rule and history.

use crate::drives::{build, plain, with};
use palimpsest_lab::nand::data::{Data, Payload};
use palimpsest_lab::nand::faults::{FaultSettings, Faults};
use palimpsest_lab::nand::part::ReadCommand;
use palimpsest_lab::nand::rules::{Refusal, Rule};
use palimpsest_lab::nand::{Flash, Halt, Nand, Outcome, PADDING};

/// One plane of 8 blocks, 4 pages a block, 4 subpages a page.
fn flash(changes: &[&str], faults: Option<FaultSettings>) -> Nand {
    let changes: Vec<&str> = changes.iter().copied().chain(["ssd.over_provisioning=100%"]).collect();
    let shape = build("page", &with(&plain(1, 8, 4, 4), &changes)).expect("a possible drive");
    Nand::new(shape.drive.geometry, shape.drive.part, Payload::Tag, faults.map(|faults| Faults::new(faults, 1)))
}

fn program(nand: &mut Nand, page: u32, written: u64) -> Flash<Outcome> {
    nand.program(page, written, &[page * 4, page * 4 + 1, page * 4 + 2, PADDING], &[Data::new(7); 4])
}

fn done(result: Flash<Outcome>) {
    assert_eq!(result.expect("a legal operation"), Outcome::Done);
}

fn refused<T: std::fmt::Debug>(result: Flash<T>) -> Refusal {
    match result {
        Err(Halt::Refused(refusal)) => *refusal,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn reading_what_is_not_there() {
    let mut nand = flash(&[], None);
    let refusal = refused(nand.read(5, 0b1, ReadCommand::PAGE));
    assert_eq!((refusal.rule, refusal.block, refusal.page), (Rule::ReadUnwritten, 1, 1));
    assert_eq!(refusal.history, Vec::<String>::new());
    done(program(&mut nand, 4, 0b0011));
    nand.read(4, 0b0011, ReadCommand::PAGE).expect("written subpages");
    let refusal = refused(nand.read(4, 0b0110, ReadCommand::PAGE));
    assert_eq!(refusal.rule, Rule::ReadUnwritten);
    assert_eq!(
        refusal.history,
        ["read page 1 subpages 0b1", "program page 0 subpages 0b11", "read page 0 subpages 0b11"]
    );
    done(nand.erase(1));
    assert_eq!(refused(nand.read(4, 0b0001, ReadCommand::PAGE)).rule, Rule::ReadUnwritten);
}

#[test]
fn order_of_pages() {
    let mut nand = flash(&["part.order=strict", "part.nop=4"], None);
    done(program(&mut nand, 1, 0b1111));
    let refusal = refused(program(&mut nand, 0, 0b1111));
    assert_eq!((refusal.rule, refusal.operation), (Rule::PageOrder, 2));
    assert_eq!(refusal.history, ["program page 1 subpages 0b1111"]);
    done(program(&mut nand, 2, 0b0001));
    done(program(&mut nand, 2, 0b0010));
    done(program(&mut nand, 3, 0b0001));
    assert_eq!(refused(program(&mut nand, 2, 0b0100)).rule, Rule::ReprogramOrder);
    let mut nand = flash(&["part.order=ascending", "part.nop=4"], None);
    done(program(&mut nand, 2, 0b0001));
    done(program(&mut nand, 3, 0b0001));
    done(program(&mut nand, 2, 0b0100));
    assert_eq!(refused(program(&mut nand, 1, 0b0100)).rule, Rule::PageOrder);
}

#[test]
fn programs_of_a_page() {
    let mut nand = flash(&["part.nop=2", "part.order=ascending"], None);
    done(program(&mut nand, 0, 0b0001));
    assert_eq!(refused(program(&mut nand, 0, 0b0011)).rule, Rule::OneToZero);
    done(program(&mut nand, 0, 0b0010));
    assert_eq!(refused(program(&mut nand, 0, 0b0100)).rule, Rule::TooManyPrograms);
    done(nand.erase(0));
    done(program(&mut nand, 0, 0b1111));
    assert_eq!(refused(program(&mut nand, 0, 0b1000)).rule, Rule::OneToZero, "padding is data, too");
}

#[test]
fn low_and_high_pages() {
    // Pages of a block of four: L0 L1 H0 H1.
    let changes = ["part.cell=mlc", "part.order=low-low-high", "part.nop=2"];
    let mut nand = flash(&changes, None);
    assert_eq!(refused(program(&mut nand, 2, 0b1111)).rule, Rule::HighBeforeLow);
    done(program(&mut nand, 0, 0b0001));
    done(program(&mut nand, 1, 0b1111));
    done(program(&mut nand, 0, 0b0010));
    done(program(&mut nand, 2, 0b0001));
    assert_eq!(refused(program(&mut nand, 2, 0b0010)).rule, Rule::HighTwice);
    done(program(&mut nand, 3, 0b0001));
    assert_eq!(refused(program(&mut nand, 1, 0b0010)).rule, Rule::LowAfterHigh);
}

#[test]
fn failed_programs_and_erases() {
    let mut nand = flash(&[], Some(FaultSettings { program_fail: 1.0, ..FaultSettings::default() }));
    assert_eq!(program(&mut nand, 0, 0b1111).expect("it reports"), Outcome::Failed);
    assert_eq!(refused(nand.read(0, 0b0001, ReadCommand::PAGE)).rule, Rule::ReadTorn);
    assert_eq!(refused(program(&mut nand, 1, 0b1111)).rule, Rule::BadBlock);
    assert_eq!(refused(nand.erase(0)).rule, Rule::BadBlock);
    let mut nand = flash(&[], Some(FaultSettings { erase_fail: 1.0, ..FaultSettings::default() }));
    assert_eq!(nand.erase(0).expect("it reports"), Outcome::Failed);
    assert_eq!(refused(program(&mut nand, 0, 0b1111)).rule, Rule::BadBlock);
    let mut nand = flash(&[], Some(FaultSettings { initial_bad: 1.0, ..FaultSettings::default() }));
    assert_eq!(refused(program(&mut nand, 0, 0b1111)).rule, Rule::BadBlock);
    let refusal = refused(nand.erase(0));
    assert!(refusal.to_string().contains("a program or erase of a bad block; before it: program page 0"), "{refusal}");
}

#[test]
fn torn_operations() {
    let mut nand = flash(&[], None);
    done(program(&mut nand, 0, 0b1111));
    nand.set_power_cut_at(Some(2));
    assert!(matches!(program(&mut nand, 1, 0b1111), Err(Halt::PowerCut)));
    assert_eq!(refused(nand.read(1, 0b0001, ReadCommand::PAGE)).rule, Rule::ReadTorn);
    nand.read(0, 0b1111, ReadCommand::PAGE).expect("the page before it is whole");
    nand.set_power_cut_at(Some(nand.operations() + 1));
    assert!(matches!(nand.erase(0), Err(Halt::PowerCut)));
    assert_eq!(refused(nand.read(0, 0b0001, ReadCommand::PAGE)).rule, Rule::ReadUnwritten);
    assert_eq!(refused(program(&mut nand, 0, 0b1111)).rule, Rule::TornErase);
    done(nand.erase(0));
    done(program(&mut nand, 0, 0b1111));
}

#[test]
fn a_refused_operation_changes_nothing() {
    let mut nand = flash(&["part.nop=2", "part.order=ascending"], None);
    done(program(&mut nand, 1, 0b0001));
    let before = (nand.counters().clone(), nand.next_page(0), nand.programs(1), nand.logical(5));
    refused(program(&mut nand, 0, 0b1111));
    refused(program(&mut nand, 1, 0b0011));
    refused(nand.read(1, 0b1000, ReadCommand::PAGE));
    assert_eq!(before, (nand.counters().clone(), nand.next_page(0), nand.programs(1), nand.logical(5)));
}
