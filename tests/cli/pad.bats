# kiln check --pad and --unpad: the tail of the text gets its 2 MiB page, and loses it again.
BIN=${KILN_BIN:?KILN_BIN must name the directory of the programs}
load helper

setup() {
    DIR=$(mktemp -d /tmp/kiln-test.XXXXXX)
    export KILN_HOME=$DIR/home KILN_RUN=$DIR/run
    cd "$DIR" || return 1
    printf '%s\n' '__asm__(".text\n.skip 5200000, 0x90\n");' 'int main(void) { return 7; }' >p.c
}
teardown() { cd / && rm -rf "$DIR"; }

compile() { # FLAGS...: makes ./p and its copy ./linked; FLAGS may name another linker
    need gcc ld.bfd
    gcc -fuse-ld=bfd -Wl,-z,max-page-size=2097152 "$@" p.c -o p
    cp p linked
}

one_line() { # STATUS TEXT: the last run ended so, with one line that holds TEXT
    echo "$output"
    [ "$status" = "$1" ] && [ "${#lines[@]}" = 1 ] && [[ $output == *"$2"* ]]
}

text_size() { # FILE: p_filesz of its R E segment
    readelf -lW "$1" | awk '/LOAD/ && /R E/ { print $5 }'
}

padded_and_back() { # what compile made can be padded, runs, and is restored
    run "$BIN/kiln-check" --pad p
    one_line 0 "bytes of padding); text now covers 3 whole 2 MiB slots"
    [[ $output =~ ^p:\ program\ header\ [0-9]+:\ p_filesz\ 0x4[0-9a-f]{5}\ -\>\ 0x600000\ \( ]]
    [ "$(text_size p)" = 0x600000 ]
    run ./p
    [ "$status" = 7 ]
    run "$BIN/kiln-check" --unpad p
    one_line 0 "p_filesz 0x600000 -> 0x4"
    cmp p linked
    run ./p
    [ "$status" = 7 ]
}

@test "bfd: padded, run, unpadded byte for byte" {
    compile -fPIE -pie
    padded_and_back
    compile -no-pie
    padded_and_back
}

@test "lld and mold: padded with separate-code, refused without" {
    need ld.lld mold
    for linker in lld mold; do
        compile -fuse-ld=$linker -Wl,-z,separate-code
        padded_and_back
        compile -fuse-ld=$linker
        run "$BIN/kiln-check" --pad p
        one_line 1 "-Wl,-z,separate-code"
        cmp p linked
    done
}

@test "gold: its data lies in the slot, so it is refused" {
    need ld.gold
    compile -fuse-ld=gold
    run "$BIN/kiln-check" --pad p
    one_line 1 "(gold cannot)"
    cmp p linked
}

@test "small pages are refused with the flag to change" {
    compile -Wl,-z,max-page-size=4096
    run "$BIN/kiln-check" --pad p
    one_line 1 "link with -Wl,-z,max-page-size=2097152"
    cmp p linked
}

@test "a second time changes nothing, also of --unpad" {
    compile
    "$BIN/kiln-check" --pad p
    cp p once
    run "$BIN/kiln-check" --pad p
    one_line 0 "is padded already"
    cmp p once
    "$BIN/kiln-check" --unpad p
    run "$BIN/kiln-check" --unpad p
    one_line 0 "p: not padded, nothing to undo"
    cmp p linked
}

@test "strip takes the padding away, eu-strip keeps it" {
    need strip eu-strip
    compile -g
    "$BIN/kiln-check" --pad p
    cp p q
    strip q
    [ "$(text_size q)" = "$(text_size linked)" ]
    eu-strip p
    [ "$(text_size p)" = 0x600000 ]
    run ./p
    [ "$status" = 7 ]
    "$BIN/kiln-check" --unpad p
    [ "$(text_size p)" = "$(text_size linked)" ]
}

@test "the file behind a symbolic link is changed, with its mode" {
    compile
    chmod 4750 p
    ln -s p link
    "$BIN/kiln-check" --pad link
    [ -L link ]
    [ "$(stat -c %a p)" = 4750 ]
    [ "$(text_size p)" = 0x600000 ]
    [ "$(find . -name '.kiln*')" = "" ]
}

@test "hard links are refused" {
    compile
    ln p other
    run "$BIN/kiln-check" --pad p
    one_line 1 "has 2 names"
    cmp p linked
}

@test "a running program can be padded" {
    printf '%s\n' '#include <unistd.h>' '__asm__(".text\n.skip 5200000, 0x90\n");' \
        'int main(void) { return pause(); }' >p.c
    compile
    ./p &
    "$BIN/kiln-check" --pad p
    kill $!
    [ "$(text_size p)" = 0x600000 ]
}

@test "what is no ELF file, or is not there, is one line and exit 2" {
    run "$BIN/kiln-check" --pad ./p.c
    one_line 2 "not an ELF file"
    run "$BIN/kiln-check" --unpad ./p.c
    one_line 2 "not an ELF file"
    run "$BIN/kiln-check" --pad ./nobody
    one_line 2 "No such file"
}

@test "a directory that cannot be written: one line, exit 2, the file as it was" {
    need setpriv
    [ "$(id -u)" = 0 ] || skip "needs root, to become somebody else"
    compile
    chmod 755 "$DIR" p
    # Somebody else, who may not be able to reach the programs.
    cp "$BIN/kiln-check" kiln-check
    run setpriv --reuid=65534 --regid=65534 --clear-groups ./kiln-check --pad p
    one_line 2 "cannot be replaced by a changed copy in its directory"
    cmp p linked
}

@test "an object file is refused" {
    need gcc
    gcc -c p.c -o p.o
    run "$BIN/kiln-check" --pad ./p.o
    one_line 1 "neither a program nor a shared library"
}

@test "a stripped section table is refused: padding cannot be told from content" {
    need llvm-strip
    compile
    "$BIN/kiln-check" --pad p
    llvm-strip --strip-sections p
    run "$BIN/kiln-check" --unpad p
    one_line 1 "no section headers"
}

@test "JSON output has its schema" {
    need jq
    compile
    run "$BIN/kiln-check" --json --pad p
    [ "$status" = 0 ]
    jq -e '.schema == "kiln.pad/1" and .padded and .changed and .whole_slots == 3 and
        .new_filesz - .old_filesz == .padding_bytes' <<<"$output"
    "$BIN/kiln-check" --json --unpad p | jq -e '.changed and (.padded | not)'
}

fake_server() { # LINE...: a tree whose server has 5 MB of text, and ./own.ini with these lines
    need cmake ninja ccache gcc ld.bfd jq
    mkdir -p tree/sql/share tree/scripts
    touch tree/sql/share/CMakeLists.txt tree/scripts/CMakeLists.txt
    printf 'MYSQL_VERSION_%s\n' MAJOR=10 MINOR=11 PATCH=99 >tree/VERSION
    echo 'SERVER_MATURITY=stable' >>tree/VERSION
    cp p.c tree/sql/main.cc
    cat >tree/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.13)
project(fake C CXX)
foreach(v MYSQL_MAINTAINER_MODE WITH_UNIT_TESTS CONC_WITH_UNITTEST)
  set(used "${${v}}")
endforeach()
add_executable(mariadbd sql/main.cc)
separate_arguments(FLAGS UNIX_COMMAND "${WITH_MYSQLD_LDFLAGS}")
target_compile_options(mariadbd PRIVATE -fPIE)
target_link_options(mariadbd PRIVATE -pie ${FLAGS})
install(TARGETS mariadbd DESTINATION bin COMPONENT Server)
END
    printf '%s\n' '[profile]' "$@" >own.ini
}

