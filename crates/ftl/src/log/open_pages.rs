//! Open pages: units wait in controller memory until they fill a page.
//!
//! Each stream of the host has one, and each plane has one for moved units (one per class with `ftl.moved = class`).
//! Moved units stay in their plane, or all planes of the die take equally many (`frontiers`). Else the fuller planes,
//! which are cleaned more often, would grow fuller still. If unit addresses name a plane or channel, a stream of the
//! host has an open page for each. Units that followed others elsewhere would fill planes unevenly.
//!
//! A slot stores the place of the unit's previous copy, which stays valid until the page is programmed. So data
//! acknowledged after programming survives a power cut.

use super::Append;
use super::settings::LogSettings;
use crate::log::map::{IN_OPEN_PAGE, UNMAPPED};
use palimpsest_flash::nand::data::Data;
use palimpsest_ftl_api::plan::{Cause, Gate, Io};

/// Unit number of a slot whose unit was trimmed.
pub(super) const HOLE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Slot {
    pub unit: u32,
    pub data: Data,
    /// Closes when the content has arrived.
    pub arrived: Gate,
    /// Physical unit of the previous copy, or [`UNMAPPED`].
    pub previous: u32,
}

palimpsest_flash::state!(Slot { unit, data, arrived, previous });

/// A slot without a unit.
const EMPTY: Slot = Slot { unit: HOLE, data: Data::ZERO, arrived: Gate::NONE, previous: UNMAPPED };

/// A page that is being filled.
pub(super) struct OpenPage {
    pub slots: Vec<Slot>,
    /// Closes when all data read for this page has arrived.
    pub ready: Gate,
    /// Closes when the page is programmed.
    pub done: Gate,
    /// Subpages held in the host's write buffer.
    pub held: u32,
    /// Arrival of the oldest unit that the host waits for, or, if open pages are not protected, an erase.
    pub since: Option<u64>,
    pub cause: Cause,
    /// True if the page holds data of the host.
    pub from_host: bool,
    /// Programs of other open pages that units of this page moved to.
    pub also: Vec<Gate>,
}

palimpsest_flash::state!(OpenPage { slots, ready, done, held, since, cause, from_host, also });

impl OpenPage {
    fn new() -> Self {
        OpenPage {
            slots: Vec::new(),
            ready: Gate::NONE,
            done: Gate::NONE,
            held: 0,
            since: None,
            cause: Cause::Host,
            from_host: false,
            also: Vec::new(),
        }
    }
}

pub(super) struct OpenPages {
    /// Pages of the host's streams, then pages of moved units.
    pages: Vec<OpenPage>,
    /// The earliest [`OpenPage::since`].
    pub oldest: Option<u64>,
    /// Number of pages with an [`OpenPage::since`].
    waiting: u32,
    /// Open pages of moved units: one per plane, unless map entries cannot name all.
    moved: u32,
    /// Streams of the host.
    hosts: u32,
    /// Streams of moved data with open pages. A single one is the last stream of all.
    classes: u32,
    streams: u32,
    /// Open pages per stream of the host: planes or channels that addresses name, unless map entries cannot name all.
    groups: u32,
    units_per_page: u32,
    /// True if open pages survive a power cut, so that a victim may be erased while they hold units of the victim.
    pub protected: bool,
    /// True if a write replaces the content of a unit in an open page. If power cuts lose open pages, a hole would be
    /// acknowledged before the replacement is durable, so this must be true.
    pub absorbs: bool,
}

palimpsest_flash::state!(OpenPages { oldest, waiting } parts { pages } built {
    moved, hosts, classes, streams, groups, units_per_page, protected, absorbs
});

impl OpenPages {
    /// Open pages for the streams of `settings`; `groups`: planes or channels that addresses name.
    pub fn new(settings: &LogSettings, groups: u32, planes: u32, units_per_page: u32, protected: bool) -> Self {
        let (hosts, classes, most) =
            (settings.host_streams(), settings.moved_streams(), ((1 << 16) - 1) / units_per_page);
        let moved = planes.min((most - hosts) / classes);
        let groups = groups.min((most - moved * classes) / hosts);
        let pages = (0..hosts * groups + moved * classes).map(|_| OpenPage::new()).collect();
        let streams = settings.data_streams();
        OpenPages {
            pages,
            oldest: None,
            waiting: 0,
            moved,
            hosts,
            classes,
            streams,
            groups,
            units_per_page,
            protected,
            absorbs: true,
        }
    }

