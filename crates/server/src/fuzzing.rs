//! The fuzz target of sessions, for the fuzzer and the property test, with a minimal client.

use crate::handshake::{Chosen, Export, negotiate};
use crate::transmission::{Asked, PowerLost, Replies, Request, Target, transmit};
use crate::wire::{Fault, Stream};
use std::io::{self, Read, Write};
use std::sync::{Mutex, PoisonError};

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

impl Target for Array<'_> {
    fn serve(&mut self, asked: &[Asked], input: &mut Vec<u8>, replies: &mut Replies) -> Result<(), PowerLost> {
        let mut array = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for asked in asked {
            let range = |offset: u64, length: u32| offset as usize..offset as usize + length as usize;
            match asked.request {
                Err(error) => replies.refuse(asked, error),
                Ok(Request::Read { offset, length }) => {
                    let fill = |bytes: &mut Vec<u8>| {
                        bytes.extend(&array[range(offset, length)]);
                        Ok::<(), ()>(())
                    };
                    replies.read(asked, offset, length, fill).expect("an array can be read");
                }
                Ok(Request::Write { offset, length, at, .. }) => {
                    array[range(offset, length)].copy_from_slice(&input[range(at as u64, length)]);
                    replies.done(asked);
                }
                Ok(Request::Trim { offset, length, .. } | Request::Zero { offset, length, .. }) => {
                    array[range(offset, length)].fill(0);
                    replies.done(asked);
                }
                Ok(Request::Flush) => replies.done(asked),
            }
        }
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
