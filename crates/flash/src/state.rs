//! Kept states: a drive stores its state after preconditioning, and a new drive of the same configuration loads it.
//!
//! Each structure declares the fields that change when requests are served ([`crate::state!`]); the others are as
//! built. Everything is little-endian and without names. The bytes are valid only for the same sources and
//! configuration, which the caller must check. Ignored: moving states between versions.

use crate::huge_pages;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The unread rest of a state.
pub struct Reader<'a> {
    rest: &'a [u8],
}

/// `None`: the bytes are no such state, and the partly loaded structure must be dropped.
pub type Loaded = Option<()>;

impl<'a> Reader<'a> {
    /// All of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    /// The next `count` bytes.
    #[inline]
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    /// Whether all bytes were read.
    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next length of a list; each element has at least one byte.
    fn length(&mut self) -> Option<usize> {
        let mut length = 0u64;
        length.load(self)?;
        usize::try_from(length).ok().filter(|&length| length <= self.rest.len())
    }
}

/// A type with state.
pub trait State {
    /// Appends the state to `out`.
    fn save(&self, out: &mut Vec<u8>);

    /// Loads the state that [`Self::save`] stored; other fields do not change.
    fn load(&mut self, from: &mut Reader<'_>) -> Loaded;

    /// [`Self::save`] of each element.
    fn save_each(all: &[Self], out: &mut Vec<u8>)
    where
        Self: Sized,
    {
        all.iter().for_each(|one| one.save(out));
    }

    /// [`Self::load`] of each element.
    fn load_each(all: &mut [Self], from: &mut Reader<'_>) -> Loaded
    where
        Self: Sized,
    {
        all.iter_mut().try_for_each(|one| one.load(from))
    }

    /// Backs large tables with huge pages, because all of their elements will be used.
    fn in_huge_pages(&self) {}

    /// [`Self::in_huge_pages`] of each element.
    fn each_in_huge_pages(all: &[Self])
    where
        Self: Sized,
    {
        all.iter().for_each(Self::in_huge_pages);
    }
}

/// Declares the state of a structure: the fields in braces. Fields behind `parts` are lists and options of elements
/// with state, whose number must be the same in every drive of a configuration. Fields behind `built` stay as the
/// structure was built: from the configuration, or empty between requests. Every field must be in one of the three, or
/// the code does not compile.
///
/// `state!(Counter { count } built { limit });`, with parameters as `state!([M: State] Log<M> { map });`.
#[macro_export]
macro_rules! state {
    (
        [$($parameters:tt)*] $type:ty { $($kept:ident),* $(,)? }
        $(parts { $($part:ident),* $(,)? })? $(built { $($built:ident),* $(,)? })?
    ) => {
        impl<$($parameters)*> $crate::state::State for $type {
            fn save(&self, out: &mut Vec<u8>) {
                let Self { $($kept,)* $($($part,)*)? $($($built: _,)*)? } = self;
                $($crate::state::State::save($kept, out);)*
                $($($crate::state::Parts::save_parts($part, out);)*)?
            }

            fn load(&mut self, from: &mut $crate::state::Reader<'_>) -> $crate::state::Loaded {
                let Self { $($kept,)* $($($part,)*)? $($($built: _,)*)? } = self;
                $($crate::state::State::load($kept, from)?;)*
                $($($crate::state::Parts::load_parts($part, from)?;)*)?
                Some(())
            }

            fn in_huge_pages(&self) {
                let Self { $($kept,)* $($($part,)*)? $($($built: _,)*)? } = self;
                $($crate::state::State::in_huge_pages($kept);)*
                $($($crate::state::Parts::parts_in_huge_pages($part);)*)?
            }
        }
    };
    ($type:ty { $($kept:ident),* $(,)? } $($rest:tt)*) => {
        $crate::state!([] $type { $($kept),* } $($rest)*);
    };
}

/// Declares the state of an enumeration without fields: the number of its variant. `$variant` must list all variants.
#[macro_export]
macro_rules! state_of_words {
    ($type:ident { $($variant:ident),* $(,)? }) => {
        impl $crate::state::State for $type {
            fn save(&self, out: &mut Vec<u8>) {
                let all = [$($type::$variant),*];
                // The match does not compile if a variant is missing.
                match self { $($type::$variant => {})* }
                out.push(all.iter().position(|one| one == self).expect("all variants") as u8);
            }

            fn load(&mut self, from: &mut $crate::state::Reader<'_>) -> $crate::state::Loaded {
                let all = [$($type::$variant),*];
                *self = *all.get(usize::from(from.take(1)?[0]))?;
                Some(())
            }
        }
    };
}

macro_rules! numbers {
    ($($type:ty),*) => {
        $(impl State for $type {
            #[inline]
            fn save(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn load(&mut self, from: &mut Reader<'_>) -> Loaded {
                *self = <$type>::from_le_bytes(from.take(size_of::<$type>())?.try_into().ok()?);
                Some(())
            }

            fn save_each(all: &[Self], out: &mut Vec<u8>) {
                let begin = out.len();
                out.resize(begin + size_of_val(all), 0);
                for (place, number) in out[begin..].chunks_exact_mut(size_of::<$type>()).zip(all) {
                    place.copy_from_slice(&number.to_le_bytes());
                }
            }

            fn load_each(all: &mut [Self], from: &mut Reader<'_>) -> Loaded {
                let bytes = from.take(size_of_val(all))?;
                for (number, place) in all.iter_mut().zip(bytes.chunks_exact(size_of::<$type>())) {
                    *number = <$type>::from_le_bytes(place.try_into().expect("the bytes of a number"));
                }
                Some(())
            }

            #[inline]
            fn each_in_huge_pages(_all: &[Self]) {}
        })*
    };
}

numbers!(u8, u16, u32, u64, u128, i32, i64, f64);

impl State for usize {
    fn save(&self, out: &mut Vec<u8>) {
        (*self as u64).save(out);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Loaded {
        let mut number = 0u64;
        number.load(from)?;
        *self = number.try_into().ok()?;
        Some(())
    }
}

impl State for bool {
    #[inline]
    fn save(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    #[inline]
    fn load(&mut self, from: &mut Reader<'_>) -> Loaded {
        *self = match from.take(1)? {
            [0] => false,
            [1] => true,
            _ => return None,
        };
        Some(())
    }
}

/// The number of elements must match.
impl<T: State> State for [T] {
    fn save(&self, out: &mut Vec<u8>) {
        self.len().save(out);
        T::save_each(self, out);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Loaded {
        if from.length()? == self.len() { T::load_each(self, from) } else { None }
    }

    fn in_huge_pages(&self) {
        huge_pages::advise(self);
        T::each_in_huge_pages(self);
    }
}

impl<T: State, const N: usize> State for [T; N] {
    fn save(&self, out: &mut Vec<u8>) {
        T::save_each(self, out);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Loaded {
        T::load_each(self, from)
    }
}

/// Loads into existing elements, and adds new ones.
impl<T: State + Default> State for Vec<T> {
    fn save(&self, out: &mut Vec<u8>) {
        self.as_slice().save(out);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Loaded {
        let length = from.length()?;
        self.resize_with(length, T::default);
        T::load_each(self, from)
    }

    fn in_huge_pages(&self) {
        self.as_slice().in_huge_pages();
    }
}

impl<T: State + Default> State for Box<[T]> {
    fn save(&self, out: &mut Vec<u8>) {
        (**self).save(out);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Loaded {
        let mut all = std::mem::take(self).into_vec();
        all.load(from)?;
        *self = all.into();
        Some(())
    }

    fn in_huge_pages(&self) {
        (**self).in_huge_pages();
    }
}

impl<T: State + Default> State for VecDeque<T> {
    fn save(&self, out: &mut Vec<u8>) {
        self.len().save(out);
        self.iter().for_each(|one| one.save(out));
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Loaded {
        let length = from.length()?;
        self.resize_with(length, T::default);
        self.iter_mut().try_for_each(|one| one.load(from))
    }
}

impl<T: State> State for Box<T> {
    fn save(&self, out: &mut Vec<u8>) {
        (**self).save(out);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Loaded {
        (**self).load(from)
    }

    fn in_huge_pages(&self) {
        (**self).in_huge_pages();
    }
}

impl<T: State + Default> State for Option<T> {
    fn save(&self, out: &mut Vec<u8>) {
        self.is_some().save(out);
        if let Some(one) = self {
            one.save(out);
        }
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Loaded {
        let mut is_some = false;
        is_some.load(from)?;
        if !is_some {
            *self = None;
            return Some(());
        }
        self.get_or_insert_default().load(from)
    }

    fn in_huge_pages(&self) {
        self.iter().for_each(T::in_huge_pages);
    }
}

/// Elements whose number depends on the configuration alone.
pub trait Parts {
    /// Appends the state of each element.
    fn save_parts(&self, out: &mut Vec<u8>);

    /// Loads the state of each element; their number must match.
    fn load_parts(&mut self, from: &mut Reader<'_>) -> Loaded;

    /// As [`State::in_huge_pages`].
    fn parts_in_huge_pages(&self);
}

impl<T: State> Parts for Vec<T> {
    fn save_parts(&self, out: &mut Vec<u8>) {
        self.as_slice().save(out);
    }

    fn load_parts(&mut self, from: &mut Reader<'_>) -> Loaded {
        self.as_mut_slice().load(from)
    }

    fn parts_in_huge_pages(&self) {
        self.as_slice().in_huge_pages();
    }
}

impl<T: State> Parts for Option<T> {
    fn save_parts(&self, out: &mut Vec<u8>) {
        self.as_slice().save(out);
    }

    fn load_parts(&mut self, from: &mut Reader<'_>) -> Loaded {
        self.as_mut_slice().load(from)
    }

    fn parts_in_huge_pages(&self) {
        self.as_slice().in_huge_pages();
    }
}

/// Declares the state of a boxed trait whose implementations all have a state.
#[macro_export]
macro_rules! state_of_box {
    ($($object:tt)*) => {
        impl $crate::state::State for Box<$($object)*> {
            fn save(&self, out: &mut Vec<u8>) {
                (**self).save(out);
            }

            fn load(&mut self, from: &mut $crate::state::Reader<'_>) -> $crate::state::Loaded {
                (**self).load(from)
            }

            fn in_huge_pages(&self) {
                (**self).in_huge_pages();
            }
        }
    };
}

macro_rules! tuples {
    ($($name:ident $place:tt),*) => {
        impl<$($name: State),*> State for ($($name,)*) {
            #[inline]
            fn save(&self, out: &mut Vec<u8>) {
                $(self.$place.save(out);)*
            }

            #[inline]
            fn load(&mut self, from: &mut Reader<'_>) -> Loaded {
                $(self.$place.load(from)?;)*
                Some(())
            }
        }
    };
}

tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);
tuples!(A 0, B 1, C 2, D 3);

impl<K: State + Default + Ord, V: State + Default> State for BTreeMap<K, V> {
    fn save(&self, out: &mut Vec<u8>) {
        self.len().save(out);
        for (key, value) in self {
            key.save(out);
            value.save(out);
        }
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Loaded {
        let mut all = Vec::new();
        all.resize_with(from.length()?, <(K, V)>::default);
        all.iter_mut().try_for_each(|one| one.load(from))?;
        // A tree is built at once from sorted entries.
        *self = all.into_iter().collect();
        Some(())
    }
}

impl<K: State + Default + Ord> State for BTreeSet<K> {
    fn save(&self, out: &mut Vec<u8>) {
        self.len().save(out);
        self.iter().for_each(|key| key.save(out));
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Loaded {
        let mut all = Vec::new();
        all.resize_with(from.length()?, K::default);
        K::load_each(&mut all, from)?;
        *self = all.into_iter().collect();
        Some(())
    }
}

impl State for String {
    fn save(&self, out: &mut Vec<u8>) {
        self.as_bytes().save(out);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Loaded {
        let length = from.length()?;
        *self = std::str::from_utf8(from.take(length)?).ok()?.into();
        Some(())
    }
}
