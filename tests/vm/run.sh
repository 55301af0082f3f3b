#!/bin/bash
# Boots Debian's kernel in qemu (software emulation) with two NUMA nodes and four idle states, runs
# kiln inside, and judges what it printed. Nothing is installed; obj/vm keeps the kernel.
#   tests/vm/run.sh [BIN]    BIN: directory of the programs (bin)
# Exit code 0, 1, or 77 when this host cannot run it. KILN_VM_TIMEOUT: seconds, 300.
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=${1:-bin}
vm=obj/vm
console=$vm/console.log
mkdir -p $vm

skip() {
    printf 'skip   vm: %s\n0 passed, 0 failed, 1 skipped\n' "$1"
    exit 77
}

need() {
    local tool
    for tool; do
        command -v "$tool" >/dev/null || skip "needs $tool ('make deps-vm')"
    done
}

one_of() { compgen -G "$1" | sed -n 1p; } # the first file of this pattern

# Leaves the kernel's file name in $kernel.
get_kernel() {
    local package
    kernel=$(one_of "$vm/kernel/boot/vmlinuz-*" || true)
    [ -z "$kernel" ] || return 0
    package=$(apt-cache depends linux-image-amd64 2>/dev/null | awk '/Depends:/ && !n++ {print $2}')
    [ -n "$package" ] || skip "apt knows no linux-image-amd64"
    (cd $vm && apt-get download -q "$package") >$vm/apt.log 2>&1 ||
        skip "cannot download $package: $(tail -n 1 $vm/apt.log)"
    rm -rf $vm/kernel
    dpkg -x "$(one_of "$vm/${package}_*.deb")" $vm/kernel
    rm -rf $vm/"${package}"_*.deb $vm/kernel/lib $vm/kernel/usr # the modules are not needed
    kernel=$(one_of "$vm/kernel/boot/vmlinuz-*")
}

# Copies a program and the libraries it loads, each to where the loader looks for it.
add_program() { # FILE PLACE
    local library
    install -D -m 755 "$1" "$root/$2"
    while IFS= read -r library; do
        [ -e "$root$library" ] || install -D -m 755 "$library" "$root$library"
    done < <(ldd "$1" | grep -o '/[^ ]*')
}

make_root() {
    local applet lib
    root=$(mktemp -d "$vm/root.XXXXXX")
    trap 'rm -rf "$root"' EXIT
    chmod 755 "$root" # the server's user must get through
    mkdir -p "$root"/{bin,dev,proc,sys,tmp,var/tmp,kiln}
    chmod 1777 "$root/tmp" "$root/var/tmp"
    install -m 755 "$(command -v busybox)" "$root/bin/busybox"
    for applet in sh mount dmesg tr cat grep sleep seq sed taskset cp mv rm awk poweroff; do
        ln -s busybox "$root/bin/$applet"
    done
    # Not busybox's: the question what libhugetlbfs can do needs a dynamic program.
    add_program /usr/bin/true bin/true
    add_program /usr/bin/env bin/env
    add_program "$bin/kiln-launch" bin/kiln-launch
    add_program "$bin/kiln-check" bin/kiln-check
    gcc -O1 -Wl,-z,max-page-size=2097152 -o $vm/bigtext tests/fixtures/bigtext.c
    add_program $vm/bigtext bigtext
    lib=$(/sbin/ldconfig -p | awk '$1 == "libhugetlbfs.so.0" && !n++ {print $NF}')
    [ -n "$lib" ] || skip "needs libhugetlbfs0 ('make deps-vm')"
    add_program "$lib" "$lib"
    install -m 755 tests/vm/init "$root/init"
    (cd "$root" && find . | cpio --quiet -o -H newc -R 0:0 | gzip -1) >$vm/initramfs.gz
}

