//! Names of the files that the requests of a trace belong to, numbered in order of first appearance.
//!
//! A request carries the number ([`Request::file`](super::request::Request::file)); the source has the table
//! ([`Source::file_names`](super::request::Source::file_names)). Only distinct names take memory, and only if the
//! reader requests names.

use palimpsest_flash::geometry::FileGroup;
use palimpsest_flash::rng::mix;
use std::collections::HashMap;
use std::sync::Arc;

/// The number of a request without a file, or without a requested name.
pub const NO_FILE: u32 = u32::MAX;

/// Most names in a table; requests of later files have [`NO_FILE`].
pub const MOST_NAMES: usize = 1 << 24;

/// Names by number, and numbers by name.
#[derive(Debug, Clone, Default)]
pub struct FileNames {
    // Never iterated, because hash order must not affect a result.
    numbers: HashMap<Arc<str>, u32>,
    names: Vec<Arc<str>>,
}

impl FileNames {
    /// The number of `name`, new if the table has none; bytes that are not UTF-8 are replaced. An empty name is no
    /// file.
    pub fn number(&mut self, name: &[u8]) -> u32 {
        if name.is_empty() {
            return NO_FILE;
        }
        let name = String::from_utf8_lossy(name);
        if let Some(&number) = self.numbers.get(&*name) {
            return number;
        }
        if self.names.len() == MOST_NAMES {
            return NO_FILE;
        }
        let (number, name) = (self.names.len() as u32, Arc::<str>::from(name));
        self.names.push(Arc::clone(&name));
        self.numbers.insert(name, number);
        number
    }

    /// The name of `number`; `None` for [`NO_FILE`] and for numbers without a name.
    #[inline]
    pub fn name(&self, number: u32) -> Option<&str> {
        self.names.get(number as usize).map(|name| &**name)
    }

    /// The groups of the file `number`: hashes, in lower case, of the name's directory (before the last separator) and
    /// suffix (after the last dot).
    pub fn group(&self, number: u32) -> FileGroup {
        let Some(name) = self.name(number) else { return FileGroup::default() };
        let (directory, file) = name.rsplit_once(['/', '\\']).unwrap_or(("", name));
        let suffix = file.rsplit_once('.').map_or("", |(_, suffix)| suffix);
        FileGroup { directory: number_of(directory), suffix: number_of(suffix) }
    }

    /// Number of names; all numbers are less.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// True if the table is empty.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// A hash of `text`; 0 for an empty one.
fn number_of(text: &str) -> u64 {
    let mixed = text.bytes().fold(0, |all, byte| mix(all ^ u64::from(byte.to_ascii_lowercase())));
    if text.is_empty() { 0 } else { mixed.max(1) }
}

#[cfg(test)]
mod tests;
