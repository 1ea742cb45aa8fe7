//! What a layer offers a file system beside the commands of [`Ftl`]: pages with their contents, and TRIM of whole
//! blocks; or, where it maps subpages, which ones it holds; commands arrive as inner requests
//! ([`palimpsest_ftl_api::plan::inner`]).

use palimpsest_flash::nand::Flash;
use palimpsest_flash::nand::data::Data;
use palimpsest_ftl_api::plan::{Cause, Gate, Io};
use palimpsest_ftl_api::{Blueprint, Ftl, State};

/// A layer that is written page by page, with contents. Pages are numbered as in the extents of [`Ftl`];
/// logical block b is the pages of a physical block from b times their number on.
pub trait MapsPages: Ftl + State {
    /// Writes `page`: `contents` has an entry a subpage. Starts after the gate `after` has closed; `signal` learns when
    /// it is durable.
    ///
    /// # Errors As [`Ftl::write`].
    fn write_page(
        &mut self,
        io: &mut Io,
        page: u32,
        contents: &[Data],
        cause: Cause,
        after: Gate,
        signal: Gate,
    ) -> Flash<()>;

    /// The physical page that holds `page`; `None` where it was never written, or trimmed.
    fn locate(&self, page: u32) -> Option<u32>;

    /// Forgets the pages of logical block `block`, after the gate `after` has closed.
    ///
    /// # Errors
    /// As [`Ftl::trim`].
    fn trim_block(&mut self, io: &mut Io, block: u32, after: Gate) -> Flash<()>;

    /// How many pages of logical block `block`, from its first on, may have been written: no later one was since its
    /// trim.
    fn written(&self, io: &Io, block: u32) -> u32;
}

/// A layer that maps subpages, and so takes a file system whose pages are subpages.
pub trait MapsSubpages: Ftl + State {
    /// Whether logical subpage `unit` was written since it was trimmed last.
    fn holds(&self, unit: u32) -> bool;
}

palimpsest_flash::state_of_box!(dyn MapsSubpages);

/// Builds one over erased flash.
pub type BuildSubpageLayer = fn(&Io, &Blueprint) -> Box<dyn MapsSubpages>;
