//! Which channel each page of a write goes to: the channel allocation schemes of the co-design paper, Sec. III-C.
//!
//! A scheme decides, the file system acts. One scheme is one file and one line of [`SCHEMES`].

mod depth;
mod fairness;
mod hybrid;
mod read_busy;
mod rr;

/// What a scheme may look at.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Pages of the request.
    pub pages: u32,
    /// Pages of the file in each channel, those of the request that have their place already among them.
    pub file: &'a [u32],
    /// Pages issued to each channel so far.
    pub issued: &'a [u64],
    /// Whether reads are under way in each channel.
    pub reading: &'a [bool],
    /// Whether each channel has so much less free space than another that it gets pages only in turn.
    pub crowded: &'a [bool],
    /// The channel whose turn it is.
    pub turn: u32,
}

impl View<'_> {
    fn channels(&self) -> u32 {
        self.file.len() as u32
    }

    /// The channels that are not crowded, from the one whose turn it is on.
    fn in_turn(&self) -> impl Iterator<Item = u32> + '_ {
        let (turn, channels) = (self.turn, self.channels());
        (0..channels).map(move |step| (turn + step) % channels).filter(|&channel| !self.crowded[channel as usize])
    }

    /// Whether `channel` is free of reads, or all are busy with them.
    fn is_quiet(&self, channel: u32) -> bool {
        !self.reading[channel as usize] || self.reading.iter().all(|&reading| reading)
    }

    /// The next quiet channel in turn.
    fn next_quiet(&self) -> u32 {
        self.in_turn().find(|&channel| self.is_quiet(channel)).unwrap_or(self.turn)
    }

    /// Of the channels that are `allowed`, the one with the fewest pages of the file; the one with the fewest pages issued among
    /// ties, then the next in turn.
    fn fewest_of_file(&self, allowed: impl Fn(u32) -> bool) -> u32 {
        let allowed = self.in_turn().filter(|&channel| allowed(channel));
        let fewest = allowed.min_by_key(|&channel| (self.file[channel as usize], self.issued[channel as usize]));
        fewest.unwrap_or(self.turn)
    }

    /// Whether the request divides into rounds of all channels.
    fn is_whole_rounds(&self) -> bool {
        self.pages.is_multiple_of(self.channels())
    }
}

/// A scheme.
pub trait Scheme: Send {
    /// How many consecutive pages of a request of `pages` pages go to one channel.
    fn depth(&self, _pages: u32, _channels: u32) -> u32 {
        1
    }

    /// The channel of the next pages.
    fn choose(&self, view: &View<'_>) -> u32;
}

/// A line of the registry.
pub struct Entry {
    /// Name in the configuration.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
    build: fn() -> Box<dyn Scheme>,
}

/// Every scheme.
pub const SCHEMES: &[Entry] = &[rr::ENTRY, fairness::ENTRY, read_busy::ENTRY, depth::ENTRY, hybrid::ENTRY];

/// The scheme called `name`.
pub fn new(name: &str) -> Option<Box<dyn Scheme>> {
    SCHEMES.iter().find(|entry| entry.name == name).map(|entry| (entry.build)())
}

#[cfg(test)]
mod tests {
    use super::{View, new};

    /// Channels that `scheme` gives the pages of a request, as the file system asks for them.
    pub(super) fn placed(scheme: &str, pages: u32, file: &[u32], issued: &[u64], reading: &[bool]) -> Vec<u32> {
        let scheme = new(scheme).unwrap();
        let (mut file, mut issued, channels) = (file.to_vec(), issued.to_vec(), file.len() as u32);
        let crowded = vec![false; file.len()];
        let (mut turn, mut placed) = (0, Vec::new());
        while (placed.len() as u32) < pages {
            let channel =
                scheme.choose(&View { pages, file: &file, issued: &issued, reading, crowded: &crowded, turn });
            for _ in 0..scheme.depth(pages, channels).min(pages - placed.len() as u32) {
                placed.push(channel);
                file[channel as usize] += 1;
                issued[channel as usize] += 1;
            }
            turn = (channel + 1) % channels;
        }
        placed
    }

    const QUIET: [bool; 4] = [false; 4];

    #[test]
    fn round_robin_does_not_look() {
        assert_eq!(placed("rr", 5, &[9, 0, 0, 0], &[9, 0, 0, 0], &[true; 4]), [0, 1, 2, 3, 0]);
    }

    #[test]
    fn fairness_fills_up_the_file_and_serves_whole_rounds_in_turn() {
        assert_eq!(placed("fairness", 3, &[3, 1, 2, 2], &[0; 4], &QUIET), [1, 2, 3]);
        assert_eq!(placed("fairness", 2, &[2; 4], &[5, 4, 1, 3], &QUIET), [2, 3], "ties by what was issued");
        assert_eq!(placed("fairness", 4, &[3, 1, 2, 2], &[0; 4], &QUIET), [0, 1, 2, 3]);
    }

    #[test]
    fn busy_channels_are_skipped_while_another_is_quiet() {
        assert_eq!(placed("read-busy", 3, &[0; 4], &[0; 4], &[true, false, true, false]), [1, 3, 1]);
        assert_eq!(placed("read-busy", 3, &[0; 4], &[0; 4], &[true; 4]), [0, 1, 2]);
    }

    #[test]
    fn depth_begins_above_sixteen_pages() {
        assert_eq!(placed("depth", 16, &[0; 8], &[0; 8], &[false; 8])[..4], [0, 1, 2, 3]);
        assert_eq!(placed("depth", 17, &[0; 8], &[0; 8], &[false; 8])[..5], [0, 0, 1, 1, 2]);
        assert_eq!(placed("depth", 32, &[0; 8], &[0; 8], &[false; 8])[..5], [0, 0, 0, 0, 1]);
    }

    #[test]
    fn hybrid_does_all_three() {
        let reading = [true, false, false, false];
        assert_eq!(placed("hybrid", 2, &[0, 1, 2, 1], &[0; 4], &reading), [1, 3], "the emptiest is busy with reads");
        assert_eq!(placed("hybrid", 18, &[0; 4], &[0; 4], &QUIET)[..5], [0, 0, 0, 0, 1]);
    }
}
