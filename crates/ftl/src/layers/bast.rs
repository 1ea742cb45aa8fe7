//! `bast`: block-associative sector translation, the log block scheme of Kim et al. 2002.
//!
//! A page is written to the fixed place in the data block while that is free. An overwrite goes to the next page of a
//! log block, which belongs to that logical block alone. A full log block is merged at the next overwrite of the
//! logical block. If another logical block needs a log block, the least recently written one is merged. Merges are by
//! switch, partial or full ([`crate::hybrid`]). Random writes to more logical blocks than log blocks cause a merge for
//! every page: log block thrashing, which [`super::fast`] avoids.
//!
//! Source: J. Kim, J. M. Kim, S. H. Noh, S. L. Min, Y. Cho, "A space-efficient flash translation layer for CompactFlash
//! systems", IEEE Trans. Consumer Electronics 48(2), 2002; docs/systems.md, "bast". Ignored: as in [`crate::hybrid`].

use crate::hybrid::cached::log_blocks;
use crate::hybrid::{BlockMap, Hybrid, LOG_BLOCKS, LogBlocks};
use crate::log::pace::MERGES;
use crate::log::settings::{CACHE, FIXED_CACHE, LEVELING, READ, keys_of};
use palimpsest_flash::nand::{Flash, Halt};
use palimpsest_ftl_api::plan::Io;
use palimpsest_ftl_api::{Entry, Model};
use std::collections::VecDeque;

pub const ENTRY: Entry = Entry {
    name: "bast",
    about: "block map, overwrites in log blocks of one logical block each, merged by switch, partially or fully",
    keys: || keys_of(&[LOG_BLOCKS, LEVELING, READ, CACHE, FIXED_CACHE]),
    reserved: |settings, geometry| log_blocks(settings, geometry, 0).1,
    reserved_key: "ftl.log_blocks",
    word_lines: true,
    outlives_dies: true,
    takes_parity: true,
    superblocks: true,
    reasons: &[("ftl.gc_pace", MERGES)],
    model: Model {
        needs: &["ftl.log_blocks=2"],
        varies: |rng, _| vec![format!("ftl.log_blocks={}", 1 + rng.below(4))],
        ..Model::ANY
    },
    build: |io, blueprint| {
        let most = log_blocks(&blueprint.settings, io.geometry(), 0).0;
        Box::new(Hybrid::new(io, blueprint, Bast::new(io, most), most))
    },
    ..Entry::PLAIN
};

#[derive(Default)]
struct Log {
    physical: u32,
    /// The logical block that the log block belongs to.
    owner: u32,
}

palimpsest_flash::state!(Log { physical, owner });

struct Bast {
    /// The most log blocks of a plane.
    most: usize,
    /// Log blocks of each plane, least recently written first.
    logs: Vec<VecDeque<Log>>,
}

palimpsest_flash::state!(Bast { logs } built { most });

impl Bast {
    fn new(io: &Io, most: u32) -> Self {
        Bast { most: most as usize, logs: (0..io.geometry().planes()).map(|_| VecDeque::new()).collect() }
    }
}

impl LogBlocks for Bast {
    const SHARED: bool = false;

    fn place(&mut self, map: &mut BlockMap, io: &mut Io, page: u32) -> Flash<u32> {
        let (block, _) = map.split(page);
        loop {
            let plane = map.plane(block);
            if let Some(ppn) = map.in_place(io, page) {
                return Ok(ppn);
            }
            let own = self.take(map, block);
            if let Some(ppn) = own.and_then(|own| map.next_page(io, own)) {
                self.logs[plane].extend(own.map(|physical| Log { physical, owner: block }));
                return Ok(ppn);
            } else if own.is_some() {
                map.merge(io, block, own)?;
            } else if !map.has_data(block) && map.has_room(plane) {
                map.open_data(io, block)?;
            } else if map.has_data(block) && map.has_log_room(io, plane) && self.logs[plane].len() < self.most {
                let physical = map.take_log(io, plane)?;
                self.logs[plane].push_back(Log { physical, owner: block });
            } else {
                let Log { physical, owner } = self.logs[plane].pop_front().ok_or(Halt::NoSpace)?;
                map.merge(io, owner, Some(physical))?;
            }
        }
    }

    fn take(&mut self, map: &BlockMap, block: u32) -> Option<u32> {
        let logs = &mut self.logs[map.plane(block)];
        let own = logs.iter().position(|log| log.owner == block)?;
        logs.remove(own).map(|log| log.physical)
    }

    fn clear(&mut self, plane: usize) {
        self.logs[plane].clear();
    }

    fn adopt(&mut self, map: &mut BlockMap, io: &mut Io, log: u32, owner: Option<u32>) -> Flash<()> {
        let owner = owner.expect("a log block belongs to one logical block");
        let logs = &mut self.logs[map.plane(owner)];
        if logs.len() == self.most {
            return map.merge(io, owner, Some(log)); // Left by an interrupted merge.
        }
        logs.push_back(Log { physical: log, owner });
        Ok(())
    }

    fn all(&self) -> Vec<(u32, Option<u32>)> {
        self.logs.iter().flatten().map(|log| (log.physical, Some(log.owner))).collect()
    }
}

#[cfg(test)]
mod tests;
