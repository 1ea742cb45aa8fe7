//! The discovery log: the subsystem, at the advertised address or the one at which the host connected, and subsystems
//! of other processes.
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

/// The log for a host that connected to `address`; without an address, the subsystem itself is left out.
pub fn log(subsystem: &Subsystem, address: Option<SocketAddr>) -> Vec<u8> {
    let address = address.map(|address| subsystem.address_for_hosts(address));
    let own = address.iter().map(|address| (&subsystem.nqn, address));
    let all: Vec<_> = own.chain(subsystem.others.iter().map(|(name, address)| (name, address))).collect();
    let mut log = Structure::new(BYTES * (1 + all.len()));
    log.u64(0, 1).u64(8, all.len() as u64);
    for (index, (name, address)) in all.into_iter().enumerate() {
        let at = BYTES * (1 + index);
        let (tcp, family, nvm) = (3, if address.is_ipv4() { 1 } else { 2 }, 2);
        // The host may turn flow control of queues off.
        log.u8(at, tcp).u8(at + 1, family).u8(at + 2, nvm).u8(at + 3, 1 << 2);
        log.u16(at + 4, index as u16 + 1).u16(at + 6, 0xFFFF).u16(at + 8, ADMIN_ENTRIES);
        log.ascii(at + 32, 32, &address.port().to_string());
        log.text(at + 256, 256, name).ascii(at + 512, 256, &address.ip().to_string());
    }
    log.0
}
