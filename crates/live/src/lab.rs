//! The drive of a page: the page lets time pass, and draws flash and the operations under way.
//!
//! Requests of the workload arrive in a closed loop. The owner of a subpage is the job of the last write, or the user.
//! Flash changes when a request is planned; a page that draws an operation until it has ended shows the drive's time.
//! Ignored: rates and depths of single jobs, and commands of zones.

use crate::{runs, workload};
use palimpsest_drive::{Command, Completion, Drive, FLUSH, Status, read, trim, write};
use palimpsest_lab::config::unread::{Gravity, Unread};
use palimpsest_lab::error::Result;
use palimpsest_lab::geometry::{Extent, RequestKind};
use palimpsest_lab::host::find_layer;
use palimpsest_lab::host::request::Source;
use palimpsest_lab::nand::{TORN, UNWRITTEN};
use palimpsest_lab::plan::{CAUSE_NAMES, OperationKind};
use palimpsest_lab::sim::engine::present::{Present, Stage};
use palimpsest_lab::units::SECTOR_BYTES;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Most events of one call, so that a page stays responsive.
const MOST_EVENTS: u32 = 4_000;

/// The owner of the user's data; jobs are 0 and up.
const USER: u8 = 254;
/// The owner of data that was written before the workload began, and of records of the layer.
const UNOWNED: u8 = 255;

/// The settings of a drive.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    ssd: String,
    ftl: Option<String>,
    #[serde(default)]
    set: Vec<String>,
    precondition: Option<String>,
    workload: String,
    /// Requests in flight.
    depth: u32,
    seed: u64,
    /// Whether the power may be cut.
    power_cuts: bool,
}

/// The end of a step.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    Operation,
    Request,
}

/// The kind of a user's request.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Read,
    Write,
    Trim,
    Flush,
}

/// A drive under a workload, and the changes since the last view.
pub struct Lab {
    drive: Drive,
    source: Box<dyn Source>,
    /// The workload has no more requests.
    has_ended: bool,
    depth: u32,
    subpage_sectors: u64,
    /// By logical subpage: owner of the data, and whether it is trimmed.
    owners: Vec<u8>,
    trimmed: Vec<bool>,
    /// Requests in flight, with their arrivals, by ticket.
    in_flight: BTreeMap<u64, (u64, Command)>,
    /// Operations under way, by order.
    under_way: BTreeMap<u64, Present>,
    planned: Vec<Present>,
    ended: Vec<(Present, u64)>,
    completed: Vec<Value>,
    /// Time of the last power cut since the last view, and of the end of recovery.
    cut: Option<(u64, u64)>,
    may_lose_power: bool,
    /// A file system places the data, at addresses of its own.
    has_files: bool,
    /// Data was written before the workload began.
    is_filled: bool,
    /// The keys that the drive reads, as `--set` takes them.
    set: Vec<String>,
}

impl Lab {
    /// A new drive.
    pub fn open(setup: &Setup) -> Result<Lab> {
        // A page may keep its keys when the user chooses a layer that does not read some of them.
        let all = runs::resolve(&setup.ssd, setup.ftl.as_deref(), &setup.set)?;
        let unread = all.unread();
        let is_read = |set: &&String| {
            let refused = |one: &Unread| one.gravity != Gravity::Harmless && set.split('=').next() == Some(one.key);
            !unread.iter().any(refused)
        };
        let set: Vec<String> = setup.set.iter().filter(is_read).cloned().collect();
        let resolved = runs::resolve(&setup.ssd, setup.ftl.as_deref(), &set)?;
        let mut builder = Drive::builder(&setup.ssd).closed_loop().workload(&setup.workload).seed(setup.seed);
        if let Some(layer) = &setup.ftl {
            builder = builder.layer(layer);
        }
        for (key, value) in set.iter().filter_map(|set| set.split_once('=')) {
            builder = builder.set(key, value);
        }
        if let Some(text) = &setup.precondition {
            builder = builder.precondition(text);
        }
        let drive = if setup.power_cuts { builder.power_cuts() } else { builder }.build()?;
        let subpages = resolved.drive.logical_subpages() as usize;
        let mut lab = Lab {
            source: workload::open(&setup.workload, &resolved.drive, setup.seed)?,
            has_ended: false,
            depth: setup.depth.max(1),
            subpage_sectors: u64::from(drive.geometry().subpage_bytes) / SECTOR_BYTES,
            owners: vec![UNOWNED; subpages],
            trimmed: vec![false; subpages],
            in_flight: BTreeMap::new(),
            under_way: BTreeMap::new(),
            planned: Vec::new(),
            ended: Vec::new(),
            completed: Vec::new(),
            cut: None,
            may_lose_power: setup.power_cuts,
            is_filled: setup.precondition.as_deref().is_some_and(|text| text != "none"),
            set,
            has_files: find_layer(&resolved.drive.ftl.name).is_some_and(|entry| entry.is_file_system()),
            drive,
        };
        lab.note();
        Ok(lab)
    }

