//! Placement: the page of a write, and the changes after the program.
//!
//! Exclusive allocation (EA) applies while the share of fully free pages exceeds the threshold. A logical page then
//! owns one open page, whose free subpages take the pieces. A piece that does not fit opens a fresh page, which is
//! owned from then on. Else shared allocation (SA) applies: a piece goes to the last opened page with room, of any
//! logical page, or to a fresh page. Source: MGA paper, Sec. III-D.
//!
//! Decided here: a piece is never split over pages, so one program suffices. Each subpage takes the position of the
//! logical subpage if free. SA searches the plane that `ftl.allocation` chose, so that pieces spread over the planes.
//! Under SA, pages owned under EA are shared like all others.

use super::map::{Target, UNMAPPED};
use super::space::HOST;
use super::{Group, Mga, add_to_groups};
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{Flash, Outcome, PADDING};
use palimpsest_ftl_api::plan::port::Piece;
use palimpsest_ftl_api::plan::{Cause, Gate, Io, Program, Read};

/// A logical subpage to program, and the position in the page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed {
    pub lsn: u32,
    pub data: Data,
    pub slot: u32,
}

/// The next program.
pub(super) struct Image {
    /// Subpages of one logical page are adjacent.
    pub parts: Vec<Placed>,
    logical: Vec<u32>,
    data: Vec<Data>,
    /// Previous places of the subpages, by page.
    old: Vec<Group>,
}

impl Image {
    pub fn new(subpages: u32) -> Self {
        Image {
            parts: Vec::with_capacity(subpages as usize),
            logical: vec![PADDING; subpages as usize],
            data: vec![Data::ZERO; subpages as usize],
            old: Vec::with_capacity(subpages as usize),
        }
    }

    pub fn add(&mut self, lsn: u32, data: Data) {
        self.parts.push(Placed { lsn, data, slot: 0 });
    }

    /// Assigns each part one of the subpages `free`, in place if possible. Returns the assigned ones.
    fn assign(&mut self, subpages: u32, free: u64) -> u64 {
        let mut rest = free;
        for part in &mut self.parts {
            let own = part.lsn % subpages;
            part.slot = if rest >> own & 1 == 1 { own } else { u32::MAX };
            rest &= !(1 << own);
        }
        // Positions requested twice are taken; the remaining parts get left-over subpages.
        let mut left =
            self.parts.iter().filter(|part| part.slot != u32::MAX).fold(free, |left, part| left & !(1 << part.slot));
        for part in &mut self.parts {
            if part.slot == u32::MAX {
                part.slot = left.trailing_zeros();
                left &= left - 1;
            }
            self.logical[part.slot as usize] = part.lsn;
            self.data[part.slot as usize] = part.data;
        }
        free & !left
    }
}

/// Target and purpose of a program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    /// A programmed page with room, or a fresh one.
    pub page: Option<u32>,
    /// Plane of a fresh page.
    pub plane: u32,
    /// Frontier of a fresh page.
    pub stream: u32,
    /// Owner of a fresh page.
    pub owner: u32,
    pub cause: Cause,
    /// True if the page stores host data, maybe beside other data.
    pub from_host: bool,
    pub after: Gate,
    pub signal: Gate,
}

/// Target of a small write.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// A programmed page with room, or a fresh one of `plane`.
    pub page: Option<u32>,
    pub plane: u32,
    /// Subpages of the logical page that move along.
    pub moved: u64,
    pub exclusive: bool,
}

impl Mga {
    pub(super) fn write_logical_page(&mut self, io: &mut Io, lpn: u32, first: u32, sectors: u32) -> Flash<()> {
        let (begin, end) = self.touched(first, sectors);
        if end - begin == self.subpages {
            let plane = self.plane_with_space(io, lpn, true)?;
            self.image.parts.clear();
            let after = self.bring(io, lpn, first, sectors)?;
            self.counters.page_writes += 1;
            let cause = Cause::Host;
            let signal = io.request();
            self.program(
                io,
                Job { page: None, plane, stream: HOST, owner: UNMAPPED, cause, from_host: false, after, signal },
            )?;
        } else {
            let fresh = ((1 << (end - begin)) - 1) << begin;
            let place = self.place(io, lpn, fresh)?;
            match place.exclusive {
                true => self.counters.exclusive_writes += 1,
                false => self.counters.shared_writes += 1,
            }
            self.image.parts.clear();
            let after = self.bring(io, lpn, first, sectors)?;
            let signal = io.request();
            self.write_with_moved(io, lpn, place, after, signal)?;
        }
        self.evacuate_failed(io)
    }

