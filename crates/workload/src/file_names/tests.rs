//! Tests of the module `file_names`.

use super::*;

#[test]
fn files_group_by_directory_and_suffix() {
    let mut names = FileNames::default();
    let mut group = |name: &str| {
        let number = names.number(name.as_bytes());
        names.group(number)
    };
    let one = group("C:\\mail\\E00.LOG");
    assert_eq!(one, group("c:\\MAIL\\e01.log"));
    assert_eq!(one.suffix, group("/var/b.log").suffix);
    assert_ne!(one.suffix, group("/var/b.edb").suffix);
    assert_eq!(group("$LogFile"), FileGroup::default());
    assert_eq!(group("a.d/b").suffix, 0);
    assert_eq!(names.group(NO_FILE), FileGroup::default());
}

#[test]
fn numbers_follow_first_appearance() {
    let mut names = FileNames::default();
    assert_eq!(["b", "a", "b", ""].map(|name| names.number(name.as_bytes())), [0, 1, 0, NO_FILE]);
    assert_eq!((names.name(1), names.name(2), names.name(NO_FILE)), (Some("a"), None, None));
    assert_eq!(names.number(b"\xff"), 2);
    assert_eq!(names.len(), 3);
}
