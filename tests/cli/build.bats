#!/usr/bin/env bats
# kiln build on tiny trees that look like a server's: detection, options, levels, failures.

setup() {
    export KILN_HOME="$BATS_TEST_TMPDIR/home"
    BUILD="$KILN_BIN/kiln-build"
    TREE="$BATS_TEST_TMPDIR/tree"
}

fake_mariadb() { # a tree whose server is one file; more cmake on standard input
    mkdir -p "$TREE/sql/share" "$TREE/scripts"
    printf 'MYSQL_VERSION_MAJOR=10\nMYSQL_VERSION_MINOR=11\nMYSQL_VERSION_PATCH=99\nSERVER_MATURITY=stable\n' > "$TREE/VERSION"
    echo 'int main(void) { return 0; }' > "$TREE/sql/main.cc"
    touch "$TREE/sql/share/CMakeLists.txt" "$TREE/scripts/CMakeLists.txt"
    cat > "$TREE/sql/CMakeLists.txt" <<'END'
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
add_executable(mariadbd main.cc)
target_link_options(mariadbd PRIVATE -pie)
separate_arguments(FLAGS UNIX_COMMAND "${WITH_MYSQLD_LDFLAGS}")
target_link_options(mariadbd PRIVATE ${FLAGS})
install(TARGETS mariadbd DESTINATION bin COMPONENT Server)
END
    {
        echo 'cmake_minimum_required(VERSION 3.13)'
        echo 'project(fake C CXX)'
        echo 'foreach(v MYSQL_MAINTAINER_MODE WITH_UNIT_TESTS CONC_WITH_UNITTEST)'
        echo '  set(used "${${v}}")'
        echo 'endforeach()'
        cat
        echo 'add_subdirectory(sql)'
        echo 'add_subdirectory(sql/share)'
        echo 'add_subdirectory(scripts)'
    } > "$TREE/CMakeLists.txt"
}

build() {
    run "$BUILD" build --source "$TREE" --feature-set upstream "$@"
}

nothing_left() {
    [ -z "$(ls -A "$KILN_HOME/builds" "$KILN_HOME/work" 2> /dev/null | grep -v : )" ]
}

@test "a tree that is neither server's" {
    mkdir -p "$TREE"
    echo 'VERSION=1.0' > "$TREE/VERSION"
    touch "$TREE/CMakeLists.txt"
    build --profile gcc-o2
    [ "$status" -eq 2 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ "$output" == *"neither a MySQL nor a MariaDB"* ]]
    nothing_left
}

@test "a source that is not there" {
    build --profile gcc-o2
    [ "$status" -eq 2 ]
    [ "${#lines[@]}" -eq 1 ]
}

@test "an unknown profile stops before the source is looked at" {
    build --profile no-such
    [ "$status" -eq 2 ]
    [[ "$output" == *no-such* ]]
    [ ! -e "$KILN_HOME" ]
}

@test "an unknown feature set" {
    fake_mariadb < /dev/null
    run "$BUILD" build --source "$TREE" --feature-set none --profile gcc-o2
    [ "$status" -eq 2 ]
    [ "${#lines[@]}" -eq 1 ]
    nothing_left
}

@test "a tarball that was cut short leaves nothing" {
    fake_mariadb < /dev/null
    head -c 200000 /dev/urandom > "$TREE/sql/noise"
    tar -C "$BATS_TEST_TMPDIR" -czf "$BATS_TEST_TMPDIR/whole.tar.gz" tree
    head -c 100000 "$BATS_TEST_TMPDIR/whole.tar.gz" > "$BATS_TEST_TMPDIR/cut.tar.gz"
    run "$BUILD" build --source "$BATS_TEST_TMPDIR/cut.tar.gz" --profile gcc-o2
    [ "$status" -eq 2 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ "$output" == *cut.tar.gz* ]]
    [ -z "$(ls -A "$KILN_HOME/sources")" ]
}

@test "a missing compiler is named with its package before cmake runs" {
    fake_mariadb < /dev/null
    mkdir "$BATS_TEST_TMPDIR/bin"
    for tool in cmake ninja ccache sha256sum; do
        ln -s "$(command -v $tool)" "$BATS_TEST_TMPDIR/bin/"
    done
    PATH="$BATS_TEST_TMPDIR/bin" build --profile clang-o2
    [ "$status" -eq 2 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ "$output" == *clang*"apt-get install clang"* ]]
    nothing_left
}

@test "an option that the tree does not know names the profile's line" {
    fake_mariadb < /dev/null
    printf '[profile]\ninherits = gcc-o2\n[cmake]\nNO_SUCH_OPTION = ON\n' > "$BATS_TEST_TMPDIR/p.ini"
    build --profile "$BATS_TEST_TMPDIR/p.ini" --configure-only
    [ "$status" -eq 2 ]
    [[ "$output" == *p.ini:4:*NO_SUCH_OPTION* ]]
    nothing_left
}

@test "a tree that overrides the level is found out" {
    fake_mariadb <<< 'add_compile_options(-O1)'
    build --profile gcc-o2 --configure-only
    [ "$status" -eq 1 ]
    [[ "$output" == *"asks for -O2"*"compiled with -O1"* ]]
}

