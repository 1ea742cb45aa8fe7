//! Files of a tar archive in their order: POSIX ustar and pax, and GNU's long names and sizes.
//!
//! Ignored: directories, links, devices, sparse files, archives without the mark `ustar` (before 1988).

use std::cell::Cell;
use std::io::{self, ErrorKind, Read};
use std::rc::Rc;

use ::tar::Archive;

use super::{Bytes, Exactly, MOST_FILES, damaged};

const BLOCK: u64 = 512;
/// Most bytes of the headers of one file, because the library stores long names in memory.
const MOST_HEADER_BYTES: u64 = 1 << 18;

/// True if a tar archive begins with these bytes.
pub fn is_one(reader: Bytes) -> bool {
    let mut block = Vec::new();
    let is_marked = reader.take(BLOCK).read_to_end(&mut block).is_ok() && block.get(257..262) == Some(b"ustar");
    is_marked && matches!(Archive::new(&block[..]).entries().map(|files| files.raw(true).next()), Ok(Some(Ok(_))))
}

/// A reader of the first file whose name `is_wanted`; none if no name is.
pub fn find(reader: Bytes, mut is_wanted: impl FnMut(&str) -> bool) -> io::Result<Option<Bytes>> {
    let state = Rc::new(State::default());
    state.allowance.set(MOST_HEADER_BYTES);
    let mut archive = Archive::new(Metered { reader, state: Rc::clone(&state) });
    let (mut files, mut found) = (0, None);
    for entry in archive.entries()? {
        let entry = entry.map_err(|failure| match (state.has_failed.get(), state.has_ended.get()) {
            (true, _) => failure,
            (false, true) => ErrorKind::UnexpectedEof.into(),
            (false, false) => damaged(format!("the head of a file in it is wrong: {failure}")),
        })?;
        let (kind, length) = (entry.header().entry_type(), entry.size());
        if kind.is_file() || kind.is_contiguous() {
            files += 1;
            if files > MOST_FILES {
                return Err(damaged(format!("it has more than {MOST_FILES} files")));
            }
            if is_wanted(&String::from_utf8_lossy(&entry.path_bytes())) {
                found = Some(length);
                break;
            }
        }
        // The size of a sparse file counts its holes, which the archive does not store.
        let stored = if kind.is_gnu_sparse() { entry.header().entry_size()? } else { length };
        state.allowance.set(stored.saturating_add(MOST_HEADER_BYTES));
    }
    let reader = archive.into_inner().reader;
    Ok(found.map(|left| Box::new(Exactly { reader, left }) as Bytes))
}

#[derive(Default)]
struct State {
    /// Bytes that may be read before the next file is reached.
    allowance: Cell<u64>,
    has_ended: Cell<bool>,
    has_failed: Cell<bool>,
}

struct Metered {
    reader: Bytes,
    state: Rc<State>,
}

impl Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let result = loop {
            match self.reader.read(buffer) {
                Err(failure) if failure.kind() == ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        let result = result.and_then(|read| {
            let left = self.state.allowance.get().checked_sub(read as u64);
            let left = left.ok_or_else(|| {
                damaged(format!("the names of a file in it have more than {MOST_HEADER_BYTES} bytes"))
            })?;
            self.state.allowance.set(left);
            Ok(read)
        });
        self.state.has_ended.set(matches!(result, Ok(0)));
        self.state.has_failed.set(result.is_err());
        result
    }
}
