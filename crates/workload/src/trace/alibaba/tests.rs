//! Tests of the module `alibaba`.

use super::*;
use crate::request::RequestKind;

#[test]
fn a_line_and_the_header() {
    let parsed = Alibaba.parse(b"2,W,9811763200,12288,1577808000000494").unwrap();
    let (time, sector) = (1_577_808_000_000_494_000, 9_811_763_200 / 512);
    assert_eq!(Ok(parsed), Parsed::of_sectors(time, RequestKind::Write, sector, 24, 2));
    assert_eq!(Alibaba.parse(b"device_id,opcode,offset,length,timestamp"), Ok(Parsed::Header));
    assert!(Alibaba.parse(b"2,X,0,512,1").is_err());
}
