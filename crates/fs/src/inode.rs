//! Inodes: the record of a file, with the pointers to its pages (the second tier, STLPA, of the co-design paper).
//!
//! Twelve direct pointers, one to a page of pointers (single indirect) and one to a page of pointers to such pages
//! (double indirect), each a logical page address of 32 bits. A page of pointers is a leaf; leaf 0 is the single
//! indirect one. Memory holds all leaves of an inode; on the device an inode takes [`INODE_BYTES`] in a page of the
//! inode file.

use super::device::NO_PAGE;

/// Bytes of an inode on the device.
pub const INODE_BYTES: usize = 128;
pub const DIRECT: u32 = 12;
/// Words of an inode; the user of the file system keeps modes and times in all but the last two.
pub const WORDS: usize = 14;
/// The word that counts the names of the inode beyond the first.
pub const LINKS: usize = WORDS - 1;
/// The word that names the file of extended attributes; 0 for none.
pub const ATTRIBUTES: usize = WORDS - 2;
/// Offset of the words in an inode on the device.
const AT_WORDS: usize = INODE_BYTES - 4 * WORDS;

/// The type of an inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileType {
    #[default]
    File,
    Directory,
}

palimpsest_flash::state_of_words!(FileType { File, Directory });

/// A page of pointers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Leaf {
    /// Pointers; [`NO_PAGE`] for holes.
    pub pointers: Box<[u32]>,
    /// Pointers that are not holes.
    pub used: u32,
    /// Page of the leaf on the device; [`NO_PAGE`] before the first write.
    pub home: u32,
    /// Whether the leaf differs from that page.
    pub dirty: bool,
}

palimpsest_flash::state!(Leaf { pointers, used, home, dirty });

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inode {
    pub file_type: FileType,
    /// Length in bytes.
    pub size: u64,
    pub direct: [u32; DIRECT as usize],
    /// The leaves, single indirect first.
    pub leaves: Vec<Option<Leaf>>,
    /// The page of pointers to leaves on the device; [`NO_PAGE`] if there is none.
    pub root: u32,
    /// Whether the pointers to leaves differ from that page.
    pub root_dirty: bool,
    /// Pages of the file in each channel.
    pub channels: Vec<u32>,
    pub words: [u32; WORDS],
    /// Whether the inode differs from its copy on the device.
    pub dirty: bool,
}

palimpsest_flash::state!(Inode { file_type, size, direct, leaves, root, root_dirty, channels, words, dirty });

/// The place of a pointer.
pub enum Place {
    Direct(usize),
    /// Leaf, and index in the leaf.
    Leaf(usize, usize),
}

/// The place of the pointer of page `page`, with `width` pointers a leaf.
pub fn place(page: u32, width: u32) -> Place {
    match page.checked_sub(DIRECT) {
        None => Place::Direct(page as usize),
        Some(rest) => Place::Leaf((rest / width) as usize, (rest % width) as usize),
    }
}

/// Pages of the largest file, with `width` pointers a leaf.
pub fn most_pages(width: u32) -> u32 {
    let all = u64::from(DIRECT) + u64::from(width) + u64::from(width) * u64::from(width);
    // The upper bits of a page number mark leaves and roots (`allocator::Role`).
    all.min(1 << 30) as u32
}

impl Inode {
    pub fn new(file_type: FileType, channels: u32) -> Self {
        Inode {
            file_type,
            direct: [NO_PAGE; DIRECT as usize],
            root: NO_PAGE,
            channels: vec![0; channels as usize],
            ..Inode::default()
        }
    }

    pub fn pointer(&self, page: u32, width: u32) -> u32 {
        match place(page, width) {
            Place::Direct(index) => self.direct[index],
            Place::Leaf(leaf, index) => match self.leaves.get(leaf) {
                Some(Some(leaf)) => leaf.pointers[index],
                _ => NO_PAGE,
            },
        }
    }

    /// Pages that are not holes, with their pointers, in order.
    pub fn pages(&self, width: u32) -> impl Iterator<Item = (u32, u32)> {
        let direct = self.direct.iter().enumerate().map(|(page, &pointer)| (page as u32, pointer));
        let leaves = self.leaves.iter().enumerate().filter_map(|(index, leaf)| Some((index, leaf.as_ref()?)));
        let indirect = leaves.flat_map(move |(index, leaf)| {
            let first = DIRECT + index as u32 * width;
            leaf.pointers.iter().enumerate().map(move |(at, &pointer)| (first + at as u32, pointer))
        });
        direct.chain(indirect).filter(|&(_, pointer)| pointer != NO_PAGE)
    }

    /// Writes the inode to `bytes`, [`INODE_BYTES`] of them.
    pub fn encode(&self, bytes: &mut [u8]) {
        bytes.fill(0);
        bytes[0] = match self.file_type {
            FileType::File => 1,
            FileType::Directory => 2,
        };
        bytes[8..16].copy_from_slice(&self.size.to_le_bytes());
        let single = self.leaves.first().and_then(Option::as_ref).map_or(NO_PAGE, |leaf| leaf.home);
        for (index, pointer) in self.direct.into_iter().chain([single, self.root]).enumerate() {
            bytes[16 + 4 * index..20 + 4 * index].copy_from_slice(&pointer.to_le_bytes());
        }
        for (place, word) in bytes[AT_WORDS..].chunks_exact_mut(4).zip(self.words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
    }

    /// The inverse of [`Self::encode`]: the inode without its leaves, and the page of the single indirect leaf; `None`
    /// for an empty slot.
    pub fn decode(bytes: &[u8], channels: u32) -> Option<(Inode, u32)> {
        let file_type = match bytes[0] {
            1 => FileType::File,
            2 => FileType::Directory,
            _ => return None,
        };
        let mut inode = Inode::new(file_type, channels);
        inode.size = u64::from_le_bytes(bytes[8..16].try_into().expect("eight bytes"));
        let mut pointers = bytes[16..].chunks_exact(4).map(|four| u32::from_le_bytes(four.try_into().expect("four")));
        inode.direct = std::array::from_fn(|_| pointers.next().expect("a direct pointer"));
        let single = pointers.next().expect("the single indirect pointer");
        inode.root = pointers.next().expect("the double indirect pointer");
        let mut words =
            bytes[AT_WORDS..].chunks_exact(4).map(|four| u32::from_le_bytes(four.try_into().expect("four")));
        inode.words = std::array::from_fn(|_| words.next().expect("a word"));
        Some((inode, single))
    }
}
