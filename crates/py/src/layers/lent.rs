//! Flash, lent to Python for the length of one call of a layer. Ignored: loans that nest.

use palimpsest_lab::plan::Io;
use std::ptr::NonNull;

/// Flash that a caller has lent, to look at or to change.
#[derive(Default)]
pub enum Lent {
    /// None: no call of the layer runs.
    #[default]
    Nothing,
    /// Until the call ends, no other code changes flash.
    ToLook(NonNull<Io>),
    /// Until the call ends, no other code uses flash.
    ToChange(NonNull<Io>),
}

#[allow(unsafe_code, reason = "Io is Send, and the pointer is used only under the lock of its owner")]
// SAFETY: `Io` is `Send`, and `LayerIo` uses the pointer only under a lock, while the lender waits.
unsafe impl Send for Lent {}

impl Lent {
    /// Flash, to look at; `None` if none is lent.
    #[allow(unsafe_code, reason = "the lender takes the pointer back before the reference ends")]
    pub fn look(&self) -> Option<&Io> {
        match self {
            Lent::Nothing => None,
            // SAFETY: `LayerIo::lend` stores a pointer made of a reference that it holds until it stores `Nothing`.
            Lent::ToLook(io) | Lent::ToChange(io) => Some(unsafe { io.as_ref() }),
        }
    }

    /// Flash, to change; `None` if none is lent, or only to look at.
    #[allow(unsafe_code, reason = "the lender takes the pointer back before the reference ends")]
    pub fn change(&mut self) -> Option<&mut Io> {
        match self {
            // SAFETY: as for `look`; the reference is exclusive, and so is `self`.
            Lent::ToChange(io) => Some(unsafe { io.as_mut() }),
            Lent::Nothing | Lent::ToLook(_) => None,
        }
    }
}
