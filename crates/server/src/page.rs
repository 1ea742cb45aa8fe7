//! Live figures of a served drive for browsers and monitors of this machine, over a minimal HTTP/1.1.
//!
//! `/` is the given page, `/live.json` the data, `/smart.json` the SMART log of an NVMe drive by the names of nvme-cli,
//! `/metrics` the text format of Prometheus. Only GET; one request a connection, one connection at a time, each with a
//! time limit. A request that names another host than this machine is refused, so that pages of other sites cannot read
//! the figures.

use crate::listen::reserve;
use palimpsest_lab::error::{Error, Result};
use palimpsest_lab::run::served::Served;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// Time limit of a request, and of an answer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Most bytes of a request.
const LONGEST: usize = 8 << 10;

/// The wanted page: its address on this machine, and the HTML, which reads `live.json`.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// `HOST:PORT`.
    pub place: String,
    /// The answer to `/`.
    pub html: String,
}

/// A drive whose figures are shown.
pub trait Shown {
    /// Shows the drive to `look`.
    fn look(&self, look: &mut dyn FnMut(&Served<'_>));

    /// Number of connected clients.
    fn connections(&self) -> usize;

    /// Whether the service ends.
    fn is_ending(&self) -> bool;
}

/// Reserves the socket of `place`, an address of this machine.
///
/// # Errors
/// [`Error::Input`] for other addresses, and for an address in use.
pub fn open(place: &str) -> Result<TcpListener> {
    let wrong = |what: String| {
        Error::input(
            format!("--page {place}"),
            format!("{what}; expected a free HOST:PORT of this machine, such as 127.0.0.1:8080"),
        )
    };
    let addresses: Vec<_> = place.to_socket_addrs().map_err(|error| wrong(error.to_string()))?.collect();
    if addresses.iter().any(|address| !address.ip().is_loopback()) {
        return Err(wrong("other machines could read the page".into()));
    }
    reserve(addresses.into_iter()).map_err(|error| wrong(error.to_string()))
}

/// Answers until the service ends.
pub fn run(listener: &TcpListener, wanted: &Wanted, service: &dyn Shown) {
    let begin = Instant::now();
    for stream in listener.incoming() {
        if service.is_ending() {
            return;
        }
        // A malformed or broken request gets no answer.
        let _ = stream.and_then(|mut stream| answer(&mut stream, wanted, service, begin));
    }
}

fn answer(stream: &mut TcpStream, wanted: &Wanted, service: &dyn Shown, begin: Instant) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let (until, mut asked, mut piece) = (Instant::now() + TIMEOUT, Vec::new(), [0; 1024]);
    while !asked.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut piece)?;
        if read == 0 || asked.len() > LONGEST || Instant::now() > until {
            return Ok(());
        }
        asked.extend_from_slice(&piece[..read]);
    }
    let asked = String::from_utf8_lossy(&asked);
    let (status, kind, body) = respond(&asked, wanted, service, begin);
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nContent-Security-Policy: default-src 'none'; \
         script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// Status, type and body of the answer.
fn respond(asked: &str, wanted: &Wanted, service: &dyn Shown, begin: Instant) -> (&'static str, &'static str, String) {
    let text = "text/plain; charset=utf-8";
    let mut words = asked.split_ascii_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut fields = asked.lines().filter_map(|line| line.split_once(':'));
    let host = fields.find(|(name, _)| name.eq_ignore_ascii_case("host")).map_or("", |(_, host)| host.trim());
    if !is_this_machine(host) {
        return ("403 Forbidden", text, "only programs of this machine may read this\n".into());
    }
    if method != "GET" {
        return ("405 Method Not Allowed", text, "expected GET\n".into());
    }
    let json = "application/json";
    match path {
        "/" => ("200 OK", "text/html; charset=utf-8", wanted.html.clone()),
        "/live.json" => ("200 OK", json, live(service, begin).to_string()),
        "/smart.json" => ("200 OK", json, smart(&figures(service)).to_string() + "\n"),
        "/metrics" => ("200 OK", "text/plain; version=0.0.4; charset=utf-8", metrics(&figures(service))),
        _ => ("404 Not Found", text, "expected /, /live.json, /smart.json or /metrics\n".into()),
    }
}

/// Whether `host` is a name of this machine, with or without a port.
fn is_this_machine(host: &str) -> bool {
    let name = if host.ends_with(']') { host } else { host.rsplit_once(':').map_or(host, |(name, _)| name) };
    name == "localhost" || name == "[::1]" || name.parse::<std::net::Ipv4Addr>().is_ok_and(|ip| ip.is_loopback())
}

pub(crate) fn figures(service: &dyn Shown) -> Value {
    let mut value = Value::Null;
    service.look(&mut |served: &Served<'_>| {
        value = serde_json::to_value(served.figures()).expect("figures can be printed");
    });
    value
}

