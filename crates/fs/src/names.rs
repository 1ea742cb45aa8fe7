//! Operations by name: directories and their entries.

use super::device::Device;
use super::directory::{Directory, LONGEST_NAME};
use super::inode::{ATTRIBUTES, FileType, Inode, LINKS};
use super::log::{MOST_INODES, Record};
use super::{Done, Fault, FileSystem, NO_PAGE, ROOT, WORDS};
use palimpsest_flash::geometry::FileGroup;

/// Pages that one change of a directory may add to a commit, beside the directory's inode.
const ENTRY_PAGES: u64 = 8;

impl FileSystem {
    fn directory(&self, ino: u32) -> Done<&Directory> {
        match self.directories.get(&ino) {
            Some(directory) => Ok(directory),
            None => Err(self.inode(ino).map_or_else(|fault| fault, |_| Fault::NotDirectory)),
        }
    }

    /// The inode called `name` in directory `parent`.
    pub fn lookup(&self, parent: u32, name: impl AsRef<[u8]>) -> Done<u32> {
        self.directory(parent)?.get(name.as_ref()).ok_or(Fault::NotFound)
    }

    /// Names and inodes of directory `ino`, in order.
    pub fn list(&self, ino: u32) -> Done<impl Iterator<Item = (&[u8], u32)>> {
        Ok(self.directory(ino)?.iter())
    }

    /// The inode at `path`: names with slashes between, from the root.
    pub fn resolve(&self, path: &str) -> Done<u32> {
        path.split('/').filter(|name| !name.is_empty()).try_fold(ROOT, |ino, name| self.lookup(ino, name))
    }

    /// The parent of directory `ino`; of the root: the root.
    pub fn parent(&self, ino: u32) -> Done<u32> {
        Ok(if ino == ROOT { ROOT } else { self.directory(ino)?.parent })
    }

    /// Creates an empty file or directory called `name` in `parent`; returns the inode.
    ///
    /// # Errors
    /// [`Fault::Exists`], [`Fault::Invalid`].
    pub fn create(
        &mut self,
        device: &mut dyn Device,
        parent: u32,
        name: impl AsRef<[u8]>,
        file_type: FileType,
    ) -> Done<u32> {
        self.create_with(device, parent, name, file_type, &[])
    }

    /// As [`Self::create`], with the first `words` in the same commit.
    pub fn create_with(
        &mut self,
        device: &mut dyn Device,
        parent: u32,
        name: impl AsRef<[u8]>,
        file_type: FileType,
        words: &[u32],
    ) -> Done<u32> {
        let name = name.as_ref();
        self.admit_name(device, parent, name)?;
        let next = self.next_inode()?;
        self.make_room(device, ENTRY_PAGES)?;
        self.insert_inode(next, Inode::new(file_type, self.shape.channels));
        self.touch(next);
        self.record_inode(next);
        for (place, &value) in words.iter().take(WORDS).enumerate() {
            self.set_word(next, place, value);
        }
        self.insert_entry(parent, name, next);
        Ok(next)
    }

    /// Adds `name` in `parent` to the names of the file `ino`.
    ///
    /// # Errors
    /// [`Fault::Exists`], [`Fault::Invalid`].
    pub fn link(&mut self, device: &mut dyn Device, parent: u32, name: impl AsRef<[u8]>, ino: u32) -> Done<()> {
        let name = name.as_ref();
        self.file(ino)?;
        if self.orphans.contains(&ino) {
            return Err(Fault::NotFound);
        }
        self.admit_name(device, parent, name)?;
        self.make_room(device, ENTRY_PAGES)?;
        let links = self.inode(ino)?.words[LINKS];
        self.set_word(ino, LINKS, links + 1);
        self.insert_entry(parent, name, ino);
        Ok(())
    }

    /// Number of names of `ino`: one for a directory.
    pub fn links(&self, ino: u32) -> Done<u32> {
        let named = u32::from(!self.orphans.contains(&ino));
        Ok(self.inode(ino)?.words[LINKS] + named)
    }

