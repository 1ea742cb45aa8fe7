//! A drive as a value against `run`: the same requests must give the same result, byte for byte.

use palimpsest_drive::{
    Command, Contents, Directives, Drive, FLUSH, Figures, Moment, Nanos, Status, Ticket, read, trim, write,
};
use palimpsest_lab::config::{self, ssd_presets};
use palimpsest_lab::error::Result;
use palimpsest_lab::host::request::{Arrivals, Request, Source};
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::rng::Rng;
use palimpsest_lab::run::precondition::Precondition;
use palimpsest_lab::run::{Fidelity, Options, Warmup, run};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

/// A list of requests as a workload.
struct Listed(std::vec::IntoIter<(Command, Nanos)>, Arrivals);

impl Source for Listed {
    fn next_request(&mut self) -> Result<Option<Request>> {
        Ok(self.0.next().map(|(command, at)| Request::new(at, command)))
    }

    fn place(&self) -> String {
        "listed".into()
    }

    fn arrivals(&self) -> Arrivals {
        self.1
    }
}

fn requests(bytes: u64, count: u64, seed: u64) -> Vec<(Command, Nanos)> {
    let (mut rng, pages) = (Rng::new(seed, 0), bytes.min(64 << 20) / 4096);
    let mut at = 0;
    let request = |number| {
        // The clock of a run starts with the first request.
        at += if number == 0 { 0 } else { rng.below(40_000) };
        let (offset, length) = (rng.below(pages - 8) * 4096, 4096 << rng.below(4));
        let command = match (number % 101, rng.below(8)) {
            (100, _) => Ok(FLUSH),
            (_, 0..4) => write(offset, length),
            (_, 4) => trim(offset, length),
            _ => read(offset, length),
        };
        (command.unwrap(), at)
    };
    (0..count).map(request).collect()
}

/// The result of `run`.
fn expected(drive: (&str, Option<&str>, &[String]), requests: &[(Command, Nanos)], depth: Option<u32>) -> String {
    let resolved = config::resolve(drive.0, drive.1, drive.2, &|_| unreachable!()).unwrap();
    let options = Options {
        workload: "listed".into(),
        precondition: Precondition::None,
        requests: None,
        warmup: Warmup::Requests(0),
        fidelity: Fidelity::Timed,
        payload: Payload::Tag,
        seed: 1,
        series: false,
        operations: None,
        strict: false,
    };
    let arrivals = depth.map_or(Arrivals::Open, |depth| Arrivals::Closed { depth });
    // A closed loop has no times of arrival.
    let listed: Vec<_> =
        requests.iter().map(|&(command, at)| (command, if depth.is_some() { 0 } else { at })).collect();
    let mut source = Listed(listed.into_iter(), arrivals);
    let outcome = run(&resolved, &mut source, &options, &mut |_| ControlFlow::Continue(())).unwrap();
    serde_json::to_string(&outcome.summary).unwrap()
}

/// Submits each request at its time.
fn open_loop(mut drive: Drive, requests: &[(Command, Nanos)]) -> Figures {
    let mut completed = 0;
    for &(command, at) in requests {
        drive.submit(command, at).unwrap();
        completed += drive.completed().count();
    }
    while drive.in_flight() > 0 {
        drive.advance(Nanos::MAX).unwrap();
        completed += drive.completed().count();
    }
    assert_eq!(completed, requests.len());
    drive.finish().unwrap()
}

/// Keeps `depth` requests in flight.
fn closed_loop(mut drive: Drive, requests: &[(Command, Nanos)], depth: u32) -> Figures {
    let mut left = requests.iter();
    loop {
        while drive.in_flight() < depth
            && let Some(&(command, _)) = left.next()
        {
            let now = drive.now();
            drive.submit(command, now).unwrap();
        }
        if drive.in_flight() == 0 {
            return drive.finish().unwrap();
        }
        drive.advance(Nanos::MAX).unwrap();
        assert!(drive.completed().all(|done| done.status == Status::Done));
    }
}

/// Requires equal results but for their evidence, whose windows a program ends at other events, and for the kind of
/// arrivals, which a program does not state; shows the first difference of others.
fn same(found: &str, expected: &str, of: &str) {
    let [found, expected] = [found, expected].map(|text| {
        let mut result: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).unwrap();
        assert!(result.remove("steady").is_some(), "{of} has evidence");
        result["basis"].as_object_mut().unwrap().remove("is_open");
        serde_json::to_string(&result).unwrap()
    });
    let at = found.bytes().zip(expected.bytes()).position(|(one, other)| one != other);
    let around = |text: &str| at.map(|at| text[at.saturating_sub(80)..(at + 40).min(text.len())].to_string());
    assert_eq!(around(&found), around(&expected), "{of}");
    assert_eq!(found.len(), expected.len(), "{of}");
}

