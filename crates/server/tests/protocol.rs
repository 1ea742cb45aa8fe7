//! The protocol over streams in memory; no bytes of a client make the session panic.

#[path = "../../../tests/kept_inputs.rs"]
mod kept_inputs;

use kept_inputs::kept;
use palimpsest_server::fuzzing::{converse, fuzz_session};
use palimpsest_server::handshake::preferred_block;
use palimpsest_server::wire::{self, Fault, Fields};
use proptest::prelude::*;

const SIZE: usize = 1 << 20;

/// The bytes of a client, piece by piece.
#[derive(Default)]
struct Said(Vec<u8>);

impl Said {
    fn hello(flags: u32) -> Self {
        Said(flags.to_be_bytes().to_vec())
    }

    fn option(mut self, option: u32, data: &[u8]) -> Self {
        self.0.extend(wire::OPTION_MAGIC.to_be_bytes());
        self.0.extend(option.to_be_bytes());
        self.0.extend((data.len() as u32).to_be_bytes());
        self.0.extend(data);
        self
    }

    fn export(option: u32, name: &str) -> Self {
        let mut data = (name.len() as u32).to_be_bytes().to_vec();
        data.extend(name.as_bytes());
        data.extend([0, 1, 0, 3]);
        Said::hello(3).option(option, &data)
    }

    fn request(mut self, command: u16, offset: u64, length: u32, bytes: &[u8]) -> Self {
        self.0.extend(wire::REQUEST_MAGIC.to_be_bytes());
        self.0.extend((command >> 8).to_be_bytes());
        self.0.extend((command & 0xff).to_be_bytes());
        self.0.extend(0xC00C1Eu64.to_be_bytes());
        self.0.extend(offset.to_be_bytes());
        self.0.extend(length.to_be_bytes());
        self.0.extend(bytes);
        self
    }

    /// The bytes of the server after the greeting, and the end of the session.
    fn converse(self) -> (Vec<u8>, Result<u64, Fault>) {
        let (answered, ended) = converse(&self.0, SIZE);
        assert_eq!(answered[..18], *b"NBDMAGICIHAVEOPT\0\x03");
        (answered[18..].to_vec(), ended)
    }

    /// Errors of the simple replies and their bytes, after a handshake by name.
    fn replies(self, reads: &[usize]) -> Vec<(u32, Vec<u8>)> {
        let (answered, ended) = self.converse();
        ended.unwrap();
        let (mut fields, mut replies) = (Fields(&answered[10..]), Vec::new());
        for &length in reads {
            assert_eq!(fields.u32(), Some(wire::REPLY_MAGIC));
            let error = fields.u32().unwrap();
            assert_eq!(fields.u64(), Some(0xC00C1E));
            replies.push((error, fields.bytes(if error == 0 { length } else { 0 }).unwrap().to_vec()));
        }
        assert!(fields.0.is_empty(), "more answers than requests");
        replies
    }
}

fn begun() -> Said {
    Said::hello(3).option(wire::OPT_EXPORT_NAME, b"")
}

/// Kinds of the replies to options.
fn kinds(answered: &[u8]) -> Vec<u32> {
    let (mut fields, mut kinds) = (Fields(answered), Vec::new());
    while !fields.0.is_empty() {
        assert_eq!(fields.u64(), Some(wire::OPTION_REPLY_MAGIC));
        fields.u32().unwrap();
        kinds.push(fields.u32().unwrap());
        let length = fields.u32().unwrap();
        fields.bytes(length as usize).unwrap();
    }
    kinds
}

fn complaint(ended: Result<u64, Fault>) -> String {
    let complaint = ended.expect_err("the connection must be closed").to_string();
    assert!(!complaint.contains('\n'));
    complaint
}

#[test]
fn export_name_begins_at_once() {
    for (flags, padding) in [(3, 0), (1, 124), (0, 124)] {
        for name in ["", "memory"] {
            let (answered, ended) = Said::hello(flags).option(wire::OPT_EXPORT_NAME, name.as_bytes()).converse();
            ended.unwrap();
            let mut expected = (SIZE as u64).to_be_bytes().to_vec();
            expected.extend(wire::TRANSMISSION_FLAGS.to_be_bytes());
            expected.extend(vec![0; padding]);
            assert_eq!(answered, expected);
        }
    }
    let (_, ended) = Said::hello(3).option(wire::OPT_EXPORT_NAME, b"other").converse();
    assert!(complaint(ended).contains("there is no export \"other\""));
}

