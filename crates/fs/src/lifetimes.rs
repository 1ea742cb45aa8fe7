//! How long pages of files live, in pages of files written: what the file system tells the layer below of each write.
//!
//! Beyond the papers ("hot data identification in file system to help FTL design", future work of the co-design paper). The
//! estimate is that of an exponential law from lives of which some have not ended: the time that all pages of a file have
//! lived so far, divided by how many of them ended (overwritten, cut off, or deleted with their file). So a page that is never
//! written again makes its file cold without ever having died. A file begins with what is known of its kin, the files of the
//! same directory and of the same suffix, which counts as much as one death of its own until it has [`ENOUGH`]; where nothing
//! is known of those, with what is known of all files. The past counts half whenever a history has [`WINDOW`] deaths.
//!
//! Kept in the host's memory, 32 bytes a file, and forgotten when the power fails: pages that are there then are born again.

use palimpsest_flash::geometry::FileGroup;
use palimpsest_ftl_api::plan::inner::Life;
use std::collections::BTreeMap;

/// Deaths of its own after which a file's kin no longer counts.
const ENOUGH: u64 = 8;
/// Deaths after which the past counts half.
const WINDOW: u64 = 128;

/// The lives of a set of pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct History {
    /// Pages that live, and until when `lived` is counted.
    live: u64,
    since: u64,
    /// Time that pages have lived, and how many have died.
    lived: u64,
    deaths: u64,
}

impl History {
    fn at(self, now: u64) -> Self {
        History { since: now, lived: self.lived + self.live * (now - self.since), ..self }
    }

    fn born(&mut self, now: u64) {
        *self = self.at(now);
        self.live += 1;
    }

    fn died(&mut self, now: u64) {
        *self = self.at(now);
        self.live = self.live.saturating_sub(1);
        self.deaths += 1;
        if self.deaths >= WINDOW {
            (self.lived, self.deaths) = (self.lived / 2, self.deaths / 2);
        }
    }

    /// Time lived for each death; `None` before the first.
    fn mean(self, now: u64) -> Option<u64> {
        self.at(now).lived.checked_div(self.deaths)
    }
}

/// The lives of all files.
#[derive(Debug, Clone, Default)]
pub(super) struct Lifetimes {
    /// Pages of files written so far.
    now: u64,
    /// By inode.
    files: Vec<(History, FileGroup)>,
    directories: BTreeMap<u64, History>,
    suffixes: BTreeMap<u64, History>,
    all: History,
}

impl Lifetimes {
    /// The file `ino` is new, or new here, and has this kin.
    pub fn begin(&mut self, ino: u32, kin: FileGroup) {
        if self.files.len() <= ino as usize {
            self.files.resize(ino as usize + 1, <(History, FileGroup)>::default());
        }
        self.files[ino as usize] = (History::default(), kin);
    }

    fn each(&mut self, ino: u32, change: impl Fn(&mut History, u64)) {
        if self.files.len() <= ino as usize {
            self.begin(ino, FileGroup::default());
        }
        let (now, (file, kin)) = (self.now, &mut self.files[ino as usize]);
        change(file, now);
        change(&mut self.all, now);
        for (histories, key) in [(&mut self.directories, kin.directory), (&mut self.suffixes, kin.suffix)] {
            if key != 0 {
                change(histories.entry(key).or_default(), now);
            }
        }
    }

    /// A page of the file `ino` is written.
    pub fn born(&mut self, ino: u32) {
        self.now += 1;
        self.each(ino, History::born);
    }

    /// A page of the file `ino` is no more.
    pub fn died(&mut self, ino: u32) {
        self.each(ino, History::died);
    }

    /// How long pages of the file `ino` that are written now will live.
    pub fn expect(&self, ino: u32) -> Life {
        let (file, kin) = self.files.get(ino as usize).copied().unwrap_or_default();
        let of = |histories: &BTreeMap<u64, History>, key: u64| {
            let history = histories.get(&key).copied().unwrap_or_default().at(self.now);
            (history.lived, history.deaths)
        };
        let (directory, suffix) = (of(&self.directories, kin.directory), of(&self.suffixes, kin.suffix));
        let alike = (directory.0 + suffix.0).checked_div(directory.1 + suffix.1);
        let own = file.at(self.now);
        if own.deaths >= ENOUGH {
            return Life::Pages(own.lived / own.deaths);
        }
        let Some(before) = alike.or_else(|| self.all.mean(self.now)) else { return Life::Unknown };
        Life::Pages((own.lived + before) / (own.deaths + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(life: Life) -> u64 {
        match life {
            Life::Pages(pages) => pages,
            other => panic!("{other:?}"),
        }
    }

    /// Little's law: where 10 pages live and one dies for each written page of its file, every other of all, a page lives for
    /// 20 written pages.
    #[test]
    fn a_file_that_is_overwritten_evenly() {
        let mut lives = Lifetimes::default();
        assert_eq!(lives.expect(2), Life::Unknown);
        (0..10).for_each(|_| lives.born(2));
        for _ in 0..2000 {
            lives.born(3);
            lives.died(2);
            lives.born(2);
        }
        let found = pages(lives.expect(2));
        assert!((19..=21).contains(&found), "{found}");
        assert!(pages(lives.expect(3)) > 100_000, "no page of this one ever died");
    }

    #[test]
    fn a_new_file_is_like_its_kin() {
        let mut lives = Lifetimes::default();
        let (log, film) = (FileGroup { directory: 7, suffix: 1 }, FileGroup { directory: 8, suffix: 2 });
        lives.begin(2, log);
        lives.begin(3, film);
        lives.born(2);
        (0..100).for_each(|_| lives.born(3));
        for _ in 0..50 {
            lives.died(2);
            lives.born(2);
        }
        lives.died(3);
        lives.begin(4, FileGroup { directory: 7, suffix: 9 });
        lives.begin(5, FileGroup { directory: 9, suffix: 2 });
        assert!(pages(lives.expect(4)) < 10 && pages(lives.expect(5)) > 1000);
        assert_eq!(pages(lives.expect(6)), lives.all.mean(lives.now).unwrap(), "of this one nothing is known");
    }

    #[test]
    fn a_file_that_changes_its_ways() {
        let mut lives = Lifetimes::default();
        lives.born(2);
        let mut rewrite = |every: u64, times: u64| {
            for _ in 0..times {
                (1..every).for_each(|_| lives.born(3));
                lives.died(2);
                lives.born(2);
            }
            pages(lives.expect(2))
        };
        assert!((90..=110).contains(&rewrite(100, 500)));
        assert!((4..=6).contains(&rewrite(5, 2000)));
    }
}
