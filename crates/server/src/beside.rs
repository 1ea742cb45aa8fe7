//! The command of `--run`, which must not outlive the service: all processes end, not the shell alone.
//!
//! If standard input is a terminal, the command stays in the terminal's process group, so that Ctrl-C reaches all
//! processes; SIGTERM of the service then ends the shell only. Ignored: processes that left the group.

use crate::attach::Attached;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use palimpsest_lab::error::{Error, Result};
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Time between SIGTERM and SIGKILL.
const FAREWELL: Duration = Duration::from_secs(2);

/// A command that runs beside the service.
pub struct Beside {
    child: Child,
    /// Whether the command is a process group.
    is_group: bool,
    has_ended: bool,
}

impl Beside {
    /// Starts the command with the place of the drive as variables.
    ///
    /// # Errors
    /// [`Error::Input`] if there is no shell.
    pub fn start(run: &str, uris: &[String], attached: Option<&Attached>) -> Result<Beside> {
        let mut found: Vec<(&str, OsString)> = uris.first().map(|uri| ("uri", uri.into())).into_iter().collect();
        found.extend(attached.iter().flat_map(|attached| attached.variables()));
        Beside::with(run, &found)
    }

    /// Starts the command with the variables `found`.
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

    /// The exit status once the command has ended.
    pub fn ended(&mut self) -> Option<Option<i32>> {
        let ended = match self.child.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(status.code()),
            Err(_) => Some(None),
        };
        self.has_ended |= ended.is_some();
        ended
    }

    fn number(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    fn signal(&self, signal: Signal) {
        // The processes may have ended.
        let _ = if self.is_group { killpg(self.number(), signal) } else { kill(self.number(), signal) };
    }

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
