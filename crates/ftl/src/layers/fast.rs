//! `fast`: fully associative sector translation (Lee et al. 2007).
//!
//! As in [`super::bast`], a page is written to the fixed place in the data block while that is free, and an overwrite
//! goes to a log block. One log block takes sequential overwrites (SW): it begins with the first page of a logical
//! block and belongs to that block. The others (RW) take the pages of all logical blocks, one after the other. When
//! they are full, the oldest is the victim. Each logical block with a valid page there is merged fully, from all log
//! blocks, and the victim is erased. So a victim costs one merge per logical block with valid pages there, at least one
//! page each.
//!
//! An overwrite of the first page of a logical block merges the SW log block and begins a new one. A later overwrite of
//! the same logical block is appended if next in order. Else the SW log block is merged, and the page goes to the RW
//! log blocks.
//!
//! Source: S.-W. Lee, D.-J. Park, T.-S. Chung, D.-H. Lee, S. Park, H.-J. Song, "A log buffer-based flash translation
//! layer using fully-associative sector translation", ACM TECS 6(3), 2007; docs/systems.md, "fast". Ignored: as in
//! [`crate::hybrid`].

use crate::hybrid::cached::log_blocks;
use crate::hybrid::{BlockMap, Hybrid, HybridSettings, LOG_BLOCKS, LogBlocks};
use crate::log::pace::MERGES;
use crate::log::settings::{CACHE, FIXED_CACHE, LEVELING, READ, keys_of};
use palimpsest_flash::nand::{Flash, Halt};
use palimpsest_ftl_api::plan::Io;
use palimpsest_ftl_api::{Entry, Model, Unfit};
use std::collections::VecDeque;

pub const ENTRY: Entry = Entry {
    name: "fast",
    about: "block map, overwrites in log blocks of all logical blocks and one for sequential overwrites",
    keys: || keys_of(&[LOG_BLOCKS, LEVELING, READ, CACHE, FIXED_CACHE]),
    reserved: |settings, geometry| log_blocks(settings, geometry, 1).1,
    reserved_key: "ftl.log_blocks",
    word_lines: true,
    outlives_dies: true,
    takes_parity: true,
    superblocks: true,
    reasons: &[("ftl.gc_pace", MERGES)],
    check: |proposal| match HybridSettings::new(proposal.settings).log_blocks {
        1 => Err(Unfit::new(&["ftl.log_blocks"], "one log block takes sequential writes alone; expected 2 at least")),
        _ => Ok(()),
    },
    model: Model {
        needs: &["ftl.log_blocks=2"],
        varies: |rng, _| vec![format!("ftl.log_blocks={}", 2 + rng.below(4))],
        ..Model::ANY
    },
    build: |io, blueprint| {
        let most = log_blocks(&blueprint.settings, io.geometry(), 1).0;
        Box::new(Hybrid::new(io, blueprint, Fast::new(io, most), most))
    },
    ..Entry::PLAIN
};

#[derive(Default)]
struct Logs {
    /// The SW log block, and the logical block that owns it.
    sequential: Option<(u32, u32)>,
    /// The RW log blocks, oldest first.
    random: VecDeque<u32>,
}

palimpsest_flash::state!(Logs { sequential, random });

struct Fast {
    /// The most RW log blocks of a plane.
    most: usize,
    logs: Vec<Logs>,
}

palimpsest_flash::state!(Fast { logs } built { most });

impl Fast {
    fn new(io: &Io, most: u32) -> Self {
        Fast { most: most as usize - 1, logs: (0..io.geometry().planes()).map(|_| Logs::default()).collect() }
    }

    /// Merges the oldest RW log block of `plane`, else the SW log block.
    fn make_room(&mut self, map: &mut BlockMap, io: &mut Io, plane: usize) -> Flash<()> {
        if let Some(victim) = self.logs[plane].random.pop_front() {
            return self.clean(map, io, victim);
        }
        let (log, owner) = self.logs[plane].sequential.take().ok_or(Halt::NoSpace)?;
        map.merge(io, owner, Some(log))
    }

    /// Merges every logical block with a valid page in the RW log block `victim`, and erases the victim.
    fn clean(&mut self, map: &mut BlockMap, io: &mut Io, victim: u32) -> Flash<()> {
        for ppn in map.physical_pages(victim) {
            // A victim of a die that has failed meanwhile keeps its pages.
            if let Some(page) = map.valid_in(io, ppn).filter(|_| !map.is_lost(victim)) {
                let (block, _) = map.split(page);
                let log = self.take(map, block);
                map.merge(io, block, log)?;
            }
        }
        map.release(io, victim)
    }
}

impl LogBlocks for Fast {
    const SHARED: bool = true;

    fn place(&mut self, map: &mut BlockMap, io: &mut Io, page: u32) -> Flash<u32> {
        let (block, place) = map.split(page);
        loop {
            let plane = map.plane(block);
            if let Some(ppn) = map.in_place(io, page) {
                return Ok(ppn);
            }
            let (room, Logs { sequential, random }) = (map.has_room(plane), &mut self.logs[plane]);
            if !map.has_data(block) {
                if room { map.open_data(io, block)? } else { self.make_room(map, io, plane)? }
            } else if let Some((log, owner)) = sequential.filter(|&(_, owner)| place == 0 || owner == block) {
                match map.next_page(io, log).filter(|&ppn| owner == block && map.split(ppn).1 == place) {
                    Some(ppn) => return Ok(ppn),
                    None => *sequential = None,
                }
                map.merge(io, owner, Some(log))?;
            } else if place == 0 && room {
                *sequential = Some((map.take(io, plane)?, block));
            } else if let Some(ppn) = random.back().and_then(|&last| map.next_page(io, last)).filter(|_| place > 0) {
                return Ok(ppn);
            } else if place > 0 && map.has_log_room(io, plane) && random.len() < self.most {
                random.push_back(map.take_log(io, plane)?);
            } else {
                self.make_room(map, io, plane)?;
            }
        }
    }

    fn take(&mut self, map: &BlockMap, block: u32) -> Option<u32> {
        let sequential = &mut self.logs[map.plane(block)].sequential;
        sequential.take_if(|&mut (_, owner)| owner == block).map(|(log, _)| log)
    }

    fn failed(&mut self, map: &mut BlockMap, io: &mut Io, failed: u32, block: u32) -> Flash<()> {
        let random = &mut self.logs[map.plane(block)].random;
        if let Some(index) = random.iter().position(|&log| log == failed) {
            random.remove(index);
            return self.clean(map, io, failed);
        }
        let log = self.take(map, block);
        map.merge(io, block, log)
    }

    fn clear(&mut self, plane: usize) {
        self.logs[plane] = Logs::default();
    }

    fn adopt(&mut self, map: &mut BlockMap, io: &mut Io, log: u32, owner: Option<u32>) -> Flash<()> {
        let Some(owner) = owner else {
            self.logs[map.shape.plane_of_block(log) as usize].random.push_back(log);
            return Ok(());
        };
        let sequential = &mut self.logs[map.plane(owner)].sequential;
        if sequential.is_some() {
            return map.merge(io, owner, Some(log)); // Left by an interrupted merge.
        }
        *sequential = Some((log, owner));
        Ok(())
    }

    fn all(&self) -> Vec<(u32, Option<u32>)> {
        let sequential = self.logs.iter().filter_map(|logs| logs.sequential).map(|(log, owner)| (log, Some(owner)));
        sequential.chain(self.logs.iter().flat_map(|logs| &logs.random).map(|&log| (log, None))).collect()
    }
}

#[cfg(test)]
mod tests;
