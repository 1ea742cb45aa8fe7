//! From resolved keys to the typed settings of a drive.

use super::schema::{self, KEYS};
use super::value::{self, Value};
use super::{Drive, Entry};
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::nand::faults::FaultSettings;
use palimpsest_flash::nand::part::{CellKind, Part, ProgramOrder, ReadMode, SpreadReach};
use palimpsest_flash::nand::wear::WearTable;
use palimpsest_flash::units::{Nanos, Picojoules, Rate};
use palimpsest_ftl_api::file_system::{DepthPages, Discard, FileSystemSettings, Files};
use palimpsest_ftl_api::plan::select::ReadPolicy;
use palimpsest_ftl_api::settings::{Allocation, BlockCount, Classifier, FtlSettings, WearLeveling};
use palimpsest_sim::settings::{Scheduler, SimSettings, Suspend};
use palimpsest_workload::settings::{Acknowledge, HostSettings};

/// All keys with their values, one entry for each of [`KEYS`] and in its order.
///
/// The getters panic when a key does not exist or has another kind: that is our bug, not the user's mistake.
pub(super) struct Values<'a>(pub &'a [Entry]);

macro_rules! getter {
    ($name:ident, $variant:ident, $type:ty) => {
        pub fn $name(&self, key: &str) -> $type {
            match &self.entry(key).value {
                Value::$variant(value) => value.clone(),
                other => panic!("{key} has the value {other:?}"),
            }
        }
    };
}

impl Values<'_> {
    /// The entry of `key`.
    pub fn entry(&self, key: &str) -> &Entry {
        &self.0[schema::position(key).unwrap_or_else(|| panic!("{key} is not in the schema"))]
    }

    getter!(text, Text, String);
    getter!(count, Count, u64);
    getter!(flag, Flag, bool);
    getter!(time, Time, Nanos);
    getter!(times, Times, Vec<Nanos>);
    getter!(bytes, Bytes, u64);
    getter!(rate, Rate, Rate);
    getter!(ratio, Ratio, f64);
    getter!(ratios, Ratios, Vec<f64>);
    getter!(energy, Energy, Picojoules);
    getter!(energies, Energies, Vec<Picojoules>);
    getter!(blocks, Blocks, BlockCount);
    getter!(factor, Factor, f64);

    /// A count whose range the schema keeps within 32 bits.
    pub fn small(&self, key: &str) -> u32 {
        u32::try_from(self.count(key)).expect("the schema keeps this count within 32 bits")
    }

    /// A size whose range the schema keeps within 32 bits.
    pub fn small_bytes(&self, key: &str) -> u32 {
        u32::try_from(self.bytes(key)).expect("the schema keeps this size within 32 bits")
    }

    /// The member of `members` that stands where the value of `key` stands among its words.
    fn choice<T: Copy>(&self, key: &str, members: &[T]) -> T {
        let value::Kind::Choice(words) = self.entry(key).key.kind else { panic!("{key} is no choice") };
        assert_eq!(words.len(), members.len(), "{key} has as many words as meanings");
        let text = self.text(key);
        members[words.iter().position(|word| *word == text).expect("a choice is one of its words")]
    }
}

/// The drive that `values` describe. Whether it is possible is for [`super::check`].
pub(super) fn drive(name: &str, part_name: &str, values: &Values) -> Drive {
    debug_assert_eq!(values.0.len(), KEYS.len());
    let part = part(part_name, values);
    Drive {
        name: name.into(),
        geometry: Geometry {
            channels: values.small("ssd.channels"),
            chips_per_channel: values.small("ssd.chips_per_channel"),
            dies_per_chip: values.small("ssd.dies_per_chip"),
            planes_per_die: values.small("ssd.planes_per_die"),
            blocks_per_plane: values.small("ssd.blocks_per_plane"),
            pages_per_block: part.pages_per_block,
            subpages_per_page: part.subpages_per_page(),
            subpage_bytes: part.subpage_bytes,
        },
        over_provisioning: values.ratio("ssd.over_provisioning"),
        part,
        ftl: ftl(values),
        sim: sim(values),
        host: host(values),
        faults: faults(values),
    }
}

fn part(name: &str, values: &Values) -> Part {
    Part {
        name: name.into(),
        cell: values.choice("part.cell", &[CellKind::Slc, CellKind::Mlc, CellKind::Tlc, CellKind::Qlc]),
        page_bytes: values.small_bytes("part.page_size"),
        subpage_bytes: values.small_bytes("part.subpage_size"),
        spare_bytes: values.small_bytes("part.spare_size"),
        pages_per_block: values.small("part.pages_per_block"),
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
        wear: WearTable {
            fresh_rate: values.ratio("part.ber_fresh"),
            limit_rate: values.ratio("part.ber_limit"),
            shares: values.ratios("part.reuse_shares"),
            reprogram_loss: values.ratios("part.reuse_loss"),
            voltage_loss: values.ratios("part.voltage_loss"),
        },
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
    }
}

