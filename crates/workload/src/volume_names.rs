//! Names of the volumes of a trace: disks (`xvda1`), devices (`259,0`) and files, whose streams are numbers of a name.
//!
//! A format notes each name beside the stream; other volumes are their own number. Memory is bounded: volumes beyond
//! the first [`MOST_NAMES`] names are shown as numbers.

use palimpsest_flash::rng;
use std::collections::HashMap;
use std::sync::Arc;

/// Most names in a table.
pub const MOST_NAMES: usize = 1 << 16;

/// Streams noted lately, so that most requests need no look-up.
const RECENT: usize = 64;

/// A stream and the name.
pub type VolumeName = (u32, Arc<str>);

/// Streams and names, in order of appearance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeNames {
    names: Vec<VolumeName>,
    // For look-ups only: the order never affects a result.
    places: HashMap<u32, usize>,
    recent: [Option<u32>; RECENT],
}

impl Default for VolumeNames {
    fn default() -> Self {
        VolumeNames { names: Vec::new(), places: HashMap::new(), recent: [None; RECENT] }
    }
}

impl VolumeNames {
    /// The stream of the volume `name`: a hash.
    #[inline]
    pub fn stream(&mut self, name: &[u8]) -> u32 {
        let stream = hash(name);
        self.note(stream, || String::from_utf8_lossy(name).into());
        stream
    }

    /// The stream of the device of Linux with this number (major << 20 | minor).
    #[inline]
    pub fn device(&mut self, number: u32) -> u32 {
        self.note(number, || format!("{},{}", number >> 20, number & 0xf_ffff).into());
        number
    }

    #[inline]
    fn note(&mut self, stream: u32, name: impl FnOnce() -> Arc<str>) {
        let recent = &mut self.recent[stream as usize % RECENT];
        if *recent != Some(stream) {
            *recent = Some(stream);
            self.add(stream, name);
        }
    }

    fn add(&mut self, stream: u32, name: impl FnOnce() -> Arc<str>) {
        if self.names.len() < MOST_NAMES && !self.places.contains_key(&stream) {
            self.places.insert(stream, self.names.len());
            self.names.push((stream, name()));
        }
    }

    /// Adds names of another table.
    pub fn extend(&mut self, names: impl IntoIterator<Item = VolumeName>) {
        names.into_iter().for_each(|(stream, name)| self.add(stream, || name));
    }

    /// All names, in order of appearance.
    pub fn all(&self) -> &[VolumeName] {
        &self.names
    }

    /// The name of a volume, or else the number.
    pub fn name(&self, stream: u32) -> Arc<str> {
        let place = self.places.get(&stream);
        place.map_or_else(|| stream.to_string().into(), |&place| Arc::clone(&self.names[place].1))
    }
}

/// Volumes that a user selects by number or name, parted by commas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    parts: Vec<String>,
    /// Streams that the parts may mean, with the first and the last part: two parts may be a device `259,0`.
    meant: Vec<(u32, usize, usize)>,
}

impl Selection {
    /// Reads `3,7`, `xvda1` or `259,0`; `None` if a part is empty.
    pub fn parse(text: &str) -> Option<Selection> {
        let parts: Vec<String> = text.split(',').map(|part| part.trim().to_owned()).collect();
        let number = |text: &str| text.parse::<u32>().ok();
        let meant = (0..parts.len()).flat_map(|at| {
            let pair = parts.get(at + 1).map(|next| format!("{},{next}", parts[at]));
            let device = pair.as_ref().and_then(|_| Some((number(&parts[at])?, number(&parts[at + 1])?)));
            let device = device.filter(|&(major, minor)| major < 1 << 12 && minor < 1 << 20);
            let single = [number(&parts[at]), Some(hash(parts[at].as_bytes()))].map(|id| Some((id?, at, at)));
            let double = [device.map(|(major, minor)| major << 20 | minor), pair.map(|name| hash(name.as_bytes()))];
            single.into_iter().chain(double.map(|id| Some((id?, at, at + 1))))
        });
        let meant = meant.flatten().collect();
        parts.iter().all(|part| !part.is_empty()).then_some(Selection { parts, meant })
    }

    /// True if the user may mean the volume with this stream.
    pub fn has(&self, stream: u32) -> bool {
        self.meant.iter().any(|each| each.0 == stream)
    }

    /// The first part that means none of the volumes for which `is_there`.
    pub fn missing(&self, is_there: impl Fn(u32) -> bool) -> Option<&str> {
        let found: Vec<_> = self.meant.iter().filter(|each| is_there(each.0)).collect();
        let at = (0..self.parts.len()).find(|at| !found.iter().any(|each| (each.1..=each.2).contains(at)));
        at.map(|at| &*self.parts[at])
    }
}

/// The stream of the volume or file `name`.
pub fn hash(name: &[u8]) -> u32 {
    let folded = name.iter().fold(0, |state, &byte| rng::mix(state ^ u64::from(byte).wrapping_add(1)));
    (folded >> 32) as u32
}

#[cfg(test)]
mod tests;
