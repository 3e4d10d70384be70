"""SONiC's own PFC helpers, unmodified, from a clone of sonic-mgmt.

    python pfc.py CLONE TRANSPORT SERVER COUNTERS LOCATION LOCATION CASE

A switch that is lossless for priorities 3 and 4 has to be between the ports. COUNTERS is the socket
at which it tells its counts. Ends with 1 if the helper's assertions fail, and says which.
"""

import logging
import sys

import snappi

import absent
from dut import PORTS, Dut

LOSSLESS, LOSSY = 3, 1
# Priority p is DSCP p in the simulated switch.
DSCPS = {priority: [priority] for priority in range(8)}


def others(*priorities):
    return [priority for priority in range(8) if priority not in priorities]


def pause(priority, held, **extra):
    """Pause frames for one priority, and test flows of it."""
    arguments = {
        "global_pause": False,
        "pause_prio_list": [priority],
        "test_prio_list": [priority],
        "bg_prio_list": others(priority),
        "test_traffic_pause": held,
    }
    return arguments, extra


# As in the tests of the same names, which take the rest from fixtures.
CASES = {
    "pause_lossless": lambda: pause(LOSSLESS, True),
    "pause_lossy": lambda: pause(LOSSY, False),
    "pause_zero_mac": lambda: pause(LOSSLESS, True, pfc_pause_src_mac="00:00:00:00:00:00"),
    "pause_unset_bit": lambda: pause(LOSSLESS, False, set_pfc_class_enable_vec=False),
    "pause_counter": lambda: pause(LOSSLESS, True, gen_background_traffic=False),
    "global_pause": lambda: (
        {
            "global_pause": True,
            "pause_prio_list": None,
            "test_prio_list": [3, 4],
            "bg_prio_list": others(3, 4),
            "test_traffic_pause": False,
        },
        {},
    ),
}


def testbed(api, locations, port_type, port_class):
    """The configuration and the ports that the fixtures read from a testbed."""
    config = api.config()
    ports, names = [], [f"Port {number}" for number in range(2)]
    for number, (name, location) in enumerate(zip(names, locations)):
        config.ports.port(name=name, location=location)
        mac = f"10:17:00:00:00:{number + 11:02x}"
        ethernet = config.devices.device(name=f"Device Port {number}")[-1].ethernets.add(
            name=f"Ethernet Port {number}", mac=mac)
        ethernet.connection.port_name = name
        # The switch has no address. Each port is the other's gateway.
        address, gateway = (f"192.0.2.{(number ^ turn) + 1}" for turn in range(2))
        ethernet.ipv4_addresses.add(
            name=f"Ipv4 Port {number}", address=address, gateway=gateway, prefix=24)
        ports.append(port_class(
            id=number, ip=address, mac=mac, gw="192.0.2.254", gw_mac=None, prefix_len="24",
            port_type=port_type.VlanMember, peer_port=f"Ethernet{4 * number}"))
    layer1 = config.layer1.layer1(name="L1 config", port_names=names)[-1]
    layer1.speed = "speed_1_gbps"
    layer1.flow_control.directed_address = "01:80:C2:00:00:01"
    layer1.flow_control.choice = layer1.flow_control.IEEE_802_1QBB
    for of_class in range(8):
        setattr(layer1.flow_control.ieee_802_1qbb, f"pfc_class_{of_class}", of_class)
    config.options.port_options.location_preemption = True
    return config, ports


def main(clone, transport, server, counters, first, second, case):
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    sys.path.insert(0, clone)
    # The helpers look for options of pytest.
    del sys.argv[1:]
    absent.install()
    from tests.common.snappi_tests import traffic_generation
    from tests.common.snappi_tests.port import SnappiPortConfig, SnappiPortType
    from tests.common.snappi_tests.snappi_test_params import SnappiTestParams
    from tests.snappi_tests.pfc.files.helper import run_pfc_test

    # A chassis takes half a minute to start protocols.
    traffic_generation.wait = lambda _seconds, _reason: None
    api = snappi.api(server, transport=transport)
    api.request_timeout = 60
    # Taken for a session of the chassis, whose views have no rows.
    api._ixnetwork = None
    config, ports = testbed(api, (first, second), SnappiPortType, SnappiPortConfig)
    dut = Dut(counters)
    arguments, extra = CASES[case]()
    parameters = SnappiTestParams()
    for name, value in extra.items():
        setattr(parameters, name, value)
    parameters.multi_dut_params.multi_dut_ports = [
        {"duthost": dut, "peer_port": port, "asic_value": None} for port in PORTS
    ]
    try:
        run_pfc_test(
            api=api, testbed_config=config, port_config_list=ports, conn_data={}, fanout_data={},
            prio_dscp_map=DSCPS, snappi_extra_params=parameters, **arguments)
    except BaseException as failure:
        if type(failure).__name__ != "Failed":
            raise
        sys.exit(f"{case}: {failure}")
    print(f"{case} ... ok")


main(*sys.argv[1:])
