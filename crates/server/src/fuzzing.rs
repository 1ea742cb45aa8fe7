//! The fuzz targets of NBD sessions and NVMe connections, for the fuzzer and the property tests, with minimal clients.

use crate::handshake::{Chosen, Export, negotiate};
use crate::input::Input;
use crate::nvme::admin::Context;
use crate::nvme::connection::{Connection, Port};
use crate::nvme::controller::{Host, MOST_ENTRIES};
use crate::nvme::pdu::Terms;
use crate::nvme::queue::{Completions, Queue};
use crate::nvme::zones::ZoneFacts;
use crate::nvme::{self, Facts, Subsystem, Wanted};
use crate::page::Shown;
use crate::request::{Answers, Asked, PowerLost, Refusal, Request};
use crate::transmission::{Replies, Target, transmit};
use crate::wire::{Fault, Stream};
use palimpsest_lab::ftl::zones::Zones;
use palimpsest_lab::run::served::Served;
use palimpsest_lab::units::SECTOR_BYTES;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A connection in memory that holds all bytes of the client from the start.
pub struct Conversation<'a> {
    /// Unread bytes of the client.
    pub said: &'a [u8],
    /// Bytes of the server.
    pub answered: Vec<u8>,
}

impl<'a> Conversation<'a> {
    /// A connection of a client that sends `said`.
    pub fn new(said: &'a [u8]) -> Self {
        Conversation { said, answered: Vec::new() }
    }
}

impl Read for Conversation<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.said.read(buffer)
    }
}

impl Stream for Conversation<'_> {}

impl Write for Conversation<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.answered.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Serves a client that sends `said` from an array of `size` bytes, and checks that every request is in range. Returns
/// the bytes of the server and the end of the session.
pub fn converse(said: &[u8], size: usize) -> (Vec<u8>, Result<u64, Fault>) {
    let export = Export { name: "memory".into(), bytes: size as u64, preferred_block: 4096 };
    let (array, mut stream, mut replies) = (Mutex::new(vec![0; size]), Conversation::new(said), Vec::new());
    let ended = match negotiate(&mut stream, &export) {
        Ok(Chosen::Export { structured }) => {
            transmit((&mut stream, &mut replies), (&export, structured), &|| Array(&array), 1, &|| {})
        }
        Ok(Chosen::Nothing) => Ok(0),
        Err(fault) => Err(fault),
    };
    stream.answered.extend(replies);
    (stream.answered, ended)
}

struct Array<'a>(&'a Mutex<Vec<u8>>);

impl Array<'_> {
    fn serve(&self, asked: &[Asked], input: &[u8], answers: &mut impl Answers) {
        let mut array = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for asked in asked {
            let range = |offset: u64, length: u32| offset as usize..offset as usize + length as usize;
            match asked.request {
                Err(error) => answers.refuse(asked, Refusal::Malformed(error)),
                Ok(Request::Read { offset, length }) => {
                    let fill = |bytes: &mut Vec<u8>, _: &mut Vec<_>| {
                        bytes.extend(&array[range(offset, length)]);
                        Ok::<(), ()>(())
                    };
                    answers.read(asked, offset, length, fill).expect("an array can be read");
                }
                Ok(Request::Write { offset, length, at, .. } | Request::Directed { offset, length, at, .. }) => {
                    array[range(offset, length)].copy_from_slice(&input[range(at as u64, length)]);
                    answers.done(asked);
                }
                Ok(Request::Trim { offset, length, .. } | Request::Zero { offset, length, .. }) => {
                    array[range(offset, length)].fill(0);
                    answers.done(asked);
                }
                Ok(Request::Copy { from, offset, length, .. }) => {
                    let bytes = array[range(from, length)].to_vec();
                    array[range(offset, length)].copy_from_slice(&bytes);
                    answers.done(asked);
                }
                Ok(Request::Swap { offset, length, at, .. }) => {
                    let (old, new) = input[at..at + 2 * length as usize].split_at(length as usize);
                    if array[range(offset, length)] != *old {
                        answers.refuse(asked, Refusal::Differs);
                        continue;
                    }
                    array[range(offset, length)].copy_from_slice(new);
                    answers.done(asked);
                }
                Ok(Request::Flush | Request::Manage { .. }) => answers.done(asked),
            }
        }
    }
}

impl Target for Array<'_> {
    fn serve(&mut self, asked: &[Asked], input: &mut Vec<u8>, replies: &mut Replies) -> Result<(), PowerLost> {
        Array::serve(self, asked, input, replies);
        Ok(())
    }
}

/// Serves `bytes` as a whole connection and as a transmission phase. Must not panic.
pub fn fuzz_session(bytes: &[u8]) {
    const SIZE: usize = 1 << 16;
    let _ = converse(bytes, SIZE);
    let mut said = vec![0, 0, 0, 3];
    said.extend(crate::wire::OPTION_MAGIC.to_be_bytes());
    said.extend([0, 0, 0, 1, 0, 0, 0, 0]);
    said.extend(bytes);
    let _ = converse(&said, SIZE);
}

