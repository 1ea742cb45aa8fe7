//! The operations of one call of a layer in Python: reads into the controller, merges, programs. Data that a call has
//! read stays in the controller until the call ends, or the page changes.

use palimpsest_lab::geometry::{Extent, RequestKind};
use palimpsest_lab::nand::data::Data;
use palimpsest_lab::nand::{Halt, Outcome, PADDING, SubpageMask, first_subpages};
use palimpsest_lab::plan::port::{Piece, pieces};
use palimpsest_lab::plan::select::ReadPolicy;
use palimpsest_lab::plan::{Cause, Erase, Gate, Io, Program, Read};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;

/// Why a function ends early.
pub enum Stop {
    /// Flash halted.
    Halt(Halt),
    /// The layer made a mistake.
    Mistake(PyErr),
}

impl From<Halt> for Stop {
    fn from(halt: Halt) -> Self {
        Stop::Halt(halt)
    }
}

impl From<PyErr> for Stop {
    fn from(error: PyErr) -> Self {
        Stop::Mistake(error)
    }
}

/// Result of a function of a layer.
pub type Done<T> = Result<T, Stop>;

/// The layer's units and the present request.
#[derive(Clone, Copy)]
pub struct View {
    /// Subpages of a unit.
    pub unit: u32,
    /// Logical units of the drive.
    pub units: u32,
    /// How the layer reads.
    pub policy: ReadPolicy,
    /// Kind and sectors of the present request; none outside of requests.
    pub request: Option<(RequestKind, Extent)>,
}

/// A page in the controller.
pub struct Arrived {
    ppn: u32,
    subpages: SubpageMask,
    /// Closes when all subpages have arrived.
    gate: Gate,
}

/// Subpages copied since the drive was new, by the cause `gc` and by `merge`.
pub type Moved = (u64, u64);

/// The error of a wrong value.
fn wrong<T>(message: String) -> Done<T> {
    Err(PyValueError::new_err(message).into())
}

/// `number` as an index below `end`, called `name` in the message.
pub fn index(name: &str, number: i64, end: u64) -> PyResult<u32> {
    u32::try_from(number)
        .ok()
        .filter(|&index| u64::from(index) < end)
        .ok_or_else(|| PyIndexError::new_err(format!("{name} {number}; expected 0 to {}", end - 1)))
}

/// The present call: flash, the layer's units, and the subpages read.
pub struct Call<'a> {
    pub io: &'a mut Io,
    pub view: View,
    pub read: &'a mut Vec<Arrived>,
    pub moved: &'a mut Moved,
}