    /// Makes `ino` outlive the last name, until [`Self::unpin`] or the next mount.
    pub fn pin(&mut self, ino: u32) {
        self.pins.insert(ino);
    }

    /// Undoes [`Self::pin`]; frees a nameless `ino`.
    pub fn unpin(&mut self, device: &mut dyn Device, ino: u32) -> Done<()> {
        self.pins.remove(&ino);
        if self.orphans.contains(&ino) {
            self.make_room(device, ENTRY_PAGES)?;
            self.discard(ino);
        }
        Ok(())
    }

    fn remove_entry(&mut self, device: &mut dyn Device, parent: u32, name: &[u8], ino: u32) -> Done<()> {
        self.make_room(device, ENTRY_PAGES)?;
        self.change_entries(parent, |directory| directory.remove(name));
        self.drop_name(ino);
        Ok(())
    }

    /// Drops a name of `ino`: the last one frees the inode, unless pinned.
    fn drop_name(&mut self, ino: u32) {
        let links = self.inode_mut(ino).words[LINKS];
        match links {
            0 if self.pins.contains(&ino) => _ = self.orphans.insert(ino),
            0 => self.discard(ino),
            links => self.set_word(ino, LINKS, links - 1),
        }
    }

    /// Refuses a taken or wrong name, and a name without room.
    fn admit_name(&mut self, device: &mut dyn Device, parent: u32, name: &[u8]) -> Done<()> {
        self.check_name(name)?;
        if self.directory(parent)?.get(name).is_some() {
            return Err(Fault::Exists);
        }
        self.admit(device, ENTRY_PAGES)?;
        self.admit_entry(parent)
    }

    fn check_name(&self, name: &[u8]) -> Done<()> {
        let most = LONGEST_NAME.min(self.shape.page_bytes as usize - 16);
        let has = |byte: u8| name.contains(&byte);
        let wrong = name.is_empty() || name.len() > most || has(b'/') || has(0) || name == b"." || name == b"..";
        if wrong { Err(Fault::Invalid) } else { Ok(()) }
    }

    /// Refuses an entry in a directory that cannot grow by a page.
    fn admit_entry(&self, ino: u32) -> Done<()> {
        if self.directory(ino)?.pages() < self.most_pages() { Ok(()) } else { Err(Fault::Full) }
    }

    pub(super) fn next_inode(&self) -> Done<u32> {
        let next = self.unused.first().copied().unwrap_or(self.inodes.len() as u32);
        let exceeds = next / self.inodes_per_page() >= self.most_pages() || next >= MOST_INODES;
        if exceeds { Err(Fault::Full) } else { Ok(next) }
    }

    pub(super) fn insert_inode(&mut self, ino: u32, inode: Inode) {
        while self.inodes.len() <= ino as usize {
            self.unused.insert(self.inodes.len() as u32);
            self.inodes.push(None);
        }
        self.unused.remove(&ino);
        if inode.file_type == FileType::Directory {
            self.directories.insert(ino, Directory::default());
        }
        self.inodes[ino as usize] = Some(inode);
    }

    pub(super) fn change_entries(&mut self, ino: u32, change: impl FnOnce(&mut Directory)) {
        let directory = self.directories.get_mut(&ino).expect("a directory");
        let before = directory.dirty.len();
        change(directory);
        let dirtied = directory.dirty.len() - before;
        let bytes = u64::from(directory.pages()) * u64::from(self.shape.page_bytes);
        // The page, the leaf and the root.
        self.pending += 3 * dirtied as u64;
        self.touch(ino);
        if std::mem::replace(&mut self.inode_mut(ino).size, bytes) != bytes {
            self.record_inode(ino);
        }
    }

    pub(super) fn insert_entry(&mut self, parent: u32, name: &[u8], ino: u32) {
        let page_bytes = self.shape.page_bytes as usize;
        if let Some(directory) = self.directories.get_mut(&ino) {
            directory.parent = parent;
        }
        self.change_entries(parent, |directory| directory.insert(name, ino, page_bytes));
    }

