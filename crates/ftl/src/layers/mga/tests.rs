//! The figures of the paper as tests, and tests of the options beyond the paper.

use super::limits::of_table;
use super::pages::Transitions;
use super::*;
use palimpsest_flash::geometry::Extent;
use palimpsest_flash::nand::data::Payload;
use palimpsest_flash::nand::{Nand, TORN, UNWRITTEN};
use palimpsest_ftl_api::plan::PowerIo;
use palimpsest_lab::config;

/// The layer on a small drive with `settings`: one plane, pages of four subpages of 4 KiB.
struct Bench {
    io: Io,
    ftl: Mga,
}

const ALWAYS_EXCLUSIVE: &str = "ftl.allocation_threshold=0%";
const ALWAYS_SHARED: &str = "ftl.allocation_threshold=100%";

impl Bench {
    fn new(settings: &[&str]) -> Self {
        let base = [
            "ssd.channels=1",
            "ssd.blocks_per_plane=8",
            "ssd.over_provisioning=100%",
            "ssd.planes_per_die=1",
            "ftl.streams=1",
            "part.pages_per_block=8",
            "ftl.gc_start=1 block",
            "ftl.gc_stop=1 block",
        ];
        let key = |setting: &str| setting.split('=').next().unwrap_or_default().to_owned();
        let kept = base.iter().filter(|base| !settings.iter().any(|setting| key(setting) == key(base)));
        let all: Vec<String> = kept.chain(settings).map(|&setting| setting.to_owned()).collect();
        let drive = config::resolve("mga-16k", Some("mga"), &all, &|_| Ok(String::new())).unwrap().drive;
        let io = Io::new(Nand::new(drive.geometry, drive.part.clone(), Payload::Tag, None), false);
        let blueprint = Blueprint {
            settings: drive.ftl.clone(),
            logical_pages: drive.logical_pages() as u32,
            protected: false,
            buffer_timeout: 0,
            seed: 1,
        };
        let ftl = Mga::new(&io, &blueprint);
        Bench { io, ftl }
    }

    fn extent(&self, lpn: u32, first: u32, count: u32) -> Extent {
        let per = u64::from(self.ftl.sectors_per_subpage);
        Extent { sector: u64::from(lpn * self.ftl.subpages + first) * per, sectors: count * per as u32 }
    }

    fn write(&mut self, lpn: u32, first: u32, count: u32) {
        let extent = self.extent(lpn, first, count);
        self.io.host.begin_write();
        self.ftl.write(&mut self.io, extent).unwrap();
        self.ftl.check(&self.io).unwrap();
    }

    fn read(&mut self, lpn: u32, first: u32, count: u32) {
        let extent = self.extent(lpn, first, count);
        self.ftl.read(&mut self.io, extent).unwrap();
        self.io.host.take_delivered();
        self.ftl.check(&self.io).unwrap();
    }

    fn trim(&mut self, lpn: u32, first: u32, count: u32) {
        let extent = self.extent(lpn, first, count);
        self.ftl.trim(&mut self.io, extent).unwrap();
        self.ftl.check(&self.io).unwrap();
    }

    /// The places of the subpages of `lpn`: page and subpage.
    fn places(&self, lpn: u32) -> Vec<(u32, u32)> {
        let n = self.ftl.subpages;
        (0..n).map(|index| self.ftl.map.place(lpn, index)).map(|psn| (psn / n, psn % n)).collect()
    }

    fn pages_of(&self, lpn: u32) -> Vec<u32> {
        self.places(lpn).into_iter().map(|(ppn, _)| ppn).collect()
    }

    fn programs(&self) -> (u64, u64, u64) {
        let programs = &self.io.counters.programs;
        (programs[Cause::Host as usize], programs[Cause::Gc as usize], programs[Cause::Merge as usize])
    }

    fn take_transitions(&mut self) -> Transitions {
        self.ftl.disturbed = true;
        std::mem::take(&mut self.ftl.pages.transitions)
    }
}

/// Fig. 6 (a): subpages 0 and 1 of logical page 0 are in page A, 2 and 3 in page B. Returns A and B.
fn figure_6(reads: u32) -> (Bench, u32, u32) {
    // Under exclusive allocation a logical page fills one page only; here other data fills the rest of the page
    // between.
    let mut bench = Bench::new(&[ALWAYS_SHARED]);
    bench.write(0, 0, 2);
    bench.write(1, 0, 2);
    bench.write(0, 2, 2);
    bench.write(1, 2, 2);
    let (a, b) = (bench.pages_of(0)[0], bench.pages_of(0)[2]);
    assert_eq!((bench.pages_of(0), a == b), (vec![a, a, b, b], false));
    (0..reads).for_each(|_| bench.read(0, 0, 1));
    bench.io.counters = Default::default();
    (bench, a, b)
}

