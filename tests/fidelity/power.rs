//! Power of flash over time (docs/fidelity.md): sums of the part's energies.

use crate::bench::{Run, drive};
use palimpsest_lab::nand::data::Payload;

/// A drive of one die; only arrays and bus take time.
const ONE_DIE: &str = "ftl.name=page ssd.channels=1 ssd.planes_per_die=1 ssd.blocks_per_plane=64 \
     part.pages_per_block=64 part.e_program=30uJ part.e_read=4uJ ftl.gc_pace=block sim.cache_register=false";

/// Windows hold the energy of all operations; a die that programs continuously takes e_program / (command + transfer +
/// tPROG).
#[test]
fn power_of_a_busy_die_is_program_energy_over_program_time() {
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
    let picojoules = |watts: &Option<f64>| watts.unwrap() * series.window_ns as f64 * 1000.0;
    let (sum, last): (f64, f64) =
        (series.power_w.iter().map(picojoules).sum(), picojoules(series.power_w.last().unwrap()));
    // The last window is shorter.
    let total = summary.energy_uj.total.unwrap() * 1e6;
    assert!(sum >= total * (1.0 - 1e-9) && sum - last <= total * (1.0 + 1e-9), "{sum} {total}");
}

/// A suspended program takes no energy: watts stay below the power of all working planes together, and the law at the
/// end of the run compares the sum with the energy of flash.
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

/// Mean power is energy over the time to the end of the last flash operation, not to the last acknowledgement.
#[test]
fn mean_power_is_energy_over_its_time() {
    let ssd = drive("tlc-32g", &format!("{ONE_DIE} ftl.name=subpage ftl.streams=1 buffer.ack=buffer buffer.size=4MiB"));
    let summary = Run::new(&ssd, "rw=write,bs=16k,n=400,iodepth=8").result();
    let (power, energy) = (summary.power_w, summary.energy_uj.total.unwrap());
    let time = power.time_ns.unwrap();
    println!("{:.4} W over {time} ns, answers within {} ns", power.mean.unwrap(), summary.simulated_ns);
    assert!((energy * 1e3 / time as f64 / power.mean.unwrap() - 1.0).abs() < 1e-12);
    assert!(time > summary.simulated_ns, "the buffer answers before its pages are programmed");
}

/// Figures are null, never 0, if the part gives no energy.
#[test]
fn energy_and_power_are_null_where_the_part_has_no_energies() {
    let of = |preset: &str, sets: &str| {
        let ssd = drive(preset, sets);
        let outcome = Run::new(&ssd, "rw=randrw,bs=32k,n=100,iodepth=4").outcome(true);
        let watts = outcome.detail.time.unwrap().power_w;
        let summary = serde_json::to_value(&outcome.summary).unwrap();
        (summary["energy_uj"].clone(), summary["power_w"].clone(), watts.iter().all(Option::is_none))
    };
    let (energy, power, none) = of("970pro-512g", "ssd.blocks_per_plane=64 ssd.over_provisioning=28%");
    for figure in ["read", "program", "reprogram", "erase", "total"] {
        assert!(energy[figure].is_null(), "{figure}: {energy}");
    }
    for figure in ["mean", "peak", "window_ns", "time_ns"] {
        assert!(power[figure].is_null(), "{figure}: {power}");
    }
    assert!(none, "the series has no watts");
    let (energy, power, none) = of("tlc-32g", &format!("{ONE_DIE} part.e_erase=0J"));
    assert!(energy["read"].is_f64() && energy["program"].as_f64().unwrap() > 0.0, "{energy}");
    assert!(energy["erase"].is_null() && energy["total"].is_null() && power["mean"].is_null() && none);
}

/// Energy covers ended operations alone, as counts do: with power cuts it is the count times the energy of each kind.
#[test]
fn energy_with_power_cuts_is_that_of_counted_operations() {
    for protection in ["program", "buffer"] {
        let sets = format!("{ONE_DIE} ssd.channels=4 ssd.over_provisioning=100% buffer.ack={protection}");
        let ssd = drive("tlc-32g", &format!("{sets} part.e_erase=90uJ faults.power_cuts=every:150"));
        let mut run = Run::new(&ssd, "rw=randrw,rwmixread=40,bs=16k,norandommap,n=2000,iodepth=16");
        (run.precondition, run.warmup, run.payload) = ("fill:60%", 100, Payload::Tag);
        let summary = run.result();
        let flash = summary.flash;
        let energy = summary.energy_uj;
        let power = summary.power.unwrap();
        println!("{protection}: {} cuts, {} programs, {:?}", power.cuts, flash.page_programs, energy.program);
        assert!(power.cuts > 2, "{} cuts", power.cuts);
        assert_eq!(energy.read, Some(4.0 * flash.page_reads as f64));
        assert_eq!(energy.program, Some(30.0 * flash.page_programs as f64));
        assert_eq!(energy.erase, Some(90.0 * flash.erases as f64));
    }
}

/// A drive that ends finishes the operations that it has planned: its channel moves every counted byte in time.
#[test]
fn a_drive_that_ends_moves_its_bytes_in_time() {
    let sets = "ftl.name=bast ssd.blocks_per_plane=24 part.pages_per_block=32 ssd.channels=1 \
                ssd.over_provisioning=100% \
                faults.wear_out=true faults.erase_fail=1%";
    let ssd = drive("codesign-8ch", sets);
    for workload in ["rw=randwrite,bs=64k,n=20000,iodepth=32", "rw=randwrite,bs=64k,n=20000,rate_iops=20000,open_loop"]
    {
        let mut run = Run::new(&ssd, workload);
        run.precondition = "fill:90%,random:1x";
        let outcome = run.outcome(true);
        let summary = outcome.summary;
        let series = outcome.detail.time.unwrap();
        let flash = &summary.flash;
        let host = &summary.host;
        assert!(summary.lifetime.worn_out && summary.requests.write > 0);
        let least = ssd.drive.part.bus_rate.time_for(flash.bytes_transferred);
        println!("{} bytes in {} ns, at least {least}", flash.bytes_transferred, summary.simulated_ns);
        assert!(least <= summary.simulated_ns);
        assert_eq!(series.programs.iter().sum::<u64>(), flash.page_programs);
        assert_eq!(host.bytes_written, summary.requests.write * (64 << 10));
    }
}
