//! Lifetime: writes of equal expected lifetime share a stream, as file systems map write hints to placement handles.
//!
//! The lifetime is that of the command: of the host (fio's `write_hint`), or an estimate of a file system above the
//! layer, in written pages. Stream 0 has writes without a lifetime, and metadata. The other streams of the host share
//! the lifetimes equally: stream `k` of `n` gets the lifetimes between the quantiles `(k - 1) / n` and `k / n` of
//! recent ones, in eighths of a doubling. The last has data that the file system moves, too, because that data outlived
//! the block. Only the order of lifetimes counts.

use super::{Classifier, Classify};
use palimpsest_flash::command::{Directives, Lifetime};
use palimpsest_flash::geometry::Extent;
use palimpsest_ftl_api::settings::Settings;

pub(super) const CLASSIFIER: Classifier = Classifier {
    name: "lifetime",
    about: "streams share the lifetimes that host or file system expect, shortest first",
    keys: &[],
    reads_addresses: false,
    reads_lifetimes: true,
    reads_identifiers: false,
    build: |settings, _, _| Box::new(ByLifetime::new(settings)),
};

/// Classes of a doubling, as a power of two.
const CLASS_BITS: u32 = 3;
/// Classes of lifetimes.
const CLASSES: usize = 32 << CLASS_BITS;
/// Lifetimes after which counts halve, so that recent ones count most.
const MEMORY: u32 = 1 << 16;

pub(super) struct ByLifetime {
    /// Streams that share the lifetimes.
    streams: u32,
    /// Recent lifetimes of each class, and all of them.
    counts: Vec<u32>,
    all: u32,
}

palimpsest_flash::state!(ByLifetime { counts, all } built { streams });

impl ByLifetime {
    fn new(settings: &Settings) -> Self {
        let hosts = settings.get::<u32>("ftl.streams").max(3) - 1;
        ByLifetime { streams: hosts - 1, counts: vec![0; CLASSES], all: 0 }
    }
}

/// Eighths of a doubling, linear between powers of two.
fn class_of(pages: u32) -> usize {
    let pages = pages.max(1);
    let whole = pages.ilog2();
    let part = (u64::from(pages) << CLASS_BITS >> whole) as usize & ((1 << CLASS_BITS) - 1);
    (whole as usize) << CLASS_BITS | part
}

impl Classify for ByLifetime {
    fn stream_of(&mut self, _extent: Extent, directives: Directives) -> u32 {
        let class = match directives.lifetime {
            Lifetime::Unknown | Lifetime::Metadata => return 0,
            Lifetime::Moved => return self.streams,
            Lifetime::Pages(pages) => class_of(pages),
        };
        self.counts[class] += 1;
        self.all += 1;
        if self.all == MEMORY {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.all = self.counts.iter().sum();
        }
        // The middle of the class has the rank.
        let below: u32 = self.counts[..class].iter().sum();
        let twice = u64::from(2 * below + self.counts[class]);
        1 + (twice * u64::from(self.streams) / u64::from(2 * self.all.max(1))).min(u64::from(self.streams) - 1) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three streams for lifetimes of 1, 2 and 4 pages, which come equally often.
    #[test]
    fn equal_shares_of_lifetimes_have_streams() {
        let mut by = ByLifetime { streams: 3, counts: vec![0; CLASSES], all: 0 };
        let mut of =
            |lifetime| by.stream_of(Extent { sector: 0, sectors: 8 }, Directives { lifetime, ..Directives::NONE });
        (0..300_000).for_each(|turn| _ = of(Lifetime::Pages(1 << (turn % 3))));
        assert_eq!([1, 2, 4].map(|pages| of(Lifetime::Pages(pages))), [1, 2, 3]);
        assert_eq!([Lifetime::Unknown, Lifetime::Metadata, Lifetime::Moved].map(of), [0, 0, 3]);
    }
}
