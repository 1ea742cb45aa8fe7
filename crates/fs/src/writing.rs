//! Writing pages of files, making holes, and extending files.

use super::device::{Device, NO_PAGE, Purpose};
use super::{Done, Fault, FileSystem};
use palimpsest_flash::nand::data::Data;

/// Pages written between two checks of the free space.
const WRITE_STEP: usize = 32;

impl FileSystem {
    /// Writes the pages `pages` of the file `ino`; `contents` has an entry a subpage for each in turn. The length of
    /// the file stays. `addresses` are the addresses of the pages on the disk of the host; without any they count as in
    /// the file.
    ///
    /// # Errors
    /// [`Fault::TooLarge`].
    pub fn write_pages(
        &mut self,
        device: &mut dyn Device,
        ino: u32,
        pages: &[u32],
        addresses: Option<&[u32]>,
        contents: &[Data],
    ) -> Done<()> {
        self.write_up_to(device, ino, pages, addresses, contents, 0)
    }

    /// As [`Self::write_pages`] for ascending pages, where the file becomes at least `end` bytes long. The file grows
    /// with written pages, so that a commit in between never leaves pages beyond the end.
    pub(super) fn write_up_to(
        &mut self,
        device: &mut dyn Device,
        ino: u32,
        pages: &[u32],
        addresses: Option<&[u32]>,
        contents: &[Data],
        end: u64,
    ) -> Done<()> {
        self.file(ino)?;
        if pages.iter().any(|&page| page >= self.most_pages()) {
            return Err(Fault::TooLarge);
        }
        let per_page = self.shape.subpages_per_page as usize;
        assert_eq!(contents.len(), pages.len() * per_page, "contents of every page");
        let inode = self.inode(ino)?;
        let is_hole = |&&page: &&u32| {
            let pointer = inode.pointer(page, self.width);
            self.allocator.prefetch_owner(pointer);
            pointer == NO_PAGE
        };
        let mut holes = pages.iter().filter(is_hole).count() as u64;
        if !self.reserved.is_empty() {
            holes -= pages.iter().filter(|&&page| self.reserved.holds(ino, page)).count() as u64;
        }
        self.admit(device, holes + 4 + holes.min(2 + holes / u64::from(self.width)))?;
        if !self.reserved.is_empty() {
            pages.iter().for_each(|&page| _ = self.reserved.give_back(ino, page..page + 1));
        }
        self.collect_in_turn(device)?;
        let mut placing = std::mem::take(&mut self.placing);
        self.place(device, ino, pages, addresses.unwrap_or(pages), &mut placing);
        if let Some(lifetimes) = &self.lifetimes {
            device.set_hint(lifetimes.expect(ino));
        }
        let channels = placing.placed.chunks(WRITE_STEP);
        let steps = pages.chunks(WRITE_STEP).zip(channels).zip(contents.chunks(WRITE_STEP * per_page));
        for ((pages, channels), contents) in steps {
            // Each page may need a leaf of its own.
            self.make_room(device, 2 * pages.len() as u64 + 8)?;
            for ((&page, &channel), contents) in pages.iter().zip(channels).zip(contents.chunks(per_page)) {
                let to = self.allocator.allocate(channel).ok_or(Fault::Full)?;
                device.write(to, contents, Purpose::Data)?;
                self.counters.data_pages += 1;
                let overwrites = self.inode(ino)?.pointer(page, self.width) != NO_PAGE;
                if let Some(lifetimes) = &mut self.lifetimes {
                    if overwrites {
                        lifetimes.invalidated(ino);
                    }
                    lifetimes.programmed(ino);
                }
                self.point(ino, page, to);
            }
            if end > 0 {
                let written = pages.last().map_or(0, |&page| (u64::from(page) + 1) * u64::from(self.shape.page_bytes));
                self.extend(ino, end.min(written))?;
            }
        }
        self.placing = placing;
        Ok(())
    }

    /// Overwrites page `page` of the file `ino`, which must have room, without a commit.
    pub(super) fn replace_page(&mut self, device: &mut dyn Device, ino: u32, page: u32, contents: &[Data]) -> Done<()> {
        let to = self.allocator.allocate(self.allocator.roomiest()).ok_or(Fault::Full)?;
        device.write(to, contents, Purpose::Data)?;
        self.counters.data_pages += 1;
        self.point(ino, page, to);
        Ok(())
    }

    /// Makes the page `page` of the file `ino` a hole.
    pub fn punch(&mut self, device: &mut dyn Device, ino: u32, page: u32) -> Done<()> {
        self.file(ino)?;
        self.reserved.give_back(ino, page..page + 1);
        if self.file(ino)?.pointer(page, self.width) != NO_PAGE {
            self.make_room(device, 8)?;
            self.point(ino, page, NO_PAGE);
        }
        Ok(())
    }

    /// Makes the file `ino` at least `bytes` long.
    pub fn extend(&mut self, ino: u32, bytes: u64) -> Done<()> {
        if self.file(ino)?.size < bytes {
            self.inode_mut(ino).size = bytes;
            self.touch(ino);
            self.record_inode(ino);
        }
        Ok(())
    }
}
