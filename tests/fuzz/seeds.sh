#!/bin/bash
# Writes the fuzzer's first inputs: small real files of several kinds, and hand-broken ones.
#   seeds.sh DIR
set -eu
out=$(realpath -m "$1")
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
printf 'int data = 1; int zero; void _start(void) { for (;;) zero += data; }\n' >a.c
printf '#include <stdio.h>\nint main(void) { return puts("10.11.18-MariaDB"); }\n' >b.c

keep() { [ ! -f "$1" ] || cp "$1" "$out/$2"; }
try() { "$@" 2>/dev/null || rm -f a.out; }
linkers=$(for l in bfd gold lld mold; do if command -v "ld.$l" >/dev/null; then echo "$l"; fi; done)

for l in $linkers; do
    try gcc -fuse-ld="$l" -nostdlib -static -g a.c -o a.out && keep a.out "static-$l"
    try gcc -fuse-ld="$l" -Os -pie -fPIE b.c -o a.out && keep a.out "pie-$l"
    try gcc -fuse-ld="$l" -Os -no-pie -s b.c -o a.out && keep a.out "stripped-$l"
done
gcc -c -g a.c -o a.o && keep a.o object
gcc -c -g3 -gz -O2 b.c -o b.o && keep b.o object-compressed
gcc -m32 -c a.c -o a.o 2>/dev/null && keep a.o object-32
gcc -shared -nostdlib -fPIC a.c -o a.so && keep a.so shared
if command -v clang >/dev/null; then
    for t in aarch64 arm mips powerpc64 s390x riscv64; do
        clang --target=$t-linux-gnu -c -g a.c -o a.o 2>/dev/null && keep a.o "object-$t"
    done
    clang --target=aarch64-linux-gnu -nostdlib -fuse-ld=lld a.c -o a.out 2>/dev/null && keep a.out aarch64
fi

# Debug information that expands a thousandfold when it is read.
if command -v objcopy >/dev/null; then
    truncate -s 100M zeros
    gcc -c a.c -o a.o
    objcopy --add-section .debug_info=zeros a.o big.o &&
        objcopy --compress-debug-sections=zlib big.o bomb.o && keep bomb.o compressed-bomb
fi

# Broken by hand, from one small file.
base=$out/static-lld
[ -f "$base" ] || base=$out/static-bfd
size=$(stat -c %s "$base")
head -c $((size / 2)) "$base" >"$out/cut-half"
head -c 64 "$base" >"$out/cut-header"
break_at() { # NAME OFFSET BYTES...
    local name=$1 at=$2
    shift 2
    cp "$base" "$out/$name"
    printf '%b' "$@" | dd of="$out/$name" bs=1 seek="$at" conv=notrunc status=none
}
break_at phnum-escape 56 '\xff\xff'
break_at phnum-many 56 '\x00\x80'
break_at shnum-zero 60 '\x00\x00'
break_at big-endian 5 '\x02'
break_at class-32 4 '\x01'
break_at shoff-far 40 '\xff\xff\xff\xff\xff\xff\xff\x7f'
break_at phoff-odd 32 '\x41'
break_at filesz-absurd 96 '\xff\xff\xff\xff\xff\xff\xff\xff'
break_at memsz-absurd 104 '\xff\xff\xff\xff\xff\xff\xff\x7f'
break_at align-absurd 112 '\x00\x00\x00\x00\x00\x00\x00\x80'
break_at vaddr-overlap 136 '\x00\x00\x40\x00\x00\x00\x00\x00'
break_at names-far 62 '\xff\xfe'
break_at type-core 16 '\x04'
