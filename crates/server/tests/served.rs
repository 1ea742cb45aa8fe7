//! The service: on a free port, used by a small client over real sockets, ended as by a signal or after the last
//! client. `tests/python/test_serve.py` tests signals and results of the command.

mod client;

use client::{Client, PATIENCE, Random, Server, drive, read_array, settings, summary};
use palimpsest_lab::error::Error;
use palimpsest_server::{serve, wire};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Random requests against an array, at byte granularity, with reconnects. A trim of the array zeroes whole units of
/// `unit` bytes only.
fn against_array(ftl: &str, unit: u64, more: &[&str]) -> serde_json::Value {
    let server = Server::start(&[&[format!("--ftl={ftl}").as_str()][..], more].concat());
    let mut client = server.client();
    let mut array = vec![0; client.bytes as usize];
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for step in 0..2500 {
        if step % 500 == 499 {
            client = server.client();
        }
        // A drive with a time takes whole sectors.
        let grain = if random.below(4) == 0 && !more.contains(&"--clock=virtual") { 1 } else { 512 };
        let offset = random.below(client.bytes / grain) * grain;
        let length = ((1 + random.below(20_000 / grain)) * grain).min(client.bytes - offset);
        let range = offset as usize..(offset + length) as usize;
        match random.below(20) {
            0 => drop(client.request(wire::CMD_FLUSH, 0, 0, &[]).unwrap()),
            1 => {
                client.request(wire::CMD_TRIM, offset, length as u32, &[]).unwrap();
                let (from, to) = (offset.div_ceil(unit) * unit, (offset + length) / unit * unit);
                array.get_mut(from as usize..to as usize).unwrap_or_default().fill(0);
            }
            2..8 => assert!(client.read(offset, length as u32) == array[range.clone()], "{range:?} at step {step}"),
            choice => {
                let bytes = random.bytes(length);
                client.write(offset, &bytes, u16::from(choice == 8));
                array[range].copy_from_slice(&bytes);
            }
        }
    }
    let whole = client.read(0, client.bytes as u32);
    assert!(whole == array, "the drive differs at the end");
    summary(server.terminate())
}

#[test]
fn random_requests_against_an_array() {
    let summary = against_array("page", 8192, &["--seed=3"]);
    assert_eq!((&summary["ftl"], &summary["payload"], &summary["seed"]), (&"page".into(), &"bytes".into(), &3.into()));
    assert!(summary["gc"]["runs"].as_u64() > Some(0));
    assert!(summary["requests"]["write"].as_u64() > Some(1000));
    assert!(summary["requests"]["flush"].as_u64() > Some(100), "durable writes flush");
    assert!(summary["latency_ns"].is_null());
    let summary = against_array("subpage", 4096, &["--clock=virtual"]);
    assert!(summary["latency_ns"]["write"]["mean"].as_u64() > Some(0));
}

#[test]
fn malformed_clients_leave_the_server_to_others() {
    let mut server = Server::start(&[]);
    let mut stranger = server.connect();
    stranger.write_all(b"GET / HTTP/1.1\r\nHost: drive\r\n\r\n").unwrap();
    assert!(server.message().contains("client flags"));
    let mut rest = Vec::new();
    stranger.take(1 << 20).read_to_end(&mut rest).or_else(reset).unwrap();
    assert_eq!(rest.len(), 18, "a greeting, then the end");

    let mut broken = server.client();
    broken.stream.write_all(&[0; 28]).unwrap();
    assert!(server.message().contains("magic number"));

    let mut hasty = server.client();
    hasty.stream.write_all(&wire::REQUEST_MAGIC.to_be_bytes()).unwrap();
    drop(hasty);
    assert!(server.message().contains("in the middle of a message"));

    let mut client = server.client();
    let beyond = client.bytes;
    assert_eq!(client.request(wire::CMD_READ, beyond, 512, &[]), Err(wire::EINVAL));
    assert_eq!(client.request(wire::CMD_WRITE, beyond - 1, 2, b"ab"), Err(wire::ENOSPC));
    assert_eq!(client.read(0, 512), [0; 512]);
    assert_eq!(summary(server.terminate())["requests"]["read"], 1);
}

