//! The drive of `palimpsest-drive` for programs in C. `tools/header` writes the header `palimpsest.h`.
//!
//! Every function returns after a panic of the simulator, as a failure, and so does each later call for that drive.
//! Pointers must come from this library, or be valid for the call. Several threads may use a builder or a drive: one
//! call waits for the other. Only a call that frees must be the last. The lock makes shared references of all that the
//! caller passes; results are written through raw pointers.
//!
//! Ignored: commands of zones, and requests that the host aborts.

use palimpsest_drive::{Builder, Contents, Directives, Drive, Error, FLUSH, read, trim, write};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{null, null_mut};
use std::sync::Mutex;

/// A read.
pub const PALIMPSEST_READ: u32 = 0;
/// A write.
pub const PALIMPSEST_WRITE: u32 = 1;
/// A trim.
pub const PALIMPSEST_TRIM: u32 = 2;
/// A flush, which completes when all earlier writes are durable.
pub const PALIMPSEST_FLUSH: u32 = 3;

/// Force unit access: a write is programmed before completion.
pub const PALIMPSEST_FUA: u32 = 1;
/// The write names a placement identifier.
pub const PALIMPSEST_PLACED: u32 = 2;

/// Cells store nothing, and nothing is verified.
pub const PALIMPSEST_NONE: u32 = 0;
/// Cells store tags, and every read and acknowledgement is verified. The default.
pub const PALIMPSEST_TAGS: u32 = 1;
/// Cells store bytes, and reads return them, verified.
pub const PALIMPSEST_BYTES: u32 = 2;

/// The call succeeded.
pub const PALIMPSEST_OK: i32 = 0;
/// The input is wrong; nothing has changed. `palimpsest_error` says what was expected.
pub const PALIMPSEST_INPUT: i32 = 1;
/// The drive broke a rule of flash or a conservation law, or the simulator panicked; each later call fails, too.
pub const PALIMPSEST_FAILED: i32 = 2;

/// The request succeeded.
pub const PALIMPSEST_DONE: u32 = 0;
/// The data is uncorrectable, and lost until the next write.
pub const PALIMPSEST_UNREADABLE: u32 = 1;
/// The power failed. The drive has recovered; each subpage of a write is old or new.
pub const PALIMPSEST_POWER_LOST: u32 = 2;
/// The drive is worn out and can only be read.
pub const PALIMPSEST_WORN_OUT: u32 = 3;

/// Time without an end, for `palimpsest_advance`.
pub const PALIMPSEST_FOREVER: u64 = u64::MAX;

/// A request.
#[repr(C)]
pub struct PalimpsestRequest {
    /// `PALIMPSEST_READ`, `PALIMPSEST_WRITE`, `PALIMPSEST_TRIM` or `PALIMPSEST_FLUSH`.
    pub kind: u32,
    /// 0, or a sum of `PALIMPSEST_FUA` and `PALIMPSEST_PLACED`.
    pub flags: u32,
    /// First byte, a multiple of 512.
    pub offset: u64,
    /// Bytes, a multiple of 512; 0 for a flush.
    pub size: u64,
    /// The tenant; 0: none.
    pub owner: u32,
    /// The placement identifier of a write with `PALIMPSEST_PLACED`.
    pub placement: u32,
    /// The bytes of a write, if cells store bytes. NULL writes zeros.
    pub data: *const c_void,
}

/// A completed request.
#[repr(C)]
pub struct PalimpsestCompletion {
    /// The request.
    pub ticket: u64,
    /// Time of the completion, in nanoseconds.
    pub time: u64,
    /// `PALIMPSEST_DONE`, `PALIMPSEST_UNREADABLE`, `PALIMPSEST_POWER_LOST` or `PALIMPSEST_WORN_OUT`.
    pub status: u32,
    /// The bytes of a read, if cells store bytes. Valid until the next `palimpsest_completed` of the drive.
    pub data: *const c_void,
    /// Bytes at `data`.
    pub size: u64,
}

/// The description of a drive to be built.
pub struct PalimpsestBuilder(Mutex<Builder>);

/// A simulated drive.
pub struct PalimpsestDrive(Mutex<Inner>);

