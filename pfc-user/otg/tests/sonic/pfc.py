"""SONiC's own PFC helpers, unmodified, from a clone of sonic-mgmt.

    python pfc.py CLONE TRANSPORT SERVER URL COUNTERS CASE LOCATION...

A switch that is lossless for priorities 3 and 4, with ports of 1 Gbit/s, has to be between
the ports. COUNTERS is the socket at which it tells its counts, URL the server's own over HTTP. Ends
with 1 if the helper's assertions fail, and says which; with 75 if the storm of the server had gaps,
so that a failure says nothing of the switch.
"""

import importlib
import json
import logging
import sys
import urllib.request

import snappi

import absent
from cases import CASES
from dut import PORTS, Dut

# Priority p is DSCP p in the simulated switch.
DSCPS = {priority: [priority] for priority in range(8)}


def testbed(api, locations):
    """The configuration and the ports that the fixtures read from a testbed."""
    from tests.common.snappi_tests.port import SnappiPortConfig, SnappiPortType

    config = api.config()
    ports, names = [], [f"Port {number}" for number in range(len(locations))]
    for number, (name, location) in enumerate(zip(names, locations)):
        config.ports.port(name=name, location=location)
        mac = f"10:17:00:00:00:{number + 11:02x}"
        ethernet = config.devices.device(name=f"Device Port {number}")[-1].ethernets.add(
            name=f"Ethernet Port {number}", mac=mac)
        ethernet.connection.port_name = name
        # The switch has no address. Each port has the next one for a gateway.
        address, gateway = (
            f"192.0.2.{(number + turn) % len(names) + 1}" for turn in range(2))
        ethernet.ipv4_addresses.add(
            name=f"Ipv4 Port {number}", address=address, gateway=gateway, prefix=24)
        ports.append(SnappiPortConfig(
            id=number, ip=address, mac=mac, gw="192.0.2.254", gw_mac=None, prefix_len="24",
            port_type=SnappiPortType.VlanMember, peer_port=PORTS[number]))
    layer1 = config.layer1.layer1(name="L1 config", port_names=names)[-1]
    layer1.speed = "speed_1_gbps"
    layer1.flow_control.directed_address = "01:80:C2:00:00:01"
    layer1.flow_control.choice = layer1.flow_control.IEEE_802_1QBB
    for of_class in range(8):
        setattr(layer1.flow_control.ieee_802_1qbb, f"pfc_class_{of_class}", of_class)
    config.options.port_options.location_preemption = True
    return config, ports


def parameters(dut, count, settings):
    """What the fixtures say of the DUT's ports, and the settings of a test."""
    from tests.common.snappi_tests.snappi_test_params import SnappiTestParams

    extra = SnappiTestParams()
    ports = [
        {"duthost": dut, "peer_port": port, "port_id": number, "asic_value": None}
        for number, port in enumerate(PORTS[:count])
    ]
    extra.multi_dut_params.multi_dut_ports = ports
    # One helper reads them here.
    extra.rx_port, extra.tx_port = ports[:2]
    extra.rx_port_id, extra.tx_port_id = range(2)
    for name, value in settings.items():
        if not hasattr(extra, name):
            raise AttributeError(f"sonic-mgmt's parameters have no {name!r}")
        setattr(extra, name, value)
    return extra


def gaps(url):
    """How often a pause of the server's storms ran out, because the machine stood still."""
    with urllib.request.urlopen(f"{url}/counters") as reply:
        return sum(flow["storm_gaps"] or 0 for flow in json.load(reply)["flows"])


def main(clone, transport, server, url, counters, name, *locations):
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    sys.path.insert(0, clone)
    # The helpers look for options of pytest.
    del sys.argv[1:]
    absent.install()
    from tests.common.snappi_tests import traffic_generation

    # A chassis takes half a minute to start protocols.
    traffic_generation.wait = lambda _seconds, _reason: None
    api = snappi.api(server, transport=transport)
    api.request_timeout = 60
    # Taken for a session of the chassis, whose views have no rows.
    api._ixnetwork = None
    case = CASES[name]()
    config, ports = testbed(api, locations)
    helper = getattr(importlib.import_module(case.module), case.helper)
    try:
        helper(
            api=api, testbed_config=config, port_config_list=ports, prio_dscp_map=DSCPS,
            snappi_extra_params=parameters(Dut(counters), len(locations), case.settings),
            **case.arguments)
    except BaseException as failure:
        if type(failure).__name__ != "Failed":
            raise
        print(f"{name}: {failure}")
        sys.exit(75 if gaps(url) else 1)
    print(f"{name} ... ok")


main(*sys.argv[1:])
