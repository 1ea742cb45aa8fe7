//! The files of streams, from their names: `STREAM.PART`, both hexadecimal.

use super::{NO_STREAM, Replay};
use crate::ROOT;

/// Records that the file `ino` is that of `stream`.
pub(super) fn note_stream(streams: &mut Vec<u64>, ino: u32, stream: u64) {
    if streams.len() <= ino as usize {
        streams.resize(ino as usize + 1, NO_STREAM);
    }
    streams[ino as usize] = stream;
}

impl Replay {
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
}
