//! The interface of a drive to a verifier of the host's data.
//!
//! Ignored: times, which `causality` verifies.

use super::Command;
use palimpsest_flash::error::Result;
use palimpsest_flash::geometry::Extent;
use palimpsest_ftl_api::plan::Io;
use palimpsest_ftl_api::plan::port::HostPort;

/// Checks reads against the host's data. The drive calls [`Self::served`] after each request; all other methods do
/// nothing by default.
pub trait Verifier {
    /// The layer has served `command`. The extent of a trim covers only the units that were unmapped.
    ///
    /// # Errors
    /// [`palimpsest_flash::error::Error::Rule`] if a read delivered other data than the host wrote.
    fn served(&mut self, io: &mut Io, command: Command) -> Result<()>;

    /// The host made `writes` writes of `width` whole subpages each, from subpage `first` on. No power cut is
    /// scheduled.
    fn filled(&mut self, _port: &HostPort, _first: u32, _writes: u32, _width: u32) {}

    /// The power failed during `command`, and the layer has recovered. The drive repeats the command next.
    fn power_failed(&mut self, _io: &mut Io, _command: Command) {}

    /// In a timed run, the changes of `extent` (everywhere, if `None`) up to number `change` are durable.
    fn durable(&mut self, _extent: Option<Extent>, _change: u64) {}

    /// In a timed run, a flush made all trims up to change number `change` durable.
    fn trims_durable(&mut self, _change: u64) {}

    /// Request `id` of a server was planned.
    fn planned(&mut self, _id: u32) {}

    /// The power failed in a timed run, so changes that are not durable may be lost. Writes with the numbers
    /// `unanswered` were not acknowledged.
    fn power_lost(&mut self, _unanswered: &[u64]) {}
}
