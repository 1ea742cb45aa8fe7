//! `read-busy`: the Read Busy Scheme, Sec. III-C.2. A write waits for the end of a read before it, because only
//! operations of one type are pipelined: channels with reads under way are skipped while another is free.
//!
//! The paper has two sentences: "fewer writes to the channel that is occupied with reads", and "the logical address in
//! which channel is not busy with read". By default a channel that has a page of the request is not free either: a
//! request reaches as many channels as in turn, those without reads first. (All its pages on the few channels without
//! reads would be serial, which costs more than waiting for the reads.) `fs.read_busy = "skip"` is the second sentence.

use super::{IN_TURN, Scheme};
use palimpsest_ftl_api::{keys, words};

words! {
    /// The share of a write that channels with reads under way get.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum ReadBusy {
        /// A page of each request that reaches them in turn, after the other channels.
        #[default]
        Last = "last",
        /// None while another channel does not read.
        Skip = "skip",
    }
}

keys! {
    /// The settings of schemes that avoid channels with reads.
    pub(crate) struct ReadBusySettings;

    group KEYS {
        /// channels that read get pages of a write last, so that the write reaches as many channels as in turn; or are
        /// skipped while another does not read, as in the paper
        pub(crate) read_busy: ReadBusy = "fs.read_busy", ReadBusy::KIND, "last",
            needs["fs.scheme = read-busy|hybrid"];
    }
}

pub(super) const ENTRY: Scheme = Scheme {
    name: "read-busy",
    about: "channels in turn, those with reads under way skipped while another is free",
    keys: KEYS,
    choose: |view| view.lowest(|channel| view.busy(channel)),
    ..IN_TURN
};
