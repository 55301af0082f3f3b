# libkiln-remap.so by itself: text is moved before main, or stays and one line says why; either way
# the program does what it does.
# shellcheck disable=SC2030,SC2031 # bats runs each test in a shell of its own
load helper
LIB=$BIN/libkiln-remap.so
SRC=$BATS_TEST_DIRNAME/remap

setup() {
    [ "$(uname -m)" = x86_64 ] || skip "the tests read x86-64 registers and pages"
    kiln_setup
}
teardown() {
    exec 8>&-
    kiln_teardown
    for pid in $KILN_PIDS; do rm -f "/tmp/perf-$pid.map"; done
    [ "$(cat /proc/sys/vm/nr_hugepages)" = "$POOL_BEFORE" ] ||
        echo "$POOL_BEFORE" >/proc/sys/vm/nr_hugepages
}

# answer NAME FLAGS...: the program that checks itself; with LIBRARY it needs that one of $DIR
answer() {
    gcc -O1 -D_GNU_SOURCE "${@:2}" -o "$DIR/$1" "$SRC/answer.c" \
        ${LIBRARY:+-Wl,--no-as-needed "$DIR/$LIBRARY"}
}
# under WHAT PROGRAM...: see its source
under() {
    [ -x "$DIR/under" ] || gcc -O1 -D_GNU_SOURCE -o "$DIR/under" "$SRC/under.c"
    run "$DIR/under" "$@"
}
# preload [NAME=VALUE...] PROGRAM...: PRELOADED is the command; WAY is thp or pool
preload() { PRELOADED=(env KILN_REMAP="${WAY:-thp}" LD_PRELOAD="$LIB" "$@"); }
moved() { preload "$@" && run "${PRELOADED[@]}"; }
set_pool() {
    echo $((POOL_BEFORE + $1)) >/proc/sys/vm/nr_hugepages
    [ "$(cat /proc/sys/vm/nr_hugepages)" = $((POOL_BEFORE + $1)) ] || skip "memory is fragmented"
}
# No free page for the program, and none to be had beyond the pool.
need_empty_pool() {
    need_pool
    [ "$(awk '/HugePages_Free/ { print $2 }' /proc/meminfo)" = 0 ] || skip "the pool has free pages"
}

