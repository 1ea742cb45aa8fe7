//! Namespaces: ranges of the drive, made by options at the start or by hosts.
//!
//! Sources: NVM Express Base Specification 2.0, sections 5.22, 5.23, 5.25 and 8.11. A namespace is one range, so a host
//! may get less than the unallocated capacity after deletes. Attachments are those of a host: all controllers of a host
//! have the same namespaces, and find them again after a connect. Ignored: thin provisioning, NVM sets, protection
//! information. Namespaces of hosts last until the end of the process.

use super::admin::{Context, Outcome};
use super::controller::Controller;
use super::entry::Command;
use super::identify::ALL_NAMESPACES;
use super::pdu::{u16_at, u64_at};
use super::status::{self, Status};
use super::{Facts, Wanted};
use crate::identity;
use crate::request::Request;
use palimpsest_lab::error::{Error, Result as Done};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The largest number of a namespace (NN, MNAN).
pub const MOST: u32 = 64;

/// Formats of a block: log2 of the bytes.
pub const BLOCK_FORMATS: [u32; 2] = [9, 12];

/// Bytes of the data of Namespace Management and Namespace Attachment.
pub const DATA_BYTES: u32 = 4096;

/// Most bytes of a request that unmaps.
pub const MOST_UNMAPPED: u64 = 1 << 30;

/// A namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    pub id: u32,
    /// The first byte of the range of the drive.
    pub base: u64,
    /// Bytes of the range.
    pub capacity: u64,
    pub blocks: u64,
    pub block_bytes: u32,
    pub uuid: [u8; 16],
    /// Whether several hosts may use the namespace.
    pub is_shared: bool,
}

impl Namespace {
    /// The bytes of the drive for `count` blocks from block `first` on: offset and length.
    ///
    /// # Errors
    /// The status of a range beyond the namespace.
    pub fn range(&self, first: u64, count: u64) -> Result<(u64, u64), Status> {
        match first.checked_add(count) {
            Some(end) if end <= self.blocks => {
                let block = u64::from(self.block_bytes);
                Ok((self.base + first * block, count * block))
            }
            _ => Err(status::LBA_OUT_OF_RANGE),
        }
    }

    /// Requests that unmap the whole namespace, durably.
    pub fn unmapped(&self) -> Vec<Request> {
        unmapped(self.base, self.capacity)
    }
}

/// Requests that unmap a range of the drive, durably.
pub fn unmapped(from: u64, length: u64) -> Vec<Request> {
    let pieces = (0..length.div_ceil(MOST_UNMAPPED)).map(|piece| piece * MOST_UNMAPPED);
    let request = |at: u64| {
        let length = (length - at).min(MOST_UNMAPPED) as u32;
        Request::Trim { offset: from + at, length, durable: true }
    };
    pieces.map(request).collect()
}

/// The hosts that have a namespace.
#[derive(Debug, Clone, Default)]
struct Hosts {
    /// Whether hosts have the namespace that are not in `others`.
    most: bool,
    others: BTreeSet<String>,
}

impl Hosts {
    fn has(&self, host: &str) -> bool {
        self.most != self.others.contains(host)
    }

    fn set(&mut self, host: &str, has: bool) {
        if self.has(host) != has && !self.others.remove(host) {
            self.others.insert(host.to_owned());
        }
    }
}

/// All namespaces of a subsystem.
pub struct Namespaces {
    all: BTreeMap<u32, (Arc<Namespace>, Hosts)>,
    /// Bytes of the drive.
    bytes: u64,
    /// Alignment of ranges: whole units of the layer, so that a range can be unmapped.
    granule: u64,
}

