//! NVMe/TCP over streams in memory: no bytes of a host make a connection panic or break the order of the protocol.
//!
//! `tests/python/test_nvme.py` tests the commands, with an independent initiator over sockets.

#[path = "../../../tests/kept_inputs.rs"]
mod kept_inputs;

use kept_inputs::kept;
use palimpsest_server::fuzzing::{commands, connect, fuzz_nvme, placed, subsystem, zoned};
use palimpsest_server::nvme::Subsystem;
use palimpsest_server::nvme::pdu::{self, Terms};
use palimpsest_server::wire::Fault;
use proptest::prelude::*;

const SIZE: usize = 1 << 16;
const PLAIN: Terms = Terms { header_digest: false, data_digest: false, alignment: 4 };

/// A command capsule: opcode, identifier, dwords 10 to 15, length and kind of the data, data in the capsule.
fn capsule(opcode: u8, id: u16, words: [u32; 6], (length, kind): (u32, u8), data: &[u8]) -> Vec<u8> {
    let offset = if data.is_empty() { 0 } else { 72 };
    let mut pdu = vec![pdu::COMMAND, 0, 72, offset];
    pdu.extend((72 + data.len() as u32).to_le_bytes());
    pdu.extend([opcode, 0x40]);
    pdu.extend(id.to_le_bytes());
    pdu.extend(1u32.to_le_bytes());
    pdu.resize(40, 0);
    pdu.extend(length.to_le_bytes());
    pdu.extend([0, 0, 0, kind]);
    words.iter().for_each(|word| pdu.extend(word.to_le_bytes()));
    pdu.extend(data);
    pdu
}

fn data(id: u16, tag: u16, offset: u32, bytes: &[u8], flags: u8) -> Vec<u8> {
    let mut pdu = vec![pdu::H2C_DATA, flags, 24, 24];
    pdu.extend((24 + bytes.len() as u32).to_le_bytes());
    pdu.extend(id.to_le_bytes());
    pdu.extend(tag.to_le_bytes());
    pdu.extend(offset.to_le_bytes());
    pdu.extend((bytes.len() as u32).to_le_bytes());
    pdu.extend([0; 4]);
    pdu.extend(bytes);
    pdu
}

/// Types and completion statuses of the PDUs in `answered`.
fn parts(mut answered: &[u8]) -> Vec<(u8, Option<u16>)> {
    let mut parts = Vec::new();
    while !answered.is_empty() {
        let end = pdu::u32_at(answered, 4) as usize;
        let status = (answered[0] == pdu::RESPONSE).then(|| pdu::u16_at(answered, 22) >> 1 & 0x3FFF);
        parts.push((answered[0], status));
        answered = &answered[end..];
    }
    parts
}

#[test]
fn kept_connections_do_not_panic() {
    for (name, bytes) in kept("nvme") {
        println!("{name}");
        fuzz_nvme(&bytes);
    }
}

#[test]
fn data_is_asked_for_and_written() {
    let write = capsule(1, 5, [0, 0, 7, 0, 0, 0], (4096, 0x5A), &[]);
    let read = capsule(2, 6, [4, 0, 0, 0, 0, 0], (512, 0x5A), &[]);
    let said = [write, data(5, 0, 0, &[1; 2048], 0), data(5, 0, 2048, &[2; 2048], 4), read].concat();
    let (answered, ended) = commands(&said, 1, PLAIN, &subsystem(SIZE));
    ended.unwrap();
    assert_eq!(parts(&answered), [(pdu::R2T, None), (pdu::RESPONSE, Some(0)), (pdu::C2H_DATA, None)]);
    assert_eq!(answered[answered.len() - 512..], [2; 512]);
}

/// The first or second command of a fused pair about block `first`, with a block of `byte`.
fn half(opcode: u8, id: u16, first: u32, byte: u8, fusion: u8) -> Vec<u8> {
    let mut pdu = capsule(opcode, id, [first, 0, 0, 0, 0, 0], (512, 1), &[byte; 512]);
    pdu[9] |= fusion;
    pdu
}

#[test]
fn a_fused_pair_compares_and_writes() {
    let read = capsule(2, 9, [3, 0, 0, 0, 0, 0], (512, 0x5A), &[]);
    let swaps = [half(5, 1, 3, 0, 1), half(1, 2, 3, 7, 2), half(5, 3, 3, 0, 1), half(1, 4, 3, 8, 2), read];
    let (answered, ended) = commands(&swaps.concat(), 1, PLAIN, &subsystem(SIZE));
    ended.unwrap();
    let statuses: Vec<_> = parts(&answered).into_iter().filter_map(|(_, status)| status).collect();
    assert_eq!(statuses, [0, 0, 0x285, 9]);
    assert_eq!(answered[answered.len() - 512..], [7; 512]);
}

