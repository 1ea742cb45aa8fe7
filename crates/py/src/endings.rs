//! The end of a run: the workload's own, a number of plays, worn-out blocks, or figures that are known. Ignored: limits
//! of requests, which the core has.

use super::prepared::open;
use super::workload::{self, Opening};
use super::{CoreError, InputError, RunOptions, raise};
use palimpsest_lab::config::Resolved;
use palimpsest_lab::error::Result;
use palimpsest_lab::host::replay::{Playing, Repeat};
use palimpsest_lab::host::request::Source;
use palimpsest_lab::run::until::Until;
use pyo3::PyResult;

/// The `--until` of a drive without blocks for writes.
const WORN_OUT: &str = "worn-out";

/// The number of plays; `Forever` until the drive is worn out, or the figures are known.
pub fn repeat(options: &RunOptions, resolved: &Resolved) -> PyResult<Repeat> {
    let Some(until) = &options.until else {
        if options.at_most.is_some() {
            return Err(InputError::new_err("--at-most: it bounds --until, which is not given; expected --until 1%"));
        }
        return options.repeat.as_deref().map_or(Ok(Repeat::Once), Repeat::parse).map_err(raise);
    };
    let other = [
        (options.repeat.is_some(), "--repeat"),
        (until != WORN_OUT && options.requests.is_some(), "--requests"),
        (until == WORN_OUT && options.at_most.is_some(), "--at-most"),
    ];
    if let Some((_, option)) = other.iter().find(|(is_given, _)| *is_given) {
        let instead = if *option == "--requests" { "; --at-most bounds a run with --until" } else { "" };
        let what = format!("{option}: --until {until} is given too; expected only one of the two{instead}");
        return Err(InputError::new_err(what));
    }
    if until != WORN_OUT {
        return Ok(Repeat::Forever);
    }
    if !resolved.drive.faults.wear_out {
        let expected = "blocks do not wear out; expected --set faults.wear_out=true";
        return Err(InputError::new_err(format!("--until worn-out: {expected}")));
    }
    Ok(Repeat::Forever)
}

/// The workload of a run, and the evidence that ends the run, if the user wants one. A generated load goes on without
/// end; a trace is played again.
pub fn open_until(
    options: &RunOptions,
    resolved: &Resolved,
    opening: &Opening<'_>,
) -> Result<(Box<dyn Source>, Option<Until>)> {
    let Some(text) = options.until.as_deref().filter(|text| *text != WORN_OUT) else {
        return Ok((open(options, resolved, opening)?, None));
    };
    let until = |least| {
        let until = Until::parse(text, options.at_most.as_deref(), least)?;
        if options.fidelity == "count" { until.of_counted() } else { Ok(until) }
    };
    let refused = |what: &str| CoreError::input(format!("--until {text}"), what);
    until(0)?;
    let Some(endless) = workload::endless(&options.workload, opening, 0)? else {
        let source = open(options, resolved, opening)?;
        let what = "this workload ends by itself; expected a generated load without zones, targets and jobs that wait, \
                    or a trace";
        return if source.format().is_some() { Ok((source, Some(until(0)?))) } else { Err(refused(what)) };
    };
    let playing = Playing { repeat: Repeat::Once, ..opening.playing.clone() };
    let once = open(options, resolved, &Opening { playing: &playing, ..*opening })?;
    Ok((endless, Some(until(once.expected_requests().unwrap_or(0))?)))
}
