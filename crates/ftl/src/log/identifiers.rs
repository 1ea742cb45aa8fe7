//! Placement identifiers of Flexible Data Placement: the most significant bits name the reclaim group, the others the
//! handle (NVM Express Base Specification 2.1, 8.1.10, RGIF). Ignored: lists of handles that a namespace chooses.

/// Bits of a placement identifier.
const IDENTIFIER_BITS: u32 = 16;

/// The identifiers that a drive has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identifiers {
    /// Handles.
    pub handles: u32,
    /// Reclaim groups.
    pub groups: u32,
}

impl Identifiers {
    /// Streams of the host: one a handle of each group.
    pub fn streams(self) -> u32 {
        self.handles * self.groups
    }

    /// All identifiers, in the order in which a drive lists them: the groups of handle 0, those of handle 1 and so on.
    pub fn all(self) -> impl Iterator<Item = u16> {
        (0..self.handles).flat_map(move |handle| (0..self.groups).map(move |group| self.identifier(group, handle)))
    }

    /// Bits of an identifier that name the reclaim group.
    pub fn group_bits(self) -> u32 {
        self.groups.next_power_of_two().trailing_zeros()
    }

    /// The identifier of a handle in a group.
    pub fn identifier(self, group: u32, handle: u32) -> u16 {
        (group << (IDENTIFIER_BITS - self.group_bits()) | handle) as u16
    }

    /// The stream that `identifier` names, or `None`.
    #[inline]
    pub fn stream_of(self, identifier: u16) -> Option<u32> {
        let bits = IDENTIFIER_BITS - self.group_bits();
        let (group, handle) = (u32::from(identifier) >> bits, u32::from(identifier) & ((1 << bits) - 1));
        (group < self.groups && handle < self.handles).then_some(group * self.handles + handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_significant_bits_name_the_group() {
        let one = Identifiers { handles: 8, groups: 1 };
        assert_eq!([0, 7, 8, 0x8000].map(|identifier| one.stream_of(identifier)), [Some(0), Some(7), None, None]);
        let three = Identifiers { handles: 2, groups: 3 };
        let found = [0x0001, 0x4000, 0x8001, 0xc000, 0x4002].map(|identifier| three.stream_of(identifier));
        assert_eq!(found, [Some(1), Some(2), Some(5), None, None]);
        assert!(one.all().eq(0..8));
        assert!(three.all().eq([0, 0x4000, 0x8000, 1, 0x4001, 0x8001]));
    }
}
