//! Tests of CSV with named columns.

use super::*;

fn read(header: &str, line: &str) -> Parse<Parsed> {
    let mut format = Columns::default();
    assert_eq!(format.parse(header.as_bytes()), Ok(Parsed::Header));
    format.parse(line.as_bytes())
}

#[test]
fn columns_in_any_order_and_quotes() {
    let record = Record { time: 5, kind: RequestKind::Trim, sector: 2, sectors: 8, stream: 9, file: NO_FILE };
    let header = "file,size_bytes,offset_bytes,extra,op,time_ns,stream";
    assert_eq!(read(header, "\"a,\"\"b\"\"\",4096,1024,,Discard,5,9"), Ok(Parsed::Record(record)));
    assert!(read(header, "\"a,4096,1024,,trim,5,9").unwrap_err().what.contains("quote"));
    assert!(read(header, "a,4096,1024").unwrap_err().what.contains("time_ns"));
}

#[test]
fn files_become_streams() {
    let header = "time_ns,op,offset_bytes,size_bytes,file";
    let stream = |file| match read(header, &format!("0,w,0,512,{file}")) {
        Ok(Parsed::Record(record)) => record.stream,
        other => panic!("{other:?}"),
    };
    assert_eq!(stream("a.log"), stream("a.log"));
    assert_ne!(stream("a.log"), stream("b.log"));
    assert_eq!(stream(""), 0);
    assert!(matches!(read(header, "7,flush,,"), Ok(Parsed::Record(_))));
}

#[test]
fn header_must_name_the_columns() {
    let what = Columns::default().parse(b"time,op,offset,size").unwrap_err().what;
    assert!(what.contains("time_ns"));
}

#[test]
fn a_heading_by_other_names_gets_the_columns() {
    let said = |heading: &str| nearly_a_heading(heading.as_bytes());
    assert_eq!(
        said("time_ns,op,offset,size").unwrap(),
        "the heading of a csv trace names no offset_bytes and no size_bytes; expected the columns time_ns, op, \
         offset_bytes, size_bytes, or --columns time=1,op=2,offset=3,size=4"
    );
    assert!(said("op, Size_bytes ,\"time\",offset_bytes").unwrap().ends_with("--columns time=3,op=1,offset=4,size=2"));
    for other in ["time_ns,op,offset_bytes,size_bytes", "128166372003061629,hm,1,Read,383496192,32768,413", "a,b,c"] {
        assert_eq!(said(other), None, "{other}");
    }
}
