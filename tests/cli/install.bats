# make install: what is installed works from where it is.
setup() { DIR=$(mktemp -d /tmp/kiln-test.XXXXXX); }
teardown() { rm -rf "$DIR"; }

@test "make install puts programs, profiles, toolchains and manual pages under DESTDIR" {
    cd "$BATS_TEST_DIRNAME/../.."
    make -s install DESTDIR="$DIR" PREFIX=/usr
    for p in kiln kiln-build kiln-check kiln-launch kiln-bench kiln-compare kiln-report; do
        [ -x "$DIR/usr/bin/$p" ]
        [ -s "$DIR/usr/share/man/man1/$p.1" ]
    done
    [ -s "$DIR/usr/share/kiln/toolchains/gcc.cmake" ]
    unset KILN_SHARE
    export KILN_HOME=$DIR/home
    run "$DIR/usr/bin/kiln" profiles gcc-o2-hugetext --for mariadb-10.11.18
    [ "$status" = 0 ]
    [[ $output == *"$DIR/usr/share/kiln/toolchains/gcc.cmake"* ]]
    run "$DIR/usr/bin/kiln" check /bin/true
    [ "$status" = 0 ]
    # Nothing of the checkout is left in the installed programs' search for their files.
    [ -z "$(find "$DIR" -path "$DIR/usr" -prune -o -type f -print)" ]
}
