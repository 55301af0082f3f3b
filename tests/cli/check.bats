# kiln check: facts, predictions and promises on ELF files.
BIN=${KILN_BIN:?KILN_BIN must name the directory of the programs}
load helper

setup() {
    DIR=$(mktemp -d /tmp/kiln-test.XXXXXX)
    export KILN_HOME=$DIR/home KILN_RUN=$DIR/run
    cd "$DIR" || return 1
    printf 'int main(void) { return 0; }\n' >p.c
}
teardown() { cd / && rm -rf "$DIR"; }

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
    grep -qE '^linker +bfd \[' <<<"$output"
    grep -qE '^compiler +GCC ' <<<"$output"
    [[ $output == *"libraries     libc.so.6"* ]]
    [ "$(grep -cE '^(hugetlbfs:(R|W|RW|marked)|pagecache|tmpfs|remap) +(yes|no|cannot-know): ' <<<"$output")" = 7 ]
    grep -qE '^ +1 +0x200000 .* RE +yes ' <<<"$output"
    [[ $output == *"relro "* && $output == *"this host"* ]]
    ! grep -q $'\033' <<<"$output"
}

@test "JSON output has its schema and parses" {
    need jq
    compile
    run "$BIN/kiln-check" --json p
    [ "$status" = 0 ]
    [ "$(jq -r .schema <<<"$output")" = kiln.check/1 ]
    [ "$(jq -r '.modes | length' <<<"$output")" = 8 ]
    [ "$(jq -r '.modes[] | select(.mode == "hugetlbfs:RW") | .by_version["2.23"].preload.answer' <<<"$output")" = no ]
    [ "$(jq -r '.facts.relro.value' <<<"$output")" = partial ]
    [ "$(jq -r '.host.answer' <<<"$output")" != null ]
    [ "$(jq -r '.segments | length' <<<"$output")" = 4 ]
    [ "$(jq -r '.text_bytes > 0' <<<"$output")" = true ]
}

@test "files of other machines have the pages of their kernels" {
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
    [[ $output == *"slots are of 2 MiB"* ]]
    run "$BIN/kiln-check" --page-size=512M arm
    [[ $output == *"slots are of 512 MiB"* ]]
    run "$BIN/kiln-check" --page-size=4M arm
    one_line 2 "arm: AArch64 has no pages of 4 MiB"
    run "$BIN/kiln-check" --page-size=big arm
    one_line 2 "not a size"
}

@test "an AArch64 object file of clang is read" {
    need clang
    clang --target=aarch64-linux-gnu -c p.c -o arm.o || skip "this clang has no AArch64 target"
    run "$BIN/kiln-check" ./arm.o
    echo "$output"
    [ "$status" = 0 ]
    [[ $output == *"object file, AArch64"* ]]
}

@test "an AArch64 program: its pages, its libhugetlbfs, its branch protection" {
    need clang ld.lld
    printf '%s\n' '__asm__(".text\n.skip 5200000, 0x90\n");' 'void _start(void) { for (;;); }' >a.c
    clang --target=aarch64-linux-gnu -nostdlib -fuse-ld=lld -mbranch-protection=standard \
        -Wl,-z,max-page-size=2097152 -Wl,-z,separate-code a.c -o a || skip "this clang has no AArch64 target"
    run "$BIN/kiln-check" a
    echo "$output"
    [[ $output == *"padding       not padded; 'kiln check --pad FILE' makes 3 whole slots of 2"* ]]
    [[ $output == *"libhugetlbfs     the one that will run with it is on another machine"* ]]
    grep -q '^pagecache *yes: 4194304 of 5200[0-9]* text bytes' <<<"$output"
    grep -q '^branch-protection *BTI+PAC' <<<"$output"
    grep -q '^machine *no: the file is for AArch64' <<<"$output"
    run "$BIN/kiln-check" --layout --page-size=32M a
    grep -q '^pagecache *no: .*32 MiB slot; link with -Wl,-z,max-page-size=33554432' <<<"$output"
    "$BIN/kiln-check" --pad a
    "$BIN/kiln-check" a | grep -q '^pagecache *yes: \(5200[0-9]*\) of \1 '
}

@test "colour on a terminal, and not with NO_COLOR" {
    need script
    script -qec true /dev/null >/dev/null 2>&1 || skip "no pseudo-terminal here"
    compile
    script -qec "'$BIN/kiln-check' p" /dev/null | grep -q $'\033\[32m'
    ! NO_COLOR=1 script -qec "'$BIN/kiln-check' p" /dev/null | grep -q $'\033' || return 1
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
    [[ $output == *"cannot-know optimisation=-O2: no flags in the file"* ]]
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
    [[ $output == *"main program"*sleep* ]]
    [[ $output == *libc.so.6* ]]
}

