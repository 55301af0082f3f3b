#!/usr/bin/env bats
# kiln profiles: the grid is complete, resolves for both flavours, and refuses what it must.

setup() {
    export KILN_HOME="$BATS_TEST_TMPDIR/home"
    BUILD="$KILN_BIN/kiln-build"
}

grid() {
    for compiler in gcc clang; do
        for level in o2 o3 ofast; do
            echo "$compiler-$level" "$compiler-$level-hugetext" "$compiler-$level-nogold"
        done
    done
    echo gcc-o2-libhugetlbfs
}

profile() { # NAME, text on standard input
    cat > "$BATS_TEST_TMPDIR/$1.ini"
    echo "$BATS_TEST_TMPDIR/$1.ini"
}

@test "the list has the whole grid" {
    run "$BUILD" profiles
    [ "$status" -eq 0 ]
    for p in $(grid); do
        grep -q "^$p " <<< "$output"
    done
}

@test "every profile resolves for MariaDB and MySQL" {
    for p in $(grid); do
        for server in mariadb-10.11.18 mysql-8.0.45 mysql-8.0.30; do
            "$BUILD" profiles "$p" --for "$server" --json | jq -e '
                .schema == "kiln.profile/1" and
                (.resolved.server_link_flags[0] | startswith("-fuse-ld=")) and
                (.resolved.cmake | all(.parts | all(.origin != "")))' > /dev/null
        done
    done
}

@test "a linker gets only flags that it knows, and never common-page-size" {
    for p in $(grid); do
        flags=$("$BUILD" profiles "$p" --json | jq -r '.resolved.server_link_flags | join(" ")')
        [[ "$flags" != *common-page-size* ]]
        case "$p" in
        clang-*-hugetext) [ "$flags" = "-fuse-ld=lld -Wl,-z,max-page-size=2097152 -Wl,-z,separate-code" ] ;;
        gcc-*-hugetext) [ "$flags" = "-fuse-ld=bfd -Wl,-z,max-page-size=2097152" ] ;;
        *-nogold | gcc-o2 | gcc-o3 | gcc-ofast) [ "$flags" = "-fuse-ld=bfd" ] ;;
        clang-o2 | clang-o3 | clang-ofast) [ "$flags" = "-fuse-ld=lld" ] ;;
        gcc-o2-libhugetlbfs) [[ "$flags" == *noseparate-code*-no-pie*-lhugetlbfs* ]] ;;
        *) false ;;
        esac
    done
}

@test "nogold turns gold off where the source has the option" {
    run "$BUILD" profiles gcc-o2-nogold --for mysql-8.0.30
    [[ "$output" == *"USE_LD_GOLD"*"gcc-o2-nogold.ini:"* ]]
    run "$BUILD" profiles gcc-o2-nogold --for mysql-8.0.45
    [[ "$output" != *USE_LD_GOLD* ]]
}

@test "an unknown profile is one line that names the others" {
    run "$BUILD" profiles no-such
    [ "$status" -eq 2 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ "$output" == *no-such*gcc-o2* ]]
}

@test "an unknown key names file and line" {
    file=$(printf '[profile]\ndescription = x\nlinkr = bfd\n' | profile bad)
    run "$BUILD" profiles "$file"
    [ "$status" -eq 2 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ "$output" == *bad.ini:3:*linkr* ]]
}

@test "a circle of inheritance names file and line" {
    printf '[profile]\ninherits = b\n' | profile a > /dev/null
    printf '[profile]\n# b\ninherits = a\n' | profile b > /dev/null
    run "$BUILD" profiles "$BATS_TEST_TMPDIR/a.ini"
    [ "$status" -eq 2 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ "$output" == *b.ini:3:*circle* ]]
}

@test "a wrong value names file and line" {
    file=$(printf '[profile]\noptimisation = -O9\n' | profile bad)
    run "$BUILD" profiles "$file"
    [ "$status" -eq 2 ]
    [[ "$output" == *bad.ini:2:*-O9* ]]
}

@test "padding is shown with its origin, and off by default" {
    run "$BUILD" profiles gcc-o2
    [[ "$output" == *"padded to 2 MiB: no (kiln)"* ]]
    run "$BUILD" profiles gcc-o2-hugetext
    [[ "$output" == *"padded to 2 MiB: yes (gcc-o2-hugetext.ini:"* ]]
    printf '[profile]\ninherits = gcc-o2-hugetext\npad = yes\n' | profile own > /dev/null
    run "$BUILD" profiles "$BATS_TEST_TMPDIR/own.ini"
    [ "$status" -eq 0 ]
    [[ "$output" == *"padded to 2 MiB: yes (own.ini:3)"* ]]
    "$BUILD" profiles "$BATS_TEST_TMPDIR/own.ini" --json | jq -e '
        .resolved.pad == {"value": true, "origin": "own.ini:3"}' > /dev/null
}

@test "a server that is none is refused" {
    run "$BUILD" profiles gcc-o2 --for postgres-17
    [ "$status" -eq 2 ]
    [ "${#lines[@]}" -eq 1 ]
}
