//! Settings of `zns`: keys, sizes of zones, checks, and drives of the model suite. Ignored: zones of unequal sizes.

use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::rng::Rng;
use palimpsest_flash::units::parse::format_bytes;
use palimpsest_ftl_api::settings::Settings;
use palimpsest_ftl_api::{Proposal, Unfit, keys, refuse_if};

keys! {
    /// The zones of the drive.
    #[derive(Debug, Clone)]
    pub struct ZnsSettings;

    /// The keys of `zns`.
    group pub KEYS {
        /// dies that a zone is on, whose planes take turns from page to page; 0: all dies. With parity (ftl.rain) a
        /// zone is on the dies of a stripe
        pub dies: u32 = "zns.zone_dies", Count { min: 0, max: 65_535 }, "0", needs["ftl.rain = 0"];
        /// bytes of a zone that can be written, rounded up to erase blocks on its dies for the space it takes; 0: one
        /// erase block on each plane of its dies
        pub capacity: u64 = "zns.zone_capacity", Bytes { min: 0, max: 1 << 50 }, "0B";
        /// bytes from the start of a zone to the start of the next; 0: the capacity
        pub size: u64 = "zns.zone_size", Bytes { min: 0, max: 1 << 50 }, "0B";
        /// most open zones (Maximum Open Resources); 0: no limit
        pub max_open: u32 = "zns.max_open", Count { min: 0, max: 1 << 20 }, "14";
        /// most active zones, open or closed (Maximum Active Resources); 0: no limit
        pub max_active: u32 = "zns.max_active", Count { min: 0, max: 1 << 20 }, "14";
        /// bytes behind the write pointer that may be written anywhere and again, in a zone opened with this area (Zone
        /// Random Write Area); 0: none
        pub area: u64 = "zns.zrwa", Bytes { min: 0, max: 1 << 40 }, "0B", needs["buffer.flush = free"];
        /// unit of the commits of a random write area; 0: a page
        pub granularity: u64 = "zns.zrwa_granularity", Bytes { min: 0, max: 1 << 40 }, "0B", needs["zns.zrwa > 0"];
        /// most zones with a random write area, each of which keeps its size of the write buffer
        pub areas: u32 = "zns.zrwa_zones", Count { min: 1, max: 1 << 20 }, "1", needs["zns.zrwa > 0"];
    }
}

/// Sizes of a zone in pages.
pub struct ZonePages {
    /// Pages that can be written.
    pub capacity: u64,
    /// Pages from the start of a zone to the start of the next.
    pub size: u64,
    /// Erase blocks.
    pub blocks: u64,
    per_block: u64,
}

impl ZonePages {
    /// The sizes that the settings give.
    pub fn new(settings: &Settings, geometry: &Geometry) -> Self {
        let ZnsSettings { capacity, size, .. } = ZnsSettings::new(settings);
        let (per_block, page) = (u64::from(geometry.pages_per_block), u64::from(geometry.page_bytes()));
        let capacity = if capacity == 0 { per_block } else { (capacity / page).max(1) };
        let size = if size == 0 { capacity } else { size / page }.max(capacity);
        ZonePages { capacity, size, blocks: capacity.div_ceil(per_block), per_block }
    }

    /// Zones of a drive with room for `pages` pages of data.
    fn count(&self, pages: u64) -> u64 {
        pages / (self.blocks * self.per_block)
    }

    /// Pages of all whole zones of a drive with room for `pages` pages of data.
    pub fn exported(&self, pages: u64) -> u64 {
        self.count(pages) * self.size
    }
}

/// Bytes of the write buffer that the random write areas keep.
pub(super) fn kept_buffer(settings: &Settings) -> u64 {
    let ZnsSettings { area, areas, .. } = ZnsSettings::new(settings);
    area * u64::from(areas)
}

/// Superblocks of all planes of the dies of a zone, if these are several planes.
pub(super) fn fixed(settings: &Settings) -> Vec<(&'static str, String)> {
    let dies = ZnsSettings::new(settings).dies;
    let planes: u32 = settings.get("ssd.planes_per_die");
    let collected = settings.get::<u32>("ftl.rain") == 0 && (dies != 1 || planes > 1);
    let fixed = [
        ("ftl.superblocks", if collected { "collected" } else { "allocated" }.into()),
        ("ftl.superblock_planes", "all".into()),
        ("ftl.superblock_dies", if collected { dies } else { 0 }.to_string()),
        ("ftl.allocation", "round-robin".into()),
    ];
    fixed.into()
}

/// Refuses zones that do not fit the drive or each other.
pub(super) fn check_zones(proposal: &Proposal<'_>) -> Result<(), Unfit> {
    let Proposal { settings, geometry, logical_pages, .. } = proposal;
    let ZnsSettings { dies, capacity, size, max_open, max_active, .. } = ZnsSettings::new(settings);
    let of = ["ssd.channels", "ssd.chips_per_channel", "ssd.dies_per_chip"].map(|key| settings.get::<u32>(key));
    let of: u32 = of.iter().product();
    refuse_if!(dies > 0 && !of.is_multiple_of(dies)
        => "zns.zone_dies", "ssd.channels", "ssd.chips_per_channel", "ssd.dies_per_chip";
        "the drive has {of} dies; expected a number that divides it, or 0");
    let page = u64::from(geometry.page_bytes());
    refuse_if!(!capacity.is_multiple_of(page) => "zns.zone_capacity", "part.page_size";
        "expected whole pages of {page} bytes");
    refuse_if!(!size.is_multiple_of(page) => "zns.zone_size", "part.page_size"; "expected whole pages of {page} bytes");
    let zone = ZonePages::new(settings, geometry);
    refuse_if!(size > 0 && size < zone.capacity * page => "zns.zone_size", "zns.zone_capacity";
        "a zone has {} bytes that can be written; expected no smaller size, or 0", zone.capacity * page);
    refuse_if!(max_active > 0 && (max_open > max_active || max_open == 0) => "zns.max_open", "zns.max_active";
        "an open zone is active; expected no more open than active zones");
    refuse_if!(*logical_pages == 0 => "zns.zone_capacity", "ssd.blocks_per_plane", "ssd.over_provisioning";
        "a zone has {} erase blocks on its dies, and the drive has not that many beside its spare blocks; expected \
         smaller zones, or more blocks", zone.blocks);
    let subpages = logical_pages * u64::from(geometry.subpages_per_page);
    refuse_if!(subpages >= (1 << 32) - (1 << 18) || zone.size > 1 << 31 => "zns.zone_size", "zns.zone_capacity";
        "that makes {subpages} subpages of addresses, more than can be simulated; expected less between two zones");
    Ok(())
}