    /// The shape of the new drive, and the first view.
    pub fn opened(&mut self) -> String {
        let geometry = *self.drive.geometry();
        let planes = || 0..geometry.planes();
        let shape = json!({
            "bytes": self.drive.bytes(),
            "unit_bytes": self.drive.unit_bytes(),
            "subpage_bytes": geometry.subpage_bytes,
            "subpages_per_page": geometry.subpages_per_page,
            "pages_per_block": geometry.pages_per_block,
            "blocks_per_plane": geometry.blocks_per_plane,
            "channels": geometry.channels,
            "dies": geometry.dies(),
            "die_of_plane": planes().map(|plane| geometry.die_of_plane(plane)).collect::<Vec<_>>(),
            "channel_of_die": (0..geometry.dies()).map(|die| geometry.channel_of_die(die)).collect::<Vec<_>>(),
            "may_lose_power": self.may_lose_power,
            "has_files": self.has_files,
            "set": self.set,
        });
        format!("{{\"shape\":{shape},\"view\":{}}}", self.view())
    }

    /// Processes `ns` nanoseconds.
    pub fn advance(&mut self, ns: u64, load: bool) -> Result<()> {
        let until = self.drive.now().saturating_add(ns);
        for _ in 0..MOST_EVENTS {
            self.feed(if load { self.depth } else { 0 })?;
            match self.drive.next_time() {
                Some(time) if time <= until => self.pass_to(time)?,
                _ => {
                    self.pass_to(until)?;
                    if self.drive.now() >= until {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Processes events until an operation or a request has ended.
    pub fn step(&mut self, until: Until, load: bool) -> Result<()> {
        let before = (self.ended.len(), self.completed.len());
        let depth = if until == Until::Request { 1 } else { self.depth };
        for _ in 0..MOST_EVENTS {
            let has_ended = match until {
                Until::Operation => self.ended.len() > before.0,
                Until::Request => self.completed.len() > before.1,
            };
            if has_ended {
                break;
            }
            self.feed(if load { depth } else { 0 })?;
            match self.drive.next_time() {
                Some(time) => self.pass_to(time)?,
                None if !load || self.has_ended => break,
                None => {}
            }
        }
        Ok(())
    }

    /// Submits requests of the workload while fewer than `depth` are in flight.
    fn feed(&mut self, depth: u32) -> Result<()> {
        while !self.has_ended && self.drive.in_flight() < depth {
            match self.source.next_request()? {
                Some(request) => {
                    let owner = request.owner().min(u32::from(USER) - 1) as u8;
                    self.accept(request.command, owner)?;
                }
                None => self.has_ended = true,
            }
        }
        Ok(())
    }

    /// Submits a request of the user.
    pub fn submit(&mut self, kind: Kind, offset: u64, bytes: u64) -> Result<()> {
        let command = match kind {
            Kind::Read => read(offset, bytes)?,
            Kind::Write => write(offset, bytes)?,
            Kind::Trim => trim(offset, bytes)?,
            Kind::Flush => FLUSH,
        };
        self.accept(command, USER)
    }

    fn accept(&mut self, command: Command, owner: u8) -> Result<()> {
        let now = self.drive.now();
        let ticket = self.drive.submit(command, now)?;
        self.in_flight.insert(ticket.0, (now, command));
        let Extent { sector, sectors } = command.extent;
        let touched = sector / self.subpage_sectors..(sector + u64::from(sectors)).div_ceil(self.subpage_sectors);
        let touched = touched.start as usize..(touched.end as usize).min(self.owners.len());
        match command.kind {
            RequestKind::Write => {
                self.owners[touched.clone()].fill(owner);
                self.trimmed[touched].fill(false);
            }
            RequestKind::Trim => self.trimmed[touched].fill(true),
            _ => {}
        }
        self.note();
        Ok(())
    }

    /// Cuts the power now. Returns after the recovery.
    pub fn cut_power(&mut self) -> Result<()> {
        let at = self.drive.now();
        self.drive.power_cut(at)?;
        self.drive.advance(at)?;
        self.note();
        self.cut = Some((at, self.drive.now()));
        Ok(())
    }

    fn pass_to(&mut self, time: u64) -> Result<()> {
        self.drive.advance(time)?;
        self.note();
        Ok(())
    }

    /// Notes planned and ended operations, and completed requests.
    fn note(&mut self) {
        let now = self.drive.now();
        let present: BTreeMap<u64, Present> = self.drive.operations().into_iter().map(|one| (one.order, one)).collect();
        self.planned.extend(present.values().filter(|one| !self.under_way.contains_key(&one.order)));
        let ended = self.under_way.values().filter(|one| !present.contains_key(&one.order));
        self.ended.extend(ended.map(|one| (*one, now)));
        self.under_way = present;
        for Completion { ticket, at, status, .. } in self.drive.completed() {
            let Some((arrival, command)) = self.in_flight.remove(&ticket.0) else { continue };
            self.completed.push(json!({
                "kind": format!("{:?}", command.kind).to_lowercase(),
                "offset": command.extent.sector * SECTOR_BYTES,
                "bytes": u64::from(command.extent.sectors) * SECTOR_BYTES,
                "at": at,
                "latency": at - arrival,
                "status": match status {
                    Status::Done => "done",
                    Status::Unreadable => "unreadable",
                    Status::PowerLost => "power lost",
                    Status::WornOut => "worn out",
                },
            }));
        }
    }

    /// The present state, with the changes since the last view.
    pub fn view(&mut self) -> String {
        let pages = self.drive.pages();
        // By subpage: the owner if the data is live; -1 erased, -2 stale, -3 without data.
        let cells = pages.logical.iter().zip(&pages.is_newest).map(|(&logical, &is_newest)| match logical {
            UNWRITTEN => -1,
            TORN.. => -3,
            _ if !is_newest => -2,
            _ if self.has_files => i16::from(UNOWNED),
            _ => match self.owners.get(logical as usize) {
                Some(&owner) if !self.trimmed[logical as usize] => i16::from(owner),
                _ => -2,
            },
        });
        // By subpage of the host: the owner, or -1 without data.
        let host = self.owners.iter().zip(&self.trimmed).map(|(&owner, &trimmed)| match owner {
            UNOWNED if !self.is_filled => -1,
            _ if trimmed => -1,
            owner => i16::from(owner),
        });
        let host = self.has_files.then(|| host.collect::<Vec<i16>>());
        let logical = pages.logical.iter().map(|&one| if one < TORN { i64::from(one) } else { -1 });
        let view = json!({
            "now": self.drive.now(),
            "next": self.drive.next_time(),
            "in_flight": self.drive.in_flight(),
            "cells": cells.collect::<Vec<i16>>(),
            "logical": logical.collect::<Vec<i64>>(),
            "host": host,
            "programs": pages.programs,
            "valid": pages.valid,
            "erases": pages.erases,
            "bad": pages.bad,
            "operations": self.under_way.values().map(printed).collect::<Vec<_>>(),
            "planned": self.planned.drain(..).map(|one| printed(&one)).collect::<Vec<_>>(),
            "ended": self.ended.drain(..).map(|(one, at)| json!([printed(&one), at])).collect::<Vec<_>>(),
            "completed": std::mem::take(&mut self.completed),
            "cut": self.cut.take().map(|(at, until)| json!({ "at": at, "recovered": until })),
        });
        view.to_string()
    }

    /// The result so far, as `palimpsest run` prints it.
    pub fn figures(&self) -> String {
        serde_json::to_string(&self.drive.figures()).expect("a result can be printed")
    }
}

/// An operation for the page: order, kind, cause, die, block, page, stage.
fn printed(one: &Present) -> Value {
    let kind = match one.kind {
        OperationKind::Read => "read",
        OperationKind::Program => "program",
        OperationKind::Erase => "erase",
    };
    let stage = match one.stage {
        Stage::Waits => "waits",
        Stage::Queued => "queued",
        Stage::Moves => "moves",
        Stage::Works => "works",
        Stage::Suspended => "suspended",
    };
    json!([one.order, kind, CAUSE_NAMES[one.cause as usize], one.die, one.block, one.page, stage])
}
