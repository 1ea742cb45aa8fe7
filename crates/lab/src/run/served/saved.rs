//! The saved state of a drive: a new drive of the same configuration continues from the state.
//!
//! A drive is saved at rest: all operations have ended, and all buffered data is programmed. The state has flash, wear,
//! the layer, the host's data and the time, so the new drive does as the old one would, with figures that begin anew.
//! Not saved: drives that [kept states](super::super::states) exclude for their kind. Ignored: positions of
//! read-ahead, patrol and arbitration, which begin anew.

use super::super::states;
use super::super::{Options, Session};
use super::Served;
use crate::config::Resolved;
use crate::metrics::summary::Precondition;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::state::{Reader, State};
use palimpsest_flash::units::Nanos;

/// The precondition that the figures of a drive from a state name.
const SAVED: &str = "saved state";

/// The drives that are never saved, whatever their layer.
const NEVER: &str = "drives that store bytes, may lose power, or have parity are not saved";

/// The build of the program and the settings that a state depends on, as text.
fn identity(resolved: &Resolved, options: &Options) -> Option<String> {
    let settings = states::settings(resolved, options)?;
    Some(format!("build {} of {}\n{settings}", palimpsest_layer::plugin::SEAM, env!("CARGO_PKG_VERSION")))
}

impl Session<'_> {
    /// Loads the `saved` state into this new drive, before its time begins.
    pub(super) fn restore(&mut self, resolved: &Resolved, saved: &[u8]) -> Result<Precondition> {
        let refuse = |what: &str| Error::input("state", what);
        let own = identity(resolved, &self.options).ok_or_else(|| refuse(NEVER))?;
        let (mut identity, mut now) = (String::new(), Nanos::default());
        let sum =
            saved.split_last_chunk::<4>().filter(|(state, sum)| crc32fast::hash(state) == u32::from_le_bytes(**sum));
        let (state, _) = sum.ok_or_else(|| refuse("damaged bytes; expected those of `save`"))?;
        let mut from = Reader::new(state);
        let known = identity.load(&mut from).and_then(|()| now.load(&mut from));
        if known.is_none() || identity != own {
            let other = identity.lines().zip(own.lines()).find(|(saved, own)| saved != own);
            let what = other.map_or_else(String::new, |(saved, own)| format!(" ({saved}; here {own})"));
            return Err(refuse(&format!("another drive or build{what}; expected those of the saved drive")));
        }
        let drive = &mut self.drive;
        drive.engine.advance_to(now);
        let loaded = State::load(&mut drive.io, &mut from)
            .and_then(|()| drive.ftl.state_mut()?.load(&mut from))
            .and_then(|()| self.verifier.shadow.load(&mut from));
        if loaded.is_none() || !from.is_at_end() {
            return Err(refuse("a state of other sources; expected one of this build"));
        }
        Ok(Precondition { spec: SAVED.into(), ..Precondition::default() })
    }
}

impl Served<'_> {
    /// Programs all buffered data, waits for all operations, and returns the state.
    ///
    /// # Errors
    /// [`Error::Input`]: requests are in flight, or a drive of this kind cannot be saved; errors of flash.
    pub fn save(&mut self) -> Result<Vec<u8>> {
        let refuse = |what: &str| Err(Error::input("save", what));
        if self.in_flight() > 0 {
            return refuse("requests are in flight; expected a drive at rest");
        }
        let Some(identity) = identity(&self.resolved, &self.session.options) else { return refuse(NEVER) };
        if self.session.worn_out.is_some() {
            return refuse("the drive is worn out; expected one that takes writes");
        }
        self.session.drive.program_buffers()?;
        self.session.drain()?;
        let drive = &self.session.drive;
        let name = &self.resolved.drive.ftl.name;
        let Some(layer) = drive.ftl.state() else { return refuse(&format!("the layer {name} has no state")) };
        let mut out = Vec::new();
        identity.save(&mut out);
        drive.engine.now().save(&mut out);
        drive.io.save(&mut out);
        layer.save(&mut out);
        self.session.verifier.shadow.save(&mut out);
        let sum = crc32fast::hash(&out);
        out.extend(sum.to_le_bytes());
        Ok(out)
    }
}
