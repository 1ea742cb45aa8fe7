//! Power cuts: at every operation of a workload, in recovery, and again later.
//!
//! Data acknowledged before the cut must read back. A trim is one more version, of zeros, which the next flush makes
//! durable. A cut never restores a version older than the last durable one. After a cut, each subpage of an interrupted
//! request is old or new, as is each unacknowledged write if the buffer is lost.

use crate::drives::{Drawn, Shape, build_in, of_layer, pick, plain, with, with_pairs};
use crate::model::drive;
use crate::room::{has_room, is_tight, picture};
use crate::story::{self, count_cuts, name_cuts, note};
use crate::workload::{Mix, fill, sweep};
use crate::zones::legal;
use palimpsest_lab::command::ZoneAction;
use palimpsest_lab::config::DriveConfig;
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::geometry::{Extent, RequestKind};
use palimpsest_lab::host::settings::Acknowledge;
use palimpsest_lab::nand::data::{Buffers, Data, Payload};
use palimpsest_lab::nand::{Flash, Halt};
use palimpsest_lab::plan::port::pieces;
use palimpsest_lab::plan::{CheckpointIo, PairedIo, PowerIo};
use palimpsest_lab::rng::Rng;
use palimpsest_lab::sim::drive::{Command, Drive, explain};

/// The host's record of one subpage.
#[derive(Clone, Default, Hash)]
pub struct Known {
    current: u64,
    /// Other versions that a read may return after a power cut.
    also: Vec<u64>,
    /// All versions ever written, for messages.
    ever: Vec<u64>,
}

impl Known {
    fn trim(&mut self) {
        self.ever.push(self.current);
        self.also.push(self.current);
        self.current = 0;
    }

    fn write(&mut self, tag: u64, durable: bool) {
        self.ever.push(self.current);
        if durable {
            self.also.clear();
        } else {
            self.also.push(self.current);
        }
        self.current = tag;
    }
}

/// A drive that loses power, and the host's record of the content.
pub struct Powered {
    pub drive: Drive,
    known: Vec<Known>,
    scratch: Buffers,
    per_subpage: u32,
    /// Whether a write is durable on return.
    durable: bool,
    /// Subpages that the host read as lost.
    pub unreadable: u64,
    /// Power cuts so far.
    pub cuts: u64,
}

/// Cuts of one run: the operation of the first, and how many operations after each cut the next one comes.
#[derive(Debug, Clone)]
pub struct Cuts {
    pub first: u64,
    /// Within recovery, one by one.
    pub in_recovery: Vec<u64>,
    pub second: Option<u64>,
}

impl Cuts {
    /// No cut.
    pub const NONE: Cuts = Cuts { first: u64::MAX, in_recovery: Vec::new(), second: None };
}

impl Powered {
    pub fn new(shape: &Shape, entry: &Entry, seed: u64) -> Self {
        story::begin();
        let config = &shape.drive;
        let mut drive = drive(config, entry, Payload::Tag, seed);
        // Commands go to the layer.
        drive.ahead = None;
        Powered {
            drive,
            known: vec![Known::default(); config.logical_subpages() as usize],
            scratch: Buffers::new(config.geometry.subpage_bytes as usize),
            per_subpage: config.geometry.subpage_bytes / 512,
            durable: match config.host.acknowledge {
                Acknowledge::Buffer => !entry.is_file_system(),
                Acknowledge::Program => !entry.gathers && !entry.is_file_system(),
                Acknowledge::Volatile => false,
            },
            unreadable: 0,
            cuts: 0,
        }
    }

    /// Sectors of a unit of the layer.
    pub fn unit_sectors(&self) -> u64 {
        u64::from(self.drive.ftl.unit_subpages() * self.per_subpage)
    }

    /// Whether the buffer survives a power cut.
    pub fn keeps_memory(&self) -> bool {
        self.drive.io.plan.protected
    }

    /// The host's record.
    pub fn knows(&self) -> &[Known] {
        &self.known
    }