#[test]
fn every_preset_gives_the_result_of_a_run() {
    let mut compared = 0;
    for preset in ssd_presets() {
        let keys = ["ssd.blocks_per_plane=48".to_string()];
        let build = || Drive::builder(preset.name).set("ssd.blocks_per_plane", "48").workload("listed");
        // Some layers need more blocks.
        let Ok(drive) = build().build() else { continue };
        let requests = requests(drive.bytes(), 600, 3);
        let found = serde_json::to_string(&open_loop(drive, &requests)).unwrap();
        same(&found, &expected((preset.name, None, &keys), &requests, None), preset.name);
        let found = closed_loop(build().closed_loop().build().unwrap(), &requests, 8);
        let found = serde_json::to_string(&found).unwrap();
        same(&found, &expected((preset.name, None, &keys), &requests, Some(8)), preset.name);
        compared += 1;
    }
    assert!(compared >= 10, "{compared} presets were compared");
}

const SMALL: [(&str, &str); 10] = [
    ("buffer.ack", "buffer"),
    ("ssd.channels", "2"),
    ("ssd.planes_per_die", "1"),
    ("ssd.chips_per_channel", "1"),
    ("ssd.blocks_per_plane", "32"),
    ("part.pages_per_block", "8"),
    ("ssd.over_provisioning", "60%"),
    ("buffer.size", "64KiB"),
    ("ftl.gc_start", "2 blocks"),
    ("ftl.gc_stop", "3 blocks"),
];

fn small(layer: &str) -> palimpsest_drive::Builder {
    SMALL.iter().fold(Drive::builder("mga-8k").layer(layer), |builder, (key, value)| builder.set(key, value))
}

#[test]
fn a_drive_that_collects_gives_the_result_of_a_run() {
    let keys: Vec<String> = SMALL.iter().map(|(key, value)| format!("{key}={value}")).collect();
    for layer in ["page", "subpage", "mga", "sector-log"] {
        let requests = requests(small(layer).build().unwrap().bytes(), 3000, 5);
        let drive = small(layer).workload("listed").build().unwrap();
        let found = open_loop(drive, &requests);
        assert!(found.flash.erases > 0, "{layer} must erase");
        let found = serde_json::to_string(&found).unwrap();
        same(&found, &expected(("mga-8k", Some(layer), &keys), &requests, None), layer);
    }
}

/// A former bug: the drive replaced the owner of each command.
#[test]
fn a_layer_reads_the_owner_of_each_command() {
    let classified = [("ftl.streams", "4"), ("ftl.classifier", "owner")];
    let keys: Vec<String> = SMALL.iter().chain(&classified).map(|(key, value)| format!("{key}={value}")).collect();
    let build = || classified.iter().fold(small("subpage"), |builder, (key, value)| builder.set(key, value));
    let plain = requests(build().build().unwrap().bytes(), 3000, 5);
    let owned = plain.iter().map(|&(command, at)| {
        let owner = (command.extent.sector / 256 % 4) as u32;
        (command.with(Directives { owner, ..Directives::NONE }), at)
    });
    let owned: Vec<_> = owned.collect();
    let run = |requests: &[(Command, Nanos)]| {
        serde_json::to_string(&open_loop(build().workload("listed").build().unwrap(), requests)).unwrap()
    };
    let found = run(&owned);
    same(&found, &expected(("mga-8k", Some("subpage"), &keys), &owned, None), "owners");
    assert_ne!(found, run(&plain), "owners must change the blocks of data");
}

#[test]
fn events_one_by_one_give_the_same_times() {
    let times = |single: bool| {
        let mut drive = small("subpage").build().unwrap();
        let requests = requests(drive.bytes(), 2000, 7);
        let mut ended = Vec::new();
        for &(command, at) in &requests {
            while single && drive.next_time().is_some_and(|next| next < at) {
                let next = drive.next_time().unwrap();
                drive.advance(next).unwrap();
                ended.extend(drive.completed());
            }
            drive.submit(command, at).unwrap();
            ended.extend(drive.completed());
        }
        while drive.in_flight() > 0 {
            drive.advance(Nanos::MAX).unwrap();
            ended.extend(drive.completed());
        }
        ended.into_iter().map(|done| (done.at, done.ticket, done.status)).collect::<Vec<_>>()
    };
    assert_eq!(times(true), times(false));
}

