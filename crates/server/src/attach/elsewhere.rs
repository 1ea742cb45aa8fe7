//! What there is of attached drives where this is not Linux: nothing.

use super::{INSTEAD, Wanted};
use crate::listen::Service;
use palimpsest_lab::error::{Error, Result};
use std::path::PathBuf;
use std::thread::Scope;

/// A place for a drive that is to be attached: there is none.
pub enum Place {}

/// An attached drive: there is none.
pub enum Attached {}

impl Place {
    /// Says that this is not Linux.
    ///
    /// # Errors
    /// [`Error::Input`].
    pub fn new(_wanted: &Wanted, _say: &dyn Fn(&str)) -> Result<Place> {
        Err(Error::input("attach", format!("only Linux attaches drives; {INSTEAD}")))
    }

    /// There is none.
    ///
    /// # Errors
    /// None.
    pub fn attach<'s>(self, _service: &'s Service<'_>, _scope: &'s Scope<'s, '_>) -> Result<Attached> {
        match self {}
    }
}

impl Attached {
    /// There is none.
    pub fn name(&self) -> &str {
        match *self {}
    }

    /// There is none.
    pub fn file(&self) -> PathBuf {
        match *self {}
    }

    /// There is none.
    pub fn places(&self) -> String {
        match *self {}
    }

    /// There is none.
    pub fn place(&self) -> PathBuf {
        match *self {}
    }

    /// There is none.
    pub fn look(&mut self, _service: &Service<'_>) {
        match *self {}
    }

    /// There is none.
    pub fn end(self, _service: &Service<'_>) {
        match self {}
    }
}

/// Says that this is not Linux.
///
/// # Errors
/// [`Error::Input`].
pub fn detach(_names: &[String], _all: bool, _say: &dyn Fn(&str)) -> Result<()> {
    Err(Error::input("detach", "only Linux attaches drives; nothing is attached"))
}
