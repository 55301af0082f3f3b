# text=MODE: every way to 2 MiB pages under the code, on a fixture and on Debian's own server; what is
# seen is what kiln check predicts, and the host is as it was.
load helper

setup() {
    kiln_setup
    # A kiln-launch without libkiln-remap.so beside it, for what must not depend on that.
    mkdir "$DIR/alone"
    cp "$BIN/kiln-launch" "$DIR/alone/"
    LAUNCH=$BIN/kiln-launch
    export KILN_SHARE=$BATS_TEST_DIRNAME/../..
}
teardown() {
    local dir
    kiln_teardown 2>/dev/null || true # it cannot remove what is still a mount
    for dir in small run; do ! mountpoint -q "$DIR/$dir" || umount "$DIR/$dir"; done
    rm -rf "$DIR"
}

launch() { run "$LAUNCH" launch "$@"; }
field() { jq -r "$1" <<<"$output"; }
one_line() { [ "${#lines[@]}" = 1 ] || { echo "not one line: $output"; false; }; }
kiln_mounts() { grep -c "^kiln $KILN_RUN/" /proc/mounts || true; }
assert_host() {
    [ "$(kiln_mounts)" = 0 ]
    assert_restored
}

# predicted FILE MODE: the bytes of text that kiln check says the mode puts on huge pages
predicted() {
    "$BIN/kiln-check" --json "$1" | jq -r ".modes[] | select(.mode == \"$2\") | .text_huge_bytes // 0"
}
reason() { "$BIN/kiln-check" --json "$1" | jq -r ".modes[] | select(.mode == \"$2\") | .reason"; }

# Where the instances are, the page cache takes 2 MiB folios: asked without kiln's own code.
need_folios() {
    local filled
    gcc -O1 -o "$DIR/fill" "$BATS_TEST_DIRNAME/matrix/fill.c"
    head -c 4M /dev/zero >"$DIR/probe"
    read -r filled _ < <("$DIR/fill" "$DIR/probe") || true
    [ "$filled" = 4194304 ] || skip "the file system has no large folios"
}
need_tmpfs() { [ -e /sys/kernel/mm/transparent_hugepage/shmem_enabled ] || skip "tmpfs without 2 MiB pages"; }
need_hugeedit() { command -v hugeedit >/dev/null || skip "needs hugeedit"; }

# The instances on a tmpfs of 4 KiB pages: no large folios.
small_home() {
    mkdir -p "$DIR/small"
    mount -t tmpfs -o size=64m,huge=never small "$DIR/small"
    export KILN_HOME=$DIR/small/home
}
# as_user COMMAND...: as somebody who may neither mount nor raise the pool
as_user() {
    mkdir -p "$KILN_HOME" "$KILN_RUN"
    chown -R 60578 "$KILN_HOME" "$KILN_RUN"
    run setpriv --reuid 60578 --regid 60578 --clear-groups env KILN_HOME="$KILN_HOME" \
        KILN_RUN="$KILN_RUN" KILN_SHARE="$KILN_SHARE" "$@"
    chown -R 0 "$KILN_HOME" "$KILN_RUN" # kiln takes no run directory of somebody else
}
# fake_host: a tree to stand for /, with the files that its caller adds
fake_host() {
    export KILN_SYSROOT=$DIR/host
    mkdir -p "$DIR/host/proc" "$DIR/host/sys/kernel/mm/transparent_hugepage"
    echo "always within_size advise [never] deny force" \
        >"$DIR/host/sys/kernel/mm/transparent_hugepage/shmem_enabled"
    echo "MemAvailable: 9000000 kB" >"$DIR/host/proc/meminfo"
}
# The real server with its text's segment aligned to 2 MiB in the program header, which is all that
# page cache and tmpfs need: its addresses and offsets agree as they are.
aligned_server() {
    need_server
    command -v python3 >/dev/null || skip "needs python3 to write the program header"
    mkdir -p "$DIR/root/sbin"
    ln -s /usr/share "$DIR/root/share"
    cp /usr/sbin/mariadbd "$DIR/root/sbin/"
    python3 - "$DIR/root/sbin/mariadbd" <<'PY'
import struct, sys
b = bytearray(open(sys.argv[1], "rb").read())
phoff, = struct.unpack_from("<Q", b, 32)
phnum, = struct.unpack_from("<H", b, 56)
for i in range(phnum):
    at = phoff + i * 56
    kind, flags = struct.unpack_from("<II", b, at)
    if kind == 1 and flags & 1:
        struct.pack_into("<Q", b, at + 48, 2 << 20)
        break
open(sys.argv[1], "wb").write(b)
PY
    [ "$(predicted "$DIR/root/sbin/mariadbd" tmpfs)" -gt 4000000 ] ||
        skip "this build's text is not where 2 MiB slots could be"
}