impl Call<'_> {
    /// Subpages of a page.
    pub fn width(&self) -> u32 {
        self.io.geometry().subpages_per_page
    }

    /// The physical page, and the subpages, of physical unit `unit`.
    fn place(&self, unit: i64) -> PyResult<(u32, SubpageMask)> {
        let (width, size) = (self.width(), self.view.unit);
        let unit = index("physical unit", unit, self.io.geometry().subpages() / u64::from(size))?;
        let first = unit * size;
        Ok((first / width, first_subpages(size) << (first % width)))
    }

    /// Reads subpages of page `ppn` into the controller; programs of the data follow `signal`, or a gate of their own.
    pub fn sense(&mut self, ppn: u32, subpages: SubpageMask, cause: Cause, after: Gate, signal: Gate) -> Done<()> {
        let signal = if signal.is_none() { self.io.gate() } else { signal };
        self.io.read(Read { policy: self.view.policy, after, signal, ..Read::new(ppn, subpages, cause) })?;
        match self.read.iter().position(|arrived| arrived.ppn == ppn) {
            Some(at) => {
                let gate = self.io.all_of(&[self.read[at].gate, signal]);
                self.read[at] = Arrived { ppn, subpages: self.read[at].subpages | subpages, gate };
            }
            None => self.read.push(Arrived { ppn, subpages, gate: signal }),
        }
        Ok(())
    }

    /// The content of physical subpage `psn`, which the present call has read.
    fn content(&mut self, psn: u32) -> Done<Data> {
        let (ppn, bit) = (psn / self.width(), 1 << (psn % self.width()));
        if !self.read.iter().any(|arrived| arrived.ppn == ppn && arrived.subpages & bit != 0) {
            return wrong(format!("this call has not read physical subpage {psn}; expected Io.read first"));
        }
        Ok(self.io.load_subpage(psn))
    }

    /// Reads the physical units `places`, each page once, in their order, unless the controller has their data. Returns
    /// the gate that closes when all have arrived.
    fn sense_units(&mut self, places: &[i64], cause: Cause) -> Done<Gate> {
        let mut pages: Vec<(u32, SubpageMask)> = Vec::new();
        for &place in places {
            let (ppn, subpages) = self.place(place)?;
            match pages.iter_mut().find(|(page, _)| *page == ppn) {
                Some((_, all)) => *all |= subpages,
                None => pages.push((ppn, subpages)),
            }
        }
        let has = |arrived: &Arrived, ppn: u32, subpages: u64| arrived.ppn == ppn && subpages & !arrived.subpages == 0;
        let (here, there): (Vec<_>, Vec<_>) =
            pages.into_iter().partition(|&(ppn, subpages)| self.read.iter().any(|arrived| has(arrived, ppn, subpages)));
        let of = |ppn: u32| self.read.iter().find(|arrived| arrived.ppn == ppn).map_or(Gate::NONE, |page| page.gate);
        let mut gates: Vec<Gate> = here.into_iter().map(|(ppn, _)| of(ppn)).collect();
        if !there.is_empty() {
            let gate = self.io.gate();
            there.into_iter().try_for_each(|(ppn, subpages)| self.sense(ppn, subpages, cause, Gate::NONE, gate))?;
            gates.push(gate);
        }
        Ok(self.io.all_of(&gates))
    }

    /// Programs page `ppn` with `logical` numbers and contents, padded to the whole page.
    fn program(&mut self, ppn: u32, units: &mut Vec<(u32, Data)>, cause: Cause, gates: (Gate, Gate)) -> Done<bool> {
        let padding = self.width() - units.len() as u32;
        units.resize(self.width() as usize, (PADDING, Data::ZERO));
        let (logical, data): (Vec<u32>, Vec<Data>) = units.drain(..).unzip();
        let (after, signal) = gates;
        self.read.retain(|arrived| arrived.ppn != ppn);
        let program = Program { padding, after, signal, ..Program::new(ppn, &logical, &data, cause) };
        Ok(self.io.program(program)? == Outcome::Done)
    }

    /// Erases a block, of which the controller then has no data.
    pub fn erase(&mut self, erase: Erase) -> Done<bool> {
        let pages = self.io.geometry().pages_per_block;
        self.read.retain(|arrived| arrived.ppn / pages != erase.block);
        Ok(self.io.erase(erase)? == Outcome::Done)
    }

    /// The pieces of the present request in logical unit `unit`, if the request is of `kind`.
    fn pieces_of(&self, kind: RequestKind, unit: u32) -> Option<impl Iterator<Item = Piece> + use<>> {
        let per_subpage = self.io.host.sectors_per_subpage();
        let size = u64::from(self.view.unit * per_subpage);
        let (_, extent) = self.view.request.filter(|(present, _)| *present == kind)?;
        let (first, end) = (extent.sector.max(u64::from(unit) * size), extent.end().min((u64::from(unit) + 1) * size));
        (first < end).then(|| pieces(Extent { sector: first, sectors: (end - first) as u32 }, per_subpage))
    }

    fn is_whole(&self, unit: u32) -> bool {
        let whole = self.view.unit * self.io.host.sectors_per_subpage();
        self.pieces_of(RequestKind::Write, unit)
            .is_some_and(|pieces| pieces.map(|piece| piece.sectors).sum::<u32>() == whole)
    }

    /// Programs page `page` with logical units of the present write, merged with their content at the places `old`.
    pub fn write(&mut self, page: i64, units: &[i64], old: &[i64], after: Gate) -> Done<bool> {
        let (size, width) = (self.view.unit, self.width());
        let page = index("page", page, self.io.geometry().pages())?;
        let most = (width / size) as usize;
        if units.is_empty() || units.len() > most || old.len() != units.len() {
            return wrong(format!("{} units, {} old places; expected as many, 1 to {most}", units.len(), old.len()));
        }
        let end = u64::from(self.view.units);
        let units = units.iter().map(|&unit| index("unit", unit, end)).collect::<PyResult<Vec<u32>>>()?;
        let merges: Vec<bool> = units.iter().zip(old).map(|(&unit, &old)| old >= 0 && !self.is_whole(unit)).collect();
        let merged: Vec<i64> = old.iter().zip(&merges).filter(|(_, merges)| **merges).map(|(&old, _)| old).collect();
        let after = match merged.is_empty() {
            true => after,
            false => {
                let arrived = self.sense_units(&merged, Cause::Rmw)?;
                self.io.all_of(&[after, arrived])
            }
        };
        let mut contents = Vec::with_capacity(width as usize);
        for ((&unit, &old), merges) in units.iter().zip(old).zip(merges) {
            let first = contents.len();
            for index in 0..size {
                let data = if merges { self.content(old as u32 * size + index)? } else { Data::ZERO };
                contents.push((unit * size + index, data));
            }
            let Some(pieces) = self.pieces_of(RequestKind::Write, unit) else {
                return wrong(format!("unit {unit} is not part of the present write; expected Io.copy for old data"));
            };
            for piece in pieces {
                let content = &mut contents[first + (piece.lsn - unit * size) as usize].1;
                *content = self.io.written(piece, *content);
            }
        }
        let signal = self.io.request();
        self.program(page, &mut contents, Cause::Host, (after, signal))
    }

    /// Reads logical units of the present read from `places`, below 0 for zeros, and delivers them.
    pub fn deliver(&mut self, units: &[i64], places: &[i64]) -> Done<()> {
        if units.len() != places.len() {
            return wrong(format!("{} units, {} places; expected as many", units.len(), places.len()));
        }
        let (size, end) = (self.view.unit, u64::from(self.view.units));
        let mut pages: Vec<(u32, SubpageMask)> = Vec::new();
        let mut wanted: Vec<(u32, Option<u32>)> = Vec::new();
        for (&unit, &place) in units.iter().zip(places) {
            let unit = index("unit", unit, end)?;
            let Some(pieces) = self.pieces_of(RequestKind::Read, unit) else {
                return wrong(format!("unit {unit} is not part of the present read; expected one that is"));
            };
            let page = if place < 0 { None } else { Some(self.place(place)?.0) };
            for lsn in pieces.map(|piece| piece.lsn) {
                let psn = page.map(|_| place as u32 * size + (lsn - unit * size));
                wanted.push((lsn, psn));
                let (Some(ppn), Some(psn)) = (page, psn) else { continue };
                let bit = 1 << (psn % self.width());
                match pages.iter_mut().find(|(page, _)| *page == ppn) {
                    Some((_, subpages)) => *subpages |= bit,
                    None => pages.push((ppn, bit)),
                }
            }
        }
        self.io.count_unwritten(wanted.iter().filter(|wanted| wanted.1.is_none()).count() as u32);
        let signal = self.io.request();
        for (ppn, subpages) in pages {
            self.sense(ppn, subpages, Cause::Host, Gate::NONE, signal)?;
        }
        for (lsn, psn) in wanted {
            let data = psn.map_or(Ok(Data::ZERO), |psn| self.content(psn))?;
            self.io.deliver(lsn, data);
        }
        Ok(())
    }

    /// Copies the physical units `sources` to the pages `targets`; returns the number of pages programmed.
    pub fn copy(&mut self, sources: &[i64], targets: &[i64], cause: Cause, signal: Gate) -> Done<usize> {
        let size = self.view.unit;
        let per_page = (self.width() / size) as usize;
        let pages = sources.len().div_ceil(per_page);
        if pages != targets.len() {
            let (units, found) = (sources.len(), targets.len());
            return wrong(format!(
                "{units} units, of which a page holds {per_page}, and {found} pages; expected {pages}"
            ));
        }
        for (done, (units, &target)) in sources.chunks(per_page).zip(targets).enumerate() {
            let target = index("page", target, self.io.geometry().pages())?;
            let arrived = self.sense_units(units, cause)?;
            let mut contents = Vec::with_capacity(self.width() as usize);
            for &unit in units {
                for psn in unit as u32 * size..(unit as u32 + 1) * size {
                    contents.push((self.io.nand().logical(psn), self.content(psn)?));
                }
            }
            if !self.program(target, &mut contents, cause, (arrived, signal))? {
                return Ok(done);
            }
            let subpages = units.len() as u64 * u64::from(size);
            match cause {
                Cause::Gc => self.moved.0 += subpages,
                Cause::Merge => self.moved.1 += subpages,
                _ => {}
            }
            // Copied data may leave the controller, unless the next page takes more of it.
            let copied: Vec<u32> = units.iter().map(|&unit| unit as u32 * size / self.width()).collect();
            let last = copied.last();
            self.read.retain(|arrived| last == Some(&arrived.ppn) || !copied.contains(&arrived.ppn));
        }
        Ok(targets.len())
    }
}