struct Inner {
    drive: Drive,
    /// The completions that the caller has taken last, whose bytes are still valid.
    taken: Vec<palimpsest_drive::Completion>,
    /// The state that the caller has saved last.
    saved: Vec<u8>,
}

const PANICKED: &str = "the simulator panicked; the drive can only be freed";

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// Runs `call`; turns an error or a panic into a code, and keeps the text for `palimpsest_error`.
fn guarded(call: impl FnOnce() -> palimpsest_drive::Result<()>) -> i32 {
    let (code, text) = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => return PALIMPSEST_OK,
        Ok(Err(error @ Error::Input { .. })) => (PALIMPSEST_INPUT, error.to_string()),
        Ok(Err(error)) => (PALIMPSEST_FAILED, error.to_string()),
        Err(_) => (PALIMPSEST_FAILED, PANICKED.into()),
    };
    LAST_ERROR.set(CString::new(text.replace('\0', " ")).unwrap_or_default());
    code
}

fn text<'a>(name: &str, text: *const c_char) -> palimpsest_drive::Result<&'a str> {
    if text.is_null() {
        return Err(Error::input(name, "NULL; expected a string"));
    }
    // SAFETY: the caller passes a string that ends with a zero.
    let bytes = unsafe { CStr::from_ptr(text) };
    bytes.to_str().map_err(|_| Error::input(name, "the string is not UTF-8"))
}

/// The value at `pointer`, to read.
fn at<'a, T>(name: &str, pointer: *const T) -> palimpsest_drive::Result<&'a T> {
    // SAFETY: the caller passes NULL or a pointer that is valid for the call, to memory that no thread writes
    // meanwhile; this library changes builders and drives only under their locks.
    unsafe { pointer.as_ref() }.ok_or_else(|| Error::input(name, "NULL; expected a pointer"))
}

/// Writes `value` to `pointer`.
fn put<T>(name: &str, pointer: *mut T, value: T) -> palimpsest_drive::Result<()> {
    if pointer.is_null() {
        return Err(Error::input(name, "NULL; expected a pointer"));
    }
    // SAFETY: the caller passes NULL or a pointer that is valid for the call and used by one thread.
    unsafe { pointer.write(value) };
    Ok(())
}

/// The result of `work` on the value behind the lock. A panic in `work` poisons the lock, so that later calls fail.
fn locked<T, R>(
    lock: &Mutex<T>,
    work: impl FnOnce(&mut T) -> palimpsest_drive::Result<R>,
) -> palimpsest_drive::Result<R> {
    let mut value = lock.lock().map_err(|_| Error::Rule(PANICKED.into()))?;
    work(&mut value)
}

/// The result of `work` on the drive at `drive`.
fn with<R>(
    drive: *const PalimpsestDrive,
    work: impl FnOnce(&mut Inner) -> palimpsest_drive::Result<R>,
) -> palimpsest_drive::Result<R> {
    locked(&at("drive", drive)?.0, work)
}

/// Changes the builder at `builder` by a name and a value.
fn change(builder: *mut PalimpsestBuilder, change: impl FnOnce(Builder) -> palimpsest_drive::Result<Builder>) -> i32 {
    guarded(|| {
        locked(&at("builder", builder)?.0, |builder| {
            *builder = change(builder.clone())?;
            Ok(())
        })
    })
}

/// The text of the last error in this thread. Valid until the next call of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn palimpsest_error() -> *const c_char {
    LAST_ERROR.with_borrow(|text| text.as_ptr())
}

/// The version of the library.
#[unsafe(no_mangle)]
pub extern "C" fn palimpsest_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// A builder of a drive from `ssd`: a name that `palimpsest list` prints, or a TOML file. NULL after an error.
#[unsafe(no_mangle)]
pub extern "C" fn palimpsest_builder(ssd: *const c_char) -> *mut PalimpsestBuilder {
    let mut built = null_mut();
    guarded(|| {
        built = Box::into_raw(Box::new(PalimpsestBuilder(Mutex::new(Drive::builder(text("ssd", ssd)?)))));
        Ok(())
    });
    built
}

/// The translation layer, by a name of `palimpsest list`. Default: the layer of the preset.
#[unsafe(no_mangle)]
pub extern "C" fn palimpsest_layer(builder: *mut PalimpsestBuilder, name: *const c_char) -> i32 {
    change(builder, |builder| Ok(builder.layer(text("layer", name)?)))
}

