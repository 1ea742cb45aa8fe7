//! Decisions outside of the drive, such as policies in Python: the first that fails ends the run. The error has the
//! request and the work of the drive. Ignored: the reason, which stays with the program that decides.

use super::Drive;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::geometry::{Extent, RequestKind};
use palimpsest_flash::units::SECTOR_BYTES;

/// Decisions outside of the drive.
pub struct Outside {
    layer: &'static str,
    has_failed: fn() -> bool,
    /// True during preconditioning.
    preconditions: bool,
    /// Requests since preconditioning began, or since it ended.
    requests: u64,
}

impl Outside {
    /// Decisions for the layer called `layer`; `has_failed` tells whether one of this thread has failed.
    pub fn new(layer: &'static str, has_failed: fn() -> bool) -> Self {
        Outside { layer, has_failed, preconditions: true, requests: 0 }
    }

    /// Ends preconditioning.
    pub fn begin_workload(&mut self) {
        (self.preconditions, self.requests) = (false, 0);
    }
}

impl Drive {
    /// Ends the run if a decision during the request failed.
    #[inline]
    pub(super) fn check_request(&mut self, kind: RequestKind, extent: Extent) -> Result<()> {
        let Some(outside) = &mut self.reports.outside else { return Ok(()) };
        outside.requests += 1;
        if !(outside.has_failed)() {
            return Ok(());
        }
        let number = outside.requests;
        let of = if outside.preconditions { " of preconditioning" } else { "" };
        let bytes = u64::from(extent.sectors) * SECTOR_BYTES;
        let what = match kind {
            RequestKind::Read => format!("a read of {bytes} bytes"),
            RequestKind::Write => format!("a write of {bytes} bytes"),
            RequestKind::Trim => format!("a trim of {bytes} bytes"),
            RequestKind::Flush => "a flush".into(),
        };
        let place =
            if kind == RequestKind::Flush { String::new() } else { format!(" at {}", extent.sector * SECTOR_BYTES) };
        Err(self.failed(&format!("request {number}{of}, {what}{place}")))
    }

    /// Ends the run if a decision during `work` failed.
    pub(super) fn check_work(&self, work: &str) -> Result<()> {
        match &self.reports.outside {
            Some(outside) if (outside.has_failed)() => {
                Err(self.failed(&format!("{work} after request {}", outside.requests)))
            }
            _ => Ok(()),
        }
    }

    #[cold]
    fn failed(&self, work: &str) -> Error {
        let (layer, figures) = (self.reports.outside.as_ref().map_or("", |outside| outside.layer), self.figures());
        let time = if self.io.plan.timed { format!(" at {} ns", self.io.present.now) } else { String::new() };
        Error::Outside(format!("{work}{time}; layer {layer}, {} blocks collected", figures.gc_runs))
    }
}
