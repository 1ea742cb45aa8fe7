//! Layers in a separate library, which a running program loads: a plug-in.
//!
//! Program and plug-in each contain the crates below, and exchange Rust values: [`Entry`], `Io`, boxed layers. Rust
//! fixes no layout, so both must be built by one compiler from the same sources. The plug-in exports a [`Header`] of
//! the C ABI with a fingerprint of this seam. The program must compare the header ([`Header::matches`]) before any call
//! of [`Header::connect`]. The fingerprint covers compiler, target, sources, assertions, unwinding and sizes of types.
//!
//! Program and plug-in have separate statics and separate copies of the standard library. [`Host`] therefore hands over
//! the policies of the program and the function that continues a panic. [`guard`] catches panics of the plug-in,
//! because no panic may unwind from one standard library into another. Both use the allocator of the system.
//!
//! Ignored: panics of the program inside a call from a plug-in, which are defects and abort; unloading of plug-ins.

mod guard;

pub use guard::{Guarded, guard};
pub use palimpsest_ftl_api::{Entry, Model};

use palimpsest_flash::command::Command;
use palimpsest_flash::nand::{Halt, Nand};
use palimpsest_ftl::layers::llh::threshold::{self, Adapt};
use palimpsest_ftl::layers::mga::admission::{self, Admit};
use palimpsest_ftl::layers::mga::limits::{self, Limit};
use palimpsest_ftl::log::blocks::Blocks;
use palimpsest_ftl::log::outside::{PROGRAM, Program};
use palimpsest_ftl::log::pace::{self, Spread};
use palimpsest_ftl::log::rotation::{self, Place};
use palimpsest_ftl::log::streams::{self, Classify};
use palimpsest_ftl::log::victim::{self, Victim};
use palimpsest_ftl_api::keys::Key;
use palimpsest_ftl_api::plan::Io;
use palimpsest_ftl_api::settings::Settings;
use palimpsest_ftl_api::{Blueprint, LayerFigures};
use std::hash::BuildHasher;
use std::sync::OnceLock;

/// Fingerprint of the compiler, the target, and the sources of the crates that cross the seam.
pub const SEAM: &str = env!("PALIMPSEST_SEAM");

/// Begin of each [`Header`], with the number of its layout.
pub const MAGIC: [u8; 8] = *b"palimps1";

/// The symbol of the function that returns the [`Header`].
pub const SYMBOL: &str = "palimpsest_plugin";

/// The function called [`SYMBOL`].
pub type Exported = extern "C" fn() -> *const Header;

const FACTS: [u64; 10] = [
    cfg!(debug_assertions) as u64,
    cfg!(panic = "unwind") as u64,
    size_of::<Entry>() as u64,
    size_of::<Io>() as u64,
    size_of::<Nand>() as u64,
    size_of::<Blueprint>() as u64,
    size_of::<(Settings, Key, Command)>() as u64,
    size_of::<Result<(), Halt>>() as u64,
    size_of::<LayerFigures>() as u64,
    size_of::<Blocks>() as u64,
];

/// The export of a plug-in. Everything before `connect` is readable by any compiler.
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    seam: [u8; 16],
    version: [u8; 32],
    compiler: [u8; 96],
    facts: [u64; FACTS.len()],
    /// Connects the plug-in to the program, and returns the layers; or the reason why it cannot.
    pub connect: fn(Host) -> Result<&'static [Entry], String>,
}

/// `text` with zeros at the end.
const fn filled<const SIZE: usize>(text: &str) -> [u8; SIZE] {
    let (mut bytes, mut at) = ([0; SIZE], 0);
    while at < text.len() && at < SIZE {
        bytes[at] = text.as_bytes()[at];
        at += 1;
    }
    bytes
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}

impl Header {
    /// The header of this library.
    pub const fn new(connect: fn(Host) -> Result<&'static [Entry], String>) -> Self {
        Header {
            magic: MAGIC,
            seam: filled(SEAM),
            version: filled(env!("CARGO_PKG_VERSION")),
            compiler: filled(env!("PALIMPSEST_RUSTC")),
            facts: FACTS,
            connect,
        }
    }

    fn seam(&self) -> String {
        let (seam, version, compiler) = (shown(&self.seam), shown(&self.version), shown(&self.compiler));
        let profile = if self.facts[0] == 1 { "debug assertions" } else { "no debug assertions" };
        let panic = if self.facts[1] == 1 { "" } else { ", panic = \"abort\"" };
        format!("seam {seam} of palimpsest {version} by {compiler} with {profile}{panic}")
    }

    /// Compares with the seam of this program.
    ///
    /// # Errors
    /// Both seams, in a line.
    pub fn matches(&self) -> Result<(), String> {
        let own = Header::new(|_| Ok(&[]));
        let is_same = self.seam == own.seam && self.compiler == own.compiler && self.facts == own.facts;
        if is_same && FACTS[1] == 1 {
            return Ok(());
        }
        let (built, here) = (self.seam(), own.seam());
        Err(format!("built for {built}, but this is {here}; expected a plug-in built anew from these sources"))
    }
}

