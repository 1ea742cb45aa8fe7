#!/bin/sh
# For RUSTC_WORKSPACE_WRAPPER in .ci/run, where nothing is compiled twice.
#
# Unit tests of the crates are compiled without optimization: most run in less than a second, and take five times as long to
# compile at the level of their crate. Those of the lab run whole drives, those of the codes every message: they keep their
# level, as does all that is no unit test.
#
# What every simulated operation runs is compiled in one part: it takes no longer than in two, and calls within a crate are
# inlined, a tenth off all that simulates.
case " $* " in
    *" crates/lab/"* | *" crates/wom/"*) ;;
    *"/src/lib.rs "*" --test "*) exec "$@" -C opt-level=0 ;;
    *" crates/flash/src/lib.rs "* | *" crates/ftl-api/src/lib.rs "* | *" crates/ftl/src/lib.rs "* | *" crates/sim/src/lib.rs "* | *" crates/fs/src/lib.rs "*)
        exec "$@" -C codegen-units=1 ;;
esac
exec "$@"
