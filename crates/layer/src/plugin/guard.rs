//! A layer of a plug-in whose panics reach the program as panics of the program. Each function of [`Ftl`] and [`State`]
//! must be here, because the default would replace a missing one. Ignored: panics outside of layers, as in codes of
//! cells.

use super::HOST;
use palimpsest_flash::command::Command;
use palimpsest_flash::geometry::{Extent, RequestKind};
use palimpsest_flash::nand::Flash;
use palimpsest_flash::state::{Loaded, Reader, State};
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::Io;
use palimpsest_ftl_api::zones::{ZoneError, Zones};
use palimpsest_ftl_api::{ClassifyAhead, Ftl, LayerFigures, PlacementEvents};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The value of `call`, a call of the layer called `layer`; a panic continues in the program.
#[inline]
pub fn guard<T>(layer: &'static str, call: impl FnOnce() -> T) -> T {
    // After a panic the program uses neither the layer nor the drive again.
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(value) => value,
        Err(payload) => pass_on(layer, payload),
    }
}

#[cold]
fn pass_on(layer: &'static str, payload: Box<dyn Any + Send>) -> ! {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".into());
    drop(payload);
    let host = HOST.get().expect("the program connects a plug-in before it uses a layer");
    (host.panic)(format!("the layer {layer} of a plug-in: {text}"))
}

/// A layer of a plug-in.
pub struct Guarded {
    name: &'static str,
    /// `None` once dropped.
    layer: Option<Box<dyn Ftl>>,
}

impl Guarded {
    /// `layer`, called `name`.
    pub fn layer(name: &'static str, layer: Box<dyn Ftl>) -> Box<dyn Ftl> {
        Box::new(Guarded { name, layer: Some(layer) })
    }

    #[inline]
    fn of<'a, T>(&'a self, call: impl FnOnce(&'a dyn Ftl) -> T) -> T {
        guard(self.name, || call(self.layer.as_deref().expect("a layer in use")))
    }

    #[inline]
    fn with<'a, T>(&'a mut self, call: impl FnOnce(&'a mut dyn Ftl) -> T) -> T {
        guard(self.name, || call(self.layer.as_deref_mut().expect("a layer in use")))
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        guard(self.name, || drop(self.layer.take()));
    }
}

impl ClassifyAhead for Guarded {
    fn classify_ahead(&mut self, arrivals: &[Nanos], commands: &mut [Command]) {
        self.with(|layer| {
            layer.classifier_ahead().expect("a classifier of the layer").classify_ahead(arrivals, commands);
        });
    }
}

impl State for Guarded {
    fn save(&self, out: &mut Vec<u8>) {
        self.of(|layer| layer.state().expect("a state of the layer").save(out));
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Loaded {
        self.with(|layer| layer.state_mut().expect("a state of the layer").load(from))
    }

    fn in_huge_pages(&self) {
        self.of(|layer| layer.state().expect("a state of the layer").in_huge_pages());
    }
}

impl Ftl for Guarded {
    fn unit_subpages(&self) -> u32 {
        self.of(|layer| layer.unit_subpages())
    }

    fn trim_subpages(&self) -> u32 {
        self.of(|layer| layer.trim_subpages())
    }

    fn inner_subpages(&self) -> Option<u32> {
        self.of(|layer| layer.inner_subpages())
    }

    fn file_end(&self, first: u32, end: u32) -> u32 {
        self.of(|layer| layer.file_end(first, end))
    }

    fn expect(&self, extent: Extent, soon: bool) {
        self.of(|layer| layer.expect(extent, soon));
    }

    fn locate_ahead(&self, extent: Extent) -> Option<u32> {
        self.of(|layer| layer.locate_ahead(extent))
    }

    fn classifier_ahead(&mut self) -> Option<&mut dyn ClassifyAhead> {
        self.with(|layer| layer.classifier_ahead().is_some()).then_some(self as &mut dyn ClassifyAhead)
    }

    fn zones(&self) -> Option<&Zones> {
        self.of(|layer| layer.zones())
    }

    fn zones_mut(&mut self) -> Option<&mut Zones> {
        self.with(|layer| layer.zones_mut())
    }

    fn admit(&mut self, io: &Io, kind: RequestKind, extent: Extent) -> Result<Extent, ZoneError> {
        self.with(|layer| layer.admit(io, kind, extent))
    }

    fn finish(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        self.with(|layer| layer.finish(io, extent))
    }

    fn write(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        self.with(|layer| layer.write(io, extent))
    }

    fn fill(&mut self, io: &mut Io, first: u32, units: u32) -> Flash<u32> {
        self.with(|layer| layer.fill(io, first, units))
    }

    fn read(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        self.with(|layer| layer.read(io, extent))
    }

    fn trim(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        self.with(|layer| layer.trim(io, extent))
    }

    fn flush(&mut self, io: &mut Io) -> Flash<()> {
        self.with(|layer| layer.flush(io))
    }

    fn update_handle(&mut self, io: &mut Io) -> Flash<()> {
        self.with(|layer| layer.update_handle(io))
    }

    fn placement_events(&self) -> Option<PlacementEvents> {
        self.of(|layer| layer.placement_events())
    }

    fn deadline(&self) -> Option<Nanos> {
        self.of(|layer| layer.deadline())
    }

    fn timer(&mut self, io: &mut Io) -> Flash<()> {
        self.with(|layer| layer.timer(io))
    }

    fn background(&mut self, io: &mut Io) -> Flash<bool> {
        self.with(|layer| layer.background(io))
    }

    fn relocate(&mut self, io: &mut Io, block: u32) -> Flash<bool> {
        self.with(|layer| layer.relocate(io, block))
    }

    fn recover(&mut self, io: &mut Io) -> Flash<()> {
        self.with(|layer| layer.recover(io))
    }

    fn save_tables(&self, io: &Io, bytes: &mut Vec<u8>) {
        self.of(|layer| layer.save_tables(io, bytes));
    }

    fn check(&mut self, io: &Io) -> Result<(), String> {
        self.with(|layer| layer.check(io))
    }

    fn figures(&self) -> LayerFigures {
        self.of(|layer| layer.figures())
    }

    fn state(&self) -> Option<&dyn State> {
        self.of(|layer| layer.state().is_some()).then_some(self as &dyn State)
    }

    fn state_mut(&mut self) -> Option<&mut dyn State> {
        self.with(|layer| layer.state_mut().is_some()).then_some(self as &mut dyn State)
    }

    fn count_valid(&self, valid: &mut [u32]) -> bool {
        self.of(|layer| layer.count_valid(valid))
    }
}
