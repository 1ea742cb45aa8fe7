//! The fuzz target of images, shared by the fuzzer and the test of seeded changes.
//!
//! The input is a list of changes of a small valid image, or, if it begins as one, an image. Inspection and service of
//! any input must end in a message or a drive. Unless a change adjusted a checksum, each readable sector must have its
//! former content. Ignored: crashes of the machine.

use super::{Keep, length_of, resolve_to_keep};
use crate::config::Resolved;
use crate::run::precondition::Precondition;
use crate::run::served::{Failure, Served};
use crate::run::{Fidelity, Options, Warmup};
use palimpsest_flash::command::Command;
use palimpsest_flash::geometry::{Extent, RequestKind};
use palimpsest_flash::nand::data::Payload;
use palimpsest_flash::nand::image::Medium;
use palimpsest_flash::nand::image::inspect::{Look, inspect};
use palimpsest_flash::nand::image::layout::{Header, Layout, MAGIC, PAGE, Shape};
use palimpsest_flash::nand::image::memory::Memory;
use palimpsest_flash::nand::image::record::{MARK_BYTES, record_bytes};
use palimpsest_flash::rng::Rng;
use palimpsest_flash::units::SECTOR_BYTES;
use std::ops::ControlFlow;
use std::sync::OnceLock;

/// Bytes of a change.
pub const CHANGE: usize = 8;

/// Layers whose images are changed.
const LAYERS: [&str; 3] = ["page", "subpage", "mga"];

struct Whole {
    resolved: Resolved,
    memory: Memory,
    sectors: Vec<u8>,
}

fn options() -> Options {
    Options {
        workload: "served".into(),
        precondition: Precondition::None,
        requests: None,
        warmup: Warmup::Requests(0),
        fidelity: Fidelity::Count,
        payload: Payload::Bytes,
        seed: 1,
        series: false,
        operations: None,
        strict: false,
    }
}

fn whole_image(layer: usize) -> &'static Whole {
    static IMAGES: [OnceLock<Whole>; LAYERS.len()] = [const { OnceLock::new() }; LAYERS.len()];
    IMAGES[layer].get_or_init(|| {
        let set = [
            "ssd.channels=1",
            "ssd.planes_per_die=1",
            "ssd.chips_per_channel=1",
            "ssd.blocks_per_plane=16",
            "part.pages_per_block=8",
            "ssd.over_provisioning=100%",
            "ftl.gc_start=2 blocks",
            "ftl.gc_stop=3 blocks",
        ];
        let set = set.map(String::from);
        let (resolved, _) = resolve_to_keep("mga-8k", Some(LAYERS[layer]), &set, &|_| unreachable!()).expect("a drive");
        let memory = Memory::new(length_of(&resolved).expect("a drive that an image can hold"));
        let (options, mut watcher) = (options(), |_| ControlFlow::Continue(()));
        let mut served =
            Served::keep(&resolved, &options, Some(keep(&memory, true)), &mut watcher).expect("a new image");
        let (mut rng, mut sectors) = (Rng::new(3, layer as u64), vec![0; served.bytes() as usize]);
        for _ in 0..120 {
            let all = sectors.len() as u64 / SECTOR_BYTES;
            let sector = rng.below(all);
            let extent = Extent { sector, sectors: (1 + rng.below(20)).min(all - sector) as u32 };
            let mut bytes: Vec<u8> =
                (0..extent.sectors as usize * SECTOR_BYTES as usize).map(|_| rng.below(256) as u8).collect();
            sectors[(sector * SECTOR_BYTES) as usize..][..bytes.len()].copy_from_slice(&bytes);
            served.write(Command::new(RequestKind::Write, extent), &mut bytes, 0).expect("a drive that works");
        }
        served.finish().expect("a drive that works");
        Whole { resolved, memory, sectors }
    })
}

fn keep(memory: &Memory, is_new: bool) -> Keep {
    Keep { medium: Box::new(memory.clone()), name: "drive.pal".into(), is_new, syncs: false, uuid: [1; 16] }
}

/// Passes `length` bytes from `at` on to `change`, adjusts their checksum, and writes them.
fn lie(memory: &Memory, at: u64, length: usize, change: impl FnOnce(&mut [u8])) {
    let mut bytes = vec![0; length];
    if memory.read(at, &mut bytes).is_err() {
        return;
    }
    change(&mut bytes[4..]);
    let sum = crc32fast::hash(&bytes[4..]);
    bytes[..4].copy_from_slice(&sum.to_le_bytes());
    let _ = memory.write(at, &bytes);
}

