//! Random operations, remounts, and a power cut at every operation of the device.

use crate::device::Memory;
use crate::model::{Draw, Operation, Tree, apply, refusal};
use palimpsest_lab::host::fs::device::Shape;
use palimpsest_lab::host::fs::schemes::{self, SCHEMES};
use palimpsest_lab::host::fs::{Fault, FileSystem, Thresholds};
use palimpsest_lab::nand::Halt;
use palimpsest_lab::rng::Rng;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Runs `case` with seeds 0 to `seeds`; returns the sum of all counts.
pub fn for_each_seed(test: &str, seeds: u64, case: impl Fn(u64) -> u64) -> u64 {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let range = match number("MODEL_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("MODEL_CASES").unwrap_or(seeds),
    };
    let mut counted = 0;
    for seed in range {
        counted += catch_unwind(AssertUnwindSafe(|| case(seed))).unwrap_or_else(|panic| {
            let what = panic.downcast_ref::<String>().map(String::as_str);
            let what = what.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("?");
            panic!(
                "{what}\nrepeat with: MODEL_SEED={seed} cargo test -p palimpsest-lab --test filesystem -- \
                 --exact {test}"
            )
        });
    }
    counted
}

pub struct Case {
    pub shape: Shape,
    thresholds: Thresholds,
    scheme: &'static str,
    seed: u64,
    large: u64,
    /// Whether single pages are trimmed.
    discards: bool,
    /// Whether commits write a log.
    logs: bool,
}

impl Case {
    pub fn new(seed: u64) -> Case {
        let mut rng = Rng::new(seed, 0xf5);
        let mut pick = |choices: &[u32]| choices[rng.below(choices.len() as u64) as usize];
        let (channels, lanes) = (pick(&[1, 2, 3, 8]), pick(&[1, 1, 2]));
        let pages_per_block = pick(&[4, 8, 16]);
        let blocks = channels * (lanes + 1) + 12 + 2 + 8 + pick(&[0, 10, 60]);
        let shape = Shape {
            channels,
            lanes,
            blocks_per_channel: (blocks / channels + 1).next_multiple_of(lanes),
            pages_per_block,
            subpages_per_page: pick(&[1, 1, 4]),
            page_bytes: 512,
            most_active: 0,
        };
        let pages = u64::from(shape.pages());
        let part = u64::from(pick(&[0, 3, 10]));
        let scheme = SCHEMES[rng.below(SCHEMES.len() as u64) as usize].name;
        let large = (FileSystem::capacity(shape).max(8) as u64 / 3).min(300) * 512;
        let discards = rng.below(2) == 0;
        // Another source of random numbers, so that the drives of each seed stay as they were.
        let mut other = Rng::new(seed, 0xac7);
        let most_active = if discards || other.below(2) == 0 { 0 } else { channels + 3 + other.below(9) as u32 };
        Case {
            shape: Shape { most_active, ..shape },
            thresholds: Thresholds { start: pages * part / 100, gain: pages * part / 100 },
            scheme,
            seed,
            large,
            discards,
            logs: rng.below(4) > 0,
        }
    }

    pub fn draw(&self) -> Draw {
        let far = [40 * 512, 300 * 512];
        Draw { rng: Rng::new(self.seed, 0xd4a), page: 512, large: self.large, far }
    }

    fn scheme(&self) -> &'static schemes::Scheme {
        schemes::new(self.scheme).expect("a scheme of the registry")
    }

    pub fn format(&self, device: &mut Memory) -> Result<FileSystem, Fault> {
        FileSystem::format(device, self.thresholds, self.scheme()).map(|filesystem| self.prepared(filesystem))
    }

    pub fn mount(&self, device: &mut Memory) -> Result<FileSystem, Fault> {
        device.mounted();
        FileSystem::mount(device, self.thresholds, self.scheme()).map(|filesystem| self.prepared(filesystem))
    }

    fn prepared(&self, mut filesystem: FileSystem) -> FileSystem {
        if self.discards {
            filesystem.enable_page_trims();
        }
        if !self.logs {
            filesystem.disable_log();
        }
        filesystem
    }
}

