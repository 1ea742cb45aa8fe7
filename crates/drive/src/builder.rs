//! The builder of drives: a preset or the text of a drive's file, keys, preconditioning and contents.
//!
//! Keys have the notation of `palimpsest run --set`. A key that nothing on the drive reads is refused.
//! Ignored: files, which only the caller reads.

use crate::drive::Drive;
use palimpsest_lab::config::unread::Gravity;
use palimpsest_lab::config::{self, ReadFile};
use palimpsest_lab::error::{Error, Result};
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::run::precondition::Precondition;
use palimpsest_lab::run::{Fidelity, Options, Warmup};

/// Flash operations between scheduled power cuts of a drive whose cuts the caller schedules: none comes in a run.
const NO_CUT: &str = "faults.power_cuts=every:1000000000000";

/// The contents of simulated cells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Contents {
    /// Nothing is stored and verified. Fastest.
    None,
    /// Each subpage stores a tag of its last write, and the simulator verifies every read and acknowledgement.
    #[default]
    Tags,
    /// Each subpage stores the bytes of its last write, and reads return them, verified.
    Bytes,
}

/// Builds a [`Drive`].
#[derive(Debug, Clone)]
pub struct Builder {
    drive: String,
    layer: Option<String>,
    keys: Vec<String>,
    precondition: String,
    contents: Contents,
    seed: u64,
    workload: String,
    power_cuts: bool,
    closed_loop: bool,
    state: Option<Vec<u8>>,
}

impl Drive {
    /// A builder of a drive from `preset`, a name that `palimpsest list` prints.
    pub fn builder(preset: &str) -> Builder {
        Builder {
            drive: preset.into(),
            layer: None,
            keys: Vec::new(),
            precondition: "none".into(),
            contents: Contents::default(),
            seed: 1,
            workload: "palimpsest-drive".into(),
            power_cuts: false,
            closed_loop: false,
            state: None,
        }
    }
}

impl Builder {
    /// The translation layer, by a name of `palimpsest list`. Default: the layer of the preset.
    #[must_use]
    pub fn layer(mut self, name: &str) -> Builder {
        self.layer = Some(name.into());
        self
    }

    /// Sets a configuration key, such as `ftl.victim` to `fifo`. A later call wins.
    #[must_use]
    pub fn set(mut self, key: &str, value: &str) -> Builder {
        let start = format!("{key}=");
        self.keys.retain(|earlier| !earlier.starts_with(&start));
        self.keys.push(start + value);
        self
    }

    /// The preconditioning, such as `fill:90%,random:2x` or `steady`. Default: `none`, a new drive.
    #[must_use]
    pub fn precondition(mut self, text: &str) -> Builder {
        self.precondition = text.into();
        self
    }

    /// The contents of cells. Default: tags.
    #[must_use]
    pub fn contents(mut self, contents: Contents) -> Builder {
        self.contents = contents;
        self
    }

    /// The seed of all random choices. Default: 1.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Builder {
        self.seed = seed;
        self
    }

    /// The name of the workload in the figures.
    #[must_use]
    pub fn workload(mut self, name: &str) -> Builder {
        self.workload = name.into();
        self
    }

    /// Requests follow completions, as in a closed loop: times of arrival say nothing about the load, so the lifetime
    /// in years is computed with the simulated time.
    #[must_use]
    pub fn closed_loop(mut self) -> Builder {
        self.closed_loop = true;
        self
    }

    /// Allows [`Drive::power_cut`]. Flash then logs its changes, which takes time and memory, and cells must store tags
    /// or bytes.
    #[must_use]
    pub fn power_cuts(mut self) -> Builder {
        self.power_cuts = true;
        self
    }

    /// Starts from the `state` of a drive with the same settings ([`Drive::save`]), at its time, with figures that
    /// begin anew.
    #[must_use]
    pub fn state(mut self, state: Vec<u8>) -> Builder {
        self.state = Some(state);
        self
    }

    /// Builds and preconditions the drive. Its clock starts at 0 afterwards.
    ///
    /// # Errors
    /// [`Error::Input`]: an unknown preset, layer, key or value, a key that nothing reads, or contradictory options.
    pub fn build(self) -> Result<Drive> {
        self.build_with(&|path| Err(Error::input(path, "the drive is a file; expected the name of a preset")))
    }

    /// [`Self::build`] of a drive that may be a TOML file, whose text `read_file` returns.
    ///
    /// # Errors
    /// As [`Self::build`]; errors of `read_file`.
    pub fn build_with(self, read_file: ReadFile<'_>) -> Result<Drive> {
        let mut keys = self.keys.clone();
        keys.extend(self.power_cuts.then(|| NO_CUT.into()));
        let resolved = config::resolve(&self.drive, self.layer.as_deref(), &keys, read_file)?;
        // Only with `buffer.flush=programs`, which such a drive does not read, may a preset lose its protected buffer.
        if let Some(unread) = resolved.unread().iter().find(|unread| unread.gravity != Gravity::Harmless) {
            return Err(Error::input(&unread.place, format!("{}; expected {}", unread.what, unread.expected)));
        }
        let options = Options {
            workload: self.workload.clone(),
            precondition: Precondition::parse(&self.precondition)?,
            requests: None,
            warmup: Warmup::Requests(0),
            fidelity: Fidelity::Timed,
            payload: match self.contents {
                Contents::None => Payload::None,
                Contents::Tags => Payload::Tag,
                Contents::Bytes => Payload::Bytes,
            },
            seed: self.seed,
            series: false,
            operations: None,
            strict: false,
        };
        if self.state.is_some() && options.precondition != Precondition::None {
            let what = format!("{}, and a state; expected one of both", self.precondition);
            return Err(Error::input("precondition", what));
        }
        Drive::new(&resolved, &options, self.closed_loop, self.state.as_deref())
    }
}