fn live(service: &dyn Shown, begin: Instant) -> Value {
    let (mut value, mut blocks) = (figures(service), Value::Null);
    service.look(&mut |served: &Served<'_>| {
        blocks = serde_json::to_value(served.blocks()).expect("blocks can be printed");
    });
    value["blocks"] = blocks;
    value["served_s"] = json!(begin.elapsed().as_secs_f64());
    value["connections"] = json!(service.connections());
    value
}

/// The SMART log of an NVMe drive (NVM Express Base Specification 2.0, Figure 207) as far as simulated, by the
/// names of `nvme smart-log -o json`.
pub(crate) fn smart(figures: &Value) -> Value {
    // A data unit is 1000 units of 512 bytes.
    let units = |bytes: &Value| bytes.as_u64().unwrap_or(0).div_ceil(512_000);
    let endurance = figures["config"]["part"]["endurance"].as_f64().filter(|&cycles| cycles > 0.0);
    let used = endurance.map(|cycles| figures["lifetime"]["mean_erases"].as_f64().unwrap_or(0.0) / cycles * 100.0);
    let worn_out = figures["lifetime"]["worn_out"] == true;
    let life = &figures["life"];
    json!({
        "critical_warning": if worn_out { 8 } else { 0 },
        "percent_used": used.map(|used| used.min(255.0) as u64),
        "data_units_read": units(&life["host_bytes_read"]),
        "data_units_written": units(&life["host_bytes_written"]),
        "host_read_commands": life["reads"],
        "host_write_commands": life["writes"],
        "power_cycles": life["power_cycles"],
        "power_on_hours": life["powered_s"].as_u64().unwrap_or(0) / 3600,
        "unsafe_shutdowns": life["unsafe_shutdowns"],
        "media_errors": life["media_errors"],
        "num_err_log_entries": life["error_log_entries"],
        "retired_blocks": figures["lifetime"]["retired_blocks"],
        "write_amplification": figures["write_amplification"],
    })
}

fn metrics(figures: &Value) -> String {
    let mut text = String::new();
    let mut family = |name: &str, kind: &str, help: &str, samples: &[(String, &Value)]| {
        let known: Vec<_> = samples.iter().filter_map(|(labels, value)| Some((labels, value.as_f64()?))).collect();
        if !known.is_empty() {
            let _ = writeln!(text, "# HELP palimpsest_{name} {help}\n# TYPE palimpsest_{name} {kind}");
            for (labels, value) in known {
                let _ = writeln!(text, "palimpsest_{name}{labels} {value}");
            }
        }
    };
    let label = |name: &str, value: &str| format!("{{{name}=\"{value}\"}}");
    let requests = ["read", "write", "trim", "flush"].map(|kind| (label("kind", kind), &figures["requests"][kind]));
    family("requests_total", "counter", "Requests of the host.", &requests);
    let bytes = ["read", "written"].map(|way| (label("way", way), &figures["host"][format!("bytes_{way}")]));
    family("host_bytes_total", "counter", "Bytes that the host read and wrote.", &bytes);
    let operations = [("read", "page_reads"), ("program", "page_programs"), ("erase", "erases")];
    let operations = operations.map(|(kind, name)| (label("kind", kind), &figures["flash"][name]));
    family("flash_operations_total", "counter", "Operations of flash.", &operations);
    let one = |value| [(String::new(), value)];
    family(
        "write_amplification",
        "gauge",
        "Bytes programmed for a byte that the host wrote.",
        &one(&figures["write_amplification"]),
    );
    family("collections_total", "counter", "Collections of garbage.", &one(&figures["gc"]["runs"]));
    let erases =
        ["mean", "min", "max"].map(|which| (label("of", which), &figures["lifetime"][format!("{which}_erases")]));
    family("block_erases", "gauge", "Erases of a block.", &erases);
    family("retired_blocks", "gauge", "Blocks that failed.", &one(&figures["lifetime"]["retired_blocks"]));
    family("power_cuts_total", "counter", "Power cuts.", &one(&figures["power"]["cuts"]));
    let seconds: Vec<(String, Value)> = ["read", "write"]
        .iter()
        .flat_map(|kind| [("0.5", "p50"), ("0.99", "p99"), ("0.999", "p999")].map(|each| (kind, each)))
        .filter_map(|(kind, (quantile, name))| {
            let latency = figures["latency_ns"][kind][name].as_f64()?;
            Some((format!("{{kind=\"{kind}\",quantile=\"{quantile}\"}}"), json!(latency / 1e9)))
        })
        .collect();
    let seconds: Vec<_> = seconds.iter().map(|(labels, value)| (labels.clone(), value)).collect();
    family("latency_seconds", "gauge", "Response time since the drive is served.", &seconds);
    text
}

#[cfg(test)]
mod tests;
