//! The flash commands of a layer: each names an operation, its cause, the gate that must close before, and the gate to
//! signal at the end.
//!
//! Each command has a constructor for the usual case; `..` sets the other fields: `Read { signal, ..Read::new(ppn,
//! subpages, cause) }`.

use super::select::ReadPolicy;
use super::{Cause, Gate};
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{SubpageMask, WordMask, first_subpages};

/// A read of subpages of one page.
#[derive(Debug, Clone, Copy)]
pub struct Read {
    /// Physical page.
    pub ppn: u32,
    /// Subpages of the page to read.
    pub subpages: SubpageMask,
    /// Code words to read among `subpages`, 0 for all; only the read commands `dma` and `spread` use them.
    pub words: WordMask,
    /// The read command.
    pub policy: ReadPolicy,
    /// Why the operation is planned.
    pub cause: Cause,
    /// The operation starts only after this gate has closed.
    pub after: Gate,
    /// The gate that waits for the end of the operation.
    pub signal: Gate,
}

impl Read {
    /// Reads all `subpages` of page `ppn` by the command for whole pages, without gates.
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
    /// Logical subpage of each subpage of the page, stored in the out-of-band area; [`palimpsest_flash::nand::PADDING`]
    /// for padding. Recovery has only these numbers.
    pub logical: &'a [u32],
    /// Content of each subpage of the page.
    pub data: &'a [Data],
    /// The layer's own bytes, from the first written subpage on, stored with every payload ([`super::CodedIo::own`]).
    pub own: &'a [u8],
    /// The layer's own bytes in the spare area, beside the logical numbers. If empty, the spare area stays unchanged
    /// ([`palimpsest_flash::nand::Nand::spare`]).
    pub spare: &'a [u8],
    /// Generation, for a part with a code of cells; [`palimpsest_flash::nand::Nand::probe_generation`] returns the
    /// allowed ones.
    pub generation: u32,
    /// Subpages among `written` that are padding.
    pub padding: u32,
    /// Subpages that cross the bus. The controller's page buffer fills the rest of the page with ones.
    pub transferred: u32,
    /// Subpages of the write buffer that the end of the program frees; 0 in layers without a buffer.
    pub frees: u32,
    /// True if cells of the block hold one bit each, as in a fast cache, with the timing of that mode.
    pub single: bool,
    /// Why the operation is planned.
    pub cause: Cause,
    /// True if the program stores data that the host may still be sending, although its cause is not the host alone.
    pub from_host: bool,
    /// The operation starts only after this gate has closed.
    pub after: Gate,
    /// The gate that waits for the end of the operation.
    pub signal: Gate,
}

impl<'a> Program<'a> {
    /// Programs all of page `ppn`; `logical` and `data` must have one entry per subpage. No padding, no gates.
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
    /// Why the operation is planned.
    pub cause: Cause,
    /// The operation starts only after this gate has closed. Programs that moved the block's data must signal this
    /// gate.
    pub after: Gate,
    /// The gate that waits for the end of the operation.
    pub signal: Gate,
}

impl Erase {
    /// Erases `block`, without gates.
    #[inline]
    pub fn new(block: u32, cause: Cause) -> Self {
        Erase { block, cause, after: Gate::NONE, signal: Gate::NONE }
    }
}
