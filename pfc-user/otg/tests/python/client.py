"""snappi, unmodified, against a server: each call once, over the transport that is asked for.

    python client.py http http://127.0.0.1:8443 LOCATION LOCATION
    python client.py grpc 127.0.0.1:40051 LOCATION LOCATION

The server may have any engine: nothing here asks for frames that arrive.
"""

import sys
import time

import snappi


def check(found, expected, what):
    if found != expected:
        sys.exit(f"{what}: expected {expected!r}, found {found!r}")
    print(f"{what} ... ok")


def refused(call, payload, words, what):
    """The call is refused with all these words, as the model's error."""
    try:
        call(payload)
    except Exception as error:
        told = error.args[0]
        check(getattr(told, "kind", None), "validation", f"{what}: kind")
        text = " ".join(told.errors)
        for word in words:
            if word not in text:
                sys.exit(f"{what}: expected {word!r} in {text!r}")
        print(f"{what} ... ok")
        return
    sys.exit(f"{what}: expected to be refused")


def two_ports(api, locations):
    config = api.config()
    for number, location in enumerate(locations):
        config.ports.port(name=f"p{number}", location=location)
    names = [port.name for port in config.ports]
    layer1 = config.layer1.layer1(name="layer1", port_names=names)[-1]
    layer1.speed = "speed_1_gbps"
    layer1.flow_control.ieee_802_1qbb.pfc_delay = 0
    config.options.port_options.location_preemption = True
    config.captures.capture(name="capture", port_names=["p1"])[-1].format = "pcapng"
    return config


def devices(config):
    for number in range(2):
        ethernet = config.devices.device(name=f"d{number}")[-1].ethernets.add(
            name=f"e{number}", mac=f"02:00:00:00:00:0{number + 1}")
        ethernet.connection.port_name = f"p{number}"
        ethernet.ipv4_addresses.add(
            name=f"i{number}", address=f"10.0.0.{number + 1}", gateway=f"10.0.0.{2 - number}")


def data(config):
    flow = config.flows.flow(name="data")[-1]
    flow.tx_rx.port.tx_name, flow.tx_rx.port.rx_names = "p0", ["p1"]
    ethernet, ip, udp = flow.packet.ethernet().ipv4().udp()
    ethernet.src.value, ethernet.dst.value = "02:00:00:00:00:01", "02:00:00:00:00:02"
    ethernet.pfc_queue.value = 3
    ip.src.value, ip.dst.value = "10.0.0.1", "10.0.0.2"
    ip.priority.choice = ip.priority.DSCP
    ip.priority.dscp.phb.values = [3, 4]
    ip.priority.dscp.ecn.value = ip.priority.dscp.ecn.CAPABLE_TRANSPORT_1
    udp.src_port.increment.start, udp.src_port.increment.count = 5000, 10
    flow.size.fixed, flow.rate.pps = 128, 1000
    flow.duration.fixed_packets.packets = 100
    flow.metrics.enable = flow.metrics.loss = True
    flow.metrics.latency.enable = True


def storm(config):
    flow = config.flows.flow(name="storm")[-1]
    flow.tx_rx.port.tx_name, flow.tx_rx.port.rx_names = "p1", ["p0"]
    pause = flow.packet.pfcpause()[-1]
    pause.src.value, pause.dst.value = "00:00:fa:ce:fa:ce", "01:80:c2:00:00:01"
    pause.class_enable_vector.value, pause.pause_class_3.value = 8, 65535
    flow.size.fixed, flow.rate.pps = 64, 59
    flow.duration.continuous.delay.nanoseconds = 0
    flow.metrics.enable = True


def transmit(api, state, flows=()):
    control = api.control_state()
    control.traffic.flow_transmit.state = state
    control.traffic.flow_transmit.flow_names = list(flows)
    check(type(api.set_control_state(control)).__name__, "Warning", f"transmit {state}")


def flow_metrics(api, names=()):
    request = api.metrics_request()
    request.flow.flow_names = list(names)
    return api.get_metrics(request).flow_metrics


def configuration(api, config):
    version = api.get_version()
    check(bool(version.app_version), True, "version")
    warning = api.set_config(config)
    check(type(warning).__name__, "Warning", "set_config")
    # As values: 0 and 0.0 are the same.
    found, expected = (each.serialize(each.DICT) for each in (api.get_config(), config))
    check(found, expected, "get_config as it was set")