    /// Removes the file called `name` from `parent`; the last name frees the contents.
    pub fn unlink(&mut self, device: &mut dyn Device, parent: u32, name: impl AsRef<[u8]>) -> Done<()> {
        let name = name.as_ref();
        let ino = self.lookup(parent, name)?;
        self.file(ino)?;
        self.remove_entry(device, parent, name, ino)
    }

    /// Removes the empty directory called `name` from `parent`.
    ///
    /// # Errors
    /// [`Fault::NotEmpty`].
    pub fn remove_directory(&mut self, device: &mut dyn Device, parent: u32, name: impl AsRef<[u8]>) -> Done<()> {
        let name = name.as_ref();
        let ino = self.lookup(parent, name)?;
        if !self.directory(ino)?.is_empty() {
            return Err(Fault::NotEmpty);
        }
        self.remove_entry(device, parent, name, ino)
    }

    /// Frees `ino` with all pages.
    pub(super) fn discard(&mut self, ino: u32) {
        let attributes = self.inode_mut(ino).words[ATTRIBUTES];
        if attributes != 0 {
            self.discard(attributes);
        }
        self.cut(ino, 0);
        self.reserved.give_back(ino, 0..u32::MAX);
        self.orphans.remove(&ino);
        self.directories.remove(&ino);
        self.touch_record(ino);
        self.dirty.remove(&ino);
        self.inodes[ino as usize] = None;
        self.record(Record::Removed { ino });
        self.unused.insert(ino);
        self.set_group(ino, FileGroup::default());
    }

    /// Makes all pages of `ino` from `page` on holes.
    pub(super) fn cut(&mut self, ino: u32, page: u32) {
        let inode = self.inodes[ino as usize].as_ref().expect("an inode that exists");
        let rest: Vec<u32> = inode.pages(self.width).map(|(page, _)| page).filter(|&at| at >= page).collect();
        // From the end, so that leaves become empty one after the other.
        for &page in rest.iter().rev() {
            self.point(ino, page, NO_PAGE);
        }
    }

    /// Renames `name` of `parent` to `new_name` of `new_parent`. A file replaces a file, a directory an empty
    /// directory.
    ///
    /// # Errors
    /// [`Fault::NotEmpty`]; [`Fault::Invalid`] for a wrong name, and if a directory would move into itself.
    pub fn rename(
        &mut self,
        device: &mut dyn Device,
        parent: u32,
        name: impl AsRef<[u8]>,
        new_parent: u32,
        new_name: impl AsRef<[u8]>,
    ) -> Done<()> {
        let (name, new_name) = (name.as_ref(), new_name.as_ref());
        self.check_name(new_name)?;
        let ino = self.lookup(parent, name)?;
        let file_type = self.inode(ino)?.file_type;
        let replaced = self.directory(new_parent)?.get(new_name);
        if replaced == Some(ino) {
            return Ok(());
        }
        if file_type == FileType::Directory && self.is_below(new_parent, ino) {
            return Err(Fault::Invalid);
        }
        self.admit(device, 2 * ENTRY_PAGES)?;
        self.admit_entry(new_parent)?;
        self.make_room(device, 2 * ENTRY_PAGES)?;
        match (file_type, replaced.map(|ino| self.inode(ino).map(|inode| inode.file_type))) {
            (FileType::File, Some(Ok(FileType::Directory))) => return Err(Fault::IsDirectory),
            (FileType::Directory, Some(Ok(FileType::File))) => return Err(Fault::NotDirectory),
            (FileType::File, Some(_)) => self.unlink(device, new_parent, new_name)?,
            (FileType::Directory, Some(_)) => self.remove_directory(device, new_parent, new_name)?,
            (_, None) => {}
        }
        self.change_entries(parent, |directory| directory.remove(name));
        self.insert_entry(new_parent, new_name, ino);
        Ok(())
    }

    /// Whether `ino` is `above` or a descendant of it.
    fn is_below(&self, mut ino: u32, above: u32) -> bool {
        while ino != above && ino != ROOT {
            ino = self.directories.get(&ino).map_or(ROOT, |directory| directory.parent);
        }
        ino == above
    }
}
