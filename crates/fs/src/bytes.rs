//! Files as bytes: reads, writes and truncation at any byte, on devices that hold bytes.

use super::device::{Device, Purpose};
use super::{Done, Fault, FileSystem};
use palimpsest_flash::nand::data::Data;

impl FileSystem {
    /// The bytes of page `page` of the file `ino`; zeros for a hole.
    fn page_bytes(&self, device: &mut dyn Device, ino: u32, page: u32) -> Done<Vec<u8>> {
        let Some(at) = self.locate(ino, page)? else { return Ok(vec![0; self.shape.page_bytes as usize]) };
        let mut contents = Vec::new();
        if !device.read(at, Purpose::Data, &mut contents)? {
            return Err(Fault::Corrupt("a pointer leads to a page that was not written"));
        }
        if contents.contains(&Data::LOST) {
            return Err(Fault::Unreadable);
        }
        device.bytes(&contents).ok_or(Fault::Corrupt("a page of a file does not hold bytes"))
    }

    /// Up to `length` bytes of the file `ino` from `offset` on; fewer at the end.
    pub fn read(&self, device: &mut dyn Device, ino: u32, offset: u64, length: u64) -> Done<Vec<u8>> {
        let end = self.file(ino)?.size.min(offset.saturating_add(length));
        let width = u64::from(self.shape.page_bytes);
        let mut bytes = Vec::new();
        let mut at = offset;
        while at < end {
            let page = self.page_bytes(device, ino, (at / width) as u32)?;
            let until = end.min((at / width + 1) * width);
            bytes.extend_from_slice(&page[(at % width) as usize..][..(until - at) as usize]);
            at = until;
        }
        Ok(bytes)
    }

    /// Writes `bytes` to the file `ino` from `offset` on; a gap behind the old end becomes a hole.
    pub fn write(&mut self, device: &mut dyn Device, ino: u32, offset: u64, bytes: &[u8]) -> Done<()> {
        let width = u64::from(self.shape.page_bytes);
        let end = offset + bytes.len() as u64;
        self.file(ino)?;
        if end.div_ceil(width) > u64::from(self.most_pages()) {
            return Err(Fault::TooLarge);
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let pages: Vec<u32> = (offset / width..end.div_ceil(width)).map(|page| page as u32).collect();
        let mut contents: Vec<Data> = Vec::new();
        for &page in &pages {
            let first = u64::from(page) * width;
            let (from, to) = (offset.max(first), end.min(first + width));
            let new = &bytes[(from - offset) as usize..(to - offset) as usize];
            let held = if new.len() as u64 == width {
                device.hold(new)
            } else {
                let mut old = self.page_bytes(device, ino, page)?;
                old[(from - first) as usize..(to - first) as usize].copy_from_slice(new);
                device.hold(&old)
            };
            contents.extend(held);
        }
        self.write_up_to(device, ino, &pages, None, &contents, end)
    }

    /// Makes the file `ino` `size` bytes long: drops bytes beyond, fills new ones with zeros.
    pub fn truncate(&mut self, device: &mut dyn Device, ino: u32, size: u64) -> Done<()> {
        let width = u64::from(self.shape.page_bytes);
        let old = self.file(ino)?.size;
        if size.div_ceil(width) > u64::from(self.most_pages()) {
            return Err(Fault::TooLarge);
        }
        self.make_room(device, 16)?;
        if size < old {
            let last = (size / width) as u32;
            // One commit must hold all, also in a full file system.
            if !size.is_multiple_of(width) && self.locate(ino, last)?.is_some() {
                let mut page = self.page_bytes(device, ino, last)?;
                page[(size % width) as usize..].fill(0);
                let contents = device.hold(&page);
                self.replace_page(device, ino, last, &contents)?;
            }
            self.cut(ino, size.div_ceil(width) as u32);
            self.reserved.give_back(ino, size.div_ceil(width) as u32..u32::MAX);
        }
        self.inode_mut(ino).size = size;
        self.touch(ino);
        self.record_inode(ino);
        Ok(())
    }
}
