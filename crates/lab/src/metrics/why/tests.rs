//! Tests of the module `why`.

use super::*;
use crate::metrics::recorder::{FlashTotals, Recorder};
use palimpsest_flash::command::Command;
use palimpsest_flash::geometry::Extent;
use palimpsest_flash::rng::Rng;
use palimpsest_sim::observe::Observer;

const READ: Command = Command::new(RequestKind::Read, Extent { sector: 0, sectors: 1 });

#[test]
fn parts_sum_to_the_percentiles_of_the_run() {
    let mut rng = Rng::new(7, 0);
    let mut recorder = Recorder::new(0, FlashTotals::default(), false);
    for _ in 0..5000 {
        let mut parts = Parts::default();
        (0..4).for_each(|_| parts[rng.below(PART_NAMES.len() as u64) as usize] = 1000 + rng.below(90_000));
        let latency = parts.iter().sum();
        recorder.request_explained(&READ, &parts, &Vec::new());
        recorder.request_completed(RequestKind::Read, 512, latency, latency);
    }
    let explained = &recorder.why.explanations().expect("requests")["read"];
    let figures =
        [("p50", 500), ("p99", 990), ("p999", 999)].map(|(name, rank)| (name, recorder.read.percentile(rank)));
    for (name, figure) in figures {
        let Explained { requests, latency_ns, parts_ns } = &explained[name];
        assert_eq!((*latency_ns, parts_ns.values().sum::<u64>() / requests), (figure, figure), "{name}");
    }
    assert_eq!((explained["max"].requests, explained["max"].latency_ns), (1, recorder.read.max()));
    assert_eq!(Why::default().explanations(), None);
}
