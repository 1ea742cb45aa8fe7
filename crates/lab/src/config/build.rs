//! From resolved keys to the typed settings of a drive.

use super::schema;
use super::{DriveConfig, ResolvedKey};
use crate::layers::find_layer;
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::nand::errors::ErrorSettings;
use palimpsest_flash::nand::faults::FaultSettings;
use palimpsest_flash::nand::part::{CellKind, Part, ProgramOrder, SpreadReach};
use palimpsest_flash::nand::stripes::{StripeShape, striped};
use palimpsest_flash::nand::wear::WearTable;
use palimpsest_ftl::log::settings::collects_superblocks;
use palimpsest_ftl_api::settings::Settings;
use palimpsest_sim::die_failures::DieFailures;
use palimpsest_sim::power_cuts::PowerCuts;
use palimpsest_sim::settings::{BlockOrder, ControllerTimes, MultiPlane, ReadAhead, Scheduler, SimSettings, Suspend};
use palimpsest_workload::settings::{Acknowledge, HostSettings};
use std::ops::Deref;

/// All keys with their values and sources.
pub(super) struct Values<'a> {
    resolved: &'a [ResolvedKey],
    settings: Settings,
}

impl<'a> Values<'a> {
    /// The values of `resolved`, one for each of [`schema::keys`] and in its order.
    pub fn new(resolved: &'a [ResolvedKey]) -> Self {
        debug_assert_eq!(resolved.len(), schema::keys().len());
        let values = resolved.iter().map(|key| (key.key.name, key.value.clone()));
        let settings = Settings::new("", values);
        Values { resolved, settings: settings.for_layer(&settings.text("ftl.name")) }
    }

    /// The value and source of `key`.
    pub fn key(&self, key: &str) -> &ResolvedKey {
        &self.resolved[schema::position(key).unwrap_or_else(|| panic!("{key} is not in the schema"))]
    }

    /// The member of `members` at the position of the value of `key` among its words.
    fn choice<T: Copy>(&self, key: &str, members: &[T]) -> T {
        let words = self.key(key).key.value_type.words();
        assert_eq!(words.len(), members.len(), "{key} has as many words as meanings");
        let text = self.text(key);
        members[words.iter().position(|word| *word == text).expect("a choice is one of its words")]
    }
}

impl Deref for Values<'_> {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.settings
    }
}

/// The drive of `values`. [`super::check`] refuses impossible ones.
pub(super) fn drive(name: &str, part_name: &str, values: &Values) -> DriveConfig {
    let layer = find_layer(&values.name).expect("the name was read as that of a layer");
    let part = part(part_name, values);
    let shot = part.shot(values.small("part.pages_per_program")).filter(|_| layer.word_lines);
    let part = (layer.part)(&values.settings, shot.unwrap_or(part));
    let physical = Geometry {
        channels: values.small("ssd.channels"),
        chips_per_channel: values.small("ssd.chips_per_channel"),
        dies_per_chip: values.small("ssd.dies_per_chip"),
        planes_per_die: values.small("ssd.planes_per_die"),
        blocks_per_plane: values.small("ssd.blocks_per_plane"),
        pages_per_block: part.pages_per_block,
        subpages_per_page: part.subpages_per_page(),
        subpage_bytes: part.subpage_bytes,
    };
    let stripes = stripes(values, physical.dies());
    DriveConfig {
        name: name.into(),
        geometry: stripes.map_or(physical, |shape| striped(&physical, shape)),
        physical,
        stripes,
        over_provisioning: values.ratio("ssd.over_provisioning"),
        part,
        ftl: values.settings.clone(),
        sim: sim(values),
        host: host(values),
        controller: controller(values),
        read_ahead: ReadAhead {
            pages: values.small("controller.read_ahead"),
            streams: values.small("controller.read_streams"),
        },
        faults: faults(values),
        errors: errors(values),
        power_cuts: PowerCuts::parse(&values.settings.text("faults.power_cuts")).expect("the key read it"),
        die_failures: DieFailures::parse(&values.settings.text("faults.die_failure")).expect("the key read it"),
    }
}

/// The superblocks that are blocks to layers, where the drive has a whole number of them.
fn stripes(values: &Values, dies: u32) -> Option<StripeShape> {
    let (data, in_turn) = (values.small("ftl.rain"), values.small("ftl.superblock_dies"));
    let shape = match (data, collects_superblocks(&values.settings)) {
        (0, false) => return None,
        (0, true) => StripeShape { data: if in_turn == 0 { dies } else { in_turn }, parity: false },
        (data, _) => StripeShape { data, parity: true },
    };
    (shape.dies() > 1 && dies.is_multiple_of(shape.dies())).then_some(shape)
}