/// A connection closed with bytes unread may be reset.
fn reset(error: io::Error) -> io::Result<usize> {
    if error.kind() == io::ErrorKind::ConnectionReset { Ok(0) } else { Err(error) }
}

#[test]
fn clients_at_the_same_time_write_atomically() {
    const LENGTH: usize = 3 * 8192;
    let server = Server::start(&["--once"]);
    let mut watcher = server.client();
    std::thread::scope(|scope| {
        for id in 1..=3 {
            let mut client = server.client();
            scope.spawn(move || (0..100).for_each(|_| client.write(100, &[id; LENGTH], 0)));
        }
        for _ in 0..100 {
            let seen = watcher.read(100, LENGTH as u32);
            assert!(seen.iter().all(|&byte| byte == seen[0]), "a write was seen half done");
        }
    });
    watcher.request(wire::CMD_FLUSH, 0, 0, &[]).unwrap();
    drop(watcher);
    let summary = summary(server.wait());
    assert_eq!(summary["requests"]["flush"], 1);
}

#[test]
fn a_socket_in_the_file_system() {
    let path = std::env::temp_dir().join(format!("palimpsest-server-test-{}", std::process::id()));
    let server = Server::start(&["--once", &format!("--listen=unix:{}", path.display())]);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "it is for this user alone");
    let mut client = Client::begin(UnixStream::connect(&path).unwrap());
    client.write(0, b"hello", 0);
    assert_eq!(client.read(0, 6), *b"hello\0");
    drop(client);
    assert!(summary(server.wait())["host"]["bytes_written"].as_u64() > Some(0));
    assert!(!path.exists(), "the socket was left behind");
}

#[test]
fn a_drive_that_dies_answers_with_an_error() {
    let mut server = Server::start(&["--set=faults.initial_bad=0%", "--set=faults.erase_fail=100%"]);
    let mut client = server.client();
    let mut random = Random(1);
    let mut held = vec![0; (client.bytes / 8192) as usize];
    let failed = (0..20_000).find_map(|number| {
        let (page, byte) = (random.below(client.bytes / 8192), (number % 255 + 1) as u8);
        match client.request(wire::CMD_WRITE, page * 8192, 8192, &[byte; 8192]) {
            Ok(_) => {
                held[page as usize] = byte;
                None
            }
            Err(error) => Some((error, page as usize, byte)),
        }
    });
    let (error, failed, byte) = failed.expect("every erase fails");
    assert_eq!(error, wire::EIO);
    assert!(server.message().contains("end of its life"));
    for (page, &before) in held.iter().enumerate() {
        for bytes in client.read(page as u64 * 8192, 8192).chunks(4096) {
            let right = bytes[0] == before || (page == failed && bytes[0] == byte);
            assert!(right && bytes.iter().all(|other| *other == bytes[0]), "page {page} can still be read");
        }
    }
    assert_eq!(client.request(wire::CMD_WRITE, 0, 512, &[1; 512]), Err(wire::EIO));
    assert_eq!(summary(server.terminate())["lifetime"]["worn_out"], true);
}

