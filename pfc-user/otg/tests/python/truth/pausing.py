"""What pause frames hold, and for how long."""

import time

from .octets import of_flow
from .ports import LAYER_1, SPEED, expect, flow, near, pause, pauses, pfc, until

LONGEST = 65535
SAME = {of_class: of_class for of_class in range(8)}
REVERSED = {of_class: 7 - of_class for of_class in range(8)}
SWAPPED = SAME | {3: 4, 4: 3}
ALL_TO_1 = {of_class: 1 for of_class in range(8)}
MOVED = SAME | {3: 6}


def held(ports, what, queues, headers, expected):
    """A storm against eight flows, each from a queue of its own: which of them it holds."""
    config = ports.config(queues)
    for queue in range(8):
        made = flow(config, f"q{queue}", 512, queue)
        made.rate.pps, made.duration.fixed_seconds.seconds = 500, 1
        made.duration.fixed_seconds.delay.nanoseconds = 3e8
    # It goes on long after the flows: one that waited for the end of its pause would show.
    storm = headers(pauses(config))
    storm.duration.fixed_seconds.seconds, storm.metrics.enable = 10, True
    ports.start(config)
    found = until(f"{what}: flows end", 20, lambda: ports.stopped("q"))
    sent = [found[f"q{queue}"].frames_tx for queue in range(8)]
    # The storm is there before the flows: a queue is held from its first frame to its last.
    right = all(frames == 0 if queue in expected else 490 < frames <= 501
                for queue, frames in enumerate(sent))
    expect(f"{what}: queues {sorted(expected)} are held", right, sent)
    storming = found["storm"].transmit
    expect(f"{what}: flows end in wall time", storming == "started", f"the storm {storming}")


def of_pfc(vector, times):
    return lambda made: pfc(made, vector, times)


def of_pause(made):
    return pause(made, LONGEST)


# A storm, what the port obeys, and the queues that are held.
OF_PFC = (
    ("class 3 of the same queues", SAME, of_pfc(1 << 3, {3: LONGEST}), {3}),
    ("classes 3 and 4", SAME, of_pfc(3 << 3, {3: LONGEST, 4: LONGEST}), {3, 4}),
    ("class 3 of reversed queues", REVERSED, of_pfc(1 << 3, {3: LONGEST}), {4}),
    ("class 3 swapped with 4", SWAPPED, of_pfc(1 << 3, {3: LONGEST}), {4}),
    ("class 4 swapped with 3", SWAPPED, of_pfc(1 << 4, {4: LONGEST}), {3}),
    ("all classes to queue 1", ALL_TO_1, of_pfc(1 << 5, {5: LONGEST}), {1}),
    ("class 3 at another queue", MOVED, of_pfc(1 << 3, {3: LONGEST}), {6}),
    ("time 0", SAME, of_pfc(1 << 3, {3: 0}), set()),
    ("a time without its bit", SAME, of_pfc(0, {3: LONGEST}), set()),
    ("no flow control", None, of_pfc(1 << 3, {3: LONGEST}), set()),
    ("PFC at a port of 802.3x", "pause", of_pfc(1 << 3, {3: LONGEST}), set()),
)
OF_PAUSE = (
    ("PAUSE at a port of 802.3x", "pause", of_pause, set(range(8))),
    ("PAUSE at a port of PFC", SAME, of_pause, set()),
    ("PAUSE without flow control", None, of_pause, set()),
)


def obeying(ports):
    for case in OF_PFC:
        held(ports, *case)


def link_pauses(ports):
    for case in OF_PAUSE:
        held(ports, *case)


def held_queues(ports):
    """Which queues' senders find themselves held, however late their thread or the storm's is."""
    for what, queues, headers, expected in OF_PFC + OF_PAUSE:
        config = ports.config(queues)
        for queue in range(8):
            flow(config, f"q{queue}", 512, queue).rate.pps = 500
        headers(pauses(config)).metrics.enable = True
        ports.api.set_config(config)
        before = ports.counters()["tx"]["holds"]
        ports.order("start")

        def found():
            holds = ports.counters()["tx"]["holds"]
            return {queue for queue in range(8) if holds[queue] > before[queue]}

        until(f"{what}: queues {sorted(expected)} are held", 10, lambda: expected <= found())
        # What holds no queue has had its chance.
        until(f"{what}: a storm", 10, lambda: ports.metrics()["storm"].frames_tx >= 10)
        ports.order("stop", "storm")
        stopped = until(f"{what}: the storm stops", 10, lambda: ports.stopped("storm"))
        # The last pause would go on in the next configuration. The second time that the counts
        # have grown, they hold frames that left after the storm's end.
        for _ in range(2):
            stopped = until(f"{what}: all queues send then", 10, lambda: ports.sent_since(stopped))
        expect(f"{what}: queues {sorted(expected)} are held", found() == expected, found())
        ports.order("stop")


