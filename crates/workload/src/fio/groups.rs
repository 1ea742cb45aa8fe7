//! Groups of files and a mix of requests, beyond fio: the keys `filegroups`, `mix`, `filelayout` and `dwell`.
//!
//! ```text
//! filegroups=mail/48/96k/lockstep4@4k:index/110/8k/whole
//! mix=12/read/mail/whole/hot8@50:86.6/write/index/whole:1.4/write/mail/4k
//! ```
//!
//! A group is NAME/FILES/SIZE/LAYOUT: equal files, adjacent in the address space in the order of the key. The layout
//! writes one group after the other: `whole` files in one request each; `lockstep4@4k` four files at a time, a piece of
//! 4 KiB of each in strict turns; `random4@4k` in random turns. The next file of the group takes the place of a file
//! that is complete.
//!
//! A class of the mix is PERCENT/OPERATION/GROUP/SIZE: each request draws its class, a file of the group, and a place
//! in the file at a multiple of the size; `whole` requests the file. `hot8@50` draws the file among eight hot files,
//! which the class replaces by eight others after 50 requests of the class in the mean. `filelayout` and `dwell`
//! replace all layouts, and the 50 of all classes, so that one key shows their effect.
//!
//! Ignored: order within a file, files that grow or end, and dependences between classes.

use super::quantity::{count, size, size_text};
use crate::request::{RequestKind, SECTOR_BYTES};
use crate::trace::MAX_REQUEST_BYTES;
use palimpsest_flash::rng::Rng;

/// The order in which the files of a group are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupLayout {
    /// Each file in one request.
    Whole,
    /// Several files at a time.
    Pieces {
        /// In strict turns instead of random ones.
        lockstep: bool,
        /// Files at a time, at most 65,536.
        open: u32,
        /// Bytes of a piece, a multiple of 512.
        bytes: u64,
    },
}

/// Equal files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileGroup {
    /// Name for the mix.
    pub name: String,
    /// Number of files.
    pub files: u64,
    /// Bytes of a file, a multiple of 512.
    pub bytes: u64,
    /// The order of writing.
    pub layout: GroupLayout,
}

/// A class of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestClass {
    /// Share in tenths of a percent.
    pub permille: u32,
    /// Read or write.
    pub kind: RequestKind,
    /// Name of the group.
    pub group: String,
    /// Bytes of a request; `None`: the file.
    pub bytes: Option<u64>,
    /// Number of hot files, and the mean number of requests until others are hot; `None`: all files alike.
    pub hot: Option<(u64, u64)>,
}

/// A group beyond this number is refused, and a class.
const MOST: usize = 64;

impl GroupLayout {
    /// Reads `whole`, `lockstepK@SIZE` or `randomK@SIZE`.
    pub fn parse(text: &str) -> Option<GroupLayout> {
        if text == "whole" {
            return Some(GroupLayout::Whole);
        }
        let (turns, bytes) = text.split_once('@')?;
        let (lockstep, open) = match turns.strip_prefix("lockstep") {
            Some(open) => (true, open),
            None => (false, turns.strip_prefix("random")?),
        };
        let open = count(open).filter(|open| (1..=65_536).contains(open))? as u32;
        Some(GroupLayout::Pieces { lockstep, open, bytes: sectors(bytes)? })
    }

    fn text(self) -> String {
        match self {
            GroupLayout::Whole => "whole".into(),
            GroupLayout::Pieces { lockstep, open, bytes } => {
                format!("{}{open}@{}", if lockstep { "lockstep" } else { "random" }, size_text(bytes))
            }
        }
    }
}

/// The groups of `NAME/FILES/SIZE/LAYOUT:...`; `None` for any other text, or for a name that comes twice.
pub fn parse_groups(text: &str, most_files: u64) -> Option<Vec<FileGroup>> {
    let group = |text: &str| {
        let [name, files, bytes, layout] = fields(text)?;
        let files = count(files).filter(|files| (1..=most_files).contains(files))?;
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let layout = GroupLayout::parse(layout)?;
        is_name.then(|| Some(FileGroup { name: name.into(), files, bytes: sectors(bytes)?, layout }))?
    };
    let groups: Vec<FileGroup> = text.split(':').map(group).collect::<Option<_>>()?;
    let is_new = |at: usize| groups[..at].iter().all(|other| other.name != groups[at].name);
    let files: u64 = groups.iter().map(|group| group.files).sum();
    (groups.len() <= MOST && files <= most_files && (0..groups.len()).all(is_new)).then_some(groups)
}

/// The classes of `PERCENT/read|write/GROUP/SIZE|whole[/hotK@N]:...`, which add up to 100; `None` for any other text.
pub fn parse_mix(text: &str, permille: impl Fn(&str) -> Option<u32>) -> Option<Vec<RequestClass>> {
    let class = |text: &str| {
        let (text, hot) = match text.rsplit_once('/') {
            Some((text, hot)) if hot.contains('@') => {
                let (files, requests) = hot.strip_prefix("hot")?.split_once('@')?;
                let above_0 = |text: &str| count(text).filter(|&count| count > 0);
                (text, Some((above_0(files).filter(|&files| files <= 1 << 16)?, above_0(requests)?)))
            }
            _ => (text, None),
        };
        let [share, kind, group, bytes] = fields(text)?;
        let kind = match kind {
            "read" => RequestKind::Read,
            "write" => RequestKind::Write,
            _ => return None,
        };
        let bytes = if bytes == "whole" { None } else { Some(sectors(bytes)?) };
        Some(RequestClass { permille: permille(share)?, kind, group: group.into(), bytes, hot })
    };
    let classes: Vec<RequestClass> = text.split(':').map(class).collect::<Option<_>>()?;
    let total: u32 = classes.iter().map(|class| class.permille).sum();
    (classes.len() <= MOST && total == 1000).then_some(classes)
}