    #[inline]
    pub fn len(&self) -> u32 {
        self.pages.len() as u32
    }

    #[inline]
    pub fn page(&self, page: u32) -> &OpenPage {
        &self.pages[page as usize]
    }

    #[inline]
    pub fn page_mut(&mut self, page: u32) -> &mut OpenPage {
        &mut self.pages[page as usize]
    }

    /// Units in open page `page`.
    #[inline]
    pub fn filled(&self, page: u32) -> u32 {
        self.page(page).slots.len() as u32
    }

    #[inline]
    pub fn is_full(&self, page: u32) -> bool {
        self.filled(page) == self.units_per_page
    }

    /// The open page for host writes to `stream` and to the plane or channel `group`.
    #[inline]
    pub fn host_page(&self, stream: u32, group: u32) -> u32 {
        debug_assert!(stream < self.hosts);
        stream * self.groups + if group < self.groups { group } else { group % self.groups }
    }

    #[inline]
    fn first_moved(&self) -> u32 {
        self.hosts * self.groups
    }

    /// The open page for units moved to blocks of `stream` in `plane`.
    #[inline]
    pub fn moved_page(&self, plane: u32, stream: u32) -> u32 {
        let class = if self.classes == 1 { 0 } else { stream };
        self.first_moved() + class * self.moved + plane % self.moved
    }

    /// The open pages for units moved in `plane`.
    pub fn moved_pages(&self, plane: u32) -> impl Iterator<Item = u32> + use<> {
        let (first, moved) = (self.first_moved() + plane % self.moved, self.moved);
        (0..self.classes).map(move |class| first + class * moved)
    }

    /// The stream of blocks that the open page `page` is programmed into.
    #[inline]
    pub fn stream_of(&self, page: u32) -> u32 {
        match page.checked_sub(self.first_moved()) {
            None => page / self.groups,
            Some(_) if self.classes == 1 => self.streams - 1,
            Some(moved) => moved / self.moved,
        }
    }

    /// The plane whose moved units `page` holds; `None` for pages of the host.
    #[inline]
    pub fn plane_of(&self, page: u32) -> Option<u32> {
        page.checked_sub(self.first_moved()).map(|moved| moved % self.moved)
    }

    /// The open page and slot that `entry` names.
    #[inline]
    pub fn slot_of(&self, entry: u32) -> (u32, usize) {
        let index = entry - IN_OPEN_PAGE;
        (index / self.units_per_page, (index % self.units_per_page) as usize)
    }

    /// The slot that `entry` names.
    #[inline]
    pub fn slot(&self, entry: u32) -> &Slot {
        let (page, slot) = self.slot_of(entry);
        &self.page(page).slots[slot]
    }

    /// As [`Self::slot`], mutable.
    #[inline]
    pub fn slot_mut(&mut self, entry: u32) -> &mut Slot {
        let (page, slot) = self.slot_of(entry);
        &mut self.page_mut(page).slots[slot]
    }

    /// Entry of the next unit of open page `page`.
    #[inline]
    pub fn next_entry(&self, page: u32) -> u32 {
        IN_OPEN_PAGE + page * self.units_per_page + self.filled(page)
    }

    /// Recomputes [`Self::oldest`], after the oldest page was programmed, or pages were restored.
    pub fn find_oldest(&mut self) {
        let before = self.oldest.take();
        if self.waiting == 0 {
            return;
        }
        for since in self.pages.iter().filter_map(|page| page.since) {
            self.oldest = Some(self.oldest.map_or(since, |oldest| oldest.min(since)));
            // No page waits longer than the previous oldest. In runs without time all wait equally long.
            if self.oldest == before {
                return;
            }
        }
    }

    /// Takes open page `page` and leaves an empty one.
    pub fn take(&mut self, page: u32) -> OpenPage {
        let taken = std::mem::replace(self.page_mut(page), OpenPage::new());
        self.waiting -= u32::from(taken.since.is_some());
        taken
    }

