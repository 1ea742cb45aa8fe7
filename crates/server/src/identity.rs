//! The identity of a served drive: a UUID, all names and numbers that follow from it, and the claim on a name.
//!
//! The image supplies the UUID; a drive without an image draws one. A claim is a socket of the abstract namespace of
//! Linux: all users of the machine share the namespace, and the kernel removes the socket with the process, after a
//! kill too. Ignored: drives of other machines and network namespaces; other systems have no claims.

use palimpsest_lab::error::Result;
use palimpsest_lab::rng::mix;
use std::hash::{BuildHasher, RandomState};
use std::time::SystemTime;

/// A new UUID (RFC 9562, version 4).
pub fn fresh() -> [u8; 16] {
    // A forked process repeats the random keys of its parent, so the process and the time count, too.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let drawn = || RandomState::new().hash_one((std::process::id(), now));
    uuid(drawn(), drawn())
}

/// The UUID of the part `name` of `whole`, or of `whole` under another name.
pub fn derived(whole: &[u8; 16], name: &str) -> [u8; 16] {
    let [high, low] = halves(whole).map(|half| hash(half, name));
    uuid(high, low)
}

fn halves(uuid: &[u8; 16]) -> [u64; 2] {
    let whole = u128::from_be_bytes(*uuid);
    [(whole >> 64) as u64, whole as u64]
}

fn hash(seed: u64, text: &str) -> u64 {
    text.bytes().fold(mix(seed ^ 1), |hash, byte| mix(hash.wrapping_mul(31) ^ u64::from(byte)))
}

fn uuid(high: u64, low: u64) -> [u8; 16] {
    let random = u128::from(high) << 64 | u128::from(low);
    let version = 0xF << 76;
    let variant = 0x3 << 62;
    (random & !version & !variant | 4 << 76 | 2 << 62).to_be_bytes()
}

/// A UUID as text.
pub fn text_of(uuid: &[u8; 16]) -> String {
    let digits: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

/// The serial number of a drive: 20 digits.
pub fn serial_of(uuid: &[u8; 16]) -> String {
    uuid[..10].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The name of the subsystem of a drive without a wanted name.
pub fn nqn_of(uuid: &[u8; 16]) -> String {
    format!("nqn.2026-11.org.palimpsest:{}", serial_of(uuid))
}

/// A number that two drives hardly share.
pub fn number_of(uuid: &[u8; 16]) -> u64 {
    mix(halves(uuid)[1])
}

/// The claim of this process on the name of a subsystem, until drop.
pub struct Claim {
    #[cfg(target_os = "linux")]
    _socket: std::os::unix::net::UnixDatagram,
}

impl Claim {
    /// Claims `nqn`.
    ///
    /// # Errors
    /// [`Error::Input`](palimpsest_lab::error::Error::Input) if another process of this machine has the name.
    #[cfg(target_os = "linux")]
    pub fn new(nqn: &str) -> Result<Self> {
        use palimpsest_lab::error::Error;
        use std::io::ErrorKind;
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::net::{SocketAddr, UnixDatagram};
        let name = format!("palimpsest-nvme-{:016x}{:016x}", hash(0, nqn), hash(1 << 63, nqn));
        let claimed = SocketAddr::from_abstract_name(name).and_then(|address| UnixDatagram::bind_addr(&address));
        claimed.map(|socket| Claim { _socket: socket }).map_err(|error| {
            let what = match error.kind() {
                ErrorKind::AddrInUse => "another target of this machine has the name, and hosts would mix both drives",
                _ => return Error::input(format!("--nqn {nqn}"), format!("{error}; expected a name to claim")),
            };
            Error::input(format!("--nqn {nqn}"), format!("{what}; expected the end of that target, or another --nqn"))
        })
    }

    #[cfg(not(target_os = "linux"))]
    pub fn new(_nqn: &str) -> Result<Self> {
        Ok(Claim {})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_valid_and_differ() {
        let one = fresh();
        let all = [one, fresh(), derived(&one, "nqn.a"), derived(&one, "nqn.b"), derived(&one, "")];
        for (at, uuid) in all.iter().enumerate() {
            assert_eq!((uuid[6] >> 4, uuid[8] >> 6), (4, 2), "version and variant of RFC 9562");
            assert!(all[..at].iter().all(|other| other != uuid && serial_of(other) != serial_of(uuid)));
        }
        assert_eq!(derived(&one, "nqn.a"), all[2]);
        assert_eq!(text_of(&[0x12; 16]), "12121212-1212-1212-1212-121212121212");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_name_is_claimed_once() {
        let name = nqn_of(&fresh());
        let claim = Claim::new(&name).unwrap();
        let refused = Claim::new(&name).err().expect("the name is taken").to_string();
        assert!(refused.starts_with(&format!("--nqn {name}: another target")), "{refused}");
        drop(claim);
        Claim::new(&name).unwrap();
    }
}
