//! The one thread that runs the drive, and its queue of requests.
//!
//! Connections put requests into a queue and wait; the drive serves one after the other, so each is atomic. A read or write
//! that does not cover whole sectors is widened: the drive reads the sectors at its edges and writes them back (and
//! counts that). A trim is narrowed to whole sectors, and the drive unmaps the whole units of its map within. A durable
//! write is a write and a flush.
//!
//! Writes are in a volatile cache until they are flushed, as NVMe has it, and a power cut may lose them. So a cut refuses the request in
//! which it comes, and every later one of the clients that were connected then: what they wrote is not what they would go on with.

use crate::transmission::{Refusal, Request};
use palimpsest_lab::error::{Error, Result};
use palimpsest_lab::geometry::Extent;
use palimpsest_lab::run::served::{Failure, Reply, Served};
use palimpsest_lab::units::SECTOR_BYTES;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

/// Requests in the queue; beyond it, connections wait.
const QUEUE: usize = 64;

/// A message to the thread of the drive.
pub enum Job {
    /// Serve a request.
    Serve {
        /// The request.
        request: Request,
        /// How often the power had failed when its client connected.
        since: u64,
        /// Where the answer goes.
        answer: Sender<std::result::Result<Vec<u8>, Refusal>>,
    },
    /// End, after the requests before it in the queue.
    Stop,
}

/// The two ends of the queue.
pub fn queue() -> (SyncSender<Job>, Receiver<Job>) {
    sync_channel(QUEUE)
}

/// How often the power failed.
#[derive(Debug, Default)]
pub struct PowerCuts(AtomicU64);

impl PowerCuts {
    /// How often so far.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Hears what happens to the drive.
pub trait Witness {
    /// The drive failed, for good.
    fn failed(&self, error: &Error);

    /// The power failed, and the drive has recovered.
    fn power_lost(&self);
}

/// Sends `request` of a client that connected when the power had failed `since` times to the thread of the drive, and waits for the
/// answer.
///
/// # Errors
/// [`Refusal`]: the power failed since, the drive failed, or has ended.
pub fn request(jobs: &SyncSender<Job>, since: u64, request: Request) -> std::result::Result<Vec<u8>, Refusal> {
    let (answer, answered) = channel();
    jobs.send(Job::Serve { request, since, answer }).map_err(|_| Refusal::Ending)?;
    answered.recv().unwrap_or(Err(Refusal::Ending))
}

/// Runs the drive until [`Job::Stop`]. After the drive's first error every request is refused, as its flash may hold part of a
/// write; at the end of its life all but reads are. `witness` hears of it, and of power cuts, immediately.
///
/// # Errors
/// That first error.
pub fn work(
    served: &mut Served<'_>,
    jobs: &Receiver<Job>,
    power_cuts: &PowerCuts,
    witness: &dyn Witness,
) -> Result<()> {
    let (mut state, mut worn_out) = (Ok(()), false);
    for job in jobs {
        let Job::Serve { request, since, answer } = job else { break };
        let outcome = match &state {
            Err(_) => Err(Refusal::Failed),
            Ok(()) if since < power_cuts.count() => Err(Refusal::PowerLost),
            Ok(()) => serve(served, request).map_err(|failure| match failure {
                Failure::PowerLost => {
                    power_cuts.0.fetch_add(1, Ordering::SeqCst);
                    witness.power_lost();
                    Refusal::PowerLost
                }
                Failure::Unreadable => Refusal::Failed,
                Failure::WornOut(why) => {
                    if !worn_out {
                        witness.failed(&Error::WornOut(why));
                    }
                    worn_out = true;
                    Refusal::Failed
                }
                Failure::Drive(error) => {
                    witness.failed(&error);
                    state = Err(error);
                    Refusal::Failed
                }
            }),
        };
        // A closed connection needs no answer.
        let _ = answer.send(outcome);
    }
    state
}

/// The sectors that overlap a range of bytes.
fn widened(offset: u64, length: u64) -> Extent {
    let sector = offset / SECTOR_BYTES;
    Extent { sector, sectors: ((offset + length).div_ceil(SECTOR_BYTES) - sector) as u32 }
}

fn serve(served: &mut Served<'_>, request: Request) -> Reply<Vec<u8>> {
    match request {
        Request::Read { offset, length } => {
            let mut bytes = served.read(widened(offset, u64::from(length)))?;
            bytes.drain(..(offset % SECTOR_BYTES) as usize);
            bytes.truncate(length as usize);
            Ok(bytes)
        }
        Request::Write { offset, bytes, durable } => {
            write(served, offset, bytes)?;
            if durable { served.flush().map(|()| Vec::new()) } else { Ok(Vec::new()) }
        }
        Request::Trim { offset, length } => {
            let first = offset.div_ceil(SECTOR_BYTES);
            let sectors = ((offset + u64::from(length)) / SECTOR_BYTES).saturating_sub(first) as u32;
            if sectors > 0 {
                served.trim(Extent { sector: first, sectors })?;
            }
            Ok(Vec::new())
        }
        Request::Flush => served.flush().map(|()| Vec::new()),
    }
}

fn write(served: &mut Served<'_>, offset: u64, bytes: Vec<u8>) -> Reply<()> {
    let extent = widened(offset, bytes.len() as u64);
    let whole = u64::from(extent.sectors) * SECTOR_BYTES;
    if whole == bytes.len() as u64 {
        return served.write(extent.sector, bytes.into());
    }
    let mut sectors = vec![0; whole as usize];
    let last = Extent { sector: extent.end() - 1, sectors: 1 };
    let per_sector = SECTOR_BYTES as usize;
    sectors[..per_sector].copy_from_slice(&served.read(Extent { sectors: 1, ..extent })?);
    if last.sector > extent.sector {
        sectors[whole as usize - per_sector..].copy_from_slice(&served.read(last)?);
    }
    let begin = (offset - extent.sector * SECTOR_BYTES) as usize;
    sectors[begin..begin + bytes.len()].copy_from_slice(&bytes);
    served.write(extent.sector, sectors.into())
}