# wait_for FILE WORD: until the program that runs says so
wait_for() {
    for _ in $(seq 300); do
        grep -q "$2" "$1" 2>/dev/null && return 0
        sleep 0.1
    done
    cat "$1"
    return 1
}
# start PROGRAM: in the background, until it is ready
start() {
    preload "$@"
    "${PRELOADED[@]}" >"$DIR/out" 2>"$DIR/err" 3>&- &
    PID=$!
    KILN_PIDS+=" $PID"
    wait_for "$DIR/out" ready
}
# huge_kb PID: 2 MiB pages in executable mappings
huge_kb() {
    awk '/^[0-9a-f]+-/ { x = $2 == "r-xp" } x && /^(AnonHugePages|Private_Hugetlb):/ { n += $2 }
         END { print n + 0 }' "/proc/$1/smaps"
}
# slots PID: whole 2 MiB slots that executable mappings of the program's file hold
slots() {
    local range perms path n=0 from to
    while read -r range perms _ _ _ path; do
        if [ "$perms" != r-xp ] || [ "$path" != "$(readlink "/proc/$1/exe")" ]; then continue; fi
        from=$(((16#${range%-*} + 2097151) / 2097152)) to=$((16#${range#*-} / 2097152))
        [ "$to" -le "$from" ] || n=$((n + to - from))
    done <"/proc/$1/maps"
    echo "$n"
}
predicted_kb() {
    "$BIN/kiln-check" --json "$1" |
        jq '[.modes[] | select(.mode == "remap") | .smaps_huge_bytes // 0 | . / 1024 | floor] | add'
}
writable_code() { grep -cE '^[0-9a-f]+-[0-9a-f]+ .wx' "/proc/$1/maps" || true; }
# assert_moved PROGRAM: all slots of the process PID, no fewer than predicted, and nothing was said
assert_moved() {
    [ "$(slots "$PID")" = 0 ]
    [ "$(huge_kb "$PID")" -ge "$(predicted_kb "$1")" ]
    [ "$(huge_kb "$PID")" -ge "${2:-2048}" ]
    [ "$(writable_code "$PID")" = 0 ]
    [ ! -s "$DIR/err" ] || { cat "$DIR/err" && false; }
}
# The program did all it does, whatever became of its text.
assert_answer() {
    echo "exit code $status: $output"
    [ "$status" = 42 ]
    [[ $output = *"sum 21, text same"* ]]
}
# assert_said WORDS: one line of the library's, with these words
assert_said() {
    assert_answer
    [ "$(grep -c '^kiln-remap: ' <<<"$output")" = 1 ]
    [[ $output = *$1* ]]
}

@test "thp: every whole slot of a PIE, of a program at a fixed address and of an aligned one" {
    bigtext pie -pie -fPIE
    bigtext fixed -no-pie -DTEXT_MIB=7
    bigtext aligned -pie -fPIE "$MAX2M"
    for name in pie fixed aligned; do
        start "$DIR/$name"
        assert_moved "$DIR/$name"
    done
    [ "$(predicted_kb "$DIR/fixed")" -ge 4096 ]
    [ "$(predicted_kb "$DIR/aligned")" -ge 4096 ]
}

@test "pool: every whole slot, and the pages go back to the pool" {
    need_root
    need_pool
    set_pool 3
    bigtext pie -pie -fPIE
    bigtext aligned -pie -fPIE "$MAX2M"
    for name in pie aligned; do
        WAY=pool start "$DIR/$name"
        assert_moved "$DIR/$name"
        grep -q 'r-xp.*/anon_hugepage' "/proc/$PID/maps"
        kill "$PID"
        wait "$PID" || true
    done
    [ "$(awk '/HugePages_Free/ { print $2 }' /proc/meminfo)" -ge 3 ]
}

@test "code that was moved runs, is what the file holds, and the exit code is the program's" {
    answer pie -pie -fPIE
    answer fixed -no-pie
    moved KILN_REMAP_VERBOSE=1 "$DIR/fixed"
    assert_said "moved 4096 of 6"
    moved "$DIR/pie"
    assert_answer
    [ "$output" = "sum 21, text same" ]
}

@test "the pool is empty: one line, and the program runs as it was" {
    need_empty_pool
    answer pie
    WAY=pool moved "$DIR/pie"
    assert_said "moved 0 of"
    [[ $output = *"too few free 2 MiB pages in the pool"* ]]
}

@test "the pool is too small: the slots that it has pages for, and one line" {
    need_root
    need_empty_pool
    set_pool 1
    answer pie
    WAY=pool moved "$DIR/pie"
    assert_said "moved 2048 of"
    [[ $output = *"too few free 2 MiB pages in the pool"* ]]
}

@test "no transparent huge pages for the process: one line, and it runs as it was" {
    answer pie
    preload "$DIR/pie"
    under thp-disable "${PRELOADED[@]}"
    [ "$status" != 77 ] || skip "the kernel has no PR_SET_THP_DISABLE"
    assert_said "moved 0 of"
    [[ $output = *"too few transparent huge pages"* ]]
}

@test "memory may not become executable: one line that names what forbids it" {
    answer pie
    preload "$DIR/pie"
    under mdwe "${PRELOADED[@]}"
    [ "$status" != 77 ] || skip "the kernel has no PR_SET_MDWE"
    assert_said "moved 0 of"
    [[ $output = *"SELinux execmem, MemoryDenyWriteExecute="* ]]
}

@test "address space is short: one line, and it runs as it was" {
    answer fixed -no-pie
    preload "$DIR/fixed"
    run prlimit --as=12000000 "${PRELOADED[@]}"
    assert_said "moved 0 of"
    [[ $output = *RLIMIT_AS* ]]
}

@test "a debugger has written into the text: it stays" {
    answer pie
    preload "$DIR/pie"
    under poke "${PRELOADED[@]}"
    assert_said "was changed after it was loaded"
}

@test "two threads before main: nothing is moved" {
    gcc -O1 -D_GNU_SOURCE -shared -fPIC -pthread -DLIBRARY -DTHREAD -o "$DIR/libthread.so" "$SRC/answer.c"
    LIBRARY=libthread.so answer pie
    moved "$DIR/pie"
    assert_said "2 threads run before main"
    [[ $output = *"moved 0 of"* ]]
}

# each_call_fails: one after the other, as long as there is one
each_call_fails() {
    local n call told=0
    answer fixed -no-pie
    preload "$DIR/fixed"
    for n in $(seq 200); do
        under "$n" "${PRELOADED[@]}" 9>"$DIR/call"
        call=$(cat "$DIR/call")
        echo "system call number $call, the ${n}th of the library"
        assert_answer
        [ "$(grep -c '^kiln-remap: ' <<<"$output")" -le 1 ]
        case $call in
        10 | 25) # mprotect, mremap
            assert_said "moved 0 of"
            told=$((told + 1))
            ;;
        none) break ;;
        esac
    done
    [ "$call" = none ]
    [ "$output" = "sum 21, text same" ]
    [ "$told" = 3 ] # mprotect; mremap of the text and of the copy
}

@test "thp: each system call fails once, and the program runs with all its text" {
    each_call_fails
}

@test "pool: each system call fails once, and the program runs with all its text" {
    need_root
    need_pool
    set_pool 2
    WAY=pool each_call_fails
}

@test "text that the loader has relocated is moved with its relocations" {
    answer pie -pie -fPIE -DRELOCATED -Wl,-z,notext
    readelf -d "$DIR/pie" | grep -q TEXTREL
    moved KILN_REMAP_VERBOSE=1 "$DIR/pie"
    assert_said "moved"
    [[ $output != *"moved 0 of"* ]]
}

@test "a library is moved when it is named; libc and what is not loaded are refused" {
    gcc -O1 -D_GNU_SOURCE -shared -fPIC -DLIBRARY "$MAX2M" -o "$DIR/libbig.so" "$SRC/answer.c"
    LIBRARY=libbig.so answer fixed -no-pie
    moved KILN_REMAP_VERBOSE=1 "$DIR/fixed"
    assert_said "moved 4096 of 6"
    moved KILN_REMAP_VERBOSE=1 KILN_REMAP_LIBS=libbig "$DIR/fixed"
    assert_said "moved 10240 of 12"
    moved KILN_REMAP_LIBS=libbig:libc.so "$DIR/fixed"
    assert_said "moved 10240 of 12"
    [[ $output = *"libc.so.6 cannot be moved"* ]]
    moved KILN_REMAP_LIBS=libbig:libnone "$DIR/fixed"
    assert_said "no library libnone is loaded"
}

@test "children get neither the library nor its variables, and keep what else is preloaded" {
    gcc -O1 -D_GNU_SOURCE -shared -fPIC -DLIBRARY -o "$DIR/libother.so" "$SRC/answer.c"
    answer pie
    moved KILN_REMAP_VERBOSE=0 SHOW=1 "$DIR/pie"
    [ "$status" = 42 ] || [ "$status" = 1 ] # grep found nothing
    [[ $output != *child* ]]
    moved LD_PRELOAD="$DIR/libother.so $LIB" SHOW=1 "$DIR/pie"
    assert_answer
    [[ $output = *"child LD_PRELOAD=$DIR/libother.so" ]]
    moved LD_PRELOAD=libkiln-remap.so:"$DIR/libother.so" LD_LIBRARY_PATH="$BIN" SHOW=1 "$DIR/pie"
    assert_answer
    [[ $output = *"child LD_PRELOAD=$DIR/libother.so" ]]
}

@test "a perf map: symbols at their addresses, nobody else's to read or write, not through a link" {
    answer fixed -no-pie
    gcc -O1 -o "$DIR/exec" -xc - <<'C'
#include <stdio.h>
#include <unistd.h>
// exec TARGET PROGRAM...: a link to TARGET where the program's perf map will be
int main(int argc, char **argv)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    if (argc < 3 || symlink(argv[1], path))
        return 1;
    printf("%s\n", path);
    fflush(stdout);
    return execvp(argv[2], argv + 2);
}
C
    echo mine >"$DIR/mine"
    run "$DIR/exec" "$DIR/mine" env LD_PRELOAD="$LIB" KILN_REMAP_PERF_MAP=1 "$DIR/fixed"
    assert_answer
    map=${lines[0]}
    mv "$map" "$DIR/map"
    [ ! -L "$DIR/map" ]
    [ "$(cat "$DIR/mine")" = mine ]
    [ "$(stat -c %a "$DIR/map")" = 600 ]
    address=$(nm "$DIR/fixed" | awk '$3 == "answer4" { sub(/^0+/, "", $1); print $1 }')
    grep -qx "$address 6 answer4" "$DIR/map"
    [ "$(grep -c ' main$' "$DIR/map")" = 0 ] # in the head, which stays the file's
}

