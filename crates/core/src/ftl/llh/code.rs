//! What low pages store: first writes as they are, second writes in a write-once-memory code that leaves room for half.
//!
//! Without contents, or with fingerprints, nothing is encoded, and whether an encoding fails is a coin of
//! `ftl.wom_failure` (LLH paper, Sec. 5.2).

use super::Llh;
use crate::ftl::settings::FtlSettings;
use crate::nand::data::Data;
use crate::plan::Io;
use crate::rng::Rng;

/// The code of second writes.
pub(super) struct Coder {
    /// Subpages that a low page stores in its first write.
    pub first: u32,
    /// Subpages that a low page stores in its second write.
    pub second: u32,
    /// What the code stores in the spare area.
    pub spare: Vec<u8>,
    failure: f64,
    rng: Rng,
}

impl Coder {
    /// For pages of `subpages` subpages.
    pub fn new(subpages: u32, settings: &FtlSettings, seed: u64) -> Self {
        Coder {
            first: subpages,
            second: subpages / 2,
            spare: Vec::new(),
            failure: settings.wom_failure,
            rng: Rng::new(seed, 0x303),
        }
    }
}

impl Llh {
    /// Whether page `ppn` holds a second write.
    #[inline]
    pub(super) fn is_coded(&self, io: &Io, ppn: u32) -> bool {
        self.reuse && io.nand().programs(ppn) > 1
    }

    /// Content of physical subpage `psn`.
    #[inline]
    pub(super) fn content(&mut self, io: &mut Io, psn: u32) -> Data {
        io.load_subpage(psn)
    }

    /// Makes the image what a first write into page `ppn` programs; `coded`: into a low page that may be reused.
    pub(super) fn prepare(&mut self, _io: &mut Io, _ppn: u32, _coded: bool) {}

    /// Encodes the image over what page `ppn` holds. False where that cannot be done.
    pub(super) fn encode(&mut self, _io: &mut Io, _ppn: u32) -> bool {
        !self.coder.rng.chance(self.coder.failure)
    }
}
