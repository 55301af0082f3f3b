# kiln check: facts, predictions and promises on ELF files.
BIN=${KILN_BIN:?KILN_BIN must name the directory of the programs}

setup() {
    DIR=$(mktemp -d /tmp/kiln-test.XXXXXX)
    export KILN_HOME=$DIR/home KILN_RUN=$DIR/run
    cd "$DIR" || return 1
    printf 'int main(void) { return 0; }\n' >p.c
}
teardown() { cd / && rm -rf "$DIR"; }

need() {
    local tool
    for tool; do
        command -v "$tool" >/dev/null || skip "no $tool on this host"
    done
}

compile() { # FLAGS...: makes ./p
    need gcc ld.bfd
    gcc -fuse-ld=bfd "$@" p.c -o p
}

profile() { # LINE...: makes ./own.ini with these promises
    printf '%s\n' '[promises]' "$@" >own.ini
}

one_line() { # STATUS TEXT: the last run failed so, with one line that holds TEXT
    echo "$output"
    [ "$status" = "$1" ] && [ "${#lines[@]}" = 1 ] && [[ $output == *"$2"* ]]
}

@test "a text file is no ELF file: one line, exit 2, nothing on standard output" {
    run "$BIN/kiln-check" p.c
    one_line 2 "p.c: not an ELF file"
    run "$BIN/kiln" check --json ./p.c
    one_line 2 "p.c: not an ELF file"
    [ -z "$("$BIN/kiln-check" --json ./p.c 2>/dev/null)" ]
}

@test "missing files, directories, unknown builds and wrong usage exit 2 with one line" {
    run "$BIN/kiln-check" ./nobody
    one_line 2 "No such file"
    run "$BIN/kiln-check" nobody
    one_line 2 "no such file, and no such build"
    run "$BIN/kiln-check" /tmp/
    one_line 2 "a directory"
    run "$BIN/kiln-check" check
    one_line 2 "--pid"
    run "$BIN/kiln-check" --pid=4194305
    one_line 2 "no such process"
    run "$BIN/kiln-check" --no-such-option p.c
    one_line 2 "no such option"
}

@test "a file cut short is an error, not a crash" {
    compile
    head -c 300 p >short.elf
    run "$BIN/kiln-check" ./short.elf
    one_line 2 "cut short"
}

@test "the verb may be left out" {
    compile
    [ "$("$BIN/kiln-check" p)" = "$("$BIN/kiln-check" check p)" ]
    [ "$("$BIN/kiln-check" p)" = "$("$BIN/kiln" check p)" ]
}

@test "text output: facts, segments, one line for each mode" {
    compile -Wl,-z,max-page-size=2097152
    run "$BIN/kiln-check" p
    echo "$output"
    [ "$status" = 0 ]
    [[ $output == *"linker        bfd ("* ]]
    [[ $output == *"compiler      GCC "* ]]
    [[ $output == *"libraries     libc.so.6"* ]]
    [ "$(grep -cE '^(hugetlbfs:R|hugetlbfs:RW|pagecache) +(yes|no|cannot-know): ' <<<"$output")" = 3 ]
    grep -qE '^ +1 +0x200000 .* RE +yes$' <<<"$output"
}

@test "JSON output has its schema and parses" {
    need jq
    compile
    run "$BIN/kiln-check" --json p
    [ "$status" = 0 ]
    [ "$(jq -r .schema <<<"$output")" = kiln.check/1 ]
    [ "$(jq -r '.modes | length' <<<"$output")" = 3 ]
    [ "$(jq -r '.segments | length' <<<"$output")" = 4 ]
    [ "$(jq -r '.text_bytes > 0' <<<"$output")" = true ]
}

@test "files of other machines are read; the modes cannot be known" {
    # A 64-bit little-endian AArch64 header with one R E segment, made by hand.
    {
        printf '\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0\267\0\1\0\0\0'
        printf '\0\0\100\0\0\0\0\0\100\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
        printf '\0\0\0\0\100\0\70\0\1\0\0\0\0\0\0\0'
        printf '\1\0\0\0\5\0\0\0\0\0\0\0\0\0\0\0\0\0\100\0\0\0\0\0\0\0\100\0\0\0\0\0'
        printf '\170\0\0\0\0\0\0\0\170\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0'
    } >arm
    run "$BIN/kiln-check" arm
    echo "$output"
    [ "$status" = 0 ]
    [[ $output == *"AArch64, 64-bit"* ]]
    [ "$(grep -c ': at most .*; the rules are known for x86-64' <<<"$output")" = 3 ]
}

@test "an AArch64 object file of clang is read" {
    need clang
    clang --target=aarch64-linux-gnu -c p.c -o arm.o || skip "this clang has no AArch64 target"
    run "$BIN/kiln-check" ./arm.o
    echo "$output"
    [ "$status" = 0 ]
    [[ $output == *"object file, AArch64"* ]]
}

@test "promises kept: exit 0, a pass line for each" {
    compile -g -O2 -fPIE -pie -Wl,-z,max-page-size=2097152
    profile 'compiler = gcc' 'linker = bfd' 'optimisation = -O2' 'text-alignment = 2M' \
        'pie = yes' 'needed = libc.so' 'load-segments = 4'
    run "$BIN/kiln-check" p --profile=own.ini
    echo "$output"
    [ "$status" = 0 ]
    [ "$(grep -c '^  pass ' <<<"$output")" = 7 ]
}

@test "a broken promise: exit 1, with evidence and advice" {
    compile -g -O3 -no-pie
    profile 'optimisation = -O2' 'pie = yes' 'text-alignment = 2M' 'linker = bfd'
    run "$BIN/kiln-check" p --profile=own.ini
    echo "$output"
    [ "$status" = 1 ]
    [ "$(grep -c '^  fail ' <<<"$output")" = 3 ]
    [[ $output == *"fail        optimisation=-O2: -O2 in 0 of 1 compilation units"* ]]
    [[ $output == *"max-page-size=2097152"* ]]
}

@test "a promise without evidence: exit 3, never a pass" {
    compile -O2
    profile 'optimisation = -O2'
    run "$BIN/kiln-check" p --profile=own.ini
    echo "$output"
    [ "$status" = 3 ]
    [[ $output == *"cannot-know optimisation=-O2: no debug information"* ]]
}

@test "bad profiles: one line with file and line, exit 2, nothing printed before" {
    compile
    run "$BIN/kiln-check" p --profile=no-such-profile
    one_line 2 "no such profile; there are: "
    profile 'speed = 9'
    run "$BIN/kiln-check" p --profile=own.ini
    one_line 2 "own.ini:2: unknown key 'speed'"
    profile 'pie = maybe'
    run "$BIN/kiln-check" p --profile=own.ini
    one_line 2 "own.ini:2: pie = maybe: must be yes or no"
    printf '[profile]\ninherits = own\n' >own.ini
    run "$BIN/kiln-check" p --profile=./own.ini
    one_line 2 "own.ini:2: profiles inherit in a circle"
}

@test "a live process: its program and its coverage" {
    sleep 60 &
    local pid=$!
    run "$BIN/kiln-check" --pid=$pid
    kill $pid
    echo "$output"
    [ "$status" = 0 ]
    [[ $output == *"file          "*sleep* ]]
    [[ $output == *"process $pid"*"text bytes on 2 MiB pages"* ]]
}
