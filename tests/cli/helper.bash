# What the tests of several commands share.

# need TOOL...: skips the test when one is not installed
need() {
    local tool
    for tool; do
        command -v "$tool" >/dev/null || skip "no $tool on this host"
    done
}
