//! Files of a generated workload: fio's `nrfiles`, `filesize` and `openfiles`.
//!
//! Files follow each other in the region, large ones first. `filesize=16k/60:1m/40` gives the share of the files of
//! each size; without `nrfiles` as many files as fit fill the region, without `filesize` all have one size. A request
//! lies within one file, whose number is the stream. `random_distribution` distributes addresses, so requests of a file
//! are proportional to the file's size; a request across the end of a file moves back, and only files that are large
//! enough get the request.
//!
//! fio writes the files before a run. Here `--precondition layout` does ([`Layout`]): each file completely and in
//! order, with the write sizes of the workload, `openfiles` files at a time in random turns. (fio writes one file after
//! the other, as the default `openfiles=1` does here; in fio `openfiles` applies to the run.)
//!
//! Groups of files ([`FileGroup`]) replace these keys; each group has its own layout.

use super::groups::{FileGroup, GroupLayout};
use super::keys::MOST_FILES;
use super::region::Region;
use super::scatter::Scatter;
use super::spec::{FioSpec, SizeShare, place};
use crate::request::{Command, Extent, Request, RequestKind, SECTOR_BYTES};
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::rng::{Rng, mix};

/// Files of equal shares of a region are multiples of this.
const GRAIN_SECTORS: u64 = 8;

/// The extents of the files.
#[derive(Debug, Clone)]
pub struct Files {
    /// First sector of each file in the region, and the end of the last file.
    starts: Vec<u64>,
}

impl Files {
    /// The files of `spec` in `region`; `None` if the workload has no files.
    ///
    /// # Errors
    /// [`Error::Input`] if the files do not fit the region, or no file has room for the largest request.
    pub fn new(spec: &FioSpec, region: Region) -> Result<Option<Files>> {
        if spec.files.is_none() && spec.file_sizes.is_none() {
            return Ok(None);
        }
        if spec.sequential_from.is_some() {
            let what = "the workload has files too; expected only one of the two";
            return Err(Error::input(place("sequential_from"), what));
        }
        let files = Files { starts: starts(spec, region)? };
        let sizes = spec.pattern.kinds.iter().flat_map(|&kind| spec.sizes(kind));
        let largest = sizes.map(|share| share.bytes / SECTOR_BYTES).max().expect("every direction has a size");
        if files.starts[1] < largest {
            let what = format!(
                "the largest file has {} bytes; expected room for a request of {} bytes",
                files.starts[1] * SECTOR_BYTES,
                largest * SECTOR_BYTES
            );
            return Err(Error::input(place("filesize"), what));
        }
        Ok(Some(files))
    }

    /// The files of `groups`, which follow each other.
    pub fn of_groups(groups: &[FileGroup]) -> Files {
        let mut starts = vec![0];
        for group in groups {
            let (first, sectors) = (starts[starts.len() - 1], group.bytes / SECTOR_BYTES);
            starts.extend((1..=group.files).map(|file| first + file * sectors));
        }
        Files { starts }
    }

    fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Sectors of the region up to the end of the smallest file that holds `sectors`.
    pub fn room_for(&self, sectors: u64) -> u64 {
        let (mut large, mut rest) = (0, self.count());
        while large < rest {
            let middle = large.midpoint(rest);
            if self.starts[middle + 1] - self.starts[middle] >= sectors {
                large = middle + 1;
            } else {
                rest = middle;
            }
        }
        self.starts[large]
    }

    fn at(&self, sector: u64) -> usize {
        self.starts.partition_point(|&start| start <= sector) - 1
    }

    /// `start`, moved back if a request of `sectors` there would cross the end of the file.
    pub fn within(&self, start: u64, sectors: u64, align: u64) -> u64 {
        let file = self.at(start);
        let (first, end) = (self.starts[file], self.starts[file + 1]);
        if start + sectors <= end { start } else { ((end - sectors) / align * align).max(first) }
    }

    /// The start of a sequential request of `sectors` after a request that ended at `next`: `next`, the next file, or
    /// the first.
    pub fn following(&self, next: u64, sectors: u64) -> u64 {
        if next >= *self.starts.last().expect("an end") {
            return 0;
        }
        let file = self.at(next);
        let end = self.starts[file + 1];
        match self.starts.get(file + 2) {
            _ if next + sectors <= end => next,
            Some(&after) if after - end >= sectors => end,
            _ => 0,
        }
    }

    /// The stream of the file at `sector` of the region.
    pub fn stream(&self, sector: u64) -> u32 {
        1 + self.at(sector) as u32
    }
}

