# Facts of real programs against what other tools say of them. Every disagreement stands here, with
# the tool that is wrong and why; another one fails the test.
BIN=${KILN_BIN:?KILN_BIN must name the directory of the programs}
load helper

PROGRAMS="/usr/sbin/mariadbd /usr/lib/postgresql/15/bin/postgres /usr/bin/gdb /usr/bin/python3 /bin/bash"
PROGRAMS="$PROGRAMS /usr/bin/busybox /usr/sbin/ldconfig /usr/bin/jq"

setup() {
    DIR=$(mktemp -d /tmp/kiln-test.XXXXXX)
    export KILN_HOME=$DIR/home KILN_RUN=$DIR/run
    cd "$DIR" || return 1
    seen=0
}
teardown() { cd / && rm -rf "$DIR"; }

read_facts() { # FILE: its facts in facts.json
    "$BIN/kiln-check" --json "$1" >check.json || [ $? = 1 ] || [ $? = 3 ] || return 1
    jq -e .facts check.json >facts.json
}

value() { jq -r --arg n "$1" '.[$n].value // "?"' facts.json; }
word() { local v; v=$(value "$1"); printf '%s' "${v%%[; ]*}"; } # its first word

agree() { # PROGRAM FACT OURS TOOL THEIRS
    seen=$((seen + 1))
    if [ "$3" != "$5" ]; then
        echo "$1: $2 is $3, $4 says $5"
        return 1
    fi
}

each() { # FUNCTION: for each program that is there
    local p n=0
    for p in $PROGRAMS; do
        [ -f "$p" ] || continue
        p=$(realpath "$p")
        read_facts "$p"
        "$1" "$p"
        n=$((n + 1))
    done
    [ "$n" -ge 2 ] && [ "$seen" -ge "$n" ]
}

static() { ! readelf -dW "$1" | grep -q NEEDED; }

against_checksec() {
    local p=$1 said
    said() { jq -r --arg k "$1" '.[][$k]' checksec.json; }
    checksec --file="$p" --output=json >checksec.json
    case $(word relro) in none) said=no ;; *) said=$(word relro) ;; esac
    if static "$p"; then
        # checksec finds no BIND_NOW in a static program and never says full; nothing is bound in it.
        # It greps for __stack_chk_fail and for *_chk: in a static program these are libc's own.
        [ "$(said relro)" != full ]
        [ "$(word stack-protector)" = "?" ]
        [ "$(word fortify)" = "?" ]
    else
        agree "$p" relro "$said" checksec "$(said relro)"
        agree "$p" stack-protector "$(word stack-protector)" checksec "$(said canary)"
        # "?" of ours: no import that fortifying always replaces, so that there is no evidence.
        [ "$(word fortify)" = "?" ] ||
            agree "$p" fortify "$(word fortify)" checksec "$(said fortify_source)"
        # checksec counts __fdelt_chk as a checked function; it is one that no other function is
        # replaced by, and has no unchecked form.
        readelf --dyn-syms -W "$p" | grep -q __fdelt_chk && fdelt=1 || fdelt=0
        ours=$(value fortify | sed -n 's/^yes; \([0-9]*\) of.*/\1/p')
        [ -z "$ours" ] || agree "$p" fortified $((ours + fdelt)) checksec "$(said fortified)"
    fi
    case $(word exec-stack) in no) said=yes ;; *) said=no ;; esac
    agree "$p" exec-stack "$said" checksec "$(said nx)"
    agree "$p" pie "$(word pie)" checksec "$(said pie)"
    [ "$(word rpath)" = none ] && said=no || said=yes
    [ "$(said rpath)$(said runpath)" = nono ] && both=no || both=yes
    agree "$p" rpath "$said" checksec "$both"
    [ "$(word symbols)" = full ] && said=yes || said=no
    agree "$p" symbols "$said" checksec "$(said symbols)"
}

@test "real programs: the same as checksec, but for the exceptions that are listed" {
    need checksec jq readelf
    each against_checksec
}

against_hardening_check() {
    local p=$1
    hardening-check "$p" >hc.txt || [ $? = 1 ]
    hc() { sed -n "s/^ $1: \([a-z]*\).*/\1/p" hc.txt; }
    if static "$p"; then
        # As checksec: libc's own functions are counted as the program's, and bindings are missed.
        # It calls a PIE only what has a PT_PHDR; a static one has none, and is loaded anywhere.
        [ "$(word pie)" = "$(readelf -hW "$p" | grep -q 'Type:.*DYN' && echo yes || echo no)" ]
        return 0
    fi
    agree "$p" pie "$(word pie)" hardening-check "$(hc 'Position Independent Executable')"
    agree "$p" stack-protector "$(word stack-protector)" hardening-check "$(hc 'Stack protected')"
    case $(word fortify) in "?") ;; *)
        agree "$p" fortify "$(word fortify)" hardening-check "$(hc 'Fortify Source functions')" ;;
    esac
    [ "$(word relro)" = none ] && ours=no || ours=yes
    agree "$p" relro "$ours" hardening-check "$(hc 'Read-only relocations')"
    agree "$p" bind-now "$(word bind-now)" hardening-check "$(hc 'Immediate binding')"
}

@test "real programs: the same as hardening-check" {
    need hardening-check jq readelf
    each against_hardening_check
}

