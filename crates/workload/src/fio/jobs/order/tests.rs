//! Tests of the module `order`.

use super::super::{JobFile, JobsSource};
use crate::request::{Command, Request, Source};

/// The jobs of one section run as among the others, whose orders have no effect.
#[test]
fn one_section_runs_alone() {
    let text = "[global]\nbs=4k\nsize=1m\nnumber_ios=3\n[a]\nrw=randread\nexitall\n[b]\nrw=write\nnumjobs=2\n\
                [c]\nwait_for=a\nrw=randwrite\n";
    let source = || JobFile::parse(text, "jobs").unwrap().source(1 << 24, 7).unwrap();
    let all =
        |mut source: JobsSource| -> Vec<Request> { std::iter::from_fn(|| source.next_request().unwrap()).collect() };
    let together = all(source());
    for (tenant, owners) in [(0, 0..1), (1, 1..3), (2, 3..4)] {
        let mut alone = source();
        assert!(alone.keep_only(tenant));
        assert_eq!(alone.expected_requests(), Some(3 * u64::from(owners.end - owners.start)));
        let found: Vec<_> = all(alone).iter().map(|request| request.command).collect();
        let expected = together.iter().filter(|request| owners.contains(&request.owner()));
        let mut expected: Vec<_> = expected.map(|request| request.command).collect();
        if tenant == 0 {
            assert_eq!(found, expected);
            continue;
        }
        // The end of the first section ended the others.
        expected.truncate(found.len());
        assert!(found.len() == 3 * owners.len());
        let of = |owner, from: &[Command]| -> Vec<Command> {
            from.iter().filter(|command| command.directives.owner == owner).copied().collect()
        };
        owners.for_each(|owner| assert!(of(owner, &found).starts_with(&of(owner, &expected))));
    }
    assert!(!source().keep_only(3));
}
