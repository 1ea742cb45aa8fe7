//! Tests of `crash`.

use super::*;

fn records(log: &[u8]) -> Vec<(u8, u8, u64, Vec<u8>)> {
    let (mut rest, mut found) = (log.strip_prefix(&MAGIC).unwrap(), Vec::new());
    while let Some((head, after)) = rest.split_at_checked(24) {
        let number = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap());
        let own = if head[0] == Kind::Zero as u8 { 0 } else { number(16) as usize };
        found.push((head[0], head[1], number(8), after[..own].to_vec()));
        rest = &after[own..];
    }
    assert!(rest.is_empty());
    found
}

#[test]
fn requests_are_recorded_in_order_and_served() {
    let log = Arc::new(Mutex::new(Log::new(Vec::new(), None).unwrap()));
    let mut disk = Recorded { bytes: vec![0; 16384], log: Arc::clone(&log) };
    let serve = |disk: &mut Recorded<Vec<u8>>, request, data: &[u8], expected: &'static [u8]| {
        disk.serve(0, &[request], &mut data.to_vec(), Box::new(move |done| assert_eq!(done, Ok(expected))));
    };
    serve(&mut disk, Request::Write { offset: 4096, length: 3, at: 1, durable: false }, b"-abc", &[]);
    serve(&mut disk, Request::Flush, &[], &[]);
    serve(&mut disk, Request::Read { offset: 4095, length: 5 }, &[], b"\0abc\0");
    serve(&mut disk, Request::Zero { offset: 4097, length: 1, unmap: true, durable: false }, &[], &[]);
    serve(&mut disk, Request::Write { offset: 9, length: 1, at: 0, durable: true }, b"x", &[]);
    serve(&mut disk, Request::Read { offset: 4096, length: 3 }, &[], b"a\0c");
    locked(&log).said(Kind::Mark, b"end").unwrap();
    let expected: [(u8, u8, u64, &[u8]); 5] =
        [(0, 0, 4096, b"abc"), (1, 0, 0, b""), (2, 0, 4097, b""), (0, 1, 9, b"x"), (4, 0, 0, b"end")];
    let expected = expected.map(|(kind, durable, offset, bytes)| (kind, durable, offset, bytes.to_vec()));
    assert_eq!(records(&locked(&log).into), expected);
}

#[test]
fn what_the_program_said_comes_before_the_next_request() {
    let path = std::env::temp_dir().join(format!("palimpsest-said-{}", std::process::id()));
    std::fs::write(&path, "put 1\n").unwrap();
    let log = Arc::new(Mutex::new(Log::new(Vec::new(), Some(File::open(&path).unwrap())).unwrap()));
    let mut disk = Recorded { bytes: vec![0; 4096], log: Arc::clone(&log) };
    for said in ["", "put 2\n"] {
        File::options().append(true).open(&path).unwrap().write_all(said.as_bytes()).unwrap();
        disk.serve(0, &[Request::Flush], &mut Vec::new(), Box::new(|done| assert!(done.is_ok())));
    }
    std::fs::remove_file(&path).unwrap();
    let text: Vec<(u8, Vec<u8>)> =
        records(&locked(&log).into).into_iter().map(|(kind, _, _, text)| (kind, text)).collect();
    assert_eq!(text, [(3, b"put 1\n".to_vec()), (1, vec![]), (3, b"put 2\n".to_vec()), (1, vec![])]);
}