#[test]
fn figure_3_small_writes_map_by_subpage_large_ones_by_page() {
    let mut bench = Bench::new(&[ALWAYS_SHARED]);
    for lpn in [0, 2, 3] {
        bench.write(lpn, 0, 4);
    }
    for (first, lpn) in [(0, 1), (0, 4), (1, 1), (1, 4)] {
        bench.write(lpn, first, 1);
    }
    let kinds: Vec<bool> = (0..5).map(|lpn| matches!(bench.ftl.map.look_up(lpn), Target::Partial(_))).collect();
    assert_eq!(kinds, [false, true, false, false, true]);
    let figures = bench.ftl.figures();
    let pmt = u64::from(bench.ftl.map.logical_pages()) * 8;
    assert_eq!(figures.mapping.tables, [("pmt", pmt), ("spmt", 2 * 35)]);
    bench.write(1, 0, 4);
    bench.write(4, 0, 4);
    let figures = bench.ftl.figures();
    assert_eq!(figures.mapping.tables, [("pmt", pmt), ("spmt", 0)], "overwritten whole: mapped by pages again");
    assert_eq!(figures.mapping.peak_bytes, pmt + 70);
}

#[test]
fn figure_4_one_page_is_programmed_subpage_by_subpage() {
    let mut bench = Bench::new(&[ALWAYS_EXCLUSIVE]);
    bench.write(0, 0, 1);
    let ppn = bench.pages_of(0)[0];
    assert_eq!((bench.ftl.pages.valid(ppn), bench.ftl.pages.free(ppn)), (0b0001, 0b1110));
    assert_eq!(bench.io.counters.bus_bytes, 4096, "only the subpage is transferred");
    assert_eq!(bench.io.counters.padding_bytes, 0);
    bench.write(0, 2, 2);
    assert_eq!((bench.ftl.pages.valid(ppn), bench.ftl.pages.free(ppn)), (0b1101, 0b0010));
    assert!(matches!(bench.ftl.map.look_up(0), Target::Partial(_)));
    bench.write(0, 1, 1);
    assert_eq!(bench.ftl.map.look_up(0), Target::Full(ppn), "all at their own positions: FP, and no SPMT entry");
    assert_eq!(bench.ftl.map.entries_used(), 0);
    let counters = bench.io.nand().counters();
    assert_eq!((counters.programs, counters.partial_programs, counters.reprograms), (3, 3, 2));
    assert_eq!(bench.io.counters.bus_bytes, 4 * 4096);
}

#[test]
fn figure_5_every_arrow() {
    let mut bench = Bench::new(&[ALWAYS_EXCLUSIVE]);
    bench.write(0, 0, 1);
    assert_eq!(bench.take_transitions(), Transitions { ff_pv: 1, ..Default::default() }, "a subpage into a free page");
    bench.write(0, 1, 3);
    assert_eq!(bench.take_transitions(), Transitions { pv_fv: 1, ..Default::default() }, "it gathers all subpages");
    bench.write(0, 0, 1);
    assert_eq!(
        bench.take_transitions(),
        Transitions { fv_pv: 1, ff_pv: 1, ..Default::default() },
        "a subpage is updated: its old page, and the new one"
    );
    bench.write(1, 0, 4);
    assert_eq!(bench.take_transitions(), Transitions { ff_fv: 1, ..Default::default() }, "a whole page");
    bench.write(1, 0, 4);
    assert_eq!(
        bench.take_transitions(),
        Transitions { ff_fv: 1, fv_fi: 1, ..Default::default() },
        "a whole page is updated"
    );
    bench.write(0, 1, 3);
    assert_eq!(
        bench.take_transitions(),
        Transitions { pv_fv: 1, pv_fi: 1, ..Default::default() },
        "the last valid subpages leave a page for the target"
    );
    let erases = |bench: &Bench| bench.io.nand().counters().erases;
    let before = bench.ftl.pages.transitions.fi_ff;
    while erases(&bench) == 0 {
        bench.write(2, 0, 4);
    }
    assert_eq!(bench.ftl.pages.transitions.fi_ff - before, 8 * erases(&bench), "an erase frees its pages");
}