    /// Puts open page `page` back, after flash refused the program.
    pub fn put_back(&mut self, page: u32, taken: OpenPage) {
        self.waiting += u32::from(taken.since.is_some());
        *self.page_mut(page) = taken;
    }

    /// Takes all open pages and leaves empty ones.
    pub fn take_all(&mut self) -> Vec<OpenPage> {
        self.oldest = None;
        (0..self.len()).map(|page| self.take(page)).collect()
    }

    /// Replaces the content of the unit that `entry` names with the content of `what`.
    pub fn replace(&mut self, io: &mut Io, entry: u32, what: Append) {
        let (page, slot) = self.slot_of(entry);
        io.pin(what.data);
        let slot = &mut self.page_mut(page).slots[slot];
        io.unpin(slot.data);
        (slot.data, slot.arrived) = (what.data, what.after);
        self.attach(io, page, what);
    }

    /// Adds the unit of `what` to open page `page`; `previous` is the place of the previous copy.
    #[inline]
    pub fn push(&mut self, io: &mut Io, page: u32, what: Append, previous: u32) {
        self.attach(io, page, what);
        let page = self.page_mut(page);
        if page.slots.is_empty() {
            page.cause = what.cause;
        }
        page.slots.push(Slot { unit: what.unit, data: what.data, arrived: what.after, previous });
        page.held += what.holds;
        io.pin(what.data);
    }

    /// Empties the slot that `entry` names. Returns the place of the unit's previous copy.
    pub fn forget(&mut self, io: &mut Io, entry: u32) -> u32 {
        let slot = std::mem::replace(self.slot_mut(entry), EMPTY);
        io.unpin(slot.data);
        slot.previous
    }

    /// Makes open page `page` wait for the gates of `what`, and signal them.
    #[inline]
    pub fn attach(&mut self, io: &mut Io, page: u32, what: Append) {
        let page = &mut self.pages[page as usize];
        page.from_host |= io.present.is_from_host(what.cause);
        if what.cause == Cause::Host || !self.protected {
            self.waiting += u32::from(page.since.is_none());
            page.since.get_or_insert(io.now());
            self.oldest.get_or_insert(io.now());
        }
        if io.is_open(what.after) {
            if !io.is_open(page.ready) {
                page.ready = io.gate();
            }
            io.link(what.after, page.ready);
        }
        page.signal(io, what.signal);
    }

    /// Moves the content of the slot that `entry` names into open page `page` of moved data; `previous` is the previous
    /// copy. Waiters for the old page wait for both pages.
    pub fn move_newer(&mut self, io: &mut Io, page: u32, entry: u32, what: Append, previous: u32) {
        let (from, slot) = self.slot_of(entry);
        let newer = std::mem::replace(&mut self.page_mut(from).slots[slot], EMPTY);
        let mut after = Gate::NONE;
        if io.is_open(self.page(from).ready) {
            // The new page must not wait for later reads of the old page, which might come after the new page in a
            // block.
            after = std::mem::replace(&mut self.page_mut(from).ready, io.gate());
            io.link(after, self.page(from).ready);
        }
        self.push(io, page, Append { data: newer.data, after, ..what }, previous);
        io.unpin(newer.data);
        // The host now waits for this page, too.
        let since = self.page(from).since;
        let waits = &mut self.page_mut(page).since;
        let is_new = waits.is_none() && since.is_some();
        *waits = waits.map_or(since, |mine| Some(since.map_or(mine, |theirs| mine.min(theirs))));
        self.waiting += u32::from(is_new);
        let (done, from_host) = (self.page(page).done, self.page(from).from_host);
        self.page_mut(page).from_host |= from_host;
        self.page_mut(from).also.push(done);
    }

    /// Restores the content of open page `page` from before a power cut.
    pub fn restore(&mut self, page: u32, survivor: OpenPage) {
        let OpenPage { slots, held, since, cause, from_host, .. } = survivor;
        self.put_back(page, OpenPage { slots, held, since, cause, from_host, ..OpenPage::new() });
    }
}

impl OpenPage {
    /// Makes `gate` wait for the program of this page.
    #[inline]
    pub fn signal(&mut self, io: &mut Io, gate: Gate) {
        if !gate.is_none() {
            if self.done.is_none() {
                self.done = io.gate();
            }
            io.link(self.done, gate);
        }
    }
}