boot() {
    local rc=0
    iasl -p $vm/cst tests/vm/cstates.asl >$vm/iasl.log 2>&1 || skip "iasl failed, see $vm/iasl.log"
    timeout --foreground "${KILN_VM_TIMEOUT:-300}" qemu-system-x86_64 -machine q35 -accel tcg -cpu max -smp 4 -m 1024 \
        -object memory-backend-ram,id=m0,size=512M -object memory-backend-ram,id=m1,size=512M \
        -numa node,nodeid=0,cpus=0-1,memdev=m0 -numa node,nodeid=1,cpus=2-3,memdev=m1 \
        -acpitable file=$vm/cst.aml -kernel "$kernel" -initrd $vm/initramfs.gz \
        -append "console=ttyS0 quiet panic=-1" -nographic -no-reboot </dev/null >$console 2>&1 || rc=$?
    [ $rc = 0 ] || printf '# qemu ended with exit code %d\n' $rc
}

passed=0 failed=0
# What NAME printed must have this exit code, and make this jq expression true.
expect() { # NAME EXIT-CODE EXPRESSION WHAT
    local line code output
    line=$(tr -d '\r' <$console | sed -n "s/^.*KILN-VM $1 //p" | sed -n 1p)
    code=${line%% *} output=${line#* }
    if [ "$code" = "$2" ] && { [ -z "$3" ] || jq -e "$3" <<<"$output" >/dev/null 2>&1; }; then
        passed=$((passed + 1))
        printf 'ok %d %s\n' $((passed + failed)) "$4"
    else
        failed=$((failed + 1))
        printf 'not ok %d %s\n# %s\n' $((passed + failed)) "$4" "${line:-nothing was printed, see $console}"
    fi
}
seen() { # KNOB EXPRESSION: about what was read back for this condition
    printf '.conditions[] | select(.knob == "%s") | .status == "verified" and (.seen | %s)' "$1" "$2"
}
answer() { # WHAT EXPRESSION: about one answer of the doctor
    printf '.answers[] | select(.what == "%s") | %s' "$1" "$2"
}

judge() {
    expect doctor 0 "$(answer NUMA '.seen == "2 nodes"')" "doctor sees two nodes"
    expect doctor 0 "$(answer 'idle states' '.seen == "driver acpi_idle"')" "doctor sees the idle driver"
    expect check 0 '.modes | any(.mode == "hugetlbfs:R" and .answer == "yes")' "check predicts hugetlbfs:R"
    # kiln reads a program 0.1 s after its start, which is early here; "pages" is read later.
    expect interleave 0 "$(seen numa '.bytes_by_node | .["0"] > 0 and .["1"] > 0')" \
        "numa=interleave:all: bytes on both nodes"
    expect pages 0 '.["0"] > 300 and .["1"] > 300' \
        "numa=interleave:all: the kernel says the same of the program's own memory"
    expect bind 0 "$(seen numa '.bytes_under_policy > 0 and .bytes_by_node == {"1": .bytes_under_policy}')" \
        "numa=bind:1: all of its memory on node 1, though its file lies on node 0"
    expect nonode 77 "" "numa=bind:7 is refused with 77"
    expect cpus 0 "$(seen cpus '.cpus_allowed == "2+3"')" "cpus=2+3"
    expect idle 0 "$(seen idle '.driver == "acpi_idle" and .max_latency_us == 1')" \
        "idle=max-latency:1 is read back"
    expect usage 0 '.free > 0 and .held == 0 and .again > 0' \
        "deeper idle states stand still while the server runs, and only then"
    expect hugetlbfs 0 '.text_bytes > 5000000 and .text_huge_percent == 100' "text=hugetlbfs:R: all text is huge"
    expect pool 0 '.before == .after and .mounts == 0' "the pool and the mounts are as before"
    expect restore 0 "" "restore finds nothing to do"
    expect end 0 "" "the virtual machine came to its end"
}

need qemu-system-x86_64 iasl cpio gzip jq gcc busybox dpkg apt-get apt-cache timeout
get_kernel
make_root
start=$SECONDS
boot
judge
echo "$((SECONDS - start)) s, console in $console"
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
