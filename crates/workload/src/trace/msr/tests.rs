//! Tests of the module `msr`.

use super::*;

#[test]
fn a_line_of_hm_0_and_its_header() {
    let parsed = Msr.parse(b"128166385295514663,hm,3,Write,9056014336,2048,2833").unwrap();
    let Parsed::Record(record) = parsed else { panic!("{parsed:?}") };
    assert_eq!(record.arrival, 12_816_638_529_551_466_300);
    assert_eq!(
        (record.kind, record.extent.sector, record.extent.sectors, record.owner()),
        (RequestKind::Write, 17_687_528, 4, 3)
    );
    let header = b"Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";
    assert_eq!(Msr.parse(header), Ok(Parsed::Header));
}

#[test]
fn faults_name_the_column() {
    let what = |line: &str| Msr.parse(line.as_bytes()).unwrap_err().what;
    assert!(what("1,h,0,Wrote,0,512,1").contains("type: expected Read or Write"));
    assert!(what("1,h,0,Write,0,5").contains("before column response time"));
    assert!(what("1,h,0,Write,-1,512,1").contains("column offset"));
    assert!(what("1,h,0,Write,0,512,1,9").contains("7 columns"));
    assert!(what("999999999999999999,h,0,Write,0,512,1").contains("2185"));
}
