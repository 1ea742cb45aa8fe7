//! Policies that a program adds to those of a registry, such as classes in Python. A plug-in gets those
//! of the program that loads the plug-in. Ignored: more than one such program.

use palimpsest_flash::units::parse::{Parsed, shown};
use palimpsest_ftl_api::keys::near;
use std::sync::OnceLock;

/// Policies of the trait `P` outside of the registry.
pub struct Outside<P: ?Sized> {
    /// The forms of their names, for messages.
    pub form: fn() -> String,
    /// The canonical text of the policy that a text names; `None` if the text names none.
    pub read: fn(&str) -> Option<Parsed<String>>,
    /// Constructs the policy with a canonical text; `None` if the text names none.
    pub build: fn(&str) -> Option<Box<P>>,
}

impl<P: ?Sized> Copy for Outside<P> {}

impl<P: ?Sized> Clone for Outside<P> {
    fn clone(&self) -> Self {
        *self
    }
}

/// The policies that a program added, once, before the first configuration.
pub type Added<P> = OnceLock<Outside<P>>;

/// As [`Outside::read`], of the added policies.
pub(super) fn read<P: ?Sized>(added: &Added<P>, text: &str) -> Option<Parsed<String>> {
    added.get().and_then(|outside| (outside.read)(text))
}

/// As [`Outside::build`], of the added policies.
pub(super) fn build<P: ?Sized>(added: &Added<P>, text: &str) -> Option<Box<P>> {
    added.get().and_then(|outside| (outside.build)(text))
}

/// The canonical text of one of `words`, or of an added policy.
pub(super) fn canonical<P: ?Sized>(added: &Added<P>, words: &[&str], text: &str) -> Parsed<String> {
    if let Some(outside) = read(added, text) {
        return outside;
    }
    if words.contains(&text) {
        return Ok(text.to_owned());
    }
    let expected = expected(added, words.iter().map(|&word| word.to_owned()));
    Err(format!("\"{}\" is not known; expected {expected}{}", shown(text), near(text, words.iter().copied())))
}

/// "one of ...": `forms`, and the form of the added policies.
pub(super) fn expected<P: ?Sized>(added: &Added<P>, forms: impl Iterator<Item = String>) -> String {
    let forms = forms.chain(added.get().map(|outside| (outside.form)()));
    format!("one of {}", forms.collect::<Vec<_>>().join(", "))
}
