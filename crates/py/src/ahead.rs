//! Reads traces ahead: a thread decompresses and parses up to some thousand requests before the run needs them.

use crate::files::check_signals;
use palimpsest_lab::error::{Error, Result};
use palimpsest_lab::host::batches::{Batch, Batched};
use palimpsest_lab::host::request::Source;
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};

/// Batches that wait for the run.
const BATCHES: usize = 4;

/// The requests of `source`, read by another thread if the machine has a second core. Each request for a batch checks
/// signals.
pub fn ahead(source: Box<dyn Source>) -> Box<dyn Source> {
    if thread::available_parallelism().map_or(1, usize::from) == 1 {
        return source;
    }
    Batched::of(source, |mut source| {
        let (sender, receiver) = mpsc::sync_channel(BATCHES);
        let thread = thread::spawn(move || {
            loop {
                let batch = Batch::read(source.as_mut());
                let is_last = batch.is_last();
                if sender.send(batch).is_err() || is_last {
                    return;
                }
            }
        });
        let mut reading = Reading { receiver: Some(receiver), thread: Some(thread) };
        Box::new(move || reading.next())
    })
}

/// The reading thread, which ends with the last batch or when `Reading` is dropped.
struct Reading {
    receiver: Option<Receiver<Batch>>,
    thread: Option<JoinHandle<()>>,
}

impl Reading {
    fn next(&mut self) -> Result<Batch> {
        check_signals().map_err(|_| Error::Interrupted)?;
        match self.receiver.as_ref().and_then(|receiver| receiver.recv().ok()) {
            Some(batch) => Ok(batch),
            None => {
                let ended = self.thread.take().map_or(Ok(()), JoinHandle::join);
                std::panic::resume_unwind(ended.err().unwrap_or_else(|| Box::new("a trace was read behind its end")))
            }
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        drop(self.receiver.take());
        // A panic is ignored, because the run needs no more requests.
        drop(self.thread.take().map(JoinHandle::join));
    }
}
