//! The device of the file system in a run: the layer below, with the timing of commands.
//!
//! Commands are timed: the pages of a commit come before its checkpoint, and the checkpoint before the trims
//! ([`Attached::barrier`]). Each *command group*, the consecutive commands of a request to one channel, waits for a
//! DRAM permission exchange: the FTL's DRAM passes from one module to the next, which takes `fs.dispatch_overhead`, one
//! at a time for the whole device (co-design paper, Sec. III-C.3). Ignored: host transfers of metadata.
//!
//! Above a layer that takes runs ([`Store::takes_runs`]) consecutive pages of a call are one command, and a command
//! group: [`Run`] gathers them until a page does not continue the run. A run for which the layer has no room stays in
//! the memory of the host, because pointers lead there: reads find it, and the next command writes it again.
//!
//! Metadata are bytes. If flash stores fingerprints, this module stores their bytes by fingerprint; if flash stores
//! nothing, no mount is possible.

use super::device::{Device, Load, Purpose, Shape};
use super::store::Store;
use palimpsest_flash::command::Lifetime;
use palimpsest_flash::nand::data::{Data, Payload};
use palimpsest_flash::nand::part::Part;
use palimpsest_flash::nand::{Flash, Halt};
use palimpsest_flash::rng::mix;
use palimpsest_flash::units::Nanos;
use palimpsest_flash::units::SECTOR_BYTES;
use palimpsest_ftl_api::plan::inner::Inner;
use palimpsest_ftl_api::plan::{Cause, FileSystemIo, Gate, Io};
use std::collections::{BTreeMap, VecDeque};

/// The state of the device between calls.
pub(super) struct Link {
    pub shape: Shape,
    /// Channels of the drive for each channel of the file system.
    joined: u32,
    pub overhead: Nanos,
    permission_free_at: Nanos,
    /// The channel of the current command group, and the gate that its commands follow.
    group: Option<(u32, Gate)>,
    pub groups: u64,
    /// Whether the pages of a command group are sent at the same time, so that planes may share a command.
    pub sends_together: bool,
    /// Closes when all writes since the last barrier are durable.
    epoch: Gate,
    /// Closes when all writes before the last barrier are durable.
    before: Gate,
    /// For each trimmed block the gate that closes when no checkpoint needs its pages: new programs follow it.
    reusable: BTreeMap<u32, Gate>,
    /// For each file page to be written, in order: the gate of the read of its previous contents.
    pub arrived: VecDeque<Gate>,
    /// Blocks trimmed in each channel; the block map erases each.
    pub wear: Vec<u64>,
    /// Time to transfer, sense and program a page, the mean of low and high pages.
    transfer_time: Nanos,
    sense_time: Nanos,
    program_time: Nanos,
    /// Bytes by fingerprint, and the fingerprints in each written page.
    held: BTreeMap<u64, Box<[u8]>>,
    holders: BTreeMap<u32, Vec<u64>>,
    fingerprints: u64,
    /// Gathered pages that become one command.
    run: Option<Run>,
    /// A run that the layer refused.
    refused: Option<Run>,
    /// The hint of file pages that are written now.
    hint: Lifetime,
    /// Contents of a page that is moved.
    moved: Vec<Data>,
}

// Gates do not exist before timing starts; the rest lives for a request.
palimpsest_flash::state!(Link { permission_free_at, groups, wear, held, holders, fingerprints } built {
    shape, joined, overhead, group, sends_together, epoch, before, reusable, arrived, transfer_time, sense_time,
    program_time, run, refused, hint, moved
});

/// Consecutive pages that are written, or moved, as one command.
struct Run {
    first: u32,
    pages: u32,
    contents: Vec<Data>,
    /// The old place of the first page, in a move.
    from: Option<u32>,
    cause: Cause,
    hint: Lifetime,
    /// Gates that close when the contents have arrived.
    arrived: Vec<Gate>,
}

impl Run {
    fn unpin(&self, io: &mut Io) {
        self.contents.iter().for_each(|&data| io.unpin(data));
    }
}

const LONGEST_RUN: u32 = 256;

impl Link {
    pub fn new(shape: Shape, joined: u32, part: &Part, overhead: Nanos) -> Self {
        Link {
            shape,
            joined,
            overhead,
            permission_free_at: 0,
            group: None,
            groups: 0,
            sends_together: false,
            epoch: Gate::NONE,
            before: Gate::NONE,
            reusable: BTreeMap::new(),
            arrived: VecDeque::new(),
            wear: vec![0; shape.channels as usize],
            transfer_time: part.bus_rate.time_for(u64::from(part.page_bytes)),
            sense_time: (part.t_read + part.t_read_high) / 2,
            program_time: (part.t_program + part.t_program_high) / 2,
            held: BTreeMap::new(),
            holders: BTreeMap::new(),
            fingerprints: 0,
            run: None,
            refused: None,
            hint: Lifetime::Unknown,
            moved: Vec::new(),
        }
    }