impl Namespaces {
    /// The namespaces of the options: of the wanted sizes, or one of the whole drive.
    ///
    /// # Errors
    /// [`Error::Input`] for sizes that the drive does not have.
    pub fn new(facts: &Facts, wanted: &Wanted) -> Done<Self> {
        let granule = facts.unit_bytes.next_multiple_of(1 << BLOCK_FORMATS[1]);
        let mut made = Namespaces { all: BTreeMap::new(), bytes: facts.bytes(), granule };
        if facts.zones.is_some() && !wanted.namespaces.is_empty() {
            let what = "a drive with zones has one namespace of all zones; expected no --namespace";
            return Err(Error::input("--namespace", what));
        }
        let whole = [facts.bytes()];
        let sizes = if wanted.namespaces.is_empty() { &whole[..] } else { &wanted.namespaces };
        for (at, &size) in sizes.iter().enumerate() {
            let uuid = if at == 0 { facts.uuid } else { identity::derived(&facts.uuid, &at.to_string()) };
            let blocks = size / u64::from(facts.block_bytes);
            let place = format!("--namespace size={size}");
            if blocks == 0 {
                return Err(Error::input(place, format!("expected one block of {} bytes at least", facts.block_bytes)));
            }
            made.insert(blocks, facts.block_bytes, true, uuid, true).map_err(|_| {
                let (free, count) = (made.largest_gap().1, made.all.len());
                let what =
                    format!("the drive has {} bytes, {free} of them in one piece for the next namespace", made.bytes);
                Error::input(place, format!("{what} after {count}; expected smaller namespaces, {MOST} at most"))
            })?;
        }
        Ok(made)
    }

    /// Inserts a namespace with the lowest free number; `attached`: all hosts have the namespace.
    fn insert(
        &mut self,
        blocks: u64,
        block_bytes: u32,
        is_shared: bool,
        uuid: [u8; 16],
        attached: bool,
    ) -> Result<Arc<Namespace>, Status> {
        let id = (1..=MOST).find(|id| !self.all.contains_key(id)).ok_or(status::NAMESPACE_ID_UNAVAILABLE)?;
        let bytes = blocks.checked_mul(block_bytes.into()).ok_or(status::INSUFFICIENT_CAPACITY)?;
        // A range to the end of the drive need not be whole granules.
        let fits = |&(from, length): &(u64, u64)| bytes <= length && from.is_multiple_of(self.granule);
        let (base, length) = self.gaps().into_iter().find(fits).ok_or(status::INSUFFICIENT_CAPACITY)?;
        let capacity = bytes.next_multiple_of(self.granule).min(length);
        let made = Arc::new(Namespace { id, base, capacity, blocks, block_bytes, uuid, is_shared });
        self.all.insert(id, (Arc::clone(&made), Hosts { most: attached, others: BTreeSet::new() }));
        Ok(made)
    }

    /// Ranges of the drive that no namespace has: first byte and length.
    fn gaps(&self) -> Vec<(u64, u64)> {
        let mut ranges: Vec<_> = self.all.values().map(|(one, _)| (one.base, one.capacity)).collect();
        ranges.sort_unstable();
        let mut from = 0;
        let mut gaps = Vec::new();
        for (base, length) in ranges.into_iter().chain([(self.bytes, 0)]) {
            if base > from {
                gaps.push((from, base - from));
            }
            from = base + length;
        }
        gaps
    }

    fn largest_gap(&self) -> (u64, u64) {
        self.gaps().into_iter().max_by_key(|&(_, length)| length).unwrap_or((0, 0))
    }

    /// Bytes that no namespace has.
    pub fn unallocated(&self) -> u64 {
        self.gaps().iter().map(|&(_, length)| length).sum()
    }

    /// Namespace `id` of any host.
    pub fn get(&self, id: u32) -> Option<&Arc<Namespace>> {
        self.all.get(&id).map(|(one, _)| one)
    }

    /// Namespace `id` of `host`.
    ///
    /// # Errors
    /// The status of a number beyond the limit, or without a namespace of the host.
    pub fn find(&self, id: u32, host: &str) -> Result<Arc<Namespace>, Status> {
        match self.all.get(&id) {
            Some((one, hosts)) if hosts.has(host) => Ok(Arc::clone(one)),
            _ if (1..=MOST).contains(&id) => Err(status::INVALID_FIELD),
            _ => Err(status::INVALID_NAMESPACE),
        }
    }

    /// Whether `host` has namespace `id`.
    pub fn is_attached(&self, id: u32, host: &str) -> bool {
        self.all.get(&id).is_some_and(|(_, hosts)| hosts.has(host))
    }

    /// Numbers of all namespaces, or those of `host`, in order.
    pub fn ids(&self, host: Option<&str>) -> Vec<u32> {
        let all = self.all.iter().filter(|(_, (_, hosts))| host.is_none_or(|host| hosts.has(host)));
        all.map(|(&id, _)| id).collect()
    }

