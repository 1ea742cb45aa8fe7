//! Imbalance of the pages of files over the channels (co-design paper, Sec. II-B, equation 1, and Fig. 2).
//!
//! Imbalance rate of a file = (max - min) / ceil(pages / channels), where max and min are the most and the fewest pages
//! of the file in a channel. As in the paper, the rate is 0 if the file has fewer pages than there are channels and no
//! channel holds more than two.

/// Rates at which the distribution is reported.
pub const POINTS: [(f64, &str); 10] = [
    (0.0, "imbalance_cdf_0"),
    (0.25, "imbalance_cdf_0.25"),
    (0.5, "imbalance_cdf_0.5"),
    (0.75, "imbalance_cdf_0.75"),
    (1.0, "imbalance_cdf_1"),
    (1.5, "imbalance_cdf_1.5"),
    (2.0, "imbalance_cdf_2"),
    (3.0, "imbalance_cdf_3"),
    (4.0, "imbalance_cdf_4"),
    (8.0, "imbalance_cdf_8"),
];

/// The distribution of the imbalance rates of files. Empty files do not count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imbalance {
    /// Files with pages.
    pub files: u64,
    /// Files of a rate of at most each of [`POINTS`].
    pub at_most: [u64; POINTS.len()],
}

/// The imbalance rate of a file with `pages` in each channel, as numerator and denominator.
pub fn rate(pages: &[u32]) -> (u32, u32) {
    let (count, channels) = (pages.iter().sum::<u32>(), pages.len() as u32);
    let (most, fewest) = (pages.iter().max().copied().unwrap_or(0), pages.iter().min().copied().unwrap_or(0));
    if count < channels && most <= 2 {
        return (0, 1);
    }
    (most - fewest, count.div_ceil(channels).max(1))
}

impl Imbalance {
    /// The distribution of `files`, given as pages in each channel.
    pub fn of(files: impl Iterator<Item = Vec<u32>>) -> Self {
        let mut imbalance = Imbalance::default();
        for file in files.filter(|file| file.iter().any(|&pages| pages > 0)) {
            imbalance.files += 1;
            let (most, average) = rate(&file);
            for (at_most, (point, _)) in imbalance.at_most.iter_mut().zip(POINTS) {
                *at_most += u64::from(f64::from(most) <= point * f64::from(average));
            }
        }
        imbalance
    }

    /// Files of a rate above 0.
    pub fn uneven(&self) -> u64 {
        self.files - self.at_most[0]
    }

    /// Files of a rate above 1.
    pub fn above_one(&self) -> u64 {
        self.files - self.at_most[4]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fig. 1: file A has 3 pages in channel 0 and 1 in each of channels 1 to 3 (not given for the others: 2 assumed).
    #[test]
    fn the_example_of_the_paper() {
        assert_eq!(rate(&[3, 1, 1, 1, 2, 2, 2, 2]), (2, 2));
    }

    #[test]
    fn small_files_are_even_while_no_channel_holds_more_than_two() {
        assert_eq!(rate(&[1, 1, 1, 0]), (0, 1));
        assert_eq!(rate(&[2, 1, 0, 0]), (0, 1));
        assert_eq!(rate(&[3, 0, 0, 0]), (3, 1));
        assert_eq!(rate(&[1, 1, 1, 1]), (0, 1));
        assert_eq!(rate(&[8, 0, 0, 0, 0, 0, 0, 0]), (8, 1), "no file is more uneven than this");
    }

    #[test]
    fn distribution() {
        let files = [[1, 1], [0, 0], [3, 1], [4, 0]].map(Vec::from);
        let imbalance = Imbalance::of(files.into_iter());
        assert_eq!((imbalance.files, imbalance.uneven(), imbalance.above_one()), (3, 2, 1));
    }
}