#[test]
fn figure_6b_never_read_the_update_goes_to_a_third_page() {
    let (mut bench, a, b) = figure_6(0);
    bench.write(0, 3, 1);
    let c = bench.pages_of(0)[3];
    assert_eq!(bench.pages_of(0), [a, a, b, c]);
    assert!(c != a && c != b);
    let Target::Partial(entry) = bench.ftl.map.look_up(0) else { panic!("mapped by subpages") };
    assert_eq!((bench.ftl.map.entry(entry).pages, bench.ftl.counters.merges), (3, 0));
    assert_eq!((bench.programs(), bench.io.counters.reads), ((1, 0, 0), [0; palimpsest_ftl_api::plan::CAUSES]));
}

#[test]
fn figure_6c_read_four_times_one_subpage_moves_along() {
    let (mut bench, a, _) = figure_6(4);
    bench.write(0, 3, 1);
    let d = bench.pages_of(0)[3];
    assert_eq!(bench.pages_of(0), [a, a, d, d], "subpage 2 moves with subpage 3, and the PPN count stays 2");
    let figures = bench.ftl.figures();
    assert_eq!((figures.merges, figures.merge_moved_subpages), (1, 1));
    assert_eq!(bench.programs(), (0, 0, 1), "one program, which counts as merging");
    assert_eq!(bench.io.counters.reads[Cause::Merge as usize], 1);
    assert_eq!(bench.io.counters.bus_bytes, (4 + 2) * 4096, "a page read, two subpages programmed");
}

#[test]
fn figure_6d_read_ten_times_all_subpages_move_to_a_free_page() {
    let (mut bench, a, b) = figure_6(10);
    bench.write(0, 3, 1);
    let Target::Full(e) = bench.ftl.map.look_up(0) else { panic!("in one page, at its own positions") };
    assert!(e != a && e != b);
    assert_eq!(bench.io.nand().programs(e), 1, "a free page");
    let figures = bench.ftl.figures();
    assert_eq!((figures.merges, figures.merge_moved_subpages), (1, 3), "three additional migrations");
    assert_eq!(bench.io.counters.reads[Cause::Merge as usize], 2);
    assert_eq!(bench.ftl.map.entries_used(), 1, "only that of the other logical page");
}

