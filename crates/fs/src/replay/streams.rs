//! The files of streams, from their names: `STREAM.PART`, both hexadecimal.

use super::{NO_STREAM, RANGES, Replay};
use crate::device::NO_PAGE;
use crate::{FileType, ROOT, inode};
use palimpsest_flash::nand::Flash;
use palimpsest_ftl_api::plan::{FileSystemIo, Io};

pub(super) fn note_stream(streams: &mut Vec<u64>, ino: u32, stream: u64) {
    if streams.len() <= ino as usize {
        streams.resize(ino as usize + 1, NO_STREAM);
    }
    streams[ino as usize] = stream;
}

impl Replay {
    /// The file that a stream writes to, with room for `more` pages and one, and the next page; creates the file if
    /// necessary.
    pub(super) fn file_of(&mut self, io: &mut Io, stream: u64, more: u32) -> Flash<(u32, u32)> {
        let most = inode::most_pages(self.link.shape.page_bytes / 4);
        let width = u64::from(self.link.shape.page_bytes);
        loop {
            let (ino, part) = self.files.get(&stream).copied().unwrap_or((NO_PAGE, 0));
            let part = if ino == NO_PAGE {
                0
            } else {
                let size = self.with(io, |filesystem, _| filesystem.stat(ino))?.1;
                let next = size.div_ceil(width) as u32;
                if stream >= RANGES || next + more < most {
                    return Ok((ino, next));
                }
                part + 1
            };
            let name = format!("{stream:x}.{part:x}");
            let group = io.file_group();
            let made = self.with(io, |filesystem, device| {
                let made = filesystem.create(device, ROOT, &name, FileType::File)?;
                filesystem.set_group(made, group);
                Ok(made)
            })?;
            self.files.insert(stream, (made, part));
            note_stream(&mut self.streams, made, stream);
        }
    }

    pub(super) fn stream_of(&self, ino: u32) -> u64 {
        self.streams.get(ino as usize).copied().unwrap_or(NO_STREAM)
    }

    /// Rebuilds the files of the streams from their names.
    pub(super) fn find_files(&mut self) {
        self.files.clear();
        self.holes.clear();
        self.streams.clear();
        let Some(filesystem) = &self.mounted else { return };
        for (name, ino) in filesystem.list(ROOT).into_iter().flatten() {
            let Ok(name) = std::str::from_utf8(name) else { continue };
            let Some((stream, part)) = name.split_once('.') else { continue };
            let (Ok(stream), Ok(part)) = (u64::from_str_radix(stream, 16), u32::from_str_radix(part, 16)) else {
                continue;
            };
            note_stream(&mut self.streams, ino, stream);
            let entry = self.files.entry(stream).or_insert((ino, part));
            if part >= entry.1 {
                *entry = (ino, part);
            }
        }
    }

    /// Gives the pages of the disk to the files of their ranges, because only flash is known.
    pub(super) fn own_ranges(&mut self) {
        let Some(filesystem) = &self.mounted else { return };
        for (&stream, &(ino, _)) in self.files.range(RANGES..) {
            let first = (stream - RANGES) * u64::from(self.range);
            for index in 0..self.range {
                let Some(owner) = self.owners.get_mut((first + u64::from(index)) as usize) else { break };
                if matches!(filesystem.locate(ino, index), Ok(Some(_))) {
                    *owner = (ino, index);
                }
            }
        }
    }
}
