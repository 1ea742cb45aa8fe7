"""Papers that are reproduced, a folder each: `paper.toml`, and functions for the parts that are no data."""