fn ftl(values: &Values) -> FtlSettings {
    FtlSettings {
        name: values.text("ftl.name"),
        victim: value::victim(&values.text("ftl.victim")).expect("the value was read as a victim policy"),
        gc_start: values.blocks("ftl.gc_start"),
        gc_stop: values.blocks("ftl.gc_stop"),
        gc_background: values.flag("ftl.gc_background"),
        gc_idle: values.time("ftl.gc_idle"),
        streams: values.small("ftl.streams"),
        classifier: values.choice(
            "ftl.classifier",
            &[
                Classifier::None,
                Classifier::Size,
                Classifier::Recency,
                Classifier::Sequence,
                Classifier::Address,
                Classifier::Hint,
            ],
        ),
        hot_below: value::boundary(&values.text("ftl.hot_below")).expect("the value was read as a boundary"),
        allocation: values.choice(
            "ftl.allocation",
            &[Allocation::Static, Allocation::Channel, Allocation::RoundRobin, Allocation::LeastLoaded],
        ),
        wear_leveling: values
            .choice("ftl.wear_leveling", &[WearLeveling::None, WearLeveling::Dynamic, WearLeveling::Static]),
        wear_threshold: values.small("ftl.wear_threshold"),
        read: ReadPolicy {
            mode: values.choice("ftl.read", &[ReadMode::Page, ReadMode::Dma, ReadMode::Spread]),
            gaps: values.flag("ftl.read_gap"),
        },
        log_fraction: values.ratio("ftl.log_fraction"),
        allocation_threshold: values.ratio("ftl.allocation_threshold"),
        merge_on_read: values.flag("ftl.merge_on_read"),
        read_count_aging: values.count("ftl.read_count_aging"),
        threshold_pu: value::threshold(&values.text("ftl.threshold_pu")).expect("the value was read as a threshold"),
        threshold_window: values.small("ftl.threshold_window"),
        threshold_steps: values.small("ftl.threshold_steps"),
        reuse_empty: values.flag("ftl.reuse_empty"),
        threshold_floor: values.small("ftl.threshold_floor"),
        safe_life: values.ratio("ftl.safe_life"),
        wom: values.text("ftl.wom"),
        wom_spare: values.ratio("ftl.wom_spare"),
        wom_failure: values.ratio("ftl.wom_failure"),
        reuse_cold: values.flag("ftl.reuse_cold"),
        low_pages_first: values.flag("ftl.low_pages_first"),
        victim_free: values.flag("ftl.victim_free"),
        fs: file_system(values),
    }
}

fn file_system(values: &Values) -> FileSystemSettings {
    FileSystemSettings {
        scheme: values.text("fs.scheme"),
        depth_pages: values.choice("fs.depth_pages", &[DepthPages::Consecutive, DepthPages::Apart]),
        dispatch_overhead: values.time("fs.dispatch_overhead"),
        files: values.choice("fs.files", &[Files::Names, Files::Addresses]),
        file_bytes: values.bytes("fs.file_size"),
        gc_start: values.ratio("fs.gc_start"),
        gc_gain: values.ratio("fs.gc_gain"),
        commit_interval: values.time("fs.commit_interval"),
        discard: values.choice("fs.discard", &[Discard::Auto, Discard::Blocks, Discard::Pages]),
    }
}

fn sim(values: &Values) -> SimSettings {
    SimSettings {
        scheduler: values.choice("sim.scheduler", &[Scheduler::Fifo, Scheduler::ReadFirst, Scheduler::HostFirst]),
        starvation_bound: values.time("sim.starvation_bound"),
        suspend: values.choice("sim.suspend", &[Suspend::None, Suspend::Erase, Suspend::ProgramErase]),
        cache_register: values.flag("sim.cache_register"),
        multi_plane: values.flag("sim.multi_plane"),
    }
}

fn host(values: &Values) -> HostSettings {
    HostSettings {
        speedup: values.factor("host.speedup"),
        fold: values.flag("host.fold"),
        link_rate: values.rate("host.link_rate"),
        iodepth: values.small("host.iodepth"),
        buffer_bytes: values.bytes("buffer.size"),
        acknowledge: values.choice("buffer.ack", &[Acknowledge::Buffer, Acknowledge::Program]),
        buffer_timeout: values.time("buffer.timeout"),
    }
}

fn faults(values: &Values) -> FaultSettings {
    let cut = values.count("faults.power_cut_at");
    FaultSettings {
        program_fail: values.ratio("faults.program_fail"),
        erase_fail: values.ratio("faults.erase_fail"),
        read_fail: values.ratio("faults.read_fail"),
        initial_bad: values.ratio("faults.initial_bad"),
        power_cut_at: (cut > 0).then_some(cut),
    }
}