/// A client, as soon as there is a place for one.
fn client_in_time(server: &Server) -> Client<TcpStream> {
    for _ in 0..200 {
        let mut stream = server.connect();
        if stream.peek(&mut [0; 1]).is_ok_and(|read| read == 1) {
            return Client::begin(stream);
        }
        let _ = stream.flush();
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the server is locked");
}

#[test]
fn clients_that_say_nothing_more_do_not_lock_others_out() {
    let server = Server::start(&["--timeout=200ms"]);
    let slow: Vec<TcpStream> = (0..64)
        .map(|_| {
            let mut stream = server.connect();
            stream.write_all(&[0]).unwrap();
            stream
        })
        .collect();
    let mut client = client_in_time(&server);
    assert_eq!(client.read(0, 512), [0; 512]);
    drop(slow);
    // In the middle of a message, too; an idle client loses the place to another.
    client.stream.write_all(&[0x25]).unwrap();
    assert_eq!(client.stream.read(&mut [0; 1]).unwrap(), 0, "the connection is closed");
    let idle: Vec<_> = (0..64).map(|_| client_in_time(&server)).collect();
    let mut last = client_in_time(&server);
    assert_eq!(last.read(0, 512), [0; 512]);
    // Any of the clients may have been idle for longest. The thread of that client closes the connection, perhaps after
    // the last one is served.
    idle.iter().for_each(|client| client.stream.set_nonblocking(true).unwrap());
    let is_gone = |client: &Client<TcpStream>| client.stream.peek(&mut [0; 1]).is_ok_and(|read| read == 0);
    let begin = Instant::now();
    while !idle.iter().any(is_gone) {
        assert!(begin.elapsed() < PATIENCE, "none has left its place");
        std::thread::sleep(Duration::from_millis(5));
    }
    summary(server.terminate());
}

/// Once wrong: clients without a handshake, and idle ones, locked new ones out until `--timeout`.
#[test]
fn idle_connections_leave_their_places_at_once() {
    let server = Server::start(&[]);
    let silent: Vec<TcpStream> = (0..200).map(|_| server.connect()).collect();
    let begin = Instant::now();
    let mut client = server.client();
    assert_eq!(client.read(0, 512), [0; 512]);
    drop(silent);
    let idle: Vec<_> = (0..63).map(|_| server.client()).collect();
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(client.read(0, 512), [0; 512], "it was idle for as long, and has its place");
    let mut last = server.client();
    assert_eq!(last.read(0, 512), [0; 512]);
    assert_eq!(client.read(0, 512), [0; 512], "one that was idle for longer left");
    assert!(begin.elapsed() < Duration::from_secs(20), "the timeout is 30 s");
    drop(idle);
    summary(server.terminate());
}

#[test]
fn the_socket_of_a_server_that_was_killed_is_replaced() {
    let path = std::env::temp_dir().join(format!("palimpsest-server-stale-{}", std::process::id()));
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let place = format!("--listen=unix:{}", path.display());
    let server = Server::start(&[&place]);
    let client = Client::begin(UnixStream::connect(&path).unwrap());
    assert!(refused(&[&place]).contains("in use"), "a server listens there");
    drop(client);
    summary(server.terminate());
    std::fs::write(&path, "precious").unwrap();
    assert!(refused(&[&place]).contains("exists"));
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_power_cut_ends_the_connections() {
    let mut server = Server::start(&["--set=faults.power_cut_at=40", "--once"]);
    let (mut idle, mut client) = (server.client(), server.client());
    let refused = (0..1000).find_map(|block| client.request(wire::CMD_WRITE, block * 8192, 8192, &[1; 8192]).err());
    assert_eq!(refused, Some(wire::EIO));
    assert!(server.message().contains("the power failed, and the drive has recovered; 2 connections end"));
    for stream in [&mut idle.stream, &mut client.stream] {
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0, "the connection is closed");
    }
    let mut again = server.client();
    assert_eq!(again.read(0, 8192), [1; 8192]);
    drop(again);
    let summary = summary(server.wait());
    assert_eq!((&summary["power"]["cuts"], &summary["power"]["unflushed_writes_lost"]), (&1.into(), &0.into()));
}

/// The error of a service that does not begin.
fn refused(options: &[&str]) -> String {
    let ended = drive(options).and_then(|(resolved, run)| {
        serve(&resolved, &run, &settings(options), None, &|_| {}, &mut |_| ControlFlow::Break(()))
    });
    match ended.map(|_| ()) {
        Err(error @ Error::Input { .. }) => error.to_string(),
        other => panic!("{options:?}: {other:?}"),
    }
}

#[test]
fn mistakes_of_the_user_are_one_line() {
    for options in [&["--ssd=nothing"][..], &["--ftl=a b"], &["--listen=nowhere"], &["--set=part.nop"]] {
        let message = refused(options);
        assert!(message.lines().count() == 1 && message.contains("expected"), "{message}");
    }
}

#[test]
fn what_runs_beside_ends_the_service() {
    let server = Server::start(&["--run=test $uri != none && exit 3"]);
    assert_eq!(server.wait().map_err(|error| error.to_string()).unwrap().status, Some(3));
    let server = Server::start(&["--run=exec sleep 1000"]);
    assert_eq!(server.terminate().map_err(|error| error.to_string()).unwrap().status, None, "it ends with the service");
}

#[test]
fn several_places_are_one_drive() {
    let path = std::env::temp_dir().join(format!("palimpsest-server-both-{}", std::process::id()));
    let server = Server::start(&["--listen=127.0.0.1:0", &format!("--listen=unix:{}", path.display())]);
    server.client().write(0, b"one drive", 0);
    assert_eq!(Client::begin(UnixStream::connect(&path).unwrap()).read(0, 9), b"one drive");
    summary(server.terminate());
    assert!(!path.exists());
}

#[test]
fn many_requests_are_answered_in_order() {
    let server = Server::start(&[]);
    let mut client = server.client();
    let mut message = Vec::new();
    let mut ask = |command: u16, offset: u64, bytes: &[u8]| {
        message.extend(wire::REQUEST_MAGIC.to_be_bytes());
        message.extend([0, 0]);
        message.extend(command.to_be_bytes());
        message.extend([offset, offset].map(u64::to_be_bytes).concat());
        message.extend(4096u32.to_be_bytes());
        message.extend(bytes);
    };
    for number in 0..200u64 {
        ask(wire::CMD_WRITE, number * 4096, &[number as u8; 4096]);
        ask(wire::CMD_READ, number * 4096, &[]);
    }
    std::thread::scope(|scope| {
        let mut writer = client.stream.try_clone().unwrap();
        scope.spawn(move || writer.write_all(&message).unwrap());
        for number in 0..200u64 {
            for bytes in [0, 4096] {
                let reply: [u8; 16] = read_array(&mut client.stream).unwrap();
                assert_eq!(reply[4..], [&[0; 4][..], &(number * 4096).to_be_bytes()].concat());
                assert_eq!(wire::read_bytes(&mut client.stream, bytes).unwrap(), vec![number as u8; bytes as usize]);
            }
        }
    });
    assert_eq!(summary(server.terminate())["requests"]["write"], 200);
}

/// Sends reads of `places`, (offset, length) each, with their numbers as cookies.
fn ask_for_reads(stream: &mut impl Write, places: &[(u64, u32)]) {
    let mut message = Vec::new();
    for (number, &(offset, length)) in (0u64..).zip(places) {
        message.extend(wire::REQUEST_MAGIC.to_be_bytes());
        message.extend([0, 0]);
        message.extend(wire::CMD_READ.to_be_bytes());
        message.extend([number, offset].map(u64::to_be_bytes).concat());
        message.extend(length.to_be_bytes());
    }
    stream.write_all(&message).unwrap();
}

/// The next answer to a read of `places`: index and bytes.
fn next_read(stream: &mut impl Read, places: &[(u64, u32)]) -> (usize, Vec<u8>) {
    let reply: [u8; 16] = read_array(stream).unwrap();
    assert_eq!(reply[4..8], [0; 4]);
    let number = u64::from_be_bytes(reply[8..].try_into().unwrap()) as usize;
    (number, wire::read_bytes(stream, places[number].1).unwrap())
}

/// A read that a client has not taken shows one moment, whatever others write meanwhile.
#[test]
fn large_reads_on_their_way_are_not_overwritten() {
    const UNIT: usize = 4096;
    const LENGTH: usize = 32 * UNIT;
    let server = Server::start(&[]);
    let mut watcher = server.client();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut client = server.client();
        let done = &done;
        scope.spawn(move || {
            // All get the number of the turn, and every third the next, the last first.
            for turn in 0u8.. {
                client.write(0, &[turn; LENGTH], 0);
                (0..32).rev().step_by(3).for_each(|unit| client.write(unit * UNIT as u64, &[turn + 1; UNIT], 0));
                if done.load(Ordering::SeqCst) || turn == 250 {
                    return;
                }
            }
        });
        let places = [(0, LENGTH as u32), (0, LENGTH as u32 / 2), (4096, LENGTH as u32 - 4096), (512, 65_536)];
        for _ in 0..40 {
            ask_for_reads(&mut watcher.stream, &places.repeat(4));
            std::thread::sleep(Duration::from_millis(1));
            for _ in 0..4 * places.len() {
                let (number, bytes) = next_read(&mut watcher.stream, &places.repeat(4));
                let (first, _) = places[number % places.len()];
                let unit_of = |at: usize| (first as usize + at) / UNIT;
                let mut units = BTreeMap::new();
                for (at, &byte) in bytes.iter().enumerate() {
                    let seen = *units.entry(unit_of(at)).or_insert(byte);
                    assert_eq!(seen, byte, "a write of unit {} was seen half done", unit_of(at));
                }
                // The newest of the last writes are at the end.
                let third: Vec<u8> =
                    units.iter().filter(|(unit, _)| (31 - **unit) % 3 == 0).map(|(_, &byte)| byte).collect();
                assert!(third.is_sorted(), "{third:?}");
                let others: Vec<u8> =
                    units.iter().filter(|(unit, _)| (31 - **unit) % 3 != 0).map(|(_, &byte)| byte).collect();
                assert!(others.iter().all(|&byte| byte == others[0]), "a write of all was seen half done: {others:?}");
            }
        }
        done.store(true, Ordering::SeqCst);
    });
    summary(server.terminate());
}

