//! Stores of records against counts by hand, and against an index of all records.

use super::files::{EXTENT_BYTES, Fit, Space};
use super::{LsmSource, LsmSpec};
use crate::lsm::tree::Tree;
use crate::objects::commands::Commands;
use crate::request::{Command, RequestKind, Source};

const SMALL: &str = "lsm=8MiB,data=50%,record=4KiB,memtable=64KiB,file=64KiB,base=256KiB,l0=2,ratio=4,wal=0";

fn drained(commands: &mut Commands) -> Vec<Command> {
    std::iter::from_fn(|| commands.next()).collect()
}

/// Kind, 64-KiB extent and number of extents, handle.
fn shown(commands: &[Command]) -> Vec<String> {
    let one = |command: &Command| {
        let letter = match command.kind {
            RequestKind::Read => 'r',
            RequestKind::Write => 'w',
            _ => 't',
        };
        let (extent, count) = (command.extent.sector / 128, command.extent.sectors / 128);
        let handle = if command.directives.placed { format!(":{}", command.directives.placement) } else { "".into() };
        format!("{letter}{extent}+{count}{handle}")
    };
    commands.iter().map(one).collect()
}

/// A table holds 16 records. The second flush starts a merge of both files into two files of level 1; deleted extents
/// are free again.
#[test]
fn flushes_and_merges_are_exact() {
    let mut tree = Tree::new(LsmSpec::parse(&format!("{SMALL},trim=on")).unwrap(), 8 << 20);
    let mut out = Commands::default();
    (0..16).for_each(|key| tree.put(2 * key, &mut out).unwrap());
    assert_eq!(shown(&drained(&mut out)), ["w0+1:2"]);
    (0..16).for_each(|key| tree.put(2 * key + 1, &mut out).unwrap());
    let merged = ["w1+1:2", "r0+1", "r1+1", "w2+1:3", "w3+1:3", "t0+1", "t1+1"];
    assert_eq!(shown(&drained(&mut out)), merged);
    assert_eq!(&tree.records()[..3], [0, 32, 0]);
    // A file above the others' keys moves down with the merge; the same keys again replace their copies.
    (0..32).for_each(|key| tree.put(key, &mut out).unwrap());
    assert_eq!(&tree.records()[..3], [0, 32, 0]);
    drained(&mut out);
    tree.get(17, &mut out);
    let [read] = drained(&mut out)[..] else { panic!("one read") };
    assert_eq!((read.kind, read.extent.sectors), (RequestKind::Read, 8));
}

/// Extents 0 and 1 are free again: the next file continues after the last one, or takes the lowest.
#[test]
fn a_new_file_takes_the_space_of_its_fit() {
    for (fit, taken) in [(Fit::Next, [3, 0]), (Fit::First, [0, 1])] {
        let mut space = Space::new(4 * EXTENT_BYTES, fit);
        let files = [(); 3].map(|()| space.take(EXTENT_BYTES).unwrap());
        files[..2].iter().for_each(|extents| space.give(extents));
        assert_eq!(space.take(2 * EXTENT_BYTES).unwrap(), taken);
    }
}

/// Every record is found, once in each level at most, and every read is of a block that was written.
#[test]
fn all_records_are_found() {
    let spec = LsmSpec::parse(&format!("{SMALL},n=20000,zipf=0.5,reads=50%,warm=3x")).unwrap();
    let mut source = LsmSource::new(spec, 16 << 20, 1).unwrap();
    let mut written = vec![false; (16 << 20) / 4096];
    while let Some(request) = source.next_of_layout() {
        let pages = request.command.extent.sector / 8..request.command.extent.end() / 8;
        pages.for_each(|page| written[page as usize] = true);
    }
    let (mut gets, mut writes) = (0, 0u64);
    while let Some(request) = source.next_request().unwrap() {
        let extent = request.command.extent;
        assert!(extent.end() <= (8 << 20) / 512, "{extent:?} is outside the store");
        match request.kind {
            RequestKind::Read => {
                assert!((extent.sector / 8..extent.end() / 8).all(|page| written[page as usize]));
                gets += u64::from(request.owner() == 0);
            }
            _ => {
                writes += u64::from(extent.sectors);
                (extent.sector / 8..extent.end() / 8).for_each(|page| written[page as usize] = true);
            }
        }
    }
    // Half of the requests read, some of them in memory; puts of 4 KiB are written several times.
    assert!(gets > 8_000 && writes > 3 * 10_000 * 8, "{gets} {writes}");
}

#[test]
fn mistakes_are_named() {
    for (text, expected) in [
        (
            "lsm=90%,levels=3",
            "no key of stores of records is called \"levels\"; expected a key of `palimpsest help records`",
        ),
        ("lsm=90%,fit=best", "fit=best: no value of this key; expected first or next"),
        ("lsm=90%,ratio=1", "ratio=1: no value of this key; expected 2 to 100"),
        ("lsm=90%,placement=off,handles=1:2", "handles: writes name no handles; expected placement=on"),
        ("lsm=90%,record=64KiB,memtable=64KiB,file=16KiB", "file=16KiB: no value of this key"),
    ] {
        let message = LsmSpec::parse(text).unwrap_err().to_string();
        assert!(message.contains(expected), "{text}: {message}");
    }
    let full = LsmSource::new(LsmSpec::parse("lsm=8MiB,data=100%,memtable=64KiB,file=64KiB").unwrap(), 8 << 20, 1);
    let mut full = full.unwrap();
    while full.next_of_layout().is_some() {}
    assert!(full.next_request().unwrap_err().to_string().contains("the store is full"));
    let spec = LsmSpec::parse("lsm=20MiB").unwrap();
    assert!(LsmSource::new(spec, 8 << 20, 1).err().unwrap().to_string().contains("expected a store that fits"));
}
