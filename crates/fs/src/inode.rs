//! Inodes: what a file system knows of a file, with the pointers to its pages (the second tier, STLPA, of the co-design paper).
//!
//! Twelve direct pointers, one to a page of pointers (single indirect) and one to a page of pointers to such pages (double
//! indirect), each a logical page address of 32 bits. A page of pointers is called a leaf here; leaf 0 is the single indirect
//! one. In memory the leaves of an inode are all there; on the device an inode takes [`INODE_BYTES`] in a page of the inode file.

use super::device::NO_PAGE;

/// Bytes of an inode on the device.
pub const INODE_BYTES: usize = 128;
/// Direct pointers.
pub const DIRECT: u32 = 12;

/// What an inode is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A directory.
    Directory,
}

/// A page of pointers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// Pointers; [`NO_PAGE`] for holes.
    pub pointers: Box<[u32]>,
    /// Pointers that are not holes.
    pub used: u32,
    /// Where it stands on the device; [`NO_PAGE`] if it was not written yet.
    pub home: u32,
    /// Whether it differs from what stands there.
    pub dirty: bool,
}

/// An inode in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inode {
    /// File or directory.
    pub kind: Kind,
    /// Length in bytes.
    pub size: u64,
    /// The direct pointers.
    pub direct: [u32; DIRECT as usize],
    /// The leaves, single indirect first.
    pub leaves: Vec<Option<Leaf>>,
    /// Where the page of pointers to leaves stands; [`NO_PAGE`] if there is none.
    pub root: u32,
    /// Whether it differs from what stands there.
    pub root_dirty: bool,
    /// Pages of the file in each channel.
    pub channels: Vec<u32>,
    /// Whether anything of it differs from what the device holds.
    pub dirty: bool,
}

/// Where a pointer stands.
pub enum Place {
    /// Among the direct ones.
    Direct(usize),
    /// In a leaf, there.
    Leaf(usize, usize),
}

/// Where the pointer of page `page` stands, with `width` pointers a leaf.
pub fn place(page: u32, width: u32) -> Place {
    match page.checked_sub(DIRECT) {
        None => Place::Direct(page as usize),
        Some(rest) => Place::Leaf((rest / width) as usize, (rest % width) as usize),
    }
}

/// Pages of the largest file, with `width` pointers a leaf.
pub fn most_pages(width: u32) -> u32 {
    let all = u64::from(DIRECT) + u64::from(width) + u64::from(width) * u64::from(width);
    // Page numbers of files leave room for names of other things.
    all.min(1 << 30) as u32
}

impl Inode {
    /// An empty one, over `channels` channels.
    pub fn new(kind: Kind, channels: u32) -> Self {
        Inode {
            kind,
            size: 0,
            direct: [NO_PAGE; DIRECT as usize],
            leaves: Vec::new(),
            root: NO_PAGE,
            root_dirty: false,
            channels: vec![0; channels as usize],
            dirty: false,
        }
    }

    /// The pointer of page `page`, or [`NO_PAGE`].
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

    /// Writes it to `bytes`, which are [`INODE_BYTES`].
    pub fn encode(&self, bytes: &mut [u8]) {
        bytes.fill(0);
        bytes[0] = match self.kind {
            Kind::File => 1,
            Kind::Directory => 2,
        };
        bytes[8..16].copy_from_slice(&self.size.to_le_bytes());
        let single = self.leaves.first().and_then(Option::as_ref).map_or(NO_PAGE, |leaf| leaf.home);
        for (index, pointer) in self.direct.into_iter().chain([single, self.root]).enumerate() {
            bytes[16 + 4 * index..20 + 4 * index].copy_from_slice(&pointer.to_le_bytes());
        }
    }

    /// Reads what [`Self::encode`] wrote: the inode without its leaves, and where its single indirect leaf stands; `None` where
    /// there is no inode.
    pub fn decode(bytes: &[u8], channels: u32) -> Option<(Inode, u32)> {
        let kind = match bytes[0] {
            1 => Kind::File,
            2 => Kind::Directory,
            _ => return None,
        };
        let mut inode = Inode::new(kind, channels);
        inode.size = u64::from_le_bytes(bytes[8..16].try_into().expect("eight bytes"));
        let mut pointers = bytes[16..].chunks_exact(4).map(|four| u32::from_le_bytes(four.try_into().expect("four")));
        inode.direct = std::array::from_fn(|_| pointers.next().expect("a direct pointer"));
        let single = pointers.next().expect("the single indirect pointer");
        inode.root = pointers.next().expect("the double indirect pointer");
        Some((inode, single))
    }
}
