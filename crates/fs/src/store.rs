//! The layer below the file system in a run: one that reads and writes whole pages ([`Paged`]), or one that maps
//! subpages and serves inner requests ([`Mapped`]).

use super::device::Shape;
use palimpsest_flash::geometry::Extent;
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{Flash, first_subpages};
use palimpsest_flash::units::SECTOR_BYTES;
use palimpsest_ftl::extent::pages;
use palimpsest_ftl::layers::pages::{MapsPages, MapsSubpages};
use palimpsest_ftl_api::plan::inner::Inner;
use palimpsest_ftl_api::plan::select::ReadPolicy;
use palimpsest_ftl_api::plan::{Cause, FileSystemIo, Io, Read};
use palimpsest_ftl_api::{Ftl, State};

/// Sectors of a page, or of consecutive pages, counted from the first.
pub(super) type Sectors = std::ops::Range<u32>;

/// The layer below. Pages are those of the file system's [`Shape`]; `inner` has the cause, the gate to follow and the
/// gate to signal.
pub(super) trait Store: Send + State {
    fn layer(&mut self) -> &mut dyn Ftl;

    fn seen(&self) -> &dyn Ftl;

    /// Writes the pages from `page` on, one after the other; `contents` has an entry a subpage.
    fn write(&mut self, io: &mut Io, page: u32, contents: &[Data], inner: Inner) -> Flash<()>;

    /// Reads `sectors` of the pages from `page` on; adds an entry for each touched subpage to `contents`.
    /// All these pages must have been written.
    fn read(&mut self, io: &mut Io, page: u32, sectors: Sectors, contents: &mut Vec<Data>, inner: Inner) -> Flash<()>;

    fn holds(&self, page: u32) -> bool;

    /// The physical page that holds `page`, if known to the layer.
    fn locate(&self, page: u32) -> Option<u32>;

    /// Pages of logical block `block`, from the first on, that may have been written.
    fn written(&self, io: &Io, block: u32) -> u32;

    fn trim_block(&mut self, io: &mut Io, block: u32, inner: Inner) -> Flash<()>;

    fn discard(&mut self, io: &mut Io, page: u32, pages: u32) -> Flash<()>;

    /// Fills the rest of `block`, so that the block is no longer written in part.
    fn finish(&mut self, _io: &mut Io, _block: u32) -> Flash<()> {
        Ok(())
    }

    /// Subpages that the layer numbers.
    fn subpages(&self) -> u32;

    /// Whether runs of consecutive pages are one command each.
    fn takes_runs(&self) -> bool;

    /// Makes earlier writes in volatile memory of the layer durable.
    fn make_durable(&mut self, io: &mut Io, inner: Inner) -> Flash<()>;
}

palimpsest_flash::state_of_box!(dyn Store);

/// A layer that serves single pages.
pub(super) struct Paged<L: MapsPages> {
    pub layer: L,
    pub shape: Shape,
    pub read: ReadPolicy,
}

palimpsest_flash::state!([L: MapsPages] Paged<L> { layer } built { shape, read });

impl<L: MapsPages> Paged<L> {
    fn read_extent(&self, io: &mut Io, extent: Extent) -> Flash<()> {
        let width = self.shape.subpages_per_page;
        let per_page = self.shape.page_bytes / SECTOR_BYTES as u32;
        let per_subpage = per_page / width;
        for (page, first, sectors) in pages(extent, per_page.into()) {
            let (begin, end) = (first / per_subpage, (first + sectors).div_ceil(per_subpage));
            let place = self.layer.locate(page);
            match place {
                Some(ppn) => {
                    let (words, wanted) = (io.nand().words_of(first, sectors), first_subpages(end - begin) << begin);
                    let (policy, after, signal) = (self.read, io.arrival(), io.request());
                    io.read(Read { words, policy, after, signal, ..Read::new(ppn, wanted, Cause::Host) })?;
                }
                None => io.count_unwritten(end - begin),
            }
            if io.host.has_contents() {
                for subpage in begin..end {
                    let data = place.map_or(Data::ZERO, |ppn| io.load_subpage(ppn * width + subpage));
                    io.deliver(page * width + subpage, data);
                }
            }
        }
        Ok(())
    }
}

impl<L: MapsPages> Store for Paged<L> {
    fn layer(&mut self) -> &mut dyn Ftl {
        &mut self.layer
    }

    fn seen(&self) -> &dyn Ftl {
        &self.layer
    }

    fn write(&mut self, io: &mut Io, page: u32, contents: &[Data], inner: Inner) -> Flash<()> {
        self.layer.write_page(io, page, contents, inner.cause, inner.after, inner.signal)
    }

    fn read(&mut self, io: &mut Io, page: u32, sectors: Sectors, contents: &mut Vec<Data>, inner: Inner) -> Flash<()> {
        read_inner(self.shape, io, (page, sectors), contents, inner, |io, extent| self.read_extent(io, extent))
    }

    fn holds(&self, page: u32) -> bool {
        self.layer.locate(page).is_some()
    }

