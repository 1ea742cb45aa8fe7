//! Declarations of keys ([`macro@crate::keys`]), and of enumerations whose members are words ([`macro@crate::words`]).

use super::blocks::BlockCount;
use super::{Notation, Value, ValueType};
use crate::units::Rate;
use crate::units::parse::Parsed;

/// A type that a value of the configuration has in code.
pub trait FromValue: Sized {
    /// The setting of `value`; `None` if the value is of another kind.
    fn from_value(value: &Value) -> Option<Self>;
}

/// A type that defines the notation of its values, such as `every:50k`.
pub trait Notated: Sized {
    /// The kind of a key with such values.
    const KIND: ValueType = ValueType::Notation(&Notation {
        words: || Self::WORDS.to_vec(),
        read: |text| Self::parse(text).map(|value| value.text()),
        expected: || Self::EXPECTED.into(),
    });
    /// Words among the values, for completion.
    const WORDS: &'static [&'static str] = &[];
    /// The notation, for messages.
    const EXPECTED: &'static str;

    /// The value of `text`.
    ///
    /// # Errors
    /// One line with the mistake and the expected notation.
    fn parse(text: &str) -> Parsed<Self>;

    /// The canonical text, from which [`Self::parse`] makes the same value.
    fn text(&self) -> String;
}

impl<T: Notated> FromValue for T {
    fn from_value(value: &Value) -> Option<T> {
        T::parse(&String::from_value(value)?).ok()
    }
}

macro_rules! from_value {
    ($($type:ty { $($pattern:pat => $value:expr),+ })+) => {
        $(impl FromValue for $type {
            fn from_value(value: &Value) -> Option<$type> {
                match value {
                    $($pattern => $value,)+
                    _ => None,
                }
            }
        })+
    };
}

use Value::{Age, Blocks, Bytes, Capacity, Count, Energies, Energy, Factor, Flag, Ratio, Ratios, Text, Time, Times};

from_value! {
    bool { Flag(flag) => Some(*flag) }
    String { Text(text) => Some(text.clone()) }
    u64 { Count(n) | Bytes(n) | Capacity(n) | Time(n) | Age(n) | Energy(n) => Some(*n) }
    u32 { Count(n) | Bytes(n) => u32::try_from(*n).ok() }
    f64 { Ratio(number) | Factor(number) => Some(*number) }
    Vec<u64> { Times(list) | Energies(list) => Some(list.clone()) }
    Vec<f64> { Ratios(list) => Some(list.clone()) }
    Rate { Value::Rate(rate) => Some(*rate) }
    BlockCount { Blocks(count) => Some(*count) }
    // A number of which 0 means none.
    Option<u64> { Count(n) => Some((*n > 0).then_some(*n)) }
    // A share, or a word for none.
    Option<f64> { Text(_) => Some(None), Ratio(share) => Some(Some(*share)) }
}

/// For `=> is("word")` in [`macro@crate::keys`]: true if a value is this word.
pub fn is(word: &str) -> impl Fn(String) -> bool + '_ {
    move |text| text == word
}

