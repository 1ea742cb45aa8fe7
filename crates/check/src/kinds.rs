//! The kinds of cases: how each draws a drive and requests, and where the power fails. One line of [`KINDS`] is one row
//! of the table that `palimpsest check` prints.

use crate::drives::{Drawn, Limits, Shape, build, cells, pick, with};
use crate::faults::{with_faults, with_read_errors};
use crate::file_systems::any_shape;
use crate::idle;
use crate::kept;
use crate::model::payload_of;
use crate::power::{Cuts, marked, small_with, workload};
use crate::sequences::{LARGE, SMALL, requests};
use crate::timed::Case as TimedCase;
use crate::trial::{Form, Played, Trial};
use crate::workload::{Mix, fill};
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::rng::Rng;
use palimpsest_lab::sim::drive::Command;

/// Drives for power cuts.
const CUT: Limits = Limits { subpages: 512, planes: 4 };

/// Cuts of one drive at most.
const MOST_CUTS: u64 = 400;

/// A kind of cases.
pub struct Kind {
    /// Name on the command line.
    pub name: &'static str,
    /// The cases in words.
    pub about: &'static str,
    /// The case of a seed with these settings; or why the layer does not support the
    /// drawn drive.
    pub draw: fn(&'static Entry, u64, &[&str]) -> Drawn<Trial>,
    /// The forms of further runs of a case that passed: power cuts.
    pub cuts: fn(&Trial, &Played) -> Vec<Form>,
}

/// Every kind, in the order of a round.
pub static KINDS: &[Kind] = &[
    Kind { name: "counted", about: "requests without time, the tables checked after each", draw: counted, cuts: none },
    Kind { name: "timed", about: "requests in flight, data and times verified", draw: timed, cuts: none },
    Kind { name: "cuts", about: "a power cut at every operation", draw: small, cuts: every_cut },
    Kind { name: "nested-cuts", about: "cuts in recovery, and again later", draw: small, cuts: nested_cuts },
    Kind { name: "faults", about: "programs, erases and reads fail", draw: faults, cuts: none },
    Kind { name: "timed-faults", about: "the same, timed", draw: timed_faults, cuts: none },
    Kind { name: "cuts-faults", about: "cuts, and programs and erases fail", draw: small_faults, cuts: nested_cuts },
    Kind { name: "timed-cuts", about: "a power cut with requests in flight", draw: timed_cut, cuts: some_timed_cuts },
    Kind { name: "shapes-cuts", about: "cuts on drives of every shape", draw: any_cut, cuts: nested_cuts },
    Kind { name: "read-errors", about: "retries, refresh, uncorrectable reads", draw: read_errors, cuts: none },
    Kind { name: "idle", about: "patrol, work while the host is idle, cuts", draw: idle_host, cuts: none },
    Kind { name: "checkpoints", about: "cuts with checkpoints", draw: checkpoints, cuts: nested_cuts },
    Kind { name: "parity", about: "parity across dies", draw: parity, cuts: none },
    Kind { name: "read-ahead", about: "streams of reads, read ahead", draw: read_ahead, cuts: none },
    Kind { name: "bytes", about: "contents of bytes instead of tags", draw: of_bytes, cuts: none },
    Kind { name: "large", about: "larger drives", draw: large, cuts: none },
    Kind { name: "kept-state", about: "a kept state equals a new drive", draw: kept_state, cuts: none },
];

/// `own` settings, changed by `more`.
fn joined(own: &[&str], more: &[&str]) -> Vec<String> {
    with(&own.iter().map(|&setting| setting.to_owned()).collect::<Vec<_>>(), more)
}

/// As `draw`, with settings of the kind that the user's override.
fn shape_with(entry: &Entry, rng: &mut Rng, limits: Limits, own: &[&str], more: &[&str]) -> Drawn<Shape> {
    let settings = joined(own, more);
    any_shape(entry, rng, limits, &settings.iter().map(String::as_str).collect::<Vec<_>>())
}

fn trial(entry: &'static Entry, shape: Shape, seed: u64, form: Form, commands: Vec<Command>) -> Trial {
    Trial { entry, shape, payload: Payload::Tag, seed, is_bare: false, form, commands }
}

/// Refuses a drive that is too large for a cut at every operation.
fn within(size: u64, most: u64) -> Drawn<()> {
    if size > most { Err(format!("the drive is too large for cuts: {size}, of {most} at most")) } else { Ok(()) }
}

fn none(_: &Trial, _: &Played) -> Vec<Form> {
    Vec::new()
}

fn counted(entry: &'static Entry, seed: u64, more: &[&str]) -> Drawn<Trial> {
    let shape = any_shape(entry, &mut Rng::new(seed, 0xd81e), SMALL, more)?;
    let commands = requests(&shape, seed);
    Ok(trial(entry, shape, seed, Form::Counted { check_every: 1 }, commands))
}

fn of_bytes(entry: &'static Entry, seed: u64, more: &[&str]) -> Drawn<Trial> {
    let shape = any_shape(entry, &mut Rng::new(seed, 0xb17e), Limits { subpages: 1024, planes: 4 }, more)?;
    let commands = requests(&shape, seed);
    let drawn = trial(entry, shape, seed, Form::Counted { check_every: 11 }, commands);
    Ok(Trial { payload: Payload::Bytes, ..drawn })
}

fn large(entry: &'static Entry, seed: u64, more: &[&str]) -> Drawn<Trial> {
    let shape = any_shape(entry, &mut Rng::new(seed, 0xd81f), LARGE, more)?;
    let commands = requests(&shape, seed);
    Ok(trial(entry, shape, seed, Form::Counted { check_every: 97 }, commands))
}

fn timed(entry: &'static Entry, seed: u64, more: &[&str]) -> Drawn<Trial> {
    let mut rng = Rng::new(seed, 0x71e);
    let shape = any_shape(entry, &mut rng, SMALL, more)?;
    let commands = requests(&shape, seed);
    // Some drives are timed from the first request on, some only when they are full.
    let counted = if rng.below(2) == 0 { 0 } else { commands.len() / 2 };
    let form = Form::Timed { counted, depth: pick(&mut rng, &[1, 16]) };
    Ok(Trial { payload: payload_of(entry, seed), ..trial(entry, shape, seed, form, commands) })
}

/// Requests of all kinds on a new drive.
fn mixed(shape: &Shape, seed: u64, count: usize) -> Vec<Command> {
    let mut mix = Mix::new(&shape.drive, seed);
    (0..count).map(|_| mix.draw()).collect()
}

fn faults(entry: &'static Entry, seed: u64, more: &[&str]) -> Drawn<Trial> {
    let shape = with_faults(entry, seed, SMALL, more)?;
    let commands = mixed(&shape, seed, 4000);
    Ok(trial(entry, shape, seed, Form::Counted { check_every: 7 }, commands))
}

fn timed_faults(entry: &'static Entry, seed: u64, more: &[&str]) -> Drawn<Trial> {
    let shape = with_faults(entry, seed, SMALL, more)?;
    let commands = mixed(&shape, seed, 2500);
    let form = Form::Timed { counted: 0, depth: if seed.is_multiple_of(2) { 1 } else { 16 } };
    Ok(trial(entry, shape, seed, form, commands))
}

fn read_errors(entry: &'static Entry, seed: u64, more: &[&str]) -> Drawn<Trial> {
    let mut rng = Rng::new(seed, 0xecc0);
    let shape = any_shape(entry, &mut rng, Limits { subpages: 1024, planes: 4 }, more)?;
    let shape = build(entry.name, &with(&with_read_errors(&shape.settings, &mut rng), more))?;
    let commands = mixed(&shape, seed, 500);
    let form = match seed.is_multiple_of(2) {
        true => Form::Timed { counted: 0, depth: 8 },
        false => Form::Counted { check_every: 50 },
    };
    let payload = if seed.is_multiple_of(3) { Payload::Bytes } else { Payload::Tag };
    Ok(Trial { payload, ..trial(entry, shape, seed, form, commands) })
}

/// A drive of a few blocks for cuts; file systems need more.
fn drive_for_cuts(entry: &'static Entry, seed: u64, own: &[&str], more: &[&str]) -> Drawn<Shape> {
    match entry.below {
        Some(_) => {
            let shape = shape_with(entry, &mut Rng::new(seed, 0xf13e), CUT, own, more)?;
            within(shape.drive.logical_pages(), 1000)?;
            Ok(shape)
        }
        None => {
            let settings = joined(own, more);
            small_with(entry, seed, &settings.iter().map(String::as_str).collect::<Vec<_>>())
        }
    }
}

fn small(entry: &'static Entry, seed: u64, more: &[&str]) -> Drawn<Trial> {
    let shape = drive_for_cuts(entry, seed, &[], more)?;
    let commands = marked(&shape, seed);
    Ok(trial(entry, shape, seed, Form::Cut(Cuts::NONE), commands))
}

fn small_faults(entry: &'static Entry, seed: u64, more: &[&str]) -> Drawn<Trial> {
    let shape = drive_for_cuts(entry, seed, &[], more)?;
    let reserved = (entry.reserved)(&shape.drive.ftl, &shape.drive.geometry);
    let blocks = format!("ssd.blocks_per_plane={}", shape.drive.log.streams + 6 + reserved);
    let rates = ["faults.program_fail=1%", "faults.erase_fail=1%", "faults.read_fail=1%"];
    let space: &[&str] = if entry.is_file_system() { &[] } else { &["ssd.over_provisioning=300%", &blocks] };
    let settings = with(&with(&with(&shape.settings, &rates), space), more);
    let shape = build(entry.name, &settings)?;
    let commands = marked(&shape, seed);
    Ok(trial(entry, shape, seed, Form::Cut(Cuts::NONE), commands))
}

fn any_cut(entry: &'static Entry, seed: u64, more: &[&str]) -> Drawn<Trial> {
    let shape = any_shape(entry, &mut Rng::new(seed, 0x90), CUT, more)?;
    within(shape.drive.logical_subpages(), 3000)?;
    let commands = marked(&shape, seed);
    Ok(trial(entry, shape, seed, Form::Cut(Cuts::NONE), commands))
}

fn checkpoints(entry: &'static Entry, seed: u64, more: &[&str]) -> Drawn<Trial> {
    let every = ["ftl.checkpoint=4KiB", "ftl.checkpoint=40KiB", "ftl.checkpoint=150KiB"][(seed % 3) as usize];
    let shape = drive_for_cuts(entry, seed, &[every], more)?;
    let commands = marked(&shape, seed);
    Ok(trial(entry, shape, seed, Form::Cut(Cuts::NONE), commands))
}

/// From one cut to the next of a drive with so many operations.
fn stride(played: &Played) -> u64 {
    played.operations.end.div_ceil(MOST_CUTS).max(1)
}

fn every_cut(_: &Trial, played: &Played) -> Vec<Form> {
    let cuts = (1..=played.operations.end).step_by(stride(played) as usize);
    cuts.map(|first| Form::Cut(Cuts { first, ..Cuts::NONE })).collect()
}

fn nested_cuts(drawn: &Trial, played: &Played) -> Vec<Form> {
    let mut rng = Rng::new(drawn.seed, 0xc07);
    let stride = 2 * stride(played);
    let first = 1 + rng.below(stride);
    let cuts = (first..=played.operations.end).step_by(stride as usize);
    let nested = |first| Cuts {
        first,
        in_recovery: (0..rng.below(3)).map(|_| 1 + rng.below(4)).collect(),
        second: Some(1 + rng.below(40)),
    };
    cuts.map(nested).map(Form::Cut).collect()
}

fn timed_cut(entry: &'static Entry, seed: u64, more: &[&str]) -> Drawn<Trial> {
    let TimedCase { shape, payload, commands, counted, depth, .. } = TimedCase::draw(entry, seed, more)?;
    let form = Form::TimedCut { counted, depth, cut: None };
    Ok(Trial { payload, ..trial(entry, shape, seed, form, commands) })
}

fn some_timed_cuts(drawn: &Trial, played: &Played) -> Vec<Form> {
    let (Form::TimedCut { counted, depth, .. }, range) = (&drawn.form, &played.operations) else { return Vec::new() };
    let (counted, depth, mut rng) = (*counted, *depth, Rng::new(drawn.seed, 0x7c08));
    let operations = range.end.saturating_sub(range.start);
    // Bytes take much longer than tags where a layer codes them.
    let most = if drawn.payload == Payload::Bytes { 2 } else { 8 };
    let mut cut = |_| Form::TimedCut { counted, depth, cut: Some(range.start + 1 + rng.below(operations)) };
    (0..operations.min(most)).map(&mut cut).collect()
}

fn idle_host(entry: &'static Entry, seed: u64, more: &[&str]) -> Drawn<Trial> {
    let patrol = [
        "ecc.strength=8",
        "ftl.patrol=700ms",
        "ecc.refresh_retries=1",
        "ecc.t_retention=2s",
        "ecc.t_retries=[\"50us\", \"90us\"]",
        "ecc.retry_rates=[\"70%\", \"40%\"]",
    ];
    let cells = cells(&mut Rng::new(seed, 0xce11));
    let own: Vec<&str> = if seed % 4 < 2 { [&patrol[..], &cells].concat() } else { Vec::new() };
    let settings = joined(&own, more);
    let (shape, _) = idle::draw_idle(entry, seed, &settings.iter().map(String::as_str).collect::<Vec<_>>())?;
    let commands = idle::requests(&shape, seed);
    Ok(trial(entry, shape, seed, Form::Idle { cuts: seed % 2 == 1 }, commands))
}

fn parity(entry: &'static Entry, seed: u64, more: &[&str]) -> Drawn<Trial> {
    if !entry.takes_parity {
        return Err("the layer takes no parity across dies".into());
    }
    let mut rng = Rng::new(seed, 0x4a14);
    let rain = pick(&mut rng, &["ftl.rain=1", "ftl.rain=1", "ftl.rain=2", "ftl.rain=3"]);
    let own = [
        rain,
        "part.cell=slc",
        "part.order=ascending",
        "ftl.slc_cache=0 blocks",
        "ftl.slc_fixed=0 blocks",
        "ftl.superblock_dies=0",
    ];
    let without = ["ftl.checkpoint=0B", "ecc.strength=0", "ftl.patrol=0ns"];
    let own = if entry.is_file_system() { [&without[..], &own].concat() } else { own.to_vec() };
    let shape = shape_with(entry, &mut rng, Limits { subpages: 2048, planes: 8 }, &own, more)?;
    let commands = mixed(&shape, seed, 1200);
    let form = match seed.is_multiple_of(2) {
        true => Form::Counted { check_every: 20 },
        false => Form::Timed { counted: 0, depth: 8 },
    };
    Ok(trial(entry, shape, seed, form, commands))
}

fn read_ahead(entry: &'static Entry, seed: u64, more: &[&str]) -> Drawn<Trial> {
    let mut rng = Rng::new(seed, 0xa4ea);
    let own = [
        pick(&mut rng, &["controller.read_ahead=1", "controller.read_ahead=2", "controller.read_ahead=7"]),
        pick(&mut rng, &["controller.read_streams=1", "controller.read_streams=3"]),
    ];
    let shape = shape_with(entry, &mut rng, Limits { subpages: 1024, planes: 4 }, &own, more)?;
    let subpage = u64::from(shape.drive.geometry.subpage_bytes) / 512;
    let mut commands: Vec<Command> = fill(&shape.drive, 3 * subpage).collect();
    let counted = commands.len();
    // Reads in order, in small steps, among other requests.
    let mut mix = Mix::new(&shape.drive, seed);
    let step = pick(&mut rng, &[1, subpage, 2 * subpage + 1]);
    for read in crate::workload::sweep(&shape.drive, palimpsest_lab::geometry::RequestKind::Read, step).take(600) {
        commands.push(read);
        commands.extend((rng.below(6) == 0).then(|| mix.draw()));
    }
    let form = Form::Timed { counted, depth: pick(&mut rng, &[1, 2, 16]) };
    Ok(Trial { payload: payload_of(entry, seed), ..trial(entry, shape, seed, form, commands) })
}

fn kept_state(entry: &'static Entry, seed: u64, more: &[&str]) -> Drawn<Trial> {
    let shape = any_shape(entry, &mut Rng::new(seed, 0x5a7e), CUT, more)?;
    let drive = crate::model::drive(&shape.drive, entry, Payload::Tag, seed);
    drive.ftl.state().ok_or("the layer has no state that can be stored")?;
    if !kept::keeps(entry, &shape, seed) {
        return Err("no state of such a drive is stored".into());
    }
    let commands = workload(&shape, seed, 150);
    Ok(trial(entry, shape, seed, Form::Kept, commands))
}
