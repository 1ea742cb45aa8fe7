//! `oraclegeneral`: libCacheSim's binary format, records of 24 bytes, the least significant byte first: time in s (4),
//! object (8), bytes (4), number of the object's next access (8; -1 or 2^63 - 1: none). All requests are gets.
//!
//! Ignored: the next access. A file is recognised as by [`crate::trace`], which reads the same file as block requests.

use super::ObjectFormat;
use crate::objects::{ObjectRequest, Operation};
use crate::trace::fields::{Fault, Parse};
use crate::trace::oracle_general;
use crate::trace::records::{RecordFormat, little};

#[derive(Default)]
pub struct OracleGeneral;

impl ObjectFormat for OracleGeneral {
    const NAME: &'static str = oracle_general::OracleGeneral::NAME;
    const ABOUT: &'static str = "binary oracleGeneral of libCacheSim: gets of objects, with time in s";
    const TIME_GRAIN: u64 = oracle_general::OracleGeneral::TIME_GRAIN;
    const RECORD_BYTES: Option<usize> = Some(24);

    fn recognise(head: &[u8]) -> bool {
        oracle_general::OracleGeneral::recognise(head) > 0
    }

    fn parse(&mut self, record: &[u8], _: u64, each: &mut dyn FnMut(ObjectRequest)) -> Parse<()> {
        let bytes = little(record);
        let size = u64::from(bytes.u32(12));
        if size == 0 {
            return Err(Fault::new("column size: expected 1 byte or more, found 0"));
        }
        let arrival = u64::from(bytes.u32(0)) * 1_000_000_000;
        each(ObjectRequest { arrival, key: bytes.u64(4), bytes: size, operation: Operation::Get, class: 0 });
        Ok(())
    }
}
