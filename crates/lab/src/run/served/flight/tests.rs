//! Tests of the module `flight`.

use super::*;
use crate::config::{self, Resolved};
use crate::run::precondition::Precondition;
use crate::run::{Fidelity, Options, Warmup, run};
use palimpsest_flash::geometry::Extent;
use palimpsest_flash::nand::data::Payload;
use palimpsest_flash::rng::Rng;
use palimpsest_workload::request::{Arrivals, Request, Source};
use std::ops::ControlFlow;

fn drive(more: &[&str]) -> Resolved {
    let set = [
        "ssd.channels=2",
        "ssd.planes_per_die=1",
        "ssd.chips_per_channel=1",
        "ssd.blocks_per_plane=32",
        "part.pages_per_block=8",
        "ssd.over_provisioning=60%",
        "buffer.size=64KiB",
        "ftl.gc_start=2 blocks",
        "ftl.gc_stop=3 blocks",
    ];
    let set: Vec<String> = set.iter().chain(more).map(|&text| text.into()).collect();
    config::resolve("mga-8k", Some("page"), &set, &|_| unreachable!()).unwrap()
}

fn options(workload: &str) -> Options {
    Options {
        workload: workload.into(),
        precondition: Precondition::None,
        requests: None,
        warmup: Warmup::Requests(0),
        fidelity: Fidelity::Timed,
        payload: Payload::Bytes,
        seed: 1,
        series: false,
        operations: None,
        strict: false,
    }
}

fn requests(resolved: &Resolved, count: u64) -> Vec<Command> {
    let (mut rng, sectors) = (Rng::new(5, 0), resolved.drive.logical_bytes() / SECTOR_BYTES / 8);
    let kinds = [RequestKind::Write, RequestKind::Write, RequestKind::Read, RequestKind::Read, RequestKind::Trim];
    let request = |number: u64| match number % 97 {
        96 => Command::FLUSH,
        _ => {
            let extent = Extent { sector: rng.below(sectors - 4) * 8, sectors: 8 * (1 + rng.below(4)) as u32 };
            Command::new(kinds[rng.below(5) as usize], extent)
        }
    };
    (0..count).map(request).collect()
}

struct Listed(std::vec::IntoIter<Command>, u32);

impl Source for Listed {
    fn next_request(&mut self) -> Result<Option<Request>> {
        let next = self.0.next();
        Ok(next.map(|command| Request::new(0, command)))
    }

    fn place(&self) -> String {
        "here".into()
    }

    fn arrivals(&self) -> Arrivals {
        Arrivals::Closed { depth: self.1 }
    }
}

/// A program with `depth` requests in flight must get the times of a run with that depth.
#[test]
fn requests_in_flight_take_the_time_of_a_run() {
    for depth in [1, 4, 16, 32] {
        let resolved = drive(&[]);
        let wanted = requests(&resolved, 2000);
        let mut go_on = |_| ControlFlow::Continue(());
        let mut source = Listed(wanted.clone().into_iter(), depth);
        let expected = run(&resolved, &mut source, &options("here"), &mut go_on).unwrap().summary;
        let options = options("served");
        let mut served = Served::new(&resolved, &options, &mut go_on).unwrap();
        served.begin_flights();
        let mut wanted = wanted.into_iter().peekable();
        while served.in_flight() > 0 || wanted.peek().is_some() {
            while served.in_flight() < depth {
                let Some(command) = wanted.next() else { break };
                let bytes = command.extent.sectors as usize * SECTOR_BYTES as usize;
                let is_write = command.kind == RequestKind::Write;
                served.submit(command, if is_write { vec![7; bytes] } else { Vec::new() }).unwrap();
            }
            if served.in_flight() == depth || (wanted.peek().is_none() && served.in_flight() > 0) {
                served.step().unwrap();
            }
            while let Some(done) = served.pop_done() {
                assert!(done.reply.is_ok());
            }
        }
        let found = served.finish().unwrap().summary;
        let of = |summary: &crate::metrics::summary::Summary| {
            let latency = serde_json::to_string(&summary.latency_ns).unwrap();
            (latency, summary.simulated_ns, serde_json::to_string(&summary.flash).unwrap())
        };
        assert_eq!(of(&found), of(&expected), "{depth} in flight");
        assert!(found.gc.runs > 0, "garbage was collected");
    }
}

