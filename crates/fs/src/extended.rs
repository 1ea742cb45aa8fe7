//! Extended attributes: names with values of an inode, kept in a nameless file.
//!
//! A word of the inode names that file, and freeing the inode frees the file. A change writes a new file before
//! the word changes, so a power cut leaves the attributes before or after the change. The user of the file system gives
//! them their meaning.

use super::device::Device;
use super::inode::{ATTRIBUTES, FileType, Inode};
use super::{Done, Fault, FileSystem};
use std::collections::BTreeMap;

/// Bytes of all attributes of an inode, and of a name.
const MOST_BYTES: usize = 1 << 20;
const LONGEST_NAME: usize = 255;

/// Attributes by name.
pub type Attributes = BTreeMap<Vec<u8>, Vec<u8>>;

fn encode(attributes: &Attributes) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in attributes {
        bytes.extend_from_slice(&(name.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
        bytes.extend_from_slice(name);
        bytes.extend_from_slice(value);
    }
    bytes
}

fn decode(mut bytes: &[u8]) -> Option<Attributes> {
    let mut attributes = Attributes::new();
    while !bytes.is_empty() {
        let (name, rest) = bytes.split_at_checked(4)?;
        let (value, rest) = rest.split_at_checked(4)?;
        let length = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes")) as usize;
        let (name, rest) = rest.split_at_checked(length(name))?;
        let (value, rest) = rest.split_at_checked(length(value))?;
        attributes.insert(name.into(), value.into());
        bytes = rest;
    }
    Some(attributes)
}

impl FileSystem {
    /// The inode of the file with the attributes of `ino`.
    fn attributes_at(&self, ino: u32) -> Done<Option<u32>> {
        Ok(Some(self.inode(ino)?.words[ATTRIBUTES]).filter(|&at| at != 0))
    }

    /// Whether `ino` has extended attributes.
    pub fn has_extended(&self, ino: u32) -> Done<bool> {
        Ok(self.attributes_at(ino)?.is_some())
    }

    /// The extended attributes of `ino`.
    ///
    /// # Errors
    /// [`Fault::Corrupt`], [`Fault::NotFound`], and errors of flash.
    pub fn extended(&self, device: &mut dyn Device, ino: u32) -> Done<Attributes> {
        let Some(at) = self.attributes_at(ino)? else { return Ok(Attributes::new()) };
        let bytes = self.read(device, at, 0, MOST_BYTES as u64)?;
        decode(&bytes).ok_or(Fault::Corrupt("a file of extended attributes has other contents"))
    }

    /// Sets the extended attributes of `ino`, in one commit.
    ///
    /// # Errors
    /// [`Fault::Full`], also for too many bytes; [`Fault::NotFound`], and errors of flash.
    pub fn set_extended(&mut self, device: &mut dyn Device, ino: u32, attributes: &Attributes) -> Done<()> {
        let bytes = encode(attributes);
        if bytes.len() > MOST_BYTES || attributes.keys().any(|name| name.len() > LONGEST_NAME) {
            return Err(Fault::Full);
        }
        let before = self.attributes_at(ino)?;
        let mut now = 0;
        if !attributes.is_empty() {
            self.admit(device, 8)?;
            self.make_room(device, 8)?;
            now = self.next_inode()?;
            self.insert_inode(now, Inode::new(FileType::File, self.shape.channels));
            self.touch(now);
            self.record_inode(now);
            // Nameless until the word leads to it.
            self.orphans.insert(now);
            if let Err(fault) = self.write(device, now, 0, &bytes) {
                if !matches!(fault, Fault::Halt(_)) {
                    self.discard(now);
                }
                return Err(fault);
            }
        }
        self.make_room(device, 16)?;
        self.orphans.remove(&now);
        self.set_word(ino, ATTRIBUTES, now);
        if let Some(before) = before {
            self.discard(before);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_come_back() {
        let all: Attributes = [(&b"user.a"[..], &b""[..]), (b"user.\xff", b"value"), (b"trusted.b", &[0; 4000])]
            .map(|(name, value)| (name.to_vec(), value.to_vec()))
            .into();
        let bytes = encode(&all);
        assert_eq!(decode(&bytes), Some(all));
        assert!((1..bytes.len()).all(|end| decode(&bytes[..end]).is_none_or(|some| encode(&some) == bytes[..end])));
        assert_eq!(decode(&[1]), None);
    }
}
