//! Tests of the module `blocks`.

use super::*;
use proptest::prelude::*;

#[test]
fn blocks_and_shares() {
    assert_eq!(parse_blocks("2 blocks"), Ok(BlockCount::Blocks(2)));
    assert_eq!(parse_blocks("1block"), Ok(BlockCount::Blocks(1)));
    assert_eq!(parse_blocks("20%"), Ok(BlockCount::Share(0.2)));
    assert_eq!(parse_blocks("0.2"), Ok(BlockCount::Share(0.2)));
    let expected = "expected a number of blocks such as \"2 blocks\", or a share of a plane's blocks such as \"20%\"";
    for (text, message) in [
        ("2", format!("\"2\" may be blocks or a percentage; {expected}")),
        ("0.5 blocks", format!("\"0.5 blocks\" is not a whole number of blocks; {expected}")),
        ("2 planes", format!("\"2 planes\" is not a number of blocks; {expected}")),
        ("120%", "120% is more than all blocks of a plane; expected at most \"100%\"".into()),
    ] {
        assert_eq!(parse_blocks(text).unwrap_err(), message);
    }
}

proptest! {
    #[test]
    fn what_is_printed_parses_back(blocks: u32, share in 0.0..=1.0f64, text: String) {
        prop_assert_eq!(parse_blocks(&format_blocks(BlockCount::Blocks(blocks))), Ok(BlockCount::Blocks(blocks)));
        prop_assert_eq!(parse_blocks(&format_blocks(BlockCount::Share(share))), Ok(BlockCount::Share(share)));
        let _ = parse_blocks(&text);
    }
}
