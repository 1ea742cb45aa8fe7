//! Fidelity: runs against closed forms and identities.

#[path = "fidelity/amplification.rs"]
mod amplification;
#[path = "fidelity/bench.rs"]
mod bench;
#[path = "fidelity/forms.rs"]
mod forms;
