//! Tests of text with the columns that the user names.

use super::*;
use crate::request::{Command, Extent, Source};
use crate::trace::{TraceOptions, open_trace};
use std::io::Cursor;

fn read(columns: &str, text: &str) -> Result<Vec<Request>> {
    let options = TraceOptions { columns: Some(columns.into()), ..TraceOptions::default() };
    let mut source: Box<dyn Source> = open_trace(Box::new(Cursor::new(text.as_bytes().to_vec())), "t", &options)?;
    let mut found = Vec::new();
    while let Some(request) = source.next_request()? {
        found.push(request);
    }
    Ok(found)
}

#[test]
fn any_order_separator_and_unit() {
    let expected = [
        Request::new(0, Command::new(RequestKind::Read, Extent { sector: 8, sectors: 8 }).of(7)),
        Request::new(1_500, Command::new(RequestKind::Write, Extent { sector: 16, sectors: 1 }).of(7)),
    ];
    let found = read(
        "time=1:us,op=3,offset=5:sectors,size=4,volume=2",
        "t,vol,rw,bytes,lba\n10.0,7,R,4096,8\n11.5,7,write,512,16\n",
    );
    assert_eq!(found.unwrap(), expected);
    let found = read("size=1:pages,offset=2:KiB,op=3:read=0", "1 4 0\n2\t8  1 extra\n").unwrap();
    assert_eq!((found[0].extent.sector, found[0].extent.sectors, found[0].kind), (8, 8, RequestKind::Read));
    assert_eq!((found[1].extent.sector, found[1].extent.sectors, found[1].kind), (16, 16, RequestKind::Write));
}

/// Only the first line can be a heading, and only of words; other malformed lines are errors or count as bad.
#[test]
fn a_heading_is_one_line_of_words() {
    let columns = "time=1:s,op=2,offset=3,size=4";
    let opened = |text: &str, skip_bad| {
        let options = TraceOptions { columns: Some(columns.into()), skip_bad, ..TraceOptions::default() };
        open_trace(Box::new(Cursor::new(text.as_bytes().to_vec())), "t", &options).unwrap()
    };
    let good = "0.1,W,4096,4096\n";
    let mut source = opened(&format!("\n  \ntime,op,offset,size\n{good}"), false);
    assert_eq!(source.notes(), ["line 3 is a heading, and no request: \"time,op,offset,size\""]);
    assert!(source.next_request().unwrap().is_some() && source.next_request().unwrap().is_none());
    assert!(opened(good, false).notes().is_empty());
    for (text, line) in [
        ("0.1s,W,4096,4096\n", 1),
        ("time,op,offset,size\nt,w,o,s\n", 2),
        ("time,op,offset,size\ntime,op,offset,size\n", 2),
        ("0x1,w,0x1000,0x1000\n", 1),
        ("x,W,o,s\n", 1),
        ("-0.1,w,5,5\n", 1),
    ] {
        let wrong = opened(&format!("{text}{good}"), false).next_request().unwrap_err().to_string();
        assert!(wrong.starts_with(&format!("t:{line}: ")), "{text:?}: {wrong}");
        let mut skipping = opened(&format!("{text}{good}"), true);
        assert!(skipping.next_request().unwrap().is_some() && skipping.skipped_lines() == 1, "{text:?}");
        let none = opened(text, true).next_request().unwrap_err().to_string();
        assert!(none.contains("the file holds no request"), "{none}");
    }
}

#[test]
fn mistakes_name_the_column() {
    for (wrong, said) in [
        ("time=1:min,offset=2,size=3", "time has no unit \"min\""),
        ("time=0,offset=2,size=3", "\"0\" is no number of a column"),
        ("offset=2", "size is missing"),
        ("offset=2,size=3,size=4", "size is given twice"),
        ("lba=2,size=3", "there is no \"lba\""),
        ("offset", "\"offset\" has no column"),
        ("offset=1,size=2,separator=dot", "there is no separator \"dot\", but comma, tab, semicolon, blanks"),
        ("offset=1,size=2,op=3:read=1:erase=2", "op has no unit"),
        ("offset=1,size=2,op=3:read=", "op has no unit"),
    ] {
        assert!(Mapped::parse(wrong).unwrap_err().to_string().contains(said), "{wrong}");
    }
    let short = read("time=1,offset=2,size=5", "1,2,3\n").unwrap_err().to_string();
    assert!(short.contains("t:1: column size is column 5, but the line has 3 columns, separated by comma"), "{short}");
    assert!(read("offset=1,size=2", "a,b\n").unwrap_err().to_string().contains("no request"));
    let word = read("offset=1,size=2", "0,512\nx,512\n").unwrap_err().to_string();
    assert!(word.contains("t:2: column offset"), "{word}");
}

/// A former bug: a comma in a field made commas the separator.
#[test]
fn the_separator_is_the_one_by_which_lines_are_requests() {
    let text = "259,0 WS 2048 8\n259,1 RA 2056 8\n259,0 FF 0 0\n";
    for columns in ["op=2,offset=3:sectors,size=4:sectors,volume=1", "op=2,offset=3,size=4,volume=1,separator=blanks"] {
        let found = read(columns, text).unwrap();
        let kinds: Vec<_> = found.iter().map(|each| each.kind).collect();
        assert_eq!(kinds, [RequestKind::Write, RequestKind::Read, RequestKind::Flush], "{columns}");
        assert_eq!(found[0].owner(), found[2].owner());
        assert_ne!(found[0].owner(), found[1].owner());
    }
    let wrong = read("op=2,offset=3,size=4,separator=tab", text).unwrap_err().to_string();
    assert!(wrong.contains("column op is column 2, but the line has 1 column, separated by tab"), "{wrong}");
}

#[test]
fn several_codes_name_one_operation() {
    let columns = "op=1:read=0|2:write=1|W:trim=5,offset=2,size=3";
    let kinds = |text: &str| read(columns, text).map(|found| found.iter().map(|each| each.kind).collect::<Vec<_>>());
    use RequestKind::{Read, Trim, Write};
    assert_eq!(kinds("0;0;512\n2;0;512\nW;0;512\n5;0;512\n1;0;512\n").unwrap(), [Read, Read, Write, Trim, Write]);
    let wrong = kinds("0;0;512\n3;0;512\n").unwrap_err().to_string();
    assert!(wrong.contains("t:2: column op: expected a value that --columns names, found \"3\""), "{wrong}");
}

/// A former bug: lines whose fields are all in quotes were headings.
#[test]
fn fields_may_be_in_quotes() {
    let found = read("op=1,offset=2,size=3", "\"W\",\"512\",\"1024\"\n\"R\", \"0\" ,512\n").unwrap();
    let read: Vec<_> = found.iter().map(|each| (each.kind, each.extent.sector, each.extent.sectors)).collect();
    assert_eq!(read, [(RequestKind::Write, 1, 2), (RequestKind::Read, 0, 1)]);
}
