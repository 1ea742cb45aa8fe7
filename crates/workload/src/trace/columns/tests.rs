//! Tests of CSV with named columns.

use super::*;
use crate::request::{Command, Extent};

fn read(header: &str, line: &str) -> Parse<Parsed> {
    let mut format = Columns::default();
    assert_eq!(format.parse(header.as_bytes()), Ok(Parsed::Header));
    format.parse(line.as_bytes())
}

#[test]
fn columns_in_any_order_and_quotes() {
    let extent = Extent { sector: 2, sectors: 8 };
    let record = Request::new(5, Command::new(RequestKind::Trim, extent).of(9));
    let header = "file,size_bytes,offset_bytes,extra,op,time_ns,stream";
    assert_eq!(read(header, "\"a,\"\"b\"\"\",4096,1024,,Discard,5,9"), Ok(Parsed::Record(record)));
    assert!(read(header, "\"a,4096,1024,,trim,5,9").unwrap_err().what.contains("quote"));
    assert!(read(header, "a,4096,1024").unwrap_err().what.contains("time_ns"));
}

#[test]
fn headings_may_have_capitals_tabs_and_semicolons() {
    let record = Request::new(5, Command::new(RequestKind::Read, Extent { sector: 2, sectors: 8 }));
    for separator in SEPARATORS.map(|byte| char::from(byte).to_string()) {
        let with = |text: &str| text.replace(',', &separator);
        let header = with("Time_NS,OP,extra, Offset_Bytes,\"SIZE_BYTES\"");
        assert_eq!(read(&header, &with("5,READ,\"a,b\",1024,4096")), Ok(Parsed::Record(record)), "{separator:?}");
        let mut format = Columns::default();
        format.prepare(&Head { bytes: header.as_bytes(), whole: true });
        assert_eq!(format.notes(), ["the column extra of the trace is not read"]);
    }
    let text = "time\top\toffset\tsize";
    assert!(nearly_a_heading(text.as_bytes()).unwrap().ends_with("--columns time=1,op=2,offset=3,size=4"));
}

#[test]
fn writes_have_directives() {
    let header = "time_ns,op,offset_bytes,size_bytes,fua,placement";
    let directives = |line: &str| match read(header, line) {
        Ok(Parsed::Record(record)) => Ok((record.directives.fua, record.directives.placement)),
        Ok(other) => panic!("{other:?}"),
        Err(fault) => Err(fault.what),
    };
    assert_eq!(directives("0,w,0,512,1,65535"), Ok((true, 65_535)));
    assert_eq!(directives("0,w,0,512,,"), Ok((false, 0)));
    assert_eq!(directives("0,r,0,512,1,7"), Ok((false, 0)), "reads have none");
    assert!(directives("0,w,0,512,2,0").unwrap_err().contains("column fua: expected 0 or 1"));
    let updates = |line: &str| match read(header, line) {
        Ok(Parsed::Record(record)) => Ok((record.kind, record.directives.placement, record.directives.updates)),
        other => Err(format!("{other:?}")),
    };
    assert_eq!(updates("0,update,,,,3"), Ok((RequestKind::Flush, 3, true)));
    assert_eq!(updates("0,flush,,,,3"), Ok((RequestKind::Flush, 0, false)));
    assert!(updates("0,update,,,1,3").unwrap_err().contains("0 for an update"));
    assert!(directives("0,w,0,512,0,65536").unwrap_err().contains("column placement: expected a handle below 65536"));
}

#[test]
fn files_become_streams() {
    let header = "time_ns,op,offset_bytes,size_bytes,file";
    let stream = |file| match read(header, &format!("0,w,0,512,{file}")) {
        Ok(Parsed::Record(record)) => record.owner(),
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
    let twice = "time_ns,op,offset_bytes,size_bytes,op";
    assert!(Columns::default().parse(twice.as_bytes()).unwrap_err().what.contains("expected each column once"));
    assert!(nearly_a_heading(twice.as_bytes()).unwrap().contains("names op twice"));
}

#[test]
fn a_line_has_no_more_columns_than_the_heading() {
    let header = "time_ns,op,offset_bytes,size_bytes";
    assert!(matches!(read(header, "0,w,0,512,"), Ok(Parsed::Record(_))));
    assert!(read(header, "0,w,0,512,7").unwrap_err().what.starts_with("expected the 4 columns of the heading"));
}

#[test]
fn columns_that_are_not_read_are_a_note() {
    let notes = |bytes: &[u8]| {
        let mut format = Columns::default();
        format.prepare(&Head { bytes, whole: true });
        format.notes()
    };
    assert_eq!(notes(b"time_ns,op,offset_bytes,size_bytes,file\n"), [""; 0]);
    let named = notes(b"time_ns,pid,op,offset_bytes,size_bytes,placment\n");
    assert_eq!(named, ["the columns pid, placment of the trace are not read"]);
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
