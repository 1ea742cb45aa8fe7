//! Tests of the module `precondition`.

use super::*;

#[test]
fn notation() {
    assert_eq!(Precondition::parse("none"), Ok(Precondition::None));
    assert_eq!(Precondition::parse("layout"), Ok(Precondition::Layout));
    assert_eq!(Precondition::parse("fill:90%"), Ok(Precondition::Fill { share: 0.9, random: 0.0, write_bytes: 0 }));
    let parsed = Precondition::parse("fill:50%, random:2x, bs:64KiB").unwrap();
    assert_eq!(parsed, Precondition::Fill { share: 0.5, random: 2.0, write_bytes: 64 << 10 });
    assert_eq!(describe(&parsed), "fill:50%,random:2x,bs:64KiB");
    for wrong in ["fill:50%,bs:64", "fill:50%,bs:0B", "fill:50%,bs:700B", "fill:50%,bs:2GiB"] {
        assert!(matches!(Precondition::parse(wrong), Err(Error::Input { .. })), "{wrong}");
    }
    for wrong in ["", "full", "fill", "fill:", "fill:90", "fill:0%", "fill:101%", "random:2x", "fill:-1%", "fill:nan%"]
    {
        assert!(matches!(Precondition::parse(wrong), Err(Error::Input { .. })), "{wrong}");
    }
    assert!(Precondition::parse("fill:90%,random:2").is_err());
    assert!(Precondition::parse("fill:90%,fill:80%").is_err());
}