    /// Adds the host's data of `lpn` to the image. The returned gate closes when the unchanged parts of subpages have
    /// been read.
    fn bring(&mut self, io: &mut Io, lpn: u32, first: u32, sectors: u32) -> Flash<Gate> {
        let (begin, end) = self.touched(first, sectors);
        let (per_subpage, subpages) = (self.sectors_per_subpage, self.subpages);
        let piece_of = |index: u32| {
            let from = first.max(index * per_subpage);
            let to = (first + sectors).min((index + 1) * per_subpage);
            Piece { lsn: lpn * subpages + index, first: from - index * per_subpage, sectors: to - from }
        };
        let ragged = |piece: Piece| piece.sectors < per_subpage;
        let mut after = io.arrival();
        if ragged(piece_of(begin)) || ragged(piece_of(end - 1)) {
            self.groups.clear();
            for index in [begin, end - 1] {
                let psn = self.map.place(lpn, index);
                if ragged(piece_of(index)) && psn != UNMAPPED {
                    let (ppn, subpages) = (psn / self.subpages, 1 << (psn % self.subpages));
                    add_to_groups(&mut self.groups, Group { ppn, subpages });
                }
            }
            after = self.read_groups(io, Cause::Rmw)?;
        }
        for index in begin..end {
            let piece = piece_of(index);
            let mut data = Data::ZERO;
            if io.host.has_contents() {
                let psn = self.map.place(lpn, index);
                let old = if ragged(piece) && psn != UNMAPPED { io.load_subpage(psn) } else { Data::ZERO };
                data = io.written(piece, old);
            }
            self.image.add(piece.lsn, data);
        }
        Ok(after)
    }

    /// Reads all of `groups`. The returned gate closes when they have arrived.
    pub(super) fn read_groups(&mut self, io: &mut Io, cause: Cause) -> Flash<Gate> {
        if self.groups.is_empty() {
            return Ok(Gate::NONE);
        }
        let arrived = io.gate();
        for group in &self.groups {
            let policy = self.settings.log.read;
            io.read(Read { policy, signal: arrived, ..Read::new(group.ppn, group.subpages, cause) })?;
        }
        Ok(arrived)
    }

    /// The target of the subpages `fresh` of `lpn`, and the subpages to move along.
    pub(super) fn place(&mut self, io: &mut Io, lpn: u32, fresh: u64) -> Flash<Place> {
        let mut with_space = None;
        loop {
            let exclusive = self.exclusive();
            let plane = with_space.unwrap_or_else(|| self.frontiers().first_plane(io, HOST, lpn));
            let (page, moved) = self.choose_page(lpn, fresh, plane, exclusive);
            if page.is_some() || with_space.is_some() {
                if !exclusive && with_space.is_none() {
                    self.frontiers().rotation.used(plane);
                }
                return Ok(Place { page, plane, moved, exclusive });
            }
            // Cleaning moves data and may change the allocation, so choose again.
            with_space = Some(self.plane_with_space(io, lpn, false)?);
        }
    }

    /// A programmed page with room for `count` subpages of `lpn`.
    pub(super) fn page_with_room(&self, lpn: u32, count: u32, plane: u32, exclusive: bool) -> Option<u32> {
        if !exclusive {
            return self.pages.with_room(plane, count);
        }
        let Target::Partial(entry) = self.map.look_up(lpn) else { return None };
        let own = self.map.entry(entry).own;
        let fits = own != UNMAPPED && self.pages.owner(own) == lpn && self.pages.free(own).count_ones() >= count.max(1);
        fits.then_some(own)
    }

    /// Programs the image, and the subpages to move along, at `place`.
    pub(super) fn write_with_moved(
        &mut self,
        io: &mut Io,
        lpn: u32,
        place: Place,
        after: Gate,
        signal: Gate,
    ) -> Flash<()> {
        let mut job = Job {
            page: place.page,
            plane: place.plane,
            stream: HOST,
            owner: if place.exclusive { lpn } else { UNMAPPED },
            cause: Cause::Host,
            from_host: false,
            after,
            signal,
        };
        if place.moved != 0 {
            job.from_host = !self.image.parts.is_empty() && io.present.is_from_host(Cause::Host);
            job.after = self.bring_moved(io, lpn, place.moved, after)?;
            job.cause = Cause::Merge;
        }
        self.program(io, job)
    }