/// Sets a configuration key, such as `ftl.victim` to `fifo`. A later call wins.
#[unsafe(no_mangle)]
pub extern "C" fn palimpsest_set(builder: *mut PalimpsestBuilder, key: *const c_char, value: *const c_char) -> i32 {
    change(builder, |builder| Ok(builder.set(text("key", key)?, text("value", value)?)))
}

/// The preconditioning, such as `fill:90%,random:2x` or `steady`. Default: `none`, a new drive.
#[unsafe(no_mangle)]
pub extern "C" fn palimpsest_precondition(builder: *mut PalimpsestBuilder, precondition: *const c_char) -> i32 {
    change(builder, |builder| Ok(builder.precondition(text("precondition", precondition)?)))
}

/// The name of the workload in the figures.
#[unsafe(no_mangle)]
pub extern "C" fn palimpsest_workload(builder: *mut PalimpsestBuilder, name: *const c_char) -> i32 {
    change(builder, |builder| Ok(builder.workload(text("workload", name)?)))
}

/// `PALIMPSEST_NONE`, `PALIMPSEST_TAGS` (the default) or `PALIMPSEST_BYTES`.
#[unsafe(no_mangle)]
pub extern "C" fn palimpsest_contents(builder: *mut PalimpsestBuilder, contents: u32) -> i32 {
    change(builder, |builder| match contents {
        PALIMPSEST_NONE => Ok(builder.contents(Contents::None)),
        PALIMPSEST_TAGS => Ok(builder.contents(Contents::Tags)),
        PALIMPSEST_BYTES => Ok(builder.contents(Contents::Bytes)),
        other => Err(Error::input("contents", format!("{other}; expected 0, 1 or 2"))),
    })
}

/// The seed of all random choices. Default: 1.
#[unsafe(no_mangle)]
pub extern "C" fn palimpsest_seed(builder: *mut PalimpsestBuilder, seed: u64) -> i32 {
    change(builder, |builder| Ok(builder.seed(seed)))
}

/// Requests follow completions, as in a closed loop: times of arrival say nothing about the load.
#[unsafe(no_mangle)]
pub extern "C" fn palimpsest_closed_loop(builder: *mut PalimpsestBuilder) -> i32 {
    change(builder, |builder| Ok(builder.closed_loop()))
}

/// Allows `palimpsest_power_cut`, which needs contents.
#[unsafe(no_mangle)]
pub extern "C" fn palimpsest_power_cuts(builder: *mut PalimpsestBuilder) -> i32 {
    change(builder, |builder| Ok(builder.power_cuts()))
}

/// Starts from the `size` bytes of a state at `state` (`palimpsest_save`) of a drive with the same settings, at the
/// time of that drive, with figures that begin anew. The bytes are copied.
#[unsafe(no_mangle)]
pub extern "C" fn palimpsest_state(builder: *mut PalimpsestBuilder, state: *const c_void, size: usize) -> i32 {
    change(builder, |builder| {
        at("state", state.cast::<u8>())?;
        // SAFETY: the caller passes `size` bytes.
        let state = unsafe { std::slice::from_raw_parts(state.cast::<u8>(), size) };
        Ok(builder.state(state.to_vec()))
    })
}

/// Builds and preconditions the drive, and frees the builder. The clock starts at 0. NULL after an error: an unknown
/// preset, layer, key or value, a key that nothing reads, or contradictory options.
#[unsafe(no_mangle)]
pub extern "C" fn palimpsest_build(builder: *mut PalimpsestBuilder) -> *mut PalimpsestDrive {
    let mut built = null_mut();
    guarded(|| {
        at("builder", builder)?;
        // SAFETY: `palimpsest_builder` made the pointer, and the caller passes the pointer on.
        let builder = unsafe { Box::from_raw(builder) };
        let builder = builder.0.into_inner().map_err(|_| Error::Rule(PANICKED.into()))?;
        let drive = builder.build_with(&|path| {
            std::fs::read_to_string(path).map_err(|error| Error::input(path, format!("cannot be read: {error}")))
        })?;
        built =
            Box::into_raw(Box::new(PalimpsestDrive(Mutex::new(Inner { drive, taken: Vec::new(), saved: Vec::new() }))));
        Ok(())
    });
    built
}