    /// Begins a request of the host, and a command group.
    pub fn begin(&mut self) {
        self.group = None;
        self.sends_together = false;
        self.run = None;
        self.arrived.clear();
    }

    /// Ends the command group.
    pub fn end_group(&mut self, io: &mut Io) {
        (self.group, self.sends_together) = (None, false);
        io.plan.group = 0;
    }

    #[inline]
    pub fn has_refused(&self) -> bool {
        self.refused.is_some()
    }

    /// The contents of page `page` in the run that the layer refused.
    pub fn refused(&self, page: u32) -> Option<&[Data]> {
        let run = self.refused.as_ref()?;
        let width = self.shape.subpages_per_page as usize;
        run.contents.chunks(width).nth(page.checked_sub(run.first)? as usize)
    }

    /// Drops all open gates and the contents of the host's memory, after a power cut.
    pub fn restart(&mut self, io: &mut Io) {
        self.begin();
        self.refused.take().into_iter().for_each(|run| run.unpin(io));
        (self.epoch, self.before) = (Gate::NONE, Gate::NONE);
        self.reusable.clear();
    }

    /// The gate that commands to `channel` follow: the DRAM permission exchange of their group.
    pub fn exchange_permission(&mut self, io: &mut Io, channel: u32) -> Gate {
        match self.group {
            Some((present, gate)) if present == channel => gate,
            _ => {
                self.groups += 1;
                let mut gate = Gate::NONE;
                if self.overhead > 0 {
                    gate = io.gate();
                }
                if !gate.is_none() {
                    self.permission_free_at = self.permission_free_at.max(io.now()) + self.overhead;
                    io.plan.delay(gate, self.permission_free_at);
                }
                self.group = Some((channel, gate));
                let number = if self.sends_together { 1 + (self.groups % u64::from(u16::MAX)) as u16 } else { 0 };
                io.plan.group = number;
                gate
            }
        }
    }

    /// Makes the current request wait for all writes so far.
    pub fn wait_for_all(&mut self, io: &mut Io) {
        let request = io.request();
        io.link(self.epoch, request);
        io.link(self.before, request);
    }
}

/// The device during a call.
pub(super) struct Attached<'a> {
    pub io: &'a mut Io,
    pub store: &'a mut dyn Store,
    pub link: &'a mut Link,
}

