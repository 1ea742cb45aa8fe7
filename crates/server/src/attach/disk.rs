//! The disk behind the file of an attached drive: the drive of the service, with or without a clock.
//!
//! The file is a client of the drive. An open file is a connection: after a power cut it gets errors until it is opened
//! again, because unflushed writes may be lost.

use crate::drive::{Bytes, Drive};
use crate::engine::Engine;
use crate::listen::Service;
use crate::nbd;
use crate::outbox::Outbox;
use crate::request::{Asked, Request};
use crate::timed::{self, Timed};
use crate::transmission::Replies;
use crate::wire;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// Gets the bytes of a read, nothing for other operations, or an error number.
pub type Answer = Box<dyn FnOnce(Result<&[u8], i32>) + Send>;

/// The disk behind a file.
pub trait Disk: Send {
    /// Bytes of the file, and the best size of requests, a power of two.
    fn size(&self) -> (u64, u32);

    /// Number of power cuts so far.
    fn power_cuts(&self) -> u64;

    /// Announces `requests`, which come next, each in a separate operation.
    fn expect(&mut self, _requests: &[Request]) {}

    /// Serves the requests of one operation in order, for a file that was opened after `since` power cuts: one read, or
    /// any number of others. `memory` holds the bytes of writes, and stays unchanged. The answer may come later, from
    /// another thread.
    fn serve(&mut self, since: u64, requests: &[Request], memory: &mut Vec<u8>, answer: Answer);
}

/// The drive of `service` as a disk.
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

/// A drive without a clock.
struct Counted<'s, 'a> {
    service: &'s Service<'a>,
    drive: &'s Drive<'a>,
    queue: u32,
    replies: Replies,
}

impl Disk for Counted<'_, '_> {
    fn size(&self) -> (u64, u32) {
        (self.service.export.bytes, self.service.export.preferred_block)
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
            // A power cut is an error of this request and of all later ones.
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

struct Waiting {
    left: usize,
    failed: Option<i32>,
    answer: Answer,
}

/// Unanswered operations, by the cookie of their requests.
type AllWaiting = Arc<Mutex<BTreeMap<u64, Waiting>>>;

/// A drive with a clock: operations are in flight together.
struct InFlight<'s, 'a> {
    service: &'s Service<'a>,
    drive: &'s Timed<'a>,
    client: Arc<timed::Client>,
    waiting: AllWaiting,
    next: u64,
}

/// A new connection to the drive, whose replies answer waiting operations.
fn connect(service: &Service<'_>, since: u64, waiting: &AllWaiting) -> Arc<timed::Client> {
    let waiting = Arc::clone(waiting);
    let outbox = Arc::new(Outbox::new(Box::new(move |reply| {
        deliver(&waiting, reply);
        Ok::<usize, io::Error>(reply.len())
    })));
    Arc::new(timed::Client { queue: service.number() as u32, outbox, form: nbd::form(false), since })
}

/// Counts the reply to a request; the last reply answers the operation.
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
    fn size(&self) -> (u64, u32) {
        (self.service.export.bytes, self.service.export.preferred_block)
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
        // The answers report a power cut, too.
        let _ = self.drive.serve(&self.client, &asked, memory, &self.service.budget, self.service);
    }
}
