//! A served drive with a clock: the latencies of a run, held replies, power cuts and clients.

mod client;

use client::{Random, Server, drive, summary};
use palimpsest_lab::error::Result;
use palimpsest_lab::host::request::{Arrivals, Command, Extent, Request, RequestKind, Source};
use palimpsest_lab::run::run;
use palimpsest_server::wire;
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::time::Instant;

/// Requests of a run.
struct Listed(std::vec::IntoIter<(u16, u64)>, u32);

impl Source for Listed {
    fn next_request(&mut self) -> Result<Option<Request>> {
        let next = self.0.next();
        Ok(next.map(|(command, offset)| {
            let kind = if command == wire::CMD_READ { RequestKind::Read } else { RequestKind::Write };
            Request::new(0, Command::new(kind, Extent { sector: offset / 512, sectors: 8 }))
        }))
    }

    fn place(&self) -> String {
        "here".into()
    }

    fn arrivals(&self) -> Arrivals {
        Arrivals::Closed { depth: self.1 }
    }
}

/// A program that keeps requests in flight sees the latencies of such a run.
#[test]
fn a_virtual_clock_gives_the_latencies_of_a_run() {
    for depth in [1u32, 4, 16, 32] {
        let options = ["--ftl=page", "--clock=virtual"];
        let (resolved, run_options) = drive(&options).unwrap();
        let mut random = Random(77);
        let blocks = resolved.drive.logical_bytes() / 4096;
        let command = |random: &mut Random| if random.below(2) == 0 { wire::CMD_READ } else { wire::CMD_WRITE };
        let commands: Vec<_> = (0..1500).map(|_| (command(&mut random), random.below(blocks) * 4096)).collect();
        let mut source = Listed(commands.clone().into_iter(), depth);
        let expected = run(&resolved, &mut source, &run_options, &mut |_| ControlFlow::Continue(())).unwrap().summary;
        let expected = serde_json::to_value(expected).unwrap();
        let server = Server::start(&options);
        server.client().keep_in_flight(&commands, depth as usize);
        let found = summary(server.terminate());
        assert_eq!(found["requests"], expected["requests"]);
        for kind in ["read", "write"] {
            for figure in ["mean", "p50", "p99"] {
                let of = |summary: &serde_json::Value| summary["latency_ns"][kind][figure].as_f64().unwrap();
                let (found, expected) = (of(&found), of(&expected));
                assert!(
                    (found - expected).abs() <= expected * 0.05,
                    "{depth} in flight, {kind} {figure}: {found}, {expected}"
                );
            }
        }
    }
}

/// No reply comes early: the wall clock shows at least the drive's time.
#[test]
fn a_paced_clock_holds_replies() {
    for (clock, scale) in [("--clock=paced", 1.0), ("--clock=scaled:4", 4.0)] {
        let server = Server::start(&["--ftl=page", "--set=buffer.ack=program", clock]);
        let mut client = server.client();
        let begin = Instant::now();
        (0..40).for_each(|number| client.write(number * 8192, &[1; 8192], 0));
        let took = begin.elapsed().as_nanos() as f64;
        let summary = summary(server.terminate());
        let drive = summary["latency_ns"]["write"]["mean"].as_f64().unwrap() * 40.0 * scale;
        assert!(drive > 40.0 * 200_000.0 * scale && took >= drive * 0.999, "{took} ns for {drive} ns of the drive");
        let notes = summary["notes"].to_string();
        assert!(notes.contains("40 completions were late by"), "{notes}");
    }
}

#[test]
fn a_drive_with_a_time_takes_whole_sectors_and_zeroes() {
    for options in
        [&["--ftl=page", "--clock=virtual"][..], &["--ftl=page", "--clock=virtual", "--set=faults.power_cut_at=9999"]]
    {
        let server = Server::start(options);
        let mut client = server.client();
        client.write(0, &[7; 8 << 16], 1);
        assert_eq!(client.request(wire::CMD_READ, 1, 512, &[]), Err(wire::EINVAL));
        assert_eq!(client.request(wire::CMD_WRITE, 0, 5, b"abcde"), Err(wire::EINVAL));
        client.request(wire::CMD_WRITE_ZEROES | wire::CMD_FLAG_FUA << 8, 512, 6 << 16, &[]).unwrap();
        client.request(wire::CMD_WRITE_ZEROES, 7 << 16, 8192, &[]).unwrap();
        client.request(wire::CMD_TRIM, 1, 100, &[]).unwrap();
        let zero = |at: usize| (512..512 + (6 << 16)).contains(&at) || (7 << 16..(7 << 16) + 8192).contains(&at);
        let expected: Vec<u8> = (0..8 << 16).map(|at| if zero(at) { 0 } else { 7 }).collect();
        assert!(client.read(0, 8 << 16) == expected);
        // One flush follows the zeroes with FUA; the write with FUA needs none.
        assert_eq!(summary(server.terminate())["requests"]["flush"], 1, "{options:?}");
    }
}

#[test]
fn a_power_cut_refuses_what_is_in_flight() {
    let mut server = Server::start(&["--clock=virtual", "--set=faults.power_cut_at=40", "--once"]);
    let mut client = server.client();
    let refused = (0..1000).find_map(|block| client.request(wire::CMD_WRITE, block * 8192, 8192, &[1; 8192]).err());
    assert_eq!(refused, Some(wire::EIO));
    assert!(server.message().contains("the power failed, and the drive has recovered; 1 connections end"));
    assert_eq!(client.stream.read(&mut [0; 1]).unwrap(), 0, "the connection is closed");
    let mut again = server.client();
    assert_eq!(again.read(0, 8192).len(), 8192);
    drop(again);
    assert_eq!(summary(server.wait())["power"]["cuts"], 1);
}

#[test]
fn a_client_that_takes_no_replies_makes_no_other_wait() {
    let server = Server::start(&["--clock=virtual", "--timeout=500ms"]);
    let mut deaf = server.client();
    let mut message = Vec::new();
    for _ in 0..64 {
        message.extend(wire::REQUEST_MAGIC.to_be_bytes());
        message.extend([0; 12]);
        message.extend(0u64.to_be_bytes());
        message.extend((1u32 << 20).to_be_bytes());
    }
    deaf.stream.write_all(&message).unwrap();
    let mut client = server.client();
    for _ in 0..20 {
        assert_eq!(client.read(0, 512), [0; 512]);
    }
    drop(client);
    summary(server.terminate());
}