/// Refuses zones as [`check_zones`] does, and a write buffer without room for their pages and areas.
pub(super) fn check(proposal: &Proposal<'_>) -> Result<(), Unfit> {
    check_zones(proposal)?;
    let Proposal { settings, geometry, logical_pages, .. } = proposal;
    let ZnsSettings { max_active, area, granularity, areas, .. } = ZnsSettings::new(settings);
    let (page, zone) = (u64::from(geometry.page_bytes()), ZonePages::new(settings, geometry));
    let (zones, buffer) = (logical_pages / zone.size, settings.get::<u64>("buffer.size"));
    let most = if max_active == 0 { zones } else { zones.min(max_active.into()) };
    refuse_if!(buffer < (most + 1) * page => "buffer.size", "zns.max_active", "part.page_size"
        => ["buffer.size" = &format_bytes((most + 1) * page)];
        "each active zone may have a page in the write buffer, beside the write that is served; expected {} bytes or \
         more, or fewer active zones", (most + 1) * page);
    if area == 0 {
        return Ok(());
    }
    refuse_if!(settings.get::<String>("buffer.ack") != "buffer" || settings.get::<String>("buffer.flush") != "free"
        => "zns.zrwa", "buffer.ack", "buffer.flush" => ["buffer.ack" = "buffer", "buffer.flush" = "free"];
        "a random write area keeps its data in the write buffer until a commit, and a flush must not wait for one");
    let unit = if granularity == 0 { page } else { granularity };
    let subpage = u64::from(geometry.subpage_bytes);
    refuse_if!(!unit.is_multiple_of(subpage) => "zns.zrwa_granularity", "part.subpage_size";
        "expected whole logical blocks of {subpage} bytes");
    refuse_if!(!area.is_multiple_of(unit) => "zns.zrwa", "zns.zrwa_granularity";
        "expected a multiple of the granularity, {unit} bytes");
    refuse_if!(area > zone.capacity * page => "zns.zrwa", "zns.zone_capacity";
        "a zone has {} bytes that can be written; expected no larger random write area", zone.capacity * page);
    refuse_if!(max_active > 0 && areas > max_active => "zns.zrwa_zones", "zns.max_active";
        "a zone with a random write area is active; expected no more of them");
    let kept = u64::from(areas) * area;
    refuse_if!(buffer < (most + 1) * page + kept => "buffer.size", "zns.zrwa", "zns.zrwa_zones"
        => ["buffer.size" = &format_bytes((most + 1) * page + kept)];
        "the random write areas keep {kept} bytes of the write buffer, beside a page for each active zone and the \
         write that is served; expected {} bytes or more, or smaller areas", (most + 1) * page + kept);
    Ok(())
}

/// Zones of one die and of several, of one erase block and of several, with addresses that hold nothing, and with
/// random write areas.
pub(super) fn varies(rng: &mut Rng, drawn: &[String]) -> Vec<String> {
    let number = |key: &str| {
        let value = drawn.iter().find_map(|setting| setting.strip_prefix(key)?.strip_prefix('='));
        value.and_then(|value| value.trim_end_matches('B').parse::<u64>().ok())
    };
    let page = number("part.page_size").unwrap_or(4096) * number("part.pages_per_program").unwrap_or(1);
    let pages = number("part.pages_per_block").unwrap_or(4);
    let active = 1 + rng.below(5);
    let mut varied = vec![
        format!("zns.zone_dies={}", rng.below(2)),
        format!("zns.max_active={active}"),
        format!("zns.max_open={}", 1 + rng.below(active)),
        format!("buffer.size={}B", page * (active + 1 + rng.below(4))),
    ];
    if rng.below(3) == 0 {
        let capacity = page * (pages - 1 + rng.below(pages + 2));
        varied.push(format!("zns.zone_capacity={capacity}B"));
        varied.push(format!("zns.zone_size={}B", capacity + page * rng.below(3)));
    }
    if rng.below(4) == 0 {
        let (area, areas) = (page * (1 + rng.below(pages.min(3))), 1 + rng.below(active));
        varied.retain(|setting| !setting.starts_with("buffer.size="));
        varied.extend(["buffer.ack=buffer".into(), "buffer.flush=free".into()]);
        varied.push(format!("buffer.size={}B", page * (active + 1 + rng.below(4)) + areas * area));
        varied.push(format!("zns.zrwa={area}B"));
        varied.push(format!("zns.zrwa_zones={areas}"));
        let unit = number("part.subpage_size").unwrap_or(page);
        varied.extend((rng.below(2) == 0).then(|| format!("zns.zrwa_granularity={unit}B")));
    }
    varied
}