# --- tmpfs ---

@test "text=tmpfs: whole slots of an aligned program are on 2 MiB pages, all of a padded one" {
    need_root; need_tmpfs
    bigtext huge $MAX2M
    launch --program "$DIR/huge@text=tmpfs" --verify-only --json
    echo "$output"
    [ "$status" = 0 ]
    [ "$(field .text_huge_bytes)" = 4194304 ]
    [ "$(field .text_huge_bytes)" = "$(predicted "$DIR/huge" tmpfs)" ]
    [ "$(field .by.shmem_pmd)" = 4194304 ]
    [[ $(field '.argv[0]') == "$(field '.conditions[0].seen.mount')"/huge ]]
    "$BIN/kiln-check" --pad "$DIR/huge"
    launch --program "$DIR/huge@text=tmpfs" --verify-only --json
    [ "$status" = 0 ]
    [ "$(field '.text_bytes == .text_huge_bytes')" = true ]
    [ "$(field '.text_bytes == .by.shmem_pmd')" = true ]
    assert_host
}

@test "text=tmpfs: the copy is the server user's alone, of whole slots, and executable" {
    need_root; need_tmpfs
    bigtext huge $MAX2M
    launch_background --program "$DIR/huge@text=tmpfs"
    [ "$(kiln_mounts)" = 1 ]
    mount=$(awk -v run="$KILN_RUN/" '$1 == "kiln" && index($2, run) == 1 {print $2}' /proc/mounts)
    grep -q "^kiln $mount tmpfs .*nosuid,nodev.*huge=always" /proc/mounts
    [ "$(stat -c %a "$mount")" = 700 ]
    [ "$(stat -c %u "$mount")" = "$(stat -c %u "$KILN_HOME"/instances/*)" ]
    [ "$(stat -c %u "$mount")" != 0 ]
    bytes=$(stat -c %s "$mount/huge")
    [ $((bytes % 2097152)) = 0 ]
    cmp -n "$(stat -c %s "$DIR/huge")" "$DIR/huge" "$mount/huge"
    # The file and one slot, no more.
    [ "$(stat -f -c '%b * %S' "$mount")" = "$(((bytes + 2097152) / 4096)) * 4096" ]
    kill -TERM $KILN_PID
    wait $KILN_PID
    assert_host
}

@test "text=tmpfs: kill -9 of kiln, then kiln restore" {
    need_root; need_tmpfs
    bigtext huge $MAX2M
    launch_background --program "$DIR/huge@text=tmpfs"
    kill -KILL $KILN_PID
    wait $KILN_PID || true
    [ "$(kiln_mounts)" = 1 ]
    run "$LAUNCH" restore
    [ "$status" = 0 ]
    [[ $output == *"1 killed run undone"* ]]
    assert_host
}

@test "text=tmpfs: the mount goes when a condition after it fails" {
    need_root; need_tmpfs
    bigtext huge $MAX2M
    launch --program "$DIR/huge@text=tmpfs,malloc=/no/such/lib.so" --verify-only
    [ "$status" = 2 ]
    one_line
    assert_host
}

@test "text=tmpfs is refused: for the file, without root, without memory, where it is denied" {
    need_root; need_tmpfs
    bigtext plain
    launch --program "$DIR/plain@text=tmpfs" --verify-only
    [ "$status" = 1 ]
    one_line
    [[ $output == *"text=tmpfs cannot work: $(reason "$DIR/plain" tmpfs)"* ]]
    bigtext huge $MAX2M
    cp "$LAUNCH" "$DIR/kiln-launch" # the source may lie where others cannot go
    as_user "$DIR/kiln-launch" launch --program "$DIR/huge@text=tmpfs" --verify-only
    [ "$status" = 77 ]
    one_line
    [[ $output == *"text=tmpfs: only root can mount a tmpfs"* ]]
    fake_host
    echo "MemAvailable: 10240 kB" >"$DIR/host/proc/meminfo"
    launch --program "$DIR/huge@text=tmpfs" --verify-only
    [ "$status" = 77 ]
    one_line
    [[ $output == *"the copy on tmpfs takes 16 MiB, and 10 MiB of memory are available"* ]]
    fake_host
    echo "always within_size advise never [deny] force" \
        >"$DIR/host/sys/kernel/mm/transparent_hugepage/shmem_enabled"
    launch --program "$DIR/huge@text=tmpfs" --verify-only
    [ "$status" = 77 ]
    one_line
    [[ $output == *"are denied; echo never >"* ]]
    unset KILN_SYSROOT
    assert_host
}

