//! moonpool's storage contract, and the stalls of a disk that collects garbage, in moonpool's simulation.

use futures::future::join_all;
use futures::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use moonpool_core::{OpenOptions, Providers, StorageFile, StorageProvider, TimeProvider};
use moonpool_sim::executor::{Executor, spawn, until_stalled};
use moonpool_sim::{NetworkConfiguration, SimProviders, SimTimeProvider, SimWorld};
use palimpsest_drive::{Builder, Drive};
use palimpsest_moonpool::{BLOCK, Disk, WithDisk};
use std::io::SeekFrom;
use std::time::Duration;

/// The part of moonpool-sim's fixtures that its storage contract uses.
mod fixtures {
    pub(crate) trait Fixtures {
        fn path(&self, name: &str) -> String;
    }
}

include!(concat!(env!("OUT_DIR"), "/contract.rs"));

struct Root;

impl fixtures::Fixtures for Root {
    fn path(&self, name: &str) -> String {
        format!("/contract/{name}")
    }
}

type SimDisk = Disk<SimTimeProvider>;

/// A drive of one die, so that an erase delays every read.
fn drive(blocks: u32) -> Builder {
    let keys = [
        ("ssd.channels", "1"),
        ("ssd.dies_per_chip", "1"),
        ("part.pages_per_block", "48"),
        ("buffer.size", "256KiB"),
        ("sim.suspend", "none"),
    ];
    let builder = Drive::builder("default").set("ssd.blocks_per_plane", &blocks.to_string());
    keys.iter().fold(builder, |builder, (key, value)| builder.set(key, value))
}

/// Runs `work` in a simulation. `network` also has the random delays of sleeps.
fn simulate<F: Future<Output = ()> + Send + 'static>(
    seed: u64,
    network: NetworkConfiguration,
    work: fn(SimProviders) -> F,
) {
    let mut sim = SimWorld::new_with_network_config_and_seed(network, seed);
    let providers = SimProviders::new(sim.downgrade(), seed, [10, 0, 0, 1].into());
    Executor::new(seed).block_on(async move {
        let task = spawn("work", work(providers));
        loop {
            until_stalled().await;
            if task.is_finished() {
                return task.await.unwrap();
            }
            assert!(sim.has_pending_events(), "the work waits for nothing");
            sim.step();
        }
    });
}

#[test]
fn the_storage_contract_of_moonpool_holds() {
    for seed in 0..20 {
        simulate(seed, NetworkConfiguration::random_for_seed(), |providers| async move {
            let disk = Disk::new(drive(24), providers.time().clone()).unwrap();
            contract_storage::storage_contract(&WithDisk::new(providers, disk.clone()), &Root).await;
            assert!(disk.figures().requests.write > 0);
        });
    }
}

#[test]
fn files_keep_their_bytes_beside_each_other() {
    simulate(1, NetworkConfiguration::random_for_seed(), |providers| async move {
        let disk = Disk::new(drive(24), providers.time().clone()).unwrap();
        let mut one = disk.open("one", OpenOptions::create_write().read(true)).await.unwrap();
        let mut log = disk.open("log", OpenOptions::new().append(true).create(true).read(true)).await.unwrap();
        for number in 0..50_u8 {
            // Parts of blocks, across their borders.
            one.seek(SeekFrom::Start(u64::from(number) * 1000)).await.unwrap();
            let (part, line) = ([number; 1000], [number; 1500]);
            let written = futures::join!(one.write_all(&part), log.write_all(&line));
            written.0.and(written.1).unwrap();
        }
        one.set_len(30_500).await.unwrap();
        one.set_len(60_000).await.unwrap();
        disk.delete("log").await.unwrap();
        let (mut found, mut logged) = (Vec::new(), Vec::new());
        one.seek(SeekFrom::Start(0)).await.unwrap();
        one.read_to_end(&mut found).await.unwrap();
        log.seek(SeekFrom::Start(0)).await.unwrap();
        log.read_to_end(&mut logged).await.unwrap();
        let expected: Vec<u8> = (0..60_000).map(|at| if at < 30_500 { (at / 1000) as u8 } else { 0 }).collect();
        assert!(found == expected, "the file has other bytes");
        assert!(logged == (0..75_000).map(|at| (at / 1500) as u8).collect::<Vec<_>>(), "the log has other bytes");
        // More than the drive holds, unless the blocks of the truncated file are used again.
        for _ in 0..4 {
            one.seek(SeekFrom::Start(0)).await.unwrap();
            one.write_all(&vec![7; 6 << 20]).await.unwrap();
            one.set_len(0).await.unwrap();
        }
        let full = one.write_all(&vec![7; 1 << 30]).await.unwrap_err();
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
        assert!(disk.exists("one").await.unwrap() && !disk.exists("log").await.unwrap());
    });
}

