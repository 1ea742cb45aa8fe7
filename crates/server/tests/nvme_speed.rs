//! The server's CPU time for a request by NVMe/TCP and by NBD: the same drive, the same 32 requests in flight.
//!
//! Run alone, in a release: `cargo test --release -p palimpsest-server --test nvme_speed -- --ignored --nocapture`.
//! Writes of 128 KiB are beyond a command capsule: the target asks for their data.

mod client;

use client::host::{Host, capsule};
use client::{Client, Random, Server, read_array};
use palimpsest_server::wire;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

const BLOCK: usize = 4096;
const DEPTH: usize = 32;
/// Bytes and number of requests.
const LOADS: [(usize, usize); 2] = [(BLOCK, 100_000), (128 << 10, 20_000)];
/// Most bytes in a command capsule.
const IN_CAPSULE: usize = 16 << 10;

/// CPU nanoseconds of the threads of this process, without the calling thread.
fn server_ns() -> u64 {
    let ns = |text: String| text.split(' ').next().and_then(|first| first.parse::<u64>().ok()).unwrap_or(0);
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let all = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("schedstat")).ok());
    let all: u64 = all.map(ns).sum();
    all - ns(fs::read_to_string("/proc/thread-self/schedstat").unwrap())
}

/// Keeps a request of each of `blocks` in flight until all are answered; `answer` receives an answer.
fn keep_in_flight(
    stream: &mut TcpStream,
    blocks: &[u64],
    message: &dyn Fn(u16, u64) -> Vec<u8>,
    answer: &mut dyn FnMut(&mut TcpStream),
) {
    let (mut next, mut in_flight, mut id) = (blocks.iter(), 0, 0);
    loop {
        let mut messages = Vec::new();
        while in_flight < DEPTH {
            let Some(&block) = next.next() else { break };
            id = (id + 1) % 1000;
            messages.extend(message(id, block));
            in_flight += 1;
        }
        stream.write_all(&messages).unwrap();
        if in_flight == 0 {
            return;
        }
        answer(stream);
        in_flight -= 1;
    }
}

/// The PDU with all data that an R2T asks for.
fn asked_data(r2t: &[u8; 24], data: &[u8]) -> Vec<u8> {
    let mut pdu = vec![6, 4, 24, 24];
    pdu.extend((24 + data.len() as u32).to_le_bytes());
    pdu.extend(&r2t[8..20]);
    pdu.resize(24, 0);
    pdu[16..20].copy_from_slice(&(data.len() as u32).to_le_bytes());
    pdu.extend(data);
    pdu
}

fn by_nvme(host: &mut Host, write: bool, size: usize, blocks: &[u64]) {
    let (all, mut read) = (vec![7; size], vec![0; 24 + size + 24]);
    let in_capsule = if write && size <= IN_CAPSULE { &all[..] } else { &[] };
    let (opcode, last) = (1 + u8::from(!write), (size / BLOCK - 1) as u32);
    let message = |id, block| capsule(opcode, id, &[block as u32, 0, last], size as u32, in_capsule);
    keep_in_flight(&mut host.queue, blocks, &message, &mut |stream| {
        if !write {
            return stream.read_exact(&mut read).unwrap();
        }
        loop {
            let pdu: [u8; 24] = read_array(stream).unwrap();
            if pdu[0] == 5 {
                return assert_eq!(pdu[22..], [0, 0]);
            }
            stream.write_all(&asked_data(&pdu, &all)).unwrap();
        }
    });
}

fn by_nbd(client: &mut Client<TcpStream>, write: bool, size: usize, blocks: &[u64]) {
    let message = |id: u16, block: u64| {
        let mut message = wire::REQUEST_MAGIC.to_be_bytes().to_vec();
        message.extend([0, 0]);
        message.extend(if write { wire::CMD_WRITE } else { wire::CMD_READ }.to_be_bytes());
        message.extend(u64::from(id).to_be_bytes());
        message.extend((block * BLOCK as u64).to_be_bytes());
        message.extend((size as u32).to_be_bytes());
        message.resize(message.len() + if write { size } else { 0 }, 7);
        message
    };
    let mut answer = vec![0; if write { 16 } else { 16 + size }];
    keep_in_flight(&mut client.stream, blocks, &message, &mut |stream| stream.read_exact(&mut answer).unwrap());
}

/// Nanoseconds of both servers for requests of `size` at random places of a full drive.
fn compared(write: bool, size: usize, requests: usize, seed: u64) -> (u64, u64) {
    let mut random = Random(seed);
    let server = Server::start(&[]);
    let mut nbd = server.client();
    let all: Vec<u64> = (0..nbd.bytes / BLOCK as u64).collect();
    let (span, places) = ((size / BLOCK) as u64, nbd.bytes / size as u64);
    let blocks: Vec<u64> = (0..requests).map(|_| random.below(places) * span).collect();
    by_nbd(&mut nbd, true, BLOCK, &all);
    let before = server_ns();
    by_nbd(&mut nbd, write, size, &blocks);
    let nbd_ns = server_ns() - before;
    drop::<Client<_>>(nbd);
    server.terminate().unwrap();
    let server = Server::start(&["--nvme"]);
    let mut host = Host::connect(&server.place);
    by_nvme(&mut host, true, BLOCK, &all);
    let before = server_ns();
    by_nvme(&mut host, write, size, &blocks);
    let nvme_ns = server_ns() - before;
    drop(host);
    server.terminate().unwrap();
    (nbd_ns, nvme_ns)
}

#[test]
#[ignore = "measures CPU time: run alone, in a release"]
fn measured_server_time_of_a_request() {
    for round in 0..3 {
        for (size, requests) in LOADS {
            for write in [true, false] {
                let (nbd_ns, nvme_ns) = compared(write, size, requests, 7 + round);
                let each = |ns: u64| ns as f64 / requests as f64;
                let (nbd, nvme, ratio) = (each(nbd_ns), each(nvme_ns), nvme_ns as f64 / nbd_ns as f64);
                println!("{size} bytes, write {write}: NBD {nbd:.0} ns, NVMe {nvme:.0} ns, ratio {ratio:.2}");
            }
        }
    }
}
