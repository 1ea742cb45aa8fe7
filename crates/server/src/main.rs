//! The program `palimpsest-server`. Results go to standard output, messages to standard error. Exit status as of
//! `palimpsest`: 0 done (by a signal, too), 2 a mistake of the user, 130 interrupted before it served, 1 else.

use palimpsest_lab::config::{self, Resolved};
use palimpsest_lab::error::{Error, Result};
use palimpsest_lab::metrics::summary::Summary;
use palimpsest_lab::run::served::Served;
use palimpsest_server::arguments::{self, Arguments, Wish};
use palimpsest_server::drive::{self, Job};
use palimpsest_server::handshake::{self, Export};
use palimpsest_server::listen::{self, Listener, Service};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::cell::Cell;
use std::io::Read;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let done = arguments::parse(std::env::args_os().skip(1)).and_then(|wish| match wish {
        Wish::Print(text) => print(&text),
        Wish::Serve(arguments) => serve(&arguments),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(match error {
                Error::Input { .. } => 2,
                Error::Interrupted => 130,
                _ => 1,
            })
        }
    }
}

/// Serves from the first client to the last, and prints the result.
fn serve(arguments: &Arguments) -> Result<()> {
    let begin = Instant::now();
    let resolved = config::resolve(&arguments.ssd, arguments.ftl.as_deref(), &arguments.set, &read_file)?;
    let listener = Listener::open(&arguments.listen).map_err(|error| {
        let expected = "expected HOST:PORT or unix:PATH that this user may open and that is not in use";
        Error::input(format!("--listen {}", arguments.listen), format!("{error}; {expected}"))
    })?;
    let path = listener.path();
    let summary = serve_at(arguments, &resolved, listener, begin);
    Listener::clean_up(path);
    let summary = summary?;
    if arguments.json {
        print(&(serde_json::to_string(&summary).expect("a result can be printed") + "\n"))
    } else {
        print(&in_words(&summary))
    }
}

fn serve_at(arguments: &Arguments, resolved: &Resolved, listener: Listener, begin: Instant) -> Result<Summary> {
    let (jobs, queue) = drive::queue();
    let stopped = Arc::new(AtomicBool::new(false));
    catch_signals(Arc::clone(&stopped), jobs.clone())?;
    // After preconditioning, a signal ends the service through the queue.
    let serving = Cell::new(false);
    let mut watcher = |_| match stopped.load(Ordering::SeqCst) && !serving.get() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    let mut served = Served::new(resolved, &arguments.options, &mut watcher)?;
    serving.set(true);
    let name = resolved.drive.name.clone();
    eprintln!("serving {name} ({}), {} bytes, at {}", resolved.drive.ftl.name, served.bytes(), listener.uri());
    let preferred_block = handshake::preferred_block(served.unit_bytes());
    let export = Export { name, bytes: served.bytes(), preferred_block };
    let service = Service::new(export, jobs, arguments.once, arguments.timeout);
    let accepting = Arc::clone(&service);
    std::thread::spawn(move || listen::accept(listener, accepting));

    let since = Instant::now();
    drive::work(&mut served, &queue, &service.power_cuts, &*service)?;
    let measured = since.elapsed();
    let mut summary = served.finish()?.summary;
    let requests = &summary.requests;
    let all = requests.read + requests.write + requests.trim + requests.flush;
    summary.sim.wall_s = begin.elapsed().as_secs_f64();
    summary.sim.requests_per_s = all as f64 / measured.max(Duration::from_nanos(1)).as_secs_f64();
    summary.sim.peak_rss_bytes = peak_memory();
    Ok(summary)
}

/// The first signal ends the service with a result, the second immediately.
fn catch_signals(stopped: Arc<AtomicBool>, jobs: SyncSender<Job>) -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| Error::Io { place: "signals".into(), what: error.to_string() })?;
    std::thread::spawn(move || {
        for _ in &mut signals {
            if stopped.swap(true, Ordering::SeqCst) {
                std::process::exit(130);
            }
            // The queue may be full, and must not block the second signal.
            let jobs = jobs.clone();
            std::thread::spawn(move || jobs.send(Job::Stop));
        }
    });
    Ok(())
}

fn read_file(path: &str) -> Result<String> {
    let mut text = String::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(config::LARGEST_FILE + 1).read_to_string(&mut text));
    let expected = "expected a readable TOML file, or the name of a preset";
    let length = read.map_err(|error| Error::input(path, format!("{error}; {expected}")))?;
    config::check_length(path, length)?;
    Ok(text)
}

/// Peak memory of this process, where the system reports it (Linux); else 0.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes =
        line.and_then(|rest| rest.trim().strip_suffix("kB")).and_then(|text| text.trim().parse::<u64>().ok());
    kibibytes.unwrap_or(0) * 1024
}

fn in_words(summary: &Summary) -> String {
    let (requests, host) = (&summary.requests, &summary.host);
    let amplification = summary.write_amplification.map_or("none".into(), |ratio| format!("{ratio:.3}"));
    let mut text = format!(
        "{} ({}): {} reads of {} bytes, {} writes of {} bytes, {} trims, {} flushes\n\
         write amplification {amplification}, {} erases, {} collections of garbage\n",
        summary.ssd,
        summary.ftl,
        requests.read,
        host.bytes_read,
        requests.write,
        host.bytes_written,
        requests.trim,
        requests.flush,
        summary.flash.erases,
        summary.gc.runs,
    );
    for note in &summary.notes {
        text += &format!("note: {note}\n");
    }
    text
}

fn print(text: &str) -> Result<()> {
    use std::io::Write;
    let written = std::io::stdout().write_all(text.as_bytes());
    written.map_err(|error| Error::Io { place: "standard output".into(), what: error.to_string() })
}
