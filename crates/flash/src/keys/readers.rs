//! Readers of keys: the layers that read a key, and the settings that switch reading off.

use super::Value;
use super::blocks::BlockCount;

/// A feature of layers that reads keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// Open pages in the write buffer.
    OpenPages,
    /// Open pages that wait no longer than a timeout, also in a protected buffer.
    TimedPages,
    /// Parity across dies.
    Parity,
    /// Blocks that span dies.
    Superblocks,
}

/// The layers on which a reader reads a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layers {
    /// Every layer: the drive, the engine or the host reads the key.
    Any,
    /// Every layer that is no file system.
    Bare,
    /// Every layer whose host sees no zones.
    Unzoned,
    /// The layers that list the key, and the file systems above them.
    Listed,
    /// The layers with this feature.
    With(Feature),
}

/// A reader of a key.
#[derive(Debug, Clone, Copy)]
pub struct Reader {
    /// The layers on which the reader exists.
    pub layers: Layers,
    /// Conditions without which the reader does not read; see [`Need`].
    pub needs: &'static [&'static str],
}

impl Reader {
    /// A reader on every layer.
    pub const ANY: Reader = Reader { layers: Layers::Any, needs: &[] };
    /// A reader on every layer that is no file system.
    pub const BARE: Reader = Reader { layers: Layers::Bare, needs: &[] };
    /// A reader on every layer whose host sees no zones.
    pub const UNZONED: Reader = Reader { layers: Layers::Unzoned, needs: &[] };
    /// A reader on the layers that list the key.
    pub const LISTED: Reader = Reader { layers: Layers::Listed, needs: &[] };

    /// A reader on the layers with `feature`.
    pub const fn with(feature: Feature) -> Reader {
        Reader { layers: Layers::With(feature), needs: &[] }
    }

    /// The reader with these conditions.
    #[must_use]
    pub const fn needs(self, needs: &'static [&'static str]) -> Reader {
        Reader { needs, ..self }
    }
}

/// A condition on another key: `KEY = WORD`, `KEY = WORD|WORD`, or `KEY > NUMBER`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// The other key.
    pub key: &'static str,
    /// Whether the value must exceed `operand`; else the value must be among the words of `operand`.
    pub exceeds: bool,
    /// A number, or words.
    pub operand: &'static str,
}

impl Need {
    /// The condition of `text`.
    ///
    /// # Panics
    /// `text` is no condition: a bug of the declaration.
    pub fn parse(text: &'static str) -> Need {
        let mut parts = text.split(' ');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(key), Some(sign @ ("=" | ">")), Some(operand), None) => Need { key, exceeds: sign == ">", operand },
            _ => panic!("{text} is no condition; expected KEY = WORD|WORD, or KEY > NUMBER"),
        }
    }

    /// Whether the key with the value `value` meets the condition.
    pub fn is_met(&self, value: &Value) -> bool {
        if self.exceeds {
            let bound: f64 = self.operand.parse().expect("a condition compares with a number");
            return value.size() > bound;
        }
        let text = value.to_text();
        self.operand.split('|').any(|word| word == text)
    }
}

impl Value {
    /// The value as a number, for comparisons: the length of a list, 0 for a text.
    fn size(&self) -> f64 {
        match self {
            Value::Text(_) => 0.0,
            Value::Count(number) | Value::Bytes(number) | Value::Capacity(number) => *number as f64,
            Value::Time(number) | Value::Age(number) | Value::Energy(number) => *number as f64,
            Value::Flag(flag) => f64::from(*flag),
            Value::Times(list) => list.len() as f64,
            Value::Energies(list) => list.len() as f64,
            Value::Ratios(list) => list.len() as f64,
            Value::Ratio(number) | Value::Factor(number) => *number,
            Value::Blocks(BlockCount::Blocks(blocks)) => f64::from(*blocks),
            Value::Blocks(BlockCount::Share(share)) => *share,
            Value::Rate(_) => 1.0,
        }
    }

    /// Whether the value switches a feature off: zero, an empty list, `false`, or the word for none.
    pub fn is_off(&self) -> bool {
        match self {
            Value::Text(text) => ["none", "never", "off", ""].contains(&text.as_str()),
            Value::Rate(_) => false,
            other => other.size() == 0.0,
        }
    }
}
