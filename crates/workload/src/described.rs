//! Descriptions of workloads: keys and values with commas between, such as `cache=80%,policy=lru`. Sizes and counts are
//! fio's (`16MiB`, `1e6`), shares are percentages. The tables of keys are those of the workloads.

use crate::fio::quantity::{Amount, amount, count};
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::keys::near;
use palimpsest_flash::units::parse::shown;

/// A key: name, expected values, meaning, and setter; `None` for another value.
pub type Key<S> = (&'static str, &'static str, &'static str, fn(&mut S, &str) -> Option<()>);

pub const SHARE: &str = "a percentage such as 4%";
pub const TIMES: &str = "a multiple such as 2x";

/// Sets the keys of `text` in `spec`, and returns their names. `what` names the workloads, and `page` the topic of
/// the page with the keys; `others` lists the values of a key for a message, if the key does not.
///
/// # Errors
/// [`Error::Input`] for an unknown key or a wrong value.
pub fn set<S>(
    spec: &mut S,
    text: &str,
    keys: &[Key<S>],
    (what, page): (&str, &str),
    others: impl Fn(&str, &str) -> Option<String>,
) -> Result<Vec<&'static str>> {
    let mut given = Vec::new();
    for part in text.split(',') {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let (name, value) = (name.trim(), value.trim());
        let Some(&(key, expected, _, set)) = keys.iter().find(|key| key.0 == name) else {
            let hint = near(name, keys.iter().map(|key| key.0));
            let hint = if hint.is_empty() { format!("; expected a key of `palimpsest help {page}`") } else { hint };
            let place = format!("--workload {}", shown(text));
            return Err(Error::input(place, format!("no key of {what} is called {name:?}{hint}")));
        };
        if set(spec, value).is_none() {
            let expected = others(key, value).unwrap_or_else(|| format!("; expected {expected}"));
            return Err(Error::input(format!("{key}={value}"), format!("no value of this key{expected}")));
        }
        given.push(key);
    }
    Ok(given)
}

/// Stores a value, if there is one.
pub fn put<T>(slot: &mut T, value: Option<T>) -> Option<()> {
    *slot = value?;
    Some(())
}

/// The value of a word in `words`.
pub fn word<T: Copy>(text: &str, words: &[(&str, T)]) -> Option<T> {
    words.iter().find(|(word, _)| *word == text).map(|&(_, value)| value)
}

/// A percentage, as a fraction.
pub fn share(text: &str) -> Option<f64> {
    match amount(text)? {
        Amount::Millionths(part) => Some(f64::from(part) / 1e6),
        Amount::Bytes(_) => None,
    }
}

/// A multiple such as `2x`.
pub fn times(text: &str) -> Option<f64> {
    let number: f64 = text.strip_suffix('x')?.parse().ok()?;
    (0.0..=1000.0).contains(&number).then_some(number)
}

/// A number from 1.
pub fn positive(text: &str) -> Option<u64> {
    count(text).filter(|&number| number > 0)
}

/// Numbers of placement handles with colons between.
pub fn handles(text: &str) -> Option<Vec<u16>> {
    text.split(':').map(|each| each.parse().ok()).collect()
}

/// A depth of a closed loop.
pub fn depth(text: &str) -> Option<u32> {
    positive(text).filter(|&depth| depth <= 65536).map(|depth| depth as u32)
}
