//! The registry of faults that a drive may have. A kind of fault is one file and one line here: keys, checks, the start
//! of the faults in a run, and drives for the model suite are in that file.
//!
//! Flash itself injects the kinds of [`random`]. Ignored: faults that cause others.

mod die_failure;
pub mod power_cuts;
mod random;
pub mod schedule;

use crate::drive::Drive;
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::rng::Rng;
use palimpsest_ftl_api::keys::{Fallback, Key};
use palimpsest_ftl_api::settings::Settings;
use palimpsest_ftl_api::{Entry, Unfit};

/// All kinds of faults.
pub const FAULTS: &[Fault] = &[
    random::PROGRAM_FAIL,
    random::ERASE_FAIL,
    random::READ_FAIL,
    random::INITIAL_BAD,
    random::WEAR_OUT,
    power_cuts::ONE,
    power_cuts::MANY,
    die_failure::FAULT,
];

/// The power of a drive with a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Power {
    /// The power stays.
    Stays,
    /// The power fails once.
    FailsOnce,
    /// The power may fail repeatedly.
    FailsAgain,
}

/// A configuration, for a fault to check.
pub struct Proposal<'a> {
    /// The values of all keys.
    pub settings: &'a Settings,
    /// Dies of the drive.
    pub dies: u32,
    /// The layer.
    pub layer: &'a Entry,
    /// Blocks in which the controller keeps data of its own.
    pub kept_blocks: u32,
    /// All layers, for messages.
    pub layers: &'a [&'static Entry],
}

impl Proposal<'_> {
    /// The names of the layers with a property.
    fn layers_with(&self, has: fn(&Entry) -> bool) -> String {
        self.layers.iter().filter(|layer| has(layer)).map(|layer| layer.name).collect::<Vec<_>>().join(", ")
    }
}

/// The start of the faults of a run.
pub struct Start<'a> {
    /// The values of all keys.
    pub settings: &'a Settings,
    /// Dies of the drive.
    pub dies: u32,
    /// Seed of all random choices.
    pub seed: u64,
}

/// A kind of fault: one line of the registry. Other code must use a kind only through this entry.
pub struct Fault {
    /// The key that switches the fault on.
    pub keys: &'static [Key],
    /// The power of a drive with this fault.
    pub power: Power,
    /// True if the fault may make data unreadable.
    pub loses_data: bool,
    /// Refuses a drive that cannot have the fault.
    pub check: fn(&Proposal<'_>) -> Result<(), Unfit>,
    /// Starts the fault after preconditioning.
    pub start: fn(&Start<'_>, &mut Drive),
    /// A note on the faults that came, for the summary.
    pub note: fn(&Drive) -> Option<String>,
    /// Settings with this fault for a small drive of the model suite.
    pub draw: fn(&mut Rng, &Geometry) -> Vec<String>,
}

impl Fault {
    /// Defaults for `..Fault::PLAIN`. A fault must add its key and `draw`.
    const PLAIN: Fault = Fault {
        keys: &[],
        power: Power::Stays,
        loses_data: false,
        check: |_| Ok(()),
        start: |_, _| {},
        note: |_| None,
        draw: |_, _| Vec::new(),
    };

    /// The key that switches the fault on.
    pub fn key(&self) -> &'static Key {
        &self.keys[0]
    }

    /// The name, which the key has without its table.
    pub fn name(&self) -> &'static str {
        self.key().split().1
    }

    /// The value of the key without the fault.
    pub fn off(&self) -> &'static str {
        if let Fallback::Text(off) = self.key().default { off } else { unreachable!("a fault is off by default") }
    }

    /// True if `settings` switch the fault on.
    pub fn is_on(&self, settings: &Settings) -> bool {
        let Key { name, value_type, .. } = self.key();
        value_type.read_text(self.off()).is_ok_and(|off| settings.value(name) != &off)
    }
}

/// The faults that `settings` switch on.
pub fn of(settings: &Settings) -> impl Iterator<Item = &'static Fault> {
    FAULTS.iter().filter(|fault| fault.is_on(settings))
}