@test "a tree that does not compile: first error, log" {
    fake_mariadb < /dev/null
    printf '#include <numa.h>\n#error broken here\nint main() { return x; }\n' > "$TREE/sql/main.cc"
    build --profile gcc-o2
    [ "$status" -eq 1 ]
    [[ "$output" == *"broken here"* ]]
    [[ "$output" == *"log: $KILN_HOME/work/gcc-o2/kiln.log"* ]]
    [ -z "$(ls -A "$KILN_HOME/builds")" ]
}

@test "a build is installed whole, reused, listed and removed" {
    fake_mariadb < /dev/null
    build --profile gcc-o2 --json
    [ "$status" -eq 0 ]
    manifest="$KILN_HOME/builds/gcc-o2/manifest.json"
    jq -e '.schema == "kiln.manifest/1" and .source.version == "10.11.99" and
           .server.path == "bin/mariadbd" and (.server.sha256 | length) == 64 and
           (.cmake_command | length) > 5 and
           .optimisation_levels[0].level == "-O2" and .check.answer == "yes"' "$manifest"
    [ "$(ls -A "$KILN_HOME/builds")" = gcc-o2 ]
    [ -z "$(ls -A "$KILN_HOME/work")" ]

    before=$(stat -c %i "$manifest")
    build --profile gcc-o2
    [ "$status" -eq 0 ]
    [[ "$output" == *"stands already"* ]]
    [ "$before" = "$(stat -c %i "$manifest")" ]

    build --profile gcc-o2 --rebuild
    [ "$status" -eq 0 ]
    [ "$before" != "$(stat -c %i "$manifest")" ]
    [ "$(ls -A "$KILN_HOME/builds")" = gcc-o2 ]

    run "$BUILD" list
    [[ "$output" == *gcc-o2*mariadb-10.11.99*upstream* ]]
    "$BUILD" remove gcc-o2
    [ -z "$(ls -A "$KILN_HOME/builds")" ]
    run "$BUILD" remove gcc-o2
    [ "$status" -eq 2 ]
}

@test "a profile that differs in link flags only compiles nothing" {
    fake_mariadb < /dev/null
    # gcc-o2-hugetext itself promises a text that this tiny server has not.
    printf '[profile]\ninherits = gcc-o2\ntext-alignment = 2M\n[promises]\ntext-alignment = 2M\n' > "$BATS_TEST_TMPDIR/aligned.ini"
    LANG=C build --profile gcc-o2
    LANG=C.UTF-8 build --profile "$BATS_TEST_TMPDIR/aligned.ini"
    [ "$status" -eq 0 ]
    jq -e '.ccache.misses == 0 and .ccache.hits == 1' "$KILN_HOME/builds/aligned/manifest.json"
    readelf -lW "$KILN_HOME/builds/aligned/bin/mariadbd" | grep LOAD | grep -q 0x200000
}

@test "a server that breaks a promise is not installed" {
    fake_mariadb < /dev/null
    printf '[profile]\ninherits = gcc-o2\n[promises]\nlinker = lld\n' > "$BATS_TEST_TMPDIR/p.ini"
    build --profile "$BATS_TEST_TMPDIR/p.ini"
    [ "$status" -eq 1 ]
    [[ "$output" == *p.ini:4* ]]
    [ -z "$(ls -A "$KILN_HOME/builds")" ]
}

@test "a second build of the same name is refused while the first runs" {
    fake_mariadb < /dev/null
    mkdir -p "$KILN_HOME/work/gcc-o2"
    run flock "$KILN_HOME/work/gcc-o2" "$BUILD" build --source "$TREE" --feature-set upstream --profile gcc-o2
    [ "$status" -eq 1 ]
    [[ "$output" == *"another kiln is building"* ]]
}

@test "Ctrl-C ends with 130 and a rerun goes on" {
    fake_mariadb <<< 'add_custom_target(slow ALL COMMAND test -e /${STOP} || sleep 30)'
    "$BUILD" build --source "$TREE" --feature-set upstream --profile gcc-o2 2> "$BATS_TEST_TMPDIR/err" &
    pid=$!
    for _ in $(seq 100); do
        [ -e "$KILN_HOME/work/gcc-o2/sql/mariadbd" ] && break
        sleep 0.1
    done
    kill -INT $pid
    rc=0
    wait $pid || rc=$?
    [ "$rc" -eq 130 ]
    grep -q interrupted "$BATS_TEST_TMPDIR/err"
    [ -z "$(ls -A "$KILN_HOME/builds")" ]
    [ -e "$KILN_HOME/work/gcc-o2/kiln.configured" ]
}

@test "a disk that fills during a build is one clear line" {
    [ "$(id -u)" -eq 0 ] || skip "needs root for a tmpfs"
    mkdir -p "$KILN_HOME"
    mount -t tmpfs -o size=4m none "$KILN_HOME" || skip "cannot mount a tmpfs"
    fake_mariadb <<< 'file(WRITE ${CMAKE_BINARY_DIR}/x "")
execute_process(COMMAND head -c 8000000 /dev/zero OUTPUT_FILE ${CMAKE_BINARY_DIR}/x)'
    build --profile gcc-o2
    left=$(ls -A "$KILN_HOME/builds" "$KILN_HOME/work" | grep -v : | tr -d '\n')
    umount "$KILN_HOME"
    [ "$status" -eq 1 ]
    [[ "$output" == *"no space left on device"* ]]
    [ -z "$left" ]
}
