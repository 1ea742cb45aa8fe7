//! Readers: small traces of each format, and hostile ones.

use super::super::{FORMATS, ObjectRequest, Operation, open_objects};
use crate::fuzzing::{OBJECT_SAMPLES, fuzz_objects};
use std::io::Cursor;

fn read(bytes: &[u8], format: Option<&str>, skip_bad: bool) -> Result<Vec<ObjectRequest>, String> {
    let input = Box::new(Cursor::new(bytes.to_vec()));
    let mut objects = open_objects(input, "t", format, 1000, skip_bad).map_err(|error| error.to_string())?;
    let mut all = Vec::new();
    while let Some(request) = objects.next_object().map_err(|error| error.to_string())? {
        all.push(request);
    }
    Ok(all)
}

/// Time in ms, operation, bytes, class.
fn shown(bytes: &[u8]) -> Vec<(u64, Operation, u64, u32)> {
    let all = read(bytes, None, false).unwrap();
    all.iter().map(|each| (each.arrival / 1_000_000, each.operation, each.bytes, each.class)).collect()
}

fn record((time, object, size, next): (u32, u64, u32, i64)) -> Vec<u8> {
    [&time.to_le_bytes()[..], &object.to_le_bytes(), &size.to_le_bytes(), &next.to_le_bytes()].concat()
}

#[test]
fn cachelib_counts_keys_and_repeats() {
    use Operation::{Delete, Get, Put};
    let text = "key,op,size,op_count,key_size\n12,SET,82,1,40\n12,GET,0,1,40\n7,GET_LEASE,169,2,78\n7,DELETE,0,1,78\n";
    assert_eq!(
        shown(text.as_bytes()),
        [(0, Put, 122, 0), (0, Get, 0, 0), (0, Get, 247, 0), (0, Get, 247, 0), (0, Delete, 0, 0)]
    );
    let timed =
        "op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase\n60,a,48,GET,1,87,1,0,3\n63,b,5,SET,1,10,0,0,3\n";
    assert_eq!(shown(timed.as_bytes()), [(0, Get, 135, 0), (3000, Put, 15, 0)]);
    let keys: Vec<u64> = read(text.as_bytes(), None, false).unwrap().iter().map(|each| each.key).collect();
    assert!(keys[0] == keys[1] && keys[2] == keys[4] && keys[0] != keys[2]);
}

#[test]
fn mlperf_plays_the_tier_of_the_drive() {
    let text = "Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase\n\
                1740553426.194021,Write,131072,Tier-0,a/u0,Prefill\n\
                1740553426.194308,Read,131072,Tier-0,a/u0,Decode\n1740553426.200521,Write,131072,Tier-2,a/u0,Evict\n\
                1740553427.200590,Read,131072,Tier-2,a/u0,Decode\n";
    assert_eq!(shown(text.as_bytes()), [(0, Operation::Put, 131_072, 2), (1000, Operation::Get, 131_072, 1)]);
    let other = text.replace("Tier-2", "Tier-1");
    assert!(read(other.as_bytes(), None, false).unwrap_err().contains("the file holds no request"));
}

#[test]
fn blocks_of_prompts_have_the_rest_of_the_tokens() {
    use Operation::Get;
    let mooncake = "{\"timestamp\": 0, \"input_length\": 700, \"output_length\": 5, \"hash_ids\": [0, 1]}\n\
                    {\"timestamp\": 3000, \"input_length\": 512, \"output_length\": 5, \"hash_ids\": [0]}\n";
    assert_eq!(shown(mooncake.as_bytes()), [(0, Get, 512_000, 0), (0, Get, 188_000, 0), (3000, Get, 512_000, 0)]);
    let qwen = "{\"chat_id\": 1, \"parent_chat_id\": -1, \"timestamp\": 1.5, \"input_length\": 20, \
                \"type\": \"text\", \"turn\": 1, \"hash_ids\": [9, 10]}\n\
                {\"chat_id\": 2, \"parent_chat_id\": 1, \"timestamp\": 61.114, \"input_length\": 16, \
                \"type\": \"text\", \"turn\": 2, \"hash_ids\": [9]}";
    assert_eq!(shown(qwen.as_bytes()), [(0, Get, 16_000, 0), (0, Get, 4_000, 0), (59_614, Get, 16_000, 0)]);
}

