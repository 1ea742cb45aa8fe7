//! Subpage merging: the more often a logical page is read, the fewer physical pages may hold subpages of the page.
//!
//! The read count of a logical page limits the pages with subpages of the logical page. A write that would exceed the
//! limit also moves the fewest other subpages that restore it, into one page with room: Fig. 6. The limits
//! ([`super::limits`]) apply to the written logical page only, so cleaning may spread a page over more pages until the
//! next write. With `ftl.merge_on_read`, reads merge, too; with `ftl.merge_limits=off` nothing merges; with
//! `ftl.merge_resets` a merge resets the read count. Source: MGA paper, Sec. III-E.
//!
//! Decided here: a program with moved subpages, and the reads for them, count as merging; the host waits for both. If
//! all subpages of a page remain except the written ones, they must move together.

use super::limits::Merging;
use super::map::{Target, UNMAPPED};
use super::space::HOST;
use super::write::Place;
use super::{Group, Mga, add_to_groups};
use palimpsest_flash::nand::{Flash, Halt};
use palimpsest_ftl_api::plan::{Cause, Gate, Io};

/// The subpages to move so that the logical page is in `target` and at most `limit` pages in all. `groups` must list
/// the pages with subpages of the logical page, fewest subpages first.
fn to_move(groups: &[Group], target: Option<u32>, limit: u32) -> u64 {
    let others = || groups.iter().filter(|group| Some(group.ppn) != target);
    let excess = (others().count() as u32 + 1).saturating_sub(limit);
    others().take(excess as usize).fold(0, |moved, group| moved | group.subpages)
}

impl Mga {
    /// The programmed page for the subpages `fresh` of `lpn`, if any, and the subpages to move along.
    pub(super) fn choose_page(&mut self, lpn: u32, fresh: u64, plane: u32, exclusive: bool) -> (Option<u32>, u64) {
        let count = fresh.count_ones();
        let page = self.page_with_room(lpn, count, plane, exclusive);
        let (entry, pages) = match self.map.look_up(lpn) {
            Target::Unmapped => return (page, 0),
            Target::Full(_) => (UNMAPPED, 1),
            Target::Partial(entry) => (entry, self.map.entry(entry).pages),
        };
        let limit = self.limits.of(self.map.read_counts.of(lpn, entry));
        if u32::from(pages) < limit || self.settings.merging == Merging::Off {
            return (page, 0);
        }
        self.list_rest(lpn, fresh);
        let moved = to_move(&self.groups, page, limit);
        let Some(ppn) = page else { return (page, moved) };
        if self.pages.free(ppn).count_ones() >= count + moved.count_ones() {
            return (page, moved);
        }
        // Every target needs this much room for the moved subpages.
        let moved = to_move(&self.groups, None, limit);
        match self.page_with_room(lpn, count + moved.count_ones(), plane, exclusive) {
            Some(ppn) => (Some(ppn), to_move(&self.groups, Some(ppn), limit)),
            None => (None, moved),
        }
    }

    /// Lists in `groups`, fewest subpages first, the pages with subpages of `lpn` that are not `fresh`. Bit i of a
    /// group is subpage i of the logical page.
    fn list_rest(&mut self, lpn: u32, fresh: u64) {
        self.groups.clear();
        for index in 0..self.subpages {
            let psn = self.map.place(lpn, index);
            if psn != UNMAPPED && fresh >> index & 1 == 0 {
                add_to_groups(&mut self.groups, Group { ppn: psn / self.subpages, subpages: 1 << index });
            }
        }
        self.groups.sort_by_key(|group| group.subpages.count_ones());
    }

    /// Reads the subpages `moved` of `lpn` into the image. The returned gate closes when they have arrived and `after`
    /// has closed.
    pub(super) fn bring_moved(&mut self, io: &mut Io, lpn: u32, moved: u64, after: Gate) -> Flash<Gate> {
        self.groups.clear();
        for index in (0..self.subpages).filter(|index| moved >> index & 1 == 1) {
            let psn = self.map.place(lpn, index);
            let (ppn, subpages) = (psn / self.subpages, 1 << (psn % self.subpages));
            add_to_groups(&mut self.groups, Group { ppn, subpages });
        }
        let arrived = self.read_groups(io, Cause::Merge)?;
        for index in (0..self.subpages).filter(|index| moved >> index & 1 == 1) {
            self.image.add(lpn * self.subpages + index, io.load_subpage(self.map.place(lpn, index)));
        }
        io.link(after, arrived);
        if self.settings.merge_resets {
            let entry = if let Target::Partial(entry) = self.map.look_up(lpn) { entry } else { UNMAPPED };
            self.map.read_counts.reset(lpn, entry);
        }
        self.counters.merges += 1;
        self.counters.merge_moved += u64::from(moved.count_ones());
        Ok(arrived)
    }

    /// Merges `lpn` without a waiting request, if more pages hold subpages than the read count allows and no cleaning
    /// is necessary.
    pub(super) fn merge_after_read(&mut self, io: &mut Io, lpn: u32) -> Flash<()> {
        let Target::Partial(entry) = self.map.look_up(lpn) else { return Ok(()) };
        if u32::from(self.map.entry(entry).pages) <= self.limits.of(self.map.read_counts.of(lpn, entry)) {
            return Ok(());
        }
        let (plane, exclusive) = (self.frontiers().first_plane(io, HOST, lpn), self.exclusive());
        let (page, moved) = self.choose_page(lpn, 0, plane, exclusive);
        if page.is_none() && !self.has_space(plane) {
            return Ok(());
        }
        self.frontiers().rotation.used(plane);
        self.image.parts.clear();
        let place = Place { page, plane, moved, exclusive };
        // If the program fails, the next write evacuates the block. A read must not fail for lack of space, so without
        // another page the subpages stay where they are.
        match self.write_with_moved(io, lpn, place, Gate::NONE, Gate::NONE) {
            Err(Halt::NoSpace) => Ok(()),
            done => done,
        }
    }
}
