//! Copies to memory that is not read again soon, such as data that a host writes to a drive. The copy bypasses the
//! processor's caches: no destination line is read before the write, and no other data is evicted. Never changes a
//! result; an ordinary copy on processors without such an instruction.

/// Least bytes for which the bypass is faster, because the copy waits for its end.
#[cfg(target_arch = "x86_64")]
const LEAST_BYTES: usize = 2048;

/// Copies `from` to `to`, which must have the same length.
#[inline]
pub fn copy(to: &mut [u8], from: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    if from.len() >= LEAST_BYTES {
        return stream(to, from);
    }
    to.copy_from_slice(from);
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "the instruction has no safe form")]
fn stream(to: &mut [u8], from: &[u8]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    /// Bytes of a line.
    const LINE: usize = 64;
    assert_eq!(to.len(), from.len(), "a copy has as many bytes");
    let head = to.as_ptr().align_offset(LINE).min(to.len());
    let (to_head, to) = to.split_at_mut(head);
    let (from_head, from) = from.split_at(head);
    to_head.copy_from_slice(from_head);
    let (to, to_tail) = to.as_chunks_mut::<LINE>();
    let (from, from_tail) = from.as_chunks::<LINE>();
    for (to, from) in to.iter_mut().zip(from) {
        let (to, from) = (to.as_mut_ptr().cast::<__m128i>(), from.as_ptr().cast::<__m128i>());
        for part in 0..LINE / size_of::<__m128i>() {
            // SAFETY: both are within a line of a live slice, and `to` begins at a multiple of a line. Every processor
            // of this architecture has SSE2.
            unsafe { _mm_stream_si128(to.add(part), _mm_loadu_si128(from.add(part))) };
        }
    }
    to_tail.copy_from_slice(from_tail);
    // SAFETY: as above. The fence makes the copy visible to a thread that is notified afterwards.
    unsafe { _mm_sfence() };
}

#[cfg(test)]
mod tests;