def slow(ports):
    """At 10 Mbit/s, where one frame pauses for seconds: a flow from queue 3, and one XOFF."""
    config = ports.config(SAME, "speed_10_fd_mbps")
    made = flow(config, "data", 64, queue=3)
    made.rate.pps = 1000
    made.duration.fixed_packets.packets = 1000
    xoff = pfc(pauses(config, "xoff"), 1 << 3, {3: LONGEST})
    xoff.duration.fixed_packets.packets = 1
    xoff.duration.fixed_packets.delay.nanoseconds = 2e8
    return config


def stood(ports, config):
    """For how long nothing came, and for how long the queue was held."""
    ports.api.set_config(config)
    before = ports.counters()["tx"]["held_ns"][3]
    frames = of_flow(ports.captured(config))
    expect("all frames come in the end", len(frames) == 1000, len(frames))
    times = [float(frame.time) for frame in frames]
    longest = max(later - earlier for earlier, later in zip(times, times[1:]))
    return longest, ports.counters()["tx"]["held_ns"][3] - before


def pause_length(ports):
    pause_ns = LONGEST * 512 * 1_000_000_000 // 10_000_000
    nothing, held_ns = stood(ports, slow(ports))
    right = pause_ns - 1_000_000 <= held_ns <= pause_ns
    expect("one XOFF holds for its 65535 quanta", right, f"{held_ns}, expected {pause_ns} ns")
    # A frame each millisecond before and after; the thread may wake up late.
    right = -0.002 <= nothing - pause_ns / 1e9 <= 0.02
    expect("nothing arrives for as long", right, nothing)


def release(ports):
    config = slow(ports)
    xon = pfc(pauses(config, "xon"), 1 << 3, {3: 0})
    xon.duration.fixed_packets.packets = 1
    xon.duration.fixed_packets.delay.nanoseconds = 7e8
    config.captures[0].port_names = ["rx", "tx"]
    nothing, held_ns = stood(ports, config)
    # Each leaves when its thread wakes up. How far apart they came, the capture has.
    xoff, xon = [int(frame.time * 10**9) for frame in ports.frames("tx") if frame.type == 0x8808]
    right = abs(xon - xoff - 500_000_000) <= 20_000_000
    expect("time 0 comes half a second later", right, xon - xoff)
    right = abs(held_ns - (xon - xoff)) <= 1_000_000
    expect("time 0 ends the pause of an XOFF", right, f"{held_ns}, expected {xon - xoff}")
    expect("frames go on at once then", abs(nothing - held_ns / 1e9) <= 0.02, nothing)


def load(ports):
    """87 % of the line for ten seconds in a storm against another queue, with somebody asking."""
    config = ports.config(SAME)
    percents = [45] + [6] * 7
    for number, percent in enumerate(percents):
        made = flow(config, f"f{number}", 1024, queue=[0, 1, 2, 4, 5, 6, 7, 0][number], phb=number)
        made.rate.percentage = percent
    paused = flow(config, "paused", 1024, queue=3, phb=3)
    paused.rate.percentage = 10
    for made in config.flows:
        made.duration.fixed_seconds.seconds = 10
        made.duration.fixed_seconds.delay.nanoseconds = 3e8
    storm = pfc(pauses(config), 1 << 3, {3: LONGEST})
    storm.duration.fixed_seconds.seconds, storm.metrics.enable = 11, True
    ports.start(config)
    for _ in range(10):
        time.sleep(1)
        found = ports.metrics()
        ahead = [name for name, each in found.items() if each.frames_rx > each.frames_tx]
        if ahead:
            expect("no more arrives than has left", False, ahead)
    found = ports.ended()
    line = SPEED / 8 / (1024 + LAYER_1)
    for number, percent in enumerate(percents):
        told = found[f"f{number}"]
        what = f"load: {percent} % of flow {number}"
        near(what, told.frames_tx / 10, line * percent / 100)
        exact = (told.frames_tx, told.bytes_tx) == (told.frames_rx, told.bytes_rx)
        expect(f"{what}: every frame arrives", exact and told.loss == 0, told)
    expect("load: the storm holds its queue", found["paused"].frames_tx == 0, found["paused"])
    ports.exact("load")
