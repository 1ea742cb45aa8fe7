//! `mlperf`: `--io-trace-log` of the key-value cache benchmark of MLPerf Storage, CSV with the columns `Timestamp` (s),
//! `Operation`, `Object_Size_Bytes`, `Tier`, `Key` and `Phase` (mlcommons/storage, kv_cache_benchmark).
//!
//! Only `Tier-2` is the drive; other lines are skipped, because faster tiers served them. A read is a get, a write a
//! put. The class follows from the phase: 0 for `Prefill`, 1 for `Decode`, 2 for `Evict`.

use super::ObjectFormat;
use super::columns::{Header, hashed};
use crate::objects::{ObjectRequest, Operation};
use crate::trace::fields::{Fault, Parse, decimal, number};

const NAMES: [&str; 6] = ["Timestamp", "Operation", "Object_Size_Bytes", "Tier", "Key", "Phase"];
const DRIVE: &[u8] = b"Tier-2";

#[derive(Default)]
pub struct MlPerf {
    header: Option<Header<6>>,
}

impl ObjectFormat for MlPerf {
    const NAME: &'static str = "mlperf";
    const ABOUT: &'static str = "CSV of MLPerf Storage's --io-trace-log; requests of Tier-2";
    const TIME_GRAIN: u64 = 1_000;

    fn parse(&mut self, line: &[u8], _: u64, each: &mut dyn FnMut(ObjectRequest)) -> Parse<()> {
        let Some(header) = self.header else {
            self.header = Some(Header::read(line, NAMES, 6)?);
            return Ok(());
        };
        let [time, operation, size, tier, key, phase] = header.of(line);
        let arrival = decimal(time, NAMES[0], 9)?;
        let operation = match operation {
            b"Read" => Operation::Get,
            b"Write" => Operation::Put,
            _ => return Err(Fault::column(NAMES[1], "Read or Write", operation)),
        };
        let bytes = number(size, NAMES[2])?;
        if bytes == 0 || bytes > u32::MAX.into() {
            return Err(Fault::column(NAMES[2], "1 byte to 4 GiB", size));
        }
        if !tier.starts_with(b"Tier-") {
            return Err(Fault::column(NAMES[3], "Tier-0, Tier-1 or Tier-2", tier));
        }
        if key.is_empty() {
            return Err(Fault::new("column Key is empty"));
        }
        let class = [&b"Prefill"[..], b"Decode", b"Evict"].iter().position(|known| *known == phase).unwrap_or(0);
        if tier == DRIVE {
            each(ObjectRequest { arrival, key: hashed(key), bytes, operation, class: class as u32 });
        }
        Ok(())
    }
}