    /// The namespaces that a command with number `id` means; all those of `host` for [`ALL_NAMESPACES`].
    ///
    /// # Errors
    /// As [`Self::find`].
    pub fn named(&self, id: u32, host: &str) -> Result<Vec<Arc<Namespace>>, Status> {
        match id {
            ALL_NAMESPACES => self.ids(Some(host)).into_iter().map(|id| self.find(id, host)).collect(),
            id => Ok(vec![self.find(id, host)?]),
        }
    }

    /// Changes the block size of a namespace.
    pub fn reformat(&mut self, id: u32, block_bytes: u32) {
        if let Some((one, _)) = self.all.get_mut(&id) {
            let bytes = one.blocks * u64::from(one.block_bytes);
            let blocks = bytes / u64::from(block_bytes);
            *one = Arc::new(Namespace { blocks, block_bytes, ..(**one).clone() });
        }
    }
}

/// Whether a block format exists; its bytes.
pub fn block_bytes_of(format: u8) -> Result<u32, Status> {
    let exponent = BLOCK_FORMATS.get(usize::from(format)).ok_or(status::INVALID_FORMAT)?;
    Ok(1 << exponent)
}

/// Whether Namespace Management with this command brings a description of a namespace.
pub fn creates(command: &Command) -> bool {
    command.dword(10) & 0xF == 0
}

/// Executes Namespace Management.
///
/// # Errors
/// The status of a wrong field.
pub fn manage(command: &Command, data: &[u8], context: &Context<'_>) -> Result<Outcome, Status> {
    match command.dword(10) & 0xF {
        0 => create(command, data, context),
        1 => delete(command, context),
        _ => Err(status::INVALID_FIELD),
    }
}

fn create(command: &Command, data: &[u8], context: &Context<'_>) -> Result<Outcome, Status> {
    let (blocks, capacity, block_bytes) = (u64_at(data, 0), u64_at(data, 8), block_bytes_of(data[26])?);
    let (protection, sharing, group) = (data[29], data[30], u16_at(data, 102));
    if command.byte(47) != 0 {
        return Err(status::COMMAND_SET_NOT_SUPPORTED);
    }
    if command.namespace() != 0 || blocks == 0 || sharing > 1 || u16_at(data, 100) != 0 || group > 1 {
        return Err(status::INVALID_FIELD);
    }
    if protection != 0 {
        return Err(status::INVALID_FORMAT);
    }
    if capacity != blocks {
        return Err(status::THIN_PROVISIONING_NOT_SUPPORTED);
    }
    context.subsystem.check_writable()?;
    let mut all = context.subsystem.namespaces_mut();
    let made = all.insert(blocks, block_bytes, sharing == 1, identity::fresh(), false)?;
    // The range may hold data of before.
    Ok(Outcome::Requests(made.unmapped(), made.id.into()))
}

fn delete(command: &Command, context: &Context<'_>) -> Result<Outcome, Status> {
    let (id, subsystem) = (command.namespace(), context.subsystem);
    subsystem.check_writable()?;
    let mut all = subsystem.namespaces_mut();
    let ids = match id {
        ALL_NAMESPACES => all.ids(None),
        1..=MOST if all.get(id).is_some() => vec![id],
        1..=MOST => return Err(status::INVALID_FIELD),
        _ => return Err(status::INVALID_NAMESPACE),
    };
    for &id in &ids {
        subsystem.reservations.check(id, &context.controller.host.id, false)?;
    }
    let deleted: Vec<_> = ids.iter().filter_map(|id| all.all.remove(id)).collect();
    drop(all);
    let mut requests = Vec::new();
    for (one, hosts) in &deleted {
        subsystem.reservations.forget(one.id);
        subsystem.marks.clear(one.base, one.capacity);
        subsystem.tests.forget(one.id);
        subsystem.tell(|other| hosts.has(&other.host.name), |other| other.namespace_changed(one.id));
        requests.extend(one.unmapped());
    }
    Ok(Outcome::Requests(requests, 0))
}

