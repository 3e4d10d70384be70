# Each command names what the kernel lacks: in one line, or as one item of a table.
cd /tmp
refuses() {
    /tools/validator "$@" > /tmp/said 2>&1 && return 1
    cat /tmp/said
    [ "$(grep -c "this kernel lacks .*Linux 6\.1" /tmp/said)" = 1 ]
}
sim="--testbed /configs/testbeds/sim.toml"
step "watch names what is missing" refuses watch lo
step "run names what is missing" refuses run $sim --plan /configs/plans/kernel.toml
checks() {
    /tools/validator check $sim > /tmp/said 2>&1 && return 1
    cat /tmp/said
    tr -s ' \n' ' ' < /tmp/said |
        grep -q "problem kernel Linux 5\.10.*expected: Linux 6\.1 or newer"
}
step "check names the kernel" checks
echo "lab: done"
