//! Tests of the module `namespaces`.

use super::*;
use crate::fio::JobFile;
use crate::request::Source;

#[test]
fn shares_divide_pages_and_dies() {
    let shares = |text: &str| Shares::parse(text).unwrap();
    assert_eq!(shares("75%:25%").ends(1001), [750, 1001], "the last has the rest");
    assert_eq!(shares("25%:25%").ends(1000), [250, 500], "half of the addresses have no tenant");
    assert_eq!(shares("75%:25%").ends_of_dies(8), Some(vec![6, 8]));
    assert_eq!(shares("70%:30%").ends_of_dies(8), None, "5.6 dies");
    assert_eq!(shares("25%:25%").ends_of_dies(8), None, "some dies are left");
    assert_eq!(shares("none"), Shares::default());
    assert_eq!([shares("none"), shares("50%: 0.5")].map(|shares| shares.text()), ["none", "50%:50%"]);
    for wrong in ["", "50%:", "0%:100%", "60%:60%", "half"] {
        assert!(Shares::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn further_tenants_share_the_last_namespace() {
    let namespaces = Namespaces::new(100, vec![60, 90]);
    let rooms = [0, 1, 2].map(|tenant| namespaces.of(tenant)).map(|Room { first, bytes }| (first, bytes));
    assert_eq!(rooms, [(0, 60), (60, 30), (60, 30)]);
    assert_eq!(Namespaces::from(100).of(7), Room { first: 0, bytes: 100 });
}

#[test]
fn several_files_of_jobs_are_namespaces() {
    let drive = || Namespaces::new(90 << 20, vec![60 << 20, 90 << 20]);
    let found = |text: &str| {
        let mut source = JobFile::parse(text, "j.fio").unwrap().source(drive(), 1).unwrap();
        let sectors = std::iter::from_fn(|| source.next_request().unwrap().map(|request| request.extent.sector));
        (sectors.collect::<Vec<u64>>(), source.notes())
    };
    let (first, second) = (0, (60 << 20) / 512);
    let two = "[a]\nfilename=x\nn=1\n[b]\nfilename=y\nn=1\n[c]\nfilename=x\nn=1\n";
    assert_eq!(found(two), (vec![first, second, first], vec!["the 2 files of the jobs are namespaces".to_string()]));
    let one = "[global]\nfilename=x\n[a]\nn=1\n[b]\nn=1\n";
    assert_eq!(found(one).0, [first, second], "sections of one file follow each other, as without a file");
    let three = format!("{two}[d]\nfilename=z\nn=1\n");
    let message = JobFile::parse(&three, "j.fio").unwrap().source(drive(), 1).err().unwrap().to_string();
    assert_eq!(message, "j.fio: the jobs have 3 files, each in a namespace; expected at most 2");
}