fn starts(spec: &FioSpec, region: Region) -> Result<Vec<u64>> {
    let wrong = |key: &str, what: String| Err(Error::input(place(key), what));
    let sizes = match (&spec.file_sizes, spec.files) {
        (Some(shares), _) => {
            let mut sizes = shares.clone();
            sizes.sort_by_key(|share| std::cmp::Reverse(share.bytes));
            sizes
        }
        (None, count) => {
            let sectors = region.sectors / count.unwrap_or(1).max(1) / GRAIN_SECTORS * GRAIN_SECTORS;
            if sectors == 0 {
                return wrong(
                    "nrfiles",
                    format!("the region has {} sectors; expected 8 for each file", region.sectors),
                );
            }
            vec![SizeShare { bytes: sectors * SECTOR_BYTES, permille: 1000 }]
        }
    };
    let mean: u64 = sizes.iter().map(|share| share.bytes / SECTOR_BYTES * u64::from(share.permille)).sum();
    let count = spec.files.unwrap_or((region.sectors.saturating_mul(1000) / mean.max(1)).max(1));
    if count > MOST_FILES {
        return wrong("nrfiles", format!("there would be {count} files; expected at most {MOST_FILES}"));
    }
    let (mut starts, mut upto, mut at) = (vec![0], 0, 0);
    for share in &sizes {
        upto += u64::from(share.permille);
        while (starts.len() as u64 - 1) * 1000 < upto * count {
            at += share.bytes / SECTOR_BYTES;
            if at > region.sectors && spec.files.is_none() && starts.len() > 1 {
                break; // Rounding may yield one file too many.
            }
            starts.push(at);
        }
    }
    let end = *starts.last().expect("a start");
    if end > region.sectors {
        let what =
            format!("the files take {} bytes; expected at most {}", end * SECTOR_BYTES, region.sectors * SECTOR_BYTES);
        return wrong("nrfiles", what);
    }
    Ok(starts)
}

/// The writes that create the files, or the files of a group.
#[derive(Debug, Clone)]
pub struct Layout {
    /// The order of all files; `None`: the files of a group in order.
    order: Option<Scatter>,
    /// The next file to begin, and the end of the files.
    begun: u64,
    end: u64,
    /// Sectors of a write; `None`: drawn.
    piece: Option<u64>,
    /// Open files take strict turns instead of random ones.
    lockstep: bool,
    /// Open files and their written sectors.
    open: Vec<(usize, u64)>,
    most: usize,
    rng: Rng,
}

impl Layout {
    /// The writes for `files`, at most `most` open at a time.
    pub fn new(files: &Files, most: u32, seed: u64) -> Layout {
        let end = files.count() as u64;
        let order = Some(Scatter::new(end, mix(seed ^ 5)));
        let (open, most, rng) = (Vec::new(), most.max(1) as usize, Rng::new(seed, 5));
        Layout { order, begun: 0, end, piece: None, lockstep: false, open, most, rng }
    }

    /// The writes for each of `groups`, in order.
    pub fn of_groups(groups: &[FileGroup], seed: u64) -> Vec<Layout> {
        let mut end = 0;
        let layout = |group: &FileGroup| {
            let begun = end;
            end += group.files;
            let (lockstep, most, bytes) = match group.layout {
                GroupLayout::Whole => (true, 1, group.bytes),
                GroupLayout::Pieces { lockstep, open, bytes } => (lockstep, open as usize, bytes),
            };
            let (open, rng) = (Vec::new(), Rng::new(mix(seed ^ begun), 5));
            Layout { order: None, begun, end, piece: Some(bytes / SECTOR_BYTES), lockstep, open, most, rng }
        };
        groups.iter().map(layout).collect()
    }

    /// The next write, of at most the sectors of a piece, or the number that `draw` returns.
    pub fn next_write(&mut self, files: &Files, first: u64, draw: impl FnOnce(&mut Rng) -> u64) -> Option<Request> {
        while self.open.len() < self.most && self.begun < self.end {
            let file = self.order.as_ref().map_or(self.begun, |order| order.place(self.begun));
            self.open.push((file as usize, 0));
            self.begun += 1;
        }
        if self.open.is_empty() {
            return None;
        }
        let turn = if self.lockstep { 0 } else { self.rng.below(self.open.len() as u64) as usize };
        let sectors = self.piece.unwrap_or_else(|| draw(&mut self.rng));
        let (file, done) = self.open[turn];
        let (start, end) = (files.starts[file] + done, files.starts[file + 1]);
        let sectors = sectors.min(end - start);
        self.open[turn].1 += sectors;
        if start + sectors == end {
            if self.lockstep {
                self.open.remove(turn)
            } else {
                self.open.swap_remove(turn)
            };
        } else if self.lockstep {
            self.open.rotate_left(1);
        }
        let extent = Extent { sector: first + start, sectors: sectors as u32 };
        Some(Request::new(0, Command::new(RequestKind::Write, extent).of(1 + file as u32)))
    }
}
