//! From a failed case to a short one of the same kind of failure: a simpler form, a tiny drive, fewer requests, smaller
//! extents, fewer settings. Each step is kept if the case still fails. The search ends after a number of tries, not
//! after a time, so that the same failure has the same history on every machine. Ignored: the shortest history of all.

use crate::drives::{Shape, build, build_with_spare, needed, plain, with};
use crate::power::Cuts;
use crate::trial::{Failure, Form, Played, Progress, Trial, Watch};
use crate::workload::{Mix, fill};
use palimpsest_lab::geometry::{Extent, RequestKind};
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::sim::drive::Command;

/// Runs of the whole search at most.
const MOST_TRIES: u32 = 20_000;
/// Requests of all runs at most.
const MOST_REQUESTS: u64 = 1_000_000;
/// Positions that are tried for the cut of a changed case.
const MOST_PLACES: u64 = 40;
/// Workloads that are tried on each tiny drive.
const TINY_SEEDS: u64 = 16;

/// Channels, pages of a block and subpages of a page of the tiny drives.
const TINY: [(u32, u32, u32); 5] = [(1, 4, 1), (2, 4, 1), (1, 4, 2), (2, 4, 4), (4, 4, 1)];

/// The result of a search.
pub struct Shrunk {
    /// The short case.
    pub trial: Trial,
    /// The failure of the short case.
    pub failure: Failure,
}

struct Search<'a> {
    best: Trial,
    failure: Box<Failure>,
    kind: String,
    tries: u32,
    requests: u64,
    watch: &'a mut dyn Watch,
    ended: bool,
}

/// Shrinks `trial`, which ends with `failure`; `settings` stay.
pub fn shrink(trial: Trial, failure: Box<Failure>, settings: &[String], watch: &mut dyn Watch) -> Shrunk {
    let kind = failure.kind();
    let mut search = Search { best: trial, failure, kind, tries: 0, requests: 0, watch, ended: false };
    search.truncate();
    search.simplify_form();
    search.tiny_drives(settings);
    for _ in 0..4 {
        let before = search.size();
        search.remove_requests();
        search.merge_requests();
        search.simplify_requests();
        if search.size() == before {
            break;
        }
    }
    search.remove_settings(settings);
    search.remove_requests();
    Shrunk { trial: search.best, failure: *search.failure }
}