/// An array as the drive of an NVMe connection.
struct ArrayPort<'a> {
    array: Array<'a>,
    answered: &'a mut Vec<u8>,
}

impl Port for ArrayPort<'_> {
    fn serve(&mut self, asked: &[Asked], input: &mut Vec<u8>, out: &mut Completions) -> Result<(), PowerLost> {
        self.array.serve(asked, input, out);
        Ok(())
    }

    fn send(&mut self, out: &mut Completions) -> io::Result<()> {
        out.out.write_to(self.answered)?;
        out.out.clear();
        Ok(())
    }
}

/// A drive without figures.
struct NoFigures;

impl Shown for NoFigures {
    fn look(&self, _look: &mut dyn FnMut(&Served<'_>)) {}

    fn connections(&self) -> usize {
        0
    }

    fn is_ending(&self) -> bool {
        false
    }
}

/// A subsystem with an array of `size` bytes.
pub fn subsystem(size: usize) -> Subsystem {
    let wanted = Wanted {
        nqn: Some("nqn.2026-11.org.example:array".into()),
        hosts: Vec::new(),
        block_bytes: 512,
        namespaces: Vec::new(),
        others: Vec::new(),
        advertised: None,
    };
    let facts = Facts::new("array", size as u64, 4096, true, &wanted, [1; 16]);
    Subsystem::new(facts, &wanted).expect("the name is well-formed")
}

/// [`subsystem`] with eight zones, 12 of 16 blocks of which can be written.
pub fn zoned(size: usize) -> Subsystem {
    let mut zoned = subsystem(size);
    let zones = Zones::new((size / (16 * SECTOR_BYTES as usize)) as u32, 16, 12, 1, (2, 3));
    zoned.facts.zones = Some(ZoneFacts::new(&zones, 512).expect("zones of whole blocks"));
    zoned
}

/// [`subsystem`] with three reclaim unit handles in each of two groups.
pub fn placed(size: usize) -> Subsystem {
    let mut placed = subsystem(size);
    placed.facts.placement = Some(palimpsest_lab::log::Identifiers { handles: 3, groups: 2 });
    placed
}

/// Serves a host that sends `said` over a connection to `subsystem`, from its ICReq on. Returns the bytes of the
/// target, and the end of the connection.
pub fn connect(said: &[u8], subsystem: &Subsystem) -> (Vec<u8>, Result<(), Fault>) {
    let array = Mutex::new(vec![0; subsystem.facts.bytes() as usize]);
    let (mut stream, mut input, mut answered) = (Conversation::new(said), Input::default(), Vec::new());
    let ended = nvme::connect::open(&mut stream, &mut answered, &mut input, subsystem, || Ok(None));
    let ended = ended.and_then(|opened| {
        let Some(mut opened) = opened else { return Ok(()) };
        let begun = (Arc::clone(&opened.queue), std::mem::take(&mut opened.response));
        go_on((&mut stream, input, &mut answered), begun, subsystem, &array)
    });
    (answered, ended)
}

fn go_on(
    (stream, input, answered): (&mut Conversation<'_>, Input, &mut Vec<u8>),
    (queue, response): (Arc<Queue>, Vec<u8>),
    subsystem: &Subsystem,
    array: &Mutex<Vec<u8>>,
) -> Result<(), Fault> {
    let controller = Arc::clone(&queue.controller);
    let context = Context {
        subsystem,
        facts: &subsystem.facts,
        controller: &controller,
        shown: &NoFigures,
        address: Some(([127, 0, 0, 1], 4420).into()),
    };
    let port = ArrayPort { array: Array(array), answered };
    Connection::new((stream, port, input), (queue, response), context, Duration::from_secs(1), false).run()
}

/// Serves a host that sends `said` on queue `number` of an enabled controller, with `terms`.
pub fn commands(said: &[u8], number: u16, terms: Terms, subsystem: &Subsystem) -> (Vec<u8>, Result<(), Fault>) {
    let array = Mutex::new(vec![0; subsystem.facts.bytes() as usize]);
    let host = Host { name: "nqn.2026-11.org.example:host".into(), id: [0; 16] };
    let controller = subsystem.add(host, false).expect("a number is free");
    // All command sets.
    controller.configure(0x0046_0061);
    let queue = Arc::new(Queue::new(terms, controller, number, MOST_ENTRIES, true));
    let (mut stream, mut answered) = (Conversation::new(said), Vec::new());
    let begun = (&mut stream, Input::default(), &mut answered);
    let ended = go_on(begun, (queue, Vec::new()), subsystem, &array);
    (answered, ended)
}

/// Serves `bytes` as a whole NVMe connection, and as commands of an admin queue and of an I/O queue. Must not panic.
pub fn fuzz_nvme(bytes: &[u8]) {
    const SIZE: usize = 1 << 16;
    let _ = connect(bytes, &subsystem(SIZE));
    for subsystem in [subsystem(SIZE), zoned(SIZE), placed(SIZE)] {
        for number in [0, 1] {
            let _ = commands(bytes, number, Terms { alignment: 4, ..Terms::default() }, &subsystem);
        }
    }
}
