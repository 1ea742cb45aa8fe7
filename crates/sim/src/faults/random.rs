//! Faults of single operations and blocks, which flash draws by probability from the drive's first operation on.
//! Ignored: the effects, which are in `nand/faults.rs` of the flash crate.

use super::Fault;
use palimpsest_flash::nand::faults;

/// A program fails, and its block goes bad.
pub const PROGRAM_FAIL: Fault =
    Fault { keys: faults::PROGRAM_FAIL, draw: |_, _| vec!["faults.program_fail=0.5%".into()], ..Fault::PLAIN };

/// An erase fails, and its block goes bad.
pub const ERASE_FAIL: Fault =
    Fault { keys: faults::ERASE_FAIL, draw: |_, _| vec!["faults.erase_fail=3%".into()], ..Fault::PLAIN };

/// A read needs a retry.
pub const READ_FAIL: Fault =
    Fault { keys: faults::READ_FAIL, draw: |_, _| vec!["faults.read_fail=20%".into()], ..Fault::PLAIN };

/// Blocks are bad from the factory.
pub const INITIAL_BAD: Fault =
    Fault { keys: faults::INITIAL_BAD, draw: |_, _| vec!["faults.initial_bad=5%".into()], ..Fault::PLAIN };

/// Blocks fail at the end of their endurance.
pub const WEAR_OUT: Fault = Fault {
    keys: faults::WEAR_OUT,
    draw: |rng, _| vec!["faults.wear_out=true".into(), format!("part.endurance={}", 1 + rng.below(3))],
    ..Fault::PLAIN
};
