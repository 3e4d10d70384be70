"""How much leaves, how fast and when."""

from scapy.layers.inet import UDP

from .ports import LAYER_1, PORT, SPEED, expect, flow, near

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
        ports.start(config)
        found = ports.ended()["f"]
        near(what, found.frames_tx / 2, frames)
        expect(f"{what}: none lost", found.frames_tx == found.frames_rx, found.frames_rx)


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

    config = ports.config()
    made = flow(config, "f", 1024)
    made.rate.pps, made.duration.fixed_seconds.seconds = int(1.6 * LINE), 2
    ports.start(config)
    found = ports.ended()["f"]
    total = found.frames_tx / LINE
    right = 0.98 * 2 <= total <= 2 + BURST
    expect("160 % of the line leave as the line, of one flow", right, f"{total:.4f} s of it")

    config = ports.config()
    for number in range(8):
        made = flow(config, f"f{number}", 1024, queue=number, phb=number)
        made.rate.percentage, made.duration.fixed_seconds.seconds = 20, 2
    ports.start(config)
    sent = [flow.frames_tx / 2 for flow in ports.ended().values()]
    # Each has its two seconds from its own first frame, so that all take a little longer.
    total = sum(sent) / LINE
    right = 0.98 <= total <= 1.01
    expect("160 % of the line leave as the line, of eight flows", right, f"{total:.4f} of it")
    for number, frames in enumerate(sent):
        near(f"flow {number} has an eighth of the line", frames, LINE / 8, 0.05)


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
