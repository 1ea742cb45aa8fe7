//! Victim policies: the closed block that garbage collection cleans next. A policy decides; the layer acts.
//!
//! A policy is one file and one line of [`POLICIES`]. `ftl.victim` is the name of a policy, or `NAME:NUMBER` for
//! policies with a number. A program may add policies to [`OUTSIDE`], such as those in Python.

mod cost_age_times;
mod cost_benefit;
mod d_choices;
mod fifo;
mod greedy;
mod windowed;

use super::blocks::Blocks;
use super::outside::Added;
use palimpsest_flash::rng::Rng;
use palimpsest_flash::state::State;
use palimpsest_flash::units::parse::{Parsed, shown};
use palimpsest_ftl_api::keys::{Notation, ValueType, near};

/// The closed blocks of a plane, from which a policy chooses.
pub struct Candidates<'a> {
    /// Valid units, ages and orders of all blocks.
    pub blocks: &'a mut Blocks,
    /// The plane to clean.
    pub plane: u32,
    /// Erases of a block.
    pub erases: &'a dyn Fn(u32) -> u32,
}

/// A policy.
pub trait Victim: Send + State {
    /// The block to clean next; `None` if the plane has no closed block, or if no block gains space.
    fn choose(&mut self, candidates: Candidates<'_>, rng: &mut Rng) -> Option<u32>;

    /// True if the victim may have no invalid unit. Cleaning such a block needs the most free space.
    fn may_choose_full(&self) -> bool {
        false
    }
}

palimpsest_flash::state_of_box!(dyn Victim);

/// One line of the registry.
pub struct Policy {
    /// Name in the configuration.
    pub name: &'static str,
    /// The rule in one line, for `palimpsest list`.
    pub about: &'static str,
    /// The number that the policy takes, if any.
    pub number: Option<Number>,
    /// Constructs the policy with a number; 0 for policies without one.
    pub build: fn(u32) -> Box<dyn Victim>,
}

/// The number of a policy, 1 or more.
pub struct Number {
    /// The letter of the parameter in messages.
    pub letter: &'static str,
    /// The default.
    pub default: u32,
}

/// Policies that are no lines of the registry.
pub static OUTSIDE: Added<dyn Victim> = Added::new("ftl.victim");

/// Every policy.
pub const POLICIES: &[Policy] =
    &[greedy::POLICY, fifo::POLICY, d_choices::POLICY, cost_benefit::POLICY, cost_age_times::POLICY, windowed::POLICY];

/// The kind of `ftl.victim`.
pub(super) const KIND: ValueType = ValueType::Notation(&Notation { words: names, read: canonical, expected });

fn names() -> Vec<&'static str> {
    POLICIES.iter().map(|policy| policy.name).collect()
}

fn expected() -> String {
    let forms = POLICIES.iter().flat_map(|policy| {
        let with_number = policy.number.as_ref().map(|number| format!("{}:{}", policy.name, number.letter));
        [Some(policy.name.to_owned()), with_number].into_iter().flatten()
    });
    OUTSIDE.expected(forms)
}

/// The policy that `text` names, and the number.
fn parse(text: &str) -> Parsed<(&'static Policy, u32)> {
    let (name, number) = text.split_once(':').map_or((text, None), |(name, number)| (name, Some(number)));
    let Some(policy) = POLICIES.iter().find(|policy| policy.name == name) else {
        let near = near(text, names().into_iter());
        return Err(format!("\"{}\" is not known; expected {}{near}", shown(text), expected()));
    };
    match (&policy.number, number) {
        (None, None) => Ok((policy, 0)),
        (Some(takes), None) => Ok((policy, takes.default)),
        (Some(takes), Some(number)) => match number.parse() {
            Ok(number) if number > 0 => Ok((policy, number)),
            _ => {
                let letter = takes.letter;
                Err(format!("\"{}\": expected {name}:{letter} with a whole number {letter} from 1", shown(text)))
            }
        },
        (None, Some(_)) => Err(format!("\"{}\": {name} takes no number; expected {name}", shown(text))),
    }
}

fn canonical(text: &str) -> Parsed<String> {
    if let Some(outside) = OUTSIDE.read(text) {
        return outside;
    }
    parse(text).map(|(policy, number)| match policy.number {
        Some(_) => format!("{}:{number}", policy.name),
        None => policy.name.to_owned(),
    })
}

/// The policy that the configuration names.
pub fn new(text: &str) -> Box<dyn Victim> {
    if let Some(outside) = OUTSIDE.build(text) {
        return outside;
    }
    let (policy, number) = parse(text).expect("the configuration read the name of a policy");
    (policy.build)(number)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use palimpsest_flash::geometry::Geometry;

    /// The choice of `policy` among new `blocks` of plane 0.
    pub(crate) fn choose(policy: &mut dyn Victim, blocks: &mut Blocks, rng: &mut Rng) -> Option<u32> {
        policy.choose(Candidates { blocks, plane: 0, erases: &|_| 0 }, rng)
    }

    /// Blocks of one plane, closed in order, block i with `valid[i]` of 8 units valid.
    pub(crate) fn closed_blocks(valid: &[u32]) -> Blocks {
        let geometry = Geometry {
            channels: 1,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: 1,
            blocks_per_plane: valid.len() as u32,
            pages_per_block: 8,
            subpages_per_page: 1,
            subpage_bytes: 4096,
        };
        let mut blocks = Blocks::new(&geometry, 8, |_| false);
        for (block, &count) in valid.iter().enumerate() {
            blocks.open_this(block as u32);
            for unit in 0..count {
                blocks.validate(block as u32, unit);
            }
            blocks.close(block as u32);
        }
        blocks.check().unwrap();
        blocks
    }

    #[test]
    fn indexes_follow_random_changes() {
        let mut blocks = closed_blocks(&[8; 16]);
        let mut rng = Rng::new(3, 0);
        for _ in 0..2000 {
            let (block, unit) = (rng.below(16) as u32, rng.below(8) as u32);
            if blocks.is_valid(block, unit) {
                blocks.invalidate(block, unit);
            }
            blocks.check().unwrap();
            let victim = blocks.fewest_valid(0).unwrap();
            if blocks.valid_count(victim) == 0 {
                blocks.take_victim(victim);
                blocks.release(victim);
                blocks.open_this(victim);
                (0..8).for_each(|unit| blocks.validate(victim, unit));
                blocks.close(victim);
            }
        }
    }
}
