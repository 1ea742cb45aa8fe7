//! The times of the flash operations of single requests, at every preset: sums of part timings, to the nanosecond, in
//! the columns that users get. `timing.rs` checks the resulting latencies.

use crate::bench::{Run, drive, small};
use palimpsest_lab::config::{Resolved, ssd_presets};
use palimpsest_lab::metrics::operations::{Operations, TimedRequests};
use palimpsest_lab::run::{Detail, Window};
use palimpsest_lab::units::Nanos;

fn presets() -> Vec<Resolved> {
    let sets = "ftl.name=page buffer.ack=program part.t_program_high=1ms part.t_program=1ms part.t_read=50us \
                part.t_read_high=50us";
    ssd_presets().into_iter().map(|preset| small(preset.name, sets)).collect()
}

/// Time of a page between controller and die.
fn page_transfer(ssd: &Resolved) -> i64 {
    let part = &ssd.drive.part;
    let words = part.t_dma_words.get((part.page_bytes / part.word_bytes) as usize - 1);
    signed(words.copied().unwrap_or_else(|| part.bus_rate.time_for(u64::from(part.page_bytes))))
}

fn signed(time: Nanos) -> i64 {
    time as i64
}

fn timeline(run: &Run<'_>) -> (Operations, TimedRequests) {
    let run = Run { operations: Some(Window::Requests { first: 1, last: 4 }), ..run.clone() };
    let Detail { operations: Some(operations), requests: Some(requests), .. } = run.outcome(false).detail else {
        panic!("a timeline was asked for")
    };
    (operations, requests)
}

/// Each request starts at the end of the previous one. The timeline omits the last request of the warm-up, because that
/// request is running when the measurement starts.
#[test]
fn page_writes_and_reads() {
    for ssd in presets() {
        let (part, page) = (&ssd.drive.part, page_transfer(&ssd));
        let (command, bytes) = (signed(part.t_command), part.page_bytes);
        let (program, sense) = (signed(part.t_program), signed(part.t_read));
        let link = signed(ssd.drive.host.link_rate.time_for(u64::from(bytes)));
        let loaded = (command + page).max(link);

        let mut write = Run::new(&ssd, &format!("rw=write,bs={bytes},n=9"));
        write.warmup = 2;
        let (operations, requests) = timeline(&write);
        let starts: Vec<i64> = (1..5).map(|number| number * (loaded + program)).collect();
        let after = |time: i64| -> Vec<i64> { starts.iter().map(|start| start + time).collect() };
        let name = &ssd.drive.name;
        assert_eq!(
            (&operations.operation[..], &operations.request[..]),
            (&[1, 2, 3, 4][..], &[1, 2, 3, 4][..]),
            "{name}"
        );
        assert_eq!(operations.kind, ["program"; 4]);
        assert_eq!(operations.cause, ["host"; 4]);
        assert_eq!(operations.bytes, [bytes; 4]);
        for column in [&operations.planned_ns, &operations.ready_ns, &operations.start_ns, &requests.arrival_ns] {
            assert_eq!(*column, starts, "{name}");
        }
        assert_eq!(operations.transfer_start_ns, after(command).into_iter().map(Some).collect::<Vec<_>>(), "{name}");
        assert_eq!(operations.array_start_ns, after(loaded), "{name}");
        assert_eq!(operations.end_ns, after(loaded + program), "{name}");
        assert_eq!(requests.completed_ns, after(loaded + program).into_iter().map(Some).collect::<Vec<_>>(), "{name}");
        assert_eq!(operations.delivered_ns, [None; 4]);

        let mut read = Run::new(&ssd, &format!("rw=read,bs={bytes},n=3"));
        read.precondition = "fill:5%";
        let (operations, requests) = timeline(&read);
        let (first, last) = (command + sense, command + sense + page);
        let delivered = last.max(first + link);
        assert_eq!((operations.start_ns[0], operations.array_start_ns[0]), (0, command), "{name}");
        assert_eq!((operations.array_end_ns[0], operations.transfer_start_ns[0]), (first, Some(first)), "{name}");
        assert_eq!((operations.end_ns[0], operations.delivered_ns[0]), (last, Some(delivered)), "{name}");
        assert_eq!((requests.completed_ns[0], operations.planned_ns[1]), (Some(delivered), delivered), "{name}");
        assert_eq!(operations.kind.len(), 3, "the workload ends before the window");
    }
}

/// A write of a part of a page waits for the read of the whole page: the write's gate.
#[test]
fn a_small_write_follows_its_read() {
    for ssd in presets() {
        let part = &ssd.drive.part;
        let mut write = Run::new(&ssd, &format!("rw=randwrite,bs=512,size={},n=2", part.page_bytes));
        write.precondition = "fill:1%";
        let (operations, _) = timeline(&write);
        let arrived = signed(part.t_command + part.t_read) + page_transfer(&ssd);
        let name = &ssd.drive.name;
        assert_eq!(operations.cause, ["rmw", "host", "rmw", "host"], "{name}");
        assert_eq!(operations.follows, [vec![], vec![1], vec![], vec![3]], "{name}");
        assert_eq!((operations.planned_ns[1], operations.ready_ns[1]), (0, arrived), "{name}");
        assert_eq!(operations.start_ns[1], arrived, "{name}");
        assert_eq!(operations.request, [1, 1, 2, 2]);
    }
}

/// A write of one plane waits for the erase that makes room: the erase belongs to the request that needs the block.
#[test]
fn an_erase_is_in_the_plan_of_the_write_behind_it() {
    let ssd = drive(
        "spread-16g",
        "ftl.name=page buffer.ack=program ssd.channels=1 ssd.chips_per_channel=1 ssd.blocks_per_plane=32 \
         part.pages_per_block=16 ssd.over_provisioning=28% ftl.streams=1 part.t_command=100ns",
    );
    let mut run = Run::new(&ssd, &format!("rw=write,bs={},n=400", ssd.drive.part.page_bytes));
    run.precondition = "fill:100%,random:0x";
    run.operations = Some(Window::Requests { first: 1, last: 400 });
    let operations = run.outcome(false).detail.operations.expect("a timeline was asked for");
    let erases: Vec<usize> = (0..operations.kind.len()).filter(|&at| operations.kind[at] == "erase").collect();
    assert!(erases.len() > 3, "{} erases", erases.len());
    for at in erases {
        let took = signed(ssd.drive.part.t_command + ssd.drive.part.t_erase);
        assert_eq!(operations.end_ns[at] - operations.start_ns[at], took);
        assert_eq!((operations.page[at], operations.transfer_start_ns[at], operations.cause[at]), (None, None, "gc"));
        assert!(operations.request[at] > 0);
    }
}
