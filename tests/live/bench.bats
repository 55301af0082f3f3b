#!/usr/bin/env bats
# kiln bench --socket against a private MariaDB that this file starts and stops.

# shellcheck disable=SC2154  # bats sets stderr
bats_require_minimum_version 1.5.0

user=60577

as_server() {
    if [ "$(id -u)" = 0 ]; then
        setpriv --reuid "$user" --regid "$user" --clear-groups "$@"
    else
        "$@"
    fi
}

bootstrap_sql() {
    printf 'create database mysql;\nuse mysql;\nset @auth_root_socket=NULL;\n'
    cat /usr/share/mysql/mysql_system_tables.sql /usr/share/mysql/mysql_performance_tables.sql \
        /usr/share/mysql/mysql_system_tables_data.sql
}

missing() {
    [ -x /usr/sbin/mariadbd ] || echo "no /usr/sbin/mariadbd (Debian: mariadb-server-core)"
    command -v mariadb >/dev/null || echo "no mariadb client (Debian: mariadb-client-core)"
    [ -r /usr/share/mysql/mysql_system_tables.sql ] || echo "no /usr/share/mysql/*.sql"
    [ -x "$KILN_BIN/kiln-bench" ] || echo "no kiln-bench in KILN_BIN ($KILN_BIN)"
}

setup_file() {
    export KILN_BIN="${KILN_BIN:-$BATS_TEST_DIRNAME/../../bin}"
    MISSING=$(missing | head -1)
    export MISSING
    [ -z "$MISSING" ] || return 0
    BASE=$(mktemp -d /tmp/kiln-bench-test.XXXXXX)
    export BASE SOCKET="$BASE/s"
    chmod 755 "$BASE"
    mkdir "$BASE/data" "$BASE/tmp"
    [ "$(id -u)" != 0 ] || chown -R "$user:$user" "$BASE"
    bootstrap_sql | as_server /usr/sbin/mariadbd --no-defaults --bootstrap \
        --datadir="$BASE/data" --tmpdir="$BASE/tmp" --lc-messages-dir=/usr/share/mysql \
        >"$BASE/bootstrap.log" 2>&1
    start_server
}

start_server() {
    as_server /usr/sbin/mariadbd --no-defaults --datadir="$BASE/data" --tmpdir="$BASE/tmp" \
        --lc-messages-dir=/usr/share/mysql --skip-networking --socket="$SOCKET" \
        --innodb-flush-log-at-trx-commit=0 --pid-file="$BASE/data/pid" \
        >>"$BASE/server.log" 2>&1 3>&- &
    for _ in $(seq 100); do
        sql 'select 1' >/dev/null 2>&1 && return 0
        sleep 0.2
    done
    tail -5 "$BASE/server.log"
    return 1
}

teardown_file() {
    [ -n "$BASE" ] || return 0
    if [ -s "$BASE/data/pid" ]; then
        local pid
        pid=$(cat "$BASE/data/pid")
        kill "$pid" || true
        for _ in $(seq 100); do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
    fi
    rm -rf "$BASE"
}

setup() {
    [ -z "$MISSING" ] || skip "$MISSING"
}

sql() {
    mariadb --no-defaults -uroot -S "$SOCKET" -N -B -e "$1"
}

status() {
    sql "show global status like '$1'" | cut -f2
}

bench() {
    "$KILN_BIN/kiln-bench" bench --socket="$SOCKET" --tables=2 --rows=3000 --seconds=1 \
        --warmup=0.3 --json "$@" 2>"$BATS_TEST_TMPDIR/err"
}

# field JSON PATH: a number or word of the first workload.
field() {
    jq -r ".workloads[0].$2" <<<"$1"
}

@test "loads the data set; row values and checksum are those of the unit test's fixed data" {
    out=$(bench --workloads=point-query)
    grep -q '"data_set_state": "loaded now"' <<<"$out"
    [ "$(sql 'select count(*) from sbtest.sbtest2')" = 3000 ]
    run -0 sql "select c from sbtest.sbtest1 where id=1"
    [[ $output == 61466524133-35132370842-* ]]
    [ "$(sql "select count(*) from information_schema.statistics where table_schema='sbtest'
        and index_name in ('k_1', 'k_2')")" = 2 ]
}

@test "a second run finds the data set as loaded" {
    out=$(bench --workloads=point-query)
    grep -q '"data_set_state": "as loaded"' <<<"$out"
}

@test "the server executed exactly the statements that the client counted" {
    before=$(status Com_stmt_execute)
    out=$(bench --workloads=point-query --threads=3)
    after=$(status Com_stmt_execute)
    inside=$(field "$out" counts.reads)
    outside=$(field "$out" counts_outside.reads)
    [ "$inside" -gt 0 ]
    [ $((after - before)) = $((inside + outside)) ]
    [ "$(field "$out" counts.queries)" = "$(field "$out" events)" ]
    [ "$(field "$out" counts.rows_returned)" = "$(field "$out" events)" ]
}

