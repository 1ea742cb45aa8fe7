//! Owner: the file, volume or tenant of a write names the stream, as placement by files does. Owners get streams in the
//! order of their first writes. Stream 0 has data of no owner, and the last stream the owners beyond.
//!
//! Ignored: owners that end, whose streams no later owner gets.

use super::{Classifier, Classify};
use palimpsest_flash::command::Directives;
use palimpsest_flash::geometry::Extent;

/// Most owners with a stream: a layer has at most 256 streams.
const MOST_OWNERS: usize = 256;

pub(super) const CLASSIFIER: Classifier = Classifier {
    name: "owner",
    about: "each file, volume or tenant has a stream, in order of appearance",
    keys: &[],
    reads_addresses: false,
    reads_lifetimes: false,
    reads_identifiers: false,
    build: |_, _, _| Box::new(Owner::default()),
};

#[derive(Default)]
pub(super) struct Owner {
    /// Owners with a stream, from stream 1 on.
    owners: Vec<u32>,
}

palimpsest_flash::state!(Owner { owners });

impl Classify for Owner {
    fn stream_of(&mut self, _extent: Extent, directives: Directives) -> u32 {
        if directives.owner == 0 {
            return 0;
        }
        let known = self.owners.iter().position(|&owner| owner == directives.owner);
        let at = known.unwrap_or_else(|| {
            if self.owners.len() < MOST_OWNERS {
                self.owners.push(directives.owner);
                return self.owners.len() - 1;
            }
            MOST_OWNERS
        });
        at as u32 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_have_streams_in_order_of_appearance() {
        let mut owners = Owner::default();
        let extent = Extent { sector: 0, sectors: 8 };
        let streams = [7, 0, 3, 7, 9].map(|owner| owners.stream_of(extent, Directives { owner, ..Directives::NONE }));
        assert_eq!(streams, [1, 0, 2, 1, 3]);
    }
}
