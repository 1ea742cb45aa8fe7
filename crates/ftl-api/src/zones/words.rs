//! States of zones and status values of failed commands, each with its name in results.

/// Declares an enumeration, and an array of the names of its variants in their order.
macro_rules! named {
    (
        $(#[$about:meta])* $name:ident, $(#[$of_names:meta])* $names:ident;
        $($(#[$doc:meta])* $variant:ident = $text:literal,)+
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$doc])* $variant,)+
        }

        palimpsest_flash::state_of_words!($name { $($variant),+ });

        $(#[$of_names])*
        pub const $names: [&str; [$($text),+].len()] = [$($text),+];
    };
}

named! {
    /// States of a zone.
    #[derive(Default)]
    ZoneState,
    /// Names of the states, in their order.
    STATES;
    /// ZSE.
    #[default]
    Empty = "empty",
    /// ZSIO.
    ImplicitlyOpened = "implicitly_opened",
    /// ZSEO.
    ExplicitlyOpened = "explicitly_opened",
    /// ZSC.
    Closed = "closed",
    /// ZSF.
    Full = "full",
    /// ZSRO.
    ReadOnly = "read_only",
    /// ZSO.
    Offline = "offline",
}

impl ZoneState {
    /// True if the zone holds an open resource.
    pub fn is_open(self) -> bool {
        matches!(self, ZoneState::ImplicitlyOpened | ZoneState::ExplicitlyOpened)
    }

    /// True if the zone holds an active resource.
    pub fn is_active(self) -> bool {
        self.is_open() || self == ZoneState::Closed
    }

    /// True if the zone can never be written again.
    pub fn is_failed(self) -> bool {
        matches!(self, ZoneState::ReadOnly | ZoneState::Offline)
    }
}

named! {
    /// Status values of failed commands.
    ZoneError,
    /// Names of the status values, in their order.
    ERRORS;
    /// The sectors are no whole logical blocks, an append does not name the start of a zone, a commit ends outside the
    /// random write area or between two units of its granularity, or the drive has no random write areas.
    InvalidField = "invalid_field",
    /// B6h: an append or a further allocation on a zone with a random write area, or a commit on one without.
    InvalidZoneOperation = "invalid_zone_operation_request",
    /// B7h.
    ZrwaUnavailable = "zrwa_resources_unavailable",
    /// B8h: the command crosses the capacity of the zone.
    ZoneBoundaryError = "zone_boundary_error",
    /// B9h.
    ZoneIsFull = "zone_is_full",
    /// BAh.
    ZoneIsReadOnly = "zone_is_read_only",
    /// BBh.
    ZoneIsOffline = "zone_is_offline",
    /// BCh: a write does not begin at the write pointer, or ends beyond the region of implicit commits.
    ZoneInvalidWrite = "zone_invalid_write",
    /// BDh.
    TooManyActiveZones = "too_many_active_zones",
    /// BEh.
    TooManyOpenZones = "too_many_open_zones",
    /// BFh.
    InvalidZoneStateTransition = "invalid_zone_state_transition",
}

impl ZoneError {
    /// The name in results.
    pub fn name(self) -> &'static str {
        ERRORS[self as usize]
    }
}
