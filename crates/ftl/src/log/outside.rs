//! Policies that a program adds to those of a registry, such as classes in Python. A plug-in gets those
//! of the program that loads the plug-in. Ignored: more than one such program.

use palimpsest_flash::units::parse::{Parsed, shown};
use palimpsest_ftl_api::keys::{Value, near};
use palimpsest_ftl_api::settings::Settings;
use std::sync::OnceLock;

/// A program that adds policies. Each function gets the key first.
#[derive(Clone, Copy)]
pub struct Program {
    /// The forms of the names of policies, for messages.
    pub forms: fn(&str) -> String,
    /// True if a text names a policy of a key.
    pub names: fn(&str, &str) -> bool,
    /// The canonical text of the policy that a text names for a key.
    pub read: fn(&str, &str) -> Parsed<String>,
    /// True if a policy has failed in this thread.
    pub has_failed: fn() -> bool,
}

/// The program, set before the first configuration.
pub static PROGRAM: OnceLock<Program> = OnceLock::new();

/// A key whose policies have the trait `P`, and the constructor of added ones, set once: from the key and a canonical
/// text.
pub struct Added<P: ?Sized> {
    /// The key.
    pub key: &'static str,
    /// The constructor.
    pub build: OnceLock<fn(&str, &str) -> Box<P>>,
}

impl<P: ?Sized> Added<P> {
    /// No policies of `key`.
    pub const fn new(key: &'static str) -> Self {
        Added { key, build: OnceLock::new() }
    }

    /// The policy that `text` names; `None` if the text names none.
    pub(crate) fn build(&self, text: &str) -> Option<Box<P>> {
        let build = self.build.get().filter(|_| is_outside(self.key, text))?;
        Some(build(self.key, text))
    }

    /// The policy that `settings` name for the key.
    pub(crate) fn build_from(&self, settings: &Settings) -> Option<Box<P>> {
        if let Value::Text(text) = settings.value(self.key) { self.build(text) } else { None }
    }

    /// The canonical text of the added policy that `text` names; `None` if the text names none.
    pub(crate) fn read(&self, text: &str) -> Option<Parsed<String>> {
        let program = self.build.get().and_then(|_| PROGRAM.get()).filter(|program| (program.names)(self.key, text))?;
        Some((program.read)(self.key, text))
    }

    /// The canonical text of one of `words`, or of an added policy.
    pub(crate) fn canonical(&self, words: &[&str], text: &str) -> Parsed<String> {
        if let Some(outside) = self.read(text) {
            return outside;
        }
        if words.contains(&text) {
            return Ok(text.to_owned());
        }
        let expected = self.expected(words.iter().map(|&word| word.to_owned()));
        Err(format!("\"{}\" is not known; expected {expected}{}", shown(text), near(text, words.iter().copied())))
    }

    /// "one of ...": `forms`, and the form of the added policies.
    pub(crate) fn expected(&self, forms: impl Iterator<Item = String>) -> String {
        format!("one of {}", forms.chain(self.forms()).collect::<Vec<_>>().join(", "))
    }

    /// The forms of the added policies, if there are some.
    pub(crate) fn forms(&self) -> Option<String> {
        self.build.get().and_then(|_| PROGRAM.get()).map(|program| (program.forms)(self.key))
    }
}

/// True if `text` names a policy of `key` of the program.
pub fn is_outside(key: &str, text: &str) -> bool {
    PROGRAM.get().is_some_and(|program| (program.names)(key, text))
}

/// The kind of a key with the words `$words` and the policies `$added`.
macro_rules! notation {
    ($added:expr, $words:expr) => {
        &palimpsest_ftl_api::keys::Notation {
            words: || $words.to_vec(),
            read: |text| $added.canonical($words, text),
            expected: || $added.expected($words.iter().map(|&word: &&str| word.to_owned())),
        }
    };
}
pub(crate) use notation;
