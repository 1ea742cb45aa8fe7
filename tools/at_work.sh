#!/usr/bin/env bash
# at_work.sh SECONDS WHAT COMMAND...: runs COMMAND. Until COMMAND ends, prints a line on standard error every SECONDS,
# because compilers and installers print nothing for minutes. A shorter COMMAND prints no line. The status is COMMAND's.
# FAR names a program whose output ends each line: how far COMMAND is.
set -u
every=$1 what=$2
shift 2
(
	nap=
	trap 'kill $nap 2>/dev/null; exit' TERM
	while :; do
		sleep "$every" &
		nap=$!
		wait "$nap"
		printf '%s for %d:%02d%s\n' "$what" $((SECONDS / 60)) $((SECONDS % 60)) "${FAR:+, $($FAR)}"
	done
) >&2 &
lines=$!
trap 'kill "$lines" 2>/dev/null; wait "$lines" 2>/dev/null' EXIT
"$@"
