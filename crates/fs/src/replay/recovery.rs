//! Mounts after a power cut, and the pages of the disk that uncorrectable reads of metadata lost.
//!
//! A page of the disk whose file is lost reads as lost data, until the host writes or trims the page. Ignored: losses
//! of an earlier mount of an image, whose files are gone.

use super::{LOST_OWNER, Replay};
use crate::link::Attached;
use crate::{Fault, FileSystem, schemes};
use palimpsest_flash::nand::Flash;
use palimpsest_ftl_api::plan::Io;

impl Replay {
    /// Mounts the file system, as of the last commit.
    pub(super) fn mount(&mut self, io: &mut Io) -> Flash<()> {
        self.link.restart(io);
        self.link.end_group(io);
        // A die may have failed since the drive was new.
        self.lost_pages = self.lost_pages.or(io.nand().reads_fail().then_some(0));
        let scheme = schemes::new(&self.settings.scheme).expect("the configuration checked the name");
        let mut device = Attached { io, store: &mut *self.store, link: &mut self.link };
        let mounted = match FileSystem::mount(&mut device, self.thresholds, scheme) {
            Ok(filesystem) => Some(filesystem),
            Err(Fault::NotFormatted) => None,
            Err(Fault::Unreadable) if self.lost_pages.is_some() => return self.begin_again(io),
            Err(fault) => return Err(super::halt(fault)),
        };
        let sequence = mounted.as_ref().map_or(0, FileSystem::sequence);
        let has_losses = mounted.as_ref().is_some_and(|filesystem| filesystem.counters().unreadable > 0);
        let remembers = self.replace(mounted);
        for (at, page, before) in std::mem::take(&mut self.undo).into_iter().rev() {
            if at >= sequence {
                self.owners[page as usize] = before;
            }
        }
        if has_losses {
            self.note_lost();
            self.with(io, |filesystem, device| filesystem.repair(device))?;
        }
        if self.discards && self.mounted.is_some() {
            self.with(io, |filesystem, device| filesystem.trim_unowned(device))?;
        }
        self.mounted = self.mounted.take().map(|filesystem| self.prepare(filesystem));
        self.find_files();
        if !remembers {
            self.own_ranges();
        }
        Ok(())
    }

    /// Makes an empty file system in place of one without a readable commit.
    fn begin_again(&mut self, io: &mut Io) -> Flash<()> {
        self.replace(None);
        self.before.unreadable += 1;
        self.undo.clear();
        self.note_lost();
        self.find_files();
        self.with(io, |_, _| Ok(()))
    }

    /// Replaces the file system of before the power cut; returns whether there was one.
    fn replace(&mut self, mounted: Option<FileSystem>) -> bool {
        (self.dirty_since, self.committed_at) = (None, 0);
        let lost = std::mem::replace(&mut self.mounted, mounted);
        let remembers = lost.is_some();
        if let Some(lost) = lost {
            self.before = lost.counters().after(self.before);
        }
        remembers
    }

    /// Marks the pages of the disk whose files do not exist any more.
    fn note_lost(&mut self) {
        let exists = |ino| self.mounted.as_ref().is_some_and(|filesystem| filesystem.stat(ino).is_ok());
        let mut lost = 0;
        for owner in self.owners.iter_mut().filter(|owner| owner.0 != super::NO_PAGE && !exists(owner.0)) {
            *owner = LOST_OWNER;
            lost += 1;
        }
        self.lost_pages = self.lost_pages.map(|before| before + lost);
    }
}
