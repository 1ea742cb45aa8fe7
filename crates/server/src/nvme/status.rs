//! Status codes of completions, by the specifications' names: the type in the high byte, the code in the low one.
//!
//! Sources: NVM Express Base Specification 2.0, section 3.3.3.2.1; NVM Command Set Specification 1.0; NVM Express over
//! Fabrics (Connect).

/// A status; [`DNR`] may be added.
pub type Status = u16;

/// Do not retry: the same command would fail again.
pub const DNR: Status = 1 << 14;

pub const SUCCESS: Status = 0;
pub const INVALID_OPCODE: Status = DNR | 0x01;
pub const INVALID_FIELD: Status = DNR | 0x02;
pub const INTERNAL_ERROR: Status = 0x06;
pub const ABORT_REQUESTED: Status = 0x07;
pub const ABORTED_BY_DELETION: Status = 0x08;
pub const FUSED_FAILED: Status = 0x09;
pub const FUSED_MISSING: Status = 0x0A;
pub const INVALID_NAMESPACE: Status = DNR | 0x0B;
pub const SEQUENCE_ERROR: Status = DNR | 0x0C;
pub const SGL_LENGTH_INVALID: Status = DNR | 0x0F;
pub const SGL_TYPE_INVALID: Status = DNR | 0x11;
pub const ATOMIC_UNIT_EXCEEDED: Status = DNR | 0x14;
pub const SGL_OFFSET_INVALID: Status = DNR | 0x16;
pub const HOST_ID_INCONSISTENT: Status = DNR | 0x18;
pub const KATO_INVALID: Status = DNR | 0x1A;
pub const SANITIZE_FAILED: Status = DNR | 0x1C;
pub const SANITIZE_IN_PROGRESS: Status = 0x1D;
pub const WRITE_PROTECTED: Status = DNR | 0x20;
pub const TRANSIENT_TRANSPORT_ERROR: Status = 0x22;
pub const HOST_ID_NOT_INITIALIZED: Status = DNR | 0x27;
pub const LBA_OUT_OF_RANGE: Status = DNR | 0x80;
pub const NAMESPACE_NOT_READY: Status = 0x82;
pub const RESERVATION_CONFLICT: Status = 0x83;

pub const AER_LIMIT_EXCEEDED: Status = DNR | 0x105;
pub const INVALID_LOG_PAGE: Status = DNR | 0x109;
pub const INVALID_FORMAT: Status = DNR | 0x10A;
pub const NOT_SAVEABLE: Status = DNR | 0x10D;
pub const NOT_CHANGEABLE: Status = DNR | 0x10E;
pub const INSUFFICIENT_CAPACITY: Status = DNR | 0x115;
pub const NAMESPACE_ID_UNAVAILABLE: Status = DNR | 0x116;
pub const ALREADY_ATTACHED: Status = DNR | 0x118;
pub const NAMESPACE_IS_PRIVATE: Status = DNR | 0x119;
pub const NOT_ATTACHED: Status = DNR | 0x11A;
pub const THIN_PROVISIONING_NOT_SUPPORTED: Status = DNR | 0x11B;
pub const CONTROLLER_LIST_INVALID: Status = DNR | 0x11C;
pub const SELF_TEST_IN_PROGRESS: Status = 0x11D;
pub const COMMAND_SET_NOT_SUPPORTED: Status = DNR | 0x129;

pub const COMBINATION_REJECTED: Status = DNR | 0x12B;

pub const INCOMPATIBLE_FORMAT: Status = DNR | 0x180;
pub const CONTROLLER_BUSY: Status = 0x181;
pub const INVALID_PARAMETERS: Status = DNR | 0x182;
pub const COMMAND_SIZE_EXCEEDED: Status = DNR | 0x183;
pub const INVALID_HOST: Status = DNR | 0x184;
pub const OVERLAPPING_RANGE: Status = DNR | 0x187;

pub const UNRECOVERED_READ: Status = DNR | 0x281;
pub const COMPARE_FAILURE: Status = DNR | 0x285;
