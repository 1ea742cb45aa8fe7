//! `hybrid`: fairness among the channels that `read-busy` prefers, with dynamic depth. Co-design paper, Sec. IV.

use super::{IN_TURN, Scheme, depth};

pub(super) const ENTRY: Scheme = Scheme {
    name: "hybrid",
    about: "fairness, read-busy and depth together",
    groups_above: depth::ENTRY.groups_above,
    choose: |view| match view.is_whole_rounds() {
        true => view.lowest(|channel| view.busy(channel)),
        false => view.lowest(|channel| (view.busy(channel), view.held(channel))),
    },
    ..IN_TURN
};
