//! What serves the file of an attached drive: the drive of the service, with or without a time.
//!
//! To the drive the file is a client as any other. An open file is a connection: once the power has failed it gets errors only, until it is
//! opened again, as what was written and not flushed may be lost.

use crate::drive::{Bytes, Drive};
use crate::engine::Engine;
use crate::listen::Service;
use crate::outbox::Outbox;
use crate::timed::{self, Timed};
use crate::transmission::{Asked, Replies, Request};
use crate::wire;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// Gets the bytes of a read, nothing for other operations, or an error number.
pub type Answer = Box<dyn FnOnce(Result<&[u8], i32>) + Send>;

/// What stores the bytes of a file.
pub trait Disk: Send {
    /// Size of the file.
    fn bytes(&self) -> u64;

    /// The best size of requests, a power of two.
    fn block(&self) -> u32;

    /// How often the power failed so far.
    fn power_cuts(&self) -> u64;

    /// These `requests` come next, each in an operation of its own.
    fn expect(&mut self, _requests: &[Request]) {}

    /// Serves the requests of one operation, in order, for a file that was opened when the power had failed `since` times: one
    /// read, or any number of others. What writes bring is in `memory`, which stays as it is. The answer may come
    /// later, from another thread.
    fn serve(&mut self, since: u64, requests: &[Request], memory: &mut Vec<u8>, answer: Answer);
}

impl<D: Disk + ?Sized> Disk for Box<D> {
    fn bytes(&self) -> u64 {
        (**self).bytes()
    }

    fn block(&self) -> u32 {
        (**self).block()
    }

    fn power_cuts(&self) -> u64 {
        (**self).power_cuts()
    }

    fn expect(&mut self, requests: &[Request]) {
        (**self).expect(requests);
    }

    fn serve(&mut self, since: u64, requests: &[Request], memory: &mut Vec<u8>, answer: Answer) {
        (**self).serve(since, requests, memory, answer);
    }
}

/// The drive of `service`.
pub fn of<'s>(service: &'s Service<'_>) -> Box<dyn Disk + 's> {
    match &service.drive {
        Engine::Counted(drive) => {
            let (queue, replies) = (service.number() as u32, Replies::new(false));
            Box::new(Counted { service, drive, queue, replies })
        }
        Engine::Timed(drive) => {
            let waiting = Arc::default();
            let client = connect(service, drive.power_cuts(), &waiting);
            Box::new(InFlight { service, drive, client, waiting, next: 0 })
        }
    }
}

fn asked(cookie: u64, request: Request) -> Asked {
    Asked { cookie, request: Ok(request), is_read: matches!(request, Request::Read { .. }) }
}

fn errno(error: u32) -> i32 {
    if error == wire::ESHUTDOWN { libc::EIO } else { error as i32 }
}

/// A drive without a time.
struct Counted<'s, 'a> {
    service: &'s Service<'a>,
    drive: &'s Drive<'a>,
    queue: u32,
    replies: Replies,
}

impl Disk for Counted<'_, '_> {
    fn bytes(&self) -> u64 {
        self.service.export.bytes
    }

    fn block(&self) -> u32 {
        self.service.export.preferred_block
    }

    fn power_cuts(&self) -> u64 {
        self.drive.power_cuts()
    }

    fn expect(&mut self, requests: &[Request]) {
        self.drive.expect(requests);
    }

    fn serve(&mut self, since: u64, requests: &[Request], memory: &mut Vec<u8>, answer: Answer) {
        self.replies.clear();
        let mut failed = None;
        for &request in requests {
            // A power cut is an error of the request, and of all that come after.
            let _ = self.drive.serve(
                self.queue,
                since,
                &[asked(0, request)],
                Bytes::Together(&mut *memory),
                &mut self.replies,
                self.service,
            );
            let (_, reply) = Replies::parse(self.replies.bytes());
            match reply {
                Err(error) => failed = Some(errno(error)),
                Ok(_) if requests.len() > 1 => self.replies.clear(),
                Ok(_) => {}
            }
            if failed.is_some() {
                break;
            }
        }
        match failed {
            Some(error) => answer(Err(error)),
            None if requests.len() == 1 => answer(Ok(Replies::parse(self.replies.bytes()).1.unwrap_or_default())),
            None => answer(Ok(&[])),
        }
    }
}

/// An operation that has no answer yet.
struct Waiting {
    left: usize,
    failed: Option<i32>,
    answer: Answer,
}

/// Operations that have no answer yet, by the cookie of their requests.
type AllWaiting = Arc<Mutex<BTreeMap<u64, Waiting>>>;

/// A drive with a time: operations are in flight together.
struct InFlight<'s, 'a> {
    service: &'s Service<'a>,
    drive: &'s Timed<'a>,
    client: Arc<timed::Client>,
    waiting: AllWaiting,
    next: u64,
}

/// A new connection to the drive, whose replies answer what waits for them.
fn connect(service: &Service<'_>, since: u64, waiting: &AllWaiting) -> Arc<timed::Client> {
    let waiting = Arc::clone(waiting);
    let outbox = Outbox::new(Box::new(move |reply| {
        deliver(&waiting, reply);
        Ok::<usize, io::Error>(reply.len())
    }));
    Arc::new(timed::Client { queue: service.number() as u32, outbox, structured: false, since })
}

/// Answers the operation to whose request `reply` is, if it was the last.
fn deliver(waiting: &AllWaiting, reply: &[u8]) {
    let (cookie, reply) = Replies::parse(reply);
    let mut all = waiting.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(one) = all.get_mut(&cookie) else { return };
    one.left -= 1;
    one.failed = one.failed.or(reply.err().map(errno));
    if one.left == 0 {
        let Waiting { failed, answer, .. } = all.remove(&cookie).expect("it is there");
        drop(all);
        answer(failed.map_or(Ok(reply.unwrap_or_default()), Err));
    }
}

impl Disk for InFlight<'_, '_> {
    fn bytes(&self) -> u64 {
        self.service.export.bytes
    }

    fn block(&self) -> u32 {
        self.service.export.preferred_block
    }

    fn power_cuts(&self) -> u64 {
        self.drive.power_cuts()
    }

    fn serve(&mut self, since: u64, requests: &[Request], memory: &mut Vec<u8>, answer: Answer) {
        if requests.is_empty() {
            return answer(Ok(&[]));
        }
        if since < self.client.since {
            return answer(Err(libc::EIO));
        }
        if since > self.client.since {
            self.client = connect(self.service, since, &self.waiting);
        }
        self.next += 1;
        let waiting = Waiting { left: requests.len(), failed: None, answer };
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(self.next, waiting);
        let asked: Vec<Asked> = requests.iter().map(|&request| asked(self.next, request)).collect();
        // A power cut is in the answers, too.
        let _ = self.drive.serve(&self.client, &asked, memory, &self.service.budget, self.service);
    }
}
