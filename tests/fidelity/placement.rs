//! Reclaim unit handles (`fdp`) against closed forms and counts by hand.
//!
//! Greedy collection over all reclaim units takes victims with equally much valid data from each persistently isolated
//! handle. Uniform writes to a handle then have the write amplification of the whole drive's spare space, whichever
//! share of the writes the handle gets (Desnoyers 2014, one form for all). With shares (`fdp.shares`) each handle is a
//! drive of its own.

use crate::bench::{Run, drive};
use crate::forms;
use palimpsest_lab::config::Resolved;
use palimpsest_lab::metrics::fdp::Fdp;
use palimpsest_lab::run::Fidelity;

/// Two dies of one plane of 1024 blocks of 16 pages of 4 KiB: 1024 reclaim units of 32 pages.
fn with_handles(sets: &str) -> Resolved {
    drive(
        "tlc-32g",
        &format!(
            "ftl.name=fdp part.page_size=4KiB part.subpage_size=4KiB ssd.channels=2 ssd.planes_per_die=1 \
             ssd.blocks_per_plane=1024 part.pages_per_block=16 ssd.over_provisioning=28% ftl.gc_start=1block \
             ftl.gc_stop=1block ftl.gc_pace=block {sets}"
        ),
    )
}

/// Uniform writes to the two halves of the drive, by handles 0 and 1, with depths as shares of the writes.
fn halves(depths: [u32; 2]) -> String {
    let job = |at: usize| {
        let (offset, depth, share) = (50 * at, depths[at], 4000 * depths[at] / (depths[0] + depths[1]));
        let writes = "rw=randwrite\nnorandommap\nsize=50%";
        format!("[handle{at}]\n{writes}\noffset={offset}%\niodepth={depth}\nio_size={share}%\nplids={at}\n")
    };
    format!("[global]\nbs=4k\n{}{}", job(0), job(1))
}

fn placed(ssd: &Resolved, workload: &str) -> Fdp {
    let mut run = Run::new(ssd, workload);
    // The halves are written forty times; the first half of that is the warm-up.
    let writes = 40 * ssd.drive.logical_bytes() / 4096 / 2;
    (run.precondition, run.fidelity, run.warmup) = ("fill:100%", Fidelity::Count, writes / 2);
    run.result().fdp.expect("a drive with handles")
}

/// The form for `share` of the reclaim units and of the logical pages, less `open` units: each handle keeps one open.
fn form(ssd: &Resolved, share: (f64, f64), open: f64) -> f64 {
    let (geometry, logical) = (&ssd.drive.geometry, (ssd.drive.logical_bytes() / 4096) as f64);
    let (pages, units) = (geometry.pages_per_block, f64::from(geometry.blocks()));
    forms::greedy(pages, share.1 * logical / ((share.0 * units - open) * f64::from(pages)))
}

#[test]
fn isolated_uniform_handles_have_the_form_of_the_drive() {
    // With small units the handle with more writes has up to 2 % less, because its units pass the threshold in steps.
    let ssd = with_handles("fdp.handles=2 fdp.isolation=persistent ssd.blocks_per_plane=512 part.pages_per_block=128");
    for depths in [[1, 1], [1, 3], [1, 9]] {
        let found = placed(&ssd, &halves(depths));
        let form = form(&ssd, (1.0, 1.0), 2.0);
        for handle in &found.handles {
            let wa = handle.write_amplification.expect("it wrote");
            println!("depths {depths:?}, handle {:?}: {wa:.4}, form {form:.4}", handle.handle);
            assert!((wa / form - 1.0).abs() < 0.01);
        }
    }
}

/// Handle 0 has 46 % of the units for half of the data, handle 1 has 54 %.
#[test]
fn a_handle_with_a_share_has_the_form_of_its_share() {
    let ssd = with_handles("fdp.handles=2 fdp.isolation=persistent fdp.shares=[\"46%\",\"54%\"]");
    for depths in [[1, 1], [1, 4]] {
        let found = placed(&ssd, &halves(depths));
        for (handle, share) in found.handles.iter().zip([0.46, 0.54]) {
            let (wa, form) = (handle.write_amplification.unwrap(), form(&ssd, (share, 0.5), 1.5));
            println!("depths {depths:?}, share {share}: {wa:.4}, form {form:.4}");
            assert!((wa / form - 1.0).abs() < 0.01);
        }
    }
}

