//! The simulator for a page in a browser: one call with a request as JSON text, which returns the answer as JSON text.
//!
//! A page writes the request to the memory that `request_memory` returns, calls `answer_request`, which returns the
//! bytes of the answer, and reads them at `answer_memory`. `docs/live.md` lists the requests. After a panic the answer
//! is the message, and the page must load the module anew. Ignored: files, threads, and more than one drive.

mod lab;
mod runs;
mod workload;

use palimpsest_lab::error::{Error, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use std::cell::RefCell;

/// A request of the page.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
enum Request {
    /// Layers, victim policies and presets.
    Catalogue,
    /// A whole run; the answer is the result of `palimpsest run`.
    Run(runs::Options),
    /// A new drive, which replaces the present one.
    Open(lab::Setup),
    /// Processes so much simulated time; with `load`, requests of the workload arrive.
    Advance { ns: u64, load: bool },
    /// Processes events until a flash operation or a request has ended.
    Step { until: lab::Until, load: bool },
    /// A request of the user.
    Submit { kind: lab::Kind, offset: u64, bytes: u64 },
    /// The power fails now, and returns.
    CutPower,
    /// The present state.
    View,
    /// The result so far.
    Figures,
}

/// The state of the module: the drive of the page.
#[derive(Default)]
pub struct Page {
    lab: Option<lab::Lab>,
}

impl Page {
    /// The answer to `request`. Errors are objects with `error`.
    pub fn answer(&mut self, request: &str) -> String {
        let answered = serde_json::from_str(request)
            .map_err(|error| Error::input("request", error.to_string()))
            .and_then(|request| self.serve(request));
        answered.unwrap_or_else(|error| json!({ "error": error.to_string() }).to_string())
    }

    fn serve(&mut self, request: Request) -> Result<String> {
        let lab = match request {
            Request::Catalogue => return Ok(catalogue().to_string()),
            Request::Run(options) => return runs::run(&options),
            Request::Open(setup) => {
                // A refused setup leaves the present drive.
                let lab = lab::Lab::open(&setup)?;
                return Ok(self.lab.insert(lab).opened());
            }
            _ => self.lab.as_mut().ok_or_else(|| Error::input("request", "there is no drive; expected open first"))?,
        };
        match request {
            Request::Advance { ns, load } => lab.advance(ns, load)?,
            Request::Step { until, load } => lab.step(until, load)?,
            Request::Submit { kind, offset, bytes } => lab.submit(kind, offset, bytes)?,
            Request::CutPower => lab.cut_power()?,
            Request::Figures => return Ok(lab.figures()),
            _ => {}
        }
        Ok(lab.view())
    }
}

fn catalogue() -> Value {
    use palimpsest_lab::{config, host, log::victim};
    let rows = |rows: Vec<(&str, String)>| -> Vec<Value> {
        rows.into_iter().map(|(name, about)| json!({ "name": name, "about": about })).collect()
    };
    let presets = |presets: Vec<config::PresetInfo>| {
        rows(presets.into_iter().map(|preset| (preset.name, preset.description)).collect())
    };
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "layers": rows(host::layers().map(|entry| (entry.name, entry.about.to_string())).collect()),
        "victims": rows(victim::POLICIES.iter().map(|policy| (policy.name, policy.about.to_string())).collect()),
        "drives": presets(config::ssd_presets()),
        "workloads": presets(config::workload_presets()),
    })
}

/// The memory of the seam.
#[derive(Default)]
struct Seam {
    page: Page,
    request: Vec<u8>,
    answer: Vec<u8>,
}

thread_local! {
    static SEAM: RefCell<Seam> = RefCell::default();
    /// The message of a panic, during which the seam is borrowed.
    static PANIC: RefCell<String> = RefCell::default();
}

/// Memory for a request of `bytes` bytes, valid until the next call.
#[unsafe(no_mangle)]
pub extern "C" fn request_memory(bytes: usize) -> *mut u8 {
    std::panic::set_hook(Box::new(|info| PANIC.with(|message| *message.borrow_mut() = info.to_string())));
    SEAM.with_borrow_mut(|seam| {
        seam.request = vec![0; bytes];
        seam.request.as_mut_ptr()
    })
}

/// Answers the request. Returns the bytes of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn answer_request() -> usize {
    SEAM.with_borrow_mut(|seam| {
        let request = std::mem::take(&mut seam.request);
        seam.answer = seam.page.answer(&String::from_utf8_lossy(&request)).into_bytes();
        seam.answer.len()
    })
}

/// The answer, valid until the next call of [`answer_request`].
#[unsafe(no_mangle)]
pub extern "C" fn answer_memory() -> *const u8 {
    SEAM.with_borrow(|seam| seam.answer.as_ptr())
}

/// Bytes of the message of the panic that ended [`answer_request`].
#[unsafe(no_mangle)]
pub extern "C" fn panic_bytes() -> usize {
    PANIC.with_borrow(String::len)
}

/// The message of the panic.
#[unsafe(no_mangle)]
pub extern "C" fn panic_memory() -> *const u8 {
    PANIC.with_borrow(|message| message.as_ptr())
}
