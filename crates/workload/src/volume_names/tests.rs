//! Tests of the module `volume_names`.

use super::*;

#[test]
fn names_are_kept_once_in_order_and_up_to_a_bound() {
    let mut names = VolumeNames::default();
    let streams = [names.stream(b"xvda1"), names.device(259 << 20), names.stream(b"xvda1"), names.device(8 << 20 | 16)];
    assert_eq!((streams[0], streams[1]), (streams[2], 259 << 20));
    let shown: Vec<&str> = names.all().iter().map(|(_, name)| &**name).collect();
    assert_eq!(shown, ["xvda1", "259,0", "8,16"]);
    assert_eq!((&*names.name(streams[0]), &*names.name(7)), ("xvda1", "7"));
    let mut other = VolumeNames::default();
    other.device(1);
    other.extend(names.all().to_vec());
    assert_eq!(other.all().len(), 4);
    for number in 0..MOST_NAMES as u32 + 9 {
        names.device(number);
    }
    assert_eq!(names.all().len(), MOST_NAMES);
}

#[test]
fn a_selection_has_numbers_names_and_devices() {
    let all = Selection::parse("3, xvda1,259,0").unwrap();
    let there = [3, hash(b"xvda1"), 259 << 20];
    assert!(there.iter().all(|&stream| all.has(stream)) && !all.has(4));
    assert_eq!(all.missing(|stream| there.contains(&stream)), None);
    assert_eq!(all.missing(|stream| there[..2].contains(&stream)), Some("259"));
    assert_eq!(all.missing(|stream| stream == 259 << 20), Some("3"));
    assert_eq!(Selection::parse("3,,7"), None);
}
