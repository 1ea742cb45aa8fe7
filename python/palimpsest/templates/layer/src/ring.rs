//! `ring`: a page map over one circular log (the simplest layer of Rosenblum and Ousterhout's log-structured kind).
//! Ignores: parallel planes, wear, hot and cold data, what is best to clean. Settings used: `ftl.read`.

use palimpsest_layer::ftl::keys::{Rule, Value, keys_of};
use palimpsest_layer::ftl::{Blueprint, Entry, Ftl, LayerFigures, Mapping, keys};
use palimpsest_layer::geometry::{Extent, Geometry};
use palimpsest_layer::nand::data::Data;
use palimpsest_layer::nand::{Flash, Halt, Nand, Outcome, TORN, first_subpages};
use palimpsest_layer::plan::port::pieces;
use palimpsest_layer::plan::select::{READ, ReadPolicy};
use palimpsest_layer::plan::{Cause, Erase, Gate, Io, Program, Read};
use palimpsest_layer::units::SECTOR_BYTES;
use std::collections::VecDeque;

pub const ENTRY: Entry = Entry {
    name: "ring",
    about: "page map over one circular log",
    keys: || keys_of(&[READ, KEYS]),
    takes_parity: true, // each page is programmed whole and once
    build: |io, blueprint| Box::new(Ring::new(io, blueprint)),
    ..Entry::PLAIN
};

keys! {
    struct RingSettings;

    group KEYS {
        /// erased pages that only cleaning may use, as a share of a block
        reserve: f64 = "ring.reserve", Ratio { max: 100.0 }, "150%", rules[A_BLOCK];
    }
}

const A_BLOCK: Rule = Rule {
    holds: |value| matches!(value, Value::Ratio(share) if *share >= 1.0),
    expected: "cleaning moves a block at a time; expected 100% or more",
};

const UNMAPPED: u32 = u32::MAX;

struct Ring {
    shape: Geometry,
    page_sectors: u64,
    read: ReadPolicy,
    map: Vec<u32>,       // logical page -> physical page
    free: VecDeque<u32>, // erased blocks, in the order in which they will be written
    full: VecDeque<u32>, // written blocks, oldest first
    open: Option<u32>,   // the block that is being written
    reserve: u32,        // erased pages that only cleaning may use
    figures: LayerFigures,
}

impl Ring {
    fn new(io: &Io, blueprint: &Blueprint) -> Self {
        let shape = *io.geometry();
        Ring {
            shape,
            page_sectors: u64::from(shape.page_bytes()) / SECTOR_BYTES,
            read: ReadPolicy::new(&blueprint.settings),
            map: vec![UNMAPPED; blueprint.logical_pages as usize],
            free: (0..shape.blocks()).filter(|&block| !io.nand().is_bad(block)).collect(),
            full: VecDeque::new(),
            open: None,
            reserve: (f64::from(shape.pages_per_block) * RingSettings::new(&blueprint.settings).reserve) as u32,
            figures: LayerFigures::default(),
        }
    }

    /// The part of `extent` in each logical page that it touches.
    fn by_page(&self, extent: Extent) -> impl Iterator<Item = (usize, Extent)> + use<> {
        let size = self.page_sectors;
        (extent.sector / size..extent.end().div_ceil(size)).map(move |lpn| {
            let (first, end) = (extent.sector.max(lpn * size), extent.end().min((lpn + 1) * size));
            (lpn as usize, Extent { sector: first, sectors: (end - first) as u32 })
        })
    }

    fn pages_of(&self, block: u32) -> std::ops::Range<u32> {
        block * self.shape.pages_per_block..(block + 1) * self.shape.pages_per_block
    }

    /// The logical page that physical page `ppn` holds, out of its out-of-band area.
    fn holds(&self, nand: &Nand, ppn: u32) -> Option<usize> {
        let lsn = nand.logical(ppn * self.shape.subpages_per_page);
        (lsn < TORN).then(|| (lsn / self.shape.subpages_per_page) as usize)
    }

    fn is_valid(&self, nand: &Nand, ppn: u32) -> bool {
        self.holds(nand, ppn).is_some_and(|lpn| self.map[lpn] == ppn)
    }

    /// Pages that hold the newest data of a logical page.
    fn valid(&self, nand: &Nand, block: u32) -> u32 {
        self.pages_of(block).filter(|&ppn| self.is_valid(nand, ppn)).count() as u32
    }

