# Real source builds of MariaDB, checked and started. Uses the store that KILN_HOME names (or the
# default one), so that what stands is reused; needs root for the huge page pool.
BIN=${KILN_BIN:?KILN_BIN must name the directory of the programs}

kiln() { "$BIN/kiln" "$@"; }
home() { kiln --help | sed -n 's/.*kept in //p'; }

setup_file() {
    export SOURCE=${KILN_SOURCE:-apt:mariadb}
    kiln build --source "$SOURCE" --feature-set minimal --profile gcc-o2 >&3 2>&3
}

# build PROFILE: and the wall time of the build in its manifest
build() { kiln build --source "$SOURCE" --feature-set minimal --profile "$1" >&3 2>&3; }

launched() { # SUBJECT JQ-CONDITION
    run kiln launch "$1" --verify-only --json
    [ "$status" = 0 ] || { echo "$output"; return 1; }
    jq -e "$2" <<<"$output"
}

@test "gcc-o2: keeps its promises and runs on 4 KiB pages" {
    run kiln check gcc-o2 --profile gcc-o2
    echo "$output"
    [ "$status" = 0 ]
    launched "gcc-o2@text=none" '.text_huge_bytes == 0'
}

@test "gcc-o2-hugetext: keeps its promises; all of its text on huge pages by libhugetlbfs" {
    build gcc-o2-hugetext
    run kiln check gcc-o2-hugetext --profile gcc-o2-hugetext
    echo "$output"
    [ "$status" = 0 ]
    [ "$(id -u)" = 0 ] || skip "needs root: the pool belongs to the kernel"
    launched "gcc-o2-hugetext@text=hugetlbfs:R" '.text_huge_percent == 100'
}

@test "gcc-o2-hugetext: padded, so that all of its text is on huge pages by the page cache" {
    [ "$(id -u)" = 0 ] || skip "needs root"
    run kiln launch "gcc-o2-hugetext@text=pagecache" --verify-only --json
    [ "$status" != 77 ] || skip "the file system has no large folios"
    [ "$status" = 0 ]
    jq -e '.text_huge_percent == 100' <<<"$output"
}

@test "a profile that differs only in link flags compiles nothing again" {
    m=$(home)/builds/gcc-o2-hugetext/manifest.json
    jq -e '.ccache.misses == 0 or .ccache == null' "$m"
    jq '{wall: .wall_seconds, cpu: .cpu_seconds, ccache}' "$m" >&3
}

@test "gcc-o2-libhugetlbfs: two segments, no PIE, and HUGETLB_ELFMAP=RW works" {
    build gcc-o2-libhugetlbfs
    run kiln check gcc-o2-libhugetlbfs --profile gcc-o2-libhugetlbfs
    echo "$output"
    [ "$status" = 0 ]
    [ "$(id -u)" = 0 ] || skip "needs root: the pool belongs to the kernel"
    launched "gcc-o2-libhugetlbfs@text=hugetlbfs:RW" '.text_huge_percent == 100'
}

@test "clang-o2-hugetext: linked by lld, all of its text on huge pages" {
    build clang-o2-hugetext
    run kiln check clang-o2-hugetext --profile clang-o2-hugetext
    echo "$output"
    [ "$status" = 0 ]
    [ "$(id -u)" = 0 ] || skip "needs root: the pool belongs to the kernel"
    launched "clang-o2-hugetext@text=hugetlbfs:R" '.text_huge_percent == 100'
}

@test "the README's commands on these builds" {
    [ "$(id -u)" = 0 ] || skip "needs root: the pool belongs to the kernel"
    [ "$SOURCE" = apt:mariadb ] || skip "the README builds apt:mariadb"
    KILN_README_HOME=$(home) run bats -f "builds of the store" "$BATS_TEST_DIRNAME/../live/readme.bats"
    echo "$output"
    [ "$status" = 0 ]
}

@test "every profile of the grid configures MariaDB" {
    for p in $(kiln profiles --json | jq -r '.profiles[].name'); do
        run kiln build --source "$SOURCE" --feature-set minimal --profile "$p" --configure-only
        echo "$p: $output"
        [ "$status" = 0 ]
    done
}
