"""The rules, alerts and queries in configs/prometheus, read and tried by Prometheus' own promtool,
which comes from Debian's package and is not installed."""

import json
import subprocess

from shared import packages
from shared.steps import ROOT, Tally, main

PUBLISHED = ROOT / "configs/prometheus"
# Grafana's own variables, which stand for durations and choices, and values for them.
VARIABLES = {"$__rate_interval": "1m", "$instance": ".*", "$interface": ".*", "$priority": ".*"}


def as_rules(dashboard):
    """The queries of a dashboard as a file of rules. promtool reads YAML, of which JSON is a
    part."""
    shown = [target for panel in dashboard["panels"] for target in panel["targets"]]
    shown += dashboard.get("annotations", {}).get("list", [])
    rules = []
    for number, query in enumerate(one["expr"] for one in shown if "expr" in one):
        for name, value in VARIABLES.items():
            query = query.replace(name, value)
        rules.append({"record": f"query_{number}", "expr": query})
    return json.dumps({"groups": [{"name": "dashboard", "rules": rules}]})


def lab():
    promtool = packages.prometheus(packages.Archive()).program("promtool")
    queries = ROOT / "target/lab/dashboard.yml"
    queries.parent.mkdir(parents=True, exist_ok=True)
    queries.write_text(as_rules(json.loads((PUBLISHED / "dashboard.json").read_text())))
    tally = Tally()
    for name, arguments in {
        "the configuration": ["check", "config", "prometheus.yml"],
        "the rules and alerts": ["test", "rules", "tests.yml"],
        "the queries of the dashboard": ["check", "rules", queries],
    }.items():
        status = subprocess.run([promtool, *arguments], cwd=PUBLISHED).returncode
        tally.check(name, status == 0, f"promtool ended with {status}")
    return tally.close()


if __name__ == "__main__":
    main(lab)
