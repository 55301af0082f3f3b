# kiln launch on real programs and Debian's own server, with real huge pages.
load helper

setup() { kiln_setup; }
teardown() { kiln_teardown; }

launch() { run "$BIN/kiln-launch" launch "$@"; }
field() { jq -r "$1" <<<"$output"; }

@test "text=hugetlbfs:R puts a prepared program's text on huge pages, and the pool goes back" {
    need_root; need_pool
    bigtext huge $MAX2M
    launch --program "$DIR/huge@text=hugetlbfs:R" --verify-only --json
    [ "$status" = 0 ]
    [ "$(field '.text_huge_percent == 100')" = true ]
    [ "$(field '.text_bytes == .text_huge_bytes')" = true ]
    assert_restored
}

@test "text=hugetlbfs:RW works on two segments and is refused with the reason on four" {
    need_root; need_pool
    bigtext two $MAX2M -no-pie -Wl,-z,noseparate-code
    launch --program "$DIR/two@text=hugetlbfs:RW" --verify-only --json
    [ "$status" = 0 ]
    [ "$(field '.text_huge_percent == 100')" = true ]
    bigtext four $MAX2M
    launch --program "$DIR/four@text=hugetlbfs:RW" --verify-only
    [ "$status" = 1 ]
    [[ $output == *"selects 4 load segments"* ]]
    assert_restored
}

@test "text=pagecache fills whole slots and is refused for a program that is not aligned" {
    need_root
    bigtext huge $MAX2M
    launch --program "$DIR/huge@text=pagecache" --verify-only --json
    [ "$status" != 77 ] || skip "the file system has no large folios"
    [ "$status" = 0 ]
    [ "$(field .text_huge_bytes)" = 4194304 ]
    bigtext plain
    launch --program "$DIR/plain@text=pagecache" --verify-only
    [ "$status" = 1 ]
    [[ $output == *"max-page-size=2097152"* ]]
    assert_restored
}

@test "text=none keeps a prepared program on 4 KiB pages though its file was just written" {
    bigtext huge $MAX2M
    launch --program "$DIR/huge@text=none" --verify-only --json
    [ "$status" = 0 ]
    [ "$(field .text_huge_bytes)" = 0 ]
}

@test "a pool that the kernel cannot fill: one line, exit 77, the pool as before" {
    need_root; need_pool
    # A fixture whose text is larger than the free memory.
    mib=$(( $(awk '/^MemTotal/ {print $2}' /proc/meminfo) / 1024 * 2 ))
    [ "$mib" -lt 100000 ] || skip "so much memory that no small file can ask for more"
    bigtext huge $MAX2M
    # Raise p_memsz of the data segment: libhugetlbfs would need pages for all of it.
    python3 - "$DIR/huge" "$mib" <<'PY' 2>/dev/null || skip "needs python3 to write the program header"
import struct, sys
path, mib = sys.argv[1], int(sys.argv[2])
b = bytearray(open(path, "rb").read())
phoff, = struct.unpack_from("<Q", b, 32)
phentsize, phnum = struct.unpack_from("<HH", b, 54)
last = None
for i in range(phnum):
    at = phoff + i * phentsize
    if struct.unpack_from("<I", b, at)[0] == 1:
        flags, = struct.unpack_from("<I", b, at + 4)
        if not flags & 1 and not flags & 2:
            last = at
struct.pack_into("<Q", b, last + 40, mib << 20)
open(path, "wb").write(b)
PY
    run "$BIN/kiln-launch" launch --program "$DIR/huge@text=hugetlbfs:R" --verify-only
    echo "$output"
    [ "$status" = 77 ] || [[ $output == *overlap* ]]
    [ "${#lines[@]}" = 1 ]
    assert_restored
}

@test "cpus, malloc and numa are read back from the live server" {
    need_server
    launch "system@cpus=0,malloc=jemalloc?,numa=interleave?,text=none" --verify-only --json
    [ "$status" = 0 ]
    [ "$(field '.conditions[] | select(.knob=="cpus") | .seen.cpus_allowed')" = 0 ]
    [ "$(field '.conditions[] | select(.knob=="text") | .status')" = verified ]
    if [ -e /usr/lib/x86_64-linux-gnu/libjemalloc.so.2 ]; then
        [[ $(field '.conditions[] | select(.knob=="malloc") | .seen.mapped') == *libjemalloc* ]]
    fi
    [ "$(field .stop.how)" = SHUTDOWN ]
    assert_restored
}

@test "idle states: 77 where there are none, passed over with a question mark" {
    [ "$(cat /sys/devices/system/cpu/cpuidle/current_driver 2>/dev/null || echo none)" = none ] ||
        skip "this host has idle states"
    launch "system@idle=max-latency:1" --verify-only
    [ "$status" = 77 ]
    [ "${#lines[@]}" = 1 ]
    need_server
    launch "system@idle=max-latency:1?" --verify-only --json
    [ "$status" = 0 ]
    [ "$(field '.conditions[0].status')" = "not had" ]
}

@test "host restored after a normal end: TERM to kiln" {
    need_root; need_pool
    bigtext huge $MAX2M
    launch_background --program "$DIR/huge@text=hugetlbfs:R"
    [ "$(cat /proc/sys/vm/nr_hugepages)" != "$POOL_BEFORE" ]
    kill -TERM $KILN_PID
    wait $KILN_PID
    assert_restored
}

@test "host restored after Ctrl-C, with Debian's server" {
    need_server
    launch_background "system@text=none"
    kill -INT $KILN_PID
    wait $KILN_PID
    assert_restored
}

