//! `rr`: channels in turn, in order of arrival: the baseline of the paper, and the allocation of an FTL without file
//! information.

use super::{IN_TURN, Scheme};

pub(super) const ENTRY: Scheme = Scheme { name: "rr", about: "channels in turn, in order of arrival", ..IN_TURN };
