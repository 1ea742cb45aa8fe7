//! Kept states: a run loads the state of an earlier, equally preconditioned drive. The result must be the same.
//!
//! A state contains flash, layer and the host's data, with all counters and random sources. It depends on all settings
//! of the drive except [`UNREAD_TABLES`] and [`TIMES`], on the preconditioning, the payload, the seed, and whether
//! times are verified; the [`Key`] contains them all. Preconditioning is counted, so one state serves counted and timed
//! runs, and drives that differ in times. The caller stores states ([`States`]).
//!
//! Not kept: drives whose layer has no state ([`palimpsest_ftl_api::Ftl::state`]), that store bytes or lose power,
//! superblocks as blocks of the layer, and `layout`, which depends on the workload.

use super::build::UNREAD_TABLES;
use super::precondition::{Precondition, describe, precondition as write};
use super::{Fidelity, Options, Session};
use crate::config::Resolved;
use crate::layers::is_built_in;
use crate::metrics::summary;
use palimpsest_flash::error::Result;
use palimpsest_flash::nand::data::Payload;
use palimpsest_flash::state::{Loaded, Reader, State};
use palimpsest_ftl::log::outside::is_outside;
use palimpsest_ftl_api::keys::Value;
use palimpsest_workload::request::Source;
use std::fmt::Write;
use std::sync::Arc;

/// Keys of a part and of the buffer that change times alone.
const TIMES: [&str; 15] = [
    "part.t_read",
    "part.t_read_high",
    "part.t_read_types",
    "part.t_read_slc",
    "part.t_read_retry",
    "part.t_program",
    "part.t_program_high",
    "part.t_program_slc",
    "part.t_erase",
    "part.t_suspend",
    "part.t_suspend_erase",
    "part.t_resume",
    "part.bus_rate",
    "buffer.t_write",
    "buffer.t_write_next",
];

/// Least bytes of a state for each physical subpage.
const LEAST_SUBPAGE_BYTES: u64 = 4;

/// The identity of a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// All settings as text, without the sources of the program.
    pub text: String,
    /// Whether the program's own sources are complete; a layer of another crate may change without them.
    pub built_in: bool,
    /// Whether a policy of the user decides; the text has the digest of its file, but not of imported files.
    pub own_policy: bool,
}

/// A store of states.
pub trait States {
    /// The state of `key`, if stored.
    fn find(&mut self, key: &Key) -> Option<Arc<Vec<u8>>>;

    /// Stores `state`, replacing an earlier one of `key`.
    fn keep(&mut self, key: &Key, state: Vec<u8>);

    /// Whether there is space for a state of at least `bytes`, which is first made in memory.
    fn takes(&mut self, _bytes: u64) -> bool {
        true
    }

    /// Whether another state would be stored.
    fn has_room(&mut self) -> bool {
        true
    }

    /// Whether anything is stored at all.
    fn is_used(&self) -> bool {
        true
    }
}

/// Stores nothing.
pub struct NotKept;

impl States for NotKept {
    fn find(&mut self, _key: &Key) -> Option<Arc<Vec<u8>>> {
        None
    }

    fn keep(&mut self, _key: &Key, _state: Vec<u8>) {}

    fn is_used(&self) -> bool {
        false
    }
}

/// The key of the state of the drive `resolved` after the preconditioning of `options`; `None` if states of this kind
/// are not kept.
pub fn key(resolved: &Resolved, options: &Options) -> Option<Key> {
    let is_whole = match options.precondition {
        Precondition::None | Precondition::Layout => false,
        Precondition::Fill { .. } | Precondition::Steady => true,
    };
    if !is_whole {
        return None;
    }
    let text = format!("{:?}, {}", options.precondition, settings(resolved, options)?);
    let is_own = |(key, value): (&str, &Value)| matches!(value, Value::Text(text) if is_outside(key, text));
    let (built_in, own_policy) = (is_built_in(&resolved.drive.ftl.name), resolved.values().any(is_own));
    Some(Key { text, built_in, own_policy })
}

/// The settings on which a state depends, preconditioning aside; `None` if states of this kind are not kept.
pub(super) fn settings(resolved: &Resolved, options: &Options) -> Option<String> {
    let drive = &resolved.drive;
    if options.payload == Payload::Bytes || drive.loses_power() || drive.stripes.is_some() {
        return None;
    }
    let verifies = options.fidelity == Fidelity::Timed && options.payload != Payload::None;
    let Options { payload, seed, .. } = options;
    let mut text = format!("payload {payload:?}, seed {seed}, times verified: {verifies}\n");
    for (key, value) in resolved.values() {
        let table = key.split_once('.').map_or(key, |(table, _)| table);
        if !UNREAD_TABLES.contains(&table) && !TIMES.contains(&key) {
            let _ = writeln!(text, "{key} = {value:?}");
        }
    }
    Some(text)
}

/// Preconditions the new drive of `session`, or loads a kept state; returns the figures of the writes.
pub(super) fn precondition<'a>(
    mut session: Session<'a>,
    source: &mut dyn Source,
    resolved: &Resolved,
    states: &mut dyn States,
) -> Result<(Session<'a>, summary::Precondition)> {
    let options = Arc::clone(&session.options);
    let what = &options.precondition;
    session.in_huge_pages(source.expected_requests());
    let least = session.drive.io.geometry().subpages() * LEAST_SUBPAGE_BYTES;
    let keeps = states.is_used() && session.drive.ftl.state().is_some() && states.takes(least);
    let Some(key) = key(resolved, &session.options).filter(|_| keeps) else {
        let done = write(&mut session, source, what)?;
        return Ok((session, done));
    };
    if let Some(state) = states.find(&key) {
        let mut done = summary::Precondition { spec: describe(what), ..Default::default() };
        if load(&mut session, &mut done, &state).is_some() {
            return Ok((session, done));
        }
        let Session { config, options, watch, .. } = session;
        session = Session::with(config, options, watch.into_watcher())?;
        session.in_huge_pages(source.expected_requests());
    }
    let done = write(&mut session, source, what)?;
    if states.has_room()
        && let Some(state) = save(&session, &done)
    {
        states.keep(&key, state);
    }
    Ok((session, done))
}

fn save(session: &Session<'_>, done: &summary::Precondition) -> Option<Vec<u8>> {
    let (drive, mut out) = (&session.drive, Vec::new());
    drive.io.save(&mut out);
    drive.ftl.state()?.save(&mut out);
    session.verifier.shadow.save(&mut out);
    session.tally.precondition_bytes.save(&mut out);
    (done.last_write_amplification, done.converged).save(&mut out);
    Some(out)
}

fn load(session: &mut Session<'_>, done: &mut summary::Precondition, state: &[u8]) -> Loaded {
    let mut from = Reader::new(state);
    let drive = &mut session.drive;
    State::load(&mut drive.io, &mut from)?;
    drive.ftl.state_mut()?.load(&mut from)?;
    session.verifier.shadow.load(&mut from)?;
    session.tally.precondition_bytes.load(&mut from)?;
    let mut measured = (None, None);
    measured.load(&mut from)?;
    (done.last_write_amplification, done.converged) = measured;
    done.bytes_written = session.tally.precondition_bytes;
    from.is_at_end().then_some(())
}

#[cfg(test)]
mod fills;
#[cfg(test)]
mod tests;
