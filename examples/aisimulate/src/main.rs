//! KV blocks of a language-model server on a simulated drive: the p99 of a fetch beside the writes of evicted blocks.
//!
//! aisimulate-core simulates the server. Its SSD tier shares a bandwidth; here the blocks are reads and writes of a
//! [`Drive`] whose clock follows the simulation. The same requests run on the tier as shipped, on a drive with so much
//! flash that nothing is collected, and on a drive of the same size that collects garbage.
//!
//! Ignored: a file system, and trims of evicted blocks, whose slots later blocks overwrite.

use aisimulate_core::engine::transfers::{DEVICE, Device, READS};
use aisimulate_core::replay::{ReplayEngineFactory, ReplaySpec, Replayer};
use palimpsest_drive::{Drive, Figures, Nanos, Ticket, read, write};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Tokens of a block, and bytes of a token.
const TOKENS: u64 = 16;
const TOKEN: u64 = 32 << 10;
const BLOCK: u64 = TOKENS * TOKEN;
/// Blocks of the tier.
const BLOCKS: u64 = 1200;
/// Conversations, the tokens of each, and requests.
const SESSIONS: u64 = 80;
const PROMPT: u64 = 512;
const REQUESTS: u64 = 1500;
/// Mean time between requests.
const GAP_MS: f64 = 150.0;

struct Ssd {
    drive: Arc<Mutex<Drive>>,
    /// The job of each request of the drive.
    tickets: BTreeMap<Ticket, u64>,
    /// Requests of each job that have not completed.
    left: BTreeMap<u64, usize>,
}

fn to_ns(ms: f64) -> Nanos {
    (ms * 1e6).round() as Nanos
}

impl Device for Ssd {
    fn submit(&mut self, job: u64, is_write: bool, slots: &[u64], now: f64) {
        let mut drive = self.drive.lock().unwrap();
        let at = to_ns(now).max(drive.now());
        for slot in slots {
            let command = if is_write { write(slot * BLOCK, BLOCK) } else { read(slot * BLOCK, BLOCK) };
            self.tickets.insert(drive.submit(command.unwrap(), at).unwrap(), job);
        }
        self.left.insert(job, slots.len());
    }

    fn next_event(&self) -> Option<f64> {
        self.drive.lock().unwrap().next_time().map(|ns| ns as f64 / 1e6)
    }

    fn advance(&mut self, target: f64) -> Vec<(u64, f64)> {
        let mut drive = self.drive.lock().unwrap();
        let mut done = Vec::new();
        loop {
            drive.advance(to_ns(target)).unwrap();
            let completed: Vec<_> = drive.completed().collect();
            if completed.is_empty() {
                return done;
            }
            for each in completed {
                let job = self.tickets.remove(&each.ticket).unwrap();
                let left = self.left.get_mut(&job).unwrap();
                *left -= 1;
                if *left == 0 {
                    self.left.remove(&job);
                    done.push((job, each.at as f64 / 1e6));
                }
            }
        }
    }
}

/// A generator of random numbers, SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Random conversations continue; each request has the whole conversation as its prompt.
fn requests() -> Vec<Value> {
    let (mut state, mut at) = (1, 0.0);
    let request = |number| {
        let first = random(&mut state) % SESSIONS * PROMPT;
        at += GAP_MS * 2.0 * (random(&mut state) % 1000) as f64 / 1000.0;
        json!({
            "id": format!("r{number}"), "arrival_time_ms": at, "input_tokens": PROMPT, "output_tokens": 4,
            "input_token_ids": (first..first + PROMPT).collect::<Vec<_>>(),
        })
    };
    (0..REQUESTS).map(request).collect()
}

/// Runs the server; prints the times of fetches in ms, and the figures of the drive.
fn simulate(name: &str, drive: Option<Drive>) -> Option<Figures> {
    let drive = drive.map(|drive| Arc::new(Mutex::new(drive)));
    *DEVICE.lock().unwrap() = drive
        .clone()
        .map(|drive| Box::new(Ssd { drive, tickets: BTreeMap::new(), left: BTreeMap::new() }) as Box<dyn Device>);
    READS.lock().unwrap().clear();
    let spec: ReplaySpec = serde_json::from_value(json!({
        "version": 1, "requests": requests(),
        "topology": {"kind": "aggregated", "workers": {"initial_workers": 1}},
        "engine": {"rank": {
            "num_gpu_blocks": 128, "max_num_seqs": 4, "max_num_batched_tokens": 1024, "block_size": TOKENS,
            "kv_cache_bytes_per_token": TOKEN,
            "timing_model": {"type": "fixed", "prefill_ms": 20.0, "decode_ms": 5.0},
            "native_host_offload": {"num_host_blocks": 128},
            "g3_offload": {
                "scope": "worker_local", "num_g3_blocks": BLOCKS,
                "read_bandwidth_gbps": 3.0, "write_bandwidth_gbps": 1.0,
            },
        }},
    }))
    .unwrap();
    let report = Replayer::new(spec, ReplayEngineFactory::new()).unwrap().run().unwrap();
    assert_eq!(report.request_counts.completed_requests as u64, REQUESTS);
    let stats = report.g3_offload.unwrap();
    let mut reads = std::mem::take(&mut *READS.lock().unwrap());
    reads.sort_by(f64::total_cmp);
    let (mean, p99) = (reads.iter().sum::<f64>() / reads.len() as f64, reads[reads.len() * 99 / 100]);
    let figures = drive.map(|drive| drive.lock().unwrap().figures());
    let collected = figures.as_ref().map_or(0, |figures| figures.gc.runs);
    let (fetches, evicted) = (reads.len(), stats.evictions);
    println!("{name:<20} {fetches:>7} {evicted:>9} {collected:>11} {mean:>9.3} {p99:>9.3}");
    figures
}

fn main() {
    // Both drives have the same size and are overwritten at random; one has room for all writes of the run.
    let drive = |blocks: u32, over_provisioning| {
        let builder = Drive::builder("default").set("ssd.channels", "4").set("ssd.dies_per_chip", "2");
        let builder = builder.set("ssd.blocks_per_plane", &blocks.to_string());
        builder.set("ssd.over_provisioning", over_provisioning).precondition("fill:100%,random:1x").build().unwrap()
    };
    let (roomy, full) = (drive(1000, "2900%"), drive(38, "14%"));
    assert!(roomy.bytes() == full.bytes() && full.bytes() >= BLOCKS * BLOCK);
    println!("{:<20} fetches evictions collections   mean ms    p99 ms", "tier");
    simulate("bandwidth", None);
    let roomy = simulate("drive, roomy", Some(roomy)).unwrap();
    let full = simulate("drive, collecting", Some(full)).unwrap();
    assert!(roomy.gc.runs == 0 && full.gc.runs > 0);
}