    pub fn operations(&self) -> u64 {
        self.drive.io.nand().operations()
    }

    pub fn serve(&mut self, command: Command) -> Flash<()> {
        story::call();
        if command.kind == RequestKind::Write {
            let Drive { io, ftl, .. } = &mut self.drive;
            if io.checkpoint_due() {
                io.write_checkpoint(|io, bytes| ftl.save_tables(io, bytes))?;
            }
            io.host.begin_write();
        }
        self.drive.serve_plainly(command)
    }

    /// `command` with the sectors of the last request; `None` if it changed no data.
    fn placed(&self, command: Command) -> Option<Command> {
        let present = &self.drive.io.present;
        match self.drive.zones() {
            None => Some(command),
            Some(_) if present.refused.is_some() || command.directives.zone.manages() => None,
            Some(_) => Some(Command { extent: present.placed, ..command }),
        }
    }

    /// The host's side of a command that was served.
    pub fn served(&mut self, command: Command) {
        let Some(command) = self.placed(command) else { return };
        for piece in pieces(command.extent, self.per_subpage) {
            let known = &mut self.known[piece.lsn as usize];
            match command.kind {
                RequestKind::Write => {
                    let port = &self.drive.io.host;
                    let tag = port.written(&mut self.scratch, piece, Data::new(known.current)).value;
                    known.write(tag, self.durable || command.directives.fua);
                }
                RequestKind::Trim => known.trim(),
                RequestKind::Read | RequestKind::Flush => {}
            }
        }
        match command.kind {
            RequestKind::Read => self.verify(command.extent, false),
            RequestKind::Flush => self.flushed(),
            _ => {}
        }
    }

    fn flushed(&mut self) {
        self.known.iter_mut().for_each(|known| known.also.clear());
    }

    /// Checks delivered data; `after_cut` accepts and adopts any version that a cut may leave.
    fn verify(&mut self, extent: Extent, after_cut: bool) {
        let mut delivered = self.drive.io.host.take_delivered();
        delivered.sort_unstable_by_key(|&(lsn, _)| lsn);
        let wanted: Vec<u32> = pieces(extent, self.per_subpage).map(|piece| piece.lsn).collect();
        let numbers: Vec<u32> = delivered.iter().map(|&(lsn, _)| lsn).collect();
        assert!(wanted == numbers, "a read of logical subpages {wanted:?} delivered {numbers:?}");
        for (lsn, Data { value: tag, .. }) in delivered {
            let known = &mut self.known[lsn as usize];
            if tag == Data::LOST.value {
                // The host gets an error.
                self.unreadable += 1;
                assert!(self.drive.io.nand().has_read_errors(), "logical subpage {lsn} is lost");
                continue;
            }
            if tag != known.current {
                assert!(after_cut, "logical subpage {lsn} holds {tag:#x}, not {:#x}", known.current);
                let allowed = known.also.contains(&tag);
                let stale = known.ever.contains(&tag);
                assert!(
                    allowed,
                    "after the cut logical subpage {lsn} holds {tag:#x} ({}), neither {:#x} nor any of {:x?}",
                    if tag == 0 {
                        "nothing"
                    } else if stale {
                        "an old version"
                    } else {
                        "never written"
                    },
                    known.current,
                    known.also
                );
                known.ever.push(known.current);
                known.current = tag;
            }
            if after_cut {
                known.also.clear();
            }
        }
    }

    /// The cut came during `command`: each subpage may be old or new.
    pub fn interrupted(&mut self, command: Command) {
        let _ = self.drive.io.host.take_delivered();
        let Some(command) = self.placed(command) else { return };
        for piece in pieces(command.extent, self.per_subpage) {
            let known = &mut self.known[piece.lsn as usize];
            match command.kind {
                RequestKind::Write => {
                    let port = &self.drive.io.host;
                    known.also.push(port.written(&mut self.scratch, piece, Data::new(known.current)).value);
                }
                RequestKind::Trim => known.also.push(0),
                RequestKind::Read | RequestKind::Flush => {}
            }
        }
    }

