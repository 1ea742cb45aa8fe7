//! Tests of volumes, compaction, spreading and repetition, on small traces in memory.

use super::*;
use crate::request::{Command, Due};
use crate::trace::{TraceOptions, open_trace};
use std::io::Cursor;

/// `ns,op,sector,sectors,volume` as a trace of MQSim, whose devices are volumes.
fn trace(lines: &[(u64, char, u64, u64, u32)]) -> String {
    let line = |&(time, op, sector, sectors, volume): &(u64, char, u64, u64, u32)| {
        format!("{time} {volume} {sector} {sectors} {}\n", u8::from(op == 'r'))
    };
    lines.iter().map(line).collect()
}

fn open(text: &str) -> Box<dyn Source> {
    let options = TraceOptions { format: Some("mqsim".into()), ..TraceOptions::default() };
    open_trace(Box::new(Cursor::new(text.as_bytes().to_vec())), "t", &options).unwrap()
}

fn replay(text: &str, playing: &Playing) -> Result<Replay> {
    let again = text.to_string();
    Replay::new(open(text), true, Some(Box::new(move || Ok(open(&again)))), playing)
}

fn all(source: &mut dyn Source) -> Vec<(Nanos, u64, u32)> {
    std::iter::from_fn(|| source.next_request().unwrap().map(|it| (it.arrival, it.extent.sector, it.owner()))).collect()
}

const TWO: [(u64, char, u64, u64, u32); 4] =
    [(0, 'w', 8, 8, 7), (10, 'w', 5000, 8, 7), (20, 'r', 8, 8, 3), (30, 'w', 16, 8, 7)];

#[test]
fn volumes_lie_apart_in_order_of_appearance() {
    let mut source = replay(&trace(&TWO), &Playing::default()).unwrap();
    assert_eq!(all(&mut source), [(0, 8, 7), (10, 5000, 7), (20, 3 * 2048 + 8, 3), (30, 16, 7)]);
    let places: Vec<_> = source.volumes().iter().map(|volume| (volume.id, volume.sector, volume.sectors)).collect();
    assert_eq!(places, [(7, 0, 5008), (3, 6144, 16)]);
    assert!(source.notes()[0].contains("2 volumes of the trace lie apart"));
    let survey = source.survey().unwrap().unwrap();
    assert_eq!((survey.volumes, survey.end_bytes, survey.footprint_bytes), (2, 4 << 20, 3 << 20));
}

#[test]
fn overlaid_volumes_share_addresses_and_one_alone_has_its_own() {
    let playing = |volumes| Playing { volumes, ..Playing::default() };
    let mut source = replay(&trace(&TWO), &playing(Volumes::Overlaid)).unwrap();
    assert_eq!(all(&mut source), [(0, 8, 7), (10, 5000, 7), (20, 8, 3), (30, 16, 7)]);
    let mut source = replay(&trace(&TWO), &playing(Volumes::parse("3").unwrap())).unwrap();
    assert_eq!(all(&mut source), [(20, 8, 3)]);
    let mut source = replay(&trace(&TWO), &playing(Volumes::parse("3,4").unwrap())).unwrap();
    assert!(source.next_request().unwrap().is_some());
    assert!(source.next_request().unwrap_err().to_string().contains("no volume 4 in the trace; expected some of 3, 7"));
}

#[test]
fn volumes_are_played_by_name() {
    let text = "0.1 xvda1 W 8 8\n0.2 xvdb W 16 8\n0.3 259,0 R 8 8\n0.4 7 R 8 8\n";
    let columns = Some("time=1:s,op=3,offset=4,size=5,volume=2".into());
    let open = move || {
        let options = TraceOptions { columns: columns.clone(), ..TraceOptions::default() };
        open_trace(Box::new(Cursor::new(text)), "t", &options)
    };
    let played = |volumes: &str| -> std::result::Result<String, String> {
        let playing = Playing { volumes: Volumes::parse(volumes).unwrap(), ..Playing::default() };
        let mut source = Replay::new(open().unwrap(), true, Some(Box::new(open.clone())), &playing).unwrap();
        while source.next_request().map_err(|error| error.to_string())?.is_some() {}
        Ok(source.volumes().iter().map(|volume| volume.name.to_string()).collect::<Vec<_>>().join(" "))
    };
    assert_eq!(played("apart"), Ok("xvda1 xvdb 259,0 7".into()));
    assert_eq!(played("xvdb, 7, 259,0"), Ok("xvdb 259,0 7".into()));
    let refused = played("xvdb,xvdc");
    assert!(refused.unwrap_err().contains("no volume xvdc in the trace; expected some of xvdb, "));
}

