//! Building blocks of translation layers: block bookkeeping, choice of planes, victim policies, hot and cold, and the log of
//! mapped units.

pub mod blocks;
pub mod map_bytes;
pub mod rotation;
pub mod settings;
pub mod streams;
pub mod unit_log;
pub mod victim;
