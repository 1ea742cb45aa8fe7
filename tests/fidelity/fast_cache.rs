//! The fixed share of a fast cache (`ftl.slc_fixed`) against closed forms: the pages that a full drive takes at the
//! speed of single bits, write amplification with the remaining over-provisioning, and wear of the share's blocks.

use crate::bench::{Run, drive};
use crate::forms;
use palimpsest_lab::config::Resolved;
use palimpsest_lab::run::Fidelity;

/// TLC with `fixed` of the blocks of a plane in the fixed share.
fn full_drive(fixed: &str, more: &str) -> Resolved {
    drive(
        "tlc-32g",
        &format!(
            "ssd.planes_per_die=1 ssd.blocks_per_plane=400 part.pages_per_block=96 ftl.slc_fixed={fixed} \
             part.t_program_slc=100us \
             part.t_program=400us ftl.gc_background=true ftl.gc_stop=3blocks ftl.moved_to=plane \
             buffer.ack=program {more}"
        ),
    )
}

/// Pages of the fixed share.
fn cached_pages(ssd: &Resolved) -> u64 {
    let geometry = &ssd.drive.geometry;
    let pages = u64::from(geometry.pages_per_block / ssd.drive.part.stored_bits());
    u64::from(ssd.drive.fixed_single()) * u64::from(geometry.planes()) * pages
}

/// An idle full drive takes n P (pages of a block / bits of a cell) pages at tPROG of single bits, with n blocks in
/// each of P planes. Twice as many pages take tPROG of all bits for the second half, plus the moves of collection.
#[test]
fn a_full_drive_has_the_fixed_share_of_its_cache() {
    for bits in ["tlc", "qlc"] {
        let ssd = full_drive("2%", &format!("part.cell={bits}"));
        let (part, planes) = (&ssd.drive.part, u64::from(ssd.drive.geometry.planes()));
        let (page, cached) = (u64::from(part.page_bytes), cached_pages(&ssd));
        let time = |pages: u64, fixed: &str| {
            let ssd = full_drive(fixed, &format!("part.cell={bits}"));
            let bytes = pages * page;
            let text = format!("[w]\nrw=write\nbs=128k\nsize={bytes}B\niodepth=64\nstartdelay=60s\n");
            let mut run = Run::new(&ssd, &text);
            run.precondition = "fill:100%";
            let result = run.result();
            assert_eq!(result.host.bytes_written, bytes);
            result.simulated_ns - 60_000_000_000
        };
        let at_once = time(cached, "2%");
        let form = cached * part.t_program_slc / planes;
        let off = at_once as f64 / form as f64 - 1.0;
        println!("{bits}: {cached} pages in {at_once} ns, form {form} ns ({:+.2} %)", 100.0 * off);
        assert!(off.abs() < 0.02);
        let beyond = time(2 * cached, "2%") - at_once;
        let without = time(cached, "0%");
        println!("{bits}: as much again in {beyond} ns; without a fixed share {without} ns");
        let least = cached * part.t_program / planes;
        assert!(beyond > least * 98 / 100 && without > least * 98 / 100);
    }
}

/// A drive of one plane, of whose `blocks` blocks of `b` pages the host and collection each have one open.
fn flat(blocks: u32, b: u32, op: &str, more: &str) -> Resolved {
    drive(
        "tlc-32g",
        &format!(
            "ftl.name=page part.page_size=4KiB part.subpage_size=4KiB ssd.channels=1 ssd.planes_per_die=1 \
             ssd.blocks_per_plane={blocks} part.pages_per_block={b} ssd.over_provisioning={op} ftl.streams=2 \
             ftl.gc_start=1block ftl.gc_stop=1block ftl.moved_to=plane {more}"
        ),
    )
}

/// Independent random writes of 4 KiB, counted, after a steady precondition.
fn steady(ssd: &Resolved) -> palimpsest_lab::metrics::summary::Summary {
    let mut run = Run::new(ssd, "rw=randwrite,bs=4k,norandommap,io_size=200%");
    (run.precondition, run.fidelity) = ("steady", Fidelity::Count);
    run.result()
}

/// All writes go through the cache of C pages. A share s = exp(-C/U) is still valid when the block is folded, and goes
/// to the other blocks like host writes: WA = 1 + s A.
///
/// A is greedy's closed form for the remaining space, rho = (U - C (1 + s)/2) / ((N - f - 1) b). Each erase of a block
/// of the share stores C/f pages of the host.
#[test]
fn write_amplification_with_all_writes_through_the_fixed_share() {
    for (op, fixed, pace) in [("28%", 20, "block"), ("28%", 100, "block"), ("15%", 20, "paced"), ("28%", 100, "paced")]
    {
        let (blocks, b) = (2048, 66);
        let share = f64::from(fixed) / f64::from(blocks) * 100.0;
        let ssd = flat(blocks, b, op, &format!("ftl.slc_fixed={share}% ftl.slc_full=fold ftl.gc_pace={pace}"));
        assert_eq!(ssd.drive.fixed_single(), fixed);
        let (units, cache) = (ssd.drive.logical_pages() as f64, cached_pages(&ssd) as f64);
        let s = (-cache / units).exp();
        let beside = f64::from(blocks - fixed) - if pace == "paced" { 2.0 } else { 1.0 };
        let rho = (units - cache * (1.0 + s) / 2.0) / (beside * f64::from(b));
        let form = 1.0 + s * forms::greedy(b, rho);
        let result = steady(&ssd);
        let wa = result.write_amplification.unwrap();
        let effective = ssd.drive.effective_over_provisioning();
        println!(
            "OP {op} ({:.1} % without {fixed} blocks), {pace}: {wa:.4}, form {form:.4} ({:+.2} %)",
            100.0 * effective,
            100.0 * (wa / form - 1.0)
        );
        assert!((wa / form - 1.0).abs() < 0.01);
        let stated = (1.0 + ssd.drive.over_provisioning) * (1.0 - share / 100.0) - 1.0;
        assert!((effective - stated).abs() < 1e-4);
        let life = result.lifetime.slc_fixed.unwrap();
        let host = result.host.bytes_written as f64;
        let erases = host / 4096.0 / (f64::from(b / 3));
        let projected = host * f64::from(ssd.drive.part.endurance_slc) * f64::from(fixed) / erases;
        assert!((life.projected_host_bytes.unwrap() as f64 / projected - 1.0).abs() < 0.01);
    }
}

/// A full cache is bypassed: the write amplification follows from the remaining over-provisioning.
#[test]
fn write_amplification_past_the_fixed_share() {
    let (blocks, b) = (2048, 66);
    let ssd = flat(blocks, b, "28%", "ftl.slc_fixed=5% ftl.gc_pace=block");
    let fixed = f64::from(ssd.drive.fixed_single());
    let units = ssd.drive.logical_pages() as f64;
    let form = |held: f64| forms::greedy(b, (units - held) / ((f64::from(blocks) - fixed - 1.0) * f64::from(b)));
    let wa = steady(&ssd).write_amplification.unwrap();
    println!("past {fixed} blocks: {wa:.4}, form {:.4} when they hold nothing valid", form(0.0));
    assert!(wa < form(0.0) * 1.005 && wa > form(cached_pages(&ssd) as f64) * 0.99);
}
