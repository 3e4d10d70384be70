"""What the tests of sonic-mgmt hand to its PFC helpers, here with fixed priorities and ports."""

import dataclasses

from dut import PORTS

PFC = "tests.snappi_tests.pfc.files.helper"
WATCHDOG = "tests.snappi_tests.pfcwd.files"
LOSSLESS, LOSSY = [3, 4], [0, 1, 2, 5, 6, 7]
# The graphs of a testbed's cables, which tell the port of a DUT where its host is given.
GRAPHS = {"conn_data": {}, "fanout_data": {}}


@dataclasses.dataclass
class Case:
    """A helper, and what it is called with."""

    module: str
    helper: str
    arguments: dict
    # Of the helper's parameters.
    settings: dict = dataclasses.field(default_factory=dict)


def pause(priorities, held, **settings):
    """Pause frames for some priorities, and test flows of them."""
    arguments = {
        "global_pause": False,
        "pause_prio_list": priorities,
        "test_prio_list": priorities,
        "bg_prio_list": [priority for priority in range(8) if priority not in priorities],
        "test_traffic_pause": held,
    }
    return Case(PFC, "run_pfc_test", GRAPHS | arguments, settings)


def global_pause():
    """PAUSE frames of 802.3x, and test flows of lossless priorities."""
    case = pause(LOSSLESS, False)
    case.arguments |= {"global_pause": True, "pause_prio_list": None}
    return case


def valid_pfc_frame():
    """The PFC frames of the switch, from a capture of its ingress port.

    The helper asks for 12000 frames. A switch at 1 Gbit/s repeats its XOFF 90 times a second where
    it asks for the longest pause, and 2000 times where it asks for 3000 quanta. It does so for
    little data as well, as long as that fills its buffer.
    """
    from tests.common.snappi_tests.common_helpers import packet_capture, traffic_flow_mode
    from tests.common.snappi_tests.traffic_flow_config import TrafficFlowConfig

    flows = TrafficFlowConfig()
    flows.data_flow_config = {
        "flow_name": "Test Flow",
        # As the helper has it.
        "flow_dur_sec": 19,
        "flow_delay_sec": 4,
        "flow_rate_percent": 1,
        "flow_pkt_size": 1024,
        "flow_traffic_type": traffic_flow_mode.FIXED_DURATION,
    }
    return pause(
        LOSSLESS, True, packet_capture_type=packet_capture.PFC_CAPTURE,
        is_snappi_ingress_port_cap=False, gen_background_traffic=False, traffic_flow_config=flows)


def tx_drop_counter():
    """The drops that a port counts while its cable is dead."""
    arguments = {"dut_port": PORTS[0], "test_prio_list": LOSSLESS}
    return Case(PFC, "run_tx_drop_counter", arguments)


def watchdog(module, helper, priorities, **more):
    """Traffic, or traffic in a storm, that no PFC watchdog may take for a storm that lasts."""
    arguments = GRAPHS | {"dut_port": PORTS[0], "prio_list": priorities} | more
    return Case(f"{WATCHDOG}.{module}", helper, arguments)


def many_to_one(module, helper, **priorities):
    """Two ports that send to the first, which they fill or which is paused."""
    arguments = GRAPHS | {"dut_port": PORTS[0], "pause_prio_list": LOSSLESS} | priorities
    return Case(f"tests.snappi_tests.pfc.files.{module}_helper", helper, arguments)


CASES = {
    "pause_lossless": lambda: pause([3], True),
    "pause_lossy": lambda: pause([1], False),
    "pause_multi_lossless": lambda: pause(LOSSLESS, True),
    "pause_multi_lossy": lambda: pause(LOSSY, False),
    "pause_zero_mac": lambda: pause([3], True, pfc_pause_src_mac="00:00:00:00:00:00"),
    "pause_unset_bit": lambda: pause([3], False, set_pfc_class_enable_vec=False),
    "pause_counter": lambda: pause([3], True, gen_background_traffic=False),
    "global_pause": global_pause,
    "valid_pfc_frame": valid_pfc_frame,
    "tx_drop_counter": tx_drop_counter,
    "pfcwd_runtime": lambda: watchdog(
        "pfcwd_runtime_traffic_helper", "run_pfcwd_runtime_traffic_test", list(range(8))),
    "pfcwd_burst_storm": lambda: watchdog(
        "pfcwd_burst_storm_helper", "run_pfcwd_burst_storm_test", [3]),
    "pfcwd_basic": lambda: watchdog(
        "pfcwd_basic_helper", "run_pfcwd_basic_test", [3], trigger_pfcwd=False),
    "m2o_lossless": lambda: many_to_one(
        "m2o_oversubscribe_lossless", "run_m2o_oversubscribe_lossless_test",
        test_prio_list=LOSSLESS, bg_prio_list=[1, 6]),
    "m2o_lossy": lambda: many_to_one(
        "m2o_oversubscribe_lossy", "run_pfc_m2o_oversubscribe_lossy_test",
        test_prio_list=[1, 6], bg_prio_list=LOSSLESS),
    "m2o_lossless_lossy": lambda: many_to_one(
        "m2o_oversubscribe_lossless_lossy", "run_pfc_m2o_oversubscribe_lossless_lossy_test",
        test_prio_list=LOSSLESS, bg_prio_list=[1, 6]),
    "m2o_fluctuating": lambda: many_to_one(
        "m2o_fluctuating_lossless", "run_m2o_fluctuating_lossless_test",
        test_prio_list=LOSSLESS, bg_prio_list=[0, 1, 6, 7]),
    "external_storms": lambda: many_to_one(
        "lossless_response_to_external_pause_storms",
        "run_lossless_response_to_external_pause_storms_test",
        test_prio_list=LOSSLESS, bg_prio_list=[1, 6]),
    "throttling_storms": lambda: many_to_one(
        "lossless_response_to_throttling_pause_storms",
        "run_lossless_response_to_throttling_pause_storms_test",
        test_prio_list=LOSSLESS, bg_prio_list=[1, 6]),
}