build() { # builds the tree with ./own.ini
    run "$BIN/kiln-build" build --source ./tree --feature-set upstream --profile ./own.ini
    echo "$output"
}

manifest_of_server() {
    jq -r '.server | "\(.padded) \(.padded_reason)"' "$KILN_HOME/builds/own/manifest.json"
}

@test "pad = yes in a profile pads the installed server, and the manifest says so" {
    fake_server 'inherits = gcc-o2' 'text-alignment = 2M' 'pad = yes'
    build
    [ "$status" = 0 ]
    server=$KILN_HOME/builds/own/bin/mariadbd
    [ "$(text_size "$server")" = 0x600000 ]
    [[ $(manifest_of_server) == "true own.ini:4: p_filesz 0x4"*" -> 0x600000" ]]
    [ "$(jq -r .server.sha256 "$KILN_HOME/builds/own/manifest.json")" = "$(sha256sum <"$server" | cut -d' ' -f1)" ]
    build
    [[ $output == *"stands already"* ]]
    fake_server 'inherits = gcc-o2' 'text-alignment = 2M'
    build
    [ "$status" = 0 ]
    [ "$(text_size "$server")" != 0x600000 ]
    [ "$(manifest_of_server)" = "false kiln: pad = no" ]
}

@test "pad = yes and a layout without room: one clear line, nothing installed" {
    fake_server 'inherits = gcc-o2' 'pad = yes' \
        'server-link-flags = -Wl,-z,max-page-size=2097152 -Wl,-z,noseparate-code'
    build
    [ "$status" = 1 ]
    [[ $output == *"own.ini:3: pad = yes: the server cannot be padded: section "*" lies between"* ]]
    [ -z "$(ls -A "$KILN_HOME/builds")" ]
}
