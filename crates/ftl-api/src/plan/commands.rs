//! The flash commands of a layer: the operation, its cause, the gate that it follows, and the gate that it signals.
//!
//! Each has a constructor for the usual case; `..` sets the rest: `Read { signal, ..Read::new(ppn, subpages, cause) }`.

use super::select::ReadPolicy;
use super::{Cause, Gate};
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{SubpageMask, WordMask, first_subpages};

/// A read of subpages of one page.
#[derive(Debug, Clone, Copy)]
pub struct Read {
    /// Physical page.
    pub ppn: u32,
    /// Wanted subpages of the page.
    pub subpages: SubpageMask,
    /// Wanted code words among them, 0 for all; only the read commands `dma` and `spread` profit.
    pub words: WordMask,
    /// Which command reads.
    pub policy: ReadPolicy,
    /// Why.
    pub cause: Cause,
    /// Starts after this gate has closed.
    pub after: Gate,
    /// Waits for the end.
    pub signal: Gate,
}

impl Read {
    /// All of the `subpages` of page `ppn`, by the command for whole pages, without gates.
    #[inline]
    pub fn new(ppn: u32, subpages: SubpageMask, cause: Cause) -> Self {
        Read { ppn, subpages, words: 0, policy: ReadPolicy::PAGE, cause, after: Gate::NONE, signal: Gate::NONE }
    }
}

/// A program of one page.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// Physical page.
    pub ppn: u32,
    /// Subpages written, padding included.
    pub written: SubpageMask,
    /// Logical subpage of each subpage of the page, for the out-of-band area; [`palimpsest_flash::nand::PADDING`] for
    /// padding. Recovery has only these numbers.
    pub logical: &'a [u32],
    /// Content of each subpage of the page.
    pub data: &'a [Data],
    /// Bytes of the layer's own in the subpages written, from the first on, in every payload ([`super::Io::own`]).
    pub own: &'a [u8],
    /// Bytes of the layer's own in the spare area, beside the logical numbers; none: it is left as it is
    /// ([`palimpsest_flash::nand::Nand::spare`]).
    pub spare: &'a [u8],
    /// Of a part with a code of cells, the generation; [`palimpsest_flash::nand::Nand::probe_generation`] says which are allowed.
    pub generation: u32,
    /// Subpages among `written` that are padding.
    pub padding: u32,
    /// Subpages that cross the bus (the controller's page buffer fills the rest of the page with ones).
    pub transferred: u32,
    /// Subpages of the write buffer that are free when the program has ended; 0 in layers that are not buffered.
    pub frees: u32,
    /// Whether the cells of the block hold one bit each, as in a fast cache: with the times of that.
    pub single: bool,
    /// Why.
    pub cause: Cause,
    /// Whether it stores what the host may still be sending, though it is not done for the host alone.
    pub from_host: bool,
    /// Starts after this gate has closed.
    pub after: Gate,
    /// Waits for the end.
    pub signal: Gate,
}

impl<'a> Program<'a> {
    /// All of page `ppn`: `logical` and `data` have one entry a subpage. No padding, no gates.
    #[inline]
    pub fn new(ppn: u32, logical: &'a [u32], data: &'a [Data], cause: Cause) -> Self {
        let subpages = data.len() as u32;
        Program {
            ppn,
            written: first_subpages(subpages),
            logical,
            data,
            own: &[],
            spare: &[],
            generation: 0,
            padding: 0,
            transferred: subpages,
            frees: 0,
            single: false,
            cause,
            from_host: false,
            after: Gate::NONE,
            signal: Gate::NONE,
        }
    }
}

/// An erase of one block.
#[derive(Debug, Clone, Copy)]
pub struct Erase {
    /// The block.
    pub block: u32,
    /// Why.
    pub cause: Cause,
    /// Starts after this gate has closed: that of the programs that moved the block's data elsewhere.
    pub after: Gate,
    /// Waits for the end.
    pub signal: Gate,
}

impl Erase {
    /// Of `block`, without gates.
    #[inline]
    pub fn new(block: u32, cause: Cause) -> Self {
        Erase { block, cause, after: Gate::NONE, signal: Gate::NONE }
    }
}