    /// Pages that can still be written without an erase.
    fn room(&self, nand: &Nand) -> u32 {
        let usable = self.open.filter(|&block| !nand.is_bad(block));
        let left = usable.map_or(0, |block| self.shape.pages_per_block - nand.next_page(block));
        left + self.free.len() as u32 * self.shape.pages_per_block
    }

    fn take_page(&mut self, nand: &Nand) -> Flash<u32> {
        if let Some(block) = self.open {
            if !nand.is_bad(block) && nand.next_page(block) < self.shape.pages_per_block {
                return Ok(self.pages_of(block).start + nand.next_page(block));
            }
            self.full.extend(self.open.take());
        }
        let block = self.free.pop_front().ok_or(Halt::NoSpace)?;
        self.open = Some(block);
        Ok(self.pages_of(block).start)
    }

    fn load(&self, io: &mut Io, ppn: u32, cause: Cause, arrived: Gate) -> Flash<Vec<Data>> {
        let subpages = self.shape.subpages_per_page;
        let all = first_subpages(subpages);
        io.read(Read { policy: self.read, signal: arrived, ..Read::new(ppn, all, cause) })?;
        Ok((0..subpages).map(|index| io.load_subpage(ppn * subpages + index)).collect())
    }

    fn append(&mut self, io: &mut Io, lpn: usize, data: &[Data], cause: Cause, after: Gate, signal: Gate) -> Flash<()> {
        let subpages = self.shape.subpages_per_page;
        let logical: Vec<u32> = (0..subpages).map(|index| lpn as u32 * subpages + index).collect();
        loop {
            let ppn = self.take_page(io.nand())?;
            let program = Program { after, signal, ..Program::new(ppn, &logical, data, cause) };
            if io.program(program)? == Outcome::Done {
                self.map[lpn] = ppn;
                return Ok(());
            }
        }
    }

    fn make_room(&mut self, io: &mut Io) -> Flash<()> {
        for _ in 0..=2 * self.shape.blocks() {
            if self.room(io.nand()) > self.reserve {
                return Ok(());
            }
            let victim = *self.full.front().ok_or(Halt::NoSpace)?;
            self.clean(io, victim)?;
        }
        Err(Halt::NoSpace)
    }

    fn clean(&mut self, io: &mut Io, victim: u32) -> Flash<()> {
        let moved = io.gate();
        for ppn in self.pages_of(victim) {
            let Some(lpn) = self.holds(io.nand(), ppn).filter(|&lpn| self.map[lpn] == ppn) else { continue };
            let arrived = io.gate();
            let data = self.load(io, ppn, Cause::Gc, arrived)?;
            self.append(io, lpn, &data, Cause::Gc, arrived, moved)?;
            self.figures.gc_moved_subpages += u64::from(self.shape.subpages_per_page);
        }
        self.full.retain(|&block| block != victim);
        self.figures.gc_runs += 1;
        let erase = Erase { after: io.used(moved), ..Erase::new(victim, Cause::Gc) };
        if !io.nand().is_bad(victim) && io.erase(erase)? == Outcome::Done {
            self.figures.gc_erased += 1;
            self.free.push_back(victim);
        } else {
            self.figures.retired_blocks += 1;
        }
        Ok(())
    }
}

impl Ftl for Ring {
    fn unit_subpages(&self) -> u32 {
        self.shape.subpages_per_page
    }

    fn write(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        for (lpn, part) in self.by_page(extent) {
            self.make_room(io)?;
            let (mut data, mut after) = (vec![Data::ZERO; self.shape.subpages_per_page as usize], Gate::NONE);
            if u64::from(part.sectors) < self.page_sectors && self.map[lpn] != UNMAPPED {
                after = io.gate();
                data = self.load(io, self.map[lpn], Cause::Rmw, after)?;
            }
            for piece in pieces(part, io.host.sectors_per_subpage()) {
                let content = &mut data[(piece.lsn % self.shape.subpages_per_page) as usize];
                *content = io.written(piece, *content);
            }
            self.append(io, lpn, &data, Cause::Host, after, io.request())?;
        }
        Ok(())
    }

