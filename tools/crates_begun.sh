#!/usr/bin/env bash
# crates_begun.sh: prints how many crates of the native module a release build has begun, such as "83 of 119 crates begun".
# Ignored: other builds in the same target folder, whose crates count too, up to the total.
set -u
tree=$(cargo tree --locked --offline --package palimpsest-extension --edges normal,build --prefix none 2>/dev/null)
total=$(awk '{print $1}' <<<"$tree" | sort -u | wc -l)
begun=$(ls "${CARGO_TARGET_DIR:-target}/release/.fingerprint" 2>/dev/null | sed 's/-[0-9a-f]*$//' | sort -u | wc -l)
echo "$((begun < total ? begun : total)) of $total crates begun"
