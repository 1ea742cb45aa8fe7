//! Tests of the module `tenants`, on whole runs.

use super::*;
use crate::config::resolve;
use crate::layers::{find_layer, layers};
use crate::metrics::summary::Summary;
use crate::run::precondition::Precondition;
use crate::run::{Fidelity, Options, Warmup, run};
use palimpsest_flash::command::Command;
use palimpsest_flash::error::Result;
use palimpsest_flash::geometry::Extent;
use palimpsest_flash::nand::data::Payload;
use palimpsest_flash::rng::Rng;
use palimpsest_workload::fio::JobFile;
use palimpsest_workload::request::{Arrivals, Request, Source, Volume};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

const DRIVE: [&str; 13] = [
    "ssd.channels=2",
    "ssd.blocks_per_plane=48",
    "part.pages_per_block=16",
    "part.page_size=16KiB",
    "part.cell=slc",
    "part.nop=4",
    "part.t_read=40us",
    "part.t_program=200us",
    "part.t_erase=2ms",
    "part.t_command=1us",
    "part.bus_rate=400MB/s",
    "part.t_read_words=[\"22us\", \"24us\", \"26us\", \"28us\", \"30us\", \"32us\", \"34us\", \"36us\"]",
    "ssd.over_provisioning=100%",
];

/// Requests of the volumes 9, 4 and 7 to a third of the drive each.
struct Three {
    rng: Rng,
    left: u32,
    sectors: u64,
    volumes: Vec<Volume>,
}

impl Source for Three {
    fn next_request(&mut self) -> Result<Option<Request>> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        let volume = &self.volumes[self.rng.below(3) as usize];
        let sectors = 1 + self.rng.below(40) as u32;
        let sector = volume.sector + self.rng.below(self.sectors - u64::from(sectors));
        let kind = [RequestKind::Read, RequestKind::Write, RequestKind::Write, RequestKind::Trim, RequestKind::Flush]
            [self.rng.below(5) as usize];
        let extent = if kind == RequestKind::Flush { Command::FLUSH.extent } else { Extent { sector, sectors } };
        Ok(Some(Request::new(u64::from(2000 - left) * 20_000, Command::new(kind, extent).of(volume.id))))
    }

    fn place(&self) -> String {
        "three".into()
    }

    fn arrivals(&self) -> Arrivals {
        Arrivals::Open
    }

    fn has_volumes(&self) -> bool {
        true
    }

    fn volumes(&self) -> Vec<Volume> {
        self.volumes.to_vec()
    }
}

fn ran(layer: &str, more: &[&str], source: Option<&str>, fidelity: Fidelity, payload: Payload) -> Summary {
    ran_from("none", layer, more, source, (fidelity, payload))
}

/// A run from the state `precondition`.
fn ran_from(
    precondition: &str,
    layer: &str,
    more: &[&str],
    source: Option<&str>,
    (fidelity, payload): (Fidelity, Payload),
) -> Summary {
    let needs = find_layer(layer).expect("a layer").needs();
    // The later setting of a key counts.
    let all = DRIVE.iter().chain(&needs).chain(more).map(|setting| setting.split_once('=').expect("a value"));
    let settings: BTreeMap<&str, &str> = all.collect();
    let settings: Vec<String> = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let resolved = resolve("test.toml", Some(layer), &settings, &|_| Ok(String::new())).expect("a drive");
    let options = Options {
        workload: "test".into(),
        precondition: Precondition::parse(precondition).expect("a state"),
        requests: None,
        warmup: Warmup::Requests(0),
        fidelity,
        payload,
        seed: 5,
        series: false,
        strict: false,
        operations: Some(crate::run::Window::parse("slowest:2").expect("a window"))
            .filter(|_| fidelity == Fidelity::Timed),
    };
    let bytes = resolved.drive.logical_bytes();
    let mut source: Box<dyn Source> = match source {
        Some(text) => Box::new(JobFile::parse(text, "jobs").unwrap().source(resolved.drive.namespaces(), 3).unwrap()),
        None => {
            let sectors = bytes / 3 / 4096 * 8;
            let at = |(number, id)| Volume { id, name: "v".into(), sector: number * sectors, sectors };
            let volumes = (0..).zip([9, 4, 7]).map(at).collect();
            Box::new(Three { rng: Rng::new(8, 8), left: 2000, sectors, volumes })
        }
    };
    run(&resolved, source.as_mut(), &options, &mut |_| ControlFlow::Continue(())).expect("a result").summary
}

