//! Tests of the module `controller`.

use super::*;
use crate::queues::QueueSettings;
use palimpsest_flash::command::Directives;
use palimpsest_flash::geometry::Extent;

fn times() -> ControllerTimes {
    let queues = QueueSettings { burst: 1, ..QueueSettings::default() };
    ControllerTimes {
        t_link: 3,
        t_request: 10,
        t_read: 100,
        t_write: 50,
        t_end: 7,
        queues,
        ..ControllerTimes::default()
    }
}

/// Submits request `id` of `job` at `now`.
fn submit(controller: &mut Controller, now: Nanos, job: u32, kind: RequestKind, id: u32) {
    let directives = Directives { queue: job, ..Directives::NONE };
    let extent = Extent { sector: 0, sectors: u32::from(kind != RequestKind::Flush) };
    controller.submit(now, &Command::new(kind, extent).with(directives), id);
}

/// Times at which all requests become ready.
fn drain(controller: &mut Controller) -> Vec<(Nanos, u32)> {
    let mut ready = Vec::new();
    while controller.next_time() < Nanos::MAX {
        let now = controller.next_time();
        ready.extend(controller.ready(now).map(|id| (now, id)));
    }
    ready
}

#[test]
fn processors_take_requests_one_by_one_and_waits_overlap() {
    let mut controller = Controller::new(times());
    submit(&mut controller, 0, 0, RequestKind::Read, 1);
    submit(&mut controller, 0, 0, RequestKind::Read, 2);
    submit(&mut controller, 1, 0, RequestKind::Write, 3);
    assert!(controller.ready(82).is_none() && controller.holds(1) && controller.holds(3));
    assert_eq!(drain(&mut controller), [(83, 3), (113, 1), (123, 2)]);
    submit(&mut controller, 1000, 0, RequestKind::Flush, 4);
    assert_eq!(drain(&mut controller), [(1063, 4)]);
    assert!(!controller.holds(4));
}

#[test]
fn submission_queues_take_turns() {
    let mut controller = Controller::new(ControllerTimes { t_link: 0, t_read: 0, ..times() });
    (0..4).for_each(|id| submit(&mut controller, 0, 0, RequestKind::Read, id));
    submit(&mut controller, 15, 1, RequestKind::Read, 9);
    // Request 9 waits only for the request in service at 15, not for all that were submitted earlier.
    assert_eq!(drain(&mut controller), [(10, 0), (20, 1), (30, 9), (40, 2), (50, 3)]);
}

#[test]
fn processors_of_writes_delay_no_reads() {
    let mut controller = Controller::new(ControllerTimes { t_write_request: 40, t_read: 0, t_write: 0, ..times() });
    (0..3).for_each(|id| submit(&mut controller, 0, 0, RequestKind::Write, id));
    submit(&mut controller, 0, 0, RequestKind::Flush, 3);
    submit(&mut controller, 0, 0, RequestKind::Read, 4);
    // The flush follows the writes before it and takes no time of its own.
    assert_eq!(drain(&mut controller), [(53, 0), (53, 4), (93, 1), (133, 2), (133, 3)]);
}

#[test]
fn requests_pass_a_controller_without_time() {
    assert!(!Controller::new(ControllerTimes::default()).takes_time());
    assert!(!Controller::new(ControllerTimes { t_end: 9, ..ControllerTimes::default() }).takes_time());
    assert!(Controller::new(ControllerTimes { t_link: 1, ..ControllerTimes::default() }).takes_time());
}

/// The third request is fetched when one of two completes.
#[test]
fn a_full_controller_fetches_at_completions() {
    let queues = QueueSettings { commands: 2, burst: 1, ..QueueSettings::default() };
    let mut controller = Controller::new(ControllerTimes { queues, ..ControllerTimes::default() });
    assert!(controller.takes_time());
    (0..3).for_each(|id| submit(&mut controller, 5, 0, RequestKind::Write, id));
    submit(&mut controller, 5, 1, RequestKind::Read, 9);
    assert_eq!(drain(&mut controller), [(5, 0), (5, 9)]);
    assert!(controller.holds(1) && controller.next_time() == Nanos::MAX);
    controller.release(80);
    assert_eq!(drain(&mut controller), [(80, 1)]);
    controller.release(90);
    controller.release(90);
    assert_eq!(drain(&mut controller), [(90, 2)]);
    submit(&mut controller, 95, 0, RequestKind::Read, 4);
    assert_eq!(drain(&mut controller), [(95, 4)]);
    submit(&mut controller, 96, 0, RequestKind::Read, 5);
    controller.clear();
    assert!(!controller.holds(5) && controller.next_time() == Nanos::MAX);
    submit(&mut controller, 97, 0, RequestKind::Read, 6);
    assert_eq!(drain(&mut controller), [(97, 6)]);
}
