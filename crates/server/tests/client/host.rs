//! A small NVMe/TCP host for tests: one controller with one I/O queue, without digests.

use super::read_array;
use std::io::Write;
use std::net::TcpStream;

/// A host with one I/O queue of 128 entries.
pub struct Host {
    pub queue: TcpStream,
    pub admin: TcpStream,
}

/// A command capsule for namespace 1: dwords 10 to 12, the length of the data, and data in the capsule.
pub fn capsule(opcode: u8, id: u16, words: &[u32], length: u32, data: &[u8]) -> Vec<u8> {
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
    pub fn connect(uri: &str) -> Host {
        let (place, nqn) = uri.strip_prefix("nvme+tcp://").unwrap().split_once('/').unwrap();
        let (mut admin, controller) = open(place, nqn, 0, 0xFFFF);
        let mut enable = capsule(0x7F, 2, &[0, 0x14, 0x0046_0001], 0, &[]);
        enable[12] = 0;
        admin.write_all(&enable).unwrap();
        read_array::<24>(&mut admin).unwrap();
        Host { queue: open(place, nqn, 1, controller).0, admin }
    }
}
