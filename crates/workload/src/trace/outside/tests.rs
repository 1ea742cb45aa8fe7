//! Tests: records of a program become requests by the rules of all formats; wrong records and names are errors.

use super::*;
use crate::trace::output::Target;
use crate::trace::{TraceOptions, open_trace};
use std::io::{Cursor, Write};

/// Text of five numbers a line, as records.
fn numbers(_name: &'static str, mut trace: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
    let mut text = String::new();
    trace.read_to_string(&mut text).unwrap();
    let mut records = Vec::new();
    for line in text.lines() {
        let [time, offset, size, kind, stream]: [u64; 5] =
            line.split(' ').map(|word| word.parse().unwrap()).collect::<Vec<_>>().try_into().unwrap();
        [time, offset, size].into_iter().for_each(|number| records.extend(number.to_le_bytes()));
        [kind, stream].into_iter().for_each(|number| records.extend((number as u32).to_le_bytes()));
    }
    Box::new(Cursor::new(records))
}

fn requests(text: &str, name: &str) -> Result<Vec<String>, String> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    let bytes = packed.finish().unwrap();
    let options = TraceOptions { format: Some(name.into()), ..TraceOptions::default() };
    let mut source = open_trace(Box::new(Cursor::new(bytes)), "t", &options).map_err(|error| error.to_string())?;
    let mut all = Vec::new();
    while let Some(request) = source.next_request().map_err(|error| error.to_string())? {
        let (extent, owner) = (request.extent, request.directives.owner);
        all.push(format!("{} {:?} {} {} {owner}", request.arrival, request.kind, extent.sector, extent.sectors));
    }
    assert_eq!((source.format(), source.line()), (Some("numbers"), Some(all.len() as u64)));
    Ok(all)
}

#[test]
fn records_of_a_program_are_requests() {
    let format = Outside { name: "numbers", about: "five numbers", records: numbers };
    add(format).unwrap();
    let taken = "there is a trace format called numbers already; expected another name";
    assert_eq!(add(format), Err(taken.into()));
    assert!(add(Outside { name: "csv", ..format }).unwrap_err().contains("called csv already"));
    let read = requests("100 4096 4096 0 0\n150 100 600 1 7\n150 0 512 2 7\n400 0 0 3 0\n", "numbers");
    assert_eq!(read.unwrap(), ["0 Read 8 8 0", "50 Write 0 2 7", "50 Trim 0 1 7", "300 Flush 0 0 0"]);
    let wrong = |text: &str| requests(text, "numbers").unwrap_err();
    let size = "t:2: record: size: expected 1 to 1073741824 bytes, found 0";
    assert!(wrong("1 0 512 0 0\n1 0 0 0 0\n").starts_with(size));
    let kind = "kind: expected 0 to 3, found 4; the file is read as numbers, a format of a plug-in";
    assert!(wrong("1 0 512 4 0\n").contains(kind));
    assert!(wrong("90000000000 0 512 0 0\n1 0 512 0 0\n").starts_with("t:2: record: time goes back"));
    let unsorted = requests("5 0 512 0 0\n3 512 512 0 0\n4 1024 512 0 0\n", "numbers").unwrap();
    assert_eq!(unsorted, ["0 Read 1 1 0", "1 Read 2 1 0", "2 Read 0 1 0"]);
    assert!(wrong("").contains("the file holds no request"));
    let output = Target::of_name("x.csv", Some("numbers")).map(drop).unwrap_err().to_string();
    assert!(output.starts_with("x.csv: numbers traces are only read; expected --format with one of csv, "));
    assert!(Target::of_name("x", Some("csw")).map(drop).unwrap_err().to_string().starts_with("--format csw: "));
    assert!(requests("", "numbres").unwrap_err().contains("did you mean numbers?"));
}
