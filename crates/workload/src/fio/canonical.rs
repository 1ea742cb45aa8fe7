//! The canonical form of a specification: every key with a value, which reads back as the same specification.

use std::fmt;

use super::groups::{groups_text, mix_text};
use super::keys::{self, EXIT_SCOPES, name_in};
use super::quantity::{Amount, duration_text, size_text};
use super::spec::{Check, FioSpec, Order, Pacing, Rate, SizeShare, Strides, Target, Think};
use super::values::{HANDLE_CHOICES, scheme_text, tenths_text, thousandths_text};
use palimpsest_flash::units::Nanos;

/// A key, with a value unless the canonical form leaves the key out.
type Text = (&'static str, Option<String>);

/// The key if the value differs from the default.
fn unless<T: PartialEq>(key: &'static str, value: T, default: T, text: impl Fn(T) -> String) -> Text {
    (key, (value != default).then(|| text(value)))
}

fn on(key: &'static str, value: bool) -> Text {
    unless(key, value, false, |_| "1".into())
}

fn number(key: &'static str, value: u64, default: u64) -> Text {
    unless(key, value, default, |value| value.to_string())
}

fn time(key: &'static str, value: Nanos) -> Text {
    unless(key, value, 0, duration_text)
}

impl fmt::Display for FioSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = self.of_requests().into_iter().chain(self.of_job()).chain(self.of_others());
        for (at, (key, value)) in texts.filter_map(|(key, value)| Some((key, value?))).enumerate() {
            write!(f, "{}{key}={value}", if at == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl FioSpec {
    /// Keys of kinds, sizes and places.
    fn of_requests(&self) -> Vec<Text> {
        let has_region = self.groups.is_empty();
        let in_region = |text: String| has_region.then_some(text);
        let name = match (self.run, self.skip) {
            (1, 0) => self.pattern.name.to_string(),
            (1, skip) => format!("{}:{}{}", self.pattern.name, if skip < 0 { "-" } else { "" }, skip.unsigned_abs()),
            (run, _) => format!("{}:{run}", self.pattern.name),
        };
        let (sizes, texts) = self.sizes_text();
        let of_groups = |text: String| (!has_region).then_some(text);
        let [read, write, trim] = self.random_permille.map(tenths_text);
        vec![
            ("rw", in_region(name)),
            (sizes, in_region(texts)),
            ("filegroups", of_groups(groups_text(&self.groups))),
            ("mix", of_groups(mix_text(&self.mix, tenths_text))),
            ("offset", Some(self.offset.to_string())),
            unless("offset_increment", self.offset_increment, Amount::Bytes(0), |offset| offset.to_string()),
            ("size", self.size.filter(|_| has_region).map(|size| size.to_string())),
            ("n", self.requests.map(|n| n.to_string())),
            ("io_size", self.io_size.map(|size| size.to_string())),
            ("loops", self.loops.map(|loops| loops.to_string())),
            unless("rw_sequencer", self.identical, false, |_| "identical".into()),
            on("bs_unaligned", self.unaligned),
            ("random_distribution", in_region(self.distribution.to_string())),
            on("random_sequence_stride", self.stride),
            ("rwmixread", in_region(tenths_text(self.read_permille))),
            ("percentage_random", in_region(format!("{read},{write},{trim}"))),
            ("blockalign", self.block_align.map(size_text)),
            ("sequential_from", self.sequential_from.map(size_text)),
            ("sequential_size", self.sequential_size.map(|size| size.to_string())),
            on("norandommap", self.no_map),
            ("random_generator", keys::generator_name(self.generator)),
            unless("randrepeat", self.repeat, true, |_| "0".into()),
            ("randseed", self.seed.map(|seed| seed.to_string())),
        ]
    }

    /// Keys of depth, rates and times.
    fn of_job(&self) -> Vec<Text> {
        let Think { time: pause, requests, of_issued, after } = self.think;
        let Target { time: longest, window, share, continues } = self.target;
        let has_target = longest > 0;
        let delays = [self.start_delay, self.start_delay.saturating_add(self.delay_spread)].map(duration_text);
        let rates = [rates(self.rates, ["rate", "rate_iops"]), rates(self.floor.rates, ["rate_min", "rate_iops_min"])];
        let of_target = |key, text: String| (key, has_target.then_some(text));
        vec![
            ("iodepth", (!self.open_loop && !self.waits).then(|| self.iodepth.to_string())),
            unless("ioengine", self.waits, false, |_| "psync".into()),
            number("iodepth_low", self.refill.low.into(), 65_536),
            number("iodepth_batch", self.refill.submit.into(), 1),
            number("iodepth_batch_complete", self.refill.complete.into(), 1),
            rates[0].clone(),
            rates[1].clone(),
            number("rate_cycle", self.floor.cycle / 1_000_000, 1000),
            on("open_loop", self.open_loop),
            ("rate_process", Some(if self.pacing == Pacing::Linear { "linear" } else { "poisson" }.into())),
            ("runtime", self.runtime.map(duration_text)),
            on("time_based", self.time_based),
            (
                "startdelay",
                (self.start_delay > 0 || self.delay_spread > 0).then(|| match self.delay_spread {
                    0 => delays[0].clone(),
                    _ => delays.join("-"),
                }),
            ),
            time("ramp_time", self.ramp),
            time("thinktime", pause),
            number("thinktime_blocks", requests, 1),
            unless("thinktime_blocks_type", of_issued, false, |_| "issue".into()),
            time("thinktime_iotime", after),
            of_target("latency_target", duration_text(longest)),
            of_target("latency_window", duration_text(window)),
            of_target("latency_percentile", thousandths_text(share)),
            on("latency_run", has_target && continues),
            ("fsync", self.writes_per_flush.map(|writes| writes.to_string())),
            on("end_fsync", self.end_flush),
        ]
    }

    /// Keys of files, directives and other jobs.
    fn of_others(&self) -> Vec<Text> {
        let (Strides { strided, bytes, range, skip }, zoned) = (self.zones, self.zoned);
        let Check { on: checks, reads, backlog, batch } = self.check;
        let Order { stonewall, after, new_group, exits, scope } = &self.order;
        let has_files = self.files.is_some() || self.file_sizes.is_some() || self.open_files != 1;
        let plids: Vec<String> = self.plids.iter().map(u16::to_string).collect();
        let names = |paths: &[String]| {
            let escaped = |path: &String| path.replace('\\', "\\\\").replace(':', "\\:");
            (!paths.is_empty()).then(|| paths.iter().map(escaped).collect::<Vec<_>>().join(":"))
        };
        vec![
            ("filename", names(&self.paths)),
            ("directory", names(&self.folders)),
            ("filename_format", self.name_format.clone()),
            ("nrfiles", self.files.map(|files| files.to_string())),
            ("filesize", self.file_sizes.as_deref().map(split_text)),
            ("openfiles", has_files.then(|| self.open_files.to_string())),
            unless("zonemode", strided || zoned.on, false, |_| if strided { "strided" } else { "zbd" }.into()),
            unless("zonecapacity", zoned.capacity, 0, size_text),
            number("max_open_zones", zoned.max_open.into(), 0),
            number("job_max_open_zones", zoned.job_max_open.into(), 0),
            on("read_beyond_wp", zoned.beyond),
            unless("zone_reset_threshold", zoned.threshold, 0, |part| thousandths_text(part.into())),
            unless("zone_reset_frequency", zoned.frequency, 0, |part| thousandths_text(part.into())),
            unless("zonesize", bytes, 0, size_text),
            unless("zonerange", range, 0, size_text),
            unless("zoneskip", skip, 0, size_text),
            unless("sync", self.sync, false, |_| "dsync".into()),
            ("write_hint", keys::hint_name(self.write_hint)),
            on("fdp", self.all_handles),
            ("plids", (!plids.is_empty()).then(|| plids.join(","))),
            ("plid_select", name_in(HANDLE_CHOICES, &self.handle_choice)),
            ("dp_scheme", (!self.scheme.is_empty()).then(|| scheme_text(&self.scheme))),
            unless("verify", checks, false, |_| "crc32c".into()),
            unless("do_verify", reads, true, |_| "0".into()),
            number("verify_backlog", backlog, 0),
            number("verify_backlog_batch", batch, 0),
            on("stonewall", *stonewall),
            ("wait_for", after.clone()),
            on("new_group", *new_group),
            on("exitall", *exits),
            ("exit_what", name_in(EXIT_SCOPES, scope)),
            number("flow", self.flow.weight, 0),
            number("flow_id", self.flow.id, 0),
            time("flow_sleep", self.flow.sleep),
            number("numjobs", self.copies, 1),
        ]
    }

    fn sizes_text(&self) -> (&'static str, String) {
        let joined = |texts: Vec<String>| match texts.iter().all(|text| *text == texts[0]) {
            true => texts[0].clone(),
            false => texts.join(","),
        };
        let sizes = &self.block_sizes;
        let ends = |shares: &Vec<SizeShare>| [shares[0], shares[shares.len() - 1]].map(|share| size_text(share.bytes));
        if self.uniform != [false; 3] {
            return ("bsrange", joined(sizes.iter().map(|shares| ends(shares).join("-")).collect()));
        }
        if sizes.iter().all(|shares| shares.len() == 1) {
            return ("bs", joined(sizes.iter().map(|shares| size_text(shares[0].bytes)).collect()));
        }
        ("bssplit", joined(sizes.iter().map(|shares| split_text(shares)).collect()))
    }
}

/// Rates as the key of bytes or the key of requests in `keys`.
fn rates(rates: [Option<Rate>; 3], keys: [&'static str; 2]) -> Text {
    let Some(first) = rates.iter().flatten().next() else { return (keys[0], None) };
    let key = keys[usize::from(matches!(first, Rate::Requests(_)))];
    let texts = rates.map(|rate| match rate {
        None => String::new(),
        Some(Rate::Requests(thousandths)) => thousandths_text(thousandths),
        Some(Rate::Bytes(bytes)) => size_text(bytes),
    });
    let is_one = rates.iter().all(|rate| *rate == rates[0]);
    (key, Some(if is_one { texts[0].clone() } else { texts.join(",") }))
}

fn split_text(shares: &[SizeShare]) -> String {
    let parts: Vec<String> =
        shares.iter().map(|share| format!("{}/{}", size_text(share.bytes), tenths_text(share.permille))).collect();
    parts.join(":")
}