#[test]
fn bytes_come_back_and_survive_a_power_cut() {
    let mut drive = small("page").contents(Contents::Bytes).power_cuts().build().unwrap();
    let wait = |drive: &mut Drive| {
        let mut ended = Vec::new();
        while drive.in_flight() > 0 {
            drive.advance(Nanos::MAX).unwrap();
            ended.extend(drive.completed());
        }
        ended
    };
    for page in 0..64u64 {
        let now = drive.now();
        drive.submit_bytes(write(page * 8192, 8192).unwrap(), vec![page as u8 + 1; 8192], now).unwrap();
    }
    drive.submit(FLUSH, drive.now()).unwrap();
    assert!(wait(&mut drive).iter().all(|done| done.status == Status::Done));
    let lost = drive.submit_bytes(write(0, 8192).unwrap(), vec![99; 8192], drive.now()).unwrap();
    drive.power_cut(drive.now() + 1).unwrap();
    let ended = wait(&mut drive);
    assert_eq!(ended.iter().map(|done| (done.ticket, done.status)).collect::<Vec<_>>(), [(lost, Status::PowerLost)]);
    for page in 1..64u64 {
        drive.submit(read(page * 8192, 8192).unwrap(), drive.now()).unwrap();
        let ended = wait(&mut drive);
        assert_eq!(ended[0].bytes, vec![page as u8 + 1; 8192], "page {page}");
    }
    assert_eq!(drive.finish().unwrap().power.unwrap().cuts, 1);
}

#[test]
fn wrong_calls_are_one_line_and_change_nothing() {
    let said = |result: palimpsest_drive::Result<palimpsest_drive::Ticket>| result.unwrap_err().to_string();
    let mut drive = small("page").build().unwrap();
    drive.submit(write(0, 4096).unwrap(), 1000).unwrap();
    assert!(said(drive.submit(FLUSH, 999)).contains("expected from 1000 ns"));
    let end = drive.bytes();
    assert!(said(drive.submit(read(end, 512).unwrap(), 1000)).contains("expected at most"));
    assert!(said(drive.submit_bytes(write(0, 512).unwrap(), vec![0; 512], 1000)).contains("stores bytes"));
    assert!(drive.power_cut(2000).unwrap_err().to_string().contains("power_cuts"));
    assert!(read(1, 512).is_err() && write(0, 0).is_err());
    let wrong = |builder: palimpsest_drive::Builder| builder.build().err().unwrap().to_string();
    assert!(wrong(small("page").set("ftl.wrong", "1")).contains("ftl.wrong"));
    small("page").set("ftl.victim", "nothing").set("ftl.victim", "fifo").build().expect("the later call wins");
    let unprotected = Drive::builder("default").set("buffer.ack", "program").set("buffer.flush", "programs");
    unprotected.build().expect("a key may switch off what the drive lacks");
    assert!(wrong(small("page").set("ftl.merge_limit", "1")).contains("ftl.merge_limit"));
    for (key, value) in [("speedup", "4"), ("fold", "true"), ("compact", "1MiB"), ("iodepth", "4")] {
        let refused = wrong(small("page").set(&format!("host.{key}"), value));
        let expected = format!("--set host.{key}={value}: the clients of a drive submit requests as they are");
        assert!(refused.starts_with(&expected), "{refused}");
    }
    assert!(wrong(Drive::builder("nothing")).contains("nothing"));
    assert!(wrong(small("page").precondition("full")).contains("fill:PERCENT"));
    assert_eq!(drive.finish().unwrap().requests.write, 1);
}

/// The clock of a worn-out drive stops, and no event is left: a loop over events must end.
#[test]
fn a_worn_out_drive_only_reads_and_has_no_events() {
    [Contents::None, Contents::Tags, Contents::Bytes].into_iter().for_each(wear_out);
}

