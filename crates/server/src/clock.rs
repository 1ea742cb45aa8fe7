//! How the time of the drive goes while it is served, and how well a program was given that time.
//!
//! *Virtual*: as fast as the machine simulates. The clock stops while the drive waits for the program: a program that keeps requests in
//! flight sends the next when one is answered, and the drive goes on when as many are in flight as lately, or when nothing has come for a
//! while (its patience, which learns). So the drive sees the queue depth of the program, whatever the machine's load. *Paced*: with the
//! wall clock; each completion is held until the drive would have answered. *Scaled*: the same, the drive so many times slower.

use palimpsest_lab::error::{Error, Result};
use palimpsest_lab::units::Nanos;
use std::time::{Duration, Instant};

/// Completions over which the largest queue depth counts.
const LATELY: u32 = 256;

/// Bounds of the patience.
const PATIENCE: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(20));

/// A completion is late, by the wall clock, if it comes so long after its time.
const LATE: Nanos = 100_000;

/// How the time of the drive goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Clock {
    /// It does not run: requests are counted.
    None,
    /// As fast as the machine simulates.
    Virtual,
    /// With the wall clock, so many times slower.
    Paced(f64),
}

impl Clock {
    /// Reads `none`, `virtual`, `paced` or `scaled:10`.
    ///
    /// # Errors
    /// [`Error::Input`] for anything else.
    pub fn parse(text: &str) -> Result<Clock> {
        match text {
            "none" => return Ok(Clock::None),
            "virtual" => return Ok(Clock::Virtual),
            "paced" => return Ok(Clock::Paced(1.0)),
            _ => {}
        }
        let scale = text.strip_prefix("scaled:").and_then(|scale| scale.parse::<f64>().ok());
        scale.filter(|scale| (1e-3..=1e6).contains(scale)).map(Clock::Paced).ok_or_else(|| {
            let expected = "expected none, virtual, paced, or scaled:10 for a drive that is ten times slower";
            Error::input(format!("--clock {text}"), expected)
        })
    }
}

/// The wall clock beside that of the drive.
pub struct Wall {
    begin: Instant,
    drive_begin: Nanos,
    scale: f64,
    /// How late each completion was, in nanoseconds, sorted into powers of two and sixteenths of them.
    late: Vec<u64>,
    completions: u64,
    too_late: u64,
    most: Nanos,
}

impl Wall {
    /// Both clocks begin now; that of the drive shows `now`.
    pub fn new(now: Nanos, scale: f64) -> Self {
        let late = vec![0; 64 * 16];
        Wall { begin: Instant::now(), drive_begin: now, scale, late, completions: 0, too_late: 0, most: 0 }
    }

    /// Time of the drive at `wall`.
    pub fn drive_time(&self, wall: Instant) -> Nanos {
        self.drive_begin + ((wall - self.begin).as_nanos() as f64 / self.scale) as Nanos
    }

    /// When the drive's clock shows `time`.
    pub fn due(&self, time: Nanos) -> Instant {
        let since = time.saturating_sub(self.drive_begin) as f64 * self.scale;
        self.begin + Duration::from_nanos(since as u64)
    }

    /// What completed at `time` of the drive is answered at `wall`.
    pub fn answered(&mut self, time: Nanos, wall: Instant) {
        let late = wall.saturating_duration_since(self.due(time)).as_nanos() as Nanos;
        self.late[bucket(late)] += 1;
        self.completions += 1;
        self.too_late += u64::from(late > LATE);
        self.most = self.most.max(late);
    }

    /// The lateness that a share of the completions does not exceed, within 6 %.
    fn percentile(&self, share: f64) -> Nanos {
        let rank = (self.completions as f64 * share).ceil() as u64;
        let mut seen = 0;
        let found = self.late.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        found.map_or(0, |found| upper(found).min(self.most))
    }

    /// How exactly completions were held, in words; `None` where there was none.
    pub fn report(&self) -> Option<String> {
        if self.completions == 0 {
            return None;
        }
        let us = |late: Nanos| late as f64 / 1e3;
        let share = self.too_late as f64 / self.completions as f64 * 100.0;
        Some(format!(
            "{} completions were late by {:.1} us (p50), {:.1} us (p99) and {:.1} us at most; {share:.2} % by more than {:.0} us: the \
             machine was too slow for them",
            self.completions,
            us(self.percentile(0.5)),
            us(self.percentile(0.99)),
            us(self.most),
            us(LATE),
        ))
    }
}