pub fn check(filesystem: &FileSystem, device: &Memory) {
    use palimpsest_lab::host::fs::device::Device;
    filesystem.check(|block| device.written(block)).unwrap_or_else(|what| panic!("check: {what}"));
}

/// Runs `operation` on both sides, which must agree. False if the file system was full and had to stay unchanged.
fn both(
    filesystem: &mut FileSystem,
    device: &mut Memory,
    tree: &mut Tree,
    operation: &Operation,
) -> Result<bool, Halt> {
    let mut after = tree.clone();
    let wanted = after.apply(operation);
    match apply(filesystem, device, operation) {
        Ok(bytes) => {
            assert!(wanted.as_ref() == Ok(&bytes), "{operation:?}: {wanted:?} expected");
            *tree = after;
            Ok(true)
        }
        Err(Fault::Halt(halt)) => Err(halt),
        Err(Fault::Full) => Ok(false),
        Err(fault) => {
            let refused = refusal(&fault).unwrap_or_else(|| panic!("{operation:?}: {fault:?}"));
            assert_eq!(wanted, Err(refused), "{operation:?}");
            Ok(true)
        }
    }
}

/// Commits by the log in [`remounted`], over all seeds.
static LOGGED: AtomicU64 = AtomicU64::new(0);

/// Random operations with remounts. Returns the number of cleaned blocks.
fn remounted(seed: u64, steps: u32) -> u64 {
    let case = Case::new(seed);
    let (mut device, mut draw, mut tree) = (Memory::new(case.shape, seed), case.draw(), Tree::default());
    let mut filesystem = case.format(&mut device).expect("an empty device can be formatted");
    let mut cleaned = 0;
    for step in 0..steps {
        let operation = draw.next();
        for channel in 0..case.shape.channels {
            device.reading[channel as usize] = draw.rng.below(3) == 0;
        }
        let done = both(&mut filesystem, &mut device, &mut tree, &operation).expect("no power cut");
        if !done {
            // Full: a write may have been done in part. The reference becomes the tree of the file system, if that is
            // consistent.
            tree = Tree::of(&filesystem, &mut device).expect("a tree");
            if let Some(path) = tree.0.iter().rfind(|entry| entry.1.is_some()).map(|entry| entry.0.clone()) {
                both(&mut filesystem, &mut device, &mut tree, &Operation::Unlink(path)).expect("no power cut");
            }
        }
        if step % 5 == 0 {
            check(&filesystem, &device);
        }
        if step % 40 == 39 {
            cleaned += filesystem.counters().collected;
            filesystem.sync(&mut device).expect("a commit");
            LOGGED.fetch_add(filesystem.counters().logged, Relaxed);
            filesystem = case.mount(&mut device).expect("what was committed can be mounted");
            check(&filesystem, &device);
            assert!(Tree::of(&filesystem, &mut device).expect("a tree") == tree, "after a remount");
        }
    }
    assert!(Tree::of(&filesystem, &mut device).expect("a tree") == tree, "at the end");
    cleaned + filesystem.counters().collected
}