# --- page cache ---

@test "text=pagecache is refused where the file system has no large folios" {
    need_root
    small_home
    bigtext huge $MAX2M
    launch --program "$DIR/huge@text=pagecache" --verify-only
    [ "$status" = 77 ]
    one_line
    [[ $output == *"takes no 2 MiB folio"* ]]
    launch --program "$DIR/huge@text=pagecache?" --verify-only --json
    [ "$status" = 0 ]
    [ "$(field '.conditions[0].status')" = "not had" ]
    assert_host
}

# --- hugetlbfs ---

@test "text=hugetlbfs:marked moves what hugeedit marked, and nothing else" {
    need_root; need_pool; need_hugeedit
    bigtext huge $MAX2M
    hugeedit --text "$DIR/huge" >/dev/null
    launch --program "$DIR/huge@text=hugetlbfs:marked" --verify-only --json
    echo "$output"
    [ "$status" = 0 ]
    [ "$(field '.text_bytes == .by.hugetlb')" = true ]
    [ "$(field .text_huge_bytes)" = "$(predicted "$DIR/huge" hugetlbfs:marked)" ]
    # The code's three pages; hugetlbfs:R takes six.
    [ "$(field '.conditions[0].seen.pages_needed')" = 3 ]
    [ "$(field '[.environment[] | select(startswith("HUGETLB_ELFMAP"))] | length')" = 0 ]
    assert_host
}

@test "text=hugetlbfs:marked: kill -9 of kiln, then kiln restore" {
    need_root; need_pool; need_hugeedit
    bigtext huge $MAX2M
    hugeedit --text "$DIR/huge" >/dev/null
    launch_background --program "$DIR/huge@text=hugetlbfs:marked"
    kill -KILL $KILN_PID
    wait $KILN_PID || true
    [ "$(kiln_mounts)" = 1 ]
    [ "$(cat /proc/sys/vm/nr_hugepages)" != "$POOL_BEFORE" ]
    run "$LAUNCH" restore
    [ "$status" = 0 ]
    assert_host
}

@test "text=hugetlbfs:marked is refused when no text is marked" {
    need_root; need_pool; need_hugeedit
    bigtext huge $MAX2M
    launch --program "$DIR/huge@text=hugetlbfs:marked" --verify-only
    [ "$status" = 1 ]
    one_line
    [[ $output == *"no segment is marked; 'hugeedit --text FILE' marks 1"* ]]
    bigtext fixed $MAX2M -no-pie
    hugeedit --data "$DIR/fixed" >/dev/null
    launch --program "$DIR/fixed@text=hugetlbfs:marked" --verify-only
    echo "$output"
    [ "$status" = 1 ]
    one_line
    [[ $output == *"it would move no text"* ]]
    assert_host
}

@test "a program that is linked with libhugetlbfs: not preloaded, and kept out where it was not asked for" {
    need_root; need_pool; need_hugeedit; need_tmpfs
    bigtext linked $MAX2M -Wl,--no-as-needed -lhugetlbfs || skip "needs libhugetlbfs-dev"
    hugeedit --text "$DIR/linked" >/dev/null
    launch --program "$DIR/linked@text=hugetlbfs:marked" --verify-only --json
    [ "$status" = 0 ]
    [ "$(field '.text_bytes == .by.hugetlb')" = true ]
    [ "$(field '[.environment[] | select(startswith("LD_PRELOAD"))] | length')" = 0 ]
    for mode in none tmpfs; do
        launch --program "$DIR/linked@text=$mode" --verify-only --json
        [ "$status" = 0 ]
        [ "$(field .by.hugetlb)" = 0 ]
        [ "$(field '.environment | index("HUGETLB_ELFMAP=no") != null')" = true ]
    done
    assert_host
}

