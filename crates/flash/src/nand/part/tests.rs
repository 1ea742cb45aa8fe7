//! Tests of the module `part`.

use super::samples::slc;
use super::*;

#[test]
fn pairs_follow_the_standard_order() {
    for pages in [2u32, 4, 8, 128, 256] {
        let part = Part { cell: CellKind::Mlc, pages_per_block: pages, ..slc() };
        // Low k is programmed before high k, and low k + 1 before high k; that fixes low 0, low 1, high 0, low 2,
        // ...
        let mut order = vec![(false, 0)];
        for k in 0..pages / 2 {
            if k + 1 < pages / 2 {
                order.push((false, k + 1));
            }
            order.push((true, k));
        }
        let number = |high, k| order.iter().position(|&page| page == (high, k)).unwrap() as u32;
        for (page, &(high, k)) in order.iter().enumerate() {
            assert_eq!(part.is_high(page as u32), high, "page {page} of {pages}");
            assert_eq!(part.partner(page as u32), number(!high, k), "page {page} of {pages}");
        }
    }
}