/// Cuts the power at operation `cut`; afterwards the tree must be the tree of a commit, no older than the last sync.
/// False if the run ended before.
fn cut_once(case: &Case, operations: &[Operation], cut: u64, again: u64) -> bool {
    let mut device = Memory::new(case.shape, case.seed);
    device.cut_at = cut;
    let mut filesystem = match case.format(&mut device) {
        Ok(filesystem) => filesystem,
        Err(Fault::Halt(Halt::PowerCut)) => return true,
        Err(fault) => panic!("{fault:?}"),
    };
    let mut tree = Tree::default();
    // Operations since the last complete sync, each with the tree before it: any of them may have committed.
    let mut since: Vec<(Tree, &Operation)> = Vec::new();
    let mut interrupted = None;
    for operation in operations {
        since.push((tree.clone(), operation));
        match both(&mut filesystem, &mut device, &mut tree, operation) {
            Ok(true) => {}
            Ok(false) => tree = device.without_cuts(|device| Tree::of(&filesystem, device)).expect("a tree"),
            Err(_) => {
                interrupted = Some(operation);
                break;
            }
        }
        if matches!(operation, Operation::Sync) {
            since.clear();
        }
    }
    let Some(interrupted) = interrupted else { return false };
    // A second power cut during the mount.
    device.power_cycle();
    if again > 0 {
        device.cut_at = device.operations + again;
        let _ = case.mount(&mut device);
        device.power_cycle();
    }
    let mut filesystem = case.mount(&mut device).unwrap_or_else(|fault| panic!("mount: {fault:?}"));
    check(&filesystem, &device);
    let found = Tree::of(&filesystem, &mut device).expect("a tree");
    let known = since.iter().any(|(tree, operation)| between(&found, tree, operation));
    assert!(known, "cut at {cut} in {interrupted:?}: the tree is none that there was since the last sync");
    // The file system works afterwards.
    let mut tree = found;
    for operation in operations.iter().take(15) {
        if !both(&mut filesystem, &mut device, &mut tree, operation).expect("no power cut") {
            tree = Tree::of(&filesystem, &mut device).expect("a tree");
        }
    }
    check(&filesystem, &device);
    filesystem.sync(&mut device).expect("a commit");
    let filesystem = case.mount(&mut device).expect("what was committed can be mounted");
    assert!(Tree::of(&filesystem, &mut device).expect("a tree") == tree, "after the cut and a remount");
    true
}

/// Whether the environment selects a part of the seeds.
pub fn is_partial() -> bool {
    ["MODEL_SEED", "MODEL_CASES"].iter().any(|name| std::env::var_os(name).is_some())
}

/// Whether `found` is `tree`, or `tree` after `operation`, or, for a write or truncation with a commit in the middle, a
/// mixture: each page of the file old or new.
fn between(found: &Tree, tree: &Tree, operation: &Operation) -> bool {
    let mut after = tree.clone();
    if found == tree || (after.apply(operation).is_ok() && *found == after) {
        return true;
    }
    let path = match operation {
        Operation::Write(path, ..) | Operation::Truncate(path, _) => path,
        _ => return false,
    };
    let file = |tree: &Tree| tree.0.get(path).cloned().flatten();
    let (Some(old), Some(new), Some(got)) = (file(tree), file(&after), file(found)) else { return false };
    let page = |bytes: &[u8], at: usize| {
        let mut page = bytes.get(at * 512..).map(|rest| rest[..rest.len().min(512)].to_vec()).unwrap_or_default();
        page.resize(512, 0);
        page
    };
    let pages = old.len().max(new.len()).max(got.len()).div_ceil(512);
    let each = (0..pages).all(|at| {
        // The length changes after the pages: bytes beyond the old end are invisible until then.
        let mut cut_off = page(&new, at);
        cut_off[got.len().saturating_sub(at * 512).min(512)..].fill(0);
        let got = page(&got, at);
        got == page(&old, at) || got == page(&new, at) || got == cut_off
    });
    let mut rest = found.clone();
    rest.0.insert(path.clone(), Some(old.clone()));
    each && (got.len() == old.len() || got.len() == new.len()) && rest == *tree
}

fn cut_everywhere(seed: u64, steps: usize, stride: u64) -> u64 {
    let case = Case::new(seed);
    let mut draw = case.draw();
    let operations: Vec<Operation> = (0..steps).map(|_| draw.next()).collect();
    let mut cut = 1 + seed % stride;
    let mut cuts = 0;
    let mut rng = Rng::new(seed, 0xca7);
    while cut_once(&case, &operations, cut, rng.below(3) * rng.below(20)) {
        cut += stride;
        cuts += 1;
    }
    cuts
}

