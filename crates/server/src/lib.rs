//! A simulated drive as a network block device, so that real programs can use it.
//!
//! It models what a program finds on the drive: bytes that go through the translation layer, its garbage collection and its
//! faults, and come back verified. It ignores time: the drive answers as fast as the machine simulates, and the time of the
//! simulated drive is never imposed on the client; at `timed` fidelity it only stands in the result. What is stored is lost
//! when the server ends.
//!
//! [`wire`] holds the protocol's numbers, [`handshake`] and [`transmission`] its two phases over any stream, [`drive`] the
//! thread that works the drive, [`listen`] the sockets, [`arguments`] the command line. Sockets, threads, signals and wall
//! clocks of the project are here only. For Unix.

pub mod arguments;
pub mod drive;
pub mod fuzzing;
pub mod handshake;
pub mod listen;
pub mod transmission;
pub mod wire;