    fn locate(&self, page: u32) -> Option<u32> {
        self.layer.locate(page)
    }

    fn written(&self, io: &Io, block: u32) -> u32 {
        self.layer.written(io, block)
    }

    fn trim_block(&mut self, io: &mut Io, block: u32, inner: Inner) -> Flash<()> {
        forget(self.shape, io, block * self.shape.pages_per_block, self.shape.pages_per_block);
        self.layer.trim_block(io, block, inner.after)
    }

    fn discard(&mut self, io: &mut Io, page: u32, pages: u32) -> Flash<()> {
        forget(self.shape, io, page, pages);
        self.layer.trim(io, extent(self.shape, page, pages))
    }

    fn subpages(&self) -> u32 {
        self.shape.pages() * self.shape.subpages_per_page
    }

    fn takes_runs(&self) -> bool {
        false
    }

    fn make_durable(&mut self, _io: &mut Io, _inner: Inner) -> Flash<()> {
        Ok(())
    }
}

/// A layer that maps subpages, each of which is a page of the file system.
pub(super) struct Mapped {
    pub layer: Box<dyn MapsSubpages>,
    pub shape: Shape,
    /// Whether a power cut loses the contents of buffers.
    pub volatile: bool,
}

palimpsest_flash::state!(Mapped { layer } built { shape, volatile });

/// The pages of the layer from `page` on as sectors.
pub(super) fn extent(shape: Shape, page: u32, pages: u32) -> Extent {
    let per_page = shape.page_bytes / SECTOR_BYTES as u32;
    Extent { sector: u64::from(page) * u64::from(per_page), sectors: pages * per_page }
}

/// Lets the drive forget the contents of the pages from `page` on.
pub(super) fn forget(shape: Shape, io: &mut Io, page: u32, pages: u32) {
    let (first, end) = (page * shape.subpages_per_page, (page + pages) * shape.subpages_per_page);
    io.forget(first, end);
}

/// Reads sectors of the pages from `page` on by `layer`, as an inner request.
pub(super) fn read_inner(
    shape: Shape,
    io: &mut Io,
    (page, sectors): (u32, Sectors),
    contents: &mut Vec<Data>,
    inner: Inner,
    layer: impl FnOnce(&mut Io, Extent) -> Flash<()>,
) -> Flash<()> {
    let (from, sector) = (contents.len(), extent(shape, page, 1).sector + u64::from(sectors.start));
    let wanted = Extent { sector, sectors: sectors.end - sectors.start };
    io.serve_inner_read(inner, contents, |io| layer(io, wanted))?;
    let per_subpage = u64::from(shape.page_bytes / shape.subpages_per_page) / SECTOR_BYTES;
    let subpages = wanted.end().div_ceil(per_subpage) - sector / per_subpage;
    // Without a payload the layer delivers no contents.
    contents.resize(from + subpages as usize, Data::ZERO);
    Ok(())
}

impl Store for Mapped {
    fn layer(&mut self) -> &mut dyn Ftl {
        &mut *self.layer
    }

    fn seen(&self) -> &dyn Ftl {
        &*self.layer
    }

    fn write(&mut self, io: &mut Io, page: u32, contents: &[Data], inner: Inner) -> Flash<()> {
        let (layer, extent) = (&mut self.layer, extent(self.shape, page, contents.len() as u32));
        io.serve_inner_write(inner, page, contents, |io| layer.write(io, extent))
    }

    fn read(&mut self, io: &mut Io, page: u32, sectors: Sectors, contents: &mut Vec<Data>, inner: Inner) -> Flash<()> {
        let layer = &mut self.layer;
        read_inner(self.shape, io, (page, sectors), contents, inner, |io, extent| layer.read(io, extent))
    }

    fn holds(&self, page: u32) -> bool {
        self.layer.holds(page)
    }

    fn locate(&self, _page: u32) -> Option<u32> {
        None
    }

    fn written(&self, _io: &Io, block: u32) -> u32 {
        let pages = self.shape.pages_per_block;
        (0..pages).rfind(|page| self.layer.holds(block * pages + page)).map_or(0, |last| last + 1)
    }

    /// Immediate: the layer changes its map, without a flash operation.
    fn trim_block(&mut self, io: &mut Io, block: u32, _inner: Inner) -> Flash<()> {
        let pages = self.shape.pages_per_block;
        self.discard(io, block * pages, pages)
    }

    fn discard(&mut self, io: &mut Io, page: u32, pages: u32) -> Flash<()> {
        forget(self.shape, io, page, pages);
        self.layer.trim(io, extent(self.shape, page, pages))
    }

    fn subpages(&self) -> u32 {
        self.shape.pages()
    }

    fn takes_runs(&self) -> bool {
        true
    }

    fn make_durable(&mut self, io: &mut Io, inner: Inner) -> Flash<()> {
        if !self.volatile {
            return Ok(());
        }
        let layer = &mut self.layer;
        io.serve_inner(inner, |io| layer.flush(io))
    }
}
