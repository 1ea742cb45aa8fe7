//! Tests of the module `size`.

use super::*;

#[test]
fn sixty_four_kibibytes_are_cold() {
    assert_eq!(Size.stream_of(Extent { sector: 0, sectors: 127 }, Directives::NONE), HOT);
    assert_eq!(Size.stream_of(Extent { sector: 0, sectors: 128 }, Directives::NONE), COLD);
}