fn wear_out(contents: Contents) {
    let worn = small("page").contents(contents).set("faults.wear_out", "true").set("part.endurance", "10");
    let mut drive = worn.set("part.endurance_deviation", "10%").build().unwrap();
    let (mut rng, pages) = (Rng::new(9, 0), drive.bytes() / 8192);
    let mut statuses = Vec::new();
    for _ in 0..200_000 {
        let at = drive.now();
        drive.submit(write(rng.below(pages) * 8192, 8192).unwrap(), at).unwrap();
        drive.advance(Nanos::MAX).unwrap();
        statuses.extend(drive.completed().map(|done| done.status));
        if statuses.contains(&Status::WornOut) {
            break;
        }
    }
    assert!(statuses.contains(&Status::WornOut), "the drive must wear out");
    assert_eq!((drive.next_time(), drive.in_flight()), (None, 0));
    let later = drive.now() + 1_000_000;
    let ticket = drive.submit(read(0, 8192).unwrap(), later).unwrap();
    let ended: Vec<_> = drive.completed().map(|done| (done.ticket, done.at, done.status)).collect();
    assert_eq!(ended, [(ticket, later, Status::Done)]);
    assert!(drive.finish().unwrap().lifetime.worn_out);
}

fn must_be_send<T: Send>() {}

#[test]
fn a_drive_may_move_to_another_thread() {
    must_be_send::<Drive>();
}

#[test]
fn a_watcher_sees_each_arrival_and_completion() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut drive = small("page").build().unwrap();
    let watched = Arc::clone(&seen);
    drive.watch(move |moment| watched.lock().unwrap().push(moment));
    let requests = requests(drive.bytes(), 2000, 5);
    let mut ended = Vec::new();
    for &(command, at) in &requests {
        drive.submit(command, at).unwrap();
        ended.extend(drive.completed().map(|done| (done.ticket, done.at)));
    }
    while drive.in_flight() > 0 {
        drive.advance(Nanos::MAX).unwrap();
        ended.extend(drive.completed().map(|done| (done.ticket, done.at)));
    }
    let seen = seen.lock().unwrap();
    assert!(seen.is_sorted_by_key(|moment| moment.at) && seen.is_sorted_by_key(|moment| moment.programmed_bytes));
    let (completions, arrivals): (Vec<_>, Vec<_>) = seen.iter().partition(|moment| moment.is_completion);
    let times = |moments: &[Moment]| Vec::from_iter(moments.iter().map(|moment| (moment.ticket, moment.at)));
    assert_eq!(times(&completions), ended);
    let expected = requests.iter().zip(0..).map(|(&(_, at), ticket)| (Ticket(ticket), at));
    assert_eq!(times(&arrivals), Vec::from_iter(expected));
    let (last, written) = (seen.last().unwrap().programmed_bytes, drive.finish().unwrap().host.bytes_written);
    assert!(last > 0 && last <= 4 * written, "{last} bytes programmed for {written}");
}

/// Requests a second of a drive and of `run`, for timed random reads and writes of a drive with tags.
#[test]
#[ignore = "a measurement"]
fn measured_beside_a_run() {
    let count = 400_000;
    let keys: Vec<String> = SMALL.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let requests = requests(small("page").build().unwrap().bytes(), count, 11);
    let mut ratios = Vec::new();
    for _ in 0..5 {
        let begin = std::time::Instant::now();
        let theirs = expected(("mga-8k", Some("page"), &keys), &requests, Some(32));
        let run = begin.elapsed().as_secs_f64();
        let begin = std::time::Instant::now();
        let drive = small("page").workload("listed").closed_loop().build().unwrap();
        let ours = closed_loop(drive, &requests, 32);
        let alone = begin.elapsed().as_secs_f64();
        same(&serde_json::to_string(&ours).unwrap(), &theirs, "page");
        ratios.push(run / alone);
    }
    ratios.sort_by(f64::total_cmp);
    println!("requests/s of a drive over those of a run: {:.2} (median of five)", ratios[2]);
    assert!(ratios[2] >= 0.9);
}

#[test]
fn each_call_after_a_panic_fails() {
    let mut drive = small("page").build().expect("a drive");
    drive.watch(|_| panic!("the watcher"));
    let write = write(0, 4096).expect("a write");
    let submitted = catch_unwind(AssertUnwindSafe(|| drive.submit(write, 0).map(drop)));
    assert!(submitted.is_err());
    let refused = "the simulator panicked in an earlier call; expected a new drive";
    assert_eq!(drive.submit(write, 0).expect_err("a panic before").to_string(), refused);
    assert_eq!(drive.advance(1).expect_err("a panic before").to_string(), refused);
    assert_eq!(drive.power_cut(1).expect_err("a panic before").to_string(), refused);
    assert_eq!(drive.save().expect_err("a panic before").to_string(), refused);
    assert_eq!(drive.finish().map(drop).expect_err("a panic before").to_string(), refused);
}
