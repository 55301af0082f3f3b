# Every command of the README is run as it stands. Those that need a source build are run where the
# builds stand in the store that KILN_README_HOME names (make check-full), and skipped elsewhere.
load helper

setup() { kiln_setup; PATH=$BIN:$PATH; }
teardown() { kiln_teardown; }

# The README's kiln lines, in order; with_builds: those that name a build of the store.
commands() { grep -E '^    kiln ' "$BATS_TEST_DIRNAME/../../README.md" | sed 's/^    //'; }

run_each() {
    local line count=0
    while IFS= read -r line; do
        echo "\$ $line"
        rc=0
        bash -c "$line" </dev/null || rc=$?
        # 3 is an answer too: two pairs seldom tell two allocators apart. So is 1: two files differ.
        [[ $line != *--diff* || $rc != 1 ]] || rc=0
        [ "$rc" = 0 ] || [ "$rc" = 3 ] || { echo "exit code $rc"; return 1; }
        count=$((count + 1))
    done
    [ "$count" -gt 0 ]
}

@test "the README's commands that need no source build" {
    need_server
    commands | grep -vE 'gcc-o2(-hugetext)?[ @]|kiln build' >"$DIR/lines" || true
    commands | grep -E '^kiln profiles' >>"$DIR/lines"
    run_each <"$DIR/lines"
}

@test "the README's commands on builds of the store" {
    [ -n "${KILN_README_HOME:-}" ] || skip "needs source builds: make check-full runs it"
    export KILN_HOME=$KILN_README_HOME
    commands | grep -E 'gcc-o2(-hugetext)?[ @]|kiln build' >"$DIR/lines"
    run_each <"$DIR/lines"
}

@test "the README's make targets exist" {
    cd "$BATS_TEST_DIRNAME/../.."
    for target in $(grep -oE 'make [a-z-]+' README.md | cut -d' ' -f2 | sort -u); do
        [[ $target =~ ^(alone)$ ]] || make -n "$target" >/dev/null 2>&1 || { echo "$target"; false; }
    done
}
