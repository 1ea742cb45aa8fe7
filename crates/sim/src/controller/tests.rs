//! Tests of the module `controller`.

use super::*;

const TIMES: ControllerTimes = ControllerTimes { t_link: 3, t_request: 10, t_read: 100, t_write: 50, t_end: 7, ..NONE };
const NONE: ControllerTimes = ControllerTimes {
    t_link: 0,
    t_request: 0,
    t_write_request: 0,
    t_read: 0,
    t_write: 0,
    t_end: 0,
    t_buffer: 0,
    t_buffer_next: 0,
};

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
    let mut controller = Controller::new(TIMES);
    controller.submit(0, 0, RequestKind::Read, 1);
    controller.submit(0, 0, RequestKind::Read, 2);
    controller.submit(1, 0, RequestKind::Write, 3);
    assert!(controller.ready(82).is_none() && controller.holds(1) && controller.holds(3));
    assert_eq!(drain(&mut controller), [(83, 3), (113, 1), (123, 2)]);
    controller.submit(1000, 0, RequestKind::Flush, 4);
    assert_eq!(drain(&mut controller), [(1063, 4)]);
    assert!(!controller.holds(4));
}

#[test]
fn submission_queues_take_turns() {
    let mut controller = Controller::new(ControllerTimes { t_link: 0, t_read: 0, ..TIMES });
    (0..4).for_each(|id| controller.submit(0, 0, RequestKind::Read, id));
    controller.submit(15, 1, RequestKind::Read, 9);
    // Request 9 waits only for the request in service at 15, not for all that were submitted earlier.
    assert_eq!(drain(&mut controller), [(10, 0), (20, 1), (30, 9), (40, 2), (50, 3)]);
}

#[test]
fn processors_of_writes_delay_no_reads() {
    let mut controller = Controller::new(ControllerTimes { t_write_request: 40, t_read: 0, t_write: 0, ..TIMES });
    (0..3).for_each(|id| controller.submit(0, 0, RequestKind::Write, id));
    controller.submit(0, 0, RequestKind::Flush, 3);
    controller.submit(0, 0, RequestKind::Read, 4);
    // The flush follows the writes before it and takes no time of its own.
    assert_eq!(drain(&mut controller), [(53, 0), (53, 4), (93, 1), (133, 2), (133, 3)]);
}

#[test]
fn requests_pass_a_controller_without_time() {
    assert!(!Controller::new(ControllerTimes::default()).takes_time());
    assert!(!Controller::new(ControllerTimes { t_end: 9, ..ControllerTimes::default() }).takes_time());
    assert!(Controller::new(ControllerTimes { t_link: 1, ..ControllerTimes::default() }).takes_time());
}
