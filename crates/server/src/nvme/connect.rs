//! The begin of a connection: the agreement on terms, and the connect of one queue.
//!
//! Sources: NVM Express TCP Transport Specification 1.0, section 3.3; NVM Express over Fabrics 1.1, section 3.3. The
//! data of a connect must be in the capsule. Ignored: authentication, and static controllers.

use super::admin::{self, CONNECT, CONNECT_BYTES, Connect, Wrong, wrong};
use super::controller::{Controller, Host, MOST_ENTRIES, MOST_QUEUES};
use super::entry::{Command, FABRICS, Place};
use super::pdu::{self, Next, Pdu, Terms, broken};
use super::queue::Queue;
use super::status;
use super::{Subsystem, discovery};
use crate::input::Input;
use crate::socket::Socket;
use crate::wire::{Fault, Stream};
use std::io::Write;
use std::sync::Arc;

/// Any controller of the subsystem.
const DYNAMIC: u16 = 0xFFFF;

/// A connected queue. Drop ends the queue, and the controller with the admin queue.
pub struct Opened<'s> {
    subsystem: &'s Subsystem,
    pub queue: Arc<Queue>,
    /// The unsent answer to the connect.
    pub response: Vec<u8>,
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        let controller = &self.queue.controller;
        if self.queue.number == 0 {
            self.subsystem.remove(controller.id);
            controller.end();
        } else {
            controller.detach(self.queue.number);
        }
    }
}

/// Receives the next PDU; `None` at the end of the connection. [`Input::begin`] stays at the PDU.
///
/// # Errors
/// [`Fault`]; a malformed PDU is answered.
fn receive(
    stream: &mut impl Stream,
    writer: &mut impl Write,
    input: &mut Input,
    terms: &Terms,
) -> Result<Option<Pdu>, Fault> {
    loop {
        match pdu::next(&input.bytes[input.begin..input.end], terms) {
            Ok(Next::Pdu(pdu)) => return Ok(Some(pdu)),
            Ok(Next::Needs(needed)) => {
                if !input.fill(stream, needed, false)? {
                    return Ok(None);
                }
            }
            Err(broken) => {
                writer.write_all(&pdu::terminate(&broken))?;
                return Err(Fault::Protocol(broken.what));
            }
        }
    }
}

/// Agrees on terms with a host and connects a queue; `None` if the host leaves or is refused. `socket` makes a handle
/// of the connection for the controller.
///
/// # Errors
/// [`Fault`]: the connection must be closed.
pub fn open<'s>(
    stream: &mut impl Stream,
    writer: &mut impl Write,
    input: &mut Input,
    subsystem: &'s Subsystem,
    socket: impl FnOnce() -> std::io::Result<Option<Socket>>,
) -> Result<Option<Opened<'s>>, Fault> {
    let plain = Terms { alignment: 4, ..Terms::default() };
    let Some(first) = receive(stream, writer, input, &plain)? else { return Ok(None) };
    let header = &input.bytes[input.begin..][first.header.clone()];
    let agreed = match first.kind {
        pdu::IC_REQ => pdu::initialize(header),
        _ => Err(broken(pdu::WRONG_SEQUENCE, 0, header, "a connection does not begin with an ICReq")),
    };
    let terms = match agreed {
        Ok(terms) => terms,
        Err(broken) => {
            writer.write_all(&pdu::terminate(&broken))?;
            return Err(Fault::Protocol(broken.what));
        }
    };
    writer.write_all(&pdu::initialized(&terms))?;
    input.begin += first.end;
    let Some(second) = receive(stream, writer, input, &terms)? else { return Ok(None) };
    let bytes = &input.bytes[input.begin..][..second.end];
    if second.kind != pdu::COMMAND {
        let broken = broken(pdu::WRONG_SEQUENCE, 0, &bytes[second.header], "the first command is no connect");
        writer.write_all(&pdu::terminate(&broken))?;
        return Err(Fault::Protocol(broken.what));
    }
    let (command, data) = (Command::new(&bytes[second.header]), &bytes[second.data.clone()]);
    let is_damaged = second.has_data_digest && crc32c::crc32c(data) != pdu::u32_at(bytes, second.data.end);
    let connected = match is_damaged {
        true => Err((status::TRANSIENT_TRANSPORT_ERROR, 0)),
        false => connect(&command, data, &terms, subsystem, socket()?),
    };
    input.begin += second.end;
    match connected {
        Ok(queue) => {
            let mut response = Vec::new();
            queue.receive();
            queue.complete(&mut response, command.id(), status::SUCCESS, queue.controller.id.into());
            Ok(Some(Opened { subsystem, queue: Arc::new(queue), response }))
        }
        Err((status, result)) => {
            let mut response = Vec::new();
            pdu::append_response(&mut response, &terms, &super::entry::completion(command.id(), status, result, 1));
            writer.write_all(&response)?;
            Ok(None)
        }
    }
}

fn connect(
    command: &Command,
    data: &[u8],
    terms: &Terms,
    subsystem: &Subsystem,
    socket: Option<Socket>,
) -> Result<Queue, Wrong> {
    if command.opcode() != FABRICS || command.fabrics_type() != CONNECT {
        return Err((status::SEQUENCE_ERROR, 0));
    }
    if command.fusion() != 0 {
        return Err((status::INVALID_FIELD, 0));
    }
    let place = command.check_flags().and_then(|()| command.data_from_host(CONNECT_BYTES, data.len()));
    let data = match place.map_err(|status| (status, 0))? {
        Place::Capsule(at) => &data[at..at + CONNECT_BYTES as usize],
        Place::Transport => return Err((status::SGL_TYPE_INVALID, 0)),
    };
    let asked = Connect::new(command, data)?;
    let is_discovery = asked.subsystem == discovery::NQN;
    if asked.subsystem != subsystem.nqn && !is_discovery {
        return Err(wrong(256, true));
    }
    if !is_discovery && !subsystem.allows(&asked.host) {
        return Err((status::INVALID_HOST, 0));
    }
    if asked.size == 0 || asked.size >= MOST_ENTRIES {
        return Err(wrong(44, false));
    }
    let host = Host { name: asked.host, id: asked.host_id };
    let controller = if asked.queue == 0 {
        if asked.controller != DYNAMIC {
            return Err(wrong(16, true));
        }
        let controller = subsystem.add(host, is_discovery).ok_or((status::CONTROLLER_BUSY, 0))?;
        controller.keep_alive_for(asked.keep_alive_ms);
        controller
    } else {
        let controller = subsystem.find(asked.controller).filter(|found| found.is_discovery == is_discovery);
        let controller = controller.ok_or(wrong(16, true))?;
        queue_of(&controller, &host.name, asked.queue, socket)?;
        controller
    };
    Ok(Queue::new(*terms, controller, asked.queue, asked.size + 1, asked.no_flow_control))
}

/// Adds I/O queue `number` of `host` to a controller. As in Linux's target, the admin queue has the identifier of the
/// host, because some hosts draw another one for each connect.
fn queue_of(controller: &Controller, host: &str, number: u16, socket: Option<Socket>) -> Result<(), Wrong> {
    if controller.host.name != host {
        return Err(wrong(512, true));
    }
    if controller.is_discovery || number > MOST_QUEUES {
        return Err(wrong(42, false));
    }
    controller.attach(number, socket).map_err(|status| (status, 0))
}

/// Whether `command` disconnects its I/O queue.
pub fn disconnects(command: &Command) -> bool {
    command.opcode() == FABRICS && command.fabrics_type() == admin::DISCONNECT
}
