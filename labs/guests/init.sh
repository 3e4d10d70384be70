#!/bin/busybox sh
# The first process of a guest. Busybox's shell prefers its own applets to programs in PATH, so
# iproute2's programs are called by their full path.
/bin/busybox --install -s /bin
export PATH=/tools:/bin LD_LIBRARY_PATH=/lib HOME=/root
fail() { echo "lab: failed: $*"; poweroff -f; }
mount -t proc proc /proc && mount -t sysfs sysfs /sys && mount -t devtmpfs devtmpfs /dev ||
    fail "mount"
mount -t tmpfs tmpfs /run || fail "mount tmpfs"
mount -t bpf bpf /sys/fs/bpf || fail "mount bpf"
while read -r module; do insmod "/modules/$module" || fail "insmod $module"; done < /modules/order
ip=/tools/ip
# `step NAME COMMAND ...` runs a command that must return 0, `ends CODE NAME COMMAND ...` one that
# must return that code. `tests MODULE FILTER ...` runs the tests that match each filter, which is
# a step of its own.
ends() { expected=$1 name=$2; shift 2; echo "lab: begins $name"; "$@" 2>&1; found=$?
    echo "lab: ended $found $expected $(cut -d' ' -f1 /proc/uptime) $name"; }
step() { ends 0 "$@"; }
tests() { module=$1; shift
    for filter in "$@"; do
        step "$module $filter" /tools/tests $module::$filter --test-threads=1
    done; }
$ip link set lo up
. /script
poweroff -f