#[test]
fn the_boundary_is_the_table_of_the_text() {
    let limits: Vec<u32> = (0..=15).map(|reads| of_table(reads, 8)).collect();
    assert_eq!(limits, [4, 3, 3, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
    assert_eq!([of_table(0, 2), of_table(3, 2), of_table(6, 2), of_table(0, 4)], [2, 2, 1, 4]);
}

#[test]
fn exclusive_allocation_separates_logical_pages_shared_does_not() {
    let mut bench = Bench::new(&[ALWAYS_EXCLUSIVE]);
    (0..4).for_each(|lpn| bench.write(lpn, lpn, 1));
    let pages: Vec<u32> = (0..4).map(|lpn| bench.places(lpn)[lpn as usize].0).collect();
    assert_eq!(pages, [0, 1, 2, 3]);
    bench.write(0, 0, 1);
    assert_eq!(bench.places(0)[0], (0, 1), "its position is taken: another of the page it owns");
    bench.write(0, 0, 2);
    assert_eq!(bench.places(0)[..2], [(0, 2), (0, 3)], "the rest of that page");
    bench.write(0, 0, 1);
    assert_eq!(bench.places(0)[0], (4, 0), "a fresh page, owned from now on");
    let mut bench = Bench::new(&[ALWAYS_SHARED]);
    (0..5).for_each(|lpn| bench.write(lpn, 0, 1));
    let places: Vec<(u32, u32)> = (0..5).map(|lpn| bench.places(lpn)[0]).collect();
    assert_eq!(places, [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0)]);
    bench.write(5, 0, 2);
    bench.write(6, 1, 2);
    bench.write(7, 0, 1);
    assert_eq!(bench.places(5)[..2], [(1, 2), (1, 1)], "a piece is one program");
    assert_eq!(bench.pages_of(6)[1..3], [2, 2], "no page has room for two");
    assert_eq!(bench.places(7)[0], (2, 0), "the page opened last");
    let figures = bench.ftl.figures();
    let figure = |name: &str| figures.own.iter().find(|own| own.0 == name).unwrap().1;
    let shared = [figure("small_writes_shared"), figure("shared_share"), figure("exclusive_share")];
    assert_eq!(shared, [Figure::Count(8), Figure::ShareOfCount(8, 8), Figure::ShareOfCount(0, 8)]);
}

#[test]
fn allocation_turns_at_the_threshold() {
    // 64 pages: exclusive while more than 32 are fully free.
    let mut bench = Bench::new(&["ftl.allocation_threshold=50%"]);
    assert_eq!(bench.io.geometry().pages(), 64);
    (0..31).for_each(|lpn| bench.write(lpn, 0, 4));
    bench.write(0, 0, 1);
    assert_eq!((bench.ftl.pages.space.total(), bench.ftl.counters.exclusive_writes), (32, 1));
    bench.write(1, 0, 1);
    assert_eq!(bench.ftl.counters.shared_writes, 1);
    assert_eq!(bench.pages_of(1)[0], bench.pages_of(0)[0], "the page that was owned is shared now");
}

#[test]
fn nop_ends_free_subpages() {
    let mut bench = Bench::new(&["part.nop=2", ALWAYS_SHARED]);
    (0..3).for_each(|lpn| bench.write(lpn, 0, 1));
    let pages: Vec<u32> = (0..3).map(|lpn| bench.pages_of(lpn)[0]).collect();
    assert_eq!(pages, [0, 0, 1]);
    assert_eq!((bench.ftl.pages.free(0), bench.ftl.pages.lost), (0, 2));
}

#[test]
fn strict_order_fills_the_last_page_of_a_block_only() {
    let mut bench = Bench::new(&["part.order=strict", ALWAYS_EXCLUSIVE]);
    bench.write(0, 0, 1);
    bench.write(0, 1, 1);
    assert_eq!(bench.pages_of(0)[..2], [0, 0]);
    bench.write(1, 0, 1);
    assert_eq!(bench.ftl.pages.free(0), 0);
    bench.write(0, 2, 1);
    assert_eq!(bench.places(0)[2], (2, 2), "the page it owned is closed");
}

#[test]
fn ragged_ends_are_written_by_subpages_and_whole_pages_by_pages() {
    let mut bench = Bench::new(&[ALWAYS_EXCLUSIVE]);
    bench.write(0, 3, 1 + 4 + 2);
    assert_eq!(bench.programs(), (3, 0, 0));
    let kinds: Vec<bool> = (0..3).map(|lpn| matches!(bench.ftl.map.look_up(lpn), Target::Full(_))).collect();
    assert_eq!(kinds, [false, true, false]);
    assert_eq!(bench.io.counters.bus_bytes, 7 * 4096);
    // A piece of a subpage is a read-modify-write of that subpage.
    let Extent { sector, .. } = bench.extent(0, 3, 1);
    bench.ftl.write(&mut bench.io, Extent { sector: sector + 1, sectors: 2 }).unwrap();
    assert_eq!(bench.io.counters.reads[Cause::Rmw as usize], 1);
    bench.ftl.check(&bench.io).unwrap();
}

#[test]
fn a_trim_of_a_part_leaves_the_rest() {
    let mut bench = Bench::new(&[ALWAYS_EXCLUSIVE]);
    bench.write(0, 0, 4);
    bench.trim(0, 1, 2);
    assert!(matches!(bench.ftl.map.look_up(0), Target::Partial(_)));
    bench.trim(0, 0, 1);
    bench.trim(0, 3, 1);
    assert_eq!((bench.ftl.map.look_up(0), bench.ftl.map.entries_used()), (Target::Unmapped, 0));
}

#[test]
fn cleaning_gathers_by_logical_page() {
    let mut bench = Bench::new(&[ALWAYS_SHARED]);
    // Both logical pages are scattered over the first two pages of the block; then garbage fills the block.
    for first in 0..4 {
        bench.write(0, first, 1);
        bench.write(1, first, 1);
    }
    assert_eq!(bench.pages_of(0), [0, 0, 1, 1]);
    (0..6).for_each(|_| bench.write(2, 0, 4));
    assert!(bench.ftl.collect(&mut bench.io, 0, false).unwrap());
    bench.ftl.check(&bench.io).unwrap();
    let figures = bench.ftl.figures();
    assert_eq!((figures.gc_runs, figures.gc_erased), (1, 1));
    for lpn in [0, 1, 2] {
        assert!(matches!(bench.ftl.map.look_up(lpn), Target::Full(_)), "a full logical page moves as a page");
    }
    assert_eq!((figures.gc_moved_subpages, bench.programs().1), (12, 3));
}

#[test]
fn blocks_of_half_free_pages_are_collected_without_invalid_ones() {
    // One subpage in each page that the layer may take, none invalid; then whole pages need room.
    let mut bench = Bench::new(&[ALWAYS_EXCLUSIVE, "ssd.over_provisioning=34%"]);
    let logical = bench.ftl.map.logical_pages();
    (0..logical).for_each(|lpn| bench.write(lpn, 0, 1));
    (0..logical).for_each(|lpn| bench.write(lpn, 0, 4));
    let mut bench = Bench::new(&["part.nop=1", ALWAYS_EXCLUSIVE, "ssd.over_provisioning=34%"]);
    for round in 0..4 {
        (0..logical).for_each(|lpn| bench.write(lpn, round, 1));
    }
    assert!(bench.ftl.figures().gc_runs > 0);
}

#[test]
fn a_read_merges_if_it_is_set_to() {
    for (option, merges) in [("ftl.merge_on_read=false", 0), ("ftl.merge_on_read=true", 1)] {
        let mut bench = Bench::new(&[ALWAYS_SHARED, option]);
        for first in 0..4 {
            bench.write(0, first, 1);
            bench.write(1, 0, 3);
        }
        let before = bench.pages_of(0);
        assert_eq!(before.iter().collect::<std::collections::BTreeSet<_>>().len(), 4);
        bench.read(0, 0, 4);
        assert_eq!(bench.ftl.figures().merges, merges, "one read: at most three pages");
    }
}

#[test]
fn nothing_merges_and_counts_reset_if_they_are_set_to() {
    let spread_over_four = |options: &[&str]| {
        let mut bench = Bench::new(&[&[ALWAYS_SHARED], options].concat());
        for first in 0..4 {
            bench.write(0, first, 1);
            bench.write(1, 0, 3);
        }
        (0..8).for_each(|_| bench.read(0, 0, 1));
        bench.write(0, 0, 1);
        bench
    };
    for (options, merges, reads) in
        [(&[][..], 1, 8), (&["ftl.merge_limits=off"], 0, 8), (&["ftl.merge_resets=true"], 1, 0)]
    {
        let bench = spread_over_four(options);
        let entry = if let Target::Partial(entry) = bench.ftl.map.look_up(0) { entry } else { UNMAPPED };
        assert_eq!(
            (bench.ftl.figures().merges, bench.ftl.map.read_counts.of(0, entry)),
            (merges, reads),
            "{options:?}"
        );
    }
}

#[test]
fn padding_of_a_page_crosses_the_bus_if_it_is_set_to() {
    let mut bench = Bench::new(&["ftl.page_padding=true"]);
    bench.write(0, 0, 1);
    assert_eq!((bench.io.counters.bus_bytes, bench.io.counters.data_bytes), (4 * 4096, 4096));
}

#[test]
fn read_counts_age_if_they_are_set_to() {
    for whose in ["ftl.read_count=page", "ftl.read_count=entry"] {
        let mut bench = Bench::new(&[ALWAYS_SHARED, whose, "ftl.read_count_aging=10"]);
        bench.write(0, 0, 1);
        (0..8).for_each(|_| bench.read(0, 0, 1));
        let Target::Partial(entry) = bench.ftl.map.look_up(0) else { panic!("mapped by subpages") };
        assert_eq!(bench.ftl.map.read_counts.of(0, entry), 8);
        bench.write(1, 0, 1);
        assert_eq!(bench.ftl.map.read_counts.of(0, entry), 4);
    }
}

#[test]
fn reads_count_for_all_pages_or_for_subpage_mapped_ones_only() {
    // After six reads a logical page must be in one page: the small write moves the other three subpages along.
    for (whose, pages) in [("ftl.read_count=page", 1), ("ftl.read_count=entry", 2)] {
        let mut bench = Bench::new(&[ALWAYS_SHARED, whose]);
        bench.write(0, 0, 4);
        (0..6).for_each(|_| bench.read(0, 0, 4));
        bench.write(0, 1, 1);
        assert_eq!(bench.pages_of(0).iter().collect::<std::collections::BTreeSet<_>>().len(), pages, "{whose}");
    }
}

#[test]
fn victims_may_be_chosen_by_free_subpages_too() {
    for (option, chosen) in [("ftl.victim_free=false", 8), ("ftl.victim_free=true", 0)] {
        let mut bench = Bench::new(&[ALWAYS_EXCLUSIVE, "ssd.over_provisioning=34%", option]);
        // Block 0: one valid subpage a page, the rest free. Block 1: whole pages, of which the first is invalid.
        (0..8).for_each(|lpn| bench.write(lpn, 0, 1));
        (8..16).for_each(|lpn| bench.write(lpn, 0, 4));
        bench.write(8, 0, 4);
        let victim = crate::log::victim::tests::choose(
            &mut *bench.ftl.victim,
            &mut bench.ftl.pages.space.frontiers.blocks,
            &mut bench.ftl.rng,
        )
        .unwrap();
        assert_eq!(victim * 8, chosen, "{option}");
    }
}

#[test]
fn everything_comes_back_after_a_power_cut() {
    let mut bench = Bench::new(&["ftl.allocation_threshold=40%"]);
    let mut rng = Rng::new(7, 7);
    let logical = u64::from(bench.ftl.map.logical_pages());
    for _ in 0..600 {
        let (first, lpn) = (rng.below(4) as u32, rng.below(logical) as u32);
        bench.write(lpn, first, 1 + rng.below(u64::from(4 - first)) as u32);
    }
    let places: Vec<_> = (0..logical as u32).map(|lpn| bench.places(lpn)).collect();
    let free: Vec<_> = (0..64).map(|ppn| bench.ftl.pages.free(ppn)).collect();
    let lost_owners = bench.ftl.pages.space.total();
    bench.ftl.recover(&mut bench.io).unwrap();
    bench.ftl.check(&bench.io).unwrap();
    assert_eq!(places, (0..logical as u32).map(|lpn| bench.places(lpn)).collect::<Vec<_>>());
    assert_eq!(free, (0..64).map(|ppn| bench.ftl.pages.free(ppn)).collect::<Vec<_>>());
    assert_eq!(lost_owners, bench.ftl.pages.space.total());
}

/// A power cut in a program of a free subpage tears that subpage: the page takes no further program.
#[test]
fn a_page_with_a_torn_subpage_is_not_filled() {
    let mut torn = 0;
    for cut in 1..40 {
        let mut bench = Bench::new(&[ALWAYS_SHARED]);
        bench.io.set_power_cut_at(Some(cut));
        for lpn in 0..40 {
            let extent = bench.extent(lpn % 10, lpn % 4, 1);
            bench.io.host.begin_write();
            if bench.ftl.write(&mut bench.io, extent).is_err() {
                break;
            }
        }
        bench.io.set_power_cut_at(None);
        bench.ftl.recover(&mut bench.io).unwrap();
        bench.ftl.check(&bench.io).unwrap();
        for ppn in 0..bench.io.geometry().pages() as u32 {
            let logical = |place: u32| bench.io.nand().logical(ppn * 4 + place);
            if (0..4).any(|place| logical(place) == TORN) {
                assert_eq!(bench.ftl.pages.free(ppn), 0);
                torn += u32::from((0..4).any(|place| logical(place) == UNWRITTEN));
            }
        }
    }
    assert!(torn > 0, "no cut tore a page with free subpages");
}

/// Collection starts at `ftl.gc_start`, and stops at the first victim that leaves more than `ftl.gc_stop`.
#[test]
fn thresholds_hold_to_the_page() {
    let mut bench = Bench::new(&["ssd.blocks_per_plane=24", "ftl.gc_start=2 blocks", "ftl.gc_stop=4 blocks"]);
    let logical = bench.ftl.map.logical_pages();
    let start = 2 * bench.io.geometry().pages_per_block;
    let stop = 4 * bench.io.geometry().pages_per_block;
    let mut rng = Rng::new(5, 5);
    let mut least = u32::MAX;
    let mut collected = 0;
    for write in 0..2000 {
        let before = bench.ftl.free_pages(0);
        let erases = bench.io.counters.erases;
        bench.write(if write < logical { write } else { rng.below(logical.into()) as u32 }, 0, 4);
        assert_eq!(bench.io.counters.erases > erases, before <= start, "{before} pages free");
        if bench.io.counters.erases > erases {
            // The page of the write follows.
            least = least.min(bench.ftl.free_pages(0) + 1);
            collected += 1;
        }
    }
    assert!(collected > 30);
    assert_eq!(least, stop + 1, "free pages after collection");
}
