//! Flash: the only thing that changes cells.
pub mod faults;
pub mod part;