#[test]
fn oracle_general_is_gets() {
    let bytes: Vec<u8> = [(5, 77, 100, 2), (5, 3, 9000, -1), (6, 77, 100, -1)].into_iter().flat_map(record).collect();
    assert_eq!(
        shown(&bytes),
        [(0, Operation::Get, 100, 0), (0, Operation::Get, 9000, 0), (1000, Operation::Get, 100, 0)]
    );
    let cut = read(&bytes[..60], Some("oraclegeneral"), false).unwrap_err();
    assert_eq!(cut, "t:3: the file ends 12 bytes into a record of 24; the file is read as oraclegeneral");
    assert_eq!(read(&bytes[..60], Some("oraclegeneral"), true).unwrap().len(), 2);
}

/// The format without a sample of text.
const BINARY: &str = "oraclegeneral";

#[test]
fn every_sample_is_recognised() {
    let named: Vec<&str> = OBJECT_SAMPLES.iter().map(|(name, _)| *name).collect();
    let known: Vec<&str> = FORMATS.iter().map(|format| format.name).filter(|name| *name != BINARY).collect();
    assert_eq!(named, known);
    for (name, text) in OBJECT_SAMPLES {
        let objects = open_objects(Box::new(Cursor::new(text.as_bytes())), "t", None, 1000, false).unwrap();
        assert_eq!(objects.format().map(|format| format.name), Some(*name));
        assert!(!read(text.as_bytes(), None, false).unwrap().is_empty());
    }
}

#[test]
fn faults_name_line_and_column() {
    let csv = |line: &str| read(format!("key,op,size\n1,GET,5\n{line}\n").as_bytes(), None, false).unwrap_err();
    assert_eq!(
        csv("1,TOUCH,5"),
        "t:3: column op: expected GET, SET or DELETE, found \"TOUCH\" in \"1,TOUCH,5\\n\"; the file is read as cachelib"
    );
    for (line, part) in
        [("1,GET", "column size is empty"), (",GET,5", "column key is empty"), ("1,GET,5000000000", "4 GiB")]
    {
        assert!(csv(line).contains(part), "{line}: {}", csv(line));
    }
    let json = |line: &str| read(line.as_bytes(), Some("mooncake"), false).unwrap_err();
    for (line, part) in [
        ("{", "t:1: no request: EOF"),
        ("{\"timestamp\": -1, \"input_length\": 5, \"hash_ids\": []}", "timestamp or input_length"),
        ("{\"timestamp\": 1, \"input_length\": 5, \"hash_ids\": [-1]}", "no request: invalid value"),
        ("{\"timestamp\": 1, \"input_length\": 5, \"hash_ids\": [1], \"chat_id\": 2}", "has a chat_id"),
        ("{\"timestamp\": 1, \"input_length\": 5, \"hash_ids\": []}", "t: the file holds no request"),
    ] {
        assert!(json(line).contains(part), "{line}: {}", json(line));
    }
    assert!(read(b"hello\n", None, false).unwrap_err().contains("begins like no object trace"));
    assert!(read(b"", None, false).unwrap_err().contains("begins like no object trace"));
    let unknown = read(b"", Some("mooncak"), false).unwrap_err();
    assert!(unknown.starts_with("--from mooncak: unknown format of object traces \"mooncak\"; did you mean mooncake?"));
}

/// Requests are sorted by time up to a minute, and a longer line than any is skipped as a bad one.
#[test]
fn order_and_length_are_checked() {
    let csv = |times: [u64; 2]| format!("key,op,size,op_time\n1,GET,5,{}\n2,GET,5,{}\n", times[0], times[1]);
    let of = |times| read(csv(times).as_bytes(), None, false).unwrap();
    let unsorted = of([50, 4]);
    let sorted = of([4, 50]);
    assert_eq!([0, 1].map(|at| unsorted[at].arrival), [0, 46_000_000_000]);
    assert_eq!([0, 1].map(|at| unsorted[at].key), [1, 0].map(|at| sorted[at].key));
    assert!(read(csv([65, 4]).as_bytes(), None, false).unwrap_err().starts_with("t:3: time goes back by 61 s"));
    let long = format!("key,op,size\n{},GET,5\n2,GET,5\n", "x".repeat(5 << 20));
    assert!(read(long.as_bytes(), None, false).unwrap_err().contains("the line is longer than 4194304 bytes"));
    assert_eq!(read(long.as_bytes(), None, true).unwrap().len(), 1);
}

#[test]
fn mutated_samples_do_not_panic() {
    let mut rng = palimpsest_flash::rng::Rng::new(9, 9);
    for (_, text) in OBJECT_SAMPLES {
        for _ in 0..300 {
            let mut bytes = text.as_bytes().to_vec();
            for _ in 0..1 + rng.below(4) {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] = b"0123456789,.{}[]\"-\n\xff"[rng.below(20) as usize];
            }
            fuzz_objects(&bytes);
        }
    }
}
