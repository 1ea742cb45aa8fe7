//! Interfaces of layers to a file system beside the commands of [`Ftl`]: pages with contents and TRIM of whole blocks,
//! or the set of mapped subpages. Commands arrive as inner requests ([`palimpsest_ftl_api::plan::inner`]).

use palimpsest_flash::nand::Flash;
use palimpsest_flash::nand::data::Data;
use palimpsest_ftl_api::plan::{Cause, Gate, Io};
use palimpsest_ftl_api::{Blueprint, Ftl, State};

/// A layer written page by page, with contents. Pages are numbered as in the extents of [`Ftl`]; logical block b starts
/// at page b times the pages of a physical block.
pub trait MapsPages: Ftl + State {
    /// Writes `page`: `contents` has an entry per subpage. The program must follow the gate `after`; `signal` closes
    /// when the page is durable.
    ///
    /// # Errors
    /// As [`Ftl::write`].
    fn write_page(
        &mut self,
        io: &mut Io,
        page: u32,
        contents: &[Data],
        cause: Cause,
        after: Gate,
        signal: Gate,
    ) -> Flash<()>;

    /// The physical page of `page`; `None` if never written, or trimmed.
    fn locate(&self, page: u32) -> Option<u32>;

    /// Unmaps the pages of logical block `block`, after the gate `after` has closed.
    ///
    /// # Errors
    /// As [`Ftl::trim`].
    fn trim_block(&mut self, io: &mut Io, block: u32, after: Gate) -> Flash<()>;

    /// Number of pages of logical block `block`, from the first on, that may have been written; no later page was
    /// written since the last trim.
    fn written(&self, io: &Io, block: u32) -> u32;
}

/// A layer that maps subpages, and so supports a file system whose pages are subpages.
pub trait MapsSubpages: Ftl + State {
    /// True if logical subpage `unit` was written since the last trim.
    fn holds(&self, unit: u32) -> bool;
}

palimpsest_flash::state_of_box!(dyn MapsSubpages);

/// Constructs such a layer on erased flash.
pub type BuildSubpageLayer = fn(&Io, &Blueprint) -> Box<dyn MapsSubpages>;