@test "text=hugetlbfs with a size: 2M works, a size without a pool is refused, nonsense is usage" {
    need_root; need_pool
    bigtext huge $MAX2M
    for mode in hugetlbfs:2M hugetlbfs:R:2M hugetlbfs:R:2048k; do
        launch --program "$DIR/huge@text=$mode" --verify-only --json
        [ "$status" = 0 ]
        [ "$(field '.text_bytes == .by.hugetlb')" = true ]
        [ "$(field '.environment | index("HUGETLB_ELFMAP=R=2048K") != null')" = true ]
    done
    bigtext two $MAX2M -no-pie -Wl,-z,noseparate-code
    launch --program "$DIR/two@text=hugetlbfs:RW:2M" --verify-only --json
    [ "$status" = 0 ]
    [ "$(field '.text_bytes == .by.hugetlb')" = true ]
    launch --program "$DIR/huge@text=hugetlbfs:R:4M" --verify-only
    [ "$status" = 77 ]
    one_line
    [[ $output == *"no pool of 4 MiB pages (it has:"*2M* ]]
    for mode in hugetlbfs:R:3M hugetlbfs:R:2 hugetlbfs:X hugetlbfs:R:RW tmpfs:2M auto:2M none:; do
        launch --program "$DIR/huge@text=$mode" --verify-only
        echo "$mode: $output"
        [ "$status" = 2 ]
        one_line
    done
    assert_host
}

@test "text=hugetlbfs:R:1G takes free pages of its own pool, which is not raised" {
    need_root
    # One segment for all that is read-only, and no other in its GiB.
    bigtext giga -Wl,-z,max-page-size=1073741824 -Wl,-z,noseparate-code -Wl,-z,norelro
    fake_host
    mkdir -p "$DIR/host/sys/kernel/mm/hugepages/hugepages-1048576kB"
    for file in nr_hugepages free_hugepages resv_hugepages; do
        echo 0 >"$DIR/host/sys/kernel/mm/hugepages/hugepages-1048576kB/$file"
    done
    launch --program "$DIR/giga@text=hugetlbfs:R:1G" --verify-only
    [ "$status" = 77 ]
    one_line
    [[ $output == *"it takes 1 pages of 1 GiB, 0 are free"*"reserve them at boot"* ]]
    launch --program "$DIR/giga@text=hugetlbfs:R:2M" --verify-only
    [ "$status" = 77 ]
    [[ $output == *"no pool of 2 MiB pages (it has: 1G)"* ]]
}

# --- remap ---

@test "text=remap: named with the library that is missing; with it, as predicted" {
    bigtext huge $MAX2M
    LAUNCH=$DIR/alone/kiln-launch
    launch --program "$DIR/huge@text=remap" --verify-only
    [ "$status" = 77 ]
    one_line
    [[ $output == *"text=remap: libkiln-remap.so is not in $DIR/alone"* ]]
    [ -e "$BIN/libkiln-remap.so" ] || skip "without libkiln-remap.so nothing more can be seen"
    LAUNCH=$BIN/kiln-launch
    launch --program "$DIR/huge@text=remap" --verify-only --json
    [ "$status" = 0 ]
    [ "$(field .text_huge_bytes)" = "$(predicted "$DIR/huge" remap)" ]
}

# --- auto ---

# auto_took MODE: what text=auto took, that it was verified as predicted, and why not the others
auto_took() {
    echo "$output"
    [ "$status" = 0 ]
    [ "$(field '.conditions[0].seen.took')" = "$1" ]
    [ "$(field '.conditions[0].status')" = verified ]
    [ "$(field '.text_huge_bytes == .conditions[0].seen.predicted_bytes')" = true ]
    [ "$(field '.conditions[0].seen.passed_over | length')" = 4 ]
}
why_not() { field ".conditions[0].seen.passed_over[\"$1\"]"; }

@test "text=auto takes the most text: the pool for an aligned program, the page cache for a padded one" {
    need_root; need_pool; need_folios; need_hugeedit
    LAUNCH=$DIR/alone/kiln-launch
    bigtext huge $MAX2M
    launch --program "$DIR/huge@text=auto" --verify-only --json
    auto_took hugetlbfs:R
    [[ $(why_not pagecache) == "it would put 4096 of 5120 kB on huge pages, hugetlbfs:R 5120 kB" ]]
    [[ $(why_not hugetlbfs:marked) == *"no segment is marked"* ]]
    [[ $(why_not remap) == *"is not in $DIR/alone" ]]
    cp "$DIR/huge" "$DIR/padded"
    "$BIN/kiln-check" --pad "$DIR/padded"
    launch --program "$DIR/padded@text=auto" --verify-only --json
    auto_took pagecache
    [[ $(why_not tmpfs) == *"too, and costs more" ]]
    [[ $(why_not hugetlbfs:R) == *"too, and costs more" ]]
    hugeedit --text "$DIR/huge" >/dev/null
    launch --program "$DIR/huge@text=auto" --verify-only --json
    auto_took hugetlbfs:marked
    [[ $(why_not hugetlbfs:R) == *"too, and costs more" ]]
    assert_host
}