#[test]
fn a_pipe_is_read_once() {
    let mut source = Replay::new(open(&trace(&TWO)), true, None, &Playing::default()).unwrap();
    assert!(source.next_request().unwrap().is_some() && source.next_request().unwrap().is_some());
    assert!(source.next_request().unwrap_err().to_string().contains("--volumes overlaid"));
    let refused = Replay::new(open(&trace(&TWO)), true, None, &Playing { piece_bytes: 4096, ..Playing::default() });
    assert!(refused.err().unwrap().to_string().contains("host.compact"));
}

#[test]
fn pieces_in_use_are_adjacent_and_in_order() {
    // Pieces of 8 sectors: 0 and 100 of volume 1, and 5 of volume 2; a request across two pieces stays one.
    let lines = [(0, 'w', 804, 8, 1), (1, 'r', 2, 4, 1), (2, 'w', 40, 8, 2)];
    let mut source = replay(&trace(&lines), &Playing { piece_bytes: 4096, ..Playing::default() }).unwrap();
    assert_eq!(all(&mut source), [(0, 8 + 4, 1), (1, 2, 1), (2, 2048, 2)]);
    assert_eq!(source.volumes()[0].sectors, 24);
    // The drive needs room for these pieces, not for the addresses of the trace; coarser ones do not recommend
    // themselves.
    let survey = source.survey().unwrap().unwrap();
    assert_eq!((survey.end_bytes, survey.footprint_bytes), (2 << 20, 2 << 20));
    assert!(source.notes()[1].contains("the 4 pieces of 4 KiB"));
}

#[test]
fn requests_of_a_tick_are_spread_over_it() {
    let lines = [
        (0, 'w', 0, 8, 0),
        (0, 'w', 8, 8, 0),
        (0, 'w', 16, 8, 0),
        (600, 'w', 0, 8, 0),
        (900, 'w', 0, 8, 0),
        (900, 'w', 8, 8, 0),
    ];
    let mut source = replay(&trace(&lines), &Playing { spread: true, ..Playing::default() }).unwrap();
    let times: Vec<Nanos> = all(&mut source).iter().map(|request| request.0).collect();
    assert_eq!(times, [0, 100, 200, 600, 900, 1050]);
}

#[test]
fn a_workload_is_played_again_later() {
    let lines = [(5, 'w', 0, 8, 0), (15, 'r', 8, 8, 0), (25, 'w', 16, 16, 0)];
    let mut source = replay(&trace(&lines), &Playing { repeat: Repeat::Times(2), ..Playing::default() }).unwrap();
    let found = all(&mut source);
    assert_eq!(found.iter().map(|request| request.0).collect::<Vec<_>>(), [0, 10, 20, 30, 40, 50]);
    // A run asks again while requests are outstanding.
    assert!(source.next_request().unwrap().is_none());
    assert_eq!(source.notes(), ["the workload was played 2 times (--repeat)"]);
    // A play writes 12 KiB: the drive of 16 KiB is written twice after 8 KiB of the third.
    let playing = Playing { repeat: Repeat::DriveWrites(2.0), drive_bytes: 16 << 10, ..Playing::default() };
    let mut source = replay(&trace(&lines), &playing).unwrap();
    assert_eq!(all(&mut source).len(), 9);
    let mut reads = replay(&trace(&[(0, 'r', 0, 8, 0)]), &playing).unwrap();
    assert!(reads.next_request().unwrap().is_some());
    assert!(reads.next_request().unwrap_err().to_string().contains("writes nothing"));
}

