"""Through a switch that buffers, pauses and drops."""

from .pausing import LONGEST, SAME
from .ports import expect, flow, pauses, pfc, since, until


def after_stop(ports):
    """What the switch holds is counted when it comes, though the flow was stopped long before."""
    config = ports.config(SAME)
    data = flow(config, "data", 1024, queue=3, phb=3)
    # Slow enough that the headroom holds what comes while the switch does not run for a while.
    data.rate.percentage, data.metrics.latency.enable = 1, True
    pfc(pauses(config), 1 << 3, {3: LONGEST}).metrics.enable = True
    ports.start(config)
    # The switch's own XOFF stops the flow once its buffer is full.
    until("the switch pauses the flow", 10, lambda: ports.counters()["tx"]["pfc_rx"][3] > 0)
    ports.order("stop", "data")
    stopped = until("the flow is stopped", 5, lambda: (
        ports.metrics()["data"].transmit == "stopped" and ports.metrics()["data"]))
    expect("the switch holds frames", stopped.frames_rx < stopped.frames_tx, stopped)
    ports.order("stop", "storm")
    until("all that was held arrives", 5, lambda: (
        ports.metrics()["data"].frames_rx == stopped.frames_tx))
    after = ports.metrics()
    expect("after the stop nothing more leaves", (
        after["data"].frames_tx == stopped.frames_tx), after["data"])
    expect("no loss", after["data"].loss == 0, after["data"].loss)
    # They carry no stamp, by which flows are counted: the port knows them by their source.
    sent, passed = after["storm"].frames_tx, ports.own_pauses("tx")
    expect("no pause frame passes the switch", sent > 0 and not any(passed), (sent, passed))
    came = since(ports.before["rx"], ports.of_ports()["rx"], "rx")
    wanted = [stopped.frames_tx, stopped.bytes_tx]
    expect("the port received as much", came == wanted, (came, wanted))
    # The buffer of 512 KiB takes 0.4 s to fill at a hundredth of a gigabit per second.
    latency = after["data"].latency
    least, mean, most = latency.minimum_ns, latency.average_ns, latency.maximum_ns
    expect("latency of what was held", 0 < least <= mean <= most and most > 400e6, latency)


def loss(ports):
    """The switch drops one frame in a hundred."""
    config = ports.config()
    made = flow(config, "data", 256)
    made.duration.fixed_packets.packets, made.rate.pps = 10_000, 10_000
    ports.start(config)
    found = ports.ended(lost=100)["data"]
    lost = found.frames_tx - found.frames_rx
    expect("a hundred of 10000 frames are lost", (found.frames_tx, lost) == (10_000, 100), found)
    came = since(ports.before["rx"], ports.of_ports()["rx"], "rx")[0]
    expect("the port received the others", came == found.frames_rx, (came, found.frames_rx))
    faults = ports.faults()
    expect("nothing came twice, late or changed", not faults, faults)
    percent = 100 * lost / found.frames_tx
    expect("loss in percent", abs(found.loss - percent) < 1e-4, f"{found.loss}, lost {lost}")
