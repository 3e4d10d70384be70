"""What `otgen run` does with a file of `otgen create flow`, by snappi's reader of YAML.

    python otgen.py http http://127.0.0.1:8443 LOCATION LOCATION

otgen itself is no package. Its pipe is YAML between its stages, and JSON over HTTP to the server:
set_config, protocols started, flows started, and metrics every half second until all have stopped.
"""

import sys
import time

import snappi

# In the form that otgen writes: every choice is named, and some fields that say nothing new are
# there. The size is absent unless it is asked for, which means 64 octets.
FILE = """
flows:
- duration:
    choice: fixed_packets
    fixed_packets:
      gap: 12
      packets: 500
  metrics:
    enable: true
    loss: false
    timestamps: false
  name: web
  packet:
  - choice: ethernet
    ethernet:
      dst: {choice: value, value: 02:00:00:00:00:02}
      src: {choice: value, value: 02:00:00:00:00:01}
  - choice: ipv4
    ipv4:
      dst: {choice: value, value: 198.51.100.2}
      src: {choice: value, value: 198.51.100.1}
  - choice: tcp
    tcp:
      dst_port: {choice: value, value: 80}
      src_port:
        choice: increment
        increment: {count: 30000, start: 2048, step: 3}
  rate: {choice: pps, pps: 500}
SIZE  tx_rx:
    choice: port
    port:
      rx_names: [p2]
      tx_name: p1
ports:
- {location: FIRST, name: p1}
- {location: SECOND, name: p2}
"""


def run(api, text):
    """As `otgen run --metrics flow`: the last metrics."""
    config = snappi.Config()
    config.deserialize(text)
    api.set_config(config)
    control = api.control_state()
    control.protocol.all.state = "start"
    api.set_control_state(control)
    control = api.control_state()
    control.traffic.flow_transmit.state = "start"
    api.set_control_state(control)
    request = api.metrics_request()
    request.flow.flow_names = []
    ended = time.monotonic() + 30
    while True:
        found = api.get_metrics(request).flow_metrics
        print([(flow.name, flow.transmit, flow.frames_tx, flow.frames_rx) for flow in found])
        if all(flow.transmit == "stopped" for flow in found):
            break
        if time.monotonic() > ended:
            sys.exit("the flow of one second has not ended within 30 s")
        time.sleep(0.5)
    control.traffic.flow_transmit.state = "stop"
    api.set_control_state(control)
    return api.get_metrics(request).flow_metrics


def main(transport, server, first, second):
    api = snappi.api(server, transport="grpc" if transport.startswith("grpc") else "http")
    api.enable_grpc_streaming = transport == "grpc-pieces"
    api.request_timeout = 60
    text = FILE.replace("FIRST", first).replace("SECOND", second)
    [flow] = run(api, text.replace("SIZE", ""))
    found = flow.frames_tx, flow.frames_rx, flow.bytes_rx
    if found != (500, 500, 500 * 64):
        sys.exit(f"expected 500 frames of 64 octets sent and received, found {found}")
    # TCP leaves too little of 64 octets for the time in a stamp.
    try:
        text = text.replace("    enable: true\n", "    enable: true\n    latency: {enable: true}\n")
        run(api, text.replace("SIZE", "  size: {choice: fixed, fixed: 64}\n"))
    except Exception as error:
        if "must be 76 to" not in " ".join(error.args[0].errors):
            raise
    else:
        sys.exit("expected latency in 64 octets of TCP to be refused")
    print("all as expected")


main(*sys.argv[1:])
