//! Huge pages of memory for large tables. Requests touch all places of a drive and of its tables, and with pages of 4
//! KiB each access first walks the processor's page table. Never changes a result; no effect on systems without huge
//! pages.

/// Smaller tables gain nothing.
const LEAST_BYTES: usize = 1 << 21;

/// Asks the system to back the untouched parts of `table` with huge pages. Most of the table must be written later,
/// because the first write to a huge page allocates all of the page.
#[allow(unsafe_code, reason = "advice on memory has no safe form; it changes no content")]
pub fn advise<T>(table: &[T]) {
    if size_of_val(table) < LEAST_BYTES {
        return;
    }
    #[cfg(target_os = "linux")]
    {
        use std::ffi::{c_int, c_void};
        const MADV_HUGEPAGE: c_int = 14;
        /// Multiple of the system's page sizes.
        const ALIGNMENT: usize = 1 << 16;
        unsafe extern "C" {
            fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int;
        }
        let begin = table.as_ptr().addr().next_multiple_of(ALIGNMENT);
        let end = (table.as_ptr().addr() + size_of_val(table)) / ALIGNMENT * ALIGNMENT;
        let first = table.as_ptr().with_addr(begin).cast_mut().cast::<c_void>();
        // SAFETY: the range is within a live slice, and this advice changes neither content nor protection. A refusal
        // changes nothing.
        let _ = unsafe { madvise(first, end - begin, MADV_HUGEPAGE) };
    }
}
