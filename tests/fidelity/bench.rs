//! Runs through the user's path: a preset with overrides, a workload specification or the text of a job file, a
//! precondition, a result.

use palimpsest_lab::config::{Resolved, resolve};
use palimpsest_lab::host::fio::{self, JobFile};
use palimpsest_lab::host::objects::{ObjectSource, ObjectSpec};
use palimpsest_lab::host::request::Source;
use palimpsest_lab::metrics::summary::Summary;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::run::precondition::Precondition;
use palimpsest_lab::run::{self, Fidelity, Options, Outcome, Warmup, Window};
use palimpsest_lab::units::GIB;
use std::ops::ControlFlow;

/// A preset with the overrides `sets`, separated by blanks.
pub fn drive(ssd: &str, sets: &str) -> Resolved {
    let mut overrides: Vec<String> = Vec::new();
    for set in sets.split_whitespace() {
        // A later setting replaces an earlier one.
        let key = set.split('=').next().unwrap();
        overrides.retain(|earlier| !earlier.starts_with(&format!("{key}=")));
        overrides.push(set.into());
    }
    resolve(ssd, None, &overrides, &|_| unreachable!("presets need no files")).unwrap()
}

/// Settings that remove the time of controller and buffer.
const FLASH_ONLY: &str = "host.t_link=0ns controller.iops=0 controller.write_iops=0 controller.t_read=0ns \
     controller.t_write=0ns controller.t_end=0ns controller.read_ahead=0 buffer.t_write=0ns buffer.t_write_next=0ns \
     part.t_read_types=[] ftl.superblock_dies=0 ftl.slc_cache=0% ftl.slc_fixed=0% buffer.flush=programs \
     part.pages_per_program=1";

/// As [`drive`] without controller time; drives of terabytes get fewer blocks in each plane.
pub fn small(ssd: &str, sets: &str) -> Resolved {
    let whole = drive(ssd, &format!("{FLASH_ONLY} {sets}"));
    if whole.drive.logical_bytes() <= 128 * GIB {
        return whole;
    }
    // The sums of the tests are for links that are faster than a bus.
    let slow = whole.drive.host.link_rate.0 < whole.drive.part.bus_rate.0;
    let link = if slow { "host.link_rate=unlimited" } else { "" };
    drive(ssd, &format!("{FLASH_ONLY} {sets} {link} ssd.blocks_per_plane=64"))
}

/// A run, with the options of most tests.
#[derive(Clone)]
pub struct Run<'a> {
    pub ssd: &'a Resolved,
    pub workload: String,
    pub precondition: &'a str,
    pub warmup: u64,
    pub fidelity: Fidelity,
    pub payload: Payload,
    pub seed: u64,
    pub operations: Option<Window>,
}

impl<'a> Run<'a> {
    pub fn new(ssd: &'a Resolved, workload: &str) -> Self {
        Run {
            ssd,
            workload: workload.into(),
            precondition: "none",
            warmup: 0,
            fidelity: Fidelity::Timed,
            payload: Payload::None,
            seed: 1,
            operations: None,
        }
    }

    pub fn result(&self) -> Summary {
        self.outcome(false).summary
    }

    /// The result, and with `series` the data of charts.
    pub fn outcome(&self, series: bool) -> Outcome {
        let bytes = self.ssd.drive.logical_bytes();
        let mut source: Box<dyn Source> = match self.workload.strip_prefix('[') {
            None if ObjectSpec::is_meant(&self.workload) => {
                let spec = ObjectSpec::parse(&self.workload).unwrap();
                Box::new(ObjectSource::new(spec, None, bytes, self.seed).unwrap())
            }
            Some(_) => Box::new(JobFile::parse(&self.workload, "jobs").unwrap().source(bytes, self.seed).unwrap()),
            None => fio::generated(&self.workload.parse().unwrap(), bytes, self.seed).unwrap(),
        };
        let options = Options {
            workload: self.workload.clone(),
            precondition: Precondition::parse(self.precondition).unwrap(),
            requests: None,
            warmup: Warmup::Requests(self.warmup),
            fidelity: self.fidelity,
            payload: self.payload,
            seed: self.seed,
            series,
            operations: self.operations,
            strict: false,
        };
        run::run(self.ssd, &mut *source, &options, &mut |_| ControlFlow::Continue(())).unwrap()
    }
}
