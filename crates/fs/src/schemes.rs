//! The channel allocation schemes of the co-design paper, Sec. III-C: they choose the channel of each page of a write.
//!
//! A scheme chooses, the file system writes. One scheme is one file and one line of [`SCHEMES`].

use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::keys::Key;

pub(crate) mod depth;
mod fairness;
mod hybrid;
mod least_work;
mod read_busy;
mod rr;
mod static_;

/// The state that a scheme reads.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Pages of the request.
    pub pages: u32,
    /// Pages of the file in each channel, with the pages of the request that are placed already.
    pub file: &'a [u32],
    /// Pages of the request that are placed in each channel.
    pub given: &'a [u32],
    /// Pages issued to each channel so far.
    pub issued: &'a [u64],
    /// Pages that each channel had to read or program when the request came.
    pub outstanding: &'a [u32],
    /// Whether reads are under way in each channel.
    pub reading: &'a [bool],
    /// Time until each channel is idle: its reads and programs, and the pages of the request that are placed there.
    pub work: &'a [Nanos],
    /// Time that the read of a page adds to that.
    pub read_time: Nanos,
    /// Whether each channel has so much less free space, or so much more wear, than another that it gets pages only in turn.
    pub crowded: &'a [bool],
    /// The channel whose turn it is, or that of the page's address on the disk.
    pub turn: u32,
}

impl View<'_> {
    fn channels(&self) -> u32 {
        self.file.len() as u32
    }

    /// The channels that are not crowded, in turn.
    fn in_turn(&self) -> impl Iterator<Item = u32> + '_ {
        let (turn, channels) = (self.turn, self.channels());
        (0..channels).map(move |step| (turn + step) % channels).filter(|&channel| !self.crowded[channel as usize])
    }

    /// The channel of the lowest `key`, the next in turn among ties.
    fn lowest<K: Ord>(&self, key: impl Fn(usize) -> K) -> u32 {
        self.in_turn().min_by_key(|&channel| key(channel as usize)).unwrap_or(self.turn)
    }

    /// Key for [`Self::lowest`]: channels with fewer pages of the request first, of these the ones without reads.
    fn busy(&self, channel: usize) -> (u32, bool) {
        (self.given[channel], self.reading[channel])
    }

    /// Key for [`Self::lowest`]: channels with fewer pages of the file first, of these the ones with fewer outstanding pages, of
    /// these the ones with fewer issued pages.
    fn held(&self, channel: usize) -> (u32, u32, u64) {
        (self.file[channel], self.outstanding[channel], self.issued[channel])
    }

    /// Pages for the next channel when the rest of the request is spread evenly over all channels.
    pub(super) fn share(&self) -> u32 {
        let left = self.pages - self.given.iter().sum::<u32>();
        let idle = self.given.iter().filter(|&&pages| pages == 0).count() as u32;
        left.div_ceil(idle.max(1))
    }

    /// Whether the request is a multiple of all channels.
    fn is_whole_rounds(&self) -> bool {
        self.pages.is_multiple_of(self.channels())
    }
}

/// A channel allocation scheme.
pub trait Scheme: Send {
    /// Whether the turn of a page is always that of its address on the disk.
    fn turns_by_address(&self) -> bool {
        false
    }

    /// Whether all pages that a channel gets of a request of `pages` pages are one command group.
    fn groups_pages(&self, _pages: u32) -> bool {
        false
    }

    /// The channel of the next page, or of the next group.
    fn choose(&self, view: &View<'_>) -> u32;
}

/// A line of the registry of schemes.
pub struct SchemeEntry {
    /// Name in the configuration.
    pub name: &'static str,
    /// Its rule in a line, for `palimpsest list`.
    pub about: &'static str,
    /// Its own keys.
    pub keys: &'static [Key],
    build: fn() -> Box<dyn Scheme>,
}

/// Every scheme.
pub const SCHEMES: &[SchemeEntry] =
    &[rr::ENTRY, static_::ENTRY, fairness::ENTRY, read_busy::ENTRY, depth::ENTRY, hybrid::ENTRY, least_work::ENTRY];

/// The scheme called `name`.
pub fn new(name: &str) -> Option<Box<dyn Scheme>> {
    SCHEMES.iter().find(|entry| entry.name == name).map(|entry| (entry.build)())
}

#[cfg(test)]
mod tests {
    use super::{View, new};