#[test]
fn go_and_info_describe_the_export() {
    for option in [wire::OPT_GO, wire::OPT_INFO] {
        let (answered, ended) = Said::export(option, "memory").converse();
        ended.unwrap();
        assert_eq!(kinds(&answered), [wire::REP_INFO, wire::REP_INFO, wire::REP_ACK]);
        assert_eq!(answered[20..32], *[&[0, 0][..], &(SIZE as u64).to_be_bytes(), &[1, 0x6d]].concat());
        assert_eq!(answered[52..66], [0, 3, 0, 0, 2, 0, 0, 0, 16, 0, 2, 0, 0, 0]);
        let (answered, _) = Said::export(option, "other").converse();
        assert_eq!(kinds(&answered), [wire::REP_ERR_UNKNOWN]);
    }
    // After info the negotiation continues; after go requests follow.
    let (answered, _) = Said::export(wire::OPT_INFO, "").option(wire::OPT_ABORT, &[]).converse();
    assert_eq!(kinds(&answered).last(), Some(&wire::REP_ACK));
    let (_, ended) = Said::export(wire::OPT_GO, "").request(wire::CMD_READ, 0, 512, &[]).converse();
    assert_eq!(ended.unwrap(), 1);
}

#[test]
fn other_options_are_answered() {
    let (answered, ended) = Said::hello(3)
        .option(5, &[])
        .option(9, &[])
        .option(10, b"anything")
        .option(wire::OPT_LIST, &[])
        .option(wire::OPT_LIST, b"x")
        .option(wire::OPT_GO, &[0, 0, 0, 9, 1])
        .option(wire::OPT_ABORT, &[])
        .converse();
    ended.unwrap();
    let unsupported = wire::REP_ERR_UNSUP;
    let invalid = wire::REP_ERR_INVALID;
    let expected =
        [unsupported, unsupported, unsupported, wire::REP_SERVER, wire::REP_ACK, invalid, invalid, wire::REP_ACK];
    assert_eq!(kinds(&answered), expected);
}

#[test]
fn malformed_handshakes_are_closed_with_a_message() {
    assert!(complaint(Said::hello(4).converse().1).contains("client flags 0x4"));
    let mut said = Said::hello(3);
    said.0.extend([b'x'; 16]);
    assert!(complaint(said.converse().1).contains("IHAVEOPT"));
    let mut said = Said::hello(3);
    said.0.extend(wire::OPTION_MAGIC.to_be_bytes());
    said.0.extend([0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff]);
    assert!(complaint(said.converse().1).contains("at most 65536"));
    for cut in [2, 5, 19, 21] {
        let mut said = Said::hello(3).option(wire::OPT_GO, &[0; 8]);
        said.0.truncate(cut);
        assert!(complaint(said.converse().1).contains("in the middle"));
    }
    Said::default().converse().1.unwrap();
}

#[test]
fn requests_are_served() {
    let replies = begun()
        .request(wire::CMD_WRITE, 512, 512, &[7; 512])
        .request(wire::CMD_WRITE | wire::CMD_FLAG_FUA << 8, 4096, 3, b"abc")
        .request(wire::CMD_READ, 1023, 2, &[])
        .request(wire::CMD_READ, 4096, 3, &[])
        .request(wire::CMD_FLUSH, 0, 0, &[])
        .request(wire::CMD_TRIM, 0, 4096, &[])
        .request(wire::CMD_READ, 1023, 1, &[])
        .request(wire::CMD_DISC, 0, 0, &[])
        .request(wire::CMD_READ, 0, 1, &[])
        .replies(&[0, 0, 2, 3, 0, 0, 1]);
    let bytes: Vec<&[u8]> = replies.iter().map(|(_, bytes)| &bytes[..]).collect();
    assert_eq!(bytes, [&b""[..], b"", &[7, 0], b"abc", b"", b"", &[0]]);
    assert!(replies.iter().all(|reply| reply.0 == 0));
}

