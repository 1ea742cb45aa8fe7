//! A simulated drive as a network block device, so that real programs can use it.
//!
//! It models the data path: bytes pass the translation layer, its garbage collection and its faults, and reads are verified. It
//! ignores time: the drive answers as fast as the machine simulates, and the simulated time is never imposed on the client; at
//! `timed` fidelity it is only in the result. The contents are lost when the server ends.
//!
//! [`wire`] holds the protocol's numbers, [`handshake`] and [`transmission`] its two phases over any stream, [`drive`] the
//! thread that runs the drive, [`listen`] the sockets, [`patience`] their limits, [`arguments`] the command line. Sockets, threads, signals and wall
//! clocks of the project are here only. For Unix.

pub mod arguments;
pub mod drive;
pub mod fuzzing;
pub mod handshake;
pub mod listen;
pub mod patience;
pub mod transmission;
pub mod wire;