    /// Channels that `scheme` chooses for the pages of a request, called as the file system calls it.
    pub(super) fn placed(scheme: &str, pages: u32, file: &[u32], issued: &[u64], reading: &[bool]) -> Vec<u32> {
        let scheme = new(scheme).unwrap();
        let (mut file, mut issued, channels) = (file.to_vec(), issued.to_vec(), file.len() as u32);
        // A running read takes 35, the write of a page 10, the read of a page 16.
        let mut work: Vec<u64> = reading.iter().map(|&reading| 35 * u64::from(reading)).collect();
        let (mut given, crowded) = (vec![0; file.len()], vec![false; file.len()]);
        let (mut turn, mut placed) = (0, Vec::new());
        let outstanding: Vec<u32> = issued.iter().map(|&issued| issued as u32).collect();
        while (placed.len() as u32) < pages {
            let view = View {
                pages,
                file: &file,
                given: &given,
                issued: &issued,
                outstanding: &outstanding,
                reading,
                work: &work,
                read_time: 16,
                crowded: &crowded,
                turn,
            };
            let channel = scheme.choose(&view);
            let share = if scheme.groups_pages(pages) { view.share() } else { 1 };
            for _ in 0..share.min(pages - placed.len() as u32) {
                placed.push(channel);
                file[channel as usize] += 1;
                given[channel as usize] += 1;
                issued[channel as usize] += 1;
                work[channel as usize] += 10;
            }
            turn = (channel + 1) % channels;
        }
        placed
    }

    const QUIET: [bool; 4] = [false; 4];

    #[test]
    fn round_robin_ignores_the_state() {
        assert_eq!(placed("rr", 5, &[9, 0, 0, 0], &[9, 0, 0, 0], &[true; 4]), [0, 1, 2, 3, 0]);
    }

    #[test]
    fn fairness_fills_up_the_file_and_serves_whole_rounds_in_turn() {
        assert_eq!(placed("fairness", 3, &[3, 1, 2, 2], &[0; 4], &QUIET), [1, 2, 3]);
        assert_eq!(placed("fairness", 2, &[2; 4], &[5, 4, 1, 3], &QUIET), [2, 3], "ties by what is outstanding");
        assert_eq!(placed("fairness", 4, &[3, 1, 2, 2], &[0; 4], &QUIET), [0, 1, 2, 3]);
    }

    #[test]
    fn busy_channels_are_skipped_while_another_is_quiet() {
        assert_eq!(placed("read-busy", 2, &[0; 4], &[0; 4], &[true, false, true, false]), [1, 3]);
        assert_eq!(
            placed("read-busy", 5, &[0; 4], &[0; 4], &[true, false, true, false]),
            [1, 3, 0, 2, 3],
            "busy with pages of the request is not free either"
        );
        assert_eq!(placed("read-busy", 3, &[0; 4], &[0; 4], &[true; 4]), [0, 1, 2]);
    }

    #[test]
    fn depth_begins_above_sixteen_pages() {
        assert_eq!(placed("depth", 16, &[0; 8], &[0; 8], &[false; 8])[..4], [0, 1, 2, 3]);
        let counts = |pages| {
            let placed = placed("depth", pages, &[0; 8], &[0; 8], &[false; 8]);
            let groups = placed.chunk_by(|one, next| one == next).map(<[u32]>::len);
            groups.collect::<Vec<_>>()
        };
        assert_eq!(counts(17), [3, 2, 2, 2, 2, 2, 2, 2], "one group a channel, whatever the remainder");
        assert_eq!(counts(31), [4, 4, 4, 4, 4, 4, 4, 3]);
        assert_eq!(placed("depth", 32, &[0; 8], &[0; 8], &[false; 8])[..5], [0, 0, 0, 0, 1]);
    }

    #[test]
    fn least_work_waits_for_a_channel_where_that_is_sooner() {
        let busy = [true, false, false, false];
        assert_eq!(
            placed("least-work", 4, &[0; 4], &[0; 4], &busy),
            [1, 2, 3, 1],
            "a read takes as long as three pages"
        );
        assert_eq!(placed("least-work", 3, &[3, 1, 2, 2], &[0; 4], &QUIET), [1, 2, 3], "the file among equals");
        assert_eq!(placed("least-work", 2, &[0, 9, 0, 0], &[0; 4], &QUIET), [0, 2]);
        assert_eq!(placed("least-work", 18, &[0; 4], &[0; 4], &QUIET)[..5], [0, 1, 2, 3, 0]);
    }

    #[test]
    fn hybrid_does_all_three() {
        let reading = [true, false, false, false];
        assert_eq!(placed("hybrid", 2, &[0, 1, 2, 1], &[0; 4], &reading), [1, 3], "the emptiest is busy with reads");
        assert_eq!(placed("hybrid", 3, &[4, 0, 4, 1], &[0; 4], &reading), [1, 3, 2], "a request keeps its breadth");
        assert_eq!(placed("hybrid", 18, &[0; 4], &[0; 4], &QUIET)[..6], [0, 0, 0, 0, 0, 1]);
    }
}
