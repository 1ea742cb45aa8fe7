//! `read-busy`: the Read Busy Scheme, Sec. III-C.2. A write waits for the end of a read before it, because only
//! operations of one type are pipelined: channels with reads under way are skipped while another is free.
//!
//! "Fewer writes to the channel that is occupied with reads", says the paper, not how many fewer. A channel that has a
//! page of the request already is not free: a request reaches as many channels as in turn, those without reads first.
//! (All its pages on the few channels without reads would be serial, which costs more than waiting for the reads.)

use super::{IN_TURN, Scheme};

pub(super) const ENTRY: Scheme = Scheme {
    name: "read-busy",
    about: "channels in turn, those with reads under way skipped while another is free",
    choose: |view| view.lowest(|channel| view.busy(channel)),
    ..IN_TURN
};
