//! Several names of a file, files that outlive their last name, names of any bytes, and words of inodes: random
//! operations against a model, with remounts, and a power cut at every operation.

use crate::device::Memory;
use palimpsest_lab::host::fs::device::{Device, Shape};
use palimpsest_lab::host::fs::schemes;
use palimpsest_lab::host::fs::{Done, Fault, FileSystem, FileType, ROOT, Thresholds, WORDS};
use palimpsest_lab::nand::Halt;
use palimpsest_lab::rng::Rng;
use std::collections::BTreeMap;

const SHAPE: Shape = Shape {
    channels: 2,
    lanes: 1,
    blocks_per_channel: 24,
    pages_per_block: 8,
    subpages_per_page: 1,
    page_bytes: 512,
    most_active: 0,
};

#[derive(Clone, Debug, PartialEq, Default)]
struct File {
    bytes: Vec<u8>,
    words: [u32; WORDS],
}

/// Files by number, with the names that they have.
#[derive(Clone, Debug, PartialEq, Default)]
struct Model {
    files: BTreeMap<u32, File>,
    names: BTreeMap<Vec<u8>, u32>,
    /// Open files, which a mount does not find.
    open: Vec<u32>,
}

impl Model {
    fn named(&self, ino: u32) -> u32 {
        self.names.values().filter(|&&other| other == ino).count() as u32
    }

    fn forget(&mut self, ino: u32) {
        if self.named(ino) == 0 && !self.open.contains(&ino) {
            self.files.remove(&ino);
        }
    }

    /// The model after a mount.
    fn mounted(&self) -> Model {
        let mut found = self.clone();
        found.open.clear();
        found.files.retain(|&ino, _| self.named(ino) > 0);
        found
    }

    /// The model of `filesystem`.
    fn of(filesystem: &FileSystem, device: &mut dyn Device) -> Done<Model> {
        let mut model = Model::default();
        let entries: Vec<(Vec<u8>, u32)> = filesystem.list(ROOT)?.map(|(name, ino)| (name.to_vec(), ino)).collect();
        for (name, ino) in entries {
            let size = filesystem.stat(ino)?.1;
            let file = File { bytes: filesystem.read(device, ino, 0, size)?, words: *filesystem.words(ino)? };
            model.files.insert(ino, file);
            model.names.insert(name, ino);
        }
        for &ino in model.files.keys() {
            assert_eq!(filesystem.links(ino)?, model.named(ino));
        }
        Ok(model)
    }
}

#[derive(Debug, Clone)]
enum Step {
    Create(Vec<u8>),
    Link(Vec<u8>, Vec<u8>),
    Unlink(Vec<u8>),
    Rename(Vec<u8>, Vec<u8>),
    Write(Vec<u8>, u64, u8),
    Words(Vec<u8>, usize, u32),
    Truncate(Vec<u8>, u64),
    Open(Vec<u8>),
    Close,
    WriteOpen(u64, u8),
    Sync,
}

fn draw(rng: &mut Rng) -> Step {
    let name =
        |rng: &mut Rng| vec![[b'a', 0xff, b'\n', b'c', 0x80][rng.below(5) as usize]; 1 + 40 * rng.below(2) as usize];
    let (one, other) = (name(rng), name(rng));
    match rng.below(34) {
        0..6 => Step::Create(one),
        6..10 => Step::Link(one, other),
        10..13 => Step::Unlink(one),
        13..16 => Step::Rename(one, other),
        16..20 => Step::Write(one, rng.below(40) * 512, rng.below(255) as u8 + 1),
        20..23 => Step::Words(one, rng.below(WORDS as u64) as usize, rng.below(1 << 32) as u32),
        23 => Step::Truncate(one, rng.below(20_000)),
        24..26 => Step::Open(one),
        26 => Step::Close,
        27 | 28 => Step::WriteOpen(rng.below(40) * 512, rng.below(255) as u8 + 1),
        _ => Step::Sync,
    }
}

