# The oracle is reality: what kiln check predicts for some hundred binaries, against what the kernel
# shows of each when it runs. The binaries are the table matrix/cases; matrix/run builds and runs them.
load helper

setup_file() {
    # Rows and logs of every run stay after the test, to be read when something disagrees.
    # KILN_MATRIX_ONLY: a shell pattern for names of cases, to look at a few.
    export MATRIX=${KILN_MATRIX_DIR:-/tmp/kiln-matrix.$(id -u)}
    rm -rf "$MATRIX"
    mkdir -m 700 "$MATRIX" || return 1
    export POOL_AT_START MOUNTS_AT_START MATRIX_RC=0
    POOL_AT_START=$(cat /proc/sys/vm/nr_hugepages 2>/dev/null || true)
    MOUNTS_AT_START=$(grep -c kiln-matrix /proc/mounts || true)
    "$BATS_TEST_DIRNAME/matrix/run" "$MATRIX" "${KILN_MATRIX_ONLY:-*}" >"$MATRIX/out" 2>&1 || MATRIX_RC=$?
}

setup() {
    [ "$MATRIX_RC" != 77 ] || skip "$(tail -n 1 "$MATRIX/out")"
    [ "$MATRIX_RC" = 0 ] || { cat "$MATRIX/out"; return 1; }
}

# agree MODE: every row of a mode that was run agrees, or cannot be known for a stated reason.
agree() {
    local rows wrong run why
    rows=$(awk -F '\t' -v mode="$1" '$2 == mode' "$MATRIX/results.tsv")
    # Where the host lacks what a mode takes, all of its rows say so.
    why=$(awk -F '\t' '$6 == "not-run" {print $7}' <<<"$rows" | sort | uniq -c | sort -rn | head -n 1)
    run=$(awk -F '\t' '$6 != "not-run"' <<<"$rows" | wc -l)
    [ "$run" != 0 ] || skip "${why:-no binaries}" # the count and the reason
    wrong=$(awk -F '\t' '$6 !~ /^(agree|cannot-know|not-run)$/' <<<"$rows")
    printf '%s\n' "all rows: $MATRIX/results.tsv" "not run: ${why:-none}" "$wrong"
    [ -z "$wrong" ]
    # A few may have failed for want of memory in one piece; more leave too little to speak of.
    [ $(($(wc -l <<<"$rows") - run)) -le 5 ] || skip "only $run of $(wc -l <<<"$rows") were run: $why"
}

@test "at least 80 binaries are built and run" {
    cat "$MATRIX/summary"
    sed 's/^/dropped: /' "$MATRIX/dropped.tsv"
    # What kiln or a linker fails at is a failure; what is not installed only makes the matrix smaller.
    run grep -v $'\tneeds ' "$MATRIX/dropped.tsv"
    echo "$output"
    [ "$status" = 1 ]
    [ "$(cut -f 1 "$MATRIX/results.tsv" | sort -u | wc -l)" -ge 80 ] || [ -s "$MATRIX/dropped.tsv" ]
    if [ -s "$MATRIX/dropped.tsv" ]; then
        skip "$(cat "$MATRIX/summary"); $(cut -f 2 "$MATRIX/dropped.tsv" | sort | uniq -c | paste -sd ';')"
    fi
}

@test "HUGETLB_ELFMAP=R: smaps is as predicted" { agree hugetlbfs:R; }
@test "HUGETLB_ELFMAP=W: smaps is as predicted" { agree hugetlbfs:W; }
@test "HUGETLB_ELFMAP=RW: smaps is as predicted" { agree hugetlbfs:RW; }
@test "segments marked by hugeedit: smaps is as predicted" { agree hugetlbfs:marked; }
@test "a page cache filled in 2 MiB folios: smaps is as predicted" { agree pagecache; }
@test "a copy on tmpfs with huge=always: smaps is as predicted" { agree tmpfs; }

@test "pool and mounts are as before" {
    [ "$(cat /proc/sys/vm/nr_hugepages)" = "$POOL_AT_START" ]
    [ "$(grep -c kiln-matrix /proc/mounts || true)" = "$MOUNTS_AT_START" ]
}
