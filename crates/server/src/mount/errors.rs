//! The error that a program gets for what goes wrong.

use palimpsest_lab::host::fs::Fault;
use palimpsest_lab::run::served::volume::Trouble;

/// The number of the error that is `trouble`.
pub fn errno(trouble: &Trouble) -> i32 {
    match trouble {
        Trouble::Refused(fault) => match fault {
            Fault::Full => libc::ENOSPC,
            Fault::NotFound => libc::ENOENT,
            Fault::Exists => libc::EEXIST,
            Fault::NotDirectory => libc::ENOTDIR,
            Fault::IsDirectory => libc::EISDIR,
            Fault::NotEmpty => libc::ENOTEMPTY,
            Fault::TooLarge => libc::EFBIG,
            Fault::Invalid => libc::EINVAL,
            Fault::Unsupported => libc::EOPNOTSUPP,
            Fault::Halt(_) | Fault::NotFormatted | Fault::Corrupt(_) => libc::EIO,
        },
        Trouble::PowerLost | Trouble::Unreadable | Trouble::Drive => libc::EIO,
    }
}
