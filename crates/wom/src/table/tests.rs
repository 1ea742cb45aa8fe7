//! Tests of the table code against the published table.

use super::*;

/// Table 1 of the papers: (message, first write, second write), cells from left to right.
const TABLE: [(u8, u8, u8); 4] =
    [(0b11, 0b111, 0b000), (0b01, 0b011, 0b100), (0b10, 0b101, 0b010), (0b00, 0b110, 0b001)];

fn planes<const N: usize>(value: u8) -> [u8; N] {
    std::array::from_fn(|place| if value >> (N - 1 - place) & 1 == 1 { 0xff } else { 0 })
}

#[test]
fn both_writes_are_those_of_the_table() {
    for (old, once, _) in TABLE {
        assert_eq!(first(planes(old)), planes(once));
        assert_eq!(pairs(planes(once)), planes(old));
        for (new, _, twice) in TABLE {
            let expected = if old == new { once } else { twice };
            assert_eq!(second(planes(once), planes(new)), (planes(expected), 0));
            assert_eq!(pairs(planes(twice)), planes(new));
        }
    }
}

#[test]
fn a_third_write_fails_and_changes_nothing() {
    let shape = Shape { message_bytes: 3, cell_bytes: 7, spare_bytes: 1 };
    let mut code = build(shape).unwrap();
    let mut page = vec![0xff; 8];
    code.write_first(&mut page, &[0, 0x0f, 0]);
    code.encode(&mut page, &[0xff, 0x33, 0xff], 0).unwrap();
    let before = page.clone();
    assert_eq!(code.encode(&mut page, &[0, 0x33, 0], 0), Err(Failed));
    assert_eq!(page, before);
    assert!(code.encode(&mut page, &[0xff, 0x33, 0xff], 0).is_ok());
    assert_eq!(page, before);
    let mut message = [0; 3];
    code.decode(&page, &mut message);
    assert_eq!((message, &page[6..]), ([0xff, 0x33, 0xff], &[0xff, 0xff][..]));
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let error = build(Shape { message_bytes: 4, cell_bytes: 5, spare_bytes: 9 }).err().unwrap();
    assert!(error.0.contains("expected a message of a byte or more, and 6 bytes of cells"), "{error}");
    assert!(build(Shape { message_bytes: 0, cell_bytes: 5, spare_bytes: 0 }).is_err());
}
