//! States, limits and errors by hand, by the state machine of the specification.

use super::*;

/// Four zones of 16 sectors, 12 of which can be written, in logical blocks of 4.
fn zones(max_open: u32, max_active: u32) -> Zones {
    Zones::new(4, 16, 12, 4, (max_open, max_active))
}

/// Writes `sectors` sectors at `sector`, as a layer does.
fn write(zones: &mut Zones, sector: u64, sectors: u64) -> Result<(), ZoneError> {
    let first = zones.admit_write(sector, sectors, false)?;
    let zone = zones.zone_of(first);
    zones.advance(zone, first % 16 + sectors);
    zones.check().map_err(|what| panic!("{what}"))
}

fn states(zones: &Zones) -> Vec<ZoneState> {
    (0..4).map(|zone| zones.zone(zone).state).collect()
}

#[test]
fn writes_follow_the_pointer() {
    let mut all = zones(0, 0);
    assert_eq!(write(&mut all, 4, 4), Err(ZoneError::ZoneInvalidWrite));
    assert_eq!(write(&mut all, 0, 3), Err(ZoneError::InvalidField));
    assert_eq!(write(&mut all, 0, 8), Ok(()));
    assert_eq!(write(&mut all, 0, 4), Err(ZoneError::ZoneInvalidWrite));
    assert_eq!(write(&mut all, 8, 8), Err(ZoneError::ZoneBoundaryError));
    assert_eq!((all.zone(0).state, all.pointer(0)), (ZoneState::ImplicitlyOpened, 8));
    assert_eq!(write(&mut all, 8, 4), Ok(()));
    assert_eq!(write(&mut all, 12, 4), Err(ZoneError::ZoneIsFull));
    all.reset(0);
    assert_eq!((all.zone(0).state, all.counts.resets), (ZoneState::Empty, 1));
}

#[test]
fn appends_name_the_start_of_a_zone() {
    let mut all = zones(0, 0);
    assert_eq!(write(&mut all, 16, 4), Ok(()));
    assert_eq!(all.admit_write(20, 4, true), Err(ZoneError::InvalidField));
    assert_eq!(all.admit_write(16, 4, true), Ok(20));
    assert_eq!(all.counts.appends, 1);
}

#[test]
fn the_least_recent_implicitly_open_zone_closes() {
    let mut all = zones(2, 3);
    for zone in [0, 1, 0] {
        let pointer = all.pointer(zone);
        write(&mut all, pointer, 4).expect("room");
    }
    write(&mut all, 32, 4).expect("zone 1 closes");
    let expected = [ZoneState::ImplicitlyOpened, ZoneState::Closed, ZoneState::ImplicitlyOpened, ZoneState::Empty];
    assert_eq!((states(&all), all.counts.implicit_closes), (expected.to_vec(), 1));
    assert_eq!(write(&mut all, 48, 4), Err(ZoneError::TooManyActiveZones));
    assert_eq!(write(&mut all, 20, 4), Ok(()), "a closed zone is active");
}

#[test]
fn explicitly_open_zones_stay_open() {
    let mut all = zones(2, 0);
    all.admit_action(0, ZoneAction::Open).expect("a resource");
    all.admit_action(1, ZoneAction::Open).expect("a resource");
    assert_eq!(write(&mut all, 32, 4), Err(ZoneError::TooManyOpenZones));
    assert_eq!(all.admit_action(2, ZoneAction::Open), Err(ZoneError::TooManyOpenZones));
    all.admit_action(0, ZoneAction::Close).expect("an open zone");
    assert_eq!(write(&mut all, 32, 4), Ok(()));
    assert_eq!(all.admit_action(0, ZoneAction::Open), Ok(()), "zone 2 closes");
    assert_eq!(all.zone(2).state, ZoneState::Closed);
}

#[test]
fn transitions_that_the_states_forbid() {
    let mut all = zones(0, 0);
    let forbidden = Err(ZoneError::InvalidZoneStateTransition);
    assert_eq!(all.admit_action(0, ZoneAction::Close), forbidden);
    assert_eq!(all.admit_action(0, ZoneAction::Offline), forbidden);
    write(&mut all, 0, 12).expect("room");
    assert_eq!(all.admit_action(0, ZoneAction::Open), forbidden);
    assert_eq!(all.admit_action(0, ZoneAction::Finish), Ok(()));
    all.set(0, ZoneState::ReadOnly);
    assert_eq!(write(&mut all, 0, 4), Err(ZoneError::ZoneIsReadOnly));
    assert_eq!(all.admit_action(0, ZoneAction::None), forbidden, "a reset");
    assert_eq!(all.admit_action(0, ZoneAction::Offline), Ok(()));
    assert_eq!(write(&mut all, 0, 4), Err(ZoneError::ZoneIsOffline));
}

