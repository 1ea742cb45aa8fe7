//! Tests of the module `queues`: orders counted by hand.

use super::*;

fn settings(arbitration: Arbitration, burst: u32) -> QueueSettings {
    let classes = Classes::parse("urgent:high:medium:low:high").unwrap();
    let weights = Weights::parse("3:2:1").unwrap();
    QueueSettings { arbitration, burst, classes, weights, ..QueueSettings::default() }
}

/// Queues with commands of these numbers, by job.
fn filled(settings: QueueSettings, commands: &[&[u32]]) -> Queues {
    let mut queues = Queues::new(settings);
    for (job, ids) in (0..).zip(commands) {
        ids.iter().for_each(|&id| queues.submit(0, job, Submitted { at: 0, kind: RequestKind::Read, id }));
    }
    queues
}

fn order(mut queues: Queues) -> Vec<u32> {
    std::iter::from_fn(|| queues.fetch(0)).map(|command| command.id).collect()
}

#[test]
fn round_robin_takes_a_burst_of_each_queue() {
    let of = |burst| {
        let settings = settings(Arbitration::RoundRobin, burst);
        order(filled(settings, &[&[0, 1, 2, 3, 4], &[10, 11, 12], &[20]]))
    };
    assert_eq!(of(1), [0, 10, 20, 1, 11, 2, 12, 3, 4]);
    assert_eq!(of(2), [0, 1, 10, 11, 20, 2, 3, 12, 4]);
    assert_eq!(of(0), [0, 1, 2, 3, 4, 10, 11, 12, 20]);
}

#[test]
fn weights_bound_the_commands_of_a_class_in_a_round() {
    let of = |burst| {
        let commands: [&[u32]; 5] = [&[0, 1], &[10, 11, 12, 13], &[20, 21, 22], &[30, 31], &[40, 41, 42, 43]];
        order(filled(settings(Arbitration::Weighted, burst), &commands))
    };
    assert_eq!(of(1), [0, 1, 10, 40, 11, 20, 21, 30, 41, 12, 42, 22, 31, 13, 43]);
    // A burst is at most what is left of the weight.
    assert_eq!(of(4), [0, 1, 10, 11, 12, 20, 21, 30, 40, 41, 42, 22, 31, 13, 43]);
}

#[test]
fn urgent_commands_overtake_all_others() {
    let mut queues = filled(settings(Arbitration::Weighted, 1), &[&[], &[10, 11]]);
    queues.submit(0, 0, Submitted { at: 7, kind: RequestKind::Write, id: 0 });
    // The urgent command is on its way until 7.
    assert_eq!(queues.fetch(6).map(|command| command.id), Some(10));
    assert_eq!(queues.fetch(7).map(|command| command.id), Some(0));
    assert_eq!((queues.first_at(), queues.fetch(7).map(|command| command.id)), (0, Some(11)));
    assert_eq!((queues.first_at(), queues.fetch(7)), (Nanos::MAX, None));
}

#[test]
fn commands_take_the_queues_of_their_tenant_in_turn() {
    let two = QueueSettings { each: 2, ..settings(Arbitration::RoundRobin, 1) };
    // Queues of job 0: 0 and 2, 1 and 3; of job 1: 10 and 12, 11.
    assert_eq!(order(filled(two.clone(), &[&[0, 1, 2, 3], &[10, 11, 12]])), [0, 1, 10, 11, 2, 3, 12]);
    let mut queues = Queues::new(QueueSettings { each: 1, ..two });
    queues.set_tenants(Vec::new(), true);
    for (id, owner) in (0..).zip([70, 70, 70, 5]) {
        queues.submit(owner, 0, Submitted { at: 0, kind: RequestKind::Read, id });
    }
    assert_eq!(order(queues), [0, 3, 1, 2]);
}

#[test]
fn classes_and_weights_are_read_as_written() {
    assert_eq!(Classes::parse("urgent : low").unwrap().text(), "urgent:low");
    assert!(Classes::parse("urgent:").is_err() && Classes::parse("admin").is_err());
    assert_eq!(Weights::parse("256:1:12").unwrap().text(), "256:1:12");
    let wrong = ["8:4", "8:4:0", "8:4:257", "8:4:2:1", "8:x:2", ""];
    assert!(wrong.iter().all(|text| Weights::parse(text).is_err()));
}