/// The controllers in the data of Namespace Attachment.
fn listed(data: &[u8], context: &Context<'_>) -> Result<Vec<Arc<Controller>>, Status> {
    let count = usize::from(u16_at(data, 0));
    let ids: Vec<u16> = (1..=count.min(2047)).map(|at| u16_at(data, 2 * at)).collect();
    if count == 0 || count > 2047 || !ids.is_sorted_by(|one, next| one < next) {
        return Err(status::CONTROLLER_LIST_INVALID);
    }
    let find = |&id: &u16| context.subsystem.find(id).filter(|found| !found.is_discovery);
    ids.iter().map(find).collect::<Option<_>>().ok_or(status::CONTROLLER_LIST_INVALID)
}

/// Executes Namespace Attachment.
///
/// # Errors
/// The status of a wrong field.
pub fn attach(command: &Command, data: &[u8], context: &Context<'_>) -> Result<Outcome, Status> {
    let (id, what) = (command.namespace(), command.dword(10) & 0xF);
    if what > 1 {
        return Err(status::INVALID_FIELD);
    }
    let attaches = what == 0;
    let (controllers, subsystem) = (listed(data, context)?, context.subsystem);
    let mut all = subsystem.namespaces_mut();
    let Some((one, hosts)) = all.all.get_mut(&id) else {
        return Err(if (1..=MOST).contains(&id) { status::INVALID_FIELD } else { status::INVALID_NAMESPACE });
    };
    if controllers.iter().any(|other| hosts.has(&other.host.name) == attaches) {
        return Err(if attaches { status::ALREADY_ATTACHED } else { status::NOT_ATTACHED });
    }
    let names: BTreeSet<&str> = controllers.iter().map(|other| other.host.name.as_str()).collect();
    if attaches && !one.is_shared && (names.len() > 1 || hosts.most || !hosts.others.is_empty()) {
        return Err(status::NAMESPACE_IS_PRIVATE);
    }
    subsystem.reservations.check(id, &context.controller.host.id, false)?;
    names.iter().for_each(|name| hosts.set(name, attaches));
    drop(all);
    subsystem.tell(|other| names.contains(other.host.name.as_str()), |other| other.namespace_changed(id));
    Ok(Outcome::Done(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn namespaces(sizes: &[u64]) -> Done<Namespaces> {
        let (hosts, others) = (Vec::new(), Vec::new());
        let wanted =
            Wanted { nqn: None, hosts, block_bytes: 4096, namespaces: sizes.to_vec(), others, advertised: None };
        Namespaces::new(&Facts::new("drive", 100 << 14, 1 << 14, true, &wanted, [1; 16]), &wanted)
    }

    #[test]
    fn namespaces_have_ranges_of_their_own() {
        let mut all = namespaces(&[10 << 14, (20 << 14) + 4096]).unwrap();
        let made = all.insert(5, 4096, true, [0; 16], false).unwrap();
        assert_eq!((made.id, made.base, made.capacity), (3, 31 << 14, 2 << 14), "whole units of the layer");
        assert_eq!(all.unallocated(), 67 << 14);
        all.all.remove(&1);
        assert_eq!(all.gaps(), [(0, 10 << 14), (33 << 14, 67 << 14)]);
        assert_eq!(all.insert(68 * 4, 4096, true, [0; 16], false), Err(status::INSUFFICIENT_CAPACITY));
        assert_eq!(all.insert(10 * 4, 4096, true, [0; 16], false).map(|made| (made.id, made.base)), Ok((1, 0)));
        assert_eq!(all.insert(67 * 4, 4096, true, [0; 16], false).map(|made| made.base), Ok(33 << 14));
        assert_eq!(all.unallocated(), 0);
    }

    #[test]
    fn sizes_beyond_the_drive_are_refused() {
        for sizes in [&[101 << 14][..], &[60 << 14, 60 << 14], &[512]] {
            assert!(matches!(namespaces(sizes), Err(Error::Input { .. })), "{sizes:?}");
        }
    }

    #[test]
    fn a_host_is_attached_or_not() {
        let mut hosts = Hosts { most: true, others: BTreeSet::new() };
        hosts.set("a", false);
        hosts.set("b", true);
        assert_eq!(["a", "b", "c"].map(|host| hosts.has(host)), [false, true, true]);
        hosts.set("a", true);
        assert!(hosts.others.is_empty());
    }
}
