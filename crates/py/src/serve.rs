//! Serves a drive to real programs. Python's main thread waits for the end and checks signals.

use crate::traces::Output;
use crate::{Reporter, core_options, files, parse_options, policies, print, raise, read_file, resolve};
use palimpsest_lab::config;
use palimpsest_lab::host::trace::output::{Recorder, Target};
use palimpsest_lab::run::image::resolve_to_keep;
use palimpsest_server::Settings;
use palimpsest_server::attach::Wanted;
use palimpsest_server::clock::Clock;
use palimpsest_server::{nvme, page};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use serde::Deserialize;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Options of a service, as JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServeOptions {
    listen: Vec<String>,
    nvme: Option<NvmeOptions>,
    attach: Option<AttachOptions>,
    mount: Option<MountOptions>,
    clock: String,
    page: Option<PageOptions>,
    once: bool,
    run: Option<String>,
    image: Option<String>,
    image_sync: bool,
    record: Option<String>,
    timeout_s: f64,
}

/// The page of live figures, as JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PageOptions {
    place: String,
    html: String,
}

/// Options of an NVMe subsystem, as JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NvmeOptions {
    nqn: Option<String>,
    hosts: Vec<String>,
    block_bytes: u32,
    namespaces: Vec<u64>,
    others: Vec<(String, SocketAddr)>,
    advertise: Option<SocketAddr>,
}

impl From<NvmeOptions> for nvme::Wanted {
    fn from(NvmeOptions { nqn, hosts, block_bytes, namespaces, others, advertise }: NvmeOptions) -> Self {
        nvme::Wanted { nqn, hosts, block_bytes, namespaces, others, advertised: advertise }
    }
}

/// Options of a block device, as JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AttachOptions {
    name: Option<String>,
    file_only: bool,
}

/// Options of a mount instead, as JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MountOptions {
    at: String,
    scheme: String,
}

/// Ends attached drives, or all of them; `say` gets lines.
#[pyfunction]
pub fn detach(py: Python<'_>, names: Vec<String>, everything: bool, say: Py<PyAny>) -> PyResult<()> {
    let say = |line: &str| drop(Python::attach(|py| say.call1(py, (line,))));
    py.detach(|| palimpsest_server::attach::detach(&names, everything, &say)).map_err(raise)
}

/// Serves a drive until a signal, or until the command `run` ends; `say` gets lines, from any thread. Returns the
/// result, the data of charts (both as JSON), and the status of the command.
#[pyfunction]
pub fn serve(
    py: Python<'_>,
    options_json: &str,
    serve_json: &str,
    say: Py<PyAny>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, String, Option<i32>)> {
    let options = parse_options(options_json)?;
    let wanted: ServeOptions = serde_json::from_str(serve_json)
        .map_err(|error| crate::InputError::new_err(format!("options of serve: {error}")))?;
    let resolved = match &wanted.image {
        None => resolve(&options.ssd, options.ftl.as_deref(), &options.set)?,
        Some(_) => {
            crate::plugins::ready(py)?;
            resolve_to_keep(&options.ssd, options.ftl.as_deref(), &options.set, &read_file).map_err(raise)?.0
        }
    };
    policies::refuse(&resolved)?;
    let core = core_options(&options)?;
    let touched = config::Touched { served: true, ..config::Touched::all(core.payload) };
    config::check_memory(&resolved.drive, &touched, files::available_memory()).map_err(raise)?;
    let timeout = Duration::try_from_secs_f64(wanted.timeout_s).unwrap_or(Duration::from_secs(30));
    let clock = Clock::parse(&wanted.clock).map_err(raise)?;
    let page = wanted.page.map(|PageOptions { place, html }| page::Wanted { place, html });
    let mount = wanted.mount.map(|MountOptions { at, scheme }| palimpsest_server::mount::Settings {
        at: at.into(),
        scheme,
        image: wanted.image.as_ref().map(PathBuf::from),
        image_sync: wanted.image_sync,
        page: page.clone(),
        run: wanted.run.clone(),
    });
    let attach = wanted.attach.map(|AttachOptions { name, file_only }| Wanted { name, file_only });
    let settings = Settings {
        listen: wanted.listen,
        nvme: wanted.nvme.map(nvme::Wanted::from),
        attach,
        clock,
        page,
        image: wanted.image.map(PathBuf::from),
        image_sync: wanted.image_sync,
        once: wanted.once,
        run: wanted.run,
        timeout,
    };
    let output = wanted.record.as_deref().map(Output::create).transpose().map_err(raise)?;
    let recorder =
        |output: &Output, name: &str| Recorder::new(Target::of_name(name, None)?, Box::new(output.file()?), name);
    let record = output.as_ref().zip(wanted.record.as_deref()).map(|(output, name)| recorder(output, name));
    let record = record.transpose().map_err(raise)?;
    let mut reporter = Reporter::new(progress);
    let mut goes_on = |progress| match progress {
        Some(progress) => reporter.report_progress(progress),
        None => match Python::attach(|py| py.check_signals()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                reporter.raised = Some(error);
                ControlFlow::Break(())
            }
        },
    };
    // Errors of `say` are ignored, because the service must continue.
    let say = |line: &str| drop(Python::attach(|py| say.call1(py, (line,))));
    let begin = Instant::now();
    let ended = py.detach(|| match &mount {
        Some(mount) => palimpsest_server::mount::mount(&resolved, &core, mount, record, &say, &mut goes_on),
        None => palimpsest_server::serve(&resolved, &core, &settings, record, &say, &mut goes_on),
    });
    match (reporter.raised, ended) {
        // Ctrl-C ends a service normally.
        (Some(raised), Ok(_)) if !raised.is_instance_of::<PyKeyboardInterrupt>(py) => Err(raised),
        (Some(raised), Err(_)) => Err(raised),
        (None, Err(error)) => Err(raise(error)),
        (_, Ok(ended)) => {
            output.map(Output::keep).transpose().map_err(raise)?;
            let (summary, detail) = print(ended.outcome, begin.elapsed(), ended.served, &options);
            Ok((summary, detail, ended.status))
        }
    }
}
