#!/bin/sh
# For RUSTC_WORKSPACE_WRAPPER in .ci/run, which must neither compile nor parse a crate twice. clippy compiles every crate
# of ours, so a lint ends the build, and rustdoc follows with the same arguments. `cargo clippy` and `cargo doc` would
# check all dependencies once more.
#
# Unit tests of the crates are compiled without optimization, because most run in less than a second and would take five
# times as long to compile at the level of their crate. Tests of the lab run whole drives and tests of the codes encode
# every message: they keep their level, as do all other tests. Benches are only linted here.
#
# Crates on the path of every simulated operation are one codegen unit. This takes no longer than two, and calls within
# a crate are inlined, which makes simulations 10 % faster.
set -eu
linter=$(dirname "$1")/clippy-driver

# A library's pages: rustdoc with cargo's arguments for the compiler.
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
    *" crates/flash/src/lib.rs "* | *" crates/ftl-api/src/lib.rs "* | *" crates/ftl/src/lib.rs "* | \
        *" crates/sim/src/lib.rs "* | *" crates/fs/src/lib.rs "*)
        level=codegen-units=1 ;;
    *) level= ;;
esac
"$linter" "$@" ${level:+-C $level}
case " $* " in
    *" --test "*) ;;
    *"src/lib.rs "*) document "$@" ;;
esac