fn part(name: &str, values: &Values) -> Part {
    Part {
        name: name.into(),
        cell: values.choice("part.cell", &[CellKind::Slc, CellKind::Mlc, CellKind::Tlc, CellKind::Qlc]),
        page_bytes: values.small_bytes("part.page_size"),
        subpage_bytes: values.small_bytes("part.subpage_size"),
        spare_bytes: values.small_bytes("part.spare_size"),
        pages_per_block: values.small("part.pages_per_block"),
        pages_per_program: 1,
        cache_pages: values.small("part.cache_pages"),
        nop: values.small("part.nop"),
        order: values.choice(
            "part.order",
            &[
                ProgramOrder::Strict,
                ProgramOrder::Ascending,
                ProgramOrder::Any,
                ProgramOrder::LowLowHigh,
                ProgramOrder::LowHighLow,
            ],
        ),
        t_read: values.time("part.t_read"),
        t_read_high: values.time("part.t_read_high"),
        t_read_types: values.times("part.t_read_types"),
        t_read_slc: values.time("part.t_read_slc"),
        t_program_slc: values.time("part.t_program_slc"),
        t_program: values.time("part.t_program"),
        t_program_high: values.time("part.t_program_high"),
        t_erase: values.time("part.t_erase"),
        t_command: values.time("part.t_command"),
        bus_rate: values.rate("part.bus_rate"),
        t_read_retry: values.time("part.t_read_retry"),
        t_suspend: values.time("part.t_suspend"),
        t_resume: values.time("part.t_resume"),
        word_bytes: values.small_bytes("part.word_size"),
        t_read_words: values.times("part.t_read_words"),
        t_dma_words: values.times("part.t_dma_words"),
        spread_reach: values.choice("part.spread_reach", &[SpreadReach::Any, SpreadReach::Run]),
        endurance: values.small("part.endurance"),
        endurance_slc: values.small("part.endurance_slc"),
        endurance_deviation: values.ratio("part.endurance_deviation"),
        wear: WearTable {
            fresh_rate: values.ratio("part.ber_fresh"),
            limit_rate: values.ratio("part.ber_limit"),
            shares: values.ratios("part.reuse_shares"),
            reprogram_loss: values.ratios("part.reuse_loss"),
            voltage_loss: values.ratios("part.voltage_loss"),
        },
        pair_corruption: values.flag("part.pair_corruption"),
        e_read: values.energy("part.e_read"),
        e_read_high: values.energy("part.e_read_high"),
        e_read_words: values.energies("part.e_read_words"),
        e_program: values.energy("part.e_program"),
        e_program_high: values.energy("part.e_program_high"),
        e_reprogram: values.energy("part.e_reprogram"),
        e_erase: values.energy("part.e_erase"),
        e_program_low_first: values.energy("part.e_program_low_first"),
        e_program_high_second: values.energy("part.e_program_high_second"),
        e_erase_reused: values.energy("part.e_erase_reused"),
        code: None,
    }
}

fn sim(values: &Values) -> SimSettings {
    SimSettings {
        scheduler: values.choice("sim.scheduler", &[Scheduler::Fifo, Scheduler::ReadFirst, Scheduler::HostFirst]),
        starvation_bound: values.time("sim.starvation_bound"),
        suspend: values.choice("sim.suspend", &[Suspend::None, Suspend::Erase, Suspend::ProgramErase]),
        cache_register: values.flag("sim.cache_register"),
        cache_read: values.flag("sim.cache_read"),
        block_order: values.choice("sim.block_order", &[BlockOrder::Needed, BlockOrder::Planned]),
        independent_reads: values.choice("sim.plane_reads", &[false, true]),
        multi_plane: values.choice("sim.multi_plane", &[MultiPlane::Off, MultiPlane::Waiting, MultiPlane::Group]),
    }
}

fn host(values: &Values) -> HostSettings {
    HostSettings {
        speedup: values.factor("host.speedup"),
        fold: values.flag("host.fold"),
        piece_bytes: values.bytes("host.compact"),
        link_rate: values.rate("host.link_rate"),
        t_request: values.time("host.t_request"),
        iodepth: values.small("host.iodepth"),
        buffer_bytes: values.bytes("buffer.size"),
        acknowledge: values.choice("buffer.ack", &[Acknowledge::Buffer, Acknowledge::Program, Acknowledge::Volatile]),
        flush_is_free: values.choice("buffer.flush", &[false, true]),
        buffer_timeout: values.time("buffer.timeout"),
    }
}

fn controller(values: &Values) -> ControllerTimes {
    let iops = values.count("controller.iops");
    ControllerTimes {
        t_link: values.time("host.t_link"),
        t_request: 1_000_000_000u64.checked_div(iops).unwrap_or(0),
        t_read: values.time("controller.t_read"),
        t_write: values.time("controller.t_write"),
        t_end: values.time("controller.t_end"),
        t_buffer: values.time("buffer.t_write"),
        t_buffer_next: values.time("buffer.t_write_next"),
    }
}

fn errors(values: &Values) -> ErrorSettings {
    ErrorSettings {
        strength: values.small("ecc.strength"),
        retries: values.times("ecc.t_retries"),
        retry_rates: values.ratios("ecc.retry_rates"),
        retention: values.age("ecc.t_retention"),
        data_age: values.age("ecc.data_age"),
        disturb: values.small("ecc.disturb_reads"),
        refresh_retries: values.small("ecc.refresh_retries"),
    }
}

fn faults(values: &Values) -> FaultSettings {
    let cut = values.count("faults.power_cut_at");
    FaultSettings {
        program_fail: values.ratio("faults.program_fail"),
        erase_fail: values.ratio("faults.erase_fail"),
        read_fail: values.ratio("faults.read_fail"),
        initial_bad: values.ratio("faults.initial_bad"),
        wear_out: values.flag("faults.wear_out"),
        power_cut_at: (cut > 0).then_some(cut),
    }
}
