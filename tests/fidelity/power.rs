//! Power of flash over time (docs/fidelity.md): sums of what the part says.

use crate::bench::{Run, drive};

/// A drive of one die, in which nothing takes time but arrays and bus.
const ONE_DIE: &str = "ftl.name=page ssd.channels=1 ssd.planes_per_die=1 ssd.blocks_per_plane=64 part.pages_per_block=64 \
     part.e_program=30uJ part.e_read=4uJ ftl.gc_pace=block sim.cache_register=false";

/// Windows hold the energy of all operations; a die that programs one page after the other takes e_program / (command + transfer + tPROG).
#[test]
fn a_die_that_programs_without_a_pause_takes_the_energy_of_a_program_in_its_time() {
    let ssd = drive("tlc-32g", ONE_DIE);
    let outcome = Run::new(&ssd, "rw=write,bs=16k,n=1000,iodepth=8").outcome(true);
    let (summary, series) = (outcome.summary, outcome.detail.time.unwrap());
    let part = &ssd.drive.part;
    let time = (part.t_command + part.bus_rate.time_for(16384) + part.t_program) as f64;
    let (form, power) = (part.e_program as f64 / time / 1000.0, summary.power_w);
    let (mean, peak) = (power.mean.unwrap(), power.peak.unwrap());
    println!("mean {mean:.4} W, peak {peak:.4} W, form {form:.4} W in windows of {} ns", series.window_ns);
    assert!((mean / form - 1.0).abs() < 1e-3);
    // A window holds whole programs but for one.
    assert!(peak / form - 1.0 < time / series.window_ns as f64);
    let picojoules = |watts: &f64| watts * series.window_ns as f64 * 1000.0;
    let (sum, last): (f64, f64) =
        (series.power_w.iter().map(picojoules).sum(), picojoules(series.power_w.last().unwrap()));
    // The last window is shorter.
    let total = summary.energy_uj.total * 1e6;
    assert!(sum >= total * (1.0 - 1e-9) && sum - last <= total * (1.0 + 1e-9), "{sum} {total}");
}

/// A program that reads suspend takes nothing meanwhile: watts stay below what all planes that work take at once, and the law at the end of the run
/// holds it to the energy of flash.
#[test]
fn what_is_suspended_takes_no_power() {
    let sets =
        format!("{ONE_DIE} sim.suspend=program-erase sim.scheduler=read-first part.t_suspend=20us part.t_resume=20us");
    let with = |suspend: &str| {
        let ssd = drive("tlc-32g", &format!("{sets} sim.suspend={suspend}"));
        let mut run = Run::new(&ssd, "rw=randrw,rwmixread=70,bs=16k,norandommap,n=3000,iodepth=8");
        run.precondition = "fill:100%";
        let outcome = run.outcome(true);
        (
            outcome.summary.power_w.peak.unwrap(),
            ssd.drive.part.e_program as f64 / ssd.drive.part.t_program as f64 / 1000.0,
        )
    };
    for suspend in ["none", "program-erase"] {
        let (peak, program) = with(suspend);
        let read = 4e6 / 1000.0 / drive("tlc-32g", ONE_DIE).drive.part.t_read as f64;
        println!("{suspend}: peak {peak:.4} W, a program {program:.4} W, a read {read:.4} W");
        assert!(peak <= program.max(read) * (1.0 + 1e-9));
    }
}
