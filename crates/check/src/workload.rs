//! Requests of a host: unaligned extents, hot spots, sequential runs, trims, flushes. On a drive with reclaim unit
//! handles writes name handles, some of them unknown, and some flushes update a handle.

use palimpsest_lab::config::DriveConfig;
use palimpsest_lab::geometry::{Extent, RequestKind};
use palimpsest_lab::host::request::Directives;
use palimpsest_lab::layers::find_layer;
use palimpsest_lab::rng::Rng;
use palimpsest_lab::sim::drive::Command;

/// A mixture of requests over a drive.
pub struct Mix {
    rng: Rng,
    sectors: u64,
    sectors_per_subpage: u64,
    sectors_per_page: u64,
    /// Where the present sequential run continues.
    run: u64,
    hot: u64,
    /// Of 100 requests, how many trim.
    pub trims: u64,
    /// Of 100 requests, how many read.
    pub reads: u64,
    /// Of 100 requests, how many flush.
    pub flushes: u64,
    /// Placement identifiers, if the drive has handles. A generator of its own, so that other draws do not depend on
    /// it.
    places: Option<Rng>,
}

impl Mix {
    pub fn new(drive: &DriveConfig, seed: u64) -> Self {
        let mut rng = Rng::new(seed, 0x3070);
        let sectors = drive.logical_bytes() / 512;
        let has_handles = find_layer(&drive.ftl.name).is_some_and(|entry| entry.lists("fdp.handles"));
        Mix {
            places: has_handles.then(|| Rng::new(seed, 0x0fd9)),
            sectors,
            sectors_per_subpage: u64::from(drive.geometry.subpage_bytes) / 512,
            sectors_per_page: u64::from(drive.geometry.page_bytes()) / 512,
            run: 0,
            hot: rng.below(sectors),
            trims: 5,
            reads: 25,
            flushes: 3,
            rng,
        }
    }

    /// The next request.
    pub fn draw(&mut self) -> Command {
        let roll = self.rng.below(100);
        let kind = match roll {
            roll if roll < self.reads => RequestKind::Read,
            roll if roll < self.reads + self.trims => RequestKind::Trim,
            roll if roll < self.reads + self.trims + self.flushes => RequestKind::Flush,
            _ => RequestKind::Write,
        };
        if kind == RequestKind::Flush {
            return self.placed(Command::new(kind, Extent { sector: 0, sectors: 0 }));
        }
        let extent = self.extent();
        self.placed(Command::new(kind, extent))
    }

    /// `command` with a placement identifier: of the first groups and handles, or of none.
    fn placed(&mut self, command: Command) -> Command {
        let Some(places) = &mut self.places else { return command };
        let (roll, placement) = (places.below(3), [0, 1, 2, 9, 0x8000, 0x8001, 0x4001][places.below(7) as usize]);
        let directives = Directives { placement, placed: true, ..command.directives };
        match command.kind {
            RequestKind::Write if roll > 0 => command.with(directives),
            RequestKind::Flush if roll == 0 => Command::update(placement),
            _ => command,
        }
    }

    fn extent(&mut self) -> Extent {
        let size = match self.rng.below(10) {
            0 => 1,
            1 => 1 + self.rng.below(self.sectors_per_subpage),
            2..=4 => self.sectors_per_subpage,
            5 => self.sectors_per_subpage * (1 + self.rng.below(4)),
            6 | 7 => self.sectors_per_page,
            8 => 1 + self.rng.below(3 * self.sectors_per_page),
            _ => self.sectors_per_page * (1 + self.rng.below(3)),
        };
        let size = size.min(self.sectors);
        let anywhere = self.rng.below(self.sectors);
        let near_hot = (self.hot + self.rng.below(self.sectors / 8 + 1)) % self.sectors;
        let mut sector = match self.rng.below(8) {
            0 => self.run,
            1 => anywhere,
            2 | 3 => anywhere / self.sectors_per_subpage * self.sectors_per_subpage,
            4 => near_hot,
            5 | 6 => near_hot / self.sectors_per_subpage * self.sectors_per_subpage,
            _ => anywhere / self.sectors_per_page * self.sectors_per_page,
        };
        sector = sector.min(self.sectors - size);
        self.run = (sector + size) % self.sectors;
        if self.rng.below(200) == 0 {
            self.hot = anywhere;
        }
        Extent { sector, sectors: size as u32 }
    }
}

/// Writes that fill the whole drive in order, in requests of `step` sectors.
pub fn fill(drive: &DriveConfig, step: u64) -> impl Iterator<Item = Command> + use<> {
    sweep(drive, RequestKind::Write, step)
}

/// Requests of `kind` over the whole drive in order.
pub fn sweep(drive: &DriveConfig, kind: RequestKind, step: u64) -> impl Iterator<Item = Command> + use<> {
    let sectors = drive.logical_bytes() / 512;
    (0..sectors.div_ceil(step)).map(move |index| {
        let sector = index * step;
        Command::new(kind, Extent { sector, sectors: step.min(sectors - sector) as u32 })
    })
}
