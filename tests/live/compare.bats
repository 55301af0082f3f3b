# kiln compare and kiln report with Debian's own server.
load helper

setup() { kiln_setup; }
teardown() { kiln_teardown; }

QUICK=(--workloads=point-query --rows=2000 --warmup=0.3 --seconds=0.7 --threads=1)

@test "starts alternate A B B A, and the table can be made again from the file" {
    need_server
    run "$BIN/kiln-compare" compare "system@malloc=glibc" "system@cpus=0" --pairs=2 "${QUICK[@]}" --out="$DIR/r"
    echo "$output"
    [ "$status" = 0 ] || [ "$status" = 3 ]
    f=$DIR/r/compare.json
    [ "$(jq -c '[.rounds[].order]' "$f")" = '[["A","B"],["B","A"]]' ]
    [ "$(jq '.complete' "$f")" = true ]
    # Both subjects started from a stated cache condition.
    [ "$(jq -c '[.subjects[].subject]' "$f")" = '["system@malloc=glibc,text=none","system@cpus=0,text=none"]' ]
    [ "$(jq '[.rounds[].results[].launch.text_huge_bytes] | unique == [0]' "$f")" = true ]
    run "$BIN/kiln-report" report "$f" --format=tsv
    [ "$status" = 0 ]
    [[ $output == *point-query* ]]
    # The ratio in the file's table is the geometric mean of the rounds' own ratios.
    want=$(jq '[.rounds[] | ((.results[1].workloads[0].qps / .results[0].workloads[0].qps) | log)] | (add / length) | exp * 1000 | round' "$f")
    got=$("$BIN/kiln-report" report "$f" --format=json | jq '[.. | objects | select(has("relative_qps")) | .relative_qps][0] * 1000 | round')
    echo "want $want got $got"
    [[ $want =~ ^[0-9]+$ ]]
    [ "$want" = "$got" ]
    assert_restored
}

@test "a condition that cannot be had stops the comparison with its reason" {
    need_server
    run "$BIN/kiln-compare" compare system "system@text=pagecache" --pairs=1 "${QUICK[@]}"
    [ "$status" = 1 ]
    [[ $output == *"text=pagecache cannot work"* ]]
    assert_restored
}

@test "Ctrl-C: exit 130, what was measured is kept and named, the host is as before" {
    need_server
    "$BIN/kiln-compare" compare system "system@cpus=0" --pairs=30 "${QUICK[@]}" --out="$DIR/r" >"$DIR/out" 2>&1 3>&- &
    pid=$!
    for _ in $(seq 300); do
        [ "$(jq '[.rounds[].results[] | select(.)] | length' "$DIR/r/compare.json" 2>/dev/null || echo 0)" -ge 1 ] && break
        sleep 0.2
    done
    kill -INT $pid
    rc=0; wait $pid || rc=$?
    cat "$DIR/out"
    [ "$rc" = 130 ]
    grep -q "results so far: $DIR/r/compare.json" "$DIR/out"
    [ "$(jq '.complete' "$DIR/r/compare.json")" = false ]
    assert_restored
}

@test "fewer than two subjects, and files that are no result: one line, exit 2" {
    run "$BIN/kiln-compare" compare system
    [ "$status" = 2 ]
    [ "${#lines[@]}" = 1 ]
    run "$BIN/kiln-report" report "$BATS_TEST_FILENAME"
    [ "$status" = 2 ]
    [ "${#lines[@]}" = 1 ]
    [[ $output == *"not JSON"* ]]
}