fn bucket(late: Nanos) -> usize {
    if late < 16 {
        return late as usize;
    }
    let power = late.ilog2() as usize;
    (power - 3) * 16 + (late >> (power - 4)) as usize % 16
}

/// The largest lateness of a bucket.
fn upper(bucket: usize) -> Nanos {
    if bucket < 16 {
        return bucket as Nanos;
    }
    let (power, part) = (bucket / 16 + 3, bucket as u64 % 16);
    ((16 + part + 1) << (power - 4)) - 1
}

/// The queue depth of the program, and the patience with it, for a virtual clock.
pub struct Depth {
    lately: u32,
    seen: u32,
    left: u32,
    learned: bool,
    quiet: bool,
    patience: Duration,
}

impl Default for Depth {
    fn default() -> Self {
        let patience = PATIENCE.1 / 2;
        Depth { lately: u32::MAX, seen: 0, left: LATELY, learned: false, quiet: false, patience }
    }
}

impl Depth {
    /// A request has come: so many are in flight.
    pub fn arrived(&mut self, in_flight: u32) {
        self.seen = self.seen.max(in_flight);
        if self.learned {
            self.lately = self.lately.max(in_flight);
        }
        self.quiet = false;
        if in_flight >= self.lately {
            self.patience = (self.patience * 2).min(PATIENCE.1);
        }
    }

    /// A request has completed: so many are in flight.
    pub fn completed(&mut self, in_flight: u32) {
        self.left -= 1;
        if self.left == 0 {
            if self.learned {
                self.lately = self.seen;
            }
            (self.seen, self.left) = (in_flight, LATELY);
        }
    }

    /// How long to wait for the program while so many are in flight; `None` if the drive goes on.
    pub fn wait(&self, in_flight: u32) -> Option<Duration> {
        (in_flight < self.lately && !self.quiet).then_some(self.patience)
    }

    /// Nothing has come for that long.
    pub fn nothing_came(&mut self) {
        if !self.learned {
            (self.learned, self.lately) = (true, self.seen);
        } else {
            self.patience = (self.patience / 2).max(PATIENCE.0);
        }
        self.quiet = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_read() {
        assert_eq!(Clock::parse("paced").unwrap(), Clock::Paced(1.0));
        assert_eq!(Clock::parse("scaled:10").unwrap(), Clock::Paced(10.0));
        for wrong in ["", "real", "scaled", "scaled:", "scaled:0", "scaled:-1", "scaled:nan", "scaled:inf", "Paced"] {
            assert!(matches!(Clock::parse(wrong), Err(Error::Input { .. })), "{wrong} was taken");
        }
    }

    #[test]
    fn buckets_are_within_a_sixteenth() {
        for late in (0..60).flat_map(|power| [1u64 << power, (1 << power) + (1 << power) / 3, (2 << power) - 1]) {
            let upper = upper(bucket(late));
            assert!(upper >= late && upper - late <= late / 16, "{late}: {upper}");
        }
    }

    #[test]
    fn lateness_is_reported() {
        let mut wall = Wall::new(0, 10.0);
        assert_eq!(wall.report(), None);
        for late in 1..=100 {
            wall.answered(1000, wall.due(1000) + Duration::from_micros(2 * late));
        }
        assert_eq!(wall.due(1000) - wall.begin, Duration::from_micros(10));
        assert!((100_000..107_000).contains(&wall.percentile(0.5)));
        let report = wall.report().unwrap();
        assert!(report.contains("200.0 us at most; 50.00 % by more than 100 us"), "{report}");
    }

    #[test]
    fn the_drive_waits_for_a_program_that_refills() {
        let mut depth = Depth::default();
        (1..=32).for_each(|count| depth.arrived(count));
        assert!(depth.wait(32).is_some(), "more may come at first");
        depth.nothing_came();
        assert!(depth.wait(32).is_none());
        depth.completed(31);
        assert!(depth.wait(31).is_none(), "nothing comes: it drains");
        for _ in 0..1000 {
            depth.arrived(32);
            depth.completed(31);
            assert!(depth.wait(31).is_some(), "the program refills");
            assert!(depth.wait(32).is_none());
        }
        // The program goes on with less.
        for _ in 0..2 * LATELY {
            depth.arrived(4);
            depth.completed(3);
        }
        depth.arrived(4);
        assert!(depth.wait(4).is_none());
        assert!(depth.wait(3).is_some());
    }
}