impl Search<'_> {
    /// The size of the best case: requests, then sectors.
    fn size(&self) -> (usize, u64) {
        let sectors = self.best.commands.iter().map(|command| u64::from(command.extent.sectors)).sum();
        (self.best.commands.len(), sectors)
    }

    /// Runs `trial`; keeps a failure of the same kind. Returns the counts of a case that passed.
    fn play(&mut self, trial: &Trial) -> Result<Option<Played>, ()> {
        self.tries += 1;
        self.requests += trial.commands.len() as u64;
        self.ended |= self.tries >= MOST_TRIES || self.requests >= MOST_REQUESTS;
        if self.tries.is_multiple_of(64) {
            self.ended |= self.watch.stops(Progress { phase: "shrink", done: self.requests, expected: 0 });
        }
        if self.ended {
            return Ok(None);
        }
        match trial.play(self.watch) {
            Ok(played) => Ok(Some(played)),
            Err(failure) if failure.kind() == self.kind => {
                self.failure = failure;
                Err(())
            }
            Err(_) => Ok(None),
        }
    }

    /// As [`Self::play`]; keeps the case if it fails.
    fn whole(&mut self, trial: Trial) -> Result<Option<Played>, ()> {
        let result = self.play(&trial);
        if result.is_err() {
            self.watch.fails(&trial, &self.failure);
            self.best = trial;
        }
        result
    }

    /// Runs `trial`, and keeps the case if it fails in the same way.
    fn keep(&mut self, trial: Trial) -> bool {
        self.whole(trial).is_err()
    }

    /// Leaves out requests after the failure.
    fn truncate(&mut self) {
        let reached = self.failure.story.steps.last().map_or(usize::MAX, |step| step.number + 1);
        for more in [0, 1, 8] {
            let length = reached.saturating_add(more);
            if length < self.best.commands.len() && self.keep_commands(self.best.commands[..length].to_vec(), length) {
                return;
            }
        }
    }

    fn simplify_form(&mut self) {
        self.keep(Trial { is_bare: true, ..self.best.clone() });
        if self.best.payload == Payload::Bytes {
            self.keep(Trial { payload: Payload::Tag, ..self.best.clone() });
        }
        match self.best.form.clone() {
            Form::Counted { .. } => drop(self.keep(self.best.with_form(Form::Counted { check_every: 1 }))),
            Form::Timed { depth, counted } => {
                let forms = [
                    Form::Counted { check_every: 1 },
                    Form::Timed { counted, depth: 1 },
                    Form::Timed { counted: 0, depth },
                ];
                let _ = forms.into_iter().any(|form| self.keep(self.best.with_form(form)));
            }
            Form::TimedCut { counted, depth, .. } => {
                let forms = [Form::Counted { check_every: 1 }, Form::Timed { counted, depth }];
                let found = forms.into_iter().any(|form| self.keep(self.best.with_form(form)));
                // The same requests without time, with a cut somewhere.
                let untimed = self.best.with_form(Form::Cut(Cuts::NONE));
                if !found && self.best.payload == Payload::Tag {
                    self.cut_somewhere(&untimed, MOST_PLACES);
                }
            }
            Form::Cut(cuts) => {
                let once = Cuts { in_recovery: Vec::new(), second: None, ..cuts.clone() };
                let forms = [
                    Form::Counted { check_every: 1 },
                    Form::Cut(once),
                    Form::Cut(Cuts { second: None, ..cuts.clone() }),
                    Form::Cut(Cuts { in_recovery: Vec::new(), ..cuts }),
                ];
                let _ = forms.into_iter().any(|form| self.keep(self.best.with_form(form)));
            }
            Form::Idle { .. } | Form::Kept => {}
        }
    }

    /// Tries up to `most` positions of the first cut of `trial`, evenly over the run.
    fn cut_somewhere(&mut self, trial: &Trial, most: u64) -> bool {
        let Form::Cut(cuts) = &trial.form else { return false };
        let Ok(found) = self.whole(trial.with_form(Form::Cut(Cuts::NONE))) else { return true };
        let Some(played) = found else { return false };
        let end = played.operations.end;
        let step = end.div_ceil(most).max(1) as usize;
        (1..=end).step_by(step).any(|first| self.keep(trial.with_form(Form::Cut(Cuts { first, ..cuts.clone() }))))
    }

    /// New requests on the smallest drives: first without the settings of the failed drive, then with them.
    fn tiny_drives(&mut self, settings: &[String]) {
        let failed = self.best.clone();
        let (own, entry) = (failed.shape.settings.clone(), failed.entry);
        let is_shape = |setting: &&String| SHAPE.iter().any(|key| setting.starts_with(key));
        let others: Vec<&str> = own.iter().filter(|setting| !is_shape(setting)).map(String::as_str).collect();
        let features: Vec<&str> = others.iter().copied().filter(|setting| is_feature(setting)).collect();
        // A failure may need several planes.
        let planes = [1, failed.shape.drive.physical.planes_per_die];
        let planes = &planes[..if planes[1] > 1 { 2 } else { 1 }];
        let tiny = |shape| planes.iter().map(move |&planes| (shape, planes));
        // Rare faults need long histories.
        let often: Vec<String> = features.iter().map(|setting| often(setting)).collect();
        for more in [often.iter().map(String::as_str).collect(), features, others] {
            for ((channels, pages, subpages), planes) in TINY.into_iter().flat_map(tiny) {
                let subpages = entry.least_subpages().max(subpages);
                let base = needed(entry, &with(&plain(channels, 8, pages, subpages), &more));
                let base = with(&base, &[&format!("ssd.planes_per_die={planes}")]);
                let base = with(&base, &settings.iter().map(String::as_str).collect::<Vec<_>>());
                let spare = if entry.hot_and_cold { 3 } else { 2 };
                let shapes = [1, 2, 4].map(|left| build_with_spare(entry.name, &base, spare + left, spare));
                for shape in shapes.into_iter().flatten() {
                    if (0..TINY_SEEDS).any(|seed| self.tiny(&failed, &shape, seed)) {
                        return;
                    }
                }
            }
        }
    }

    /// Random requests on a full tiny drive.
    fn tiny(&mut self, failed: &Trial, shape: &Shape, seed: u64) -> bool {
        let mut mix = Mix::new(&shape.drive, seed);
        let mut commands: Vec<Command> = fill(&shape.drive, shape.drive.logical_bytes() / 512).collect();
        commands.extend((0..40).map(|_| mix.draw()));
        let drawn = Trial { shape: shape.clone(), seed, is_bare: true, ..failed.with_commands(commands) };
        match &failed.form {
            Form::Cut(cuts) => self.cut_somewhere(&drawn.with_form(Form::Cut(Cuts { first: 1, ..cuts.clone() })), 200),
            Form::Timed { depth, .. } => {
                let depths = [*depth, 1, 16];
                depths.into_iter().any(|depth| self.keep(drawn.with_form(Form::Timed { counted: 0, depth })))
            }
            Form::TimedCut { depth, .. } => {
                let whole = Form::TimedCut { counted: 0, depth: *depth, cut: None };
                let Ok(found) = self.whole(drawn.with_form(whole)) else { return true };
                let Some(played) = found else { return false };
                let cuts = played.operations.start + 1..=played.operations.end;
                let form = |cut| Form::TimedCut { counted: 0, depth: *depth, cut: Some(cut) };
                cuts.step_by(3).take(60).any(|cut| self.keep(drawn.with_form(form(cut))))
            }
            _ => self.keep(drawn),
        }
    }

    /// Keeps the case with `commands`, in which the requests of the best case up to `same` are unchanged or fewer. A
    /// cut moves with its request.
    fn keep_commands(&mut self, commands: Vec<Command>, same: usize) -> bool {
        let trial = self.best.with_commands(commands);
        match &self.best.form {
            Form::Cut(cuts) if cuts.first < u64::MAX => self.keep_cut(&trial, &cuts.clone(), same),
            Form::TimedCut { cut: Some(cut), counted, depth } => {
                let (cut, counted, depth) = (*cut, (*counted).min(trial.commands.len()), *depth);
                let form = |cut| Form::TimedCut { counted, depth, cut };
                let Ok(found) = self.whole(trial.with_form(form(None))) else { return true };
                let Some(played) = found else { return false };
                let range = played.operations;
                let step = (range.end.saturating_sub(range.start)).div_ceil(16).max(1);
                let places = (range.start + 1..=range.end).step_by(step as usize);
                let known = Some(cut).filter(|cut| *cut > range.start && *cut <= range.end);
                known.into_iter().chain(places).any(|cut| self.keep(trial.with_form(form(Some(cut)))))
            }
            _ => self.keep(trial),
        }
    }

    /// Keeps `trial` with a cut in the request that was cut before, `same` requests of which precede.
    fn keep_cut(&mut self, trial: &Trial, cuts: &Cuts, same: usize) -> bool {
        let steps = &self.failure.story.steps;
        let Some(cut) = steps.iter().rfind(|step| step.operations < cuts.first) else { return false };
        let offset = cuts.first - cut.operations;
        let removed = self.best.commands.len() - trial.commands.len();
        let number = if cut.number >= same { cut.number.checked_sub(removed) } else { Some(cut.number) };
        let Some(number) = number else { return false };
        let Ok(found) = self.whole(trial.with_form(Form::Cut(Cuts::NONE))) else { return true };
        let Some(played) = found else { return false };
        let Some(at) = played.story.steps.iter().position(|step| step.number == number) else { return false };
        let (begin, steps) = (played.story.steps[at].operations, &played.story.steps);
        let end = steps.get(at + 1).map_or(played.operations.end, |next| next.operations);
        let places = (begin + 1..=end).take(MOST_PLACES as usize);
        let form = |first| Form::Cut(Cuts { first, ..cuts.clone() });
        let known = Some(begin + offset).filter(|first| *first <= end);
        known.into_iter().chain(places).any(|first| self.keep(trial.with_form(form(first))))
    }

    /// Leaves out runs of requests, halves of them, quarters and so on.
    fn remove_requests(&mut self) {
        let mut size = self.best.commands.len().div_ceil(2);
        while size > 0 && !self.ended {
            let mut end = self.best.commands.len();
            while end > 0 && !self.ended {
                let begin = end.saturating_sub(size);
                let mut commands = self.best.commands.clone();
                commands.drain(begin..end);
                if !commands.is_empty() {
                    self.keep_commands(commands, begin);
                }
                end = begin.min(self.best.commands.len());
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
    }

    /// Replaces the first requests with one write of the whole drive, and adjacent writes with one.
    fn merge_requests(&mut self) {
        let sectors = self.best.shape.drive.logical_bytes() / 512;
        let whole = Command::new(RequestKind::Write, Extent { sector: 0, sectors: sectors as u32 });
        let mut first = self.best.commands.len().saturating_sub(1);
        while first > 1 && !self.ended {
            let commands = [&[whole], &self.best.commands[first..]].concat();
            if self.keep_commands(commands, first) {
                break;
            }
            first /= 2;
        }
        let mut at = 1;
        while at < self.best.commands.len() && !self.ended {
            let (one, two) = (self.best.commands[at - 1], self.best.commands[at]);
            let is_write = |command: Command| command.kind == RequestKind::Write;
            let (begin, end) = (one.extent.sector.min(two.extent.sector), one.extent.end().max(two.extent.end()));
            let mut commands = self.best.commands.clone();
            let extent = Extent { sector: begin, sectors: (end - begin) as u32 };
            commands.splice(at - 1..=at, [Command::new(RequestKind::Write, extent)]);
            if !(is_write(one) && is_write(two) && self.keep_commands(commands, at)) {
                at += 1;
            }
        }
    }

    /// Makes extents whole pages, shorter, or nearer to the beginning, and drops directives.
    fn simplify_requests(&mut self) {
        let page = u64::from(self.best.shape.drive.geometry.page_bytes()) / 512;
        let limit = self.best.shape.drive.logical_bytes() / 512;
        for at in 0..self.best.commands.len() {
            let Some(&command) = self.best.commands.get(at) else { return };
            let Extent { sector, sectors } = command.extent;
            let sectors = u64::from(sectors);
            let aligned = sector / page * page;
            let extents = match command.kind {
                RequestKind::Flush => vec![(sector, sectors)],
                _ => vec![
                    (0, page),
                    (aligned, page),
                    (0, sectors.next_multiple_of(page)),
                    (aligned, sectors.next_multiple_of(page)),
                    (aligned, (sectors / 2).next_multiple_of(page)),
                    (aligned, 1),
                    (sector, sectors),
                ],
            };
            for (sector, size) in extents {
                let extent = Extent { sector, sectors: size.min(limit - sector) as u32 };
                let simple = Command::new(command.kind, extent).on_zone(command.directives.zone);
                let is_simpler = (size, sector) <= (sectors.next_multiple_of(page), command.extent.sector);
                if simple == command || !is_simpler || self.ended {
                    continue;
                }
                let mut commands = self.best.commands.clone();
                commands[at] = simple;
                if self.keep_commands(commands, at + 1) {
                    break;
                }
            }
        }
    }

    /// Leaves out settings that neither the shape of the drive nor the failure needs.
    fn remove_settings(&mut self, settings: &[String]) {
        for setting in self.best.shape.settings.clone() {
            if self.ended || settings.contains(&setting) {
                continue;
            }
            let kept: Vec<String> =
                self.best.shape.settings.iter().filter(|other| **other != setting).cloned().collect();
            let Ok(shape) = build(self.best.entry.name, &kept) else { continue };
            let (old, new) = (&self.best.shape.drive, &shape.drive);
            if (old.geometry, old.logical_subpages()) == (new.geometry, new.logical_subpages()) {
                self.keep(Trial { shape, ..self.best.clone() });
            }
        }
    }
}

/// Keys of the shape of a drive, which a tiny drive sets itself.
const SHAPE: [&str; 16] = [
    "ssd.",
    "part.pages_per_block",
    "part.page_size",
    "part.subpage_size",
    "part.word_size",
    "part.t_read=",
    "part.t_read_words",
    "part.e_read_words",
    "part.t_program=",
    "part.t_erase",
    "part.t_command",
    "part.bus_rate",
    "buffer.size",
    "ftl.gc_start",
    "ftl.gc_stop",
    "faults.power_cuts",
];

/// `setting`; programs and erases that fail do so at a tenth of all operations.
fn often(setting: &str) -> String {
    match setting.split_once('=') {
        Some((key @ ("faults.program_fail" | "faults.erase_fail"), rate)) if rate != "0%" => format!("{key}=10%"),
        _ => setting.to_owned(),
    }
}

/// Whether a setting turns on a feature that a failure may need.
fn is_feature(setting: &str) -> bool {
    ["faults.", "ecc.", "ftl.checkpoint", "ftl.rain", "buffer.ack", "controller.read_", "part.ber"]
        .iter()
        .any(|key| setting.starts_with(key))
}
