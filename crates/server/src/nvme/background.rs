//! Work that outlasts its command, in a thread of the service: sanitize, self-tests, and warnings of the SMART log.
//!
//! The work uses the drive as a client of its own, so its requests are a stream of their own in the record.

use super::Subsystem;
use super::controller::Event;
use super::health::Health;
use super::selftest::Read;
use crate::attach::disk::{self, Disk};
use crate::listen::Service;
use crate::page::Shown;
use crate::request::Request;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Time between two looks at the health of the drive.
const EVERY: Duration = Duration::from_millis(200);

/// Tells the thread that there is work.
#[derive(Default)]
pub struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    pub fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    fn wait(&self, at_most: Duration) {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(rung, at_most, |rung| !*rung);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }
}

/// Asks the drive for one request; returns whether it succeeded.
fn ask(disk: &mut dyn Disk, request: Request) -> bool {
    let (sender, answer) = std::sync::mpsc::channel();
    let since = disk.power_cuts();
    let tell = Box::new(move |done: Result<&[u8], i32>| {
        let _ = sender.send(done.is_ok());
    });
    disk.serve(since, &[request], &mut Vec::new(), tell);
    answer.recv().unwrap_or(false)
}

/// Works until the service ends.
pub fn run(service: &Service<'_>, subsystem: &Subsystem) {
    // A client that has a number only if there is work.
    let mut made = None;
    while !service.is_ending() {
        subsystem.work.wait(EVERY);
        if subsystem.tests.is_running() {
            let disk = made.get_or_insert_with(|| disk::of(service));
            subsystem.tests.run(subsystem.hours(), |offset, length| {
                let cuts = disk.power_cuts();
                if service.is_ending() {
                    Read::Broken
                } else if ask(&mut **disk, Request::Read { offset, length }) {
                    Read::Good
                } else if disk.power_cuts() > cuts || service.is_ending() {
                    Read::Broken
                } else {
                    Read::Unreadable
                }
            });
        }
        if subsystem.sanitize.is_in_progress() {
            let (facts, disk) = (&subsystem.facts, made.get_or_insert_with(|| disk::of(service)));
            let event = subsystem.sanitize.run(facts.bytes(), facts.unit_bytes, |offset, length| {
                subsystem.marks.clear(offset, length);
                let requests = super::namespaces::unmapped(offset, length);
                requests.into_iter().all(|request| !service.is_ending() && ask(&mut **disk, request))
            });
            subsystem.tell(|_| true, |controller| controller.report(event));
        }
        let health = Health::of(service, subsystem.is_worn_out());
        if health.is_spare_low() && subsystem.warn_of_spare() {
            subsystem.tell(|_| true, |controller| controller.report(Event::SPARE_LOW));
        }
    }
}
