//! The power of a served drive fails: everything acknowledged as durable is there when a client reconnects.

use palimpsest_lab::config;
use palimpsest_lab::error::Error;
use palimpsest_lab::host::{find_layer, layers};
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::rng::Rng;
use palimpsest_lab::run::precondition::Precondition;
use palimpsest_lab::run::served::Served;
use palimpsest_lab::run::{Fidelity, Options, Warmup};
use palimpsest_server::drive::{Bytes, Drive, Witness};
use palimpsest_server::request::{Asked, PowerLost, Request};
use palimpsest_server::transmission::Replies;
use std::ops::ControlFlow;

/// Bytes of a write.
const BLOCK: u64 = 4096;
/// Blocks that are written.
const BLOCKS: u64 = 24;

/// Blocks that a client writes: some pages gather four of them, and more than twenty programs must be cut.
const WRITES: u8 = 100;

/// A drive of some blocks.
const DRIVE: [&str; 8] = [
    "ssd.channels=2",
    "ssd.planes_per_die=1",
    "ssd.chips_per_channel=1",
    "ssd.over_provisioning=60%",
    "part.pages_per_block=8",
    "part.t_read_words=[\"10us\", \"20us\", \"30us\", \"40us\"]",
    "ftl.gc_start=2 blocks",
    "ftl.gc_stop=3 blocks",
];

struct Silent;

impl Witness for Silent {
    fn failed(&self, error: &Error) {
        panic!("the drive failed: {error}");
    }

    fn power_lost(&self) {}
}

/// A client that knows the possible contents of each block: all since the last durable write, which is first.
struct Client<'a> {
    drive: &'a Drive<'a>,
    since: u64,
    holds: Vec<Vec<u8>>,
}

impl Client<'_> {
    /// The bytes of the reply.
    fn send(&self, request: Request, mut bytes: Vec<u8>) -> Result<Vec<u8>, PowerLost> {
        let asked = Asked { cookie: 1, request: Ok(request), is_read: matches!(request, Request::Read { .. }) };
        let mut replies = Replies::new(false);
        self.drive.serve(0, self.since, &[asked], Bytes::Together(&mut bytes), &mut replies, &Silent)?;
        let reply = replies.take();
        assert_eq!(reply[4..8], [0; 4], "{request:?} was refused");
        Ok(reply[16..].to_vec())
    }

    /// Writes `block`; false if the power failed.
    fn write(&mut self, block: u64, byte: u8, durable: bool) -> bool {
        self.holds[block as usize].insert(0, byte);
        let bytes = vec![byte; BLOCK as usize];
        let write = Request::Write { offset: block * BLOCK, length: BLOCK as u32, at: 0, durable };
        let written = self.send(write, bytes).is_ok();
        if written && durable {
            self.holds.iter_mut().for_each(|holds| holds.truncate(1));
        }
        written
    }

    /// Checks that requests are refused until a reconnect, and then reads everything.
    fn check(&mut self, place: &str) {
        assert_eq!(self.send(Request::Read { offset: 0, length: 512 }, vec![]), Err(PowerLost), "{place}");
        self.since = self.drive.power_cuts();
        for block in 0..BLOCKS {
            let read = self.send(Request::Read { offset: block * BLOCK, length: BLOCK as u32 }, vec![]).unwrap();
            let holds = &mut self.holds[block as usize];
            assert!(holds.contains(&read[0]), "{place}: block {block} holds {}, none of {holds:?}", read[0]);
            *holds = vec![read[0]];
        }
    }
}

/// Writes [`WRITES`] blocks, every fourth durable, to a drive whose power fails in flash operation `cut`; returns
/// whether it did.
fn cut(ftl: &str, fidelity: Fidelity, acknowledge: &str, cut: u64) -> bool {
    let entry = find_layer(ftl).unwrap();
    let blocks = 16 + entry.model.blocks;
    let needs = entry.needs();
    let key = |setting: &str| setting.split('=').next().map(String::from);
    let plain = DRIVE.iter().filter(|plain| !needs.iter().any(|need| key(need) == key(plain)));
    let mut set: Vec<String> = plain.chain(&needs).map(|&text| text.into()).collect();
    set.push(format!("ssd.blocks_per_plane={blocks}"));
    set.extend([format!("buffer.ack={acknowledge}"), format!("faults.power_cut_at={cut}")]);
    let resolved = config::resolve("mga-8k", Some(ftl), &set, &|_| unreachable!()).unwrap();
    let options = Options {
        workload: "served".into(),
        precondition: Precondition::None,
        requests: None,
        warmup: Warmup::Requests(0),
        fidelity,
        payload: Payload::Bytes,
        seed: 1,
        series: false,
        operations: None,
        strict: false,
    };
    let mut watcher = |_| ControlFlow::Continue(());
    let drive = Drive::new(Served::new(&resolved, &options, &mut watcher).unwrap());
    let place = format!("{ftl}, {fidelity:?}, buffer.ack={acknowledge}, cut at {cut}");
    let mut client = Client { drive: &drive, since: 0, holds: vec![vec![0]; BLOCKS as usize] };
    let mut rng = Rng::new(cut, 0xf0a);
    for number in 0..WRITES {
        if !client.write(rng.below(BLOCKS), 1 + number, rng.below(4) == 0) {
            client.check(&place);
        }
    }
    client.since > 0
}

#[test]
fn what_is_durable_outlives_a_power_cut() {
    for entry in layers().filter(|entry| !entry.zoned) {
        for (index, acknowledge) in ["buffer", "program"].into_iter().enumerate() {
            let mut came = 0;
            for at in 0..4 {
                let fidelity = if at % 2 == 0 { Fidelity::Count } else { Fidelity::Timed };
                came += u32::from(cut(entry.name, fidelity, acknowledge, 3 + 7 * at + index as u64));
            }
            assert!(came > 1, "{} lost its power {came} times of 4", entry.name);
        }
    }
}

#[test]
#[ignore = "minutes"]
fn long_what_is_durable_outlives_a_power_cut() {
    for entry in layers().filter(|entry| !entry.zoned) {
        for fidelity in [Fidelity::Count, Fidelity::Timed] {
            for acknowledge in ["buffer", "program"] {
                let came = (1..100).filter(|&at| cut(entry.name, fidelity, acknowledge, at)).count();
                assert!(came > 20, "{} lost its power {came} times of 99", entry.name);
            }
        }
    }
}