    fn read(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        let subpages = self.shape.subpages_per_page;
        for (lpn, part) in self.by_page(extent) {
            let wanted = pieces(part, io.host.sectors_per_subpage()).map(|piece| piece.lsn);
            let (wanted, ppn) = (wanted.collect::<Vec<u32>>(), self.map[lpn]);
            if ppn == UNMAPPED {
                io.count_unwritten(wanted.len() as u32);
                wanted.iter().for_each(|&lsn| io.deliver(lsn, Data::ZERO));
                continue;
            }
            let mask = wanted.iter().fold(0, |mask, lsn| mask | 1 << (lsn % subpages));
            let signal = io.request();
            io.read(Read { policy: self.read, signal, ..Read::new(ppn, mask, Cause::Host) })?;
            for lsn in wanted {
                let data = io.load_subpage(ppn * subpages + lsn % subpages);
                io.deliver(lsn, data);
            }
        }
        Ok(())
    }

    fn trim(&mut self, _io: &mut Io, extent: Extent) -> Flash<()> {
        self.by_page(extent).for_each(|(lpn, _)| self.map[lpn] = UNMAPPED);
        Ok(())
    }

    fn flush(&mut self, _io: &mut Io) -> Flash<()> {
        Ok(()) // Every write was acknowledged by its program: nothing waits.
    }

    fn relocate(&mut self, io: &mut Io, block: u32) -> Flash<bool> {
        // After a power cut during cleaning the reserve may be used up.
        let fits = self.full.contains(&block) && self.valid(io.nand(), block) <= self.room(io.nand());
        Ok(fits.then(|| self.clean(io, block)).transpose()?.is_some())
    }

    fn recover(&mut self, io: &mut Io) -> Flash<()> {
        self.map.fill(UNMAPPED);
        (self.free, self.full, self.open) = (VecDeque::new(), VecDeque::new(), None);
        let sequence = |io: &Io, ppn: u32| io.nand().sequence(ppn * io.geometry().subpages_per_page);
        let mut written = Vec::new(); // blocks with the number of their newest program
        for block in 0..self.shape.blocks() {
            if io.nand().is_torn(block) && !io.nand().is_bad(block) {
                let _ = io.erase(Erase::new(block, Cause::Gc))?; // a failure marks the block bad
            }
            let mut newest = 0;
            for ppn in self.pages_of(block) {
                let Some(lpn) = self.holds(io.nand(), ppn) else { continue };
                newest = newest.max(sequence(io, ppn));
                if self.map[lpn] == UNMAPPED || sequence(io, ppn) > sequence(io, self.map[lpn]) {
                    self.map[lpn] = ppn;
                }
            }
            match io.nand().next_page(block) {
                0 if io.nand().is_bad(block) => {}
                0 => self.free.push_back(block),
                _ => written.push((newest, block)),
            }
        }
        // A timed run may leave several blocks partly written; the one with the most room is open.
        let used = |block: u32| io.nand().next_page(block);
        let good = written.iter().map(|&(_, block)| block).filter(|&block| !io.nand().is_bad(block));
        self.open = good.min_by_key(|&block| used(block)).filter(|&block| used(block) < self.shape.pages_per_block);
        written.retain(|&(_, block)| self.open != Some(block));
        // Fewest valid pages first, because a cut during cleaning leaves little room.
        written.sort_by_key(|&(newest, block)| (self.valid(io.nand(), block), newest, block));
        self.full.extend(written.into_iter().map(|(_, block)| block));
        Ok(())
    }

    fn check(&mut self, io: &Io) -> Result<(), String> {
        for (lpn, &ppn) in self.map.iter().enumerate() {
            if ppn != UNMAPPED && self.holds(io.nand(), ppn) != Some(lpn) {
                return Err(format!("logical page {lpn} is mapped to {ppn}, which holds another"));
            }
        }
        let mut known: Vec<u32> = self.free.iter().chain(&self.full).chain(&self.open).copied().collect();
        known.sort_unstable();
        if known.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err("a block is in two lists".into());
        }
        let lost = (0..self.shape.blocks()).find(|block| !io.nand().is_bad(*block) && !known.contains(block));
        if let Some(block) = lost {
            return Err(format!("good block {block} is in no list"));
        }
        match self.free.iter().find(|&&block| io.nand().next_page(block) > 0) {
            Some(block) => Err(format!("block {block} counts as free but is not erased")),
            None => Ok(()),
        }
    }

    fn figures(&self) -> LayerFigures {
        let bytes = self.map.len() as u64 * 8; // as the papers count an entry
        LayerFigures { mapping: Mapping { tables: vec![("map", bytes)], peak_bytes: bytes }, ..self.figures.clone() }
    }
}