/// `doc` without the space that `///` leaves before a line.
#[doc(hidden)]
pub const fn trimmed(doc: &'static str) -> &'static str {
    match doc.as_bytes() {
        [b' ', ..] => doc.split_at(1).1,
        _ => doc,
    }
}

/// Declares a structure of settings with its keys: one line defines a key, its documentation, the field, and how the
/// field is read.
///
/// ```text
/// keys! {
///     /// Settings of the scheduler.
///     #[derive(Debug, Clone)]
///     pub struct Scheduling;
///
///     /// The keys of the scheduler.
///     group pub KEYS {
///         /// which operation a die starts next
///         pub scheduler: Scheduler = "sim.scheduler", Scheduler::KIND, "fifo";
///         /// longest time for which others overtake an operation
///         pub bound: Nanos = "sim.starvation_bound", Time, "10ms", needs["sim.scheduler = read-first"];
///     }
/// }
/// ```
///
/// `Scheduling::new(&settings)` reads the fields, and the constant `KEYS: &[Key]` lists the keys, in this order. Each
/// line is `FIELD: TYPE = NAME, KIND, DEFAULT, MODIFIERS;`:
/// - The comment is the key's documentation, which `palimpsest show` prints: lower case, without a full stop.
/// - KIND is a [`ValueType`], which states unit and range; TYPE is any type with [`FromValue`] that has such values.
/// - DEFAULT is a text in the key's notation, `required`, or `(as "other.key")`.
/// - MODIFIERS are methods of [`Key`](super::Key): `needs["KEY = WORD"]`, `read_by[READER]`, `rules[RULE]`,
///   `grows_with[GROWTH]`.
/// - `=> FUNCTION` behind KIND maps the value, such as `=> is("word")`.
///
/// Several groups make several lists. `with settings { FIELD: TYPE = EXPRESSION; }` behind them adds fields without a
/// key.
#[macro_export]
macro_rules! keys {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident;
        $(
            $(#[$group_attribute:meta])*
            group $group_visibility:vis $group:ident {
                $(
                    $(#[doc = $doc:literal])+
                    $field_visibility:vis $field:ident: $type:ty =
                        $key:literal, $kind:expr $(=> $map:expr)?, $default:tt
                        $(, $modifier:ident [$($argument:expr),+])*;
                )+
            }
        )+
        $(with $settings:ident {
            $($(#[$more_attribute:meta])* $more_visibility:vis $more:ident: $more_type:ty = $value:expr;)+
        })?
    ) => {
        $(#[$attribute])*
        $visibility struct $name {
            $($($(#[doc = $doc])+ $field_visibility $field: $type,)+)+
            $($($(#[$more_attribute])* $more_visibility $more: $more_type,)+)?
        }

        $(
            $(#[$group_attribute])*
            $group_visibility const $group: &[$crate::keys::Key] = {
                #[allow(unused_imports)]
                use $crate::keys::ValueType::*;
                &[$(
                    $crate::keys::Key::new(
                        $key,
                        $kind,
                        $crate::keys!(@default $default),
                        $crate::keys::declare::trimmed(concat!($($doc),+)),
                    )$(.$modifier(&[$($argument),+]))*
                ),+]
            };
        )+

        impl $name {
            /// The values in `settings`.
            $visibility fn new(settings: &$crate::keys::settings::Settings) -> Self {
                $(let $settings = settings;)?
                $name {
                    $($($field: $crate::keys!(@value settings.get($key) $(, $map)?),)+)+
                    $($($more: $value,)+)?
                }
            }
        }
    };
    (@default required) => { $crate::keys::Fallback::Required };
    (@default (as $key:literal)) => { $crate::keys::Fallback::Same($key) };
    (@default $text:literal) => { $crate::keys::Fallback::Text($text) };
    (@value $value:expr) => { $value };
    (@value $value:expr, $map:expr) => { ($map)($value) };
}

/// Declares an enumeration whose members are words of the configuration: `Member = "word"`. `KIND` is the kind of a key
/// with these values. With `else Member` all other texts are this member, and `WORDS` takes the place of `KIND`.
#[macro_export]
macro_rules! words {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $name:ident {
            $($(#[$member_attribute:meta])* $member:ident = $word:literal,)+
        }
    ) => {
        $(#[$attribute])*
        $visibility enum $name {
            $($(#[$member_attribute])* $member,)+
        }

        impl $name {
            /// The kind of a key with these values.
            pub const KIND: $crate::keys::ValueType = $crate::keys::ValueType::Choice(&[$($word),+]);

            /// The word of the configuration.
            #[allow(dead_code)]
            $visibility fn word(self) -> &'static str {
                match self {
                    $($name::$member => $word,)+
                }
            }
        }

        $crate::words!(@value $name { $($member = $word,)+ } _ => None);
    };
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $name:ident {
            $($(#[$member_attribute:meta])* $member:ident = $word:literal,)+
        } else $(#[$other_attribute:meta])* $other:ident
    ) => {
        $(#[$attribute])*
        $visibility enum $name {
            $($(#[$member_attribute])* $member,)+
            $(#[$other_attribute])* $other,
        }

        impl $name {
            /// The words of the configuration.
            pub const WORDS: &'static [&'static str] = &[$($word),+];
        }

        $crate::words!(@value $name { $($member = $word,)+ }
            $crate::keys::Value::Text(_) => Some($name::$other), _ => None);
    };
    (@value $name:ident { $($member:ident = $word:literal,)+ } $($other:pat => $value:expr),+) => {
        impl $crate::keys::FromValue for $name {
            fn from_value(value: &$crate::keys::Value) -> Option<Self> {
                match value {
                    $($crate::keys::Value::Text(text) if text == $word => Some($name::$member),)+
                    $($other => $value,)+
                }
            }
        }
    };
}