@test "host restored after an error: the pool and the mount are made, then a condition fails" {
    need_root; need_pool
    bigtext huge $MAX2M
    launch --program "$DIR/huge@text=hugetlbfs:R,malloc=/no/such/lib.so" --verify-only
    [ "$status" = 2 ]
    [ "${#lines[@]}" = 1 ]
    [[ $output == *"malloc=/no/such/lib.so: No such file"* ]]
    assert_restored
}

@test "a program that ends at once: its exit code, exit 1" {
    launch --program "/bin/false@cpus=0" --verify-only
    [ "$status" = 1 ]
    [[ $output == *"exit code 1"* ]]
    assert_restored
}

@test "host restored after kill -9 of kiln and kiln restore" {
    need_root; need_pool
    bigtext huge $MAX2M
    launch_background --program "$DIR/huge@text=hugetlbfs:R"
    kill -KILL $KILN_PID
    wait $KILN_PID || true
    [ "$(cat /proc/sys/vm/nr_hugepages)" != "$POOL_BEFORE" ]
    [ -n "$(ls "$KILN_RUN/journal")" ]
    run "$BIN/kiln-launch" restore
    [ "$status" = 0 ]
    [[ $output == *"1 killed run undone"* ]]
    assert_restored
    run "$BIN/kiln-launch" restore
    [[ $output == *"nothing to restore"* ]]
}

@test "two runs that overlap end at the pool's base, whichever leaves first" {
    need_root; need_pool
    bigtext huge $MAX2M
    launch_background --program "$DIR/huge@text=hugetlbfs:R"
    first=$KILN_PID
    launch_background --program "$DIR/huge@text=hugetlbfs:R"
    second=$KILN_PID
    kill -TERM $first; wait $first
    kill -TERM $second; wait $second
    assert_restored
}

@test "a pool that somebody else changed is left, and named" {
    need_root; need_pool
    bigtext huge $MAX2M
    launch_background --program "$DIR/huge@text=hugetlbfs:R"
    echo $((POOL_BEFORE + 40)) >/proc/sys/vm/nr_hugepages
    kill -TERM $KILN_PID
    rc=0; wait $KILN_PID || rc=$?
    [ "$rc" = 1 ]
    grep -q "somebody else changed it" "$DIR/err"
    [ "$(cat /proc/sys/vm/nr_hugepages)" = $((POOL_BEFORE + 40)) ]
    echo "$POOL_BEFORE" >/proc/sys/vm/nr_hugepages
    assert_restored
}

@test "a server that does not start: its last error lines, exit 1, nothing left" {
    need_server
    launch system --verify-only -- --no-such-option=1
    [ "$status" = 1 ]
    [[ $output == *"did not start (exit code"* ]]
    [[ $output == *"unknown variable 'no-such-option=1'"* ]]
    assert_restored
}

@test "a killed server is reported with its signal, and kiln undoes the rest" {
    need_server
    launch_background system
    kill -KILL "$(awk '/pid/ {print $4}' "$DIR/out" | tr -d ,)"
    rc=0; wait $KILN_PID || rc=$?
    [ "$rc" = 1 ]
    grep -q "signal 9" "$DIR/err"
    assert_restored
}

@test "a socket path over 107 bytes: one line, exit 2" {
    export KILN_RUN=$DIR/$(printf 'r%.0s' $(seq 90))
    launch system --verify-only
    [ "$status" = 2 ]
    [ "${#lines[@]}" = 1 ]
    [[ $output == *"the most is 107"* ]]
}

@test "a store under a closed directory: the server runs all the same" {
    need_root; need_server
    mkdir -m 700 "$DIR/closed"
    export KILN_HOME=$DIR/closed/home
    launch "system@text=none" --verify-only --json
    [ "$status" = 0 ]
    [[ $(field .datadir) == /var/tmp/kiln-* ]]
    [ ! -e "$(field .datadir)" ]
}

@test "a data directory in use, and a port in use: one line, exit 2" {
    need_server; need_root
    launch_background system --port=13307
    data=$(ls -d "$KILN_HOME"/instances/*/data)
    launch system --datadir="$data" --verify-only
    [ "$status" = 2 ]
    [ "${#lines[@]}" = 1 ]
    [[ $output == *"in use by the server with pid"* ]]
    launch system --port=13307 --verify-only
    [ "$status" = 2 ]
    [ "${#lines[@]}" = 1 ]
    [[ $output == *"127.0.0.1:13307: cannot listen"* ]]
    kill -TERM $KILN_PID; wait $KILN_PID
    assert_restored
}

@test "no root where root is needed: one line, exit 77" {
    need_root; need_pool
    bigtext huge $MAX2M
    chmod 755 "$DIR/huge"
    cp "$BIN/kiln-launch" "$DIR/" # the source may lie where others cannot go
    run setpriv --reuid 60578 --regid 60578 --clear-groups env KILN_HOME="$DIR/u" \
        "$DIR/kiln-launch" launch --program "$DIR/huge@text=hugetlbfs:R" --verify-only
    [ "$status" = 2 ] || [ "$status" = 77 ]
    [ "${#lines[@]}" = 1 ]
    mkdir -m 777 "$DIR/u" "$DIR/urun"
    chown 60578 "$DIR/u" "$DIR/urun"; chmod 755 "$DIR/u" "$DIR/urun"
    run setpriv --reuid 60578 --regid 60578 --clear-groups env KILN_HOME="$DIR/u" \
        KILN_RUN="$DIR/urun" "$DIR/kiln-launch" launch --program "$DIR/huge@text=hugetlbfs:R" --verify-only
    [ "$status" = 77 ]
    [ "${#lines[@]}" = 1 ]
    [[ $output == *"only root can"* ]]
}