#[test]
fn coarse_clocks_are_noted() {
    let lines: Vec<_> = (0..2000).map(|at| (at / 500, 'w', 8 * at, 8, 0)).collect();
    let mut source = replay(&trace(&lines), &Playing::default()).unwrap();
    all(&mut source);
    assert!(source.notes()[0].contains("2000 requests arrive at 4 different times"));
}

#[test]
fn notations() {
    assert_eq!(Repeat::parse("3"), Ok(Repeat::Times(3)));
    assert_eq!(Repeat::parse("2.5dw"), Ok(Repeat::DriveWrites(2.5)));
    for only in ["3, 7", "xvda1", "259,0", "3-7"] {
        assert!(matches!(Volumes::parse(only), Ok(Volumes::Only(_))), "{only}");
    }
    for wrong in ["", "0", "-1", "dw", "0dw", "nandw", "2x"] {
        assert!(Repeat::parse(wrong).is_err(), "{wrong}");
    }
    for wrong in ["", "3,", ",", "3,,7"] {
        assert!(Volumes::parse(wrong).is_err(), "{wrong}");
    }
}

/// A specification with a rate is played again when its requests have completed; a depth of the host holds for each
/// play.
#[test]
fn jobs_are_played_again() {
    let spec: crate::fio::FioSpec = "rw=write,bs=4k,n=3,iodepth=2,rate_iops=1000".parse().unwrap();
    let open = move || crate::fio::generated(&spec, 1 << 30, 1);
    let playing = Playing { repeat: Repeat::Times(2), ..Playing::default() };
    let mut source = Replay::new(open().unwrap(), false, Some(Box::new(open)), &playing).unwrap();
    let jobs = source.jobs().unwrap();
    assert!(jobs.lift_depths().unwrap());
    let (mut now, mut seen) = (5_000, Vec::new());
    let mut outstanding: u32 = 0;
    loop {
        match jobs.due(now).unwrap() {
            Due::Request(request) => {
                assert_eq!((request.arrival, request.directives.queue), (now, 0));
                seen.push((now / 1000, request.extent.sector));
                outstanding += 1;
            }
            Due::At(time) => now = time,
            Due::Completion => {
                now += 1_500_000;
                (0..std::mem::take(&mut outstanding)).for_each(|_| jobs.completed(&Command::FLUSH, 0));
            }
            Due::Nothing => break,
        }
    }
    assert_eq!(seen, [(5, 0), (1005, 8), (2005, 16), (3505, 0), (4505, 8), (5505, 16)]);
    assert!(source.notes()[0].contains("played 2 times"), "{:?}", source.notes());
}

/// A play that begins in the middle has the requests before at its end, at the same addresses.
#[test]
fn a_start_turns_the_trace() {
    let lines = [(0, 'w', 8, 8, 7), (10, 'w', 5000, 8, 7), (20, 'r', 8, 8, 3), (30, 'w', 16, 8, 7)];
    let playing = |start, repeat| Playing { start, repeat, ..Playing::default() };
    let mut source = replay(&trace(&lines), &playing(0.5, Repeat::Once)).unwrap();
    let turned = [(0, 3 * 2048 + 8, 3), (10, 16, 7), (20, 8, 7), (30, 5000, 7)];
    assert_eq!(all(&mut source), turned);
    assert_eq!(source.expected_requests(), None, "the format does not say");
    assert!(source.notes().iter().any(|note| note.contains("began at its request 3")), "{:?}", source.notes());
    let mut twice = replay(&trace(&lines), &playing(0.5, Repeat::Times(2))).unwrap();
    let found = all(&mut twice);
    assert_eq!(found[..4], turned);
    assert_eq!(found[4..], turned.map(|(time, sector, owner)| (time + 40, sector, owner)));
    let whole = all(&mut replay(&trace(&lines), &Playing::default()).unwrap());
    assert_eq!(all(&mut replay(&trace(&lines), &playing(0.2, Repeat::Once)).unwrap()), whole);
    let pipe = Replay::new(open(&trace(&lines)), true, None, &playing(0.5, Repeat::Once));
    assert!(pipe.map(|_| ()).unwrap_err().to_string().contains("--start: a pipe is read once; expected a file"));
}
