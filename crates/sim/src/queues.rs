//! Submission queues of the host, and the order in which the controller fetches commands from them.
//!
//! As in the NVM Express Base Specification 2.1, section 3.4.4: round robin over the queues, or weighted round robin
//! with an urgent class. Urgent queues go before all others, and may starve them. The classes high, medium and low
//! share the rest: a round has as many commands of a class as its weight. Within a class queues take turns of at most a
//! burst of commands, or the rest of the weight. Each job of a workload has its own queue, or several that its
//! commands take in turn; so has each volume of a trace, if `host.queues` says so.
//!
//! Ignored: the admin queue; the sizes of queues, because a command that finds a queue full waits in the host, in the
//! same order; doorbells and the time of a fetch, which is part of `controller.iops`; vendor-specific arbitration.

use palimpsest_flash::geometry::RequestKind;
use palimpsest_flash::keys::Notated;
use palimpsest_flash::keys::readers::Reader;
use palimpsest_flash::units::Nanos;
use palimpsest_flash::units::parse::Parsed;
use palimpsest_flash::{keys, words};
use std::collections::{HashMap, VecDeque};

words! {
    /// The order in which the controller fetches from submission queues.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum Arbitration {
        /// All queues take turns.
        #[default]
        RoundRobin = "round-robin",
        /// Classes of queues: urgent ones first, others by weight.
        Weighted = "weighted",
    }
}

words! {
    /// The class of a queue, first to last.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Class {
        /// Before all others.
        Urgent = "urgent",
        /// By the first weight.
        High = "high",
        /// By the second weight.
        Medium = "medium",
        /// By the third weight.
        Low = "low",
    }
}

const ALL: [Class; 4] = [Class::Urgent, Class::High, Class::Medium, Class::Low];

/// The classes of tenants in their order; the class of later ones is medium.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Classes(pub Vec<Class>);

impl Notated for Classes {
    const EXPECTED: &'static str = "classes in the order of the tenants, such as urgent:high:medium:low";

    fn parse(text: &str) -> Parsed<Self> {
        let class = |word: &str| ALL.into_iter().find(|class| class.word() == word);
        let classes = text.split(':').map(|word| class(word.trim()));
        classes.collect::<Option<_>>().map(Classes).ok_or_else(|| format!("expected {}", Self::EXPECTED))
    }

    fn text(&self) -> String {
        self.0.iter().map(|class| class.word()).collect::<Vec<_>>().join(":")
    }
}

/// Commands of the classes high, medium and low in a round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weights([u32; 3]);

impl Notated for Weights {
    const EXPECTED: &'static str =
        "the commands of high, medium and low queues in a round, 1 to 256 each, such as 8:4:2";

    fn parse(text: &str) -> Parsed<Self> {
        let weights: Vec<u32> = text.split(':').filter_map(|weight| weight.trim().parse().ok()).collect();
        let given = <[u32; 3]>::try_from(weights).ok().filter(|_| text.split(':').count() == 3);
        let fits = |weights: &[u32; 3]| weights.iter().all(|weight| (1..=256).contains(weight));
        given.filter(fits).map(Weights).ok_or_else(|| format!("expected {}", Self::EXPECTED))
    }

    fn text(&self) -> String {
        self.0.map(|weight| weight.to_string()).join(":")
    }
}

const BURSTS: keys::Rule = keys::Rule {
    holds: |value| matches!(value, keys::Value::Count(burst) if *burst == 0 || burst.is_power_of_two()),
    expected: "expected a power of 2 up to 64, or 0 for no limit",
};

// Commands wait in submission queues for a limit of the controller.
const BOUND: Reader = Reader::ANY.needs(&["controller.commands > 0"]);
const PACED: Reader = Reader::ANY.needs(&["controller.iops > 0"]);
const BOUND_WEIGHTED: Reader = Reader::ANY.needs(&["host.arbitration = weighted", "controller.commands > 0"]);
const PACED_WEIGHTED: Reader = Reader::ANY.needs(&["host.arbitration = weighted", "controller.iops > 0"]);

keys! {
    /// Settings of the submission queues.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct QueueSettings;

    /// The keys of the submission queues.
    group pub QUEUES {
        /// commands that the controller holds at a time, from the fetch to the completion; 0: any number
        pub commands: u32 = "controller.commands", Count { min: 0, max: 1 << 20 }, "0";
        /// order in which the controller fetches commands from submission queues
        pub arbitration: Arbitration = "host.arbitration", Arbitration::KIND, "round-robin", read_by[BOUND, PACED];
        /// most commands that the controller fetches from a queue at its turn (arbitration burst); 0: any number
        pub burst: u32 = "host.burst", Count { min: 0, max: 64 }, "1", read_by[BOUND, PACED], rules[BURSTS];
        /// submission queues of each job or volume, which its commands take in turn; 0: one for each job, and one for
        /// all volumes of a trace
        pub each: u32 = "host.queues", Count { min: 0, max: 1024 }, "0", read_by[BOUND, PACED];
        /// classes of the tenants' queues, in the order of the sections or volumes; those of further tenants are medium
        pub classes: Classes = "host.classes", Classes::KIND, "medium", read_by[BOUND_WEIGHTED, PACED_WEIGHTED];
        /// commands of high, medium and low queues in a round
        pub weights: Weights = "host.weights", Weights::KIND, "8:4:2", read_by[BOUND_WEIGHTED, PACED_WEIGHTED];
    }
}

