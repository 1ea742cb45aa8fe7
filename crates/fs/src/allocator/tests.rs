//! Tests of the module `allocator`.

use super::*;

const TWO_LANES: Shape = Shape {
    channels: 2,
    lanes: 2,
    blocks_per_channel: 8,
    pages_per_block: 4,
    subpages_per_page: 1,
    page_bytes: 4096,
    most_active: 0,
};

fn fresh() -> PageAllocator {
    let mut allocator = PageAllocator::new(TWO_LANES, [0, 8]);
    assert!(allocator.adopt(|_| 0).is_empty());
    allocator
}

#[test]
fn lanes_of_a_channel_take_turns() {
    let mut allocator = fresh();
    let mut lane = |channel| TWO_LANES.lane(allocator.allocate(channel).expect("a page") / 4);
    assert_eq!([0, 0, 1, 0, 1, 1].map(&mut lane), [0, 1, 2, 0, 3, 2]);
}

/// Every page is given once before the trim of its block, the next of the block, from the channel that was asked
/// for while there is one; and every channel counts its free pages.
#[test]
fn pages_are_given_once_and_in_order() {
    for seed in 0..40 {
        let mut rng = palimpsest_flash::rng::Rng::new(seed, 0xa110);
        let mut allocator = fresh();
        let mut next = [0u32; 16];
        let mut owned = Vec::new();
        for step in 0..500 {
            let channel = rng.below(2) as u32;
            let free = allocator.free_pages();
            let in_channel = allocator.free_in(channel);
            match rng.below(6) {
                0..3 => match allocator.allocate(channel) {
                    None => assert_eq!(free, 0),
                    Some(page) => {
                        assert!(in_channel == 0 || TWO_LANES.channel(page) == channel, "page {page}");
                        assert_eq!((page % 4, allocator.free_pages()), (next[page as usize / 4], free - 1));
                        next[page as usize / 4] += 1;
                        allocator.own(page, 7, Role::DataPage(step));
                        owned.push(page);
                    }
                },
                3 => {
                    if let Some(page) = allocator.allocate_metadata(channel, rng.below(2) == 0) {
                        assert_eq!(page % 4, next[page as usize / 4]);
                        next[page as usize / 4] += 1;
                        allocator.own(page, 0, Role::Root);
                        owned.push(page);
                    }
                }
                4 if !owned.is_empty() => {
                    allocator.disown(owned.swap_remove(rng.below(owned.len() as u64) as usize));
                }
                _ => {
                    for block in allocator.take_empty() {
                        assert!(next[block as usize] == 4 && owned.iter().all(|page| page / 4 != block));
                        next[block as usize] = 0;
                        allocator.trimmed(block);
                    }
                }
            }
            assert_eq!(allocator.valid_pages(), owned.len() as u64);
            assert_eq!(allocator.check(|block| next[block as usize]), Ok(()), "seed {seed}, step {step}");
        }
    }
}

/// Once red: a layer moves a block without the torn page at its end, and the file system goes on behind that.
#[test]
fn a_block_may_lose_torn_pages_until_it_is_written_on() {
    let shape = Shape {
        channels: 1,
        lanes: 1,
        blocks_per_channel: 4,
        pages_per_block: 8,
        subpages_per_page: 1,
        page_bytes: 4096,
        most_active: 0,
    };
    let begun = 2;
    let first = 16;
    let mounted = |valid: u32| {
        let mut allocator = PageAllocator::new(shape, [0, 1]);
        (first..first + valid).for_each(|page| allocator.own(page, 7, Role::DataPage(page)));
        allocator.adopt(|block| if block == begun { 6 } else { 0 });
        allocator
    };
    let check = |allocator: &PageAllocator, pages: u32| allocator.check(|block| if block == begun { pages } else { 0 });
    let mut allocator = mounted(5);
    assert_eq!([check(&allocator, 6), check(&allocator, 5)], [Ok(()), Ok(())], "the sixth page is torn");
    assert!(check(&allocator, 4).is_err(), "a valid page is gone");
    assert!(check(&mounted(6), 5).is_err(), "the sixth page is valid");
    assert_eq!(allocator.allocate(0), Some(first + 6));
    assert_eq!(check(&allocator, 7), Ok(()));
    assert!(check(&allocator, 5).is_err(), "the page that was allocated is not written");
}
