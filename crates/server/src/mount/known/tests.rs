//! Tests of the module `known`.

use super::*;

#[test]
fn an_inode_is_known_until_all_of_its_lookups_are_forgotten() {
    let known = Known::default();
    (0..3).for_each(|_| known.meet(7));
    known.meet(9);
    assert_eq!((known.forget(7, 2), known.inodes()), (false, vec![7, 9]));
    assert_eq!((known.forget(7, 5), known.inodes()), (true, vec![9]));
    assert!(!known.forget(7, 1), "once");
}