/// Makes one change; returns whether it adjusted a checksum.
fn change(memory: &Memory, layout: &Layout, header: &Header, change: &[u8]) -> bool {
    let number = u64::from(u16::from_le_bytes([change[1], change[2]]));
    let (place, value) = (u64::from(u16::from_le_bytes([change[3], change[4]])), change[5]);
    let word = u32::from_le_bytes([change[4], change[5], change[6], change[7]]);
    let pieces = memory.pieces();
    let piece = pieces.get(number as usize % pieces.len().max(1)).copied().unwrap_or(0);
    let shape = layout.shape;
    let page = (number % (u64::from(shape.blocks) * u64::from(shape.pages_per_block))) as u32;
    match change[0] % 8 {
        0 => memory.change(piece + place % PAGE, |byte| byte ^ 1 << (value % 8)),
        1 => memory.change(piece + place % PAGE, |_| value),
        2 => drop(memory.punch(piece..piece + PAGE)),
        3 => memory.resize(layout.end.saturating_sub(place * 4096)),
        4 => {
            // A header with any counts and a correct checksum.
            let field = |index: u64, old: u32| if place % 8 == index { word } else { old };
            let Shape { blocks, pages_per_block, subpages, subpage_bytes, spare_bytes, level_bytes } = shape;
            let shape = Shape {
                blocks: field(0, blocks),
                pages_per_block: field(1, pages_per_block),
                subpages: field(2, subpages),
                subpage_bytes: field(3, subpage_bytes),
                spare_bytes: field(4, spare_bytes),
                level_bytes: field(5, level_bytes),
            };
            let header = Header { shape, text_bytes: field(6, header.text_bytes), ..header.clone() };
            let _ = memory.write(0, &header.bytes());
            if let (1, Some(layout)) = (value & 1, Layout::new(shape)) {
                memory.resize(layout.end);
            }
            return true;
        }
        5 => lie(memory, layout.mark(page % shape.blocks, change[3] as u32), MARK_BYTES as usize, |mark| {
            mark[place as usize % (MARK_BYTES as usize - 4)] = value;
        }),
        6 => {
            let length = 52 + 28 * shape.subpages as usize;
            debug_assert!(length as u64 <= record_bytes(shape.subpages));
            lie(memory, layout.record(page, change[6]), length, |record| record[place as usize % (length - 4)] = value);
        }
        _ => {
            // A copy of another valid record.
            let mut record = vec![0; record_bytes(shape.subpages) as usize];
            let pages = u64::from(shape.blocks) * u64::from(shape.pages_per_block);
            let _ = memory.read(layout.record(page, change[6]), &mut record);
            let _ = memory.write(layout.record((place % pages) as u32, change[7]), &record);
        }
    }
    change[0] % 8 >= 4
}

/// Changes an image by `bytes`, or uses `bytes` as an image; then inspects and serves the image. Must not panic.
pub fn fuzz_image(bytes: &[u8]) {
    let (layer, changes) =
        bytes.split_first().map_or((0, bytes), |(&first, rest)| (usize::from(first) % LAYERS.len(), rest));
    let Whole { resolved, memory, sectors } = whole_image(layer);
    let (memory, mut lies) = (memory.copy(), false);
    if bytes.starts_with(&MAGIC[..8]) {
        let whole = Memory::new(bytes.len() as u64);
        let _ = whole.write(0, bytes);
        look_and_serve(&whole, resolved, None);
        return;
    }
    let mut page = vec![0; PAGE as usize];
    memory.read(0, &mut page).expect("an image has a header");
    let (header, layout) = Header::read(&page, layout_end(&memory)).expect("an image that is whole");
    for one in changes.chunks_exact(CHANGE).take(24) {
        lies |= change(&memory, &layout, &header, one);
    }
    look_and_serve(&memory, resolved, (!lies).then_some(sectors));
}

fn layout_end(memory: &Memory) -> u64 {
    memory.length().expect("memory has a length")
}

fn look_and_serve(memory: &Memory, resolved: &Resolved, sectors: Option<&[u8]>) {
    for look in [Look::Records, Look::Everything, Look::Compact] {
        let _ = inspect(&memory.copy(), look);
    }
    let (options, mut watcher) = (options(), |_| ControlFlow::Continue(()));
    let Ok(mut served) = Served::keep(resolved, &options, Some(keep(memory, false)), &mut watcher) else { return };
    for sector in 0..served.bytes() / SECTOR_BYTES {
        let mut bytes = Vec::new();
        match served.read(Extent { sector, sectors: 1 }, &mut bytes) {
            Ok(()) => {
                let expected =
                    sectors.map(|sectors| &sectors[(sector * SECTOR_BYTES) as usize..][..SECTOR_BYTES as usize]);
                assert!(expected.is_none_or(|expected| expected == bytes), "sector {sector} holds what was not there");
            }
            Err(Failure::Drive(_)) => return,
            Err(_) => {}
        }
    }
}
