//! Fused commands: a compare and a write of one block, which no other command of the drive can come between.
//!
//! Source: NVM Express Base Specification 2.0, section 3.4.2. The second command of a pair must be the next of its
//! queue; the data of both may come in any order. Ignored: pairs of more than one block.

use super::admin::Context;
use super::entry::Command;
use super::io::{self, Plan};
use super::status::{self, Status};

/// A pair of commands.
pub struct Pair {
    first: Command,
    second: Option<Command>,
    /// The data of each, as far as it has come.
    data: [Option<Vec<u8>>; 2],
    /// Whether the first command has failed.
    has_failed: bool,
}

/// A whole pair: identifiers, place, and the data that the place must have before that of the write.
pub struct Whole {
    pub ids: (u16, u16),
    pub offset: u64,
    pub length: u32,
    pub durable: bool,
    pub data: Vec<u8>,
}

/// Commands that fail, by identifier.
pub type Failed = Vec<(u16, Status)>;

/// The pairs of a queue.
#[derive(Default)]
pub struct Pairs(Vec<Pair>);

/// The plan of the first or second command of a pair, whose namespace has blocks of `block_bytes`.
fn planned(command: &Command, expected: u8, context: &Context<'_>) -> Result<Plan, Status> {
    if command.opcode() != expected || context.facts.zones.is_some() {
        return Err(status::INVALID_FIELD);
    }
    let plan = io::plan(command, context)?;
    if matches!(plan, Plan::Write { directive: Some(_), .. }) {
        return Err(status::INVALID_FIELD);
    }
    if command.dword(12) & 0xFFFF != 0 {
        return Err(status::ATOMIC_UNIT_EXCEEDED);
    }
    Ok(plan)
}

impl Pairs {
    /// A first command without a second before `next`: its identifier, to be completed as failed.
    pub fn incomplete(&mut self, next: &Command) -> Option<u16> {
        let at = self.0.iter().position(|pair| pair.second.is_none())?;
        if next.fusion() == 2 {
            return None;
        }
        let pair = self.0.remove(at);
        (!pair.has_failed).then(|| pair.first.id())
    }

    /// Adds a command of a pair; returns its plan.
    ///
    /// # Errors
    /// The statuses of commands that fail with it, by identifier.
    pub fn add(&mut self, command: &Command, context: &Context<'_>) -> Result<Plan, Failed> {
        if command.fusion() == 1 {
            let plan = planned(command, io::COMPARE, context);
            let has_failed = plan.is_err();
            self.0.push(Pair { first: *command, second: None, data: [None, None], has_failed });
            return plan.map_err(|status| vec![(command.id(), status)]);
        }
        let Some(at) = self.0.iter().position(|pair| pair.second.is_none()) else {
            return Err(vec![(command.id(), status::FUSED_MISSING)]);
        };
        if self.0[at].has_failed {
            self.0.remove(at);
            return Err(vec![(command.id(), status::FUSED_FAILED)]);
        }
        let first = self.0[at].first;
        let same = (first.namespace(), first.qword(10)) == (command.namespace(), command.qword(10));
        let plan = planned(command, io::WRITE, context);
        match plan {
            Ok(plan) if same => {
                self.0[at].second = Some(*command);
                Ok(plan)
            }
            plan => {
                self.0.remove(at);
                let status = plan.err().unwrap_or(status::INVALID_FIELD);
                Err(vec![(first.id(), status), (command.id(), status)])
            }
        }
    }

    /// Adds the data of a command; returns the pair if it is whole now.
    ///
    /// # Errors
    /// The statuses of commands that fail with it, by identifier.
    pub fn add_data(&mut self, command: &Command, data: &[u8], context: &Context<'_>) -> Result<Option<Whole>, Failed> {
        let which = usize::from(command.fusion()) - 1;
        let has = |pair: &Pair| if which == 0 { pair.first == *command } else { pair.second == Some(*command) };
        let Some(at) = self.0.iter().position(has) else { return Ok(None) };
        self.0[at].data[which] = Some(data.to_vec());
        let Pair { second: Some(second), data: [Some(_), Some(_)], .. } = self.0[at] else { return Ok(None) };
        let pair = self.0.remove(at);
        let data = pair.data.into_iter().flatten().collect::<Vec<_>>().concat();
        let ids = (pair.first.id(), second.id());
        // The namespace may have changed while the data came.
        let status = match io::plan(&second, context) {
            Ok(Plan::Write { offset, length, durable, directive: None }) if data.len() == 2 * length as usize => {
                return Ok(Some(Whole { ids, offset, length, durable, data }));
            }
            Ok(_) => status::NAMESPACE_NOT_READY,
            Err(status) => status,
        };
        Err(vec![(ids.0, status), (ids.1, status::FUSED_FAILED)])
    }

    /// Fails the pair of a command with `status`; returns the statuses of its commands.
    pub fn fail(&mut self, command: &Command, status: Status) -> Failed {
        let has = |pair: &Pair| pair.first == *command || pair.second == Some(*command);
        let Some(at) = self.0.iter().position(has) else { return Vec::new() };
        let Some(second) = self.0[at].second else {
            self.0[at].has_failed = true;
            return vec![(command.id(), status)];
        };
        let other = if second == *command { self.0[at].first } else { second };
        self.0.remove(at);
        vec![(command.id(), status), (other.id(), status::FUSED_FAILED)]
    }
}
