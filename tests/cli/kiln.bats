# The dispatcher, and what every command has in common.
BIN=${KILN_BIN:?KILN_BIN must name the directory of the programs}

setup() {
    DIR=$(mktemp -d /tmp/kiln-test.XXXXXX)
    chmod 755 "$DIR"
    export KILN_HOME=$DIR/home KILN_RUN=$DIR/run
}
teardown() { rm -rf "$DIR"; }

one_line() { # STATUS TEXT: the last run failed so, with one line that holds TEXT
    echo "$output"
    [ "$status" = "$1" ] && [ "${#lines[@]}" = 1 ] && [[ $output == *"$2"* ]]
}

@test "kiln without a command prints its usage and exits 2; --help exits 0" {
    run "$BIN/kiln"
    [ "$status" = 2 ]
    [[ $output == usage:* ]]
    run "$BIN/kiln" --help
    [ "$status" = 0 ]
    run "$BIN/kiln" --version
    [[ $output == "kiln "[0-9]* ]]
}

@test "every command has --help, which names its exit codes" {
    for verb in doctor profiles build list remove check launch restore bench compare report; do
        run "$BIN/kiln" $verb --help
        [ "$status" = 0 ] || { echo "$verb: $output"; false; }
        [[ $output == "usage: kiln $verb"* && $output == *"exit codes"* ]] || { echo "$verb: $output"; false; }
    done
}

@test "unknown commands and options: one line, exit 2" {
    run "$BIN/kiln" frob
    one_line 2 "frob: no such command"
    for verb in doctor profiles build list remove check launch restore bench compare report; do
        run "$BIN/kiln" $verb --no-such-option
        one_line 2 "--no-such-option: no such option"
    done
}

@test "a subject that is not there: one line, exit 2" {
    run "$BIN/kiln" launch nosuchbuild --verify-only
    one_line 2 "nosuchbuild: no such build"
    run "$BIN/kiln" launch /no/such/mysqld --verify-only
    one_line 2 "/no/such/mysqld: No such file"
    run "$BIN/kiln" launch "/bin/true@colour=red" --verify-only
    one_line 2 "colour: no such condition"
    run "$BIN/kiln" launch "/bin/true@text" --verify-only
    one_line 2 "is not KNOB=VALUE"
    run "$BIN/kiln" launch "$BATS_TEST_FILENAME" --verify-only
    one_line 2 "not an ELF file"
}

@test "a program that is no server: one line, exit 2" {
    run "$BIN/kiln" launch /bin/true --verify-only
    one_line 2 "not a MySQL or MariaDB server"
}

@test "doctor answers as a table and as JSON, and changes nothing" {
    run "$BIN/kiln" doctor
    [ "$status" = 0 ]
    [[ $output == *"huge page pool"* ]]
    run "$BIN/kiln" doctor --json
    [ "$(jq -r .schema <<<"$output")" = kiln.doctor/1 ]
    [ ! -e "$KILN_HOME" ]
}

@test "doctor reads a recorded tree: another machine's idle states" {
    mkdir -p "$DIR/root/sys/devices/system/cpu/cpuidle"
    echo acpi_idle >"$DIR/root/sys/devices/system/cpu/cpuidle/current_driver"
    KILN_SYSROOT=$DIR/root run "$BIN/kiln" doctor --json
    [ "$(jq -r '.answers[] | select(.what == "idle states") | .state' <<<"$output")" = ok ]
}

@test "restore with nothing to restore says so" {
    run "$BIN/kiln" restore
    [ "$status" = 0 ]
    [ "$output" = "nothing to restore" ]
}

@test "a run directory that others can write is refused" {
    mkdir -m 777 "$DIR/run"
    run "$BIN/kiln" launch "/bin/sleep@text=none" --program --verify-only -- 5
    one_line 2 "set KILN_RUN"
}
