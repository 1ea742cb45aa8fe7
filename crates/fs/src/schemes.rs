//! The channel allocation schemes of the co-design paper, Sec. III-C: they choose the channel of each page of a write.
//!
//! A scheme chooses, the file system writes. One scheme is one file and one line of [`SCHEMES`].

use fairness::Tie;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::keys::Key;
use read_busy::ReadBusy;

pub(crate) mod depth;
pub(crate) mod fairness;
mod hybrid;
mod least_work;
pub(crate) mod read_busy;
mod rr;
mod static_;

/// The state that a scheme reads.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Pages of the request.
    pub pages: u32,
    /// Pages of the file in each channel, with the placed pages of the request.
    pub file: &'a [u32],
    /// Placed pages of the request in each channel.
    pub given: &'a [u32],
    /// Pages issued to each channel so far.
    pub issued: &'a [u64],
    /// Pages that each channel had to read or program when the request came.
    pub outstanding: &'a [u32],
    /// Whether reads are under way in each channel.
    pub reading: &'a [bool],
    /// Time until each channel is idle: its reads, programs and placed pages of the request.
    pub work: &'a [Nanos],
    /// Time that the read of a page adds to `work`.
    pub read_time: Nanos,
    /// Whether each channel gets pages only in turn, for lack of free space or for wear.
    pub crowded: &'a [bool],
    /// The next channel in turn, or the channel that the page's address on the disk names.
    pub turn: u32,
    /// Sentences of the paper that can be read in several ways.
    pub rules: Rules,
}

/// The readings of the paper that keys choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rules {
    /// `fs.tie`.
    pub tie: Tie,
    /// `fs.read_busy`.
    pub read_busy: ReadBusy,
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

    /// Key for [`Self::lowest`]: channels with fewer pages of the request first, among them channels without reads; or
    /// channels without reads first.
    fn busy(&self, channel: usize) -> (u32, bool) {
        match self.rules.read_busy {
            ReadBusy::Last => (self.given[channel], self.reading[channel]),
            ReadBusy::Skip => (0, self.reading[channel]),
        }
    }

    /// Key for [`Self::lowest`]: channels with fewer pages of the file first, then by `fs.tie`.
    fn held(&self, channel: usize) -> (u32, u32, u64) {
        match self.rules.tie {
            Tie::Outstanding => (self.file[channel], self.outstanding[channel], self.issued[channel]),
            Tie::Issued => (self.file[channel], 0, self.issued[channel]),
            Tie::Turn => (self.file[channel], 0, 0),
        }
    }

    /// Pages for the next channel if the rest of the request is spread evenly over all channels.
    pub(super) fn share(&self) -> u32 {
        let left = self.pages - self.given.iter().sum::<u32>();
        let idle = self.given.iter().filter(|&&pages| pages == 0).count() as u32;
        left.div_ceil(idle.max(1))
    }

    fn is_whole_rounds(&self) -> bool {
        self.pages.is_multiple_of(self.channels())
    }
}

/// A channel allocation scheme: a line of the registry.
pub struct Scheme {
    /// Name in the configuration.
    pub name: &'static str,
    /// The rule in a line, for `palimpsest list`.
    pub about: &'static str,
    /// Keys of this scheme only.
    pub keys: &'static [Key],
    /// Whether the address of a page on the disk always names its turn.
    pub turns_by_address: bool,
    /// Pages of a request above which all pages for a channel are one command group.
    pub groups_above: u32,
    /// The channel of the next page, or of the next group.
    pub choose: fn(&View<'_>) -> u32,
}

/// The common part of all schemes: channels in turn, page by page.
const IN_TURN: Scheme = Scheme {
    name: "",
    about: "",
    keys: &[],
    turns_by_address: false,
    groups_above: u32::MAX,
    choose: |view| view.turn,
};

impl Default for &'static Scheme {
    fn default() -> Self {
        &IN_TURN
    }
}

pub const SCHEMES: &[Scheme] =
    &[rr::ENTRY, static_::ENTRY, fairness::ENTRY, read_busy::ENTRY, depth::ENTRY, hybrid::ENTRY, least_work::ENTRY];

pub fn new(name: &str) -> Option<&'static Scheme> {
    SCHEMES.iter().find(|scheme| scheme.name == name)
}

#[cfg(test)]
mod tests;
