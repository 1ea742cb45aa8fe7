//! The channels of the pages of a write: the view of the drive for a [scheme](super::schemes), and the choices.

use super::FileSystem;
use super::device::{Device, NO_PAGE};
use super::schemes::View;
use palimpsest_flash::units::Nanos;

/// The view by channel, and the choices.
#[derive(Default)]
pub(super) struct Placing {
    reading: Vec<bool>,
    outstanding: Vec<u32>,
    work: Vec<Nanos>,
    crowded: Vec<bool>,
    file: Vec<u32>,
    given: Vec<u32>,
    /// The channel of each page.
    pub placed: Vec<u32>,
}

impl FileSystem {
    /// Stores the channel of each of `pages`, at `addresses` of the disk, in `placing.placed`.
    pub(super) fn place(
        &mut self,
        device: &dyn Device,
        ino: u32,
        pages: &[u32],
        addresses: &[u32],
        placing: &mut Placing,
    ) {
        let channels = self.shape.channels;
        let Placing { reading, outstanding, work, crowded, file, given, placed } = placing;
        let size = channels as usize;
        reading.resize(size, false);
        outstanding.resize(size, 0);
        work.resize(size, 0);
        given.clear();
        given.resize(size, 0);
        for channel in 0..size {
            let load = device.load(channel as u32);
            (reading[channel], outstanding[channel], work[channel]) = (load.reading, load.outstanding, load.queued);
        }
        let (write_time, read_time) = device.page_times();
        self.avoided(device, crowded);
        let inode = self.inodes[ino as usize].as_ref().expect("an inode that exists");
        file.clone_from(&inode.channels);
        placed.clear();
        for &page in pages {
            // An overwritten page is invalid before the new one is placed.
            match inode.pointer(page, self.width) {
                NO_PAGE => {}
                old => {
                    let held = &mut file[self.shape.channel(old) as usize];
                    *held = held.saturating_sub(1);
                }
            }
        }
        let count = pages.len() as u32;
        let deep = self.groups_pages(count);
        while placed.len() < pages.len() {
            let turn = if self.turns_by_address { addresses[placed.len()] % channels } else { self.turn };
            let (issued, rules) = (&self.issued, self.rules);
            let view =
                View { pages: count, file, given, issued, outstanding, reading, work, read_time, crowded, turn, rules };
            let channel = (self.scheme.choose)(&view);
            let pages = if deep { view.share().min(count - placed.len() as u32) } else { 1 };
            placed.extend((0..pages).map(|_| channel));
            file[channel as usize] += pages;
            given[channel as usize] += pages;
            work[channel as usize] += Nanos::from(pages) * write_time;
            self.issued[channel as usize] += u64::from(pages);
            self.turn = (channel + 1) % channels;
        }
    }
}
