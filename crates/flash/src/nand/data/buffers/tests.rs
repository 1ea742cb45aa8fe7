//! Tests of the module `buffers`.

use super::*;

#[test]
fn a_buffer_goes_with_its_last_pin() {
    let mut buffers = Buffers::new(512);
    let (kept, passing) = (buffers.keep(&[1; 512]), buffers.keep(&[2; 512]));
    buffers.pin(kept);
    buffers.pin(kept);
    buffers.unpin(kept);
    buffers.end_request();
    assert_eq!(buffers.get(kept), Some(&[1; 512][..]));
    assert!(std::panic::catch_unwind(|| buffers.get(passing).map(<[u8]>::len)).is_err(), "it is free");
    buffers.unpin(kept);
    assert_eq!(buffers.get(kept), Some(&[1; 512][..]), "until the request ends");
    buffers.end_request();
    let again = [buffers.keep(&[3; 512]), buffers.keep(&[4; 512])];
    assert!(again.contains(&kept) && again.contains(&passing), "their places are taken again");
}

#[test]
fn what_is_overwritten_gives_its_memory_away() {
    let mut buffers = Buffers::new(512);
    buffers.forget_overwritten(2);
    let mut write = |lsn, byte| {
        let data = buffers.keep(&[byte; 512]);
        buffers.overwrite(lsn, data);
        buffers.pin(data);
        buffers.end_request();
        (data, buffers.get(data).map(|bytes| bytes[0]), buffers.slabs.used())
    };
    let (first, _, _) = write(0, 1);
    for turn in 0..100 {
        let (_, held, used) = write(turn % 2, turn as u8);
        assert_eq!((held, used), (Some(turn as u8), 1 + usize::from(turn > 0)));
    }
    assert_eq!(buffers.get(first), Some(&[OVERWRITTEN; 512][..]), "its cells are there");
    buffers.unpin(first);
    buffers.end_request();
    assert_eq!(buffers.keep(&[3; 512]), first, "they were erased");
    buffers.forget_nothing();
    let (_, _, used) = (buffers.overwrite(0, first), buffers.end_request(), buffers.written.len());
    assert_eq!(used, 0);
}

#[test]
fn overwriting_data_reuses_the_memory_of_the_old_data() {
    let mut buffers = Buffers::new(512);
    buffers.forget_overwritten(3);
    let mut slab = Slab::new(3 * 512);
    let mut held = Vec::new();
    assert!(buffers.adopt(&mut slab, &mut held));
    let pinned: Vec<Data> = held.clone();
    for (lsn, &data) in held.iter().enumerate() {
        buffers.overwrite(lsn as u32, data);
        buffers.pin(data);
    }
    buffers.end_request();
    let before = buffers.bytes(1).as_ptr();
    let new = buffers.fill_over(1, |bytes| bytes.fill(7));
    buffers.pin(new);
    assert_eq!(buffers.get(pinned[1]), Some(&[OVERWRITTEN; 512][..]), "at once");
    buffers.end_request();
    let now = buffers.get(new).unwrap();
    assert_eq!((now, now.as_ptr(), buffers.slabs.used()), (&[7; 512][..], before, 3));
    // All three are overwritten by one slab: the old slab is free and goes to the receiver.
    (slab[0], slab[512], slab[1024]) = (1, 2, 3);
    held.clear();
    assert!(buffers.adopt(&mut slab, &mut held));
    (0..3).for_each(|lsn| buffers.overwrite(lsn, held[lsn as usize]));
    held.iter().for_each(|&data| buffers.pin(data));
    buffers.end_request();
    assert_eq!(buffers.slabs.used(), 3);
    assert!(buffers.adopt(&mut slab, &mut Vec::new()));
    assert_eq!(slab[512..1024], [7; 512], "the memory of what was overwritten");
    buffers.end_request();
    assert_eq!(buffers.slabs.used(), 3, "what no one pinned goes");
}

#[test]
fn what_is_written_over_a_loan_goes_elsewhere() {
    let mut buffers = Buffers::new(512);
    buffers.forget_overwritten(1);
    let write = |buffers: &mut Buffers, byte| {
        let data = buffers.fill_over(0, |bytes| bytes.fill(byte));
        buffers.pin(data);
        buffers.end_request();
        data
    };
    let (mut loans, first) = (Vec::new(), write(&mut buffers, 1));
    assert!(buffers.lend(first, 0..512, &mut loans) && !buffers.lend(Data::ZERO, 0..512, &mut loans));
    let second = write(&mut buffers, 2);
    assert_eq!((loans[0][..] == [1; 512], buffers.get(second)), (true, Some(&[2; 512][..])));
    assert!(!buffers.lend(first, 0..512, &mut loans), "its memory was given away");
    assert_eq!((loans.len(), buffers.slabs.used()), (1, 1));
    loans.clear();
    assert!(buffers.lend(second, 0..512, &mut loans) && loans[0][..] == [2; 512]);
}

/// A worn-out drive can still be read: after a failed write each subpage is the old or the new one.
#[test]
fn a_write_that_failed_leaves_bytes_that_the_host_wrote() {
    let mut buffers = Buffers::new(512);
    buffers.forget_overwritten(2);
    let old = [0, 1].map(|lsn| {
        let data = buffers.fill_over(lsn, |bytes| bytes.fill(1));
        buffers.pin(data);
        data
    });
    buffers.end_request();
    let new = buffers.fill_over(0, |bytes| bytes.fill(2));
    buffers.overwrite(1, Data::ZERO);
    buffers.forget_nothing();
    buffers.end_request();
    assert_eq!(old.map(|data| buffers.get(data).unwrap()[0]), [2, 1], "a trim that failed is not done");
    assert!(std::panic::catch_unwind(|| buffers.get(new).map(<[u8]>::len)).is_err());
}

#[test]
fn subpages_may_be_large() {
    let size = 2 << 20;
    let mut buffers = Buffers::new(size);
    let (one, two) = (buffers.keep(&vec![1; size]), buffers.keep(&vec![2; size]));
    assert_eq!((buffers.get(one).unwrap()[size - 1], buffers.get(two).unwrap()[0]), (1, 2));
}
