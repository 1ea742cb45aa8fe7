//! The drive of the user with changed settings, for remedies. Ignored: options of the run.

use super::check::remedies::{Change, Trial};
use super::overlay::{Origin, Overlay};
use super::schema::index;
use super::unread::{self, Gravity};
use super::{Assembled, ReadFile, ResolvedKey, assemble, build, check};
use palimpsest_ftl_api::Unfit;
use palimpsest_ftl_api::keys::Value;

/// The files and options that describe a drive.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub ssd: &'a str,
    pub read_file: ReadFile<'a>,
    /// The overlays, without the part.
    pub given: &'a [Overlay],
}

/// The drive of the user.
pub(super) struct Drive<'a> {
    source: Source<'a>,
    /// The overlays with the part, by which keys are ranked.
    overlays: &'a [Overlay],
    /// Settings that nothing reads in any case.
    excused: Vec<&'static str>,
}

impl<'a> Drive<'a> {
    /// The refused drive with the keys `resolved` from `overlays`: remedies need not care for settings that nothing
    /// reads now.
    pub fn refused(source: Source<'a>, resolved: &[ResolvedKey], overlays: &'a [Overlay]) -> Self {
        Drive { source, overlays, excused: mistakes(resolved, overlays) }
    }

    /// A possible drive with settings that nothing reads.
    pub fn unread(source: Source<'a>) -> Self {
        Drive { source, overlays: &[], excused: Vec::new() }
    }

    /// The overlays without the settings of the user for the keys that are `dropped`.
    fn kept(&self, dropped: &dyn Fn(&'static str) -> bool) -> Vec<Overlay> {
        let mut overlays = self.source.given.to_vec();
        for overlay in overlays.iter_mut().filter(|overlay| overlay.origin != Origin::Preset) {
            overlay.settings.retain(|setting| !dropped(super::keys()[setting.key].name));
        }
        overlays
    }

    fn assembled(&self, overlays: &mut Vec<Overlay>) -> Result<Assembled, Unfit> {
        assemble(overlays, self.source.ssd, self.source.read_file).map_err(|error| Unfit::new(&[], error.to_string()))
    }
}

/// The settings of the user that nothing reads, except harmless ones and those of which a note says so.
fn mistakes(resolved: &[ResolvedKey], overlays: &[Overlay]) -> Vec<&'static str> {
    let found = unread::find(resolved, overlays);
    found.into_iter().filter(|one| one.gravity == Gravity::Mistake).map(|one| one.key).collect()
}

impl Trial for Drive<'_> {
    fn attempt(&self, changes: &[Change]) -> Result<Vec<&'static str>, Unfit> {
        let changed = |name: &str| changes.iter().any(|(key, value)| *key == name && value.is_none());
        let mut overlays = self.kept(&changed);
        let set = changes.iter().filter_map(|(key, value)| value.as_ref().map(|value| format!("{key}={value}")));
        let own = Overlay::from_overrides(&set.collect::<Vec<_>>());
        let own = own.map_err(|error| Unfit::new(&[], error.to_string()))?;
        // As the user does: in the options, beside those that stay.
        let options = overlays.last_mut().expect("the options are an overlay");
        options.settings.retain(|setting| own.get(setting.key).is_none());
        options.settings.extend(own.settings);
        let assembled = self.assembled(&mut overlays)?;
        assembled.fits?;
        let values = build::Values::new(&assembled.keys);
        check::fits(&build::drive("", "", &values), &values)?;
        Ok(mistakes(&assembled.keys, &overlays))
    }

    fn is_of_user(&self, key: &ResolvedKey) -> bool {
        let overlay = key.rank.checked_sub(1).map(|at| &self.overlays[at]);
        overlay.is_some_and(|own| own.origin != Origin::Preset && own.get(index(key.key.name)).is_some())
    }

    fn unread(&self) -> &[&'static str] {
        &self.excused
    }

    fn before(&self, key: &'static str) -> Option<Value> {
        let assembled = self.assembled(&mut self.kept(&|name| name == key)).ok()?;
        Some(assembled.keys[index(key)].value.clone())
    }
}