/// Frees a builder without a drive. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn palimpsest_free_builder(builder: *mut PalimpsestBuilder) {
    free(builder);
}

/// Frees a drive without its figures. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn palimpsest_free(drive: *mut PalimpsestDrive) {
    free(drive);
}

fn free<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: this library made the pointer with `Box::into_raw`, and the caller passes the pointer on.
        let owned = unsafe { Box::from_raw(pointer) };
        guarded(|| {
            drop(owned);
            Ok(())
        });
    }
}

/// A number of the drive; 0 after an error.
fn number(drive: *const PalimpsestDrive, number: impl FnOnce(&Drive) -> u64) -> u64 {
    let mut found = 0;
    guarded(|| {
        found = with(drive, |inner| Ok(number(&inner.drive)))?;
        Ok(())
    });
    found
}

/// Bytes of the drive.
#[unsafe(no_mangle)]
pub extern "C" fn palimpsest_size(drive: *const PalimpsestDrive) -> u64 {
    number(drive, Drive::bytes)
}

/// Bytes of a unit of the layer's map: the best size of writes and trims.
#[unsafe(no_mangle)]
pub extern "C" fn palimpsest_unit_size(drive: *const PalimpsestDrive) -> u64 {
    number(drive, Drive::unit_bytes)
}

/// Time of the drive in nanoseconds, from the end of preconditioning. The clock of a worn-out drive stops.
#[unsafe(no_mangle)]
pub extern "C" fn palimpsest_now(drive: *const PalimpsestDrive) -> u64 {
    number(drive, Drive::now)
}

/// Requests that have not completed.
#[unsafe(no_mangle)]
pub extern "C" fn palimpsest_in_flight(drive: *const PalimpsestDrive) -> u64 {
    number(drive, |drive| drive.in_flight().into())
}

/// True, with the time of the next event; false if nothing will happen until the next request.
#[unsafe(no_mangle)]
pub extern "C" fn palimpsest_next_time(drive: *const PalimpsestDrive, time: *mut u64) -> bool {
    let mut next = None;
    let done = guarded(|| {
        next = with(drive, |inner| Ok(inner.drive.next_time()))?;
        put("time", time, next.unwrap_or(PALIMPSEST_FOREVER))
    });
    done == PALIMPSEST_OK && next.is_some()
}

/// Submits a request at `time`, after all earlier events. `ticket` becomes its number, and may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn palimpsest_submit(
    drive: *mut PalimpsestDrive,
    request: *const PalimpsestRequest,
    time: u64,
    ticket: *mut u64,
) -> i32 {
    guarded(|| {
        let request = at("request", request)?;
        let command = match request.kind {
            PALIMPSEST_READ => read(request.offset, request.size)?,
            PALIMPSEST_WRITE => write(request.offset, request.size)?,
            PALIMPSEST_TRIM => trim(request.offset, request.size)?,
            PALIMPSEST_FLUSH => FLUSH,
            other => return Err(Error::input("kind", format!("{other}; expected 0 to 3"))),
        };
        if request.flags > PALIMPSEST_FUA + PALIMPSEST_PLACED {
            return Err(Error::input("flags", format!("{}; expected 0 to 3", request.flags)));
        }
        let placement = u16::try_from(request.placement)
            .map_err(|_| Error::input("placement", format!("{}; expected at most 65535", request.placement)))?;
        let directives = Directives {
            owner: request.owner,
            placement,
            placed: request.flags & PALIMPSEST_PLACED != 0,
            fua: request.flags & PALIMPSEST_FUA != 0,
            ..Directives::NONE
        };
        let command = command.with(directives);
        let submitted = with(drive, |inner| {
            if request.data.is_null() || request.kind != PALIMPSEST_WRITE {
                return inner.drive.submit(command, time);
            }
            // SAFETY: the caller passes `size` bytes with a write.
            let bytes = unsafe { std::slice::from_raw_parts(request.data.cast::<u8>(), request.size as usize) };
            inner.drive.submit_bytes(command, bytes.to_vec(), time)
        })?;
        if ticket.is_null() { Ok(()) } else { put("ticket", ticket, submitted.0) }
    })
}

