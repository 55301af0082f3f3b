# What the live tests share: a private store and run directory, the host's state before and after.
BIN=${KILN_BIN:?KILN_BIN must name the directory of the programs}

need_root() { [ "$(id -u)" = 0 ] || skip "needs root: the pool and mounts belong to the kernel"; }
need_pool() {
    [ -w /proc/sys/vm/nr_hugepages ] || skip "needs a huge page pool that we may resize"
    [ -d /sys/kernel/mm/hugepages/hugepages-2048kB ] || skip "needs a pool of 2 MiB pages"
}
need_server() { [ -x /usr/sbin/mariadbd ] || skip "needs Debian's mariadb-server-core"; }

kiln_setup() {
    DIR=$(mktemp -d /tmp/kiln-test.XXXXXX)
    chmod 755 "$DIR"
    KILN_PIDS=
    export KILN_HOME=$DIR/home KILN_RUN=$DIR/run
    POOL_BEFORE=$(cat /proc/sys/vm/nr_hugepages)
    MOUNTS_BEFORE=$(grep -c hugetlbfs /proc/mounts || true)
}

kiln_teardown() {
    for pid in $KILN_PIDS; do kill -TERM "$pid" 2>/dev/null && wait "$pid"; done
    "$BIN/kiln-launch" restore >/dev/null 2>&1 || true
    rm -rf "$DIR"
}

# The host is as it was: pool, mounts, instance directories, journals, and no server of ours.
assert_restored() {
    [ "$(cat /proc/sys/vm/nr_hugepages)" = "$POOL_BEFORE" ]
    [ "$(grep -c hugetlbfs /proc/mounts || true)" = "$MOUNTS_BEFORE" ]
    [ -z "$(ls "$KILN_RUN/journal" 2>/dev/null)" ]
    [ -z "$(ls "$KILN_HOME/instances" 2>/dev/null)" ]
    ! pgrep -f "$DIR" >/dev/null
}

# Starts kiln launch in the background with its output in $DIR/out; waits until it says "running".
launch_background() {
    "$BIN/kiln-launch" launch "$@" >"$DIR/out" 2>"$DIR/err" 3>&- &
    KILN_PID=$!
    KILN_PIDS+=" $KILN_PID"
    for _ in $(seq 600); do
        grep -q '^running' "$DIR/out" && return 0
        kill -0 $KILN_PID 2>/dev/null || break
        sleep 0.1
    done
    cat "$DIR/out" "$DIR/err"
    return 1
}

# bigtext NAME FLAGS...: the fixture program, linked in a stated way.
bigtext() {
    local name=$1
    shift
    gcc -O1 "$@" -o "$DIR/$name" "$BATS_TEST_DIRNAME/../fixtures/bigtext.c"
}
MAX2M=-Wl,-z,max-page-size=2097152