@test "text=auto without a page cache that takes large folios: tmpfs" {
    need_root; need_tmpfs
    LAUNCH=$DIR/alone/kiln-launch
    small_home
    bigtext padded $MAX2M
    "$BIN/kiln-check" --pad "$DIR/padded"
    launch --program "$DIR/padded@text=auto" --verify-only --json
    auto_took tmpfs
    [[ $(why_not pagecache) == *"takes no 2 MiB folio"* ]]
    assert_host
}

@test "text=auto for a user without pool and mount: the page cache" {
    need_root; need_pool; need_folios
    bigtext huge $MAX2M
    as_user "$DIR/alone/kiln-launch" launch --program "$DIR/huge@text=auto" --verify-only --json
    auto_took pagecache
    [[ $(why_not tmpfs) == "only root can mount a tmpfs (CAP_SYS_ADMIN)" ]]
    [[ $(why_not hugetlbfs:R) == *"only root can"* ]]
    assert_host
}

@test "text=auto for root without the right to mount, as in a container: the page cache" {
    need_root; need_pool; need_folios
    bigtext huge $MAX2M
    run setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin "$DIR/alone/kiln-launch" launch \
        --program "$DIR/huge@text=auto" --verify-only --json
    auto_took pagecache
    [[ $(why_not tmpfs) == "only root can mount a tmpfs (CAP_SYS_ADMIN)" ]]
    [[ $(why_not hugetlbfs:R) == "no hugetlbfs mount that uid "*"only root can make one (CAP_SYS_ADMIN)" ]]
    assert_host
}

@test "text=auto goes on to the next best when what it took cannot be prepared" {
    need_root; need_pool; need_folios
    LAUNCH=$DIR/alone/kiln-launch
    bigtext huge $MAX2M
    mkdir -p "$KILN_RUN"
    # As many files in the run directory as a start needs, and none for a mount of its own.
    for inodes in 4 5 6 7 8 9 10; do
        mount -t tmpfs -o size=4m,mode=755,nr_inodes=$inodes run "$KILN_RUN"
        launch --program "$DIR/huge@text=none" --verify-only
        [ "$status" != 0 ] || break
        umount "$KILN_RUN"
    done
    [ "$status" = 0 ]
    launch --program "$DIR/huge@text=hugetlbfs:R" --verify-only
    [ "$status" != 0 ]
    launch --program "$DIR/huge@text=auto" --verify-only --json
    auto_took pagecache
    [[ $(why_not hugetlbfs:R) == *"/hugetlbfs: cannot make the directory: No space left"* ]]
    [ "$(field '.conditions[0].seen | has("page_bytes")')" = false ]
    [ "$(field '.environment | map(select(startswith("HUGETLB"))) | length')" = 0 ]
    assert_host
    small_home
    launch --program "$DIR/huge@text=auto?" --verify-only --json
    [ "$status" = 0 ]
    [[ $(field '.conditions[0].why') == *"no way to huge pages works; hugetlbfs:R: "*"No space left"* ]]
    assert_host
}

@test "text=auto says on the terminal what it took, and why not the others" {
    need_root; need_pool; need_folios
    LAUNCH=$DIR/alone/kiln-launch
    bigtext huge $MAX2M
    launch --program "$DIR/huge@text=auto" --verify-only
    [ "$status" = 0 ]
    [[ $output == *'text=auto verified took="hugetlbfs:R"'* ]]
    [ "$(grep -c '^text=auto passed over ' <<<"$output")" = 4 ]
    [[ $output == *"passed over pagecache: it would put 4096 of 5120 kB"* ]]
}