against_readelf() {
    local p=$1 theirs
    readelf -W -l -d -n -S "$p" >re.txt 2>/dev/null
    theirs=$(sed -n 's/.*Build ID: //p' re.txt | head -1)
    agree "$p" build-id "$(value build-id)" readelf "${theirs:-none}"
    grep -q 'RUNPATH\|RPATH' re.txt && theirs=yes || theirs=no
    [ "$(word rpath)" = none ] && ours=no || ours=yes
    agree "$p" rpath "$ours" readelf "$theirs"
    theirs=$(sed -n 's/^ *GNU_STACK.* \(R[W]*E*\) *0x[0-9a-f]*$/\1/p' re.txt)
    case $theirs in *E) theirs=yes ;; RW | R) theirs=no ;; esac
    agree "$p" exec-stack "$(word exec-stack)" readelf "$theirs"
    grep -q '^ *LOAD.* RWE ' re.txt && theirs=yes || theirs=no
    agree "$p" writable-text "$(word writable-text)" readelf "$theirs"
    grep -q TEXTREL re.txt && theirs=yes || theirs=no
    agree "$p" text-relocations "$(word text-relocations)" readelf "$theirs"
    grep -q 'libnuma\.so' re.txt && theirs=yes || theirs=no
    agree "$p" libnuma "$(word libnuma)" readelf "$theirs"
    theirs=$(awk '$1 == "TLS" { print $6; exit }' re.txt)
    [ -n "$theirs" ] && theirs=$((theirs)) || theirs=none
    agree "$p" tls "$(word tls)" readelf "$theirs"
    case $(sed -n 's/.*x86 feature: //p' re.txt | head -1) in
    *IBT*SHSTK*) theirs=IBT+SHSTK ;; *IBT*) theirs=IBT ;; *SHSTK*) theirs=SHSTK ;; *) theirs=none ;;
    esac
    [ "$(uname -m)" != x86_64 ] ||
        agree "$p" branch-protection "$(word branch-protection)" readelf "$theirs"
}

@test "real programs: the same as readelf" {
    need readelf jq
    each against_readelf
}

against_eu_readelf() {
    local p=$1 theirs
    eu-readelf -S -s "$p" >eu.txt
    grep -q '\.debug_info' eu.txt && theirs=inside || theirs=none
    grep -q '\.gnu_debuglink' eu.txt && theirs=separate
    # A file found by its build-id alone is separate as well.
    if [ "$theirs" = inside ] || [ "$(word debug-info)" != separate ]; then
        agree "$p" debug-info "$(word debug-info)" eu-readelf "$theirs"
    fi
    # Entry 0 of a table is no symbol: a static PIE has a table of that alone.
    theirs=none
    grep -q "'.dynsym' contains" eu.txt && ! grep -q "'.dynsym' contains 1 entry" eu.txt && theirs=dynamic
    grep -q "'.symtab' contains" eu.txt && theirs=full
    agree "$p" symbols "$(word symbols)" eu-readelf "$theirs"
}

@test "real programs: the same as eu-readelf" {
    need eu-readelf jq
    each against_eu_readelf
}

@test "Debian's mariadbd: what is known, and what its stripped file cannot tell" {
    need jq
    [ -f /usr/sbin/mariadbd ] || skip "no /usr/sbin/mariadbd on this host"
    read_facts /usr/sbin/mariadbd
    jq -r 'to_entries[] | "\(.key): \(.value.value) (\(.value.evidence))"' facts.json
    [ "$(value flavour)" = MariaDB ]
    [ "$(value server-version)" = "$(/usr/sbin/mariadbd --version | sed 's/.*Ver \([^ ]*MariaDB\).*/\1/')" ]
    [ "$(value performance-schema)" = yes ]
    [ "$(value assertions)" = off ]
    [ "$(value allocator)" = libc ]
    [ "$(value libnuma)" = yes ]
    local f
    for f in optimisation march frame-pointers lto pgo fast-math stack-clash; do
        [ "$(value $f)" = "?" ]
        [[ $(jq -r --arg n $f '.[$n].evidence' facts.json) == *"would tell"* ]]
    done
}

@test "Debian's postgres: another server is told, with its version" {
    need jq
    local p=/usr/lib/postgresql/15/bin/postgres
    [ -f $p ] || skip "no $p on this host"
    read_facts $p
    [ "$(value flavour)" = PostgreSQL ]
    [ "$(value server-version)" = "$($p --version | awk '{ print $3 }')" ]
    [ "$(value performance-schema)" = no ]
    [ "$(uname -m)" != x86_64 ] || [ "$(word assertions)" = some ]
}

# A 4-segment program without PT_GNU_STACK: checksec calls its stack executable; the first thread's
# is not, those of other threads are, which is what kiln says.
@test "without PT_GNU_STACK threads have executable stacks, and the fact says so" {
    need gcc ld.lld jq
    [ "$(uname -m)" = x86_64 ] || skip "x86-64's default"
    cat >t.c <<'END'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *thread(void *p)
{
    char c[64];
    sprintf(c, "grep -c rwxp /proc/%d/maps", (int)getpid());
    return system(c) < 0 ? p : NULL;
}
int main(void)
{
    pthread_t t;
    pthread_create(&t, NULL, thread, NULL);
    return pthread_join(t, NULL);
}
END
    gcc -fuse-ld=lld -Wl,-z,nognustack t.c -o p
    read_facts ./p
    echo "$(value exec-stack), mappings: $(./p)"
    [ "$(value exec-stack)" = "yes; of threads" ]
    [ "$(./p)" -ge 1 ]
    gcc -fuse-ld=lld t.c -o p
    read_facts ./p
    [ "$(value exec-stack)" = no ] && [ "$(./p)" = 0 ]
}
