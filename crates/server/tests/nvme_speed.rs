//! The server's CPU time for a request by NVMe/TCP and by NBD: the same drive, the same requests of 4 KiB in flight.
//!
//! Run alone, in a release: `cargo test --release -p palimpsest-server --test nvme_speed -- --ignored --nocapture`.

mod client;

use client::{Client, Random, Server, read_array};
use palimpsest_server::wire;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

const BLOCK: usize = 4096;
const DEPTH: usize = 32;
const REQUESTS: usize = 100_000;

/// CPU nanoseconds of the threads of this process, without the calling thread.
fn server_ns() -> u64 {
    let ns = |text: String| text.split(' ').next().and_then(|first| first.parse::<u64>().ok()).unwrap_or(0);
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let all = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("schedstat")).ok());
    let all: u64 = all.map(ns).sum();
    all - ns(fs::read_to_string("/proc/thread-self/schedstat").unwrap())
}

/// A host with one I/O queue.
struct Host {
    queue: TcpStream,
    _admin: TcpStream,
}

fn capsule(opcode: u8, id: u16, words: &[u32], length: u32, data: &[u8]) -> Vec<u8> {
    let (offset, kind) = if data.is_empty() { (0, 0x5A) } else { (72, 1) };
    let mut pdu = vec![4, 0, 72, offset];
    pdu.extend((72 + data.len() as u32).to_le_bytes());
    pdu.extend([opcode, 0x40]);
    pdu.extend(id.to_le_bytes());
    pdu.extend(1u32.to_le_bytes());
    pdu.resize(40, 0);
    pdu.extend(length.to_le_bytes());
    pdu.extend([0, 0, 0, kind]);
    words.iter().for_each(|word| pdu.extend(word.to_le_bytes()));
    pdu.resize(72, 0);
    pdu.extend(data);
    pdu
}

/// Connects a queue; returns the controller.
fn open(place: &str, nqn: &str, queue: u32, controller: u16) -> (TcpStream, u16) {
    let mut stream = TcpStream::connect(place).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut hello = vec![0, 0, 128, 0, 128, 0, 0, 0];
    hello.resize(128, 0);
    stream.write_all(&hello).unwrap();
    read_array::<128>(&mut stream).unwrap();
    let mut data = vec![0; 1024];
    data[16..18].copy_from_slice(&controller.to_le_bytes());
    data[256..256 + nqn.len()].copy_from_slice(nqn.as_bytes());
    data[512..515].copy_from_slice(b"nqn");
    let mut connect = capsule(0x7F, 1, &[queue << 16, 127, 0], 1024, &data);
    connect[12] = 1;
    stream.write_all(&connect).unwrap();
    let response: [u8; 24] = read_array(&mut stream).unwrap();
    assert_eq!(response[22..24], [0, 0]);
    (stream, u16::from_le_bytes([response[8], response[9]]))
}

impl Host {
    fn connect(uri: &str) -> Host {
        let (place, nqn) = uri.strip_prefix("nvme+tcp://").unwrap().split_once('/').unwrap();
        let (mut admin, controller) = open(place, nqn, 0, 0xFFFF);
        let mut enable = capsule(0x7F, 2, &[0, 0x14, 0x0046_0001], 0, &[]);
        enable[12] = 0;
        admin.write_all(&enable).unwrap();
        read_array::<24>(&mut admin).unwrap();
        Host { queue: open(place, nqn, 1, controller).0, _admin: admin }
    }
}

/// Keeps a request of each of `blocks` in flight until all are answered, in answers of `answer` bytes.
fn keep_in_flight(stream: &mut TcpStream, blocks: &[u64], answer: usize, message: &dyn Fn(u16, u64) -> Vec<u8>) {
    let (mut next, mut in_flight, mut id) = (blocks.iter(), 0, 0);
    let mut answer = vec![0; answer];
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
        stream.read_exact(&mut answer).unwrap();
        in_flight -= 1;
    }
}

fn by_nvme(host: &mut Host, write: bool, blocks: &[u64]) {
    let data: &[u8] = if write { &[7; BLOCK] } else { &[] };
    let opcode = 1 + u8::from(!write);
    let message = |id, block| capsule(opcode, id, &[block as u32, 0, 0], BLOCK as u32, data);
    keep_in_flight(&mut host.queue, blocks, if write { 24 } else { 24 + BLOCK + 24 }, &message);
}

fn by_nbd(client: &mut Client<TcpStream>, write: bool, blocks: &[u64]) {
    let message = |id: u16, block: u64| {
        let mut message = wire::REQUEST_MAGIC.to_be_bytes().to_vec();
        message.extend([0, 0]);
        message.extend(if write { wire::CMD_WRITE } else { wire::CMD_READ }.to_be_bytes());
        message.extend(u64::from(id).to_be_bytes());
        message.extend((block * BLOCK as u64).to_be_bytes());
        message.extend((BLOCK as u32).to_be_bytes());
        message.resize(message.len() + if write { BLOCK } else { 0 }, 7);
        message
    };
    keep_in_flight(&mut client.stream, blocks, if write { 16 } else { 16 + BLOCK }, &message);
}

#[test]
#[ignore = "measures CPU time: run alone, in a release"]
fn server_time_of_a_request() {
    for round in 0..3 {
        for write in [true, false] {
            let mut random = Random(7 + round);
            let server = Server::start(&[]);
            let mut nbd = server.client();
            let all: Vec<u64> = (0..nbd.bytes / BLOCK as u64).collect();
            let blocks: Vec<u64> = (0..REQUESTS).map(|_| random.below(all.len() as u64)).collect();
            by_nbd(&mut nbd, true, &all);
            let before = server_ns();
            by_nbd(&mut nbd, write, &blocks);
            let nbd_ns = server_ns() - before;
            drop::<Client<_>>(nbd);
            server.terminate().unwrap();
            let server = Server::start(&["--nvme"]);
            let mut host = Host::connect(&server.place);
            by_nvme(&mut host, true, &all);
            let before = server_ns();
            by_nvme(&mut host, write, &blocks);
            let nvme_ns = server_ns() - before;
            drop(host);
            server.terminate().unwrap();
            let each = |ns: u64| ns as f64 / REQUESTS as f64;
            let (nbd, nvme, ratio) = (each(nbd_ns), each(nvme_ns), nvme_ns as f64 / nbd_ns as f64);
            println!("write {write}: NBD {nbd:.0} ns, NVMe {nvme:.0} ns a request, ratio {ratio:.2}");
        }
    }
}