#[test]
fn half_a_fused_pair_fails() {
    let write = capsule(1, 9, [3, 0, 0, 0, 0, 0], (512, 1), &[1; 512]);
    let cases: [(&[Vec<u8>], &[u16]); 4] = [
        (&[half(1, 2, 3, 7, 2)], &[0xA]),
        (&[half(5, 1, 3, 0, 1), write.clone(), half(1, 2, 3, 7, 2)], &[0xA, 0, 0xA]),
        (&[half(5, 1, 3, 0, 1), half(1, 2, 4, 7, 2)], &[2, 2]),
        (&[half(1, 1, 3, 0, 1), half(1, 2, 3, 7, 2), write], &[2, 9, 0]),
    ];
    for (said, expected) in cases {
        let (answered, ended) = commands(&said.concat(), 1, PLAIN, &subsystem(SIZE));
        ended.unwrap();
        let mut statuses: Vec<_> = parts(&answered).into_iter().filter_map(|(_, status)| status).collect();
        let mut expected = expected.to_vec();
        statuses.sort_unstable();
        expected.sort_unstable();
        assert_eq!(statuses, expected);
    }
}

#[test]
fn zones_refuse_wrong_fields() {
    let send = |at, how| capsule(0x79, 1, [at, 0, 0, how, 0, 0], (0, 0x5A), &[]);
    let report = |at, dwords, how| capsule(0x7A, 2, [at, 0, dwords, how, 0, 0], (4 * (dwords + 1), 0x5A), &[]);
    let append = |at, blocks: u32| capsule(0x7D, 3, [at, 0, blocks - 1, 0, 0, 0], (512 * blocks, 0x5A), &[]);
    let all = [
        (send(16, 3), 0),
        (send(17, 3), 2),
        (send(0, 0x10), 2),
        (send(128, 3), 0x80),
        (send(0, 0x103), 0),
        (send(0, 0x303), 2),
        (send(0, 0x111), 2),
        (report(0, 7, 0), 2),
        (report(0, 1 << 20, 0), 2),
        (report(0, 31, 1), 2),
        (report(0, 31, 8 << 8), 2),
        (report(128, 31, 0), 0x80),
        (append(1, 1), 2),
        (append(128, 1), 0x80),
    ];
    for (at, (said, status)) in all.into_iter().enumerate() {
        let (answered, ended) = commands(&said, 1, PLAIN, &zoned(SIZE));
        ended.unwrap();
        assert_eq!(parts(&answered), [(pdu::RESPONSE, Some(status))], "command {at}");
        let (answered, _) = commands(&said, 1, PLAIN, &subsystem(SIZE));
        assert_eq!(parts(&answered), [(pdu::RESPONSE, Some(1))], "command {at} without zones");
    }
    let (answered, _) = commands(&report(40, 63, 0), 1, PLAIN, &zoned(SIZE));
    assert_eq!(answered[0], pdu::C2H_DATA);
    assert_eq!((answered[24], answered[24 + 64], answered[24 + 65]), (6, 2, 0x10), "six empty zones from zone 2 on");
}

#[test]
fn handles_refuse_wrong_fields() {
    let update = |identifiers: &[u16], operation: u32| {
        let count = identifiers.len() as u32;
        let data: Vec<u8> = identifiers.iter().flat_map(|one| one.to_le_bytes()).collect();
        let padded = [data.clone(), vec![0; data.len() % 4]].concat();
        capsule(0x1D, 1, [operation | (count - 1) << 16, 0, 0, 0, 0, 0], (data.len() as u32, 1), &padded)
    };
    let write = |directive: u32| capsule(1, 2, [0, 0, directive << 20, 1 << 16, 0, 0], (512, 1), &[7; 512]);
    let all = [
        (update(&[0, 2, 0x8001], 1), 0),
        (update(&[0, 3], 1), 2),
        (update(&[0; 7], 1), 2),
        (update(&[0], 2), 2),
        (write(2), 0),
        (write(1), 2),
    ];
    for (at, (said, status)) in all.into_iter().enumerate() {
        let (answered, ended) = commands(&said, 1, PLAIN, &placed(SIZE));
        ended.unwrap();
        assert_eq!(parts(&answered), [(pdu::RESPONSE, Some(status))], "command {at}");
    }
    let (answered, _) = commands(&write(2), 1, PLAIN, &subsystem(SIZE));
    assert_eq!(parts(&answered), [(pdu::RESPONSE, Some(2))], "no directive without handles");
}

