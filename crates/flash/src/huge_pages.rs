//! Huge pages of memory for large tables. Requests come to all places of a drive, and so of its tables: in pages of 4 KiB each access
//! walks the page table of the processor first. Never changes a result; no effect where the system has none.

/// Tables below this are not worth it.
const LEAST_BYTES: usize = 1 << 21;

/// Asks the system to back `table`, most of which will be written, with huge pages: those parts of it that have no memory yet. They take
/// memory as a whole where a byte of them is written.
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
        // SAFETY: the range is within a live slice, and this advice leaves its content and protection as they are. Where the system refuses it,
        // nothing is different.
        let _ = unsafe { madvise(first, end - begin, MADV_HUGEPAGE) };
    }
}
