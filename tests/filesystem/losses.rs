//! Uncorrectable pages of files and of metadata: a mount finds a whole file system without the lost files, or none.

use crate::device::Memory;
use crate::model::{Draw, Operation, apply};
use crate::operations::{Case, check, for_each_seed, is_partial};
use palimpsest_lab::host::fs::{Fault, FileSystem, FileType, ROOT};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Path and bytes of each file by inode; no bytes for unreadable ones.
type Files = BTreeMap<u32, (String, Option<Vec<u8>>)>;

fn files(filesystem: &FileSystem, device: &mut Memory) -> Files {
    let (mut files, mut queue) = (Files::new(), vec![(String::new(), ROOT)]);
    while let Some((path, directory)) = queue.pop() {
        for (name, ino) in filesystem.list(directory).expect("a directory") {
            let path = format!("{path}/{}", String::from_utf8_lossy(name));
            match filesystem.stat(ino).expect("a name leads to an inode") {
                (FileType::Directory, _) => queue.push((path, ino)),
                (FileType::File, size) => {
                    let bytes = match filesystem.read(device, ino, 0, size) {
                        Ok(bytes) => Some(bytes),
                        Err(Fault::Unreadable) => None,
                        Err(fault) => panic!("{path}: {fault:?}"),
                    };
                    files.insert(ino, (path, bytes));
                }
            }
        }
    }
    files
}

/// Mounts with losses, files that survived them, files with another name, lost files, and mounts without a commit.
static SEEN: [AtomicU64; 5] = [const { AtomicU64::new(0) }; 5];

fn count(what: usize, times: u64) {
    SEEN[what].fetch_add(times, Relaxed);
}

/// Cuts the power at each of the next few operations of a mount and of the commit of its repairs.
fn interrupt(case: &Case, device: &mut Memory) {
    for after in 0..device.rng.below(4) {
        device.cut_at = device.operations + 1 + 7 * after + device.rng.below(40);
        let repaired = match case.mount(device) {
            Ok(mut filesystem) => filesystem.repair(device),
            Err(Fault::Unreadable) => case.format(device).map(|_| ()),
            Err(fault) => Err(fault),
        };
        assert!(matches!(repaired, Ok(()) | Err(Fault::Halt(_))), "{repaired:?}");
        device.power_cycle();
    }
}

/// A device with a committed file system after `steps` operations, and the files there.
fn committed(case: &Case, device: &mut Memory, draw: &mut Draw, steps: u64) -> Files {
    let mut filesystem = case.format(device).expect("an empty device can be formatted");
    for _ in 0..steps {
        let operation = draw.next();
        if let Err(fault @ (Fault::Corrupt(_) | Fault::Unreadable | Fault::Halt(_))) =
            apply(&mut filesystem, device, &operation)
        {
            panic!("{operation:?}: {fault:?}");
        }
    }
    filesystem.sync(device).expect("a commit");
    files(&filesystem, device)
}

fn lose(seed: u64) -> u64 {
    let case = Case::new(seed);
    let (mut device, mut draw) = (Memory::new(case.shape, seed), case.draw());
    let steps = 60 + draw.rng.below(120);
    let before = committed(&case, &mut device, &mut draw, steps);
    device.lose([10, 40, 200][(seed % 3) as usize]);
    interrupt(&case, &mut device);
    let mut filesystem = match case.mount(&mut device) {
        Ok(filesystem) => filesystem,
        Err(Fault::Unreadable) => {
            count(4, 1);
            case.format(&mut device).expect("an unreadable device can be formatted")
        }
        Err(fault) => panic!("mount: {fault:?}"),
    };
    check(&filesystem, &device);
    let after = files(&filesystem, &mut device);
    for (ino, (path, bytes)) in &after {
        let (old_path, old) = &before.get(ino).unwrap_or_else(|| panic!("{path} is new"));
        let renamed = path != old_path;
        assert!(!renamed || path.contains('#'), "{old_path} became {path}");
        assert!(bytes.is_none() || bytes == old, "{path} has other contents");
        count(2, renamed.into());
    }
    let has_losses = filesystem.counters().unreadable > 0;
    count(0, has_losses.into());
    count(1, if has_losses { after.len() as u64 } else { 0 });
    count(3, (before.len() - after.len()) as u64);
    // The repairs are durable, and the file system works.
    filesystem.repair(&mut device).expect("a commit");
    let mut filesystem = case.mount(&mut device).expect("repaired metadata");
    assert_eq!(filesystem.counters().unreadable, 0, "all metadata is readable");
    assert_eq!(files(&filesystem, &mut device), after);
    for operation in (0..30).map(|_| draw.next()) {
        match apply(&mut filesystem, &mut device, &operation) {
            Err(fault @ (Fault::Corrupt(_) | Fault::Halt(_))) => panic!("{operation:?}: {fault:?}"),
            // A read, or a partial write of a page, of a lost page.
            Err(Fault::Unreadable) => assert!(!matches!(operation, Operation::Sync)),
            _ => {}
        }
    }
    filesystem.sync(&mut device).expect("a commit");
    check(&case.mount(&mut device).expect("what was committed can be mounted"), &device);
    1
}

