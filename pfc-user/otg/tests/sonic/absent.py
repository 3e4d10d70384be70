"""What sonic-mgmt imports to reach a chassis or a SONiC host, and what stands in for it here.

Its helpers import far more than they call. A module of `ABSENT` is importable under any name, and
what is taken from it fails when it is called. `PRESENT` has the few that are called.
"""

import importlib.abc
import importlib.machinery
import sys
import types

# Hosts by Ansible, SSH and PTF, the chassis' own API, MACsec on both, and pytest's session.
ABSENT = (
    "ansible",
    "ixnetwork_restpy",
    "paramiko",
    "tests.common.config_reload",
    "tests.common.fixtures.conn_graph_facts",
    "tests.common.helpers.parallel",
    "tests.common.helpers.pfcwd_helper",
    "tests.common.macsec",
    "tests.common.port_toggle",
    "tests.common.reboot",
    "tests.common.snappi_tests.uhd",
    "tests.conftest",
)


class NoViews:
    """IxNetwork's views of statistics, without rows."""

    Rows = []

    def __init__(self, session, view):
        self.view = view


def no_counters(duthost):
    """There is no MACsec whose counters could be cleared."""


def no_override(testbed, field):
    """No testbed is described in a file."""
    return False, None


PRESENT = {
    "ixnetwork_restpy.assistants.statistics.statviewassistant": {"StatViewAssistant": NoViews},
    "tests.common.macsec.macsec_helper": {"clear_macsec_counters": no_counters},
    "tests.conftest": {"parse_override": no_override},
}


class Absent(Exception):
    """An exception too, as some of the names are caught."""

    name = "?"

    def __init__(self, *_arguments, **_named):
        raise NotImplementedError(f"{self.name} needs a chassis or a SONiC host")


class Module(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (Absent,), {"name": f"{self.__name__}.{name}"})


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname, path=None, target=None):
        if any(f"{fullname}.".startswith(f"{name}.") for name in ABSENT):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec):
        return Module(spec.name)

    def exec_module(self, module):
        vars(module).update(PRESENT.get(module.__name__, {}))


def install():
    sys.meta_path.insert(0, Finder())