/// Large requests are served while the next are received; small ones come between.
#[test]
fn large_requests_are_in_flight_together() {
    let server = Server::start(&[]);
    let mut client = server.client();
    let (mut random, mut message, mut array) = (Random(5), Vec::new(), vec![0; client.bytes as usize]);
    let (mut asked, mut from) = (0u64, 0);
    let sizes = [4096, 32 << 10, 128 << 10, 128 << 10, 128 << 10, 256 << 10, 300 << 10, 34_304];
    while from < client.bytes {
        let length = sizes[random.below(8) as usize].min(client.bytes - from);
        let bytes = random.bytes(length);
        array[from as usize..(from + length) as usize].copy_from_slice(&bytes);
        message.extend(wire::REQUEST_MAGIC.to_be_bytes());
        message.extend([0, 0]);
        message.extend(wire::CMD_WRITE.to_be_bytes());
        message.extend([asked, from].map(u64::to_be_bytes).concat());
        message.extend((length as u32).to_be_bytes());
        message.extend(bytes);
        (asked, from) = (asked + 1, from + length);
    }
    assert!(asked > 20);
    std::thread::scope(|scope| {
        let mut writer = client.stream.try_clone().unwrap();
        scope.spawn(move || {
            for piece in message.chunks(50_000) {
                writer.write_all(piece).unwrap();
            }
        });
        let mut answered: Vec<u64> = (0..asked)
            .map(|_| {
                let reply: [u8; 16] = read_array(&mut client.stream).unwrap();
                assert_eq!(reply[4..8], [0; 4]);
                u64::from_be_bytes(reply[8..].try_into().unwrap())
            })
            .collect();
        answered.sort_unstable();
        assert!(answered.into_iter().eq(0..asked), "each is answered once");
    });
    assert!(client.read(0, client.bytes as u32) == array);
    let mut places = Vec::new();
    for _ in 0..100 {
        let length = sizes[random.below(8) as usize] - random.below(2) * random.below(4096);
        places.push((random.below(client.bytes - length), length as u32));
    }
    ask_for_reads(&mut client.stream, &places);
    let mut answered = BTreeSet::new();
    for _ in 0..places.len() {
        let (number, bytes) = next_read(&mut client.stream, &places);
        assert!(answered.insert(number) && array[places[number].0 as usize..][..bytes.len()] == bytes, "read {number}");
    }
    let summary = summary(server.terminate());
    assert_eq!(summary["requests"]["write"].as_u64(), Some(asked));
}