@test "read-only: 16 queries in an event, BEGIN and COMMIT agree with the server" {
    before=$(($(status Com_begin) + $(status Com_commit)))
    out=$(bench --workloads=read-only --threads=2)
    after=$(($(status Com_begin) + $(status Com_commit)))
    [ $((after - before)) = $(($(field "$out" counts.control) + $(field "$out" counts_outside.control))) ]
    [ "$(field "$out" counts.queries)" = $((16 * $(field "$out" events))) ]
    [ "$(field "$out" counts.reads)" = $((14 * $(field "$out" events))) ]
}

@test "update-index: effective writes agree with the rows that the server updated" {
    before=$(status Handler_update)
    out=$(bench --workloads=update-index --threads=2)
    after=$(status Handler_update)
    [ $((after - before)) = $(($(field "$out" counts.writes) + $(field "$out" counts_outside.writes))) ]
    [ "$(field "$out" counts.noop_writes)" = 0 ]
}

@test "insert: rows agree, and the next run says that the data set has changed" {
    before=$(sql 'select (select count(*) from sbtest.sbtest1) + (select count(*) from sbtest.sbtest2)')
    out=$(bench --workloads=insert)
    after=$(sql 'select (select count(*) from sbtest.sbtest1) + (select count(*) from sbtest.sbtest2)')
    [ $((after - before)) = $(($(field "$out" counts.writes) + $(field "$out" counts_outside.writes))) ]
    out=$(bench --workloads=point-query)
    grep -q '"data_set_state": "changed since the load"' <<<"$out"
    grep -q 'measured as it is' "$BATS_TEST_TMPDIR/err"
}

@test "CPU per query of client and server and the latencies are there and in order" {
    out=$(bench --workloads=point-query)
    jq -e '.workloads[0] | .latency_ms as $ms |
        .client_cpu_us > 0 and .server_cpu_us > 0 and
        0 < $ms.min and $ms.min <= $ms.p50 and $ms.p50 <= $ms.p95 and $ms.p95 <= $ms.p99 and
        $ms.p99 <= $ms.max and
        ((.qps - .counts.queries / .window_seconds) | fabs) < 1e-4' <<<"$out"
}

@test "a lock wait that times out is rolled back, counted, and does not end the run" {
    sql 'set global innodb_lock_wait_timeout=1'
    mariadb --no-defaults -uroot -S "$SOCKET" -e "begin; update sbtest.sbtest1 set pad='x';
        update sbtest.sbtest2 set pad='x'; select sleep(4); rollback" >/dev/null 3>&- &
    sleep 0.5
    out=$(bench --workloads=update-index --threads=2 --warmup=0 --seconds=6)
    sql 'set global innodb_lock_wait_timeout=50'
    wait
    [ "$(field "$out" lock_timeouts)" -ge 2 ]
    [ "$(field "$out" events)" -gt 0 ]
}

@test "Ctrl-C ends it with 130" {
    "$KILN_BIN/kiln-bench" bench --socket="$SOCKET" --tables=2 --rows=3000 --seconds=30 \
        --workloads=point-query 2>"$BATS_TEST_TMPDIR/err" 3>&- &
    pid=$!
    sleep 1
    kill -TERM "$pid"
    code=0
    wait "$pid" || code=$?
    [ "$code" = 130 ]
    grep -q interrupted "$BATS_TEST_TMPDIR/err"
}

@test "unknown workload, no subject, missing socket: one line and 2" {
    run -2 --separate-stderr "$KILN_BIN/kiln-bench" bench --socket="$SOCKET" --workloads=nonsense
    [[ $stderr == *"nonsense: no such workload"* ]]
    run -2 "$KILN_BIN/kiln-bench" bench
    run -2 --separate-stderr "$KILN_BIN/kiln-bench" bench --socket="$BASE/nothing"
    [[ $stderr == *"$BASE/nothing"* ]]
    run -2 "$KILN_BIN/kiln-bench" bench --socket="$SOCKET" --threads=0
}

@test "fewer tables than asked for is an error, not a load beside them" {
    run -2 --separate-stderr "$KILN_BIN/kiln-bench" bench --socket="$SOCKET" --tables=3 --rows=3000
    [[ $stderr == *"has 2 of the 3 tables"* ]]
}

# The last one: it leaves no server.
@test "a server killed in the middle is an error that says so" {
    "$KILN_BIN/kiln-bench" bench --socket="$SOCKET" --tables=2 --rows=3000 --seconds=30 \
        --workloads=point-query --threads=3 2>"$BATS_TEST_TMPDIR/err" 3>&- &
    pid=$!
    sleep 1
    kill -KILL "$(cat "$BASE/data/pid")"
    rm -f "$BASE/data/pid"
    code=0
    wait "$pid" || code=$?
    [ "$code" = 2 ]
    grep -q "the server is gone" "$BATS_TEST_TMPDIR/err"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/err")" -le 3 ]
}
