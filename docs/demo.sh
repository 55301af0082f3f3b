#!/bin/bash
# From source to a verdict: builds MariaDB twice, proves both, launches both, compares them.
#   docs/demo.sh BINDIR      run as root by "make demo"; what stands already is reused
set -euo pipefail
bin=$(cd "$1" && pwd)
kiln() { "$bin/kiln" "$@"; }
say() { printf '\n== %s\n' "$*"; }

say "doctor: what this host can do"
kiln doctor

say "build: MariaDB's source from Debian, a plain build and one for text on 2 MiB pages"
kiln build --source apt:mariadb --feature-set minimal --profile gcc-o2 --profile gcc-o2-hugetext

say "check: does each binary keep its profile's promises?"
kiln check gcc-o2 --profile gcc-o2
kiln check gcc-o2-hugetext --profile gcc-o2-hugetext

say "launch: what each server gets on this host"
kiln launch "gcc-o2@text=none" --verify-only
kiln launch "gcc-o2-hugetext@text=hugetlbfs:R" --verify-only

# Where the file system has large folios, the way that needs no pool is compared as well.
subjects=("gcc-o2@text=none" "gcc-o2-hugetext@text=hugetlbfs:R")
if kiln launch "gcc-o2-hugetext@text=pagecache" --verify-only; then
    subjects+=("gcc-o2-hugetext@text=pagecache")
fi

say "compare: ${KILN_DEMO_PAIRS:-4} starts of each, side by side"
# Exit code 3 is an honest answer here: few starts on a small machine may resolve nothing.
rc=0
kiln compare "${subjects[@]}" --pairs "${KILN_DEMO_PAIRS:-4}" --warmup 2 --seconds 5 || rc=$?
[ "$rc" = 3 ] || exit "$rc"
