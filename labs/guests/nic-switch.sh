#!/bin/sh
# Starts the simulated switch with the lossless priorities of the repetition, in place of the one
# that may be there.
if [ -e "/proc/$(cat /tmp/switch.pid 2>/dev/null)/exe" ]; then
    kill "$(cat /tmp/switch.pid)"
    while [ -e "/proc/$(cat /tmp/switch.pid)/exe" ]; do usleep 10000; done
fi
setsid /tools/validator dut switch --port d0 --port d1 --line-rate "$RATE" --trust "$TRUST" \
    --lossless "$VALIDATOR_LOSSLESS" > /tmp/switch 2>&1 < /dev/null &
echo $! > /tmp/switch.pid
until grep -q ready /tmp/switch; do
    kill -0 $! 2>/dev/null || { cat /tmp/switch >&2; exit 1; }
    usleep 10000
done
