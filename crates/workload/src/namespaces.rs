//! Namespaces: parts of a drive's capacity, each the address range of a tenant (NVM Express Base Specification 2.1,
//! section 3.2.1).
//!
//! The first section of a workload, or volume of a trace, addresses the first namespace from 0 on, and so on; further
//! tenants share the last. Of sections with several files, each file is a namespace. Flash and spare space are common
//! to all, unless the layer places the data of each namespace on dies of its own (an NVM Set, section 3.2.2). Ignored:
//! creating and deleting namespaces, and their commands.

use palimpsest_flash::keys::Notated;
use palimpsest_flash::units::parse::{Parsed, format_ratio, parse_ratio};

/// The word for one range that all tenants address.
const NONE: &str = "none";

/// Shares of the capacity; empty: one range that all tenants address.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shares(pub Vec<f64>);

impl Notated for Shares {
    const EXPECTED: &'static str = "none, or shares of the capacity up to 100% together, such as 75%:25%";

    fn parse(text: &str) -> Parsed<Self> {
        if text == NONE {
            return Ok(Shares::default());
        }
        let shares: Option<Vec<f64>> = text.split(':').map(|share| parse_ratio(share.trim()).ok()).collect();
        let fits = |shares: &Vec<f64>| shares.iter().all(|&share| share > 0.0) && sum(shares) <= 1.0;
        shares.filter(fits).map(Shares).ok_or_else(|| format!("expected {}", Self::EXPECTED))
    }

    fn text(&self) -> String {
        if self.0.is_empty() {
            return NONE.into();
        }
        self.0.iter().map(|&share| format_ratio(share)).collect::<Vec<_>>().join(":")
    }
}

/// The sum of shares, rounded to a millionth.
fn sum(shares: &[f64]) -> f64 {
    (shares.iter().sum::<f64>() * 1e6).round() / 1e6
}

impl Shares {
    /// The end of each namespace on a drive of `pages` pages.
    pub fn ends(&self, pages: u64) -> Vec<u64> {
        let end = |count: usize| (pages as f64 * sum(&self.0[..count])) as u64;
        (1..=self.0.len()).map(end).collect()
    }

    /// The end of the dies of each namespace on a drive of `dies` dies; `None` if the shares are no whole dies, or some
    /// dies are left.
    pub fn ends_of_dies(&self, dies: u32) -> Option<Vec<u32>> {
        let end = |count: usize| f64::from(dies) * sum(&self.0[..count]);
        let ends: Vec<f64> = (1..=self.0.len()).map(end).collect();
        let whole = ends.iter().all(|end| (end - end.round()).abs() < 1e-3);
        let ends: Vec<u32> = ends.iter().map(|end| end.round() as u32).collect();
        let some = ends.first().is_some_and(|&first| first > 0) && ends.is_sorted_by(|one, next| one < next);
        (whole && some && ends.last() == Some(&dies)).then_some(ends)
    }
}

/// Bytes of the drive for a tenant, or for the file of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// First byte, and number of bytes.
    pub first: u64,
    pub bytes: u64,
}

/// The namespaces of a drive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Namespaces {
    drive_bytes: u64,
    /// The end of each, in bytes.
    ends: Vec<u64>,
}

impl From<u64> for Namespaces {
    /// A drive of this many bytes that all tenants address.
    fn from(drive_bytes: u64) -> Self {
        Namespaces { drive_bytes, ends: Vec::new() }
    }
}

impl Namespaces {
    /// Namespaces up to each of `ends` on a drive of `drive_bytes`; without any, all tenants address the drive.
    pub fn new(drive_bytes: u64, ends: Vec<u64>) -> Self {
        Namespaces { drive_bytes, ends }
    }

    /// True if tenants have address ranges of their own.
    pub fn are_apart(&self) -> bool {
        !self.ends.is_empty()
    }

    /// The number of namespaces.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// The number of the namespace of the tenant at `tenant`, from 0 on.
    pub fn number(&self, tenant: usize) -> usize {
        tenant.min(self.ends.len().saturating_sub(1))
    }

    /// The address range of the tenant at `tenant`, from 0 on.
    pub fn of(&self, tenant: usize) -> Room {
        if self.ends.is_empty() {
            return Room { first: 0, bytes: self.drive_bytes };
        }
        let number = self.number(tenant);
        let first = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        Room { first, bytes: self.ends[number] - first }
    }
}

#[cfg(test)]
mod tests;