/// The sums over all tenants must be the figures of the run.
fn check_sums(layer: &str, result: &Summary) {
    let sum = |of: fn(&TenantFigures) -> u64| result.tenants.iter().map(of).sum::<u64>();
    let (requests, host) = (&result.requests, &result.host);
    assert_eq!(sum(|one| one.requests.read), requests.read, "{layer}");
    assert_eq!(sum(|one| one.requests.write), requests.write, "{layer}");
    assert_eq!(sum(|one| one.requests.trim + one.requests.flush), requests.trim + requests.flush, "{layer}");
    assert_eq!(sum(|one| one.bytes_read), host.bytes_read, "{layer}");
    assert_eq!(sum(|one| one.bytes_written), host.bytes_written, "{layer}");
    let tenancy = result.tenancy.as_ref().expect("several tenants");
    let all = (result.write_amplification.unwrap() * host.bytes_written as f64).round() as u64;
    assert_eq!((tenancy.bytes_programmed, tenancy.bytes_without_tenant + sum(|one| one.bytes_programmed)), (all, all));
    if let Some(why) = &result.why {
        let explained = |why: &Explanations, kind| why.get(kind).map_or(0, |kind| kind["max"].latency_ns);
        for kind in ["read", "write", "flush"] {
            let most = result.tenants.iter().map(|one| explained(one.why.as_ref().expect("parts"), kind)).max();
            assert_eq!(most, Some(explained(why, kind)), "{layer} {kind}");
        }
        for tenant in &result.tenants {
            let all = tenant.latency_ns.as_ref().and_then(|times| times.all.as_ref()).expect("completed requests");
            let requests = &tenant.requests;
            let count = requests.read + requests.write + requests.trim + requests.flush;
            let waited: Nanos = tenant.waits.iter().flat_map(|wait| wait.parts_ns.values()).sum();
            // The mean is rounded.
            assert!(waited <= (all.mean + 1) * count, "{layer}: {waited} of {} x {count}", all.mean);
            let known = |tenant: u32| result.tenants.iter().any(|one| one.tenant == tenant);
            assert!(tenant.waits.iter().filter_map(|wait| wait.tenant).all(known), "{layer}");
        }
    }
}

/// The time that all requests of tenant `of` waited for `part` of the work of tenant `by`.
fn waited(result: &Summary, of: usize, by: u32, part: &str) -> Nanos {
    let by = result.tenants[of].waits.iter().find(|wait| wait.tenant == Some(by));
    by.and_then(|by| by.parts_ns.get(part)).copied().unwrap_or(0)
}

#[test]
fn a_tenant_with_dies_of_its_own_waits_for_no_other() {
    let jobs = "[global]\nbs=4k\n[reader]\nrw=randread\nnumber_ios=3000\n[writer]\nrw=randwrite\niodepth=16\n";
    let halves = "ssd.namespaces=50%:50%";
    for layer in ["page", "subpage", "dftl"].map(|name| find_layer(name).expect("a layer")) {
        let run = |more: &[&str]| {
            let what = (Fidelity::Timed, Payload::None);
            let result = ran_from("fill:100%,random:1x", layer.name, more, Some(jobs), what);
            check_sums(layer.name, &result);
            result
        };
        let (shared, apart) = (run(&[halves]), run(&[halves, "ftl.allocation=namespace"]));
        for part in ["behind_programs", "collection", "erase"] {
            assert_eq!(waited(&apart, 0, 1, part), 0, "{}: {part}", layer.name);
            assert!(waited(&shared, 0, 1, part) > 0, "{}: {part}", layer.name);
        }
        assert_eq!(waited(&shared, 0, 0, "behind_programs"), 0, "the reader writes nothing");
        assert!(waited(&shared, 1, 0, "behind_reads") > 0, "{}: the writer waits for the reader", layer.name);
    }
}

