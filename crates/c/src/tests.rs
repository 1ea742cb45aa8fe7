//! Threads on one drive, and a drive after a panic. Ignored: all other calls, which a program in C tests.

use super::*;
use std::thread;

/// A small drive.
fn drive() -> *mut PalimpsestDrive {
    let builder = palimpsest_builder(c"mga-8k".as_ptr());
    assert_eq!(palimpsest_set(builder, c"ssd.blocks_per_plane".as_ptr(), c"32".as_ptr()), PALIMPSEST_OK);
    let drive = palimpsest_build(builder);
    assert!(!drive.is_null(), "{}", error());
    drive
}

fn error() -> String {
    // SAFETY: the library returns a text that ends with a zero.
    unsafe { CStr::from_ptr(palimpsest_error()) }.to_string_lossy().into_owned()
}

fn write_of(offset: u64) -> PalimpsestRequest {
    PalimpsestRequest { kind: PALIMPSEST_WRITE, flags: 0, offset, size: 8192, owner: 0, placement: 0, data: null() }
}

#[test]
fn threads_may_share_a_drive() {
    let drive = drive();
    let address = drive as usize;
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            scope.spawn(move || {
                let drive = address as *mut PalimpsestDrive;
                for at in 0..50 {
                    let request = write_of((thread * 50 + at) * 8192);
                    // Another thread may have advanced the clock, so the last time is not the present one.
                    while palimpsest_submit(drive, &raw const request, palimpsest_now(drive), null_mut())
                        != PALIMPSEST_OK
                    {
                        assert!(error().contains("the time of the drive"), "{}", error());
                    }
                    assert_eq!(palimpsest_advance(drive, palimpsest_now(drive)), PALIMPSEST_OK);
                    assert!(palimpsest_size(drive) > 0);
                }
            });
        }
    });
    let text = palimpsest_finish(drive);
    // SAFETY: the library returns a text that ends with a zero.
    let figures = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    palimpsest_free_text(text);
    assert!(figures.contains("\"write\":200"), "{figures}");
}

#[test]
fn threads_may_build_from_one_state() {
    let first = drive();
    let mut state = null();
    let mut size = 0;
    assert_eq!(palimpsest_save(first, &raw mut state, &raw mut size), PALIMPSEST_OK, "{}", error());
    let address = state as usize;
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(move || {
                let builder = palimpsest_builder(c"mga-8k".as_ptr());
                assert_eq!(palimpsest_set(builder, c"ssd.blocks_per_plane".as_ptr(), c"32".as_ptr()), PALIMPSEST_OK);
                assert_eq!(palimpsest_state(builder, address as *const c_void, size), PALIMPSEST_OK);
                let built = palimpsest_build(builder);
                assert!(!built.is_null(), "{}", error());
                palimpsest_free(built);
            });
        }
    });
    palimpsest_free(first);
}

#[test]
fn each_call_after_a_panic_fails() {
    let drive = drive();
    let panicked =
        guarded(|| with(drive, |_| -> palimpsest_drive::Result<()> { panic!("a mistake of the simulator") }));
    assert_eq!(panicked, PALIMPSEST_FAILED);
    let request = write_of(0);
    let mut number = 0;
    assert_eq!(palimpsest_submit(drive, &raw const request, 0, null_mut()), PALIMPSEST_FAILED);
    assert_eq!(error(), PANICKED);
    assert_eq!(palimpsest_advance(drive, 1), PALIMPSEST_FAILED);
    assert_eq!(palimpsest_power_cut(drive, 1), PALIMPSEST_FAILED);
    assert!(!palimpsest_next_time(drive, &raw mut number));
    let mut state = null();
    let mut size = 0;
    assert_eq!(palimpsest_save(drive, &raw mut state, &raw mut size), PALIMPSEST_FAILED);
    assert!(palimpsest_figures(drive).is_null());
    for of in [palimpsest_size, palimpsest_unit_size, palimpsest_now, palimpsest_in_flight] {
        assert_eq!((of(drive), error()), (0, PANICKED.to_owned()));
    }
    assert!(palimpsest_finish(drive).is_null());
    assert_eq!(error(), PANICKED);
}
