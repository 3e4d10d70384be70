"""How much leaves, how fast and when."""

from scapy.layers.inet import UDP

from .ports import LAYER_1, PORT, SPEED, expect, flow, near, until

LINE = SPEED / 8 / (1024 + LAYER_1)
# A port that was late may send a millisecond of the line at once.
BURST = 0.001


def counts(ports):
    for size in (64, 65, 128, 512, 1024, 1518, 9000):
        config = ports.config()
        made = flow(config, "f", size)
        made.duration.fixed_packets.packets, made.rate.pps = 1000, 5000
        ports.start(config)
        found = ports.ended()["f"]
        told = (found.frames_tx, found.frames_rx, found.bytes_tx, found.bytes_rx)
        right = told == (1000, 1000, 1000 * size, 1000 * size)
        expect(f"1000 frames of {size} octets", right, told)
        ports.exact(f"1000 frames of {size} octets")


def resumed(ports):
    """A flow that has ended goes on counting when it is resumed; one that never began, begins."""
    config = ports.config()
    for name in ("ended", "never begun"):
        made = flow(config, name, 128)
        made.duration.fixed_packets.packets, made.rate.pps = 100, 1000
    ports.api.set_config(config)
    ports.before = ports.of_ports()
    ports.order("start", "ended")
    ports.ended()
    for name, frames in (("ended", 200), ("never begun", 100)):
        ports.order("resume", name)
        found = ports.ended()[name]
        told = (found.frames_tx, found.frames_rx)
        expect(f"a flow that has {name}, resumed", told == (frames, frames), told)
    ports.exact("flows that are resumed")


def rates(ports):
    size = 1024
    for what, unit, value, frames in (
        ("2000 frames/s", "pps", 2000, 2000),
        ("10 % of layer 1", "percentage", 10, LINE / 10),
        ("50 Mbit/s of layer 2", "mbps", 50, 50e6 / 8 / size),
    ):
        config = ports.config()
        made = flow(config, "f", size)
        setattr(made.rate, unit, value)
        made.duration.fixed_seconds.seconds = 2
        times = ports.arrivals(config)
        found = ports.metrics()["f"]
        near(what, found.frames_tx / 2, frames)
        # The sender's two seconds are its own; the capture has the receiver's.
        took = (times[-1] - times[0]) / 1e9
        near(f"{what} by times of arrival", (len(times) - 1) / took, frames)
        expect(f"{what}: all are captured", len(times) == found.frames_tx, len(times))
        ports.exact(what)


def shares(ports):
    """Eight flows, within the line and beyond it."""
    config = ports.config()
    percents = [45] + [6] * 7
    for number, percent in enumerate(percents):
        made = flow(config, f"f{number}", 1024, queue=number, phb=number)
        made.rate.percentage, made.duration.fixed_seconds.seconds = percent, 2
    ports.start(config)
    found = ports.ended()
    for number, percent in enumerate(percents):
        sent = found[f"f{number}"].frames_tx / 2
        near(f"flow {number} has its {percent} % beside seven others", sent, LINE * percent / 100)
    ports.exact("45 % and seven times 6 %")

    config = ports.config()
    made = flow(config, "f", 1024)
    made.rate.pps, made.duration.fixed_seconds.seconds = int(1.6 * LINE), 2
    ports.start(config)
    found = ports.ended()["f"]
    total = found.frames_tx / LINE
    right = 0.98 * 2 <= total <= 2 + BURST
    expect("160 % of the line leave as the line, of one flow", right, f"{total:.4f} s of it")
    ports.exact("160 % of the line, of one flow")

    config = ports.config()
    for number in range(8):
        made = flow(config, f"f{number}", 1024, queue=number, phb=number)
        made.rate.percentage = 20
    ports.start(config)
    # Their starts lie apart: what counts is the time in which all of them send.
    until("all flows send", 5, lambda: all(
        flow.frames_rx > 0 for flow in ports.metrics().values()))
    total, each = ports.measured(2)
    ports.order("stop")
    ports.ended()
    # Never more than the line; less where the thread has to wait for a CPU, of all flows alike.
    right = 0.98 <= total / LINE <= 1.001
    what = "160 % of the line leave as the line, of eight flows"
    expect(what, right, f"{total / LINE:.4f} of it")
    for number, frames in enumerate(each):
        near(f"flow {number} has an eighth of it", frames, total / 8, 0.001)
    ports.exact(what)


def bursts(ports):
    """Five bursts of ten frames, 100 ms apart, by their times of arrival."""
    config = ports.config()
    made = flow(config, "f", 128)
    made.rate.pps = 10_000
    burst = made.duration.burst
    burst.bursts, burst.packets, burst.inter_burst_gap.microseconds = 5, 10, 100_000
    frames = ports.captured(config)
    times = [float(frame.time) for frame in frames if UDP in frame and frame[UDP].dport == PORT]
    gaps = [later - earlier for earlier, later in zip(times, times[1:])]
    between = [place for place, gap in enumerate(gaps, 1) if gap > 0.05]
    expect("bursts of ten frames", (len(times), between) == (50, [10, 20, 30, 40]), between)
    # The gap is what lies between frames; a thread that wakes up late makes it longer.
    right = all(0.0999 <= gaps[place - 1] < 0.105 for place in between)
    expect("gaps of 100 ms between bursts", right, [gaps[place - 1] for place in between])