/// Fills most of the device and cuts the power `rounds` times, often before a commit has ended: each cut may waste the
/// pages of the commit. Afterwards removed files must free space again.
fn cut_again_and_again(seed: u64, rounds: u32) -> u64 {
    let case = Case::new(seed);
    let (mut device, mut draw) = (Memory::new(case.shape, seed), case.draw());
    let mut filesystem = case.format(&mut device).expect("an empty device can be formatted");
    for _ in 0..150 {
        let _ = apply(&mut filesystem, &mut device, &draw.next());
    }
    let fill = || "/fill".to_owned();
    let page_at = |page: u64, byte: u8| Operation::Write(fill(), page * 512, vec![byte; 512]);
    let _ = apply(&mut filesystem, &mut device, &Operation::Create(fill()));
    let mut pages = 0;
    while apply(&mut filesystem, &mut device, &page_at(pages, 7)).is_ok() {
        pages += 1;
    }
    if pages < u64::from(case.shape.pages()) / 8 {
        // The drawn operations have filled the device.
        return 0;
    }
    let left = pages * (70 + draw.rng.below(25)) / 100;
    let _ = apply(&mut filesystem, &mut device, &Operation::Truncate(fill(), left * 512));
    filesystem.sync(&mut device).expect("a commit");
    let spread = 4 + draw.rng.below(60);
    for _ in 0..rounds {
        device.cut_at = device.operations + 1 + draw.rng.below(spread);
        loop {
            let operation = match draw.next() {
                Operation::Unlink(_) | Operation::Truncate(..) => {
                    page_at(draw.rng.below(left.max(1)), draw.rng.below(255) as u8)
                }
                operation => operation,
            };
            if matches!(apply(&mut filesystem, &mut device, &operation), Err(Fault::Halt(_))) {
                break;
            }
        }
        device.power_cycle();
        filesystem = case.mount(&mut device).unwrap_or_else(|fault| panic!("mount: {fault:?}"));
        check(&filesystem, &device);
    }
    filesystem.sync(&mut device).expect("a commit after the cuts");
    for operation in
        [Operation::Unlink(fill()), Operation::Sync, Operation::Create(fill()), page_at(0, 1), Operation::Sync]
    {
        apply(&mut filesystem, &mut device, &operation).unwrap_or_else(|fault| panic!("{operation:?}: {fault:?}"));
    }
    u64::from(rounds)
}

/// Once red (seeds 22, 24 and 71): a commit took all pages that a cleaned block freed. A block of metadata was cleaned
/// again and again, because only the commit moves metadata. The file system stayed full, with more than a block of
/// empty pages.
#[test]
fn cuts_one_after_the_other_leave_space() {
    let cuts =
        for_each_seed("operations::cuts_one_after_the_other_leave_space", 80, |seed| cut_again_and_again(seed, 60));
    assert!(cuts > 70 * 60 || is_partial(), "{cuts}: most have room for the file");
}

#[test]
#[ignore = "minutes"]
fn long_cuts_one_after_the_other() {
    let test = "operations::long_cuts_one_after_the_other --ignored";
    let cuts = for_each_seed(test, 2000, |seed| cut_again_and_again(seed + 1000, 300));
    assert!(cuts > 1800 * 300 || is_partial(), "{cuts}: most have room for the file");
}

#[test]
fn random_operations_with_remounts() {
    let cleaned = for_each_seed("operations::random_operations_with_remounts", 160, |seed| remounted(seed, 400));
    let logged = LOGGED.load(Relaxed);
    assert!(
        (cleaned > 100 && logged > 500) || std::env::var("MODEL_SEED").is_ok(),
        "only {cleaned} blocks were cleaned, only {logged} commits wrote the log"
    );
}

#[test]
fn a_cut_at_every_operation() {
    let cuts = for_each_seed("operations::a_cut_at_every_operation", 20, |seed| cut_everywhere(seed, 100, 1));
    assert!(cuts > 500, "only {cuts} cuts");
}

#[test]
fn cuts_of_longer_lives() {
    for_each_seed("operations::cuts_of_longer_lives", 24, |seed| cut_everywhere(seed + 100, 400, 97));
}

#[test]
#[ignore = "minutes"]
fn long_random_operations_with_remounts() {
    for_each_seed("operations::long_random_operations_with_remounts --ignored", 3000, |seed| {
        remounted(seed + 1000, 600)
    });
}

#[test]
#[ignore = "minutes"]
fn long_cuts() {
    for_each_seed("operations::long_cuts --ignored", 200, |seed| cut_everywhere(seed + 1000, 120, 1));
    for_each_seed("operations::long_cuts --ignored", 400, |seed| cut_everywhere(seed + 5000, 500, 29));
}
