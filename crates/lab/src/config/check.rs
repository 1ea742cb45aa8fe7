//! Checks of a whole drive: rules that involve several keys. The declaration of a key has the rules of that key alone.
//!
//! Every refusal names the keys with their values and sources, and a remedy. Ignored: unwise but possible drives.

mod fast_cache;
mod features;
mod pages;
mod parity;
pub(super) mod remedies;
mod space;

use super::build::Values;
use super::{DriveConfig, ResolvedKey};
use crate::ftl;
use crate::layers::{find_layer, layers};
use palimpsest_flash::error::Error;
use palimpsest_flash::keys::{few, fitting};
use palimpsest_ftl::log::streams;
use palimpsest_ftl_api::{Proposal, Unfit};
use remedies::Trial;

/// Most pages of a block: operations name them with 16 bits.
const MOST_PAGES_PER_BLOCK: u32 = 1 << 16;

/// The error of a drive that `unfit` refuses, with remedies that `trial` found possible: [`Error::Input`] at the place
/// of the key of the last overlay.
pub(super) fn refusal(values: &Values, unfit: &Unfit, trial: &dyn Trial) -> Error {
    refused(values, unfit, &remedies::of(values, unfit, trial))
}

/// Refuses an impossible drive.
///
/// # Errors
/// The first refusal.
pub(super) fn fits(drive: &DriveConfig, values: &Values) -> Fit {
    rules(drive, values)?;
    pages::page_shape(values)?;
    pages::word_lines(drive, values)?;
    space::subpages(values)?;
    space::counts(drive)?;
    pages::page_types(drive, values)?;
    features::superblocks(drive)?;
    features::namespaces(drive)?;
    fast_cache::check(drive, values)?;
    pages::program_order(drive)?;
    pages::words(drive, values)?;
    pages::wear(drive)?;
    space::spare_blocks(drive, values)?;
    space::thresholds(drive)?;
    layer(drive)?;
    features::read_errors(drive)?;
    features::faults(drive)?;
    parity::check(drive)?;
    features::buffer(drive)
}

/// The outcome of a check.
type Fit = std::result::Result<(), Unfit>;

/// A value that a file or an option sets must meet the rules of the key, unless only other layers list the key.
fn rules(drive: &DriveConfig, values: &Values) -> Fit {
    let applies = |key: &&ResolvedKey| !key.key.readers.is_empty() || key.key.is_read_on(entry_of(drive));
    for key in values.all().iter().filter(|key| key.rank > 0 && !key.key.rules.is_empty()).filter(applies) {
        if let Some(rule) = key.key.rules.iter().find(|rule| !(rule.holds)(&key.value)) {
            return Err(Unfit::new(&[key.key.name], rule.expected));
        }
    }
    Ok(())
}

/// The checks of the layer, of the layer below a file system, and of the classifier.
fn layer(drive: &DriveConfig) -> Fit {
    let entry = entry_of(drive);
    let proposal = Proposal {
        settings: &drive.ftl,
        part: &drive.part,
        geometry: &drive.geometry,
        logical_pages: drive.logical_pages(),
    };
    entry.below.map_or(Ok(()), |below| (below.check)(&proposal))?;
    (entry.check)(&proposal)?;
    features::outside(drive)?;
    streams::check(&drive.ftl, entry)
}

/// Spare blocks of a plane of the full drive beside reserved ones, and the open blocks among them.
pub(super) fn spare_and_open_blocks(drive: &DriveConfig) -> (u64, u64) {
    space::spare_and_open_blocks(drive)
}

/// Names of the layers that are `fit`, for messages.
fn names_with(fit: impl Fn(&ftl::Entry) -> bool) -> String {
    few(&layers().filter(|entry| fit(entry)).map(|entry| entry.name).collect::<Vec<_>>(), 3, "or")
}

/// The layer that the drive names.
fn entry_of(drive: &DriveConfig) -> &'static ftl::Entry {
    find_layer(&drive.ftl.name).expect("the name was read as that of a layer")
}

/// The error of values that do not fit, with the first of `texts` for which there is room. A long message has fewer
/// keys, without sources: `palimpsest show` prints both.
fn refused(values: &Values, unfit: &Unfit, texts: &[String]) -> Error {
    let named: Vec<&ResolvedKey> = unfit.keys.iter().map(|key| values.key(key)).collect();
    // The first key of the last overlay is the most likely mistake.
    let blamed = named.iter().rev().max_by_key(|key| key.rank).expect("a refusal names a key");
    let pair = |key: &ResolvedKey| format!("{} = {}", key.key.name, key.value.to_text());
    let shown = |key: &&ResolvedKey| match key.source == blamed.source {
        true => pair(key),
        // The key is beside its option.
        false if key.source.starts_with("--set ") => format!("{} (--set)", pair(key)),
        false => format!("{} ({})", pair(key), key.source),
    };
    let whole = named.iter().map(shown).collect::<Vec<_>>().join(", ");
    // An option has the blamed key with the value.
    let is_shown = |key: &&&ResolvedKey| key.key.name != blamed.key.name || !blamed.source.starts_with("--");
    let others: Vec<String> = named.iter().filter(is_shown).map(|key| pair(key)).collect();
    let shorter = (1..=others.len()).rev().map(|most| few(&others, most, "and")).chain([String::new()]);
    let keys: Vec<String> = std::iter::once(whole).chain(shorter).collect();
    let message = |keys: &str, what: &str| match keys {
        "" => format!("{}: {what}", blamed.source),
        keys => format!("{}: {keys}: {what}", blamed.source),
    };
    let whole = fitting(texts.iter().flat_map(|text| keys.iter().map(move |keys| message(keys, text))));
    Error::unfit(&blamed.source, &whole[blamed.source.len() + 2..])
}
