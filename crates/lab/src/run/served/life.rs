//! The book of a served drive's life: the counters of earlier services in its image, and those of this service.
//!
//! The image stores the counters with each operation of flash, after each completed write and trim, with each flush,
//! and when the server asks. So a kill loses no acknowledged write, and of reads those since the server last asked. An
//! image that survives a crash of the machine stores counters with flushes alone, as it does data. Ignored: the command
//! in progress at the kill, whose operations count if the next command began.

use super::Served;
use crate::metrics::life::Life;
use crate::run::Session;
use palimpsest_flash::error::Result;
use palimpsest_flash::geometry::RequestKind;
use palimpsest_flash::nand::image::layout::{self, Counters};
use palimpsest_sim::drive::{Command, explain};

/// Seconds after which the time of an idle drive is stored.
const IDLE_S: u64 = 60;

/// Figures of the drive's life that the session does not count.
#[derive(Default)]
pub(super) struct Book {
    /// Figures when this service began; this service is counted.
    before: layout::Life,
    /// Seconds of this service, and failed commands of its hosts; `None` without a server.
    controller: Option<(u64, u64)>,
    /// Seconds of this service in the image.
    stored_s: u64,
}

impl Book {
    /// The book of a drive whose image has these figures.
    pub(super) fn new(kept: Option<layout::Life>) -> Self {
        let before = kept.unwrap_or(layout::Life { services: 1, ..Default::default() });
        Book { before, ..Self::default() }
    }

    /// Counters of all services.
    fn counters(&self, session: &Session<'_>) -> Counters {
        let before = &self.before.counters;
        let (powered_s, error_entries) = self.controller.unwrap_or_default();
        let io = &session.drive.io;
        let baseline = &session.baseline;
        let requests = &session.tally.requests;
        let host = &session.tally.host;
        let flash = io.nand.counters();
        let flash_before = &baseline.nand;
        let sensed = io.counters.sensed.iter().sum::<u64>() - baseline.io.sensed.iter().sum::<u64>();
        Counters {
            host_written: before.host_written + host.bytes_written,
            host_read: before.host_read + host.bytes_read,
            reads: before.reads + requests.read,
            writes: before.writes + requests.write,
            trims: before.trims + requests.trim,
            flushes: before.flushes + requests.flush,
            page_reads: before.page_reads + (flash.reads - flash_before.reads),
            page_programs: before.page_programs + (flash.programs - flash_before.programs),
            erases: before.erases + (flash.erases - flash_before.erases),
            bytes_sensed: before.bytes_sensed + sensed,
            failed_reads: before.failed_reads + session.verifier.failed,
            error_entries: before.error_entries + error_entries,
            powered_s: before.powered_s + powered_s,
        }
    }
}

impl Served<'_> {
    /// The book of the drive's life, if a server [notes](Self::note_controller) its own figures.
    pub fn life(&self) -> Option<Life> {
        self.book.controller?;
        let (session, cuts) = (&self.session, self.session.drive.power.cuts);
        let now = layout::Life { counters: self.book.counters(session), ..self.book.before };
        let mut life = Life::of(&now, &session.config.geometry, &session.config.physical);
        life.power_cycles += cuts;
        life.unsafe_shutdowns += cuts;
        Some(life)
    }

    /// Notes figures that only the server knows: seconds of this service, and failed commands of its NVMe hosts. Stores
    /// all counters in the image, if there is one.
    ///
    /// # Errors
    /// Errors of the image.
    pub fn note_controller(&mut self, powered_s: u64, error_entries: u64) -> Result<()> {
        self.book.controller = Some((powered_s, error_entries));
        if !self.kept {
            return Ok(());
        }
        let nand = &self.session.drive.io.nand;
        let session = &self.session;
        let now = self.book.counters(session);
        let kept = nand.kept_life().unwrap_or_default().counters;
        // The disk of an idle drive may sleep.
        if (Counters { powered_s: kept.powered_s, ..now }) == kept && powered_s < self.book.stored_s + IDLE_S {
            return Ok(());
        }
        self.book.stored_s = powered_s;
        let nand = &mut self.session.drive.io.nand;
        nand.note_counters(now);
        nand.commit_counters().map_err(explain)
    }

    /// Counts the completed `command` in the image; a flush, or a write with FUA, also flushes the image.
    pub(super) fn note_in_image(&mut self, command: Command) -> Result<()> {
        let counters = self.book.counters(&self.session);
        let drive = &mut self.session.drive;
        let now = drive.engine.now() + drive.io.data_age;
        let nand = &mut drive.io.nand;
        nand.note_clock(now);
        nand.note_counters(counters);
        if command.kind == RequestKind::Flush || command.directives.fua {
            return nand.flush_image().map_err(explain);
        }
        if command.kind == RequestKind::Read { Ok(()) } else { nand.commit_counters().map_err(explain) }
    }

    /// Closes the image after the service; nothing may be in flight.
    pub(super) fn close_image(&mut self) -> Result<()> {
        let counters = self.book.counters(&self.session);
        self.session.drive.io.nand.note_counters(counters);
        self.session.close_image()
    }
}