/// Processes the events up to time `until`, and stops early when a request has completed.
#[unsafe(no_mangle)]
pub extern "C" fn palimpsest_advance(drive: *mut PalimpsestDrive, until: u64) -> i32 {
    guarded(|| with(drive, |inner| inner.drive.advance(until)))
}

/// Takes up to `most` completed requests, in order of time, into `completions`. Returns their number; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn palimpsest_completed(
    drive: *mut PalimpsestDrive,
    completions: *mut PalimpsestCompletion,
    most: usize,
) -> usize {
    let mut count = 0;
    guarded(|| {
        if completions.is_null() {
            return Err(Error::input("completions", "NULL; expected a pointer"));
        }
        count = with(drive, |Inner { drive, taken, .. }| {
            taken.clear();
            taken.extend(drive.completed().take(most));
            for (index, done) in taken.iter().enumerate() {
                let completion = PalimpsestCompletion {
                    ticket: done.ticket.0,
                    time: done.at,
                    status: done.status as u32,
                    data: if done.bytes.is_empty() { null() } else { done.bytes.as_ptr().cast() },
                    size: done.bytes.len() as u64,
                };
                // SAFETY: the caller passes room for `most` completions, used by one thread.
                unsafe { completions.add(index).write(completion) };
            }
            Ok(taken.len())
        })?;
        Ok(())
    });
    count
}

/// Programs all buffered data, waits for all operations, which takes time, and stores the place and the size of the
/// state, from which `palimpsest_state` makes drives that continue as this one. Valid until the next call for the drive
/// of this function, or the end of the drive; the same build of the library accepts the bytes.
#[unsafe(no_mangle)]
pub extern "C" fn palimpsest_save(drive: *mut PalimpsestDrive, state: *mut *const c_void, size: *mut usize) -> i32 {
    guarded(|| {
        if state.is_null() || size.is_null() {
            return Err(Error::input("state, size", "NULL; expected pointers"));
        }
        with(drive, |inner| {
            inner.saved = inner.drive.save()?;
            put("state", state, inner.saved.as_ptr().cast())?;
            put("size", size, inner.saved.len())
        })
    })
}

/// Schedules a power cut at `time`. The power returns at once, and the drive recovers, which takes time.
#[unsafe(no_mangle)]
pub extern "C" fn palimpsest_power_cut(drive: *mut PalimpsestDrive, time: u64) -> i32 {
    guarded(|| with(drive, |inner| inner.drive.power_cut(time)))
}

/// The present result as JSON, without requests in flight; `palimpsest_free_text` frees the text. NULL after an error.
#[unsafe(no_mangle)]
pub extern "C" fn palimpsest_figures(drive: *const PalimpsestDrive) -> *mut c_char {
    json(|| with(drive, |inner| Ok(inner.drive.figures())))
}

/// Waits for all operations, checks every conservation law, frees the drive, and returns the result of the whole
/// life as JSON; `palimpsest_free_text` frees the text. NULL after an error, which also frees the drive.
#[unsafe(no_mangle)]
pub extern "C" fn palimpsest_finish(drive: *mut PalimpsestDrive) -> *mut c_char {
    json(|| {
        at("drive", drive)?;
        // SAFETY: `palimpsest_build` made the pointer, and the caller passes the pointer on.
        let drive = unsafe { Box::from_raw(drive) };
        drive.0.into_inner().map_err(|_| Error::Rule(PANICKED.into()))?.drive.finish()
    })
}

fn json(figures: impl FnOnce() -> palimpsest_drive::Result<palimpsest_drive::Figures>) -> *mut c_char {
    let mut written = null_mut();
    guarded(|| {
        let text = serde_json::to_string(&figures()?).map_err(|error| Error::input("figures", error.to_string()))?;
        written = CString::new(text).expect("JSON has no zero byte").into_raw();
        Ok(())
    });
    written
}

/// Frees a text of `palimpsest_figures` or `palimpsest_finish`. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn palimpsest_free_text(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: `json` made the text with `CString::into_raw`, and the caller passes the pointer on.
        drop(unsafe { CString::from_raw(text) });
    }
}

#[cfg(test)]
mod tests;
