//! Serves one NBD client: the handshake, and requests with or without a clock.

use crate::drive::{Bytes, Drive};
use crate::engine::Engine;
use crate::handshake::{self, Chosen};
use crate::input::Large;
use crate::listen::{Connected, Service};
use crate::outbox::Outbox;
use crate::patience::{Patient, Replying};
use crate::request::{Asked, PowerLost};
use crate::socket::Socket;
use crate::timed::{self, Form, Timed};
use crate::transmission::{self, Replies, Target};
use crate::wire::Fault;
use std::io;
use std::sync::Arc;

/// Most threads of a connection: one receives while the other serves a large request.
const THREADS: usize = 2;

/// Replies of NBD, to reads in the agreed form.
pub fn form(structured: bool) -> Box<Form> {
    Box::new(move |asked, answer| Replies::of(structured, asked, answer))
}

/// The drive for one client.
struct Own<'s, 'a> {
    service: &'s Service<'a>,
    drive: &'s Drive<'a>,
    terms: Terms,
}

impl Target for Own<'_, '_> {
    fn lends(&self) -> bool {
        true
    }

    fn serve(&mut self, asked: &[Asked], input: &mut Vec<u8>, replies: &mut Replies) -> Result<(), PowerLost> {
        self.drive.serve(self.terms.queue, self.terms.since, asked, Bytes::Together(input), replies, self.service)
    }

    fn serve_large(&mut self, asked: &Asked, large: &mut Large, replies: &mut Replies) -> Result<(), PowerLost> {
        // The drive is not locked meanwhile.
        large.seal();
        let bytes = Bytes::Known(&mut large.slab, &mut large.fingerprints);
        let Terms { queue, since, .. } = self.terms;
        self.drive.serve(queue, since, std::slice::from_ref(asked), bytes, replies, self.service)
    }
}

/// The drive with a clock for one client.
struct OwnTimed<'s, 'a> {
    service: &'s Service<'a>,
    drive: &'s Timed<'a>,
    client: Arc<timed::Client>,
}

impl Target for OwnTimed<'_, '_> {
    fn serve(&mut self, asked: &[Asked], input: &mut Vec<u8>, _replies: &mut Replies) -> Result<(), PowerLost> {
        self.drive.serve(&self.client, asked, input, &self.service.budget, self.service)
    }

    fn send(&mut self, _stream: &mut dyn io::Write, replies: &mut Replies) -> io::Result<()> {
        let bytes = replies.take();
        if !bytes.is_empty() {
            self.client.outbox.deliver(bytes, 0, None);
        }
        Ok(())
    }
}

/// The terms of a client.
#[derive(Clone, Copy)]
struct Terms {
    /// Number of the client.
    queue: u32,
    structured: bool,
    /// Power cuts before the client connected.
    since: u64,
}

/// Serves a client whose replies come later, from the thread of the drive.
fn serve_timed<'a>(
    stream: &mut Patient,
    service: &Service<'a>,
    drive: &Timed<'a>,
    Terms { queue, structured, since }: Terms,
    another: Socket,
) -> Result<u64, Fault> {
    let mut writer = another.another()?;
    let outbox = Arc::new(Outbox::new(Box::new(move |bytes| another.send_now(bytes))));
    let client = Arc::new(timed::Client { queue, outbox, form: form(structured), since });
    std::thread::scope(|scope| {
        let outbox = &client.outbox;
        scope.spawn(move || outbox.run(&mut writer));
        let own = || OwnTimed { service, drive, client: Arc::clone(&client) };
        let ended = transmission::transmit((stream, io::sink()), (&service.export, structured), &own, 1, &|| {});
        outbox.close(service.timeout);
        ended
    })
}

/// Serves a client until the connection ends.
///
/// # Errors
/// [`Fault`]: the connection must be closed.
pub fn serve_client(stream: &mut Patient, service: &Service<'_>, connected: Connected) -> Result<(), Fault> {
    let Connected { number, since, socket } = connected;
    let Chosen::Export { structured } = handshake::negotiate(stream, &service.export)? else { return Ok(()) };
    service.used();
    let terms = Terms { queue: number as u32, structured, since };
    let ended = match &service.drive {
        Engine::Counted(drive) => {
            let third = socket.another()?;
            let writer = Replying { socket, timeout: service.timeout };
            let (own, hang_up) = (|| Own { service, drive, terms }, || third.hang_up(true));
            transmission::transmit((stream, writer), (&service.export, structured), &own, THREADS, &hang_up)
        }
        Engine::Timed(drive) => serve_timed(stream, service, drive, terms, socket),
    };
    ended.map(|_| ())
}
