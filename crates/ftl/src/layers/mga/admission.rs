//! Admission of small writes: the share of fully free pages above which they get pages of their own (exclusive
//! allocation; MGA paper, Sec. III-D). Below that share they go to pages with room (shared allocation).
//!
//! A program may add policies to [`OUTSIDE`], such as those in Python, which choose the share of each request ahead, in
//! steps of 0.5 %. Ignored: shares that depend on the logical pages of a request.

use super::Mga;
use crate::log::outside::Added;
use palimpsest_flash::command::Command;
use palimpsest_flash::keys::{FromValue, Value};
use palimpsest_flash::state::State;
use palimpsest_flash::units::Nanos;
use palimpsest_flash::units::parse::{Parsed, shown};
use palimpsest_ftl_api::ClassifyAhead;
use palimpsest_ftl_api::keys::{Notation, ValueType};

/// The kind of `ftl.allocation_threshold`.
pub(super) const KIND: ValueType =
    ValueType::ShareOrNotation(&Notation { words: Vec::new, read: canonical, expected: form });

/// Classes of requests: steps of the share from 0 to 1.
pub const STEPS: u8 = 200;

/// A policy outside of this crate.
pub trait Admit: Send + State {
    /// Sets the class of each of `commands`, which arrive at `arrivals`, to a number of steps. `free`: the share of
    /// fully free pages now.
    fn admit(&mut self, arrivals: &[Nanos], commands: &mut [Command], free: f64);
}

palimpsest_flash::state_of_box!(dyn Admit);

/// Policies outside of this crate.
pub static OUTSIDE: Added<dyn Admit> = Added::new("ftl.allocation_threshold");

/// The value of `ftl.allocation_threshold`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Threshold {
    /// The share for all requests.
    Share(f64),
    /// A policy outside chooses the shares.
    Outside,
}

impl FromValue for Threshold {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Ratio(share) => Some(Threshold::Share(*share)),
            Value::Text(_) => Some(Threshold::Outside),
            _ => None,
        }
    }
}

fn form() -> String {
    OUTSIDE.forms().map_or(String::new(), |forms| format!(", or {forms}"))
}

fn canonical(text: &str) -> Parsed<String> {
    OUTSIDE.read(text).unwrap_or_else(|| {
        Err(format!("\"{}\" is no share; expected a percentage such as \"30%\"{}", shown(text), form()))
    })
}

impl Mga {
    /// The share of fully free pages.
    pub(super) fn free_share(&self) -> f64 {
        f64::from(self.pages.space.total()) / f64::from(self.pages_in_all)
    }

    /// Sets the threshold of a request of this class.
    #[inline]
    pub(super) fn admit(&mut self, class: u8) {
        if self.admission.is_some() {
            self.threshold = (f64::from(self.pages_in_all) * (f64::from(class) / f64::from(STEPS))) as u32;
        }
    }
}

impl ClassifyAhead for Mga {
    fn classify_ahead(&mut self, arrivals: &[Nanos], commands: &mut [Command]) {
        let free = self.free_share();
        self.admission.iter_mut().for_each(|policy| policy.admit(arrivals, commands, free));
    }
}
