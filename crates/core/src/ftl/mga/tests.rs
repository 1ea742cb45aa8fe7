//! The figures of the paper as tests, and what goes beyond them.
