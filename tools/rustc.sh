#!/bin/sh
# For RUSTC_WORKSPACE_WRAPPER in .ci/run, where nothing is compiled twice, nor read twice: the compiler of every crate of ours is
# that of clippy, so what it says of a crate ends the build, and rustdoc follows with the same arguments. `cargo clippy` and `cargo doc`
# would check all dependencies once more.
#
# Unit tests of the crates are compiled without optimization: most run in less than a second, and take five times as long to
# compile at the level of their crate. Those of the lab run whole drives, those of the codes every message: they keep their
# level, as does all that is no unit test, but for the benches, which are only linted here.
#
# What every simulated operation runs is compiled in one part: it takes no longer than in two, and calls within a crate are
# inlined, a tenth off all that simulates.
set -eu
linter=$(dirname "$1")/clippy-driver

# A library's pages: rustdoc, with what cargo gives the compiler.
document() {
    before=
    shift
    for argument do
        shift
        case $before in --out-dir) argument=${argument%/*/deps}/doc ;; esac
        case $argument in --emit=*) ;; *) set -- "$@" "$argument" ;; esac
        before=$argument
    done
    "${linter%/*}/rustdoc" "$@" -D warnings --crate-version "$CARGO_PKG_VERSION"
}

case " $* " in
    *" --emit="*) ;;
    *) exec "$@" ;;
esac
case " $* " in
    *"/benches/"*) level=opt-level=0 ;;
    *" crates/lab/"* | *" crates/wom/"*) level= ;;
    *"src/lib.rs "*" --test "*) level=opt-level=0 ;;
    *" crates/flash/src/lib.rs "* | *" crates/ftl-api/src/lib.rs "* | *" crates/ftl/src/lib.rs "* | *" crates/sim/src/lib.rs "* | *" crates/fs/src/lib.rs "*)
        level=codegen-units=1 ;;
    *) level= ;;
esac
"$linter" "$@" ${level:+-C $level}
case " $* " in
    *" --test "*) ;;
    *"src/lib.rs "*) document "$@" ;;
esac
