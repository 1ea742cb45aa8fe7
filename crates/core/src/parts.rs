//! Building blocks of translation layers: block bookkeeping, victim policies, and the log of mapped units.

pub mod blocks;
pub mod unit_log;
pub mod victim;
