//! Kinds of the requests of a generated workload, and whether their addresses are random: fio's `rw`.

use crate::request::RequestKind;

/// fio's `rw`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pattern {
    /// fio's canonical name.
    pub name: &'static str,
    /// Addresses are random rather than sequential.
    pub random: bool,
    /// Kinds of the requests, in turn for a `trimwrite`, by `rwmixread` for a mix of reads and writes.
    pub kinds: &'static [RequestKind],
}

/// Every pattern. The first of several names is the canonical one.
pub const PATTERNS: &[Pattern] = {
    use RequestKind::{Read, Trim, Write};
    const fn pattern(name: &'static str, random: bool, kinds: &'static [RequestKind]) -> Pattern {
        Pattern { name, random, kinds }
    }
    &[
        pattern("read", false, &[Read]),
        pattern("write", false, &[Write]),
        pattern("trim", false, &[Trim]),
        pattern("randread", true, &[Read]),
        pattern("randwrite", true, &[Write]),
        pattern("randtrim", true, &[Trim]),
        pattern("rw", false, &[Read, Write]),
        pattern("readwrite", false, &[Read, Write]),
        pattern("randrw", true, &[Read, Write]),
        pattern("trimwrite", false, &[Trim, Write]),
        pattern("randtrimwrite", true, &[Trim, Write]),
    ]
};

impl Pattern {
    /// The pattern called `name`, with the canonical name.
    pub fn named(name: &str) -> Option<Pattern> {
        let named = PATTERNS.iter().find(|pattern| pattern.name == name)?;
        PATTERNS.iter().find(|other| other.random == named.random && other.kinds == named.kinds).copied()
    }
}
