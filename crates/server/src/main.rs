//! Placeholder until the network block device lands in the next commit.
fn main() {}
