//! Origins of data: the events that each piece waits for, joined where data is merged, and resolved when a call ends.
//!
//! Ignored: origins older than the last [`WINDOW`], whose data is assumed to have arrived.

use super::{Ledger, Source};
use palimpsest_flash::units::Nanos;

/// Number of origins remembered.
pub(super) const WINDOW: usize = 1 << 18;

/// What data of an origin waits for.
#[derive(Debug, Clone, Default)]
pub(super) enum Waits {
    #[default]
    Nothing,
    One(Source),
    /// A load of a physical subpage that is not read yet.
    Unread,
    Many(Box<[Source]>),
    /// Two other origins of the same call.
    Both(u32, u32),
}

/// An event that a program waits for, or the origin of its data.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted {
    Origin(u32),
    Source(Source),
}

/// Where data comes from.
#[derive(Debug, Clone, Default)]
pub(super) struct Origin {
    pub waits: Waits,
    pub content: u64,
}

impl Ledger {
    /// A new origin.
    pub(super) fn make(&mut self, waits: Waits, content: u64) -> u32 {
        self.made = self.made.checked_add(1).unwrap_or(1);
        if let Waits::Both(..) = waits {
            self.joins.push(self.made);
        }
        let (place, origin) = (self.made as usize % WINDOW, Origin { waits, content });
        match self.origins.get_mut(place) {
            Some(old) => *old = origin,
            None => self.origins.push(origin),
        }
        self.made
    }

    /// `origin`, which waits for `waits` from now on.
    pub(super) fn now_waits(&mut self, origin: u32, waits: Waits) -> u32 {
        if let Waits::Both(..) = waits {
            self.joins.push(origin);
        }
        self.origins[origin as usize % WINDOW].waits = waits;
        origin
    }

    /// Origin number `id`, if it is remembered.
    pub(super) fn origin(&self, id: u32) -> Option<&Origin> {
        let known = id != 0 && (self.made.wrapping_sub(id) as usize) < WINDOW;
        known.then(|| &self.origins[id as usize % WINDOW])
    }

    /// Content number of `origin`; a new number for data without one.
    pub(super) fn content_of(&mut self, origin: u32) -> u64 {
        if let Some(origin) = self.origin(origin) {
            return origin.content;
        }
        self.contents += 1;
        self.contents
    }

    /// Appends the sources of `origin` to `sources`. Returns false for a load without a read.
    pub(super) fn resolve(&self, origin: u32, sources: &mut Vec<Source>) -> bool {
        match self.origin(origin).map(|origin| &origin.waits) {
            None | Some(Waits::Nothing) => true,
            Some(Waits::One(source)) => {
                sources.push(*source);
                true
            }
            Some(Waits::Many(all)) => {
                sources.extend_from_slice(all);
                true
            }
            Some(&Waits::Both(one, other)) => self.resolve(one, sources) & self.resolve(other, sources),
            Some(Waits::Unread) => false,
        }
    }

    /// True if `source` has not ended or arrived at `now`.
    #[inline]
    pub(super) fn waits_for(&self, source: Source, now: Nanos) -> bool {
        match source {
            Source::Read(order) | Source::Program(order) => order >= self.ended_before,
            Source::Link(at) => at > now,
        }
    }

    /// As [`Self::gather`], for one event of the usual kinds; false, without effect, for any other.
    #[inline]
    pub(super) fn gather_one(&self, wanted: Wanted, now: Nanos, into: &mut Vec<Source>) -> bool {
        let source = match wanted {
            Wanted::Source(source) => source,
            Wanted::Origin(origin) => match self.origin(origin).map(|origin| &origin.waits) {
                Some(Waits::One(source)) => *source,
                None | Some(Waits::Nothing) => return true,
                Some(_) => return false,
            },
        };
        if self.waits_for(source, now) {
            into.push(source);
        }
        true
    }

    /// Appends the events of `wanted` that have not ended or arrived at `now` to `into`, in order and once each.
    #[inline]
    pub(super) fn gather(&mut self, wanted: impl Iterator<Item = Wanted>, now: Nanos, into: &mut Vec<Source>) {
        let (first, mut read) = (into.len(), true);
        for one in wanted {
            match one {
                Wanted::Source(source) => into.push(source),
                Wanted::Origin(origin) => read &= self.resolve(origin, into),
            }
        }
        if !read {
            self.accuse("data is used that was never read".into());
        }
        if into.len() > first + 1 {
            into[first..].sort_unstable();
        }
        let mut end = first;
        for index in first..into.len() {
            let source = into[index];
            if self.waits_for(source, now) && (end == first || into[end - 1] != source) {
                into[end] = source;
                end += 1;
            }
        }
        into.truncate(end);
    }

    /// Adds to the records the events that the operations of this call wait for.
    #[inline]
    pub(super) fn name_sources(&mut self, now: Nanos) {
        let unresolved = std::mem::take(&mut self.unresolved);
        let mut noted = std::mem::take(&mut self.call.noted);
        let mut sources = std::mem::take(&mut self.call.sources);
        let mut next = 0;
        for (index, noted) in (0..).zip(&mut noted) {
            noted.sources = noted.sources.wrapping_add(sources.len() as u32);
            let first = next;
            while unresolved.get(next).is_some_and(|&(of, _)| of == index) {
                next += 1;
            }
            match &unresolved[first..next] {
                [] => {}
                [(_, one)] if self.gather_one(*one, now, &mut sources) => {}
                all => self.gather(all.iter().map(|&(_, wanted)| wanted), now, &mut sources),
            }
        }
        let made = [sources.len(), self.call.stored.len(), self.call.held.len()];
        self.before.iter_mut().zip(made).for_each(|(before, made)| *before = before.wrapping_add(made as u32));
        self.call.noted = noted;
        self.call.sources = sources;
        self.unresolved = unresolved;
        self.unresolved.clear();
    }

    /// Resolves joins of this call, so that later calls need not follow chains.
    #[inline]
    pub(super) fn resolve_joins(&mut self, now: Nanos) {
        for at in 0..self.joins.len() {
            let id = self.joins[at];
            if let Some(Origin { waits: Waits::Both(..), .. }) = self.origin(id) {
                let mut sources = std::mem::take(&mut self.resolved);
                self.gather([Wanted::Origin(id)].into_iter(), now, &mut sources);
                self.origins[id as usize % WINDOW].waits = match sources.as_slice() {
                    [] => Waits::Nothing,
                    [one] => Waits::One(*one),
                    all => Waits::Many(all.into()),
                };
                sources.clear();
                self.resolved = sources;
            }
        }
        self.joins.clear();
    }
}