    pub fn check(&mut self) {
        story::call();
        if let Err(what) = self.drive.ftl.check(&self.drive.io) {
            panic!("check: {what}");
        }
    }

    /// Restores power; power fails again after each of `again` operations of recovery.
    pub fn recover(&mut self, again: &[u64]) -> Flash<()> {
        count_cuts(1 + again.len() as u64);
        self.cuts += 1 + again.len() as u64;
        for &after in again {
            let cut = self.operations() + after;
            self.drive.io.set_power_cut_at(Some(cut));
            match self.rebuild() {
                Err(Halt::PowerCut) => story::cut(self.drive.io.nand().recorded()),
                other => {
                    self.drive.io.set_power_cut_at(None);
                    return other;
                }
            }
        }
        self.drive.io.set_power_cut_at(None);
        self.rebuild()
    }

    /// Recovers the way a drive does.
    fn rebuild(&mut self) -> Flash<()> {
        story::call();
        let Drive { io, ftl, .. } = &mut self.drive;
        io.restore_pages();
        io.find_checkpoint()?;
        for block in 0..io.geometry().blocks() {
            io.scan_since(block);
        }
        ftl.recover(io)?;
        io.drop_tables();
        Ok(())
    }

    pub fn read_all(&mut self, config: &DriveConfig, after_cut: bool) -> Flash<()> {
        for command in sweep(config, RequestKind::Read, u64::from(self.per_subpage) * 8) {
            self.serve(command)?;
            // A drive refuses reads of zones that are offline.
            if self.placed(command).is_some() {
                self.verify(command.extent, after_cut);
            }
        }
        Ok(())
    }

    /// The drive's life ends: if no block fails, flash must have no room.
    fn ends(&self, shape: &Shape) -> bool {
        let io = &self.drive.io;
        assert!(shape.drive.faults.any() || !has_room(io, shape), "the drive ends with room:{}", picture(io));
        false
    }

    /// Runs `commands` through `cuts`. False if the drive's life ended.
    pub fn run(&mut self, shape: &Shape, commands: &[Command], cuts: &Cuts) -> bool {
        self.drive.io.set_power_cut_at(Some(cuts.first));
        let mut second = cuts.second;
        for (index, &command) in commands.iter().enumerate() {
            let asked = command.of(index as u32 / 3 % 5);
            let mut command = legal(&self.drive, asked);
            if command.kind == RequestKind::Trim && command.directives.zone != ZoneAction::Commit {
                let Some(units) = self.drive.units.whole(command.extent) else { continue };
                command.extent = units;
            }
            story::request(index, command, self.drive.io.nand());
            loop {
                match self.serve(command) {
                    Ok(()) => break self.served(command),
                    Err(Halt::NoSpace | Halt::Ended(_)) => return self.ends(shape),
                    Err(Halt::PowerCut) => story::cut(self.drive.io.nand().recorded()),
                    Err(halt) => panic!("{}", explain(halt)),
                }
                self.interrupted(command);
                match self.recover(&cuts.in_recovery).and_then(|()| {
                    self.check();
                    self.read_all(&shape.drive, true)
                }) {
                    Ok(()) => {}
                    Err(Halt::NoSpace | Halt::Ended(_)) => return self.ends(shape),
                    Err(halt) => panic!("recovery: {}", explain(halt)),
                }
                self.check();
                command = legal(&self.drive, command);
                if let Some(after) = second.take() {
                    let cut = self.operations() + after;
                    self.drive.io.set_power_cut_at(Some(cut));
                }
            }
            if index % 8 == 0 {
                self.check();
            }
        }
        self.drive.io.set_power_cut_at(None);
        self.check();
        self.read_all(&shape.drive, false).expect("reads need no space");
        true
    }
}