impl Attached<'_> {
    /// Programs the pages from `page` on, after `after`, the permission exchange and, for metadata, the last barrier.
    fn program(&mut self, page: u32, contents: &[Data], cause: Cause, hint: Lifetime, after: Gate) -> Flash<()> {
        let group = self.link.exchange_permission(self.io, self.link.shape.channel(page));
        let before = if cause == Cause::Metadata { self.link.before } else { Gate::NONE };
        let reusable = self.reusable(page);
        let after = self.io.all_of(&[after, group, before, reusable]);
        let done = self.io.gate();
        self.store.write(self.io, page, contents, Inner { cause, after, signal: done, lifetime: hint })?;
        // Without a signal the contents are in durable memory of the layer.
        let done = self.io.used(done);
        self.wait_for(done);
        if cause == Cause::Host {
            let (request, stored) = (self.io.request(), self.io.present.stored);
            // The buffer takes the data when the permission has come, before the rest of a page is read.
            let is_buffered = done.is_none() || !stored.is_none();
            self.io.link(if is_buffered { group } else { done }, request);
            self.io.link(done, stored);
        }
        Ok(())
    }

    /// The gate that closes when the pages of the block of `page` may be programmed again.
    fn reusable(&mut self, page: u32) -> Gate {
        let block = page / self.link.shape.pages_per_block;
        let gate = self.link.reusable.get(&block).copied().unwrap_or_default();
        if !gate.is_none() && !self.io.is_open(gate) {
            self.link.reusable.remove(&block);
        }
        gate
    }

    /// Makes the next barrier wait for `done`.
    fn wait_for(&mut self, done: Gate) {
        if done.is_none() {
            return;
        }
        if !self.io.is_open(self.link.epoch) {
            self.link.epoch = self.io.gate();
        }
        self.io.link(done, self.link.epoch);
    }

    /// Appends a page to the gathered run that continues the run; else submits the run and begins another.
    fn gather(&mut self, page: Run) -> Flash<()> {
        let fits = self.link.run.as_ref().is_some_and(|run| {
            let continues = match (run.from, page.from) {
                (None, None) => true,
                (Some(from), Some(next)) => from + run.pages == next,
                _ => false,
            };
            let alike = (run.cause, run.hint) == (page.cause, page.hint);
            continues && alike && run.first + run.pages == page.first && run.pages < LONGEST_RUN
        });
        if !fits {
            self.submit()?;
            self.link.run = Some(page);
        } else if let Some(run) = &mut self.link.run {
            run.pages += 1;
            run.contents.extend(page.contents);
            run.arrived.extend(page.arrived);
        }
        Ok(())
    }

    /// Writes the gathered run.
    pub fn submit(&mut self) -> Flash<()> {
        let Some(mut run) = self.link.run.take() else { return Ok(()) };
        self.link.group = None;
        if let Some(from) = run.from {
            let sectors = run.pages * (self.link.shape.page_bytes / SECTOR_BYTES as u32);
            run.arrived.push(self.fetch(from, sectors, Cause::Gc, &mut run.contents)?);
        }
        let after = self.io.all_of(&run.arrived);
        let done = self.program(run.first, &run.contents, run.cause, run.hint, after);
        if let Err(Halt::NoSpace | Halt::Ended(_)) = done {
            run.contents.iter().for_each(|&data| self.io.pin(data));
            (run.from, run.arrived) = (None, Vec::new());
            self.link.refused = Some(run);
        }
        done
    }

    /// Writes the run that the layer refused, if there is one.
    pub fn submit_refused(&mut self) -> Flash<()> {
        let Some(run) = self.link.refused.take() else { return Ok(()) };
        run.unpin(self.io);
        self.link.run = Some(run);
        self.submit()
    }

    /// Reads pages to move; returns the gate that closes when they have arrived.
    fn fetch(&mut self, page: u32, sectors: u32, cause: Cause, contents: &mut Vec<Data>) -> Flash<Gate> {
        let group = self.link.exchange_permission(self.io, self.link.shape.channel(page));
        let (after, signal) = (self.io.all_of(&[group]), self.io.gate());
        self.store.read(
            self.io,
            page,
            0..sectors,
            contents,
            Inner { cause, after, signal, lifetime: Lifetime::Unknown },
        )?;
        Ok(self.io.used(signal))
    }

    /// Buses and dies of a channel of the device. With superblocks, the channel is a group of dies on several buses;
    /// ignored: other groups on these buses.
    fn width(&self) -> (Nanos, Nanos) {
        let (seen, physical) = (self.io.geometry(), self.io.nand().physical());
        let (members, joined) = (physical.dies() / seen.dies(), self.link.joined);
        ((joined * members).min(physical.channels).into(), (physical.dies() / seen.channels * joined).into())
    }
}

