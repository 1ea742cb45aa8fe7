//! What a drive reports to what checks it against the data of the host.

use super::Command;
use palimpsest_flash::error::Result;
use palimpsest_flash::geometry::Extent;
use palimpsest_ftl_api::plan::Io;
use palimpsest_ftl_api::plan::port::HostPort;

/// Checks reads against the host's data.
pub trait Verifier {
    /// The layer has served `command`; the extent of a trim is what it forgot.
    ///
    /// # Errors
    /// [`palimpsest_flash::error::Error::Rule`] where data is not what the host put there.
    fn served(&mut self, io: &mut Io, command: Command) -> Result<()>;

    /// The last `writes` writes were each of `width` whole subpages, from subpage `first` on. No power cut is ahead.
    fn filled(&mut self, _port: &HostPort, _first: u32, _writes: u32, _width: u32) {}

    /// The power failed during `command`, and the layer has recovered; the command is repeated next.
    fn power_failed(&mut self, _io: &mut Io, _command: Command) {}

    /// In a timed run, the changes of `extent` (everywhere, if `None`) up to number `change` are durable.
    fn durable(&mut self, _extent: Option<Extent>, _change: u64) {}

    /// In a timed run, a flush made all trims up to change number `change` durable.
    fn trims_durable(&mut self, _change: u64) {}

    /// Request `id` of a server was planned.
    fn planned(&mut self, _id: u32) {}

    /// The power failed in a timed run; what is not durable may be lost. Writes with the numbers `unanswered` were not acknowledged.
    fn power_lost(&mut self, _unanswered: &[u64]) {}
}