@test "text=auto when nothing works: the nearest miss in one line; with ? small pages, made sure of" {
    need_root; need_pool
    small_home
    bigtext huge $MAX2M
    as_user "$DIR/alone/kiln-launch" launch --program "$DIR/huge@text=auto" --verify-only
    echo "$output"
    [ "$status" = 77 ]
    one_line
    [[ $output == *"no way to huge pages works; hugetlbfs:R: "*"only root can"* ]]
    as_user "$DIR/alone/kiln-launch" launch --program "$DIR/huge@text=auto?" --verify-only --json
    [ "$status" = 0 ]
    [ "$(field '.conditions[0].status')" = "not had" ]
    [[ $(field '.conditions[0].why') == *"no way to huge pages works"* ]]
    [ "$(field '.conditions[0].seen.took')" = nothing ]
    [ "$(field '.conditions[0].seen.passed_over | length')" = 5 ]
    [ "$(field .text_huge_bytes)" = 0 ]
    [[ $(field '.argv[0]') == "$KILN_HOME"/instances/*/bin/huge ]]
    assert_host
}

# --- Debian's server ---

@test "Debian's mariadbd: small pages are made sure of, and each way but remap is refused as predicted" {
    need_server; need_root; need_pool
    launch "system@text=none" --verify-only --json
    [ "$status" = 0 ]
    [ "$(field .text_huge_bytes)" = 0 ]
    for mode in pagecache tmpfs hugetlbfs:R hugetlbfs:RW hugetlbfs:marked; do
        launch "system@text=$mode" --verify-only
        echo "$output"
        [ "$status" = 1 ]
        one_line
        [[ $output == *"text=$mode cannot work: $(reason /usr/sbin/mariadbd "$mode")"* ]]
    done
    assert_host
}

@test "Debian's mariadbd with an aligned program header: pagecache, tmpfs and auto, as predicted" {
    need_root; need_tmpfs; need_folios
    aligned_server
    server=$DIR/root/sbin/mariadbd
    LAUNCH=$DIR/alone/kiln-launch
    for mode in pagecache tmpfs; do
        launch "$server@text=$mode" --verify-only --json
        echo "$output"
        [ "$status" = 0 ]
        [ "$(field .text_huge_bytes)" = "$(predicted "$server" $mode)" ]
        [ "$(field .stop.how)" = SHUTDOWN ]
    done
    [ "$(field '.by.shmem_pmd == .text_huge_bytes')" = true ]
    launch "$server@text=auto" --verify-only --json
    auto_took pagecache
    assert_host
}

@test "text=tmpfs on a server: kill -9 of kiln, then kiln restore" {
    need_root; need_tmpfs
    aligned_server
    launch_background "$DIR/root/sbin/mariadbd@text=tmpfs"
    kill -KILL $KILN_PID
    wait $KILN_PID || true
    [ "$(kiln_mounts)" = 1 ]
    run "$LAUNCH" restore
    [ "$status" = 0 ]
    assert_host
}

# --- explain ---

@test "--explain says of every condition what it does, needs and costs, and how it is verified" {
    knobs=$("$LAUNCH" launch --help | sed -n '/Conditions:/,/^options/s/^  \([a-z]*\)  *.*/\1/p')
    [ "$(wc -w <<<"$knobs")" -ge 5 ]
    for knob in $knobs; do
        run "$LAUNCH" launch --explain "$knob"
        echo "$output"
        [ "$status" = 0 ]
        [[ ${lines[0]} == "$knob: "* ]]
        values=$(grep -c "^$knob=" <<<"$output")
        [ "$values" -ge 1 ]
        for word in does needs costs verified; do
            [ "$(grep -cE "^  $word +[^ ]" <<<"$output")" = "$values" ]
        done
        [[ $output != *"(null)"* ]]
    done
}

@test "--explain text has the modes one by one" {
    run "$LAUNCH" launch --explain=text
    [ "$status" = 0 ]
    for mode in none pagecache tmpfs hugetlbfs:marked hugetlbfs:R hugetlbfs:RW remap auto; do
        grep -qx "text=$mode" <<<"$output"
    done
    [ "$(grep -c '^text=' <<<"$output")" = 8 ]
}

@test "--explain of what there is not: exit 2, with the conditions there are" {
    run "$LAUNCH" launch --explain nonsense
    [ "$status" = 2 ]
    one_line
    [[ $output == *"there are text, cpus, numa, malloc"* ]]
    run "$LAUNCH" launch
    [ "$status" = 2 ]
    one_line
    [[ $output == *"an argument is missing"* ]]
}