#[test]
fn zeroes_unmap_units_where_no_power_cut_can_bring_them_back() {
    for (options, trims) in [(&[][..], 1), (&["--set=faults.power_cut_at=1000000"], 0)] {
        let server = Server::start(&[&["--ftl=page"][..], options].concat());
        let mut client = server.client();
        client.write(0, &[7; 5 * 8192], 0);
        client.request(wire::CMD_WRITE_ZEROES, 100, 3 * 8192, &[]).unwrap();
        let expected: Vec<u8> =
            (0..5 * 8192).map(|at| if (100..100 + 3 * 8192).contains(&at) { 0 } else { 7 }).collect();
        assert!(client.read(0, 5 * 8192) == expected);
        client.request(wire::CMD_WRITE_ZEROES | wire::CMD_FLAG_NO_HOLE << 8, 0, 8192, &[]).unwrap();
        assert!(client.read(0, 8192).iter().all(|&byte| byte == 0));
        assert_eq!(client.request(wire::CMD_WRITE_ZEROES, client.bytes, 512, &[]), Err(wire::ENOSPC));
        assert_eq!(summary(server.terminate())["requests"]["trim"], trims, "{options:?}");
    }
}

/// Status and body of the page's answer.
fn asked(address: &str, path: &str, host: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().into(), body.into())
}

