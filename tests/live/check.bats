# kiln check on live processes, on Debian's own server, and as a program to be copied to other hosts.
load helper

setup() { kiln_setup; }
teardown() { kiln_teardown; }

@test "kiln-check needs libelf, jansson, inih and libc, and no other library" {
    run objdump -p "$BIN/kiln-check"
    [ "$status" = 0 ]
    needed=$(awk '$1 == "NEEDED" {print $2}' <<<"$output" | sort | paste -sd ' ')
    echo "$needed"
    # libdw is loaded by the child process that reads debug information.
    [ "$needed" = "libc.so.6 libelf.so.1 libinih.so.1 libjansson.so.4" ]
}

@test "without libdw debug information cannot be known, and the rest is" {
    need_root
    unshare -m true 2>/dev/null || skip "needs unshare, and a root directory that is a mount"
    bigtext huge $MAX2M -g
    lib=$(ldconfig -p | awk '/libdw.so.1 / {print $NF; exit}')
    [ -n "$lib" ] || skip "no libdw on this host"
    run unshare -m sh -c "mount --bind /dev/null '$(realpath "$lib")' && '$BIN/kiln-check' '$DIR/huge'"
    echo "$output"
    [ "$status" = 0 ]
    [[ $output == *"libdw.so.1 is not installed"* ]]
    [[ $output == *"pagecache "*"yes"* ]]
}

@test "Debian's mariadbd: no way but remap, and what to change" {
    need_server
    run "$BIN/kiln-check" --json /usr/sbin/mariadbd
    [ "$status" = 0 ]
    [ "$(jq -r '[.modes[] | select(.answer == "yes").mode] | join(" ")' <<<"$output")" = remap ]
    [ "$(jq -r '.facts.flavour.value' <<<"$output")" = MariaDB ]
    [ "$(jq -r '.host.answer' <<<"$output")" != no ]
    run "$BIN/kiln-check" /usr/sbin/mariadbd --require=text-alignment,relro=full
    [ "$status" = 1 ]
    [[ $output == *"-Wl,-z,max-page-size=2097152"* ]]
}

@test "the stated version of libhugetlbfs and its answer to a program agree" {
    ldconfig -p | grep -q libhugetlbfs.so.0 || skip "no libhugetlbfs on this host"
    bigtext huge $MAX2M
    stated=$("$BIN/kiln-check" --layout --json "$DIR/huge" | jq -c .libhugetlbfs)
    asked=$("$BIN/kiln-check" --json "$DIR/huge" | jq -c .libhugetlbfs)
    echo "$stated $asked"
    [ "$stated" = "$asked" ]
    [ "$(jq .segment_limit <<<"$stated")" -ge 3 ]
}

@test "a live process: coverage by mapping, and a file that was replaced under it" {
    need_root; need_pool
    bigtext huge $MAX2M
    launch_background --program "$DIR/huge@text=hugetlbfs:R"
    pid=$(pgrep -P "$KILN_PID" | head -1)
    run "$BIN/kiln-check" --pid="$pid" --json
    [ "$status" = 0 ]
    jq -e '.process.text_huge_percent == 100' <<<"$output" || { jq .process <<<"$output"; return 1; }
    run "$BIN/kiln-check" --pid="$pid"
    [[ $output == *"main program"* && $output == *"hugetlb"* && $output == *"libc.so.6"* ]]
    gcc -O1 -g $MAX2M -Wl,--build-id=0x0123456789 -o "$DIR/other" "$BATS_TEST_DIRNAME/../fixtures/bigtext.c"
    mv "$DIR/other" "$DIR/huge"
    run "$BIN/kiln-check" --pid="$pid"
    echo "$output"
    [[ $output == *"replaced on disk"*"restart"* ]]
    rm "$DIR/huge"
    run "$BIN/kiln-check" --pid="$pid"
    [[ $output == *"deleted on disk"* ]]
}

@test "padding makes the tail of a live program huge, from the page cache" {
    need_root
    bigtext huge $MAX2M
    before=$("$BIN/kiln-launch" launch --program "$DIR/huge@text=pagecache" --verify-only --json) || {
        [ $? != 77 ] || skip "the file system has no large folios"
        return 1
    }
    "$BIN/kiln-check" --pad "$DIR/huge"
    after=$("$BIN/kiln-launch" launch --program "$DIR/huge@text=pagecache" --verify-only --json)
    echo "$before" "$after"
    [ "$(jq -r .text_huge_bytes <<<"$before")" = 4194304 ]
    [ "$(jq -r '.text_huge_percent' <<<"$after")" = 100 ] || [ "$(jq -r '.text_huge_percent' <<<"$after")" = 100.0 ]
    "$BIN/kiln-check" --require=padded "$DIR/huge" >/dev/null
    strip "$DIR/huge"
    run "$BIN/kiln-check" --require=padded "$DIR/huge"
    [ "$status" = 1 ]
}

@test "no file of the fuzzer's corpus takes more than 2 seconds or 256 MB" {
    "$BATS_TEST_DIRNAME/../fuzz/seeds.sh" "$DIR/seeds"
    count=0
    for f in "$BATS_TEST_DIRNAME"/../fuzz/corpus/* "$DIR"/seeds/*; do
        run bash -c 'ulimit -v 262144; timeout 2 "$1" --json "$2"' _ "$BIN/kiln-check" "$f"
        [ "$status" = 0 ] || { [ "$status" = 2 ] && [ "${#lines[@]}" = 1 ]; } || {
            echo "$f: exit $status: $output"
            return 1
        }
        count=$((count + 1))
    done
    echo "$count files"
    [ "$count" -ge 100 ]
}