@test "--layout is segments and modes, no more; it agrees with the whole check" {
    need jq
    compile -Wl,-z,max-page-size=2097152
    run "$BIN/kiln-check" --layout p
    [ "$status" = 0 ]
    [[ $output == *"hugetlbfs:R "* && $output != *"relro "* ]]
    [ "$("$BIN/kiln-check" --layout --json p | jq -c '[.segments, .modes, .libhugetlbfs]')" = \
        "$("$BIN/kiln-check" --json p | jq -c '[.segments, .modes, .libhugetlbfs]')" ]
    run "$BIN/kiln-check" --layout --require=pie p
    one_line 2 "--layout reads too little"
}

@test "--require: 0 when all pass, 1 when one fails, 3 when one cannot be known" {
    compile -O2 -no-pie
    run "$BIN/kiln-check" p --require=pie=no,exec-stack
    [ "$status" = 0 ]
    run "$BIN/kiln-check" p --require=pie=no --require=relro=full,text-alignment
    echo "$output"
    [ "$status" = 1 ]
    [[ $output == *"fail        text-alignment=2M"*"max-page-size=2097152"* ]]
    run "$BIN/kiln-check" p --require=optimisation=-O2
    [ "$status" = 3 ]
    run "$BIN/kiln-check" p --require=speed
    one_line 2 "--require: no rule 'speed'; there are: "
    run "$BIN/kiln-check" p --require=pie=maybe
    one_line 2 "--require: pie = maybe: must be yes or no"
}

@test "the advice names the flag of the linker that was found" {
    need ld.lld
    gcc -fuse-ld=lld p.c -o p
    run "$BIN/kiln-check" p
    [[ $output == *"text-alignment"*"-Wl,-z,separate-code"* ]]
    compile
    run "$BIN/kiln-check" p
    [[ $output == *"text-alignment"* ]]
    ! grep 'text-alignment' <<<"$output" | grep -q separate-code
}

@test "a rules file: [require] decides, [advise] is told" {
    compile -no-pie
    printf '[require]\npie = no\n[advise]\ntext-alignment = 2M\n' >policy.ini
    run "$BIN/kiln-check" p --rules=policy.ini
    echo "$output"
    [ "$status" = 0 ]
    [[ $output == *"fail        text-alignment=2M"* ]]
    printf '[require]\nspeed = 9\n' >policy.ini
    run "$BIN/kiln-check" p --rules=policy.ini
    one_line 2 "policy.ini:2: no rule 'speed'"
    run "$BIN/kiln-check" p --rules=nobody.ini
    one_line 2 "nobody.ini"
}

@test "JUnit output is XML that counts failures and errors" {
    need python3
    compile -no-pie
    cp p 'a&b<c>"d'
    run "$BIN/kiln-check" './a&b<c>"d' --junit --require=pie=yes,exec-stack,optimisation=-O2
    echo "$output"
    [ "$status" = 1 ]
    printf '%s\n' "$output" >out.xml
    run python3 -c 'import xml.etree.ElementTree as e; s = e.parse("out.xml").getroot()[0]
print(s.get("tests"), s.get("failures"), s.get("errors"), len(s.findall("testcase/failure")))'
    [ "$output" = "3 1 1 1" ]
    run "$BIN/kiln-check" p --junit
    one_line 2 "--junit prints results of rules"
}

@test "--diff: 0 for a file and itself, 1 and what differs for two" {
    need jq
    compile -O2 -no-pie
    cp p q
    run "$BIN/kiln-check" --diff p q
    [ "$status" = 0 ]
    [[ $output == *"facts that differ: the same"* ]]
    gcc -fuse-ld=bfd -O2 -pie -fPIE p.c -o q
    run "$BIN/kiln-check" --diff p q
    echo "$output"
    [ "$status" = 1 ]
    [[ $output == *"  pie"*"A  no"*"B  yes"* ]]
    run "$BIN/kiln-check" --diff --json p q
    [ "$(jq -r .schema <<<"$output")" = kiln.check-diff/1 ]
    [ "$(jq -r '.facts.pie.a' <<<"$output")" = no ]
    run "$BIN/kiln-check" --diff p
    one_line 2 "--diff takes two files"
}

@test "names in a file do not reach the terminal as they are" {
    need python3
    compile '-Wl,-rpath,AAAAAAAA'
    python3 - <<'PY'
d = open("p", "rb").read().replace(b"AAAAAAAA", b"\x1b[31mBB\xff")
open("p", "wb").write(d)
PY
    run "$BIN/kiln-check" p
    [ "$status" = 0 ]
    ! grep -q $'\033' <<<"$output"
    "$BIN/kiln-check" --json p | jq -e .facts.rpath.value
}

@test "all rules are listed, and each is in the manual" {
    run "$BIN/kiln-check" --list-rules
    [ "$status" = 0 ]
    [ "${#lines[@]}" -ge 38 ]
    while read -r name _; do
        grep -qF "${name//-/\\-}" "$BATS_TEST_DIRNAME/../../docs/kiln-check.1" || {
            echo "not in the manual: $name"
            return 1
        }
    done <<<"$output"
}
