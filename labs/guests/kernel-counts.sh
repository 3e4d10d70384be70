# Every program is loaded and counts as the host does. No step depends on time, so the guest uses
# the host's clock: counting instructions makes the verifier ten times slower.
export VALIDATOR_FRAMES=3000 VALIDATOR_SKIPS=/tmp/skips RUST_BACKTRACE=0
cd /tmp
tests traffic_live accounts::root_every_frame_let_go
# account and watch count arbitrary frames as the host does.
tests xdp differential::
tests watch differential::
tests responder program::
# Each loads the object anew, which takes the verifier seconds here.
tests engine program::root_stamped program::root_pauses program::root_captured counts::root_flows \
    fast::root_thousands
tests watch counting::root_pause clsact::root_frames merged::root_frames
# Attached by the driver and by the stack.
tests xdp attach::root_frames_on_a_wire_are_counted_in_both_modes
tests responder attach::root_requests_are_dropped_on_the_wire
tests xdp refused:: trace::
tests watch trace::
# Without tcx a killed `watch` leaves its filter, which the next one takes away.
filters() { /tools/tc filter show dev v0 ingress | grep -c watch_tc; }
a_killed_watch_is_cleared() {
    $ip link add v0 type veth peer name v1 && $ip link set v0 up && $ip link set v1 up || return 1
    /tools/validator watch v0 --attach tc > /dev/null 2>&1 & watch=$!
    until [ "$(filters)" != 0 ]; do kill -0 $watch || return 1; usleep 10000; done
    kill -9 $watch; wait $watch
    [ "$(filters)" != 0 ] || return 1
    /tools/validator watch v0 --attach tc --duration 1s || return 1
    [ "$(filters)" = 0 ]
    code=$?
    $ip link del v0
    return $code
}
case $(uname -r) in 6.1.*) step "watch without tcx, killed" a_killed_watch_is_cleared ;; esac
for log in /tmp/validator-verifier-*; do [ -e "$log" ] && tail -n 40 "$log"; done
[ -e /tmp/skips ] && sed 's/^/lab: skipped /' /tmp/skips
echo "lab: done"
