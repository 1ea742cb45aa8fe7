//! A drive with a shadow that verifies every read.

use crate::drives::Shape;
use crate::story;
use crate::workload::sweep;
use crate::zones::legal;
use palimpsest_lab::config::DriveConfig;
use palimpsest_lab::error::Result;
use palimpsest_lab::ftl::{Entry, Programs};
use palimpsest_lab::geometry::RequestKind;
use palimpsest_lab::host::shadow::Shadow;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::observe::Observer;
use palimpsest_lab::plan::CheckpointIo;
use palimpsest_lab::rng::Rng;
use palimpsest_lab::run::build;
use palimpsest_lab::sim::drive::{Command, Drive, Refused, Verifier};
use palimpsest_lab::units::Nanos;
use std::collections::BTreeMap;

/// Counts completions.
#[derive(Default)]
pub struct Completions {
    /// Completions by kind and bytes.
    pub seen: BTreeMap<(u8, u64), i64>,
    pub last: Nanos,
}

impl Observer for Completions {
    fn request_completed(&mut self, kind: RequestKind, bytes: u64, latency: Nanos, now: Nanos) {
        assert!(now >= self.last, "completions go back in time");
        assert!(latency <= now, "a request completes before it arrived");
        self.last = now;
        *self.seen.entry((kind as u8, bytes)).or_default() += 1;
    }
}

/// A new drive as a run makes it.
pub fn drive(config: &DriveConfig, entry: &Entry, payload: Payload, seed: u64) -> Drive {
    let mut drive = build::drive(config, entry, payload, seed);
    drive.io.begin_checkpoints();
    drive.set_controller(config.controller.clone());
    drive.read_ahead(config.read_ahead, config.logical_subpages());
    if !entry.is_file_system() {
        drive.keep_trims(config.logical_subpages());
    }
    drive.verify_times(None);
    drive
}

/// A drive under test.
pub struct Model {
    pub config: DriveConfig,
    pub drive: Drive,
    pub shadow: Shadow,
    pub completions: Completions,
    submitted: BTreeMap<(u8, u64), i64>,
    /// Requests so far; each names one of a few files in turn, or none.
    served: u32,
    /// True if requests stay without directives.
    pub is_bare: bool,
    /// True if some writes have FUA.
    forces: bool,
    /// Subpages of reads that a drive with zones refused without time, because the zone is offline.
    refused: u64,
}

impl Model {
    pub fn new(shape: &Shape, entry: &Entry, payload: Payload, seed: u64) -> Self {
        story::begin();
        let config = shape.drive.clone();
        let shadow = Shadow::new(payload, config.logical_subpages(), config.geometry.subpage_bytes);
        Model {
            drive: drive(&config, entry, payload, seed),
            shadow,
            completions: Completions::default(),
            submitted: BTreeMap::new(),
            served: 0,
            is_bare: false,
            forces: Rng::new(seed, 0xf0a).below(3) == 0,
            refused: 0,
            config,
        }
    }

    /// Serves `command` without time.
    pub fn count(&mut self, command: Command) -> Result<()> {
        let command = self.named(command);
        self.drive.count(command, &mut self.shadow)?;
        for Refused { command, .. } in self.drive.reports.refused.drain(..) {
            let sectors = if command.kind == RequestKind::Read { command.extent.sectors } else { 0 };
            self.refused += u64::from(sectors / (self.config.geometry.subpage_bytes / 512));
        }
        Ok(())
    }

    /// Subpages that the host could not read, lost or in a zone that is offline.
    pub fn unreadable(&self) -> u64 {
        self.shadow.unreadable + self.refused
    }

    /// `command` as a request of the present file.
    fn named(&mut self, command: Command) -> Command {
        self.served += 1;
        let asked = if self.is_bare { command } else { command.of(self.served / 3 % 5) };
        let mut command = legal(&self.drive, asked);
        if command.kind == RequestKind::Write && !self.is_bare {
            command.directives.placement = (self.served / 2 % 9) as u16;
            command.directives.fua = self.forces && self.served.is_multiple_of(7);
        }
        story::request(self.served as usize - 1, command, self.drive.io.nand());
        command
    }

    /// The tables of the layer agree with flash.
    pub fn check(&mut self) {
        story::call();
        if let Err(what) = self.drive.ftl.check(&self.drive.io) {
            panic!("check: {what}");
        }
        let (counters, nand) = (&self.drive.io.counters, self.drive.io.nand());
        assert_eq!(counters.programs.iter().sum::<u64>(), nand.counters().programs, "programs by cause and of flash");
        assert_eq!(counters.reads.iter().sum::<u64>(), nand.counters().reads, "reads by cause and of flash");
        assert_eq!(nand.sum_of_erases(), nand.counters().erases, "erases of blocks and of flash");
    }

    /// The drive's life ended during `command`.
    pub fn interrupted(&mut self, mut command: Command) {
        if self.drive.zones().is_some() {
            command.extent = self.drive.io.present.placed;
        }
        self.drive.end_life();
        self.shadow.power_failed(&mut self.drive.io, command);
    }

    /// Reads the whole drive back.
    pub fn read_back(&mut self) -> Result<()> {
        let step = u64::from(self.config.geometry.page_bytes()) / 512 * 3;
        for command in sweep(&self.config, RequestKind::Read, step) {
            self.count(command)?;
        }
        Ok(())
    }

    /// Runs `commands` in a closed loop of depth `depth`, timed, to the end of the last operation.
    pub fn run_timed(&mut self, commands: impl Iterator<Item = Command>, depth: u32) -> Result<()> {
        let mut commands = commands.peekable();
        let mut budget = 0u64;
        self.drive.reports.refused.clear();
        while commands.peek().is_some() || self.drive.outstanding() > 0 {
            while self.drive.outstanding() < depth {
                let Some(command) = commands.next() else { break };
                let (command, now) = (self.named(command), self.drive.engine.now());
                *self.submitted.entry((command.kind as u8, u64::from(command.extent.sectors) * 512)).or_default() += 1;
                self.drive.submit(command, now, &mut self.shadow)?;
                self.drive.harvest(&mut self.completions, &mut self.shadow)?;
                budget += 100_000;
            }
            if self.drive.outstanding() > 0 {
                self.advance()?;
            }
            assert!(budget > 0, "nothing completes any more");
            budget -= 1;
        }
        for Refused { command: refused, .. } in self.drive.reports.refused.drain(..) {
            *self.submitted.entry((refused.kind as u8, u64::from(refused.extent.sectors) * 512)).or_default() -= 1;
        }
        self.submitted.retain(|_, count| *count > 0);
        let mut budget = 100_000u64;
        while self.drive.engine.outstanding() > 0 {
            self.advance()?;
            assert!(budget > 0, "the drive never comes to rest");
            budget -= 1;
        }
        assert_eq!(self.completions.seen, self.submitted, "every request completes exactly once");
        Ok(())
    }

    fn advance(&mut self) -> Result<()> {
        story::call();
        if self.drive.next_time().is_some() {
            self.drive.step(&mut self.completions, &mut self.shadow)
        } else {
            self.drive.push_out()?;
            self.drive.harvest(&mut self.completions, &mut self.shadow)
        }
    }
}

/// Bytes for each fourth seed, and tags for the others. A layer that codes pages has bytes for each sixteenth, because
/// the coding of bytes would take half the time of the long tests.
pub fn payload_of(entry: &Entry, seed: u64) -> Payload {
    let codes = entry.below.unwrap_or(entry).programs == Programs::OverData;
    let every = if codes { 16 } else { 4 };
    if seed % every == 3 { Payload::Bytes } else { Payload::Tag }
}