/// Does `step` on both sides.
fn both(filesystem: &mut FileSystem, device: &mut Memory, model: &mut Model, step: &Step) -> Done<()> {
    let find = |model: &Model, name: &Vec<u8>| model.names.get(name).copied();
    let write = |filesystem: &mut FileSystem, device: &mut Memory, model: &mut Model, ino, offset: u64, fill: u8| {
        filesystem.write(device, ino, offset, &[fill; 512])?;
        let bytes = &mut model.files.get_mut(&ino).unwrap().bytes;
        let end = offset as usize + 512;
        bytes.resize(bytes.len().max(end), 0);
        bytes[offset as usize..end].fill(fill);
        Ok::<(), Fault>(())
    };
    match step {
        Step::Create(name) => {
            match (filesystem.create_with(device, ROOT, name, FileType::File, &[7, 8]), find(model, name)) {
                (Err(Fault::Exists), Some(_)) => {}
                (Ok(ino), None) => {
                    let mut file = File::default();
                    file.words[..2].copy_from_slice(&[7, 8]);
                    assert!(model.files.insert(ino, file).is_none(), "a number in use is given again");
                    model.names.insert(name.clone(), ino);
                }
                (done, _) => _ = done?,
            }
        }
        Step::Link(name, new) => {
            let Some(ino) = find(model, name) else { return Ok(()) };
            match (filesystem.link(device, ROOT, new, ino), find(model, new)) {
                (Err(Fault::Exists), Some(_)) => {}
                (Ok(()), None) => _ = model.names.insert(new.clone(), ino),
                (done, _) => done?,
            }
        }
        Step::Unlink(name) => match (filesystem.unlink(device, ROOT, name), find(model, name)) {
            (Err(Fault::NotFound), None) => {}
            (done, ino) => {
                done?;
                model.names.remove(name);
                model.forget(ino.expect("what was unlinked was there"));
            }
        },
        Step::Rename(name, new) => match (filesystem.rename(device, ROOT, name, ROOT, new), find(model, name)) {
            (Err(Fault::NotFound), None) => {}
            (done, Some(ino)) => {
                done?;
                if find(model, new) != Some(ino) {
                    model.names.remove(name);
                    if let Some(replaced) = model.names.insert(new.clone(), ino) {
                        model.forget(replaced);
                    }
                }
            }
            (done, None) => panic!("{step:?}: {done:?}"),
        },
        Step::Write(name, offset, fill) => {
            if let Some(ino) = find(model, name) {
                write(filesystem, device, model, ino, *offset, *fill)?;
            }
        }
        Step::WriteOpen(offset, fill) => {
            if let Some(&ino) = model.open.first() {
                write(filesystem, device, model, ino, *offset, *fill)?;
            }
        }
        Step::Words(name, place, value) => {
            if let Some(ino) = find(model, name) {
                filesystem.set_words(device, ino, &[(*place, *value)])?;
                model.files.get_mut(&ino).unwrap().words[*place] = *value;
            }
        }
        Step::Truncate(name, size) => {
            if let Some(ino) = find(model, name) {
                filesystem.truncate(device, ino, *size)?;
                model.files.get_mut(&ino).unwrap().bytes.resize(*size as usize, 0);
            }
        }
        Step::Open(name) => {
            if let Some(ino) = find(model, name).filter(|ino| !model.open.contains(ino)) {
                filesystem.pin(ino);
                model.open.push(ino);
            }
        }
        Step::Close => {
            if let Some(ino) = model.open.pop() {
                filesystem.unpin(device, ino)?;
                model.forget(ino);
            }
        }
        Step::Sync => filesystem.sync(device)?,
    }
    Ok(())
}

fn mount(device: &mut Memory) -> FileSystem {
    device.mounted();
    let filesystem = FileSystem::mount(device, Thresholds { start: 8, gain: 8 }, schemes::new("rr").unwrap()).unwrap();
    filesystem.check(|block| device.written(block)).unwrap();
    filesystem
}

