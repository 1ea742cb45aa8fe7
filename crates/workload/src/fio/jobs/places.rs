//! Places of the files of jobs on the drive.
//!
//! One file or device is the drive. Of several, each has its own range, in order of appearance: as many bytes as the
//! jobs address, or an equal share of the rest. On a drive with namespaces each of several files is a namespace, as
//! `/dev/nvme0n1` and `/dev/nvme0n2` are, in order of appearance. The files of a list (`a:b`) are adjacent, and share
//! the size equally, as with `nrfiles`. A job with a `directory` and without `filename` has a file for each copy; a job
//! without both has the whole drive, or its namespace. Ignored: the names of devices, and `file_service_type`, because
//! requests choose a file by address.
//!
//! `jobs` and `places` use each other: places are those of jobs, and the requests of a job need its place.

use super::super::quantity::Amount;
use super::super::spec::{FioSpec, place};
use super::{Job, JobFile, placed};
use crate::fio::region::shown;
use crate::namespaces::{Namespaces, Room};
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::units::MIB;

/// The files of all jobs.
pub struct Places {
    /// Number of the file of each copy, by job; `None`: the drive.
    files: Vec<Vec<Option<usize>>>,
    rooms: Vec<Room>,
    drive: Namespaces,
}

impl Places {
    /// The files of `file` on `drive`.
    ///
    /// # Errors
    /// [`Error::Input`] if the files exceed the drive or its namespaces, or two lists have a file in common.
    pub fn new(file: &JobFile, drive: Namespaces) -> Result<Places> {
        let drive_bytes = drive.of(0).bytes;
        let mut known: Vec<(String, Option<u64>)> = Vec::new();
        let mut files = Vec::new();
        for job in &file.jobs {
            check_lists(job, &known)?;
            let of_copy = |copy| {
                let name = name(job, copy)?;
                let bytes = bytes(&job.spec, copy);
                let at = known.iter().position(|(other, _)| *other == name).unwrap_or_else(|| {
                    known.push((name, bytes));
                    known.len() - 1
                });
                known[at].1 = known[at].1.zip(bytes).map(|(one, other)| one.max(other));
                Some(at)
            };
            files.push((0..job.spec.copies).map(of_copy).collect());
        }
        if known.len() < 2 {
            return Ok(Places { files, rooms: Vec::new(), drive });
        }
        if drive.are_apart() {
            let (named, number) = (known.len(), drive.count());
            if named > number {
                let what = format!("the jobs have {named} files, each in a namespace; expected at most {number}");
                return Err(Error::input(file.name.clone(), what));
            }
            return Ok(Places { files, rooms: (0..named).map(|at| drive.of(at)).collect(), drive });
        }
        let whole = |bytes: u64| bytes.div_ceil(MIB).saturating_mul(MIB);
        let taken = known.iter().filter_map(|&(_, bytes)| bytes).fold(0, |sum, bytes| whole(bytes).saturating_add(sum));
        let open = known.iter().filter(|(_, bytes)| bytes.is_none()).count() as u64;
        let share = drive_bytes.saturating_sub(taken).checked_div(open).unwrap_or(MIB) / MIB * MIB;
        if taken > drive_bytes || share == 0 {
            let (taken, drive) = (shown(taken), shown(drive_bytes));
            let what =
                format!("the {} files of the jobs take {taken}; expected at most the drive's {drive}", known.len());
            return Err(Error::input(file.name.clone(), what));
        }
        let mut first = 0;
        let room = |(_, bytes): &(String, Option<u64>)| {
            let room = Room { first, bytes: bytes.map_or(share, whole) };
            first += room.bytes;
            room
        };
        let rooms = known.iter().map(room).collect();
        Ok(Places { files, rooms, drive })
    }

    /// The place of the file of a copy.
    pub fn of(&self, job: usize, copy: u64) -> Room {
        let room = self.files[job][copy as usize].and_then(|file| self.rooms.get(file));
        room.copied().unwrap_or_else(|| self.drive.of(job))
    }

    /// Says that the files are apart.
    pub fn note(&self) -> Option<String> {
        let are = if self.drive.are_apart() { "are namespaces" } else { "have ranges of their own" };
        (self.rooms.len() > 1).then(|| format!("the {} files of the jobs {are}", self.rooms.len()))
    }
}

/// The name of the file, or the names of a list; `None` for the drive.
fn name(job: &Job, copy: u64) -> Option<String> {
    let FioSpec { paths, name_format, folders, .. } = &job.spec;
    if !paths.is_empty() {
        return Some(list(&job.spec)).filter(|name| !name.is_empty());
    }
    if let Some(format) = name_format {
        return Some(format.replace("$jobname", &job.name).replace("$jobnum", &copy.to_string()));
    }
    (!folders.is_empty()).then(|| format!("\0{copy}\0{}", job.name))
}

/// The names in `filename`, in their folders.
fn list(spec: &FioSpec) -> String {
    let folders = spec.folders.join("+");
    let named = |path: &String| if folders.is_empty() { path.clone() } else { format!("{folders}/{path}") };
    spec.paths.iter().map(named).collect::<Vec<_>>().join(":")
}

/// Bytes up to the end of the region of a copy; `None` if a share of the drive.
fn bytes(spec: &FioSpec, copy: u64) -> Option<u64> {
    let of = |amount| if let Amount::Bytes(bytes) = amount { Some(bytes) } else { None };
    let files = spec.files.unwrap_or(1);
    let of_files = || {
        let most = spec.file_sizes.as_ref()?.iter().map(|share| share.bytes).max()?;
        most.checked_mul(files)
    };
    let size = spec.size.map_or_else(of_files, of)?;
    let offset = of(spec.offset)?.checked_add(of(spec.offset_increment)?.checked_mul(copy)?)?;
    offset.checked_add(size)
}

/// Refuses a list that has a file in common with another list.
fn check_lists(job: &Job, known: &[(String, Option<u64>)]) -> Result<()> {
    let own = list(&job.spec);
    let others = known.iter().filter(|(name, _)| *name != own).flat_map(|(name, _)| name.split(':'));
    let shared = others.filter(|name| !name.is_empty()).find(|name| own.split(':').any(|path| path == *name));
    match shared {
        Some(name) if !own.is_empty() => {
            let what = format!("{name} is in another list of files too; expected equal lists, or lists without it");
            Err(placed(job, Error::input(place("filename"), what)))
        }
        _ => Ok(()),
    }
}
