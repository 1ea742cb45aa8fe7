//! The discovery log: the subsystem, at the address at which the host connected.
//!
//! Source: NVM Express Base Specification 2.0, section 5.16.1.23. Ignored: referrals, and changes of the log.

use super::Subsystem;
use super::entry::Structure;
use std::net::SocketAddr;

/// The name of the discovery subsystem.
pub const NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";

/// Bytes of the header, and of an entry.
const BYTES: usize = 1024;

/// Entries of the admin queue that a host may use.
const ADMIN_ENTRIES: u16 = 32;

/// The log for a host that connected to `address`; empty for a host by a socket in the file system.
pub fn log(subsystem: &Subsystem, address: Option<SocketAddr>) -> Vec<u8> {
    let mut log = Structure::new(if address.is_some() { 2 * BYTES } else { BYTES });
    log.u64(0, 1).u64(8, u64::from(address.is_some()));
    let Some(address) = address else { return log.0 };
    let (tcp, family, nvm) = (3, if address.is_ipv4() { 1 } else { 2 }, 2);
    // The host may turn flow control of queues off.
    log.u8(BYTES, tcp).u8(BYTES + 1, family).u8(BYTES + 2, nvm).u8(BYTES + 3, 1 << 2);
    log.u16(BYTES + 4, 1).u16(BYTES + 6, 0xFFFF).u16(BYTES + 8, ADMIN_ENTRIES);
    log.ascii(BYTES + 32, 32, &address.port().to_string());
    log.text(BYTES + 256, 256, &subsystem.nqn).ascii(BYTES + 512, 256, &address.ip().to_string());
    log.0
}
