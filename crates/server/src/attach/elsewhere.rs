//! Attached drives where this is not Linux: there are none.

use super::{INSTEAD, Wanted};
use crate::listen::Service;
use palimpsest_lab::error::{Error, Result};
use std::ffi::OsString;
use std::thread::Scope;

/// Never made.
pub enum Place {}

/// Never made.
pub enum Attached {}

impl Place {
    /// Always an [`Error::Input`].
    pub fn new(_wanted: &Wanted, _say: &dyn Fn(&str)) -> Result<Place> {
        Err(Error::input("attach", format!("only Linux attaches drives; {INSTEAD}")))
    }

    pub(crate) fn attach<'s>(self, _: &'s Service<'_>, _: &'s Scope<'s, '_>) -> Result<Attached> {
        match self {}
    }
}

impl Attached {
    pub(crate) fn places(&self) -> String {
        match *self {}
    }

    pub(crate) fn variables(&self) -> [(&'static str, OsString); 2] {
        match *self {}
    }

    pub(crate) fn look(&mut self, _: &Service<'_>) {
        match *self {}
    }

    pub(crate) fn end(self, _: &Service<'_>) {
        match self {}
    }
}

/// Always an [`Error::Input`].
pub fn detach(_names: &[String], _all: bool, _say: &dyn Fn(&str)) -> Result<()> {
    Err(Error::input("detach", "only Linux attaches drives; nothing is attached"))
}