/// A command that waits in a submission queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Submitted {
    pub(super) at: Nanos,
    pub(super) kind: RequestKind,
    pub(super) id: u32,
}

/// The queue of a class whose turn it is, and the commands left in the turn.
#[derive(Debug, Clone, Copy)]
struct Turn {
    next: usize,
    left: u32,
}

/// The submission queues, and the state of the arbitration.
#[derive(Debug)]
pub(super) struct Queues {
    settings: QueueSettings,
    /// Tenants are owners of commands, in order of appearance; else jobs.
    by_owner: bool,
    // For look-ups only.
    numbers: HashMap<u32, usize>,
    /// The next queue of each tenant that has several.
    next: Vec<usize>,
    queues: Vec<(Class, VecDeque<Submitted>)>,
    turns: [Turn; 4],
    /// The class of the present round (0: high), and the commands left to it.
    level: usize,
    credits: u32,
}

impl Queues {
    pub(super) fn new(settings: QueueSettings) -> Self {
        let left = if settings.burst == 0 { u32::MAX } else { settings.burst };
        Queues {
            credits: settings.weights.0[0],
            settings,
            by_owner: false,
            numbers: HashMap::new(),
            next: Vec::new(),
            queues: Vec::new(),
            turns: [Turn { next: 0, left }; 4],
            level: 0,
        }
    }

    /// Names the tenants: see [`super::controller::Controller::set_tenants`].
    pub(super) fn set_tenants(&mut self, classes: Vec<Class>, by_owner: bool) {
        (self.settings.classes, self.by_owner) = (Classes(classes), by_owner);
    }

    /// The same queues without commands.
    pub(super) fn emptied(&self) -> Self {
        Queues { by_owner: self.by_owner, ..Queues::new(self.settings.clone()) }
    }

    /// Adds a command of `owner` and `job`.
    #[inline]
    pub(super) fn submit(&mut self, owner: u32, job: u32, command: Submitted) {
        let each = self.settings.each as usize;
        let at = if each == 0 { job as usize } else { self.spread(owner, job, each) };
        while self.queues.len() <= at {
            let class = match self.settings.arbitration {
                Arbitration::RoundRobin => Class::Medium,
                Arbitration::Weighted => self.class(self.queues.len() / each.max(1)),
            };
            self.queues.push((class, VecDeque::new()));
        }
        self.queues[at].1.push_back(command);
    }

    fn class(&self, tenant: usize) -> Class {
        self.settings.classes.0.get(tenant).copied().unwrap_or(Class::Medium)
    }

    /// The next of the queues of a tenant that has `each`.
    fn spread(&mut self, owner: u32, job: u32, each: usize) -> usize {
        let known = self.numbers.len();
        let tenant = if self.by_owner { *self.numbers.entry(owner).or_insert(known) } else { job as usize };
        if self.next.len() <= tenant {
            self.next.resize(tenant + 1, 0);
        }
        let next = &mut self.next[tenant];
        let queue = *next;
        *next = (queue + 1) % each;
        tenant * each + queue
    }

    /// Time from which a command can be fetched; [`Nanos::MAX`] without commands.
    #[inline]
    pub(super) fn first_at(&self) -> Nanos {
        self.queues.iter().filter_map(|(_, queue)| queue.front()).map(|first| first.at).min().unwrap_or(Nanos::MAX)
    }

    /// Fetches the command that is next at `now`.
    #[inline]
    pub(super) fn fetch(&mut self, now: Nanos) -> Option<Submitted> {
        if self.settings.arbitration == Arbitration::RoundRobin {
            return self.take(Class::Medium, u32::MAX, now);
        }
        if let Some(urgent) = self.take(Class::Urgent, u32::MAX, now) {
            return Some(urgent);
        }
        // The first class twice, because its turn may have been over.
        for _ in 0..=3 {
            if self.credits > 0
                && let Some(command) = self.take(ALL[1 + self.level], self.credits, now)
            {
                self.credits -= 1;
                return Some(command);
            }
            self.level = (self.level + 1) % 3;
            self.credits = self.settings.weights.0[self.level];
        }
        None
    }

    /// Takes the next command of `class` at `now`, of which at most `most` may follow each other.
    #[inline]
    fn take(&mut self, class: Class, most: u32, now: Nanos) -> Option<Submitted> {
        let burst = if self.settings.burst == 0 { u32::MAX } else { self.settings.burst };
        let (count, Turn { next, left }) = (self.queues.len(), self.turns[class as usize]);
        for step in 0..count {
            let at = (next + step) % count;
            let (own, queue) = &mut self.queues[at];
            if *own != class || queue.front().is_none_or(|first| first.at > now) {
                continue;
            }
            let left = if step == 0 { left } else { burst }.min(most) - 1;
            let over = Turn { next: (at + 1) % count, left: burst };
            self.turns[class as usize] = if left == 0 { over } else { Turn { next: at, left } };
            return queue.pop_front();
        }
        None
    }

    /// All waiting commands.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Submitted> {
        self.queues.iter().flat_map(|(_, queue)| queue)
    }
}

#[cfg(test)]
mod tests;