#[test]
fn losses_of_metadata_lose_files_and_nothing_else() {
    for_each_seed("losses::losses_of_metadata_lose_files_and_nothing_else", 300, lose);
    let seen = SEEN.each_ref().map(|count| count.load(Relaxed));
    println!("{seen:?}");
    assert!(seen.iter().all(|&count| count > 0) || is_partial(), "{seen:?}");
}

/// Makes each page that a mount reads uncorrectable right after the first read.
fn lose_while_mounting(seed: u64) -> u64 {
    let case = Case::new(seed);
    let (mut device, mut draw) = (Memory::new(case.shape, seed), case.draw());
    let before = committed(&case, &mut device, &mut draw, 40);
    let mut whole = device.clone();
    case.mount(&mut whole).expect("a committed file system can be mounted");
    for after in device.operations + 1..=whole.operations {
        let mut device = device.clone();
        device.lost_after = after;
        let filesystem = case.mount(&mut device).unwrap_or_else(|fault| panic!("operation {after}: {fault:?}"));
        assert_eq!(filesystem.counters().unreadable, 0, "operation {after}");
        assert_eq!(files(&filesystem, &mut device), before, "operation {after}");
    }
    1
}

/// Once wrong: a mount read a record of the log twice, the second read failed, and the mount left out the commit.
#[test]
fn a_page_lost_during_a_mount_brings_no_older_state_back() {
    for_each_seed("losses::a_page_lost_during_a_mount_brings_no_older_state_back", 30, lose_while_mounting);
}

/// Loses the first page of a block of checkpoints, mounts and commits, again and again.
fn lose_checkpoints(seed: u64, seen: &[AtomicU64; 2]) -> u64 {
    let case = Case::new(seed);
    let (mut device, mut draw) = (Memory::new(case.shape, seed), case.draw());
    let steps = 60 + draw.rng.below(120);
    committed(&case, &mut device, &mut draw, steps);
    let mut filesystem = case.mount(&mut device).expect("a committed file system can be mounted");
    let other = if case.shape.channels > 1 { case.shape.blocks_per_channel } else { 1 };
    for _ in 0..8 {
        device.lose_first(if draw.rng.below(2) == 0 { 0 } else { other });
        let mounted = match case.mount(&mut device) {
            Err(Fault::Unreadable) => {
                seen[0].fetch_add(1, Relaxed);
                return 1;
            }
            mounted => mounted.expect("a committed file system can be mounted"),
        };
        assert_eq!(mounted.sequence(), filesystem.sequence());
        seen[1].fetch_add(1, Relaxed);
        filesystem = mounted;
        for value in 0..1 + draw.rng.below(6) {
            filesystem.set_words(&mut device, ROOT, &[(0, value as u32)]).expect("room for a word");
            filesystem.sync(&mut device).expect("a commit");
        }
    }
    1
}

/// Once red: a mount with the first page of a block of checkpoints unreadable made the next commit the first page
/// there, and a later mount did not miss this commit when it was unreadable, too.
#[test]
fn a_mount_finds_the_last_commit_or_none() {
    let seen = [const { AtomicU64::new(0) }; 2];
    for_each_seed("losses::a_mount_finds_the_last_commit_or_none", 60, |seed| lose_checkpoints(seed, &seen));
    assert!(seen.iter().all(|count| count.load(Relaxed) > 0) || is_partial(), "{seen:?}");
}
