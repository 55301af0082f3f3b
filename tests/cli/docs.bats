# The manual pages: every option is in them, and they render without a warning.
BIN=${KILN_BIN:?KILN_BIN must name the directory of the programs}
DOCS=$BATS_TEST_DIRNAME/../../docs

owner() { # VERB: the program that owns it
    case $1 in
    doctor | launch | restore) echo kiln-launch ;;
    profiles | build | list | remove) echo kiln-build ;;
    *) echo "kiln-$1" ;;
    esac
}

verbs() { "$BIN/kiln" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'; }

plain() { # PAGE: its source with plain dashes, without font changes
    sed -e 's/\\-/-/g' -e 's/\\f.//g' "$DOCS/$1.1"
}

@test "every long option of --help is in the page of the program that owns the command" {
    [ "$(verbs | wc -l)" -ge 11 ]
    for verb in $(verbs); do
        options=$("$BIN/kiln" "$verb" --help | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+')
        [[ $options == *--help* ]]
        for option in $options; do
            plain "$(owner "$verb")" | grep -qE -- "^(-., |-. [^ ]+, )?$option(=|$)" ||
                { echo "$verb $option: not in $(owner "$verb").1"; false; }
        done
    done
}

@test "every command is in kiln.1 and has its page" {
    for verb in $(verbs); do
        plain kiln | grep -qwF -- "$verb"
        [ -f "$DOCS/$(owner "$verb").1" ]
        plain "$(owner "$verb")" | grep -qF "kiln $verb"
    done
}

@test "every condition of kiln launch is in its page" {
    knobs=$("$BIN/kiln" launch --help | sed -n '/Conditions:/,/^options/s/^  \([a-z]*\)  *.*/\1/p')
    [ -n "$knobs" ]
    for knob in $knobs; do
        plain kiln-launch | grep -qE "^\.(B|BI|BR) $knob=" || { echo "$knob= is not in the page"; false; }
    done
}

@test "every page has its sections, and the exit codes" {
    for page in "$DOCS"/*.1; do
        for section in NAME SYNOPSIS DESCRIPTION OPTIONS EXAMPLES FILES ENVIRONMENT "EXIT STATUS" "SEE ALSO"; do
            grep -qx "\.SH $section" "$page" || { echo "${page##*/}: no $section"; false; }
        done
        for code in 0 1 2 3 77 130; do
            grep -qx "\.B $code" "$page" || { echo "${page##*/}: no exit code $code"; false; }
        done
    done
}

@test "every page renders without a warning" {
    command -v man >/dev/null || skip "no man on this host"
    for page in "$DOCS"/*.1; do
        run bash -c 'LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l "$1" 2>&1 >/dev/null' _ "$page"
        [ "$status" = 0 ]
        [ -z "$output" ] || { echo "${page##*/}: $output"; false; }
    done
}
