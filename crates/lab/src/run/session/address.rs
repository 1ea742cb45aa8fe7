//! Conversion of the workload's requests to commands of the drive: time, address, and the groups of their files.
//! Ignored: contents.

use super::Session;
use palimpsest_flash::command::ZoneAction;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::geometry::{Extent, FileGroup, RequestKind};
use palimpsest_flash::units::parse::format_bytes;
use palimpsest_flash::units::{GIB, MIB, Nanos, SECTOR_BYTES};
use palimpsest_workload::request::{NO_FILE, Request, Source};

/// Latest arrival: simulated time has 56 bits.
const LATEST_ARRIVAL: Nanos = 1 << 55;
const NANOS_PER_DAY: f64 = 86_400e9;

/// The addresses and times of the workload on the drive.
pub(in crate::run) struct Addresses {
    /// Arrival time of the first request, on the workload's clock.
    clock_zero: Nanos,
    /// The begin of the workload on the engine's clock, after the run-in.
    pub(in crate::run) begin: Nanos,
    /// Sectors of the drive.
    sectors: u64,
    /// Requests that were folded into the drive.
    pub(in crate::run) folded: u64,
}

impl Addresses {
    pub(super) fn new(sectors: u64) -> Self {
        Addresses { clock_zero: 0, begin: 0, sectors, folded: 0 }
    }

    /// True if the whole of `extent` is on the drive.
    #[inline]
    pub(super) fn contain(&self, extent: Extent) -> bool {
        extent.end() <= self.sectors
    }
}

impl Session<'_> {
    /// Makes `request` of the workload one of this drive: scales its time, checks its address, and names its owner.
    #[inline(always)]
    pub(super) fn prepare(&mut self, source: &mut dyn Source, request: &mut Request) -> Result<()> {
        if self.intake.taken == 0 {
            self.addresses.clock_zero = request.arrival;
        }
        self.intake.taken += 1;
        let since = request.arrival.saturating_sub(self.addresses.clock_zero);
        let arrival = if self.config.host.speedup == 1.0 { since } else { self.sped_up(since) };
        self.check_arrival(source, arrival)?;
        request.arrival = arrival + self.addresses.begin;
        request.name();
        if !self.addresses.contain(request.extent) && request.kind != RequestKind::Flush {
            request.command.extent = self.fold(source, request.extent)?;
        }
        self.add_file_groups(source, request);
        if request.directives.zone != ZoneAction::None {
            self.expect_zones(source)?;
        }
        Ok(())
    }

    // A separate function, so that the common case has no division.
    #[inline(never)]
    fn sped_up(&self, since: Nanos) -> Nanos {
        (since as f64 / self.config.host.speedup) as Nanos
    }

    /// Adds the file groups of `request` to the drive, if the file is new and has a name.
    #[inline(always)]
    fn add_file_groups(&mut self, source: &dyn Source, request: &Request) {
        let groups = &mut self.drive.io.file_groups;
        let known = (groups.len() as u32).max(1);
        if request.file != NO_FILE
            && request.owner() >= known
            && let Some(names) = source.file_names()
        {
            groups.resize(known as usize, FileGroup::default());
            groups.extend((known..=request.owner()).map(|owner| names.group(owner - 1)));
        }
    }

    #[inline]
    pub(super) fn check_arrival(&self, source: &dyn Source, arrival: Nanos) -> Result<()> {
        if arrival <= LATEST_ARRIVAL { Ok(()) } else { Err(self.too_late(source, arrival)) }
    }

    #[cold]
    fn too_late(&self, source: &dyn Source, arrival: Nanos) -> Error {
        let what = format!(
            "the request arrives {:.0} days after the first; expected at most {:.0} (is host.speedup = {} meant?)",
            arrival as f64 / NANOS_PER_DAY,
            LATEST_ARRIVAL as f64 / NANOS_PER_DAY,
            self.config.host.speedup,
        );
        Error::input(source.place(), what)
    }

    /// Folds an extent beyond the drive, if `host.fold` is set.
    #[cold]
    pub(super) fn fold(&mut self, source: &mut dyn Source, extent: Extent) -> Result<Extent> {
        let size = self.addresses.sectors * SECTOR_BYTES;
        let bytes = u64::from(extent.sectors) * SECTOR_BYTES;
        if bytes > size {
            let what =
                format!("the request of {bytes} bytes is larger than the drive {:?} of {size}", self.config.name);
            return Err(Error::input(source.place(), format!("{what}; expected a larger drive")));
        }
        if !self.config.host.fold {
            return Err(self.beyond(source, extent));
        }
        self.addresses.folded += 1;
        let sector = extent.sector % self.addresses.sectors;
        // A request across the end of the drive moves back to end there.
        Ok(Extent { sector: sector.min(self.addresses.sectors - u64::from(extent.sectors)), ..extent })
    }

    /// The error for a workload that reaches beyond the drive, with the needed capacity of the whole workload if it can
    /// be read again.
    fn beyond(&self, source: &mut dyn Source, extent: Extent) -> Error {
        let place = source.place();
        let survey = match source.survey() {
            Ok(survey) => survey,
            Err(error) => return error,
        };
        let begin = u128::from(extent.sector) * u128::from(SECTOR_BYTES);
        let end = (begin + u128::from(extent.sectors) * u128::from(SECTOR_BYTES)).try_into().unwrap_or(u64::MAX);
        let needed = survey.map_or(end, |survey| survey.end_bytes);
        let why = match survey {
            Some(survey) if survey.volumes > 1 => {
                format!("the {} volumes of the trace need {}", survey.volumes, capacity(needed))
            }
            Some(_) => format!("the trace needs {}", capacity(needed)),
            None => format!("it needs at least {}", capacity(needed)),
        };
        let compact = survey.filter(|survey| survey.footprint_bytes < needed / 2).map_or_else(String::new, |survey| {
            format!(", --set host.compact=1MiB (it uses {})", capacity(survey.footprint_bytes))
        });
        let what = format!(
            "the request at byte {begin} of {} bytes is beyond the drive {:?} of {} bytes; {why}: expected --set \
             ssd.capacity={}{compact}, or --set host.fold=true to fold addresses into this drive",
            u64::from(extent.sectors) * SECTOR_BYTES,
            self.config.name,
            self.addresses.sectors * SECTOR_BYTES,
            capacity(needed),
        );
        Error::input(place, what)
    }
}

/// A capacity of at least `bytes`, in the notation of `ssd.capacity`.
fn capacity(bytes: u64) -> String {
    let unit = if bytes < 16 * GIB { MIB } else { GIB };
    format_bytes(bytes.div_ceil(unit).saturating_mul(unit))
}
