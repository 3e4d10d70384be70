# Runs the agent on rxe, over a link whose other end is the host's tap.
. /settings
$ip link set eth0 mtu "$MTU" up || fail "no eth0"
for pair in $PAIRS; do
    own=${pair%,*} prefix=${own#*/} peer=${pair#*,}
    case $own in *:*) nodad=nodad ;; *) nodad= ;; esac
    $ip address add "$own" dev eth0 $nodad || fail "address $own"
    $ip neighbour replace "$peer" lladdr "$PEER_MAC" dev eth0 nud permanent ||
        fail "neighbour $peer"
done
/tools/rdma link add rxe0 type rxe netdev eth0 || fail "rdma link add"
export VALIDATOR_TOKEN="$TOKEN"
/tools/validator agent --listen "0.0.0.0:$PORT" --device rxe0
fail "the agent ended with $?"
