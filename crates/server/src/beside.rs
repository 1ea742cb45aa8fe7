//! The command of `--run`, which does not outlive the service: all processes of it end, not its shell alone.
//!
//! Where the standard input is a terminal, the command stays in the terminal's group, so that it can be asked and Ctrl-C reaches all of it;
//! then SIGTERM of the service ends its shell only. What has left the group is not ended.

use crate::attach::Attached;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use palimpsest_lab::error::{Error, Result};
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// How long it may take to end.
const FAREWELL: Duration = Duration::from_secs(2);

/// A command that runs beside the service.
pub struct Beside {
    child: Child,
    /// Whether it is a group of processes of its own.
    is_group: bool,
    has_ended: bool,
}

impl Beside {
    /// Starts it, with the place of the drive in its environment.
    ///
    /// # Errors
    /// There is no shell.
    pub fn start(run: &str, uris: &[String], attached: Option<&Attached>) -> Result<Beside> {
        let mut found: Vec<(&str, OsString)> = uris.first().map(|uri| ("uri", uri.into())).into_iter().collect();
        found.extend(
            attached.iter().flat_map(|attached| [("dev", attached.place().into()), ("file", attached.file().into())]),
        );
        Beside::with(run, &found)
    }

    /// Starts it with these variables in its environment.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn with(run: &str, found: &[(&str, impl AsRef<OsStr>)]) -> Result<Beside> {
        let variables = found.iter().map(|(name, value)| (name, value));
        let mut command = Command::new("sh");
        let is_group = !std::io::stdin().is_terminal();
        if is_group {
            command.process_group(0);
        }
        let started = command.args(["-c", run]).envs(variables).spawn();
        let begun = |child| Beside { child, is_group, has_ended: false };
        started.map(begun).map_err(|error| Error::input("--run", format!("{error}; expected a shell to run it")))
    }

    /// Its status, when it has ended.
    pub fn ended(&mut self) -> Option<Option<i32>> {
        let ended = match self.child.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(status.code()),
            Err(_) => Some(None),
        };
        self.has_ended |= ended.is_some();
        ended
    }

    /// The number of its shell, and of its group where it is one.
    fn number(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    /// Sends `signal` to all of it.
    fn signal(&self, signal: Signal) {
        // What is gone needs none.
        let _ = if self.is_group { killpg(self.number(), signal) } else { kill(self.number(), signal) };
    }

    /// Whether any of it is left.
    fn is_there(&mut self) -> bool {
        let _ = self.ended();
        if self.is_group { killpg(self.number(), None).is_ok() } else { !self.has_ended }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        self.signal(Signal::SIGTERM);
        let begin = Instant::now();
        while self.is_there() && begin.elapsed() < FAREWELL {
            std::thread::sleep(Duration::from_millis(2));
        }
        if self.is_there() {
            self.signal(Signal::SIGKILL);
        }
        let _ = self.child.wait();
    }
}
