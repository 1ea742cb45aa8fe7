//! ASCII traces of DiskSim (Bucy et al., "The DiskSim Simulation Environment", CMU-PDL-08-101, section 3.4):
//! `ms device sector sectors flags`, flag 1 for reads, 0 for writes.
//!
//! A file whose times are all whole numbers is taken for MQSim's nanoseconds, and one with tabs between the columns for
//! the d-choices variant; naming the format overrides both. Other flag bits (asynchronous, and so on) are refused. The
//! device becomes the stream.

use super::fields::{Fields, Parse};
use super::line_format::{LineFormat, Parsed, Record, kind_of_read_flag};

#[derive(Default)]
pub struct DiskSim;

impl LineFormat for DiskSim {
    const NAME: &'static str = "disksim";
    const ABOUT: &'static str = "DiskSim ASCII: milliseconds device sector sectors 1 (read) or 0 (write)";

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Parse<Parsed> {
        let mut fields = Fields::blank(line);
        let time = fields.decimal("time", 6)?;
        let device = fields.number("device")?;
        let sector = fields.number("sector")?;
        let sectors = fields.number("sectors")?;
        let kind = kind_of_read_flag(fields.number("flags")?, "flags")?;
        fields.end("5 columns")?;
        Record::of_sectors(time, kind, sector, sectors, device)
    }

    fn could_be(line: &[u8]) -> bool {
        !line.contains(&b'\t')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::request::RequestKind;

    #[test]
    fn milliseconds_become_nanoseconds() {
        let record = Record { time: 5_265_313_000, kind: RequestKind::Write, sector: 6_357_144, sectors: 8, stream: 0 };
        assert_eq!(DiskSim.parse(b"5265.313 0 6357144 8 0"), Ok(Parsed::Record(record)));
        assert!(DiskSim.parse(b"5265.313 0 6357144 8").unwrap_err().what.contains("flags"));
    }
}