impl Device for Attached<'_> {
    fn shape(&self) -> Shape {
        self.link.shape
    }

    fn write(&mut self, page: u32, contents: &[Data], purpose: Purpose) -> Flash<()> {
        let (cause, hint, arrived) = match purpose {
            Purpose::Data => (Cause::Host, self.link.hint, self.link.arrived.pop_front().unwrap_or(Gate::NONE)),
            Purpose::Metadata => {
                if self.io.nand().payload() == Payload::Tag {
                    self.link.holders.insert(page, contents.iter().map(|data| data.value).collect());
                }
                (Cause::Metadata, Lifetime::Metadata, Gate::NONE)
            }
        };
        if !self.store.takes_runs() {
            return self.program(page, contents, cause, hint, arrived);
        }
        let (contents, arrived) = (contents.to_vec(), vec![arrived]);
        self.gather(Run { first: page, pages: 1, contents, from: None, cause, hint, arrived })
    }

    fn read(&mut self, page: u32, purpose: Purpose, contents: &mut Vec<Data>) -> Flash<bool> {
        self.submit()?;
        if !self.store.holds(page) {
            return Ok(false);
        }
        let cause = if purpose == Purpose::Metadata { Cause::Metadata } else { Cause::Host };
        let group = self.link.exchange_permission(self.io, self.link.shape.channel(page));
        let after = self.io.all_of(&[group]);
        contents.clear();
        let sectors = self.link.shape.page_bytes / SECTOR_BYTES as u32;
        let inner = Inner { cause, after, signal: Gate::NONE, lifetime: Lifetime::Unknown };
        self.store.read(self.io, page, 0..sectors, contents, inner)?;
        Ok(true)
    }

    fn copy(&mut self, from: u32, to: u32) -> Flash<()> {
        if self.store.takes_runs() {
            let (cause, hint) = (Cause::Gc, Lifetime::Moved);
            let page =
                Run { first: to, pages: 1, contents: Vec::new(), from: Some(from), cause, hint, arrived: Vec::new() };
            return self.gather(page);
        }
        let mut contents = std::mem::take(&mut self.link.moved);
        contents.clear();
        let sectors = self.link.shape.page_bytes / SECTOR_BYTES as u32;
        let read = self.fetch(from, sectors, Cause::Gc, &mut contents)?;
        self.program(to, &contents, Cause::Gc, Lifetime::Moved, read)?;
        self.link.moved = contents;
        Ok(())
    }

    fn barrier(&mut self) -> Flash<()> {
        self.submit()?;
        let signal = self.io.gate();
        self.store.make_durable(
            self.io,
            Inner { cause: Cause::Metadata, after: Gate::NONE, signal, lifetime: Lifetime::Unknown },
        )?;
        let signal = self.io.used(signal);
        self.wait_for(signal);
        self.link.before = self.io.all_of(&[self.link.epoch, self.link.before]);
        self.link.epoch = Gate::NONE;
        self.io.barrier(self.link.before);
        self.io.nand.settle_image()
    }

    fn trim(&mut self, block: u32) -> Flash<()> {
        self.submit()?;
        let pages = self.link.shape.pages_per_block;
        let after = self.io.all_of(&[self.link.before]);
        let inner = Inner { cause: Cause::Host, after, signal: Gate::NONE, lifetime: Lifetime::Unknown };
        self.store.trim_block(self.io, block, inner)?;
        if !after.is_none() {
            self.link.reusable.insert(block, after);
        }
        self.link.wear[self.link.shape.channel_of_block(block) as usize] += 1;
        if self.io.undo.is_some() {
            return Ok(()); // A power cut may take the erase back.
        }
        let holders = &mut self.link.holders;
        for page in block * pages..(block + 1) * pages {
            for fingerprint in holders.remove(&page).unwrap_or_default() {
                self.link.held.remove(&fingerprint);
            }
        }
        Ok(())
    }

    fn discard(&mut self, page: u32, pages: u32) -> Flash<()> {
        self.submit()?;
        self.store.discard(self.io, page, pages)
    }

    fn finish(&mut self, block: u32) -> Flash<()> {
        self.store.finish(self.io, block)
    }

    fn set_hint(&mut self, hint: Lifetime) {
        self.link.hint = hint;
    }

    fn written(&self, block: u32) -> u32 {
        self.store.written(self.io, block)
    }

    fn anything(&self) -> Option<Vec<Data>> {
        let none = self.io.nand().payload() == Payload::None;
        none.then(|| vec![Data::ZERO; self.link.shape.subpages_per_page as usize])
    }

    fn hold(&mut self, bytes: &[u8]) -> Vec<Data> {
        let width = bytes.len() / self.link.shape.subpages_per_page as usize;
        let payload = self.io.nand().payload();
        let subpages = bytes.chunks_exact(width);
        subpages
            .map(|subpage| match payload {
                Payload::None => Data::ZERO,
                Payload::Bytes => self.io.buffers().keep(subpage),
                Payload::Tag => {
                    self.link.fingerprints += 1;
                    // Fingerprints of host data equal these only by chance.
                    let fingerprint = mix(self.link.fingerprints ^ u64::MAX << 40).max(1);
                    self.link.held.insert(fingerprint, subpage.into());
                    Data::new(fingerprint)
                }
            })
            .collect()
    }

    fn bytes(&self, contents: &[Data]) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(self.link.shape.page_bytes as usize);
        for data in contents {
            match self.io.nand().payload() {
                Payload::None => return None,
                Payload::Tag => bytes.extend_from_slice(self.link.held.get(&data.value)?),
                Payload::Bytes => match self.io.nand().buffered(*data) {
                    Some(subpage) => bytes.extend_from_slice(subpage),
                    None => {
                        let width = self.link.shape.page_bytes / self.link.shape.subpages_per_page;
                        bytes.extend(std::iter::repeat_n(0, width as usize));
                    }
                },
            }
        }
        Some(bytes)
    }

    /// Buses and dies work in parallel: the longer of both counts.
    fn load(&self, channel: u32) -> Load {
        if !self.io.plan.timed {
            return Load::default();
        }
        // The dies of a channel, the inverse of `Geometry::channel_of_die`.
        let (geometry, joined) = (self.io.geometry(), self.link.joined);
        let (mut die, step, end) = (channel, geometry.channels / joined, geometry.dies());
        let (mut all, mut reads) = (0, 0);
        while die < end {
            (all, reads) = (all + self.io.load(die), reads + self.io.reading(die));
            die += step;
        }
        let (buses, dies) = self.width();
        let array = Nanos::from(reads) * self.link.sense_time + Nanos::from(all - reads) * self.link.program_time;
        let queued = (Nanos::from(all) * self.link.transfer_time / buses).max(array / dies);
        Load { reading: reads > 0, outstanding: all, queued }
    }

    fn page_times(&self) -> (Nanos, Nanos) {
        let (buses, dies) = self.width();
        let transfer = self.link.transfer_time / buses;
        (transfer.max(self.link.program_time / dies), transfer.max(self.link.sense_time / dies))
    }

    fn wear(&self, channel: u32) -> u64 {
        self.link.wear[channel as usize]
    }
}