def traffic(api):
    # Not the storm, which holds the flow.
    transmit(api, "start", ["data"])
    ended = time.monotonic() + 10
    while flow_metrics(api, ["data"])[0].transmit != "stopped":
        if time.monotonic() > ended:
            sys.exit("the flow of 100 frames has not ended within 10 s")
        time.sleep(0.1)
    [flow] = flow_metrics(api, ["data"])
    check(flow.frames_tx, 100, "frames_tx")
    check(isinstance(flow.frames_tx_rate, float), True, "a rate is a float")
    check(isinstance(flow.loss, float), True, "loss is a float")
    for state in ("start", "pause", "resume", "stop"):
        transmit(api, state, ["storm"])
    [flow] = flow_metrics(api, ["storm"])
    check(flow.transmit, "stopped", "the storm")
    request = api.metrics_request()
    request.port.port_names = []
    ports = api.get_metrics(request).port_metrics
    check([port.name for port in ports], ["p0", "p1"], "port metrics")
    check(isinstance(ports[0].frames_tx_rate, float), True, "a rate of a port is a float")


def update(api, config):
    change = api.config_update()
    change.flows.property_names = ["rate"]
    flow = config.flows[0]
    flow.rate.pps = 500
    change.flows.flows.append(flow)
    check(type(api.update_config(change)).__name__, "Warning", "update_config")
    check(api.get_config().flows[0].rate.pps, 500, "the rate as it was updated")


def states(api):
    control = api.control_state()
    control.protocol.all.state = "start"
    api.set_control_state(control)
    request = api.states_request()
    request.ipv4_neighbors.ethernet_names = []
    ended = time.monotonic() + 10
    while True:
        found = api.get_states(request).ipv4_neighbors
        if all(entry.link_layer_address for entry in found):
            break
        if time.monotonic() > ended:
            sys.exit("no neighbour has answered within 10 s")
        time.sleep(0.1)
    told = [(entry.ethernet_name, entry.ipv4_address) for entry in found]
    check(told, [("e0", "10.0.0.2"), ("e1", "10.0.0.1")], "ipv4 neighbours")
    request = api.states_request()
    request.ipv6_neighbors.ethernet_names = []
    check(len(api.get_states(request).ipv6_neighbors or []), 0, "no ipv6 neighbours")


def captures(api):
    control = api.control_state()
    control.port.capture.port_names, control.port.capture.state = ["p1"], "start"
    api.set_control_state(control)
    transmit(api, "start", ["data"])
    time.sleep(0.5)
    control.port.capture.state = "stop"
    api.set_control_state(control)
    request = api.capture_request()
    request.port_name = "p1"
    octets = api.get_capture(request).read()
    check(octets[:4], b"\x0a\x0d\x0d\x0a", "a capture is pcapng")
    request.port_name = "p0"
    refused(api.get_capture, request, ["p0", "capture"], "a port without a capture")


def links(api):
    for state in ("down", "up"):
        control = api.control_state()
        control.port.link.port_names, control.port.link.state = ["p1"], state
        api.set_control_state(control)
        request = api.metrics_request()
        request.port.port_names, request.port.column_names = ["p1"], ["link"]
        ended = time.monotonic() + 10
        while api.get_metrics(request).port_metrics[0].link != state:
            if time.monotonic() > ended:
                sys.exit(f"the link is not {state} within 10 s")
            time.sleep(0.1)
        print(f"link {state} ... ok")


def mistakes(api, locations):
    config = two_ports(api, locations)
    data(config)
    config.flows[0].size.fixed = 20
    config.lags.lag(name="lag")
    refused(api.set_config, config, ["lags", "flows[0].size.fixed"], "mistakes")
    check(len(api.get_config().flows), 2, "the configuration before is in force")
    request = api.metrics_request()
    request.flow.flow_names = ["nothing"]
    refused(api.get_metrics, request, ["nothing"], "an unknown flow")


def main(transport, server, *locations):
    grpc = transport.startswith("grpc")
    api = snappi.api(server, transport="grpc" if grpc else "http", version_check=True)
    if transport == "grpc-pieces":
        api.enable_grpc_streaming = True
    # Loading the program into the kernel takes long on a busy machine.
    api.request_timeout = 60
    config = two_ports(api, locations)
    devices(config)
    data(config)
    storm(config)
    configuration(api, config)
    traffic(api)
    update(api, config)
    states(api)
    captures(api)
    links(api)
    mistakes(api, locations)
    print("all as expected")


main(*sys.argv[1:])
