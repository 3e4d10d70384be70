"""A flow, and a storm of PFC frames against it: its rate over time.

    python3 storm.py http http://127.0.0.1:8443 p1 p2 [storm.svg]
"""

import sys
import time

import snappi

transport, server, first, second, *picture = sys.argv[1:]
api = snappi.api(server, transport="grpc" if transport.startswith("grpc") else "http")
config = api.config()
config.ports.port(name="tx", location=first).port(name="rx", location=second)

# The ports are links of 1 Gbit/s; a PFC frame of class i holds queue i of a port.
layer1 = config.layer1.layer1(name="layer1", port_names=["tx", "rx"])[-1]
layer1.speed = "speed_1_gbps"
layer1.flow_control.ieee_802_1qbb.pfc_delay = 0

# Half of the line, from queue 3.
flow = config.flows.flow(name="data")[-1]
flow.tx_rx.port.tx_name, flow.tx_rx.port.rx_names = "tx", ["rx"]
ethernet, ip, udp = flow.packet.ethernet().ipv4().udp()
ethernet.src.value, ethernet.dst.value = "02:00:00:00:00:01", "02:00:00:00:00:02"
ethernet.pfc_queue.value = 3
ip.src.value, ip.dst.value = "192.0.2.1", "192.0.2.2"
ip.priority.dscp.phb.value = 3
udp.src_port.value, udp.dst_port.value = 5000, 5001
flow.size.fixed, flow.rate.percentage = 1024, 50
flow.metrics.enable = flow.metrics.loss = True

# From second 3 to second 6, class 3 is paused for 33.5 ms (65535 quanta) every 17 ms.
storm = config.flows.flow(name="storm")[-1]
storm.tx_rx.port.tx_name, storm.tx_rx.port.rx_names = "rx", ["tx"]
pause = storm.packet.pfcpause()[-1]
pause.src.value = "02:00:00:00:00:02"
pause.class_enable_vector.value, pause.pause_class_3.value = 1 << 3, 65535
storm.size.fixed, storm.rate.pps = 64, 59
storm.duration.fixed_seconds.seconds = 3
storm.duration.fixed_seconds.delay.nanoseconds = 3e9

api.set_config(config)
control = api.control_state()
control.traffic.flow_transmit.state = "start"
api.set_control_state(control)

request = api.metrics_request()
request.flow.flow_names = ["data"]
begin = last = time.monotonic()
frames, rates = 0, []
while last - begin < 9:
    time.sleep(0.25)
    now = time.monotonic()
    sent = api.get_metrics(request).flow_metrics[0].frames_tx
    # With preamble and gap.
    rate = (sent - frames) * (1024 + 20) * 8 / (now - last) / 1e6
    print(f"{now - begin:5.2f} s {rate:7.1f} Mbit/s {'#' * round(rate / 10)}")
    rates.append((now - begin, rate))
    frames, last = sent, now

control.traffic.flow_transmit.state = "stop"
api.set_control_state(control)
time.sleep(0.5)
[data] = api.get_metrics(request).flow_metrics
print(f"{data.frames_tx} frames sent, {data.frames_rx} received, {data.loss} % lost")


def plot(file):
    """Draws the rates as a picture: 72 points a second, 0.3 a Mbit/s."""
    def x(at):
        return f"{50 + 72 * at:.1f}"

    def y(rate):
        return f"{230 - 0.3 * rate:.1f}"

    stairs = "".join(f"V{y(rate)}H{x(at)}" for at, rate in rates)
    labels = [(x(at), 250, f"{at} s") for at in range(10)]
    labels += [(26, y(rate - 10), rate) for rate in (0, 250, 500)]
    labels += [(x(4.5), 24, "storm against class 3"), (x(0.9), 24, "Mbit/s, layer 1")]
    texts = "".join(f'<text x="{x}" y="{y}">{text}</text>' for x, y, text in labels)
    file.write(f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 260"
font-family="sans-serif" font-size="12" text-anchor="middle"><rect width="720" height="260"
fill="#fff"/><rect x="{x(3)}" y="10" width="216" height="220" fill="#fde4d0"/>{texts}
<path d="M{x(0)} 10V230H{x(9)}" fill="none" stroke="#999"/>
<path d="M{x(0)} {y(0)}{stairs}" fill="none" stroke="#1f5fa8" stroke-width="2"/></svg>
""")


def mean(start, end):
    found = [rate for at, rate in rates if start <= at <= end]
    return sum(found) / len(found)


if picture:
    with open(picture[0], "w", encoding="ascii") as out:
        plot(out)
before, held, after = mean(0.5, 2.7), mean(3.8, 5.7), mean(6.8, 9)
print(f"before {before:.0f}, in the storm {held:.0f}, after {after:.0f} Mbit/s")
if data.loss != 0 or not (abs(before - 500) < 10 and held < 5 and abs(after - 500) < 10):
    sys.exit("expected 500, 0 and 500 Mbit/s, and no loss")
