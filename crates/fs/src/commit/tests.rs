//! Tests of the module `commit`, on a device that notes the order of its commands.
//!
//! Ignored: power cuts, which `tests/filesystem` tries at every command.

use super::*;
use crate::schemes;
use crate::{Counters, FileType, ROOT, Thresholds};
use palimpsest_flash::nand::Flash;

const SHAPE: Shape = Shape {
    channels: 2,
    lanes: 2,
    blocks_per_channel: 32,
    pages_per_block: 8,
    subpages_per_page: 1,
    page_bytes: 512,
    most_active: 0,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Write(u32),
    Barrier,
    Trim(u32),
}

#[derive(Clone)]
struct Noted {
    shape: Shape,
    pages: Vec<Option<Data>>,
    held: Vec<Box<[u8]>>,
    events: Vec<Event>,
}

impl Noted {
    fn new(shape: Shape) -> Self {
        Noted { shape, pages: vec![None; shape.pages() as usize], held: Vec::new(), events: Vec::new() }
    }
}

impl Device for Noted {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn write(&mut self, page: u32, contents: &[Data], _purpose: Purpose) -> Flash<()> {
        let end = (page / self.shape.pages_per_block + 1) * self.shape.pages_per_block;
        assert!(self.pages[page as usize..end as usize].iter().all(Option::is_none), "page {page} is not the next");
        self.pages[page as usize] = Some(contents[0]);
        self.events.push(Event::Write(page));
        Ok(())
    }

    fn read(&mut self, page: u32, _purpose: Purpose, contents: &mut Vec<Data>) -> Flash<bool> {
        contents.extend(self.pages[page as usize]);
        Ok(self.pages[page as usize].is_some())
    }

    fn copy(&mut self, from: u32, to: u32) -> Flash<()> {
        let contents = self.pages[from as usize].expect("a written page");
        self.write(to, &[contents], Purpose::Data)
    }

    fn barrier(&mut self) -> Flash<()> {
        self.events.push(Event::Barrier);
        Ok(())
    }

    fn trim(&mut self, block: u32) -> Flash<()> {
        let first = (block * self.shape.pages_per_block) as usize;
        self.pages[first..first + self.shape.pages_per_block as usize].fill(None);
        self.events.push(Event::Trim(block));
        Ok(())
    }

    fn written(&self, block: u32) -> u32 {
        let first = (block * self.shape.pages_per_block) as usize;
        let pages = &self.pages[first..first + self.shape.pages_per_block as usize];
        pages.iter().rposition(Option::is_some).map_or(0, |last| last as u32 + 1)
    }

    fn hold(&mut self, bytes: &[u8]) -> Vec<Data> {
        self.held.push(bytes.into());
        vec![Data::new(self.held.len() as u64)]
    }

    fn bytes(&self, contents: &[Data]) -> Option<Vec<u8>> {
        self.held.get(contents[0].value.checked_sub(1)? as usize).map(|bytes| bytes.to_vec())
    }

    fn wear(&self, _channel: u32) -> u64 {
        0
    }
}

fn is_anchor(page: u32) -> bool {
    FileSystem::anchors(SHAPE).contains(&(page / SHAPE.pages_per_block))
}

/// Barriers enclose the page that makes a commit valid, and blocks are trimmed only behind it.
fn check_order(events: &[Event]) {
    let mut is_committed = true;
    for (at, &event) in events.iter().enumerate() {
        match event {
            Event::Write(page) if is_anchor(page) => {
                assert_eq!(events[at - 1], Event::Barrier, "before page {page}, {at} of {events:?}");
                assert_eq!(events[at + 1], Event::Barrier, "after page {page}, {at} of {events:?}");
                is_committed = true;
            }
            Event::Write(_) => is_committed = false,
            Event::Trim(block) if is_anchor(block * SHAPE.pages_per_block) => {}
            Event::Trim(block) => assert!(is_committed, "block {block} is trimmed before a commit, {at} of {events:?}"),
            Event::Barrier => {}
        }
    }
}

#[test]
fn a_commit_is_valid_before_anything_is_trimmed() {
    for log in [true, false] {
        let mut device = Noted::new(SHAPE);
        let scheme = schemes::new("rr").expect("a scheme");
        let thresholds = Thresholds { start: 128, gain: 16 };
        let mut filesystem = FileSystem::format(&mut device, thresholds, scheme).expect("room");
        if !log {
            filesystem.disable_log();
        }
        let ino = filesystem.create(&mut device, ROOT, "file", FileType::File).expect("room");
        for round in 0..300u64 {
            let at = round * 37 % 40;
            let byte = round as u8;
            filesystem.write(&mut device, ino, 512 * at, &[byte; 700]).expect("room");
            if round % 3 == 0 {
                filesystem.sync(&mut device).expect("room");
                // A mount trims, and the first file system goes on.
                let mut copy = device.clone();
                let mounted = FileSystem::mount(&mut copy, thresholds, scheme).expect("a commit");
                let found = mounted.read(&mut copy, ino, 512 * at, 700).expect("the file");
                assert_eq!(found, [byte; 700], "round {round}");
                filesystem.check(|block| device.written(block)).expect("equal tables");
            }
        }
        check_order(&device.events);
        let trims = device.events.iter().filter(|event| matches!(event, Event::Trim(_))).count();
        assert!(trims > 50, "{trims} trims");
    }
}

#[test]
fn a_checkpoint_counts_only_whole() {
    let inode = Inode::new(FileType::File, SHAPE.channels);
    let bytes = Checkpoint::encode(SHAPE, 9, &inode);
    assert_eq!(Checkpoint::decode(&bytes, SHAPE).expect("a checkpoint").sequence, 9);
    for bit in 0..8 * (AT_SUM + 8) {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(Checkpoint::decode(&changed, SHAPE).is_none(), "bit {bit}");
    }
    assert!(Checkpoint::decode(&bytes, Shape { lanes: 1, ..SHAPE }).is_none());
}

/// Collection goes on until the gain is reached, and many blocks share each of its commits.
#[test]
fn collection_reaches_its_gain_and_shares_commits() {
    let shape = Shape { blocks_per_channel: 128, ..SHAPE };
    let mut device = Noted::new(shape);
    let scheme = schemes::new("rr").expect("a scheme");
    let thresholds = Thresholds { start: 400, gain: 160 };
    let mut filesystem = FileSystem::format(&mut device, thresholds, scheme).expect("room");
    let ino = filesystem.create(&mut device, ROOT, "file", FileType::File).expect("room");
    let mut rng = palimpsest_flash::rng::Rng::new(3, 0xc011);
    let mut was_collecting = false;
    let mut rounds = 0;
    for step in 0..6000u64 {
        let page = if step < 1000 { step } else { rng.below(1000) };
        filesystem.write(&mut device, ino, 512 * page, &[step as u8; 512]).expect("room");
        let free = filesystem.allocator.free_pages();
        if was_collecting && !filesystem.collecting {
            assert!(free + 16 >= thresholds.start + thresholds.gain, "step {step}: stopped with {free} pages free");
            rounds += 1;
        }
        assert!(filesystem.collecting || free + 16 >= thresholds.start, "step {step}: {free} pages free");
        was_collecting = filesystem.collecting;
    }
    let Counters { collected, commits, .. } = filesystem.counters();
    assert!(rounds > 5 && collected > 8 * commits / 2, "{rounds} rounds, {collected} blocks, {commits} commits");
}