fn fields(text: &str) -> Option<[&str; 4]> {
    text.split('/').map(str::trim).collect::<Vec<_>>().try_into().ok()
}

fn sectors(text: &str) -> Option<u64> {
    size(text).filter(|&bytes| bytes > 0 && bytes <= MAX_REQUEST_BYTES && bytes.is_multiple_of(SECTOR_BYTES))
}

/// The text that [`parse_groups`] reads.
pub fn groups_text(groups: &[FileGroup]) -> String {
    let text = |group: &FileGroup| {
        format!("{}/{}/{}/{}", group.name, group.files, size_text(group.bytes), group.layout.text())
    };
    groups.iter().map(text).collect::<Vec<_>>().join(":")
}

/// The text that [`parse_mix`] reads; `tenths` is the text of a share.
pub fn mix_text(classes: &[RequestClass], tenths: impl Fn(u32) -> String) -> String {
    let text = |class: &RequestClass| {
        let kind = if class.kind == RequestKind::Read { "read" } else { "write" };
        let bytes = class.bytes.map_or("whole".into(), size_text);
        let hot = class.hot.map_or(String::new(), |(files, requests)| format!("/hot{files}@{requests}"));
        format!("{}/{kind}/{}/{bytes}{hot}", tenths(class.permille), class.group)
    };
    classes.iter().map(text).collect::<Vec<_>>().join(":")
}

/// The first class that the groups cannot serve, and the reason.
pub fn unserved(groups: &[FileGroup], classes: &[RequestClass]) -> Option<String> {
    classes.iter().find_map(|class| {
        let Some(group) = groups.iter().find(|group| group.name == class.group) else {
            let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
            return Some(format!("no group is called {:?}; expected one of {}", class.group, names.join(", ")));
        };
        let largest = class.bytes.unwrap_or(0);
        (largest > group.bytes).then(|| {
            let (request, file) = (size_text(largest), size_text(group.bytes));
            format!(
                "requests of {request} exceed the files of {}, which have {file}; expected at most that",
                group.name
            )
        })
    })
}

/// Draws the requests of a mix.
#[derive(Debug, Clone)]
pub struct ClassMix {
    classes: Vec<Class>,
}

#[derive(Debug, Clone)]
struct Class {
    /// Cumulated share in tenths of a percent.
    upto_permille: u64,
    kind: RequestKind,
    /// First sector of the group in the region.
    first: u64,
    files: u64,
    file_sectors: u64,
    sectors: u64,
    /// Number of hot files, and the mean number of requests until others are hot.
    hot: Option<(u64, u64)>,
    hot_files: Vec<u64>,
}

impl ClassMix {
    /// The mix of `classes`, each of which names one of `groups`.
    pub fn new(groups: &[FileGroup], classes: &[RequestClass]) -> ClassMix {
        let mut upto_permille = 0;
        let class = |class: &RequestClass| {
            upto_permille += u64::from(class.permille);
            let at = groups.iter().position(|group| group.name == class.group).expect("a class names a group");
            let first: u64 = groups[..at].iter().map(|group| group.files * group.bytes).sum();
            let (files, file_bytes) = (groups[at].files, groups[at].bytes);
            Class {
                upto_permille,
                kind: class.kind,
                first: first / SECTOR_BYTES,
                files,
                file_sectors: file_bytes / SECTOR_BYTES,
                sectors: class.bytes.unwrap_or(file_bytes) / SECTOR_BYTES,
                hot: class.hot,
                hot_files: Vec::new(),
            }
        };
        ClassMix { classes: classes.iter().map(class).collect() }
    }

    /// Kind, first sector in the region and sectors of the next request.
    pub fn draw(&mut self, classes: &mut Rng, places: &mut Rng) -> (RequestKind, u64, u32) {
        let share = classes.below(1000);
        let class = self.classes.iter_mut().find(|class| share < class.upto_permille).expect("shares add up to 100");
        let file = class.file(places);
        let slots = class.file_sectors / class.sectors;
        let start = class.first + file * class.file_sectors + places.below(slots) * class.sectors;
        (class.kind, start, class.sectors as u32)
    }
}

impl Class {
    fn file(&mut self, rng: &mut Rng) -> u64 {
        let Some((hot, requests)) = self.hot else { return rng.below(self.files) };
        if self.hot_files.is_empty() || rng.below(requests) == 0 {
            self.hot_files = (0..hot).map(|_| rng.below(self.files)).collect();
        }
        self.hot_files[rng.below(hot) as usize]
    }
}

#[cfg(test)]
mod tests;