macro_rules! policies {
    ($($field:ident: $policy:path = $added:path;)+) => {
        /// The constructors of policies of the program.
        #[derive(Clone, Copy)]
        struct Policies {
            program: Option<Program>,
            $($field: Option<fn(&str, &str) -> Box<dyn $policy>>,)+
        }

        impl Policies {
            /// Those of this program.
            fn new() -> Self {
                Policies { program: PROGRAM.get().copied(), $($field: $added.build.get().copied(),)+ }
            }

            /// Gives them to this library.
            fn take(self) {
                let _ = self.program.map(|program| PROGRAM.set(program));
                $(let _ = self.$field.map(|build| $added.build.set(build));)+
            }
        }
    };
}

policies! {
    victims: Victim = victim::OUTSIDE;
    classifiers: Classify = streams::OUTSIDE;
    paces: Spread = pace::OUTSIDE;
    places: Place = rotation::OUTSIDE;
    admissions: Admit = admission::OUTSIDE;
    limits: Limit = limits::OUTSIDE;
    thresholds: Adapt = threshold::OUTSIDE;
}

/// The program, as a plug-in needs it.
#[derive(Clone, Copy)]
pub struct Host {
    policies: Policies,
    /// The hash of a fixed value: equal, unless the libraries have different versions of the hash function.
    hash: u64,
    panic: fn(String) -> !,
}

/// The hash of a fixed value by the hash function of tables in `Io`.
fn hash_of_seam() -> u64 {
    rustc_hash::FxBuildHasher.hash_one((7_u32, "seam"))
}

static HOST: OnceLock<Host> = OnceLock::new();

impl Host {
    /// This program.
    pub fn new() -> Self {
        Host {
            policies: Policies::new(),
            hash: hash_of_seam(),
            panic: |text| std::panic::resume_unwind(Box::new(text)),
        }
    }

    /// Connects this library, a plug-in, to the program.
    ///
    /// # Errors
    /// The reason why that is not possible.
    pub fn connect(self) -> Result<(), String> {
        if self.hash != hash_of_seam() {
            return Err("built with another version of the crate rustc-hash; expected that of Cargo.lock".into());
        }
        if HOST.set(self).is_err() {
            return Err("loaded twice".into());
        }
        self.policies.take();
        Ok(())
    }
}

impl Default for Host {
    fn default() -> Self {
        Host::new()
    }
}

/// Exports layers from a library of the kind `cdylib`: `palimpsest_layer::plugin!(ring::ENTRY, lean::ENTRY);`.
#[macro_export]
macro_rules! plugin {
    ($($entry:path),+ $(,)?) => {
        const _: () = {
            static LAYERS: &[$crate::plugin::Entry] = &[$($crate::guarded!($entry)),+];

            fn connect(host: $crate::plugin::Host) -> Result<&'static [$crate::plugin::Entry], String> {
                host.connect().map(|()| LAYERS)
            }

            static HEADER: $crate::plugin::Header = $crate::plugin::Header::new(connect);

            #[allow(unsafe_code, reason = "the program finds this function by its name")]
            #[unsafe(no_mangle)]
            extern "C" fn palimpsest_plugin() -> *const $crate::plugin::Header {
                &HEADER
            }

            /// Expected by maturin, which packs the library as a module of Python. Python cannot import the library.
            #[allow(unsafe_code, non_snake_case, reason = "maturin finds this function by its name")]
            #[unsafe(no_mangle)]
            extern "C" fn PyInit__native() -> *const u8 {
                std::ptr::null()
            }
        };
    };
}

/// An entry whose functions pass panics on to the program.
#[doc(hidden)]
#[macro_export]
macro_rules! guarded {
    ($entry:path) => {{
        const INNER: $crate::plugin::Entry = $entry;
        use $crate::plugin::{Entry, Guarded, Model, guard};
        Entry {
            keys: || guard(INNER.name, || (INNER.keys)()),
            fixes: |settings| guard(INNER.name, || (INNER.fixes)(settings)),
            kept_buffer: |settings| guard(INNER.name, || (INNER.kept_buffer)(settings)),
            tables: |settings, shape, subpages| guard(INNER.name, || (INNER.tables)(settings, shape, subpages)),
            reserved: |settings, shape| guard(INNER.name, || (INNER.reserved)(settings, shape)),
            exported: |settings, shape, pages| guard(INNER.name, || (INNER.exported)(settings, shape, pages)),
            part: |settings, part| guard(INNER.name, || (INNER.part)(settings, part)),
            check: |proposal| guard(INNER.name, || (INNER.check)(proposal)),
            model: Model {
                varies: |rng, settings| guard(INNER.name, || (INNER.model.varies)(rng, settings)),
                ..INNER.model
            },
            build: |io, blueprint| guard(INNER.name, || Guarded::layer(INNER.name, (INNER.build)(io, blueprint))),
            ..INNER
        }
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_seam_is_named_with_this_one() {
        let header = || Header::new(|_| Ok(&[]));
        assert_eq!(header().matches(), Ok(()));
        let other = Header { seam: filled("0123456789abcdef"), ..header() };
        let compiler = Header { compiler: filled("rustc 1.0.0"), ..header() };
        let mut facts = FACTS;
        facts[3] += 8;
        let layout = Header { facts, ..header() };
        for (header, named) in [(other, "0123456789abcdef"), (compiler, "rustc 1.0.0"), (layout, "seam")] {
            let what = header.matches().expect_err("another seam");
            assert!(what.contains(named) && what.contains(SEAM), "{what}");
        }
    }
}