@test "status: one JSON line, to a descriptor or a file" {
    answer fixed -no-pie
    moved KILN_REMAP_STATUS=9 "$DIR/fixed" 9>"$DIR/status"
    [ "$output" = "sum 21, text same" ]
    [ "$(jq -r '[.schema, .way, .slot_bytes, .moved_bytes, .reason] | join(" ")' "$DIR/status")" = \
        "kiln.remap/1 thp 4194304 4194304 " ]
    moved KILN_REMAP_STATUS="$DIR/file" "$DIR/fixed"
    [ "$(jq .moved_bytes "$DIR/file")" = 4194304 ]
    [ "$(stat -c %a "$DIR/file")" = 600 ]
    moved KILN_REMAP_STATUS="$DIR" "$DIR/fixed"
    assert_said "Is a directory"
}

@test "nothing to move, no such way: one line" {
    run env LD_PRELOAD="$LIB" true
    [ "$status" = 0 ]
    [[ $output = "kiln-remap: true: "*"no 2 MiB slot is all text" ]]
    answer pie
    WAY=hope moved "$DIR/pie"
    assert_said "not thp or pool"
}

@test "Debian's mariadbd, as it is: its whole slots are moved, and it makes a database" {
    need_server
    mkdir "$DIR/data"
    mkfifo "$DIR/sql"
    user=()
    if [ "$(id -u)" = 0 ]; then
        chown -R 60578 "$DIR"
        user=(setpriv --reuid 60578 --regid 60578 --clear-groups)
    fi
    preload KILN_REMAP_STATUS="$DIR/status" /usr/sbin/mariadbd --no-defaults --bootstrap \
        --datadir="$DIR/data" --innodb-log-file-size=4M
    "${user[@]}" "${PRELOADED[@]}" <"$DIR/sql" >"$DIR/out" 2>"$DIR/log" 3>&- &
    PID=$!
    KILN_PIDS+=" $PID"
    exec 8>"$DIR/sql"
    wait_for "$DIR/status" moved_bytes
    grep kiln-remap "$DIR/log" >"$DIR/err" || true
    assert_moved /usr/sbin/mariadbd 6144
    echo "create database kiln;" >&8
    exec 8>&-
    wait "$PID"
    [ -d "$DIR/data/kiln" ]
}
