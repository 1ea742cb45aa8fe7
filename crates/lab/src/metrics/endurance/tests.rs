//! Tests of the module `endurance`.

use super::*;

/// A drive of 1 TB that endures 3650 TB: one drive write a day lasts ten years, and two a day five.
#[test]
fn the_figures_of_a_data_sheet() {
    let day = NANOS_PER_DAY as Nanos;
    let load = Load {
        waf: Some(2.0),
        life_bytes: Some(3650 * 1_000_000_000_000),
        host_bytes: 250_000_000_000,
        time: Some(day / 4),
        full: true,
        capacity: 1_000_000_000_000,
    };
    let found = endurance(&load);
    assert_eq!((found.tbw, found.dwpd, found.years), (Some(3650.0), Some(1.0), Some(10.0)));
    assert_eq!(found.full_load, Some(true));
    assert_eq!((found.dwpd_5_years, found.drive_writes), (Some(2.0), 0.25));
    let unknown = endurance(&Load { life_bytes: None, time: None, ..load });
    assert_eq!((unknown.tbw, unknown.dwpd, unknown.years), (None, None, None));
    assert_eq!(unknown.full_load, None, "without a rate");
    assert_eq!(endurance(&Load { host_bytes: 0, ..load }).years, None);
}