/// A sequential stream invalidates whole units, so nothing of its share is moved; the random stream beside it has the
/// form of its share.
#[test]
fn a_sequential_stream_beside_a_random_one_moves_nothing() {
    let ssd = with_handles("fdp.handles=2 fdp.isolation=persistent fdp.shares=[\"50%\",\"50%\"]");
    let jobs = halves([1, 1]).replacen("rw=randwrite\nnorandommap", "rw=write", 1);
    let found = placed(&ssd, &jobs);
    let [sequential, random] = [0, 1].map(|at: usize| found.handles[at].write_amplification.unwrap());
    let form = form(&ssd, (0.5, 0.5), 1.5);
    println!("sequential {sequential:.4}, random {random:.4}, form {form:.4}");
    assert_eq!(sequential, 1.0);
    assert!((random / form - 1.0).abs() < 0.01);
}

/// Log pages of a drive of 16 units of 32 pages, by hand: three units written by handle 1, two pages by handle 0 of
/// which one named handle 7.
#[test]
fn log_pages_are_exact() {
    let ssd = with_handles("fdp.handles=2 fdp.isolation=persistent ssd.blocks_per_plane=16 ssd.over_provisioning=100%");
    let run = |workload: &str| {
        let run = Run { fidelity: Fidelity::Count, ..Run::new(&ssd, workload) };
        run.result().fdp.expect("a drive with handles")
    };
    let found = run("[a]\nrw=write\nbs=4k\nn=80\nplids=1\n[b]\nstonewall\nrw=write\nbs=4k\nn=1\noffset=512k\n\
                     [c]\nstonewall\nrw=write\nbs=4k\nn=1\noffset=640k\nplids=7\n");
    let pages = |bytes: u64| bytes / 4096;
    assert_eq!((found.configuration.nominal_bytes, found.configuration.reclaim_units), (32 * 4096, 16));
    assert_eq!(pages(found.statistics.host_bytes), 82);
    assert_eq!((pages(found.statistics.media_bytes), found.statistics.media_erased_bytes), (82, 0));
    assert_eq!(found.events.invalid_placement_identifier, 1);
    assert_eq!((found.events.media_reallocated, found.events.unit_not_fully_written), (0, 0));
    let [zero, one] = [0, 1].map(|at: usize| &found.handles[at]);
    assert_eq!((pages(zero.host_bytes), zero.reclaim_units, pages(zero.left_bytes)), (2, 1, 30));
    assert_eq!((pages(one.host_bytes), one.reclaim_units, pages(one.left_bytes)), (80, 3, 16));
    assert_eq!((zero.valid_share, one.valid_share), (Some(2.0 / 32.0), Some(80.0 / 96.0)));
    assert_eq!(one.write_amplification, Some(1.0));
    assert!(found.controller.is_none());
}

/// FEMU#191's shape, a hundredth as large: 160 units and 128 of data, eight isolated handles, skewed writes with trims.
/// Such a drive never runs dry.
#[test]
fn eight_handles_on_a_drive_of_160_units_never_run_dry() {
    for isolation in ["persistent", "initial"] {
        let ssd = with_handles(&format!(
            "fdp.handles=8 fdp.isolation={isolation} ssd.blocks_per_plane=160 part.pages_per_block=64 \
             ssd.over_provisioning=25% ftl.gc_pace=paced"
        ));
        let jobs: String = (0..8)
            .map(|job| format!("[job{job}]\noffset={}%\nsize=12%\nplids={job}\niodepth={}\n", job * 12, 1 + job))
            .collect();
        let workload =
            format!("[global]\nrw=randwrite\nbs=4k\nrandom_distribution=zipf:0.99\nnorandommap\nio_size=300%\n{jobs}");
        let mut run = Run::new(&ssd, &workload);
        (run.precondition, run.fidelity) = ("fill:100%", Fidelity::Count);
        let found = run.result().fdp.expect("a drive with handles");
        let all = found.handles.iter().chain(&found.controller);
        let units: u64 = all.map(|handle| handle.reclaim_units).sum();
        assert!(units > 150 && found.events.media_reallocated > 100, "{units} {:?}", found.events);
    }
}
