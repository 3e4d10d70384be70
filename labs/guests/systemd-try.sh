# The services of the package under systemd. No udev is there to name devices to systemd. Polls for
# what sends no event.
set -euo pipefail
units=/usr/lib/systemd/system
sed '/^BindsTo=/d; /^After=sys-/d' "$units/validator-watch@.service" \
    > /etc/systemd/system/validator-watch@.service
mkdir -p /etc/validator /etc/systemd/system/validator-agent.service.d
printf '[Service]\nRestart=no\nStandardError=file:/root/agent.log\n' \
    > /etc/systemd/system/validator-agent.service.d/try.conf
(umask 077; echo token > /etc/validator/agent.token)
systemctl daemon-reload
systemctl start validator-watch@t0
until exec 3<>/dev/tcp/127.0.0.1/9477; do
    systemctl is-active --quiet validator-watch@t0
    sleep 0.1
done 2>/dev/null
printf 'GET /metrics HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n' >&3
grep -q '^validator_frames_total{interface="t0"' <&3
echo "watch serves its counts"
systemctl stop validator-watch@t0
[ "$(systemctl show --property=Result --value validator-watch@t0)" = success ]
echo "watch stops without an error"
# Without an adapter it ends, after it has read its token: at times before systemd sees it started.
systemctl start validator-agent || true
while systemctl is-active --quiet validator-agent; do
    sleep 0.1
done
grep -q 'RDMA device' /root/agent.log
echo "the agent has its token"
# Asks the server, and says whether its answer has a line like the last argument.
ask() {
    exec 4<>/dev/tcp/127.0.0.1/8443
    printf '%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s' \
        "$1" "${#2}" "$2" >&4
    grep -c "$3" <&4 >/dev/null
}
systemctl start validator-otg
until exec 4<>/dev/tcp/127.0.0.1/8443; do
    systemctl is-active --quiet validator-otg
    sleep 0.1
done 2>/dev/null
ask 'POST /config' '{"ports": [{"name": "t0", "location": "t0"}, {"name": "t1", "location": "t1"}],
    "layer1": [{"name": "l", "port_names": ["t0", "t1"], "speed": "speed_1_gbps", "mtu": 1400}],
    "flows": [{"name": "f", "tx_rx": {"choice": "port", "port": {"tx_name": "t0", "rx_name": "t1"}},
        "packet": [{"choice": "ethernet"}, {"choice": "ipv4"}, {"choice": "udp"}],
        "duration": {"choice": "fixed_packets", "fixed_packets": {"packets": 100}},
        "metrics": {"enable": true}}]}' '^HTTP/1.1 200'
ask 'POST /control/state' \
    '{"choice": "traffic", "traffic": {"flow_transmit": {"state": "start"}}}' '^HTTP/1.1 200'
until ask 'POST /monitor/metrics' '{"choice": "flow"}' '"frames_rx":100[,}]'; do
    systemctl is-active --quiet validator-otg
    sleep 0.1
done
echo "the OTG server sends and counts"
[ "$(cat /sys/class/net/t0/mtu)" = 1400 ]
systemctl kill --signal=SIGKILL validator-otg
until [ "$(cat /sys/class/net/t0/mtu)" = 1500 ]; do
    sleep 0.1
done
echo "and is put back after where it was killed"
