//! `cachelib`: key-value traces of CacheLib's CacheBench, CSV with a heading that names `key`, `op`, `size` and perhaps
//! `op_count`, `key_size` and `op_time` (in seconds), in any order
//! (<https://cachelib.org/docs/Cache_Library_User_Guides/Cachebench_FB_HW_eval>).
//!
//! As in CacheBench, a lease is a plain operation, and a line counts `op_count` times. The size of an object is the sum
//! of key and value; a get of size 0 found nothing, so that a miss inserts nothing. Ignored: `ttl`, `cache_hits`, and
//! use cases.

use super::ObjectFormat;
use super::columns::{Header, hashed};
use crate::objects::{ObjectRequest, Operation};
use crate::trace::fields::{Fault, Parse, nanos, number};

const NAMES: [&str; 6] = ["key", "op", "size", "op_count", "key_size", "op_time"];

#[derive(Default)]
pub struct CacheLib {
    header: Option<Header<6>>,
}

impl ObjectFormat for CacheLib {
    const NAME: &'static str = "cachelib";
    const ABOUT: &'static str = "CSV of CacheLib: key, op, size [, op_count, key_size, op_time]";
    const TIME_GRAIN: u64 = 1_000_000_000;

    fn parse(&mut self, line: &[u8], _: u64, each: &mut dyn FnMut(ObjectRequest)) -> Parse<()> {
        let Some(header) = self.header else {
            self.header = Some(Header::read(line, NAMES, 3)?);
            return Ok(());
        };
        let [key, op, size, count, key_bytes, time] = header.of(line);
        let operation = match op {
            b"GET" | b"GET_LEASE" => Operation::Get,
            b"SET" | b"SET_LEASE" => Operation::Put,
            b"DELETE" => Operation::Delete,
            _ => return Err(Fault::column("op", "GET, SET or DELETE", op)),
        };
        let given = |field: &[u8], name: &str, usual: u64| match field {
            [] => Ok(usual),
            _ => number(field, name),
        };
        if key.is_empty() {
            return Err(Fault::new("column key is empty"));
        }
        let (value, count) = (number(size, "size")?, given(count, "op_count", 1)?);
        let bytes = if value == 0 { 0 } else { value.saturating_add(given(key_bytes, "key_size", 0)?) };
        if count == 0 || count > u16::MAX.into() {
            return Err(Fault::new(format!("column op_count: expected 1 to 65535, found {count}")));
        }
        if bytes > u32::MAX.into() {
            return Err(Fault::new(format!("column size: expected less than 4 GiB, found {bytes}")));
        }
        let arrival = nanos(given(time, "op_time", 0)?, 1_000_000_000, "op_time")?;
        let key = hashed(key);
        (0..count).for_each(|_| each(ObjectRequest { arrival, key, bytes, operation, class: 0 }));
        Ok(())
    }

    fn has_times(&self) -> bool {
        self.header.is_some_and(|header| header.has(5))
    }
}
