//! The one builder of drives, for sessions, servers and the model suite. Ignored: preconditioning.

use crate::config::DriveConfig;
use palimpsest_flash::nand::data::Payload;
use palimpsest_ftl::log::outside::PROGRAM;
use palimpsest_ftl_api::plan::{CheckpointIo, Io};
use palimpsest_ftl_api::{Blueprint, Entry};
use palimpsest_sim::drive::patrol::Patrol;
use palimpsest_sim::drive::{Buffer, Drive, Outside, Surface};
use palimpsest_sim::engine::Engine;
use palimpsest_workload::settings::Acknowledge;

/// Tables of keys that preconditioning does not read: arrivals of requests and times of operations. Layers do not get
/// them.
pub const UNREAD_TABLES: [&str; 3] = ["host", "controller", "sim"];

/// A new drive of `config` with the layer `entry`, and cells that store `payload`. The caller must switch on controller
/// times, read-ahead, the journal of trims and the check of times.
pub fn drive(config: &DriveConfig, entry: &Entry, payload: Payload, seed: u64) -> Drive {
    let mut io = Io::new(config.flash(payload, seed), false);
    if let Some((every, contents)) = config.checkpoints() {
        io.keep_checkpoints(every, contents);
    }
    io.sets = config.sets();
    let guarantee = config.guarantee(entry);
    let blueprint = Blueprint {
        settings: config.ftl.without(&UNREAD_TABLES),
        logical_pages: config.logical_pages() as u32,
        protected: guarantee.protected,
        buffer_timeout: config.host.buffer_timeout,
        seed,
    };
    let layer = (entry.build)(&io, &blueprint);
    let engine = Engine::new(&config.sim, &config.physical, &config.part, config.host_times());
    let mut drive = Drive::new(io, layer, engine, guarantee);
    if entry.is_file_system() {
        drive.surface = Surface::Files;
    }
    let program = PROGRAM.get().filter(|program| config.ftl.texts().any(|(key, text)| (program.names)(key, text)));
    drive.reports.outside = program.map(|program| Outside::new(entry.name, program.has_failed));
    drive.io.plan.flush_is_free = config.host.flush_is_free;
    drive.set_buffer(Buffer {
        subpages: (config.host.buffer_bytes - (entry.kept_buffer)(&config.ftl))
            / u64::from(config.geometry.subpage_bytes),
        gathers: entry.gathers,
        acknowledges: config.host.acknowledge != Acknowledge::Program,
        logical: config.logical_subpages() as u32,
    });
    let (round, pages) = (config.log.patrol, config.geometry.pages() as u32);
    if round > 0 {
        drive.set_patrol(Patrol::new(round, pages, config.log.read));
    }
    drive
}
