//! Panics as values: message and place. The hook of the process prints nothing for a panic that is caught here.
//! Ignored: panics of other threads, which the earlier hook prints.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static CATCHES: Cell<bool> = const { Cell::new(false) };
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

static HOOK: Once = Once::new();

/// A caught panic.
#[derive(Debug, Clone)]
pub struct Caught {
    /// The message.
    pub message: String,
    /// File and line, unless the assertion is one of this crate.
    pub place: Option<String>,
}

/// The text of a panic.
pub fn text(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message")
}

/// Calls `work`, and returns its panic as an error, without output.
///
/// # Errors
/// The panic.
pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, Caught> {
    HOOK.call_once(|| {
        let earlier = take_hook();
        set_hook(Box::new(move |info| match CATCHES.get() {
            true => PLACE.set(info.location().map(|place| format!("{}:{}", place.file(), place.line()))),
            false => earlier(info),
        }));
    });
    let outer = CATCHES.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    CATCHES.set(outer);
    result.map_err(|panic| {
        let own = file!().trim_end_matches("catch.rs");
        let place = PLACE.take().filter(|place| !place.starts_with(own));
        Caught { message: text(&*panic).to_owned(), place }
    })
}