#[test]
fn figures_are_shown_while_it_is_served() {
    for clock in [&[][..], &["--clock=virtual"]] {
        let (server, address) = Server::start_with_page(&[&["--page=127.0.0.1:0", "--ftl=page"], clock].concat());
        let mut client = server.client();
        client.write(0, &[1; 65536], 0);
        client.read(0, 8192);
        let (status, live) = asked(&address, "/live.json", "localhost");
        assert_eq!(status, "HTTP/1.1 200 OK");
        let live: serde_json::Value = serde_json::from_str(&live).unwrap();
        assert_eq!((&live["requests"]["write"], &live["connections"]), (&1.into(), &1.into()));
        assert_eq!(live["latency_ns"]["write"].is_null(), clock.is_empty());
        let blocks = &live["blocks"];
        assert_eq!(blocks["state"].as_array().map(Vec::len), blocks["valid_percent"].as_array().map(Vec::len));
        assert!(blocks["valid_percent"].as_array().unwrap().iter().any(|share| share.as_u64() > Some(0)));
        let smart: serde_json::Value = serde_json::from_str(&asked(&address, "/smart.json", "127.0.0.1").1).unwrap();
        assert_eq!((&smart["host_read_commands"], &smart["data_units_written"]), (&1.into(), &1.into()));
        let metrics = asked(&address, "/metrics", "[::1]:9").1;
        assert!(metrics.contains("palimpsest_host_bytes_total{way=\"written\"} 65536\n"), "{metrics}");
        assert!(asked(&address, "/", "localhost").1.starts_with("<!doctype html>"));
        assert_eq!(asked(&address, "/other", "localhost").0, "HTTP/1.1 404 Not Found");
        assert_eq!(asked(&address, "/", "example.com").0, "HTTP/1.1 403 Forbidden", "a page of another site");
        // A silent client blocks neither the drive nor, for long, the page.
        let silent = TcpStream::connect(&address).unwrap();
        assert_eq!(client.read(0, 512), [1; 512]);
        drop(silent);
        summary(server.terminate());
    }
    assert!(refused(&["--page=0.0.0.0:0"]).contains("other machines could read the page"));
}
