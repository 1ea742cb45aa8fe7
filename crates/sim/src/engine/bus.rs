//! Buses: first come, first served, for a time that follows from the bytes.
//!
//! Ignored: the time of arbitration.

use palimpsest_flash::nand::part::Part;
use palimpsest_flash::units::{Nanos, Rate};

/// The bus of a channel, or one direction of the host link.
#[derive(Clone, Copy, Default)]
pub(super) struct Bus {
    pub(super) free_at: Nanos,
    /// Time at which the last command has been sent.
    pub(super) commanded_at: Nanos,
    pub(super) busy: Nanos,
}

impl Bus {
    /// Occupies the bus for `time`, from `now` or as soon as the bus is free. Returns the end.
    #[inline]
    pub(super) fn take(&mut self, now: Nanos, time: Nanos) -> Nanos {
        self.free_at = self.free_at.max(now) + time;
        self.busy += time;
        self.free_at
    }

    /// Sends a command of length `time`, which goes before data and pauses transfers. Data already on the bus is not
    /// delayed; data queued behind is.
    #[inline]
    pub(super) fn command(&mut self, now: Nanos, time: Nanos) -> Nanos {
        self.take(now, time);
        self.commanded_at = self.commanded_at.max(now) + time;
        self.commanded_at
    }
}

/// Transfer times between controller and die.
pub(super) struct Transfers {
    rate: Rate,
    /// Times of 1, 2, .. code words, if the part states them.
    words: Vec<Nanos>,
    word_bytes: u32,
    /// The last request and result, because most transfers have one size.
    last: (u32, Nanos),
}

impl Transfers {
    pub(super) fn new(part: &Part) -> Self {
        Transfers { rate: part.bus_rate, words: part.t_dma_words.clone(), word_bytes: part.word_bytes, last: (0, 0) }
    }

    /// Transfer time of `bytes`.
    #[inline]
    pub(super) fn time(&mut self, bytes: u32) -> Nanos {
        if self.last.0 != bytes {
            self.last = (bytes, self.compute(bytes));
        }
        self.last.1
    }

    #[inline(never)]
    fn compute(&self, bytes: u32) -> Nanos {
        let words = bytes / self.word_bytes;
        match self.words.get((words as usize).wrapping_sub(1)) {
            Some(&time) if words * self.word_bytes == bytes => time,
            _ => self.rate.time_for(u64::from(bytes)),
        }
    }
}
