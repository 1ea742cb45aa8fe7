//! The commands of a store of records, as requests of a run.
//!
//! Before the run (`--precondition layout`) all records are put once, in scattered order, and then updated until the
//! store has written `warm` times the drive; only writes and trims reach the drive. Sections of the run are the gets,
//! the log, the flushes (`level 0`), and compactions into each level, with their reads, writes and trims.

use super::spec::LsmSpec;
use super::tree::{LEVELS, Tree};
use crate::fio::zipf::Zipf;
use crate::objects::commands::Commands;
use crate::request::{Arrivals, Request, RequestKind, SECTOR_BYTES, Section, Source};
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::rng::{Rng, mix};

/// The source of the commands.
pub struct LsmSource {
    spec: LsmSpec,
    tree: Tree,
    commands: Commands,
    records: u32,
    zipf: Option<Zipf>,
    rng: Rng,
    /// Records that were put before the run, and bytes that the store writes before.
    loaded: u32,
    warm: u64,
    warmed: bool,
    left: u64,
    failure: Option<Error>,
}

impl LsmSource {
    /// The workload `spec` on a drive of `drive_bytes`.
    ///
    /// # Errors
    /// [`Error::Input`] if the store does not fit.
    pub fn new(spec: LsmSpec, drive_bytes: u64, seed: u64) -> Result<Self> {
        let space = spec.space.expect("a parsed description has a space");
        let bytes = space.bytes_of(drive_bytes, SECTOR_BYTES);
        if bytes > drive_bytes {
            let what = format!("the drive has {drive_bytes} bytes; expected a store that fits, such as 90%");
            return Err(Error::input(format!("lsm={space}"), what));
        }
        let records = (bytes as f64 * spec.data / spec.record as f64) as u64;
        if records == 0 || records > 1 << 30 {
            let what = format!("the store has {records} records; expected 1 to 2^30");
            return Err(Error::input("record", what));
        }
        Ok(LsmSource {
            tree: Tree::new(spec.clone(), bytes),
            commands: Commands::default(),
            records: records as u32,
            zipf: (spec.zipf > 0.0).then(|| Zipf::new(records, spec.zipf)),
            rng: Rng::new(seed, 0x001_5a7e),
            loaded: 0,
            warm: (spec.warm * drive_bytes as f64) as u64,
            warmed: false,
            left: spec.requests,
            failure: None,
            spec,
        })
    }

    /// A record by its popularity. Popular records are scattered over the keys, as in YCSB.
    fn draw(&mut self) -> u32 {
        let rank = match &self.zipf {
            Some(zipf) => zipf.draw(&mut self.rng),
            None => self.rng.below(self.records.into()),
        };
        (mix(rank) % u64::from(self.records)) as u32
    }

    /// The next record of the load: strides of the golden section visit each once.
    fn next_of_load(&mut self) -> u32 {
        let records = u64::from(self.records);
        let mut stride = (records as f64 * 0.618_034) as u64 | 1;
        while common_divisor(stride, records) != 1 {
            stride += 2;
        }
        self.loaded += 1;
        (u64::from(self.loaded) * stride % records) as u32
    }

    /// The next write or trim before the run.
    fn next_of_warm_up(&mut self) -> Result<Option<Request>> {
        loop {
            while let Some(command) = self.commands.next() {
                if command.kind != RequestKind::Read {
                    return Ok(Some(Request::new(0, command)));
                }
            }
            let key = match self.loaded < self.records {
                true => self.next_of_load(),
                false if self.tree.written >= self.warm => return Ok(None),
                false => self.draw(),
            };
            self.tree.put(key, &mut self.commands)?;
        }
    }
}

/// The names of the log and of the levels.
fn parts() -> impl Iterator<Item = String> {
    let levels = (0..LEVELS).map(|level| format!("level {level}"));
    std::iter::once("log".to_string()).chain(levels)
}

fn common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { common_divisor(other, one % other) }
}

impl Source for LsmSource {
    fn next_request(&mut self) -> Result<Option<Request>> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        loop {
            if let Some(command) = self.commands.next() {
                return Ok(Some(Request::new(0, command)));
            }
            if self.left == 0 {
                return Ok(None);
            }
            self.left -= 1;
            let key = self.draw();
            match self.rng.chance(self.spec.reads) {
                true => self.tree.get(key, &mut self.commands),
                false => self.tree.put(key, &mut self.commands)?,
            }
        }
    }

    fn next_of_layout(&mut self) -> Option<Request> {
        if self.warmed || self.failure.is_some() {
            return None;
        }
        match self.next_of_warm_up() {
            Ok(Some(request)) => return Some(request),
            Ok(None) => self.warmed = true,
            Err(failure) => self.failure = Some(failure),
        }
        None
    }

    fn place(&self) -> String {
        "a store of records".into()
    }

    fn arrivals(&self) -> Arrivals {
        Arrivals::Closed { depth: self.spec.depth }
    }

    fn can_repeat(&self) -> bool {
        false
    }

    fn handles(&self) -> Vec<(String, u16)> {
        let of = |(part, name)| self.spec.handle(part).map(|handle| (format!("{name} of the store"), handle));
        parts().enumerate().filter_map(of).collect()
    }

    fn sections(&self) -> Vec<Section> {
        let names = std::iter::once("get".to_string()).chain(parts());
        names.map(|name| Section { name, copies: 1, depth: None }).collect()
    }
}