fn format(device: &mut Memory) -> Done<FileSystem> {
    FileSystem::format(device, Thresholds { start: 8, gain: 8 }, schemes::new("rr").unwrap())
}

#[test]
fn names_and_words_with_remounts() {
    let mut orphans = 0;
    for seed in 0..40 {
        let (mut device, mut rng) = (Memory::new(SHAPE, seed), Rng::new(seed, 0x11f));
        let (mut filesystem, mut model) = (format(&mut device).unwrap(), Model::default());
        for number in 0..400 {
            let step = draw(&mut rng);
            match both(&mut filesystem, &mut device, &mut model, &step) {
                Ok(()) => {}
                Err(fault) => panic!("seed {seed}: {step:?}: {fault:?}"),
            }
            if number % 7 == 0 {
                filesystem.check(|block| device.written(block)).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
            }
            if number % 80 == 79 {
                assert_eq!(Model::of(&filesystem, &mut device).unwrap(), model.mounted(), "seed {seed}");
                orphans += model.files.len() - model.mounted().files.len();
                filesystem.sync(&mut device).unwrap();
                filesystem = mount(&mut device);
                model = model.mounted();
                assert_eq!(Model::of(&filesystem, &mut device).unwrap(), model, "seed {seed} after a remount");
            }
        }
    }
    assert!(orphans > 10, "only {orphans} files outlived their names");
}

#[test]
fn names_and_words_after_a_cut_are_no_older_than_the_last_sync() {
    let mut cuts = 0;
    for seed in 0..6 {
        let mut rng = Rng::new(seed, 0x11e);
        let steps: Vec<Step> = (0..200).map(|_| draw(&mut rng)).collect();
        for cut in 1.. {
            let mut device = Memory::new(SHAPE, seed);
            let Ok(mut filesystem) = format(&mut device) else { panic!("it was formatted") };
            device.cut_at = device.operations + cut;
            let mut model = Model::default();
            let mut since = vec![model.clone()];
            let mut is_cut = false;
            for step in &steps {
                match both(&mut filesystem, &mut device, &mut model, step) {
                    Ok(()) => {}
                    Err(Fault::Halt(Halt::PowerCut)) => {
                        // The commit at the end of the step may have been done.
                        device.cut_at = u64::MAX;
                        is_cut = true;
                        break;
                    }
                    Err(fault) => panic!("seed {seed}: {step:?}: {fault:?}"),
                }
                if matches!(step, Step::Sync) {
                    since.clear();
                }
                since.push(model.mounted());
            }
            if !is_cut {
                break;
            }
            cuts += 1;
            device.power_cycle();
            let filesystem = mount(&mut device);
            let found = Model::of(&filesystem, &mut device).unwrap();
            assert!(since.contains(&found), "seed {seed}, cut at {cut}: a state that there was not");
        }
    }
    assert!(cuts > 300, "only {cuts} cuts");
}

#[test]
fn a_directory_does_not_move_below_itself() {
    let mut device = Memory::new(SHAPE, 1);
    let mut filesystem = format(&mut device).unwrap();
    let outer = filesystem.create(&mut device, ROOT, "outer", FileType::Directory).unwrap();
    let inner = filesystem.create(&mut device, outer, "inner", FileType::Directory).unwrap();
    let other = filesystem.create(&mut device, ROOT, "other", FileType::Directory).unwrap();
    assert!(matches!(filesystem.rename(&mut device, ROOT, "outer", inner, "x"), Err(Fault::Invalid)));
    filesystem.rename(&mut device, outer, "inner", other, "inner").unwrap();
    assert_eq!((filesystem.parent(inner).unwrap(), filesystem.parent(ROOT).unwrap()), (other, ROOT));
    filesystem.sync(&mut device).unwrap();
    let mut filesystem = mount(&mut device);
    assert_eq!(filesystem.parent(inner).unwrap(), other);
    filesystem.rename(&mut device, ROOT, "outer", inner, "x").unwrap();
    assert!(matches!(filesystem.rename(&mut device, ROOT, "other", outer, "x"), Err(Fault::Invalid)));
}
