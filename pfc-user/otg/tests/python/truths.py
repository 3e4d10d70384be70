"""What frames do, by snappi: counts, rates, octets, and what pause frames hold.

    python truths.py http http://127.0.0.1:8443 LOCATION LOCATION [PART...]
    VALIDATOR_COUNTERS=http://127.0.0.1:8443/counters \\
        python truths.py grpc 127.0.0.1:40051 LOCATION LOCATION [PART...]

The two ports have to be connected to each other, with an MTU of 9000 or more. Nothing else may send
there, as the kernel does (sysctl net.ipv6.conf.INTERFACE.disable_ipv6=1): what a port received is
compared with what was sent to it. The parts after_stop
and loss run only if they are named: they need `validator dut switch --lossless 3` between the
ports, the latter with `--fault drops=all:100`.
"""

import sys

from truth import octets, pausing, sending, switch
from truth.ports import Ports, failed

CABLE = (
    sending.counts, sending.resumed, sending.rates, sending.shares, sending.bursts,
    octets.octets, octets.pcapng, octets.stacks, octets.shortest,
    octets.payloads, octets.bad_checksums, octets.pause_frames,
    pausing.held_queues, pausing.obeying, pausing.link_pauses, pausing.pause_length,
    pausing.release, pausing.load,
)
SWITCH = (switch.after_stop, switch.loss)


def main(transport, server, first, second, *only):
    known = {part.__name__: part for part in CABLE + SWITCH}
    unknown = [name for name in only if name not in known]
    if unknown:
        sys.exit(f"no part is called {unknown[0]}: {', '.join(known)}")
    ports = Ports(transport, server, first, second)
    for part in [known[name] for name in only] or CABLE:
        part(ports)
    sys.exit(f"{len(failed)} failed" if failed else 0)


main(*sys.argv[1:])
