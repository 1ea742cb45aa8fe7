//! The layers, one file or folder each.

pub mod bast;
pub mod block;
pub mod dftl;
pub mod fast;
pub mod fdp;
mod gather;
pub mod hotcold;
pub mod llh;
pub mod mga;
pub mod page;
pub mod pages;
pub mod sector_log;
pub mod spread;
pub mod subpage;
pub mod womv;
pub mod zns;