#[test]
fn sums_over_tenants_are_the_figures_of_the_run() {
    // A drive with zones refuses these writes.
    for entry in layers().filter(|entry| !entry.zoned) {
        let timed = ran(entry.name, &[], None, Fidelity::Timed, Payload::None);
        check_sums(entry.name, &timed);
        check_sums(entry.name, &ran(entry.name, &[], None, Fidelity::Count, Payload::None));
        let owned = ["owners", "host_writes"][usize::from(entry.is_file_system())];
        assert_eq!(timed.tenancy.as_ref().unwrap().programmed_by, owned, "{}", entry.name);
        // A verified run copies page by page.
        let verified = ran(entry.name, &[], None, Fidelity::Timed, Payload::Tag);
        let programmed = |run: &Summary| run.tenants.iter().map(|one| one.bytes_programmed).collect::<Vec<_>>();
        assert_eq!(programmed(&timed), programmed(&verified), "{}", entry.name);
    }
}

/// A drive of 4 KiB pages on which a job writes each page once, and another the pages of its own half again and again.
#[test]
fn copies_belong_to_the_tenant_whose_data_moves() {
    let jobs = "[global]\nbs=4k\nsize=2m\n[cold]\nrw=write\n[hot]\nrw=randwrite\nnorandommap\noffset=2m\nio_size=40m\n";
    let jobs = format!("{jobs}[reader]\nrw=randread\nsize=1m\nnumjobs=2\n");
    let drive = ["part.page_size=4KiB", "part.t_read_words=[]", "ssd.over_provisioning=40%"];
    for fidelity in [Fidelity::Timed, Fidelity::Count] {
        let result = ran("page", &drive, Some(&jobs), fidelity, Payload::None);
        check_sums("page", &result);
        let [cold, hot, reader] = &result.tenants[..] else { panic!("three sections") };
        assert_eq!((cold.bytes_written, hot.bytes_written, reader.bytes_written), (2 << 20, 40 << 20, 0));
        assert_eq!((reader.requests.read, reader.bytes_programmed, reader.write_amplification), (512, 0, None));
        assert!(cold.bytes_programmed >= 2 << 20 && hot.bytes_programmed >= 40 << 20);
        assert_eq!(result.tenancy.as_ref().unwrap().bytes_without_tenant, 0);
        assert!(result.gc.moved_subpages > 0, "collection must move data");
        let moved = cold.bytes_programmed + hot.bytes_programmed - (42 << 20);
        assert_eq!(moved, result.gc.moved_subpages * 4096);
    }
}

#[test]
fn a_run_of_one_tenant_names_none() {
    let jobs = "[only]\nbs=4k\nsize=1m\nrw=randwrite\nnumjobs=2\n";
    let result = ran("page", &[], Some(jobs), Fidelity::Timed, Payload::None);
    assert!(result.tenants.is_empty() && result.tenancy.is_none());
    assert!(!serde_json::to_string(&result).unwrap().contains("tenan"));
}

#[test]
fn shares_of_host_writes_leave_the_rounding_without_tenant() {
    let tenant = |bytes_written| TenantFigures { bytes_written, ..TenantFigures::default() };
    let mut tenants = [tenant(1), tenant(2), tenant(0)];
    let tenancy = Tenancy::divide(&mut tenants, 100, None);
    assert_eq!(tenants.each_ref().map(|one| one.bytes_programmed), [33, 66, 0]);
    assert_eq!((tenancy.programmed_by, tenancy.bytes_without_tenant), ("host_writes", 1));
    assert_eq!(tenants[1].write_amplification, Some(33.0));
}