/// Fills a small drive, then overwrites.
pub fn workload(shape: &Shape, seed: u64, overwrites: usize) -> Vec<Command> {
    let mut mix = Mix::new(&shape.drive, seed);
    let page = u64::from(shape.drive.geometry.page_bytes()) / 512;
    let mut commands: Vec<Command> = fill(&shape.drive, page).collect();
    commands.extend((0..overwrites).map(|_| mix.draw()));
    commands
}

/// [`workload`] with placements, and with FUA on some drives.
pub fn marked(shape: &Shape, seed: u64) -> Vec<Command> {
    let (mut commands, mut marks) = (workload(shape, seed, 60), Rng::new(seed, 0xf0a));
    let forces = marks.below(3) == 0;
    for command in commands.iter_mut().filter(|command| command.kind == RequestKind::Write) {
        command.directives.placement = marks.below(9) as u16;
        command.directives.fua = marks.below(6) == 0 && forces;
    }
    commands
}

/// Runs `commands` through `cuts` on `powered`, a new drive.
///
/// An interrupted program spoils a page, and a drive with the least over-provisioning can lose only one: a second cut
/// may end the drive's life.
pub fn survive(powered: &mut Powered, shape: &Shape, commands: &[Command], cuts: &Cuts) {
    let faulty = shape.drive.faults.any();
    let alive = powered.run(shape, commands, cuts);
    let once = cuts.in_recovery.is_empty() && cuts.second.is_none();
    let is_spared = cuts.first < u64::MAX && is_tight(shape) && !once;
    assert!(alive || faulty || is_spared, "the drive ends with invalid space");
}

/// Cuts one workload at every `stride`-th operation.
pub fn cut_everywhere(
    entry: &'static Entry,
    shape: &Shape,
    seed: u64,
    stride: u64,
    cuts: impl Fn(u64, &mut Rng) -> Cuts,
) {
    note(&shape.settings);
    let commands = marked(shape, seed);
    let mut whole = Powered::new(shape, entry, seed);
    survive(&mut whole, shape, &commands, &Cuts::NONE);
    let mut rng = Rng::new(seed, 0xc07);
    let mut cut = 1 + rng.below(stride);
    while cut <= whole.operations() {
        let cuts = cuts(cut, &mut rng);
        let mut powered = Powered::new(shape, entry, seed);
        name_cuts(format!("{cuts:?}"));
        survive(&mut powered, shape, &commands, &cuts);
        cut += stride;
    }
}

/// A drive of a few blocks.
///
/// # Errors
/// The reason why there is no such drive.
pub fn small(entry: &Entry, seed: u64) -> Drawn<Shape> {
    small_with(entry, seed, &[])
}

/// A drive of a few blocks, with `more` settings.
///
/// # Errors
/// The reason why there is no such drive.
pub fn small_with(entry: &Entry, seed: u64, more: &[&str]) -> Drawn<Shape> {
    let streams = 1 + seed % 3;
    let planes = 1 + seed / 12 % 2;
    let spare = streams + 1 + seed / 6 % 2 * 2;
    let least = entry.least_subpages();
    let blocks = spare + 2;
    let settings = with(
        &plain(planes as u32, blocks as u32, 4, [least, 2, 4][(seed / 3 % 3) as usize]),
        &[
            &format!("ftl.streams={streams}"),
            &format!("buffer.ack={}", ["buffer", "program"][(seed % 2) as usize]),
            &format!("ftl.victim={}", ["greedy", "fifo", "greedy", "cost-benefit"][(seed / 2 % 4) as usize]),
            &format!("ftl.wear_leveling={}", ["none", "dynamic", "static"][(seed / 5 % 3) as usize]),
            "ftl.wear_threshold=1",
        ],
    );
    let mut cells = Rng::new(seed, 0xce11);
    let cell = pick(&mut cells, &["slc", "slc", "mlc", "mlc", "tlc", "qlc"]);
    let settings = with(&settings, &[&format!("part.cell={cell}")]);
    let settings = of_layer(entry, &mut Rng::new(seed, 0x5a11), &settings);
    build_in(entry.name, &with_pairs(&mut cells, &settings), more, blocks, spare)
}
