//! Replies to a client from any thread: sent at once if the socket takes them, else by a thread of the connection, so
//! that a client that does not read delays no other.

use crate::patience::Share;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Most bytes of unsent replies, unless a single reply is larger.
const OWED: u64 = 16 << 20;

/// Sends the bytes that a socket takes without a wait; returns their number.
pub type SendNow = dyn Fn(&[u8]) -> io::Result<usize> + Send + Sync;

/// A reply, and a share of the memory for all clients.
type Reply = (Vec<u8>, Option<Share>);

#[derive(Default)]
struct State {
    queue: VecDeque<Reply>,
    /// Whether the thread of the connection is sending.
    sending: bool,
    owed: u64,
    closed: bool,
}

/// The replies to one client.
pub struct Outbox {
    send_now: Box<SendNow>,
    state: Mutex<State>,
    changed: Condvar,
}

impl Outbox {
    /// An empty outbox.
    pub fn new(send_now: Box<SendNow>) -> Self {
        Outbox { send_now, state: Mutex::default(), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the client may be owed `bytes` more.
    pub fn owe(&self, bytes: u64) {
        let state = self.lock();
        let full = |state: &mut State| !state.closed && state.owed > 0 && state.owed + bytes > OWED;
        let mut state = self.changed.wait_while(state, full).unwrap_or_else(PoisonError::into_inner);
        state.owed += bytes;
    }

    /// Sends a reply, for which `owed` bytes were owed.
    pub fn deliver(&self, mut reply: Vec<u8>, owed: u64, share: Option<Share>) {
        let mut state = self.lock();
        state.owed -= owed;
        if !state.closed && state.queue.is_empty() && !state.sending {
            match (self.send_now)(&reply) {
                Ok(sent) => drop(reply.drain(..sent)),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(_) => state.closed = true,
            }
        }
        if !state.closed && !reply.is_empty() {
            state.owed += reply.len() as u64;
            state.queue.push_back((reply, share));
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Sends queued replies until [`Self::close`].
    pub fn run(&self, stream: &mut impl Write) {
        let mut state = self.lock();
        loop {
            let nothing = |state: &mut State| !state.closed && state.queue.is_empty();
            state = self.changed.wait_while(state, nothing).unwrap_or_else(PoisonError::into_inner);
            let Some((reply, share)) = state.queue.pop_front() else { return };
            state.sending = true;
            drop(state);
            let sent = stream.write_all(&reply);
            drop(share);
            state = self.lock();
            state.sending = false;
            state.owed -= reply.len() as u64;
            if sent.is_err() {
                state.closed = true;
                state.queue.clear();
            }
            self.changed.notify_all();
        }
    }

    /// Waits up to `at_most` until nothing is owed; nothing is sent afterwards.
    pub fn close(&self, at_most: Duration) {
        let state = self.lock();
        let owed = |state: &mut State| !state.closed && state.owed > 0;
        let waited = self.changed.wait_timeout_while(state, at_most, owed);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.closed = true;
        drop(state);
        self.changed.notify_all();
    }
}