const FILES: u64 = 4;
const FILE: u64 = 3 << 20;
const PROBES: u64 = 300;
/// `part.t_erase` of the drive.
const ERASE: Duration = Duration::from_millis(5);

/// Writes the files, and waits until the buffer is empty.
async fn fill(disk: &SimDisk, time: &SimTimeProvider) {
    for file in 0..FILES {
        let mut file = disk.open(&file.to_string(), OpenOptions::create_write()).await.unwrap();
        file.write_all(&vec![1; FILE as usize]).await.unwrap();
        file.sync_all().await.unwrap();
    }
    time.sleep(Duration::from_secs(1)).await.unwrap();
}

/// Latencies of reads of one block of each file at once, every 2 ms.
async fn probe(disk: &SimDisk, time: &SimTimeProvider) -> Vec<Vec<Duration>> {
    let begin = time.now();
    let mut latencies = Vec::new();
    for probe in 0..PROBES {
        time.sleep((begin + Duration::from_millis(2 * probe)).saturating_sub(time.now())).await.unwrap();
        let reads = (0..FILES).map(|file| async move {
            let mut file = disk.open(&file.to_string(), OpenOptions::read_only()).await.unwrap();
            file.seek(SeekFrom::Start(probe * 7 % (FILE / BLOCK) * BLOCK)).await.unwrap();
            let start = time.now();
            file.read_exact(&mut [0; BLOCK as usize]).await.unwrap();
            time.now() - start
        });
        latencies.push(join_all(reads).await);
    }
    latencies
}

/// Overwrites blocks of the files in turn, as long as `probe` takes.
async fn overwrite(disk: &SimDisk, time: &SimTimeProvider) {
    let end = time.now() + Duration::from_millis(2 * PROBES);
    let mut number = 0_u64;
    while time.now() < end {
        let mut file = disk.open(&(number % FILES).to_string(), OpenOptions::new().write(true)).await.unwrap();
        file.seek(SeekFrom::Start((number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % (FILE / BLOCK) * BLOCK))
            .await
            .unwrap();
        file.write_all(&[2; BLOCK as usize]).await.unwrap();
        time.sleep(Duration::from_micros(100)).await.unwrap();
        number += 1;
    }
}

#[test]
fn a_collection_stalls_all_files_of_one_disk() {
    simulate(1, NetworkConfiguration::fast_local(), |providers| async move {
        let time = providers.time().clone();
        let disk = |blocks| Disk::new(drive(blocks), time.clone()).unwrap();
        // The roomy drive has so many blocks that nothing is collected.
        let (roomy, busy, other, alone) = (disk(400), disk(24), disk(24), disk(24));
        for each in [&roomy, &busy, &other, &alone] {
            fill(each, &time).await;
        }
        let expected = probe(&alone, &time).await;
        let (written, ()) = futures::join!(probe(&roomy, &time), overwrite(&roomy, &time));
        let (stalled, undisturbed, ()) =
            futures::join!(probe(&busy, &time), probe(&other, &time), overwrite(&busy, &time));
        assert_eq!(undisturbed, expected);
        assert!(roomy.figures().gc.runs == 0 && busy.figures().gc.runs > 0);
        // Reads wait for an erase, which nothing suspends here, and not as long for a program.
        assert!(slowest(&written).iter().all(|read| *read < ERASE / 2));
        assert!(slowest(&stalled).iter().all(|read| *read > ERASE));
        assert!(stalled.iter().any(|probe| probe.iter().all(|read| *read > ERASE)));
    });
}

/// The slowest read of each file.
fn slowest(latencies: &[Vec<Duration>]) -> Vec<Duration> {
    (0..FILES as usize).map(|file| latencies.iter().map(|probe| probe[file]).max().unwrap()).collect()
}
