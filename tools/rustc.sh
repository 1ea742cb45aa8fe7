#!/bin/sh
# For RUSTC_WORKSPACE_WRAPPER in .ci/run: compiles unit tests of the crates without optimization. Most run in less than a
# second, and take five times as long to compile at the level of their crate. Those of the lab run whole drives, those of
# the codes every message: they keep their level, as does all that is no unit test.
case " $* " in
    *" crates/lab/"* | *" crates/wom/"*) ;;
    *"/src/lib.rs "*" --test "*) exec "$@" -C opt-level=0 ;;
esac
exec "$@"
