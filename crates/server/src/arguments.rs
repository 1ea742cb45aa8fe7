//! The command line.

use palimpsest_lab::error::{Error, Result};
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::run::precondition::Precondition;
use palimpsest_lab::run::{Fidelity, Options, Warmup};
use std::time::Duration;

/// The text of `--help`.
pub const HELP: &str = "\
Serves a simulated drive as a network block device (NBD) until Ctrl-C, then prints what it did.

Usage: palimpsest-server [--ssd NAME|FILE] [--ftl NAME] [--set key=value]... [--listen HOST:PORT|unix:PATH] [--once]
                         [--precondition SPEC] [--fidelity count|timed] [--seed N] [--timeout TIME] [--json]

  --ssd NAME|FILE       drive: a preset (palimpsest list ssds) or a file [default]
  --ftl NAME            translation layer instead of the drive's own
  --set key=value       any configuration key (palimpsest show)
  --listen PLACE        HOST:PORT, or unix:PATH [127.0.0.1:10809]; port 0 takes any free one and prints which
  --once                end when the last client that used the drive has gone
  --precondition SPEC   as of palimpsest run; the drive then holds noise [none]
  --fidelity F          count, or timed: the result also has latencies, of requests served one by one [count]
  --seed N              seed of everything random [1]
  --timeout TIME        most time for a handshake or a message; a client that is idle for so long leaves its place to
                        another where all 64 are taken [30s]
  --json                print the result as JSON, as palimpsest run --json does
  --help, --version

The time of the simulated drive is not imposed on clients. What they store is lost when the server ends.
";

/// The options.
#[derive(Debug, Clone)]
pub struct Arguments {
    /// `--ssd`.
    pub ssd: String,
    /// `--ftl`.
    pub ftl: Option<String>,
    /// `--set`, in order.
    pub set: Vec<String>,
    /// `--listen`.
    pub listen: String,
    /// `--once`.
    pub once: bool,
    /// `--json`.
    pub json: bool,
    /// `--timeout`.
    pub timeout: Duration,
    /// The options of a run.
    pub options: Options,
}

/// The action of the command line.
#[derive(Debug, Clone)]
pub enum Wish {
    /// Serve.
    Serve(Box<Arguments>),
    /// Print this text, and end.
    Print(String),
}

/// Parses the command line, without the name of the program.
///
/// # Errors
/// [`Error::Input`] with the option.
pub fn parse(arguments: impl IntoIterator<Item = std::ffi::OsString>) -> Result<Wish> {
    use lexopt::prelude::*;
    let usage = |error: lexopt::Error| Error::input("", format!("{error}; palimpsest-server --help lists the options"));
    let mut parser = lexopt::Parser::from_args(arguments);
    let mut wanted = Arguments {
        ssd: "default".into(),
        ftl: None,
        set: Vec::new(),
        listen: "127.0.0.1:10809".into(),
        once: false,
        json: false,
        timeout: Duration::from_secs(30),
        options: Options {
            workload: "nbd".into(),
            precondition: Precondition::None,
            requests: None,
            warmup: Warmup::Requests(0),
            fidelity: Fidelity::Count,
            payload: Payload::Bytes,
            seed: 1,
            series: false,
            operations: None,
        },
    };
    while let Some(argument) = parser.next().map_err(usage)? {
        let option = match argument {
            Long(name) => name.to_owned(),
            Short('h') => "help".into(),
            other => return Err(usage(other.unexpected())),
        };
        let mut value = || parser.value().and_then(|value| value.string()).map_err(usage);
        match option.as_str() {
            "help" => return Ok(Wish::Print(HELP.into())),
            "version" => return Ok(Wish::Print(concat!(env!("CARGO_PKG_VERSION"), "\n").into())),
            "once" => wanted.once = true,
            "json" => wanted.json = true,
            "ssd" => wanted.ssd = value()?,
            "ftl" => wanted.ftl = Some(value()?),
            "set" => wanted.set.push(value()?),
            "listen" => wanted.listen = value()?,
            "precondition" => wanted.options.precondition = Precondition::parse(&value()?)?,
            "fidelity" => wanted.options.fidelity = fidelity(&value()?)?,
            "timeout" => wanted.timeout = time(&value()?)?,
            "seed" => wanted.options.seed = seed(&value()?)?,
            _ => return Err(usage(Long(&option).unexpected())),
        }
    }
    Ok(Wish::Serve(Box::new(wanted)))
}

fn fidelity(text: &str) -> Result<Fidelity> {
    match text {
        "count" => Ok(Fidelity::Count),
        "timed" => Ok(Fidelity::Timed),
        _ => Err(Error::input(format!("--fidelity {text}"), "there is no such value; expected count or timed")),
    }
}

/// A time of the world outside, longer than nothing.
fn time(text: &str) -> Result<Duration> {
    let wrong = || Error::input(format!("--timeout {text}"), "expected a time such as 30s, 500ms or 5min");
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let seconds = match &text[digits..] {
        "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        _ => return Err(wrong()),
    };
    let time = text[..digits].parse::<f64>().map_err(|_| wrong())? * seconds;
    if (1e-3..1e7).contains(&time) { Ok(Duration::from_secs_f64(time)) } else { Err(wrong()) }
}

fn seed(text: &str) -> Result<u64> {
    text.parse().map_err(|_| Error::input(format!("--seed {text}"), "expected a whole number of at least 0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Wish> {
        parse(line.split_whitespace().map(Into::into))
    }

    #[test]
    fn options_are_read() {
        let line =
            "--ssd mga-8k --ftl page --set part.nop=4 --set=ssd.channels=2 --listen [::1]:0 --once --seed 9 --json";
        let Wish::Serve(wanted) = read(line).unwrap() else { panic!("not a wish to serve") };
        assert_eq!((wanted.ssd.as_str(), wanted.ftl.as_deref(), wanted.options.seed), ("mga-8k", Some("page"), 9));
        assert_eq!(wanted.set, ["part.nop=4", "ssd.channels=2"]);
        assert_eq!((wanted.listen.as_str(), wanted.once, wanted.json), ("[::1]:0", true, true));
        assert!(matches!(read("--help"), Ok(Wish::Print(_))));
    }

    #[test]
    fn mistakes_are_the_users() {
        for line in [
            "--timeout 30",
            "--timeout 0s",
            "--timeout s",
            "--timeout 1e9s",
            "--sdd x",
            "--seed -1",
            "--seed",
            "--fidelity slow",
            "--precondition half",
            "--once=yes",
            "drive",
        ] {
            assert!(matches!(read(line), Err(Error::Input { .. })), "{line} was taken");
        }
    }
}
