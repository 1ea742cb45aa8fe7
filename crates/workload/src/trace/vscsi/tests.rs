//! Tests of the records of vscsiStats, with records made byte by byte.

use super::*;

/// A record: command, block, bytes, time in us.
pub fn record(version: u8, (command, block, length, time): (u16, u64, u32, u64)) -> Vec<u8> {
    let version_field = u16::from(version) << 8 | 7;
    let mut bytes = Vec::new();
    if version == 1 {
        for word in [5, length, 1] {
            bytes.extend(u32::to_le_bytes(word));
        }
        bytes.extend(command.to_le_bytes());
        bytes.extend(version_field.to_le_bytes());
    } else {
        bytes.extend(command.to_le_bytes());
        bytes.extend(version_field.to_le_bytes());
        for word in [5, length, 1] {
            bytes.extend(u32::to_le_bytes(word));
        }
    }
    bytes.extend(block.to_le_bytes());
    bytes.extend(time.to_le_bytes());
    if version == 2 {
        bytes.extend(900u64.to_le_bytes());
    }
    bytes
}

#[test]
fn commands_are_recognized() {
    for layout in [V1, V2] {
        let mut format = Vscsi(layout);
        let mut parse = |command, length| format.parse(&record(layout.version, (command, 8, length, 3)));
        let Ok(Parsed::Record(read)) = parse(0x88, 4000) else { panic!() };
        assert_eq!((read.arrival, read.kind, read.extent.sector, read.extent.sectors), (3000, RequestKind::Read, 8, 8));
        for (command, length, kind) in [(0x0a, 512, RequestKind::Write), (0x35, 0, RequestKind::Flush)] {
            assert!(matches!(parse(command, length), Ok(Parsed::Record(found)) if found.kind == kind));
        }
        for (command, length) in [(0x28, 0), (0x41, 512), (0x12, 36)] {
            assert_eq!(parse(command, length), Ok(Parsed::Skip));
        }
        assert!(parse(0x28, 1 << 31).unwrap_err().what.contains("size"));
        let wrong = record(3 - layout.version, (0x28, 8, 512, 3));
        let padded = [wrong, vec![0; 40]].concat();
        assert!(format.parse(&padded[..layout.size]).unwrap_err().what.contains("version: expected"));
    }
}