#[test]
fn a_queue_takes_as_many_commands_as_it_has_entries() {
    let one = |id| capsule(1, id, [0, 0, 7, 0, 0, 0], (4096, 0x5A), &[]);
    let all: Vec<u8> = (0..128).flat_map(one).collect();
    let (answered, ended) = commands(&all, 1, PLAIN, &subsystem(SIZE));
    ended.unwrap();
    assert_eq!(parts(&answered).len(), 128, "an R2T for each");
    let (answered, ended) = commands(&[all, one(128)].concat(), 1, PLAIN, &subsystem(SIZE));
    let Err(Fault::Protocol(what)) = ended else { panic!("the connection must end") };
    assert!(what.contains("more commands"), "{what}");
    assert_eq!(parts(&answered).last(), Some(&(pdu::C2H_TERM, None)));
}

#[test]
fn a_connection_begins_with_an_icreq_and_a_connect() {
    for said in [capsule(2, 1, [0; 6], (512, 0x5A), &[]), vec![9; 200], vec![0, 0, 128, 0, 127, 0, 0, 0]] {
        let (answered, ended) = connect(&said, &subsystem(SIZE));
        assert!(matches!(ended, Err(Fault::Protocol(_))), "{ended:?}");
        assert_eq!(parts(&answered), [(pdu::C2H_TERM, None)]);
    }
    let mut said = vec![0, 0, 128, 0, 128, 0, 0, 0];
    said.resize(128, 0);
    said.extend(capsule(2, 1, [0; 6], (512, 0x5A), &[]));
    let (answered, ended) = connect(&said, &subsystem(SIZE));
    ended.unwrap();
    assert_eq!(parts(&answered), [(pdu::IC_RESP, None), (pdu::RESPONSE, Some(0x0C))]);
}

/// PDUs that are often nearly right.
fn nearly_right() -> impl Strategy<Value = Vec<u8>> {
    let small = prop_oneof![4 => 0u32..20, 1 => Just(u32::MAX), 1 => any::<u32>()];
    let words = prop::array::uniform6(small);
    let of_zones = prop_oneof![Just(0x79u8), Just(0x7A), Just(0x7D)];
    let of_handles = prop_oneof![Just(0x12u8), Just(0x1D), Just(0x19), Just(0x1A)];
    let of_drives = prop_oneof![Just(0x7Fu8), Just(0x80), Just(0x84), any::<u8>()];
    let opcode = prop_oneof![8 => 0u8..0x1A, 4 => of_drives, 4 => of_zones, 2 => of_handles];
    let fusion = prop_oneof![8 => Just(0u8), 1 => Just(1), 1 => Just(2)];
    let kind = prop_oneof![Just(1u8), Just(0x5A), any::<u8>()];
    let length = prop_oneof![Just(512u32), Just(4096), Just(16), 0u32..9000];
    let command = (opcode, fusion, 0u16..6, words, (length, kind), 0usize..1100).prop_map(
        |(opcode, fusion, id, words, named, bytes)| {
            let mut pdu = capsule(opcode, id, words, named, &vec![1; bytes & !3]);
            pdu[9] |= fusion;
            pdu
        },
    );
    let sent = (0u16..6, 0u16..4, prop_oneof![Just(0u32), 0u32..5000], 0usize..4200, 0u8..8)
        .prop_map(|(id, tag, offset, bytes, flags)| data(id, tag, offset, &vec![2; bytes], flags & 4));
    let noise = prop::collection::vec(any::<u8>(), 0..40);
    prop::collection::vec(prop_oneof![6 => command, 4 => sent, 1 => noise], 0..12).prop_map(|all| all.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_a_connection_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        fuzz_nvme(&bytes);
    }

    #[test]
    fn nor_do_pdus_that_are_nearly_right(bytes in nearly_right()) {
        fuzz_nvme(&bytes);
    }

    #[test]
    fn every_command_has_at_most_one_completion(bytes in nearly_right()) {
        for subsystem in [subsystem(SIZE), zoned(SIZE), placed(SIZE)] {
            check_completions(&bytes, &subsystem)?;
        }
    }
}

fn check_completions(bytes: &[u8], subsystem: &Subsystem) -> Result<(), TestCaseError> {
    let (answered, _) = commands(bytes, 1, PLAIN, subsystem);
    let completes = |part: &&(u8, _)| matches!(part.0, pdu::RESPONSE | pdu::C2H_DATA);
    let completions = parts(&answered).iter().filter(completes).count();
    let commands = bytes.windows(3).filter(|head| head[0] == pdu::COMMAND && head[2] == 72).count();
    prop_assert!(completions <= commands, "{completions} completions of {commands} commands");
    Ok(())
}
