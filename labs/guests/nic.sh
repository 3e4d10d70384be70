# Tester and simulated switch, with pairs of network cards between them. Interfaces are numbered in
# the order of their modules, so they are renamed by their address.
cd /tmp
echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6
echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6
for pair in 00:00=t0 00:01=t1 01:00=d0 01:01=d1; do
    for interface in /sys/class/net/*; do
        if [ "$(cat "$interface/address")" = "52:54:00:00:${pair%=*}" ]; then
            $ip link set "${interface##*/}" name "${pair#*=}" || fail "rename ${interface##*/}"
        fi
    done
done
for port in t0 t1 d0 d1; do $ip link set "$port" up || fail "no port $port"; done
awaited() { until [ "$(cat "/sys/class/net/$1/carrier")" = 1 ]; do usleep 10000; done; }
for port in t0 t1 d0 d1; do awaited $port; done
checks() {
    /tools/validator check --testbed /testbed.toml "$@" > /tmp/check; code=$?
    cat /tmp/check
    return $code
}
# The lines of a table may be wrapped.
said() { tr -s ' \n' ' ' < /tmp/check | grep -o "$1"; }
# First a cable in place of the switch: the self-test's PFC frames arrive.
for pair in d0=d1 d1=d0; do
    $ip link set "${pair%=*}" promisc on
    /tools/tc qdisc add dev "${pair%=*}" clsact || fail "clsact"
    /tools/tc filter add dev "${pair%=*}" ingress matchall \
        action mirred egress redirect dev "${pair#*=}" || fail "mirred"
done
if [ -n "$PAUSE" ]; then
    # As the first check advises: the port itself neither obeys nor sends pause frames.
    ends 1 "check on $DRIVER names its pause settings" checks --passive
    grep -q "802.3x pause *rx on" /tmp/check || fail "expected pause settings to be named"
    for port in t0 t1; do
        /tools/ethtool -A $port autoneg off rx off tx off || fail "ethtool -A $port"
    done
fi
if [ "$RATE" = 1G ]; then
    # The switch drains at 1 Gbit/s, which the guest is too slow for: the ring has to hold it. QEMU
    # does not count what e1000e and igb have no room for, and a good switch would fail; vmxnet3
    # counts it, and the run would be inconclusive.
    for port in t0 t1; do
        /tools/ethtool -G $port rx 4096 || fail "ethtool -G $port"
    done
fi
step "check --fix on $DRIVER, cabled" checks --fix
mode=$(said 'was attached in mode [a-z]*' | sed 's/.* //' | tr '\n' ' ')
step "both programs were attached in mode $MODE" [ "$mode" = "$MODE $MODE " ]
# As that check advises, so that it is known without the cable.
step "check on $DRIVER says how to write down what was seen" said 'facts.pfc_visible = true'
echo 'pfc_visible = true' >> /testbed.toml
for port in d0 d1; do /tools/tc qdisc del dev $port clsact; $ip link set $port promisc off; done
export RATE TRUST=dscp
VALIDATOR_LOSSLESS=3,4 /switch || fail "the simulated switch"
step "check on $DRIVER, with the switch" checks
queues=$(sed -n 's/^  [a-z]* *queues *//p' /tmp/check | head -n 1)
watches() {
    /tools/validator watch t1 --duration 4s --json > /tmp/watch & watch=$!
    awaited t1
    until grep -q '"watching"' /tmp/watch; do kill -0 $watch || return 1; usleep 10000; done
    awaited t1
    $ip address add 192.0.2.1/24 dev t0
    /bin/arping -q -c 3 -w 2 -I t0 192.0.2.9
    wait $watch || return 1
    $ip address del 192.0.2.1/24 dev t0
    tail -n 1 /tmp/watch
    tail -n 1 /tmp/watch | grep -q '"frames":3[,}]'
}
runs() {
    plan=$1; shift
    /tools/validator run --testbed /testbed.toml --plan "/configs/plans/$plan.toml" "$@" \
        > /tmp/run 2>&1; code=$?
    cat /tmp/run
    return $code
}
step "watch on $DRIVER" watches
step "run --plan $PLAN on $DRIVER" runs $PLAN
# The switch is an external DUT, so that the tester does not read its account. Frames that it lost
# itself, and its stalls, explain a verdict.
kill "$(cat /tmp/switch.pid)"
while [ -e "/proc/$(cat /tmp/switch.pid)/exe" ]; do usleep 10000; done
echo "lab: the switch's own account: $(tail -n 1 /tmp/switch)"
verdict=$(sed 's/\x1b\[[0-9;]*m//g' /tmp/run | sed -n 's/^verdict: \([a-z]*\).*/\1/p')
if [ -n "$RESETS" ]; then
    # Tags stay in the frames, for which the driver takes its link down.
    TRUST=pcp
    step "run --plan nic-quick on $DRIVER, by PCP" runs nic-quick --set 'testbed.qos.trust="pcp"'
fi
# Virtio has no speed of its own.
case $(cat /sys/class/net/t0/speed) in
    1000) other=speed_10_gbps told="to be 10 Gbit/s, and the link of t0 has 1 Gbit/s" ;;
    10000) other=speed_1_gbps told="to be 1 Gbit/s, and the link of t0 has 10 Gbit/s" ;;
    *) other= ;;
esac
serves() {
    /tools/validator otg --grpc 127.0.0.1:0 --http 127.0.0.1:0 > /tmp/otg & otg=$!
    until grep -qs ready /tmp/otg; do kill -0 $otg || return 1; usleep 10000; done
    wget -q -O /tmp/reply "$(sed 's/.*HTTP \(http:[^ ]*\).*/\1/' /tmp/otg)/config" --post-data \
        '{"ports": [{"name": "p", "location": "t0"}], "layer1": [{"name": "l", "port_names": ["p"],
        "speed": "'$other'"}]}' || return 1
    kill $otg && wait $otg || return 1
    echo "$(cat /tmp/reply)"
    grep -q "$told" /tmp/reply
}
[ -z "$other" ] || step "otg warns of a speed that is not that of $DRIVER" serves
echo "lab: row $(uname -r) | ${mode%% *} | ${queues:-?} | ${verdict:-none}"
echo "lab: done"