/// Writes wait for space in the buffer while others arrive: each must keep its own bytes.
#[test]
fn the_bytes_of_a_write_travel_with_it() {
    let resolved = drive(&[]);
    let (options, mut go_on) = (options("served"), |_: crate::run::Progress| ControlFlow::Continue(()));
    let mut served = Served::new(&resolved, &options, &mut go_on).unwrap();
    served.begin_flights();
    let (mut rng, units) = (Rng::new(3, 0), 64);
    let (mut holds, mut reading) = (vec![0u8; units as usize], Vec::new());
    for number in 0..4000u64 {
        let unit = rng.below(units);
        let extent = Extent { sector: unit * 32, sectors: 32 };
        if rng.below(3) > 0 {
            holds[unit as usize] = number as u8;
            let write = Command::new(RequestKind::Write, extent);
            served.submit(write, vec![number as u8; 32 * SECTOR_BYTES as usize]).unwrap();
        } else if served.in_flight() == 0 {
            let read = Command::new(RequestKind::Read, extent);
            let Submitted::InFlight(flight) = served.submit(read, Vec::new()).unwrap() else { panic!() };
            reading.push((flight, holds[unit as usize]));
        }
        if number % 40 == 0 || !reading.is_empty() {
            while served.in_flight() > 0 {
                served.step().unwrap();
            }
        }
        while let Some(done) = served.pop_done() {
            let bytes = done.reply.unwrap();
            if let Some(at) = reading.iter().position(|&(flight, _)| flight == done.flight && !bytes.is_empty()) {
                let (_, byte) = reading.swap_remove(at);
                assert!(bytes == [byte; 32 * SECTOR_BYTES as usize], "request {number}");
            }
        }
    }
    served.finish().unwrap();
}

#[test]
fn a_power_cut_refuses_what_is_in_flight() {
    let resolved = drive(&["faults.power_cut_at=300"]);
    let (options, mut go_on) = (options("served"), |_: crate::run::Progress| ControlFlow::Continue(()));
    let mut served = Served::new(&resolved, &options, &mut go_on).unwrap();
    served.begin_flights();
    let mut cuts = 0;
    for number in 0..3000u64 {
        let extent = Extent { sector: number * 37 % 200 * 8, sectors: 8 };
        let bytes = vec![number as u8; 8 * SECTOR_BYTES as usize];
        let mut done = served.submit(Command::new(RequestKind::Write, extent), bytes).map(|_| ());
        while done.is_ok() && served.in_flight() > 8 {
            done = served.step();
        }
        while served.pop_done().is_some() {}
        match done {
            Ok(()) => {}
            Err(Failure::PowerLost) => {
                cuts += 1;
                assert_eq!(served.in_flight(), 0);
            }
            Err(failure) => panic!("{failure:?}"),
        }
    }
    assert_eq!(cuts, 1);
    while served.in_flight() > 0 {
        served.step().unwrap();
    }
    served.finish().unwrap();
}

/// A drive that ends with requests in flight finishes its operations, and its figures agree. Reads after the end count.
#[test]
fn figures_agree_after_the_end_with_requests_in_flight() {
    for kept_bytes in [Payload::None, Payload::Tag] {
        let resolved = drive(&["faults.wear_out=true", "part.endurance=6", "part.e_program=30uJ", "part.e_read=4uJ"]);
        let options = Options { payload: kept_bytes, ..options("served") };
        let mut go_on = |_: crate::run::Progress| ControlFlow::Continue(());
        let mut served = Served::with_any_payload(&resolved, &options, None, &mut go_on).unwrap();
        served.begin_flights();
        let mut rng = Rng::new(11, 0);
        let units = resolved.drive.logical_bytes() / 8192;
        let ended = (0..100_000).any(|_| {
            let extent = Extent { sector: rng.below(units) * 16, sectors: 16 };
            let submitted = served.submit(Command::new(RequestKind::Write, extent), Vec::new()).map(|_| ());
            let stepped = if served.in_flight() < 24 { Ok(()) } else { served.step() };
            while served.pop_done().is_some() {}
            matches!(submitted.and(stepped), Err(Failure::WornOut(_)))
        });
        assert!(ended && served.is_worn_out(), "the drive wears out");
        for unit in 0..20 {
            let read = Command::new(RequestKind::Read, Extent { sector: unit * 16, sectors: 16 });
            assert!(matches!(served.submit(read, Vec::new()), Ok(Submitted::Read(Ok(_)))));
        }
        let outcome = served.finish().unwrap();
        let flash = outcome.summary.flash;
        let series = outcome.detail.time.unwrap();
        assert_eq!(series.programs.iter().sum::<u64>(), flash.page_programs);
        assert_eq!(series.reads.iter().sum::<u64>(), flash.page_reads);
        assert_eq!(outcome.summary.requests.read, 20);
    }
}