#[test]
fn open_zones_are_closed_after_a_power_cut() {
    let mut all = zones(2, 2);
    write(&mut all, 0, 8).expect("room");
    all.admit_action(1, ZoneAction::Open).expect("a resource");
    (0..2).for_each(|zone| all.found(zone, all.zone(zone).written));
    assert_eq!(states(&all)[..2], [ZoneState::Closed, ZoneState::Empty]);
    assert_eq!((all.active(), all.check()), (1, Ok(())));
}

/// Four zones as [`zones`], of which one may have an area of 8 sectors with commits of 4.
fn random() -> Zones {
    let mut all = zones(2, 2);
    all.area = Area { size: 8, granularity: 4, zones: 1 };
    all.admit_action(0, ZoneAction::OpenRandom).expect("a resource");
    all
}

#[test]
fn writes_reach_the_region_behind_the_area() {
    let mut all = random();
    assert_eq!(all.admit_write(4, 4, false), Ok(4), "anywhere");
    assert_eq!(all.admit_write(0, 8, false), Ok(0), "and again");
    assert_eq!((all.implicit_commit(0, 8), all.implicit_commit(0, 12), all.implicit_commit(0, 16)), (0, 4, 8));
    assert_eq!(all.admit_write(8, 8, false), Err(ZoneError::ZoneBoundaryError));
    all.advance(0, 4);
    assert_eq!(all.admit_write(0, 4, false), Err(ZoneError::ZoneInvalidWrite), "committed");
    assert_eq!(all.admit_write(0, 4, true), Err(ZoneError::InvalidZoneOperation), "an append");
    assert_eq!(all.implicit_commit(0, 12), 0);
    all.advance(0, 12);
    assert_eq!((all.zone(0).state, all.random(), all.check()), (ZoneState::Full, 0, Ok(())));
}

#[test]
fn a_wide_zone_refuses_writes_beyond_the_region() {
    let mut all = Zones::new(1, 64, 64, 4, (0, 0));
    all.area = Area { size: 8, granularity: 4, zones: 1 };
    all.admit_action(0, ZoneAction::OpenRandom).expect("a resource");
    assert_eq!(all.admit_write(12, 4, false), Ok(12));
    assert_eq!(all.admit_write(16, 4, false), Err(ZoneError::ZoneInvalidWrite));
}

#[test]
fn areas_are_resources() {
    let mut all = random();
    assert_eq!(all.admit_action(1, ZoneAction::OpenRandom), Err(ZoneError::ZrwaUnavailable));
    assert_eq!(all.admit_action(0, ZoneAction::OpenRandom), Err(ZoneError::InvalidZoneOperation));
    all.admit_action(0, ZoneAction::Close).expect("an open zone");
    assert_eq!(all.random(), 1, "a closed zone keeps its area");
    all.found(0, 0);
    assert_eq!((all.zone(0).state, all.random()), (ZoneState::Closed, 1), "as after a power cut");
    all.reset(0);
    assert_eq!(all.admit_action(1, ZoneAction::OpenRandom), Ok(()));
    assert_eq!(zones(0, 0).admit_action(0, ZoneAction::OpenRandom), Err(ZoneError::InvalidField));
}

#[test]
fn commits_end_in_the_area_at_units() {
    let mut all = random();
    assert_eq!(all.admit_commit(1, 4), Err(ZoneError::InvalidZoneOperation));
    assert_eq!(all.admit_commit(0, 0), Err(ZoneError::InvalidField));
    assert_eq!(all.admit_commit(0, 6), Err(ZoneError::InvalidField));
    assert_eq!(all.admit_commit(0, 12), Err(ZoneError::InvalidField), "beyond the area");
    all.admit_action(0, ZoneAction::Close).expect("an open zone");
    assert_eq!(all.admit_commit(0, 8), Ok(()));
    assert_eq!((all.zone(0).state, all.counts.explicit_commits), (ZoneState::ImplicitlyOpened, 1));
}

#[test]
fn failed_zones_are_listed_until_the_list_is_read() {
    let mut all = Zones::new(600, 16, 12, 4, (0, 0));
    all.admit_write(32, 4, false).expect("room");
    all.lose(5, ZoneState::Offline);
    all.lose(2, ZoneState::ReadOnly);
    all.lose(2, ZoneState::ReadOnly);
    assert_eq!((all.changed().number(), all.changed().zones().collect::<Vec<_>>()), (2, vec![2, 5]));
    assert_eq!((all.active(), all.check()), (0, Ok(())), "a failed zone holds no resource");
    (0..MOST_CHANGED as u32).for_each(|zone| all.lose(zone, ZoneState::Offline));
    assert_eq!((all.changed().number(), all.changed().zones().count()), (511, 511));
    all.lose(511, ZoneState::Offline);
    assert_eq!((all.changed().number(), all.changed().zones().count()), (0xffff, 0), "more than the page holds");
    all.clear_changed();
    assert_eq!(all.changed().number(), 0);
}
