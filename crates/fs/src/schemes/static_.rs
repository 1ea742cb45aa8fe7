//! `static`: the address of a page on the disk names its channel, page n on channel n mod 8: round robin as in Fig. 1
//! of the co-design paper, whose requests have a byte offset on the disk, and as in the static allocations that the
//! paper cites (Sec. II-B).

use super::{IN_TURN, Scheme};

pub(super) const ENTRY: Scheme = Scheme {
    name: "static",
    about: "the channel that the page's address on the disk names: page n on channel n mod 8",
    turns_by_address: true,
    ..IN_TURN
};
