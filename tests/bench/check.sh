#!/bin/bash
# kiln check against the tools that answer a part of its questions, on one server with debug
# information: medians of ratios in alternating rounds.
#   check.sh BIN PAIRS       SERVER=FILE names another file than the biggest build in the store
set -eu
bin=$1 pairs=$2
rounds=${ROUNDS:-41}

builds() { # SIZE: the servers of the store that are bigger, the biggest last
    local dir
    for dir in "${KILN_HOME:-/var/lib/kiln}" "$HOME/.local/share/kiln"; do
        find "$dir"/builds -path '*/bin/*' \( -name mariadbd -o -name mysqld \) -type f -size "+$1" \
            -printf '%s %p\n' 2>/dev/null || true
    done | sort -n | cut -d' ' -f2-
}

server=${SERVER:-$(builds 200M | tail -1)}
if [ -z "$server" ]; then
    echo "kiln check: not measured: no server of 200 MB in the store ('kiln build' makes one; or SERVER=FILE)"
    exit 77
fi
echo "file: $(basename "$server"), $(stat -Lc %s "$server") bytes"
against() { # WHAT ROUNDS KILN-COMMAND OTHER-COMMAND
    printf '%-34s ' "$1"
    if command -v "${4%% *}" >/dev/null; then
        "$pairs" "$2" "$3" "$4"
    else
        echo "not measured: no ${4%% *} on this host"
    fi
}
against "--layout / eu-readelf -l" "$rounds" "$bin/kiln-check --layout $server" "eu-readelf -l $server"
against "--layout / readelf -lW" "$rounds" "$bin/kiln-check --layout $server" "readelf -lW $server"
against "all facts / checksec" 5 "$bin/kiln-check $server" "checksec --file=$server --output=json"
against "all facts / hardening-check" 5 "$bin/kiln-check $server" "hardening-check $server"

# Cost grows no faster than the file: the ratio of times beside the ratio of sizes.
smaller=$(builds 50M | head -1)
if [ -n "$smaller" ] && [ "$smaller" != "$server" ]; then
    sizes=$(stat -Lc %s "$server" "$smaller" | paste -sd ' ')
    awk -v s="$sizes" 'BEGIN {split(s, n, " "); printf "size of the file / of a smaller build   A/B %.2f\n", n[1] / n[2]}'
    against "all facts / of that build" 21 "$bin/kiln-check $server" "$bin/kiln-check $smaller"
fi