#[test]
fn wrong_requests_are_refused_and_the_connection_goes_on() {
    let size = SIZE as u64;
    let too_long = wire::MAX_BYTES + 1;
    let replies = begun()
        .request(wire::CMD_READ, size, 1, &[])
        .request(wire::CMD_READ, u64::MAX, 512, &[])
        .request(wire::CMD_READ, 0, too_long, &[])
        .request(wire::CMD_READ, 0, 0, &[])
        .request(wire::CMD_WRITE, size - 1, 2, b"ab")
        .request(wire::CMD_WRITE, 0, too_long, &vec![1; too_long as usize])
        .request(wire::CMD_TRIM, 1, size as u32, &[])
        .request(wire::CMD_WRITE | 2 << 8, 0, 2, b"ab")
        .request(wire::CMD_WRITE_ZEROES | 4 << 8, 0, 512, &[])
        .request(99, 0, 512, &[])
        .request(wire::CMD_READ, size - 2, 2, &[])
        .replies(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    let errors: Vec<u32> = replies.iter().map(|reply| reply.0).collect();
    assert_eq!(errors, [22, 22, 22, 22, 28, 22, 22, 22, 22, 22, 0]);
    assert_eq!(replies[10].1, [0, 0]);
}

#[test]
fn reads_have_structured_replies_where_that_was_agreed() {
    let said = Said::hello(3).option(wire::OPT_STRUCTURED_REPLY, b"x").option(wire::OPT_STRUCTURED_REPLY, &[]);
    let said = said.option(wire::OPT_EXPORT_NAME, b"");
    let (answered, ended) = said
        .request(wire::CMD_WRITE, 512, 3, b"abc")
        .request(wire::CMD_READ | wire::CMD_FLAG_DF << 8, 512, 3, &[])
        .request(wire::CMD_READ, SIZE as u64, 1, &[])
        .request(wire::CMD_WRITE_ZEROES, 513, 2, &[])
        .request(wire::CMD_READ, 512, 3, &[])
        .converse();
    ended.unwrap();
    assert_eq!(
        kinds(&answered[..20 + b"structured replies take no data".len() + 20]),
        [wire::REP_ERR_INVALID, wire::REP_ACK]
    );
    let mut fields = Fields(&answered[20 + b"structured replies take no data".len() + 20..]);
    fields.u64().unwrap();
    assert_eq!(fields.u16(), Some(wire::TRANSMISSION_FLAGS | wire::DONT_FRAGMENT));
    let cookie = 0xC00C1Eu64.to_be_bytes();
    let simple = [&wire::REPLY_MAGIC.to_be_bytes()[..], &[0; 4], &cookie].concat();
    let chunk = |kind: u16, data: &[u8]| {
        let head = [&wire::CHUNK_MAGIC.to_be_bytes()[..], &[0, 1], &kind.to_be_bytes(), &cookie].concat();
        [head, (data.len() as u32).to_be_bytes().to_vec(), data.to_vec()].concat()
    };
    let data = |bytes: &[u8]| chunk(wire::CHUNK_DATA, &[&512u64.to_be_bytes()[..], bytes].concat());
    let refused = chunk(wire::CHUNK_ERROR, &[0, 0, 0, wire::EINVAL as u8, 0, 0]);
    assert_eq!(fields.0, [simple.clone(), data(b"abc"), refused, simple, data(b"a\0\0")].concat());
}

#[test]
fn malformed_requests_end_the_connection() {
    let mut said = begun();
    said.0.extend([0; 28]);
    assert!(complaint(said.converse().1).contains("magic number"));
    let said = begun().request(wire::CMD_WRITE, 0, 512, &[0; 100]);
    assert!(complaint(said.converse().1).contains("in the middle"));
    let said = begun().request(wire::CMD_WRITE, 0, u32::MAX, &[0; 100]);
    assert!(complaint(said.converse().1).contains("in the middle"));
}

#[test]
fn preferred_blocks_are_powers_of_two() {
    assert_eq!([512, 4096, 8192, 18 << 10, 1 << 40].map(preferred_block), [4096, 4096, 8192, 32 << 10, 32 << 20]);
}

/// Bytes that are often nearly right: options and requests with fields that are sometimes wrong.
fn nearly_right() -> impl Strategy<Value = Vec<u8>> {
    let noise = prop::collection::vec(any::<u8>(), 0..40);
    let option = (0u32..12, 0u32..80, prop::collection::vec(0u8..9, 0..40)).prop_map(|(option, length, data)| {
        let length = if length < 40 { length } else { data.len() as u32 };
        [&wire::OPTION_MAGIC.to_be_bytes()[..], &option.to_be_bytes(), &length.to_be_bytes(), &data].concat()
    });
    let number = prop_oneof![0u64..70_000, Just(u64::MAX), any::<u64>()];
    let request =
        (0u16..9, 0u16..3, number.clone(), number, 0usize..600).prop_map(|(command, flags, at, length, bytes)| {
            let mut said = Said::default().request(command | flags << 8, at, length as u32, &[]).0;
            said.extend(vec![1; bytes]);
            said
        });
    let hello = Just(vec![0, 0, 0, 3]);
    prop::collection::vec(prop_oneof![1 => noise, 3 => option, 4 => request, 1 => hello], 0..12)
        .prop_map(|all| all.concat())
}

#[test]
fn kept_sessions_do_not_panic() {
    for (name, bytes) in kept("session") {
        println!("{name}");
        fuzz_session(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_the_session_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzz_session(&bytes);
    }

    #[test]
    fn nor_do_bytes_that_are_nearly_right(bytes in nearly_right()) {
        fuzz_session(&bytes);
        fuzz_session(&[&[0, 0, 0, 3], &bytes[..]].concat());
    }
}