    /// Programs the image, and again elsewhere after a failure.
    pub(super) fn program(&mut self, io: &mut Io, job: Job) -> Flash<()> {
        let (mut page, whole) = (job.page, self.image.parts.len() as u32 == self.subpages);
        loop {
            let (ppn, free) = match page {
                Some(ppn) => (ppn, self.pages.free(ppn)),
                None => (self.pages.space.take(io, job.plane, job.stream, whole)?, self.all),
            };
            let written = self.image.assign(self.subpages, free);
            let program = Program {
                written,
                single: self.pages.space.frontiers.single.holds(self.pages.block_of(ppn)),
                transferred: if self.settings.page_padding { self.subpages } else { written.count_ones() },
                from_host: job.from_host,
                after: job.after,
                signal: job.signal,
                ..Program::new(ppn, &self.image.logical, &self.image.data, job.cause)
            };
            match io.program(program)? {
                Outcome::Done => {
                    self.commit(ppn, page.is_none(), written, io.nand().programs(ppn), job.owner);
                    // A page that a power cut left out may be behind the last one.
                    if io.nand().has_stripes() && !self.may_fill(io, ppn) {
                        self.pages.close(ppn);
                    }
                    return Ok(());
                }
                Outcome::Failed => {
                    self.drop_block(io, self.pages.block_of(ppn));
                    page = None;
                }
            }
        }
    }

    /// Maps the image to `ppn`.
    fn commit(&mut self, ppn: u32, fresh: bool, written: u64, programs: u32, owner: u32) {
        self.image.old.clear();
        let mut index = 0;
        while index < self.image.parts.len() {
            index = self.commit_logical_page(ppn, index, owner);
        }
        for group in &self.image.old {
            self.pages.invalidate(group.ppn, group.subpages);
        }
        if fresh { self.pages.open(ppn, written, owner) } else { self.pages.fill(ppn, written, programs) }
    }

    /// Maps the parts from number `first` on that belong to one logical page. Returns the number of the next part.
    #[inline]
    fn commit_logical_page(&mut self, ppn: u32, first: usize, owner: u32) -> usize {
        let subpages = self.subpages;
        let lpn = self.image.parts[first].lsn / subpages;
        let count = self.image.parts[first..].iter().take_while(|part| part.lsn / subpages == lpn).count();
        let parts = &self.image.parts[first..first + count];
        let replace = |old: &mut Vec<Group>, psn: u32| {
            if psn != UNMAPPED {
                add_to_groups(old, Group { ppn: psn / subpages, subpages: 1 << (psn % subpages) });
            }
        };
        if count as u32 == subpages && parts.iter().all(|part| part.slot == part.lsn % subpages) {
            match self.map.look_up(lpn) {
                Target::Unmapped => {}
                Target::Full(ppn) => self.image.old.push(Group { ppn, subpages: self.all }),
                Target::Partial(entry) => {
                    self.map.places(entry).iter().for_each(|&psn| replace(&mut self.image.old, psn));
                }
            }
            self.map.set_full(lpn, ppn);
            return first + count;
        }
        let entry = self.map.make_partial(lpn);
        for part in parts {
            let index = part.lsn % subpages;
            replace(&mut self.image.old, self.map.places(entry)[index as usize]);
            self.map.set_place(entry, index, ppn * subpages + part.slot);
        }
        self.map.settle(entry);
        if owner == lpn {
            self.map.set_own(lpn, ppn);
        }
        first + count
    }

    pub(super) fn unmap(&mut self, lpn: u32, which: u64) {
        let target = self.map.look_up(lpn);
        if target == Target::Unmapped {
            return;
        }
        self.groups.clear();
        for index in (0..self.subpages).filter(|index| which >> index & 1 == 1) {
            let psn = self.map.place(lpn, index);
            if psn != UNMAPPED {
                let (ppn, subpages) = (psn / self.subpages, 1 << (psn % self.subpages));
                add_to_groups(&mut self.groups, Group { ppn, subpages });
            }
        }
        if which == self.all {
            self.map.unmap(lpn);
        } else {
            let entry = self.map.make_partial(lpn);
            for index in (0..self.subpages).filter(|index| which >> index & 1 == 1) {
                self.map.set_place(entry, index, UNMAPPED);
            }
            self.map.settle(entry);
        }
        for group in &self.groups {
            self.pages.invalidate(group.ppn, group.subpages);
        }
    }
}
