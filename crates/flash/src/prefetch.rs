//! Prefetches of memory that is read soon. Maps of a drive exceed the caches, and requests arrive a little before they
//! are served. Never changes a result; no effect on processors without such an instruction.

/// Prefetches the cache line that holds `slice[index]`, if there is such an element.
#[inline]
pub fn prefetch<T>(slice: &[T], index: usize) {
    if let Some(element) = slice.get(index) {
        prefetch_place(element);
    }
}

/// Prefetches the cache line in which `element` begins.
#[inline]
#[allow(unsafe_code, reason = "a prefetch has no safe form; it reads nothing and cannot fault")]
pub fn prefetch_place<T>(element: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the element is live, and a prefetch of its address has no effect visible to a program.
        unsafe { _mm_prefetch(std::ptr::from_ref(element).cast::<i8>(), _MM_HINT_T0) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = element;
}
