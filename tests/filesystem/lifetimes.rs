//! The hints that the device gets, and the stream that a layer chooses by them.

use crate::device::Memory;
use palimpsest_lab::command::{Directives, Lifetime};
use palimpsest_lab::config::resolve;
use palimpsest_lab::geometry::Extent;
use palimpsest_lab::host::fs::device::Shape;
use palimpsest_lab::host::fs::{FileSystem, FileType, ROOT, Thresholds, schemes};
use palimpsest_lab::log::streams::StreamChooser;

const SHAPE: Shape = Shape {
    channels: 2,
    lanes: 1,
    blocks_per_channel: 120,
    pages_per_block: 16,
    subpages_per_page: 1,
    page_bytes: 512,
    most_active: 0,
};
const THRESHOLDS: Thresholds = Thresholds { start: 100, gain: 100 };

fn rr() -> &'static schemes::Scheme {
    schemes::new("rr").expect("a scheme of the registry")
}

fn format(device: &mut Memory) -> FileSystem {
    let mut filesystem = FileSystem::format(device, THRESHOLDS, rr()).expect("an empty device");
    filesystem.enable_hints();
    filesystem
}

/// Writes page `page` of `ino`; returns the hint that the device got.
fn write(filesystem: &mut FileSystem, device: &mut Memory, ino: u32, page: u64) -> Lifetime {
    filesystem.write(device, ino, page * 512, &[1; 512]).expect("room");
    device.hint
}

/// A log of four pages is overwritten in turn; a film only grows. The file system learns that the log is hot and the
/// film cold, even after a mount, which starts without history.
#[test]
fn a_log_becomes_hot_and_a_film_cold() {
    let mut device = Memory::new(SHAPE, 1);
    let mut filesystem = format(&mut device);
    let settings = ["ftl.classifier=hint", "ftl.streams=3"].map(String::from);
    let drive =
        resolve("tlc-32g", Some("fs-subpage"), &settings, &|_| unreachable!("a preset")).expect("a drive").drive;
    let [log, film] =
        ["log", "film"].map(|name| filesystem.create(&mut device, ROOT, name, FileType::File).expect("room"));
    let mut chooser = StreamChooser::new(&drive.ftl, 1, 1);
    for mounts in 0..2u64 {
        let mut streams = [[0u32; 2]; 2];
        for turn in 0..600u64 {
            let writes = [(log, turn % 4), (film, mounts * 600 + turn)];
            for (place, (ino, page)) in writes.into_iter().enumerate() {
                let hint = write(&mut filesystem, &mut device, ino, page);
                let directives = Directives { lifetime: hint, ..Directives::NONE };
                let stream = chooser.stream_of(Extent { sector: 0, sectors: 1 }, directives);
                streams[place][stream as usize] += u32::from(turn >= 100);
            }
        }
        let [[hot_log, _], [_, cold_film]] = streams;
        assert!(hot_log >= 475 && cold_film >= 475, "after {mounts} mounts, of 500: {streams:?} (hot, cold)");
        filesystem.sync(&mut device).expect("a commit");
        device.mounted();
        filesystem = FileSystem::mount(&mut device, THRESHOLDS, rr()).expect("what was committed");
        filesystem.enable_hints();
    }
}

/// Creating and removing directories does not change the hints of files.
#[test]
fn directories_do_not_change_hints() {
    let hint_after = |directories: u32| {
        let mut device = Memory::new(SHAPE, 1);
        let mut filesystem = format(&mut device);
        let old = filesystem.create(&mut device, ROOT, "old", FileType::File).expect("room");
        (0..20).for_each(|turn| _ = write(&mut filesystem, &mut device, old, turn % 5));
        for _ in 0..directories {
            let directory = filesystem.create(&mut device, ROOT, "directory", FileType::Directory).expect("room");
            filesystem.create(&mut device, directory, "file", FileType::File).expect("room");
            filesystem.sync(&mut device).expect("room");
            filesystem.unlink(&mut device, directory, "file").expect("it is there");
            filesystem.remove_directory(&mut device, ROOT, "directory").expect("it is empty");
        }
        let new = filesystem.create(&mut device, ROOT, "new", FileType::File).expect("room");
        write(&mut filesystem, &mut device, new, 0)
    };
    assert!(matches!(hint_after(0), Lifetime::Pages(1..)), "{:?}", hint_after(0));
    assert_eq!(hint_after(30), hint_after(0));
}
