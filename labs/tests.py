"""What the labs read and say, tried without any of them."""

import contextlib
import io
import json
import os
import re
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import browser
import fleet
import nic
import otg
import prometheus
import screenshots
import userspace
from shared import chroot, guest, packages
from shared.steps import ROOT, Failure, Tally


def read(path):
    return (ROOT / path).read_text()


class Steps(unittest.TestCase):
    def test_the_closing_lines_name_what_failed_and_was_left_out(self):
        tally = Tally()
        for failed, code, last in (
            (False, 0, "test result: ok. 1 passed; 0 failed; 1 ignored"),
            (True, 1, "test result: FAILED. 1 passed; 1 failed; 1 ignored"),
        ):
            tally.passed, tally.skipped = ["a"], ["c with old: no wheel"]
            tally.failed = ["d: because"] * failed
            with contextlib.redirect_stdout(io.StringIO()) as said:
                self.assertEqual(tally.close(), code)
            expected = ["failed: d: because"] * failed + ["skipped: c with old: no wheel", last]
            self.assertEqual(said.getvalue().splitlines(), expected)

    def test_what_fails_is_noted_and_the_next_is_tried(self):
        tally = Tally()
        with contextlib.redirect_stdout(io.StringIO()):
            with tally.trying("a"):
                raise Failure("no")
            with tally.trying("b"):
                pass
        self.assertEqual((tally.failed, tally.passed), (["a: no"], ["b"]))


class Packages(unittest.TestCase):
    def test_what_apt_prints_is_read(self):
        simulated = ("Remv qemu-utils [1:10.0.2]\n"
                     "Inst libfdt1 (1.6.1-4+b1 Debian:12.15 [amd64])\n"
                     "Inst iproute2 [6.1.0-3] (6.1.0-3 Debian:12.15 [amd64])\n"
                     "Conf libfdt1 (1.6.1-4+b1)\n")
        self.assertEqual(packages.to_install(simulated), ["libfdt1=1.6.1-4+b1", "iproute2=6.1.0-3"])
        line = "qemu-system-x86_1%3a7.2+dfsg-7_amd64.deb 8394020 SHA256:0af1"
        self.assertEqual(packages.pinned(line), "qemu-system-x86=1:7.2+dfsg-7")

    def test_the_newest_kernel_is_by_number_and_of_the_plain_flavour(self):
        names = ["linux-image-6.12.117+deb12-amd64", "linux-image-6.12.90+deb12.1-amd64",
                 "linux-image-6.12.118+deb12-cloud-amd64", "linux-image-6.12.118+deb12-rt-amd64",
                 "linux-image-6.12.118+deb12-amd64-dbg", "linux-image-6.12-amd64",
                 "linux-image-amd64"]
        for prefix in ("linux-image-6.12.", "linux-image-"):
            self.assertEqual(packages.newest(names, prefix), names[0])
        self.assertIsNone(packages.newest(names, "linux-image-6.1."))

    def test_sources_name_each_suite_once_on_the_machines_servers(self):
        targets = ("Debian|a://one/|oldstable|bookworm\n"
                   "Debian|a://one/|oldstable-updates|bookworm-updates\n"
                   "Debian-Security|a://two/|oldstable-security|bookworm-security\n"
                   "NodeSource|a://three/|x|x\n")
        lines = [line.split() for line in packages.sources(targets).splitlines()]
        self.assertEqual([line[3] for line in lines],
                         ["bookworm", "bookworm-security", "bullseye", "bookworm-backports",
                          "trixie-backports"])
        self.assertEqual({line[2] for line in lines}, {"a://one/", "a://two/"})
        with self.assertRaises(Failure):
            packages.sources("Ubuntu|a://one/|x|noble\n")

    def test_what_ldd_prints_is_read(self):
        listed = ("\tlinux-vdso.so.1 (0x7f00)\n\tlibc.so.6 => /lib/libc.so.6 (0x7f01)\n"
                  "\t/lib64/ld-linux-x86-64.so.2 (0x7f02)")
        tree = packages.Tree("/x")
        with mock.patch.object(packages, "output", return_value=listed):
            found = [str(path) for path in tree.needed("a")]
        self.assertEqual(found, ["/lib/libc.so.6", "/lib64/ld-linux-x86-64.so.2"])
        with mock.patch.object(packages, "output", return_value="\tlibx.so => not found"):
            self.assertRaises(Failure, tree.needed, "a")

    def test_an_environment_that_is_there_is_taken_and_one_of_other_packages_is_not(self):
        with tempfile.TemporaryDirectory() as cache, \
                mock.patch.dict(os.environ, VALIDATOR_CACHE=cache), \
                mock.patch.dict(packages.ENVIRONMENTS, x=("a==1", "b==2")):
            folder = Path(cache, "lab-python-x")
            folder.mkdir()
            (folder / "packages.txt").write_text("a==1\nb==2")
            self.assertEqual(packages.python("x"), folder / "bin/python")
            packages.ENVIRONMENTS["x"] = ("not a requirement",)
            with self.assertRaisesRegex(Failure, "pip has to reach PyPI|python3-venv"):
                packages.python("x")
            self.assertFalse((folder / "packages.txt").exists())

    def test_a_killed_run_leaves_nothing_for_good(self):
        archive = mock.Mock()
        with tempfile.TemporaryDirectory() as cache, \
                mock.patch.dict(os.environ, VALIDATOR_CACHE=cache), \
                contextlib.redirect_stdout(io.StringIO()):
            tree = packages.unpacked(archive, "x", lambda: "a_1_all.deb 1")
            # No process id exceeds the kernel's limit, 2^22.
            dead, alive = (Path(f"{tree.folder}.{pid}.part") for pid in (4194305, os.getppid()))
            tree.folder.rename(dead)
            alive.mkdir()
            self.assertEqual(packages.unpacked(archive, "x", lambda: "a_1_all.deb 1").folder,
                             tree.folder)
            self.assertEqual((dead.exists(), alive.exists()), (False, True))
            other = packages.unpacked(archive, "x", lambda: "a_2_all.deb 1")
            self.assertNotEqual(other.folder, tree.folder)


class Chroots(unittest.TestCase):
    def test_mirrors_are_those_of_this_machine(self):
        targets = "Debian http://a/debian\nDebian http://b/debian\nDebian-Security http://a/s"
        self.assertEqual(chroot.sources(targets, "trixie"),
                         ["deb http://a/debian trixie main",
                          "deb http://a/debian trixie-updates main",
                          "deb http://a/s trixie-security main"])
        self.assertRaises(Failure, chroot.sources, "Debian http://a/debian", "trixie")
        self.assertRaises(Failure, chroot.sources, "", "bookworm")

    def test_settings_are_those_on_the_way_to_mirrors(self):
        dump = ('APT::Architecture "amd64";\nAcquire::Check-Date "false";\nAcquire::http "";\n'
                'Acquire::http::Proxy "http://p:1";\nAcquire::https::Proxy "";\n'
                'Acquire::GzipIndexes "true";')
        self.assertEqual(chroot.settings(dump), ['Acquire::Check-Date "false";',
                                                 'Acquire::http::Proxy "http://p:1";'])

    def test_the_way_to_the_registry_is_passed_on_and_nothing_else(self):
        names = ("https_proxy", "NO_PROXY", "CARGO_NET_OFFLINE", "CARGO_HTTP_CAINFO", "CARGO_HOME",
                 "CARGO", "RUSTFLAGS", "LD_LIBRARY_PATH", "TERM", "PATH")
        found = chroot.environment(dict.fromkeys(names, "x"))
        self.assertEqual(set(found), {"PATH", "HOME", "LANG", "https_proxy", "NO_PROXY",
                                      "CARGO_NET_OFFLINE", "TERM"})
        self.assertNotEqual(found["PATH"], "x")

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_what_is_killed_leaves_no_process_and_no_mount(self):
        here = chroot.Chroot("/", "/")
        before = Path("/proc/self/mountinfo").read_text()
        with contextlib.redirect_stdout(io.StringIO()):
            # It returns only when no process holds its output; a surviving `sleep` would.
            here.kill_at(["sh", "-euc", "test $$ = 1; sleep 1000 & echo ready; wait"], "ready")
            self.assertEqual(Path("/proc/self/mountinfo").read_text(), before)
            with self.assertRaisesRegex(Failure, "found none"):
                here.kill_at(["true"], "ready")
        self.assertEqual(here.run("false"), 1)

    def test_what_is_inconclusive_is_tried_again_and_is_no_failure(self):
        here, tally = chroot.Chroot("/x"), Tally()
        with mock.patch.object(here, "run", side_effect=[3, 3, 0, 3, 3, 3, 1]), \
                contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual([here.conclude("demo") for _ in range(3)], [0, 3, 1])
        with mock.patch.multiple(here, must=mock.DEFAULT, kill_at=mock.DEFAULT,
                                 conclude=mock.DEFAULT) as calls, \
                contextlib.redirect_stdout(io.StringIO()):
            for status in (0, 3, 1):
                calls["conclude"].return_value = status
                userspace.newcomer(here, "x", tally)
        found = [len(names) for names in (tally.passed, tally.skipped, tally.failed)]
        # Setup passed three times.
        self.assertEqual(found, [4, 1, 1])

    def test_the_page_for_newcomers_begins_with_what_is_tried(self):
        for line in userspace.FIRST:
            self.assertIn(line, read("docs/getting-started.md"))


class Guests(unittest.TestCase):
    def test_modules_come_after_what_they_need(self):
        with tempfile.TemporaryDirectory() as folder:
            modules = Path(folder, "lib/modules/6.1")
            (modules / "net").mkdir(parents=True)
            (modules / "rdma_rxe.ko").write_bytes(b"x\0depends=ib-core,built_in\0name=y\0")
            (modules / "net/ib-core.ko").write_bytes(b"\0depends=\0")
            found = guest.needed_modules(packages.Tree(folder), ("rdma_rxe", "ib_core"))
            self.assertEqual([file.name for file in found], ["ib-core.ko", "rdma_rxe.ko"])

    def test_a_step_counts_by_its_exit_code_and_a_skipped_test_is_a_failure(self):
        transcript = guest.Transcript()
        for line in ("lab: begins a", "lab: ended 0 0 3.10 a", "lab: ended 1 0 3.20 b and c",
                     "lab: ended 2 2 3.30 d", "lab: skipped root_x: needs root",
                     "lab: row igb | native", "lab: ended ", "test result: ok. 5 passed"):
            transcript.hear(line)
        self.assertEqual(transcript.passed, ["a", "d"])
        self.assertEqual(transcript.failed, ["b and c: expected exit code 0, found 1",
                                             "skipped in the guest: root_x: needs root",
                                             "not understood: lab: ended "])
        self.assertEqual(transcript.rows, ["igb | native"])

    def test_a_step_whose_filter_matches_no_test_is_a_failure(self):
        none = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 7 filtered out"
        two = "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 5 filtered out"
        transcript = guest.Transcript()
        for name, results in (("a", [two]), ("b", [none]), ("c", [none, two]), ("d", [])):
            for line in (f"lab: begins {name}", *results, f"lab: ended 0 0 3.10 {name}"):
                transcript.hear(line)
        self.assertEqual(transcript.passed, ["a", "c", "d"])
        self.assertEqual(transcript.failed, ["b: expected tests that match, found none"])


class Nic(unittest.TestCase):
    def test_the_readme_has_every_driver_on_every_kernel_with_its_mode(self):
        pairs = [(model, kernel) for model in nic.CARDS for kernel in nic.KERNELS]
        table = nic.modes(pairs, lambda model, kernel: nic.CARDS[model].mode(kernel))
        self.assertIn(table, read("README.md"))

    def test_each_port_of_the_tester_has_a_cable_of_its_own_to_the_switch(self):
        for card in nic.CARDS.values():
            devices = card.devices()
            self.assertEqual(sum("mac=" in word for word in devices), 4)
            if card.queues == 1:
                for number in range(2):
                    self.assertEqual(sum(f"hubid={number}" in word for word in devices), 2)


class Prometheus(unittest.TestCase):
    def test_queries_are_given_to_promtool_whole(self):
        query = 'rate(a{b=~"$instance"}[$__rate_interval])'
        rules = json.loads(prometheus.as_rules({"panels": [{"targets": [{"expr": query}]}]}))
        expected = [{"record": "query_0", "expr": 'rate(a{b=~".*"}[1m])'}]
        self.assertEqual(rules["groups"][0]["rules"], expected)


class Fleet(unittest.TestCase):
    def test_durations_are_divided_and_words_stay(self):
        text = ("# of [1m]\n  scrape_interval: 15s\n    for: 5m\n  expr: rate(a:b:ratio1m[1m]) > "
                "rate(c[5m])\n  summary: count 10s\n")
        expected = ("# of [1m]\n  scrape_interval: 1s\n    for: 20s\n  expr: rate(a:b:ratio1m[4s]) "
                    "> rate(c[20s])\n  summary: count 10s\n")
        self.assertEqual(fleet.divided(text, fleet.FACTOR), expected)
        self.assertEqual(fleet.divided("for: 1h", 1), "for: 3600s")
        for line, part in (("for: 10s", "expected a multiple of 15 s, found 10s"),
                           ("rate(a[x])", "found x")):
            with self.assertRaisesRegex(Failure, part):
                fleet.divided(line, fleet.FACTOR)

    def test_the_published_configuration_can_be_divided(self):
        text = "".join(fleet.divided((fleet.PUBLISHED / name).read_text(), fleet.FACTOR)
                       for name in ("prometheus.yml", "rules.yml", "alerts.yml"))
        for part in ("  scrape_interval: 1s\n", "[4s]", "for: 20s"):
            self.assertIn(part, text)
        for part in ("\n  scrape_interval: 15s", "[1m]", "for: 1m"):
            self.assertNotIn(part, text)

    def test_each_plant_has_a_host_of_its_own_and_each_alert_a_plant(self):
        self.assertEqual(len({plant.host for plant in fleet.PLANTS}), len(fleet.PLANTS))
        published = set(re.findall(r"- alert: (\S+)", read("configs/prometheus/alerts.yml")))
        self.assertEqual({plant.alert[0] for plant in fleet.PLANTS if plant.alert}, published)

    def test_an_alert_is_named_by_where_it_is(self):
        labels = {"alertname": "A", "severity": "x", "priority": "3", "instance": "h"}
        self.assertEqual(fleet.named(labels), "A instance=h priority=3")

    def test_this_process_uses_memory(self):
        usage = fleet.Usage(os.getpid())
        self.assertGreater(usage.rss, 1e6)
        self.assertGreater(usage.cpu, 0)


class Browser(unittest.TestCase):
    def test_the_list_of_mistakes_is_read_from_the_page(self):
        page = '<body data-wrong="[&quot;a &lt;b&gt; &amp;amp;&quot;]"></body>'
        self.assertEqual(browser.of_probe(page), ["a <b> &amp;"])
        self.assertEqual(browser.of_probe('<body data-wrong="[]">'), [])
        self.assertIsNone(browser.of_probe("<body>"))

    def test_sheets_are_pages_and_not_their_list(self):
        pdf = b"%PDF-1.4\n<</Type /Pages>>\n<</Type /Page\n>> <</Type /Page>>\xff"
        self.assertEqual(browser.sheets_of(pdf), 2)

    def test_the_pictures_of_the_documentation_are_there_and_small(self):
        # The drawing beside them comes from pfc-user/otg/tests/python/storm.py.
        pictures = [path.read_bytes() for path in (ROOT / "docs/images").glob("*.png")]
        self.assertEqual(len(pictures), 5)
        for picture in pictures:
            self.assertTrue(picture.startswith(b"\x89PNG"))
            # An empty page has some hundred octets; a reader loads several pictures.
            self.assertIn(len(picture), range(2_000, 150_000))


class Screenshots(unittest.TestCase):
    def test_a_window_fits_what_a_terminal_shows(self):
        page, window = screenshots.terminal("printf ab", "a<b\nsecond")
        self.assertIn("<b>$ printf ab</b>\na&lt;b\nsecond</pre>", page)
        self.assertEqual(window, (11 * 8 + 32, 3 * 17 + 32))

    def test_a_storm_is_told_by_the_share_of_the_last_interval(self):
        for share, expected in (("100.0", True), ("41.3", False)):
            line = f"  priority 3    10.0   687   1   59.0   0.00   {share} %"
            self.assertEqual(screenshots.in_storm(["d1", line]), expected)
        self.assertFalse(screenshots.in_storm(["d1"]))


class Otg(unittest.TestCase):
    def test_the_last_line_counts_whether_its_numbers_are_strings_or_not(self):
        first = '{"choice":"flow_metrics","flow_metrics":[{"name":"f1"}]}'
        self.assertEqual(otg.counts(first), (0, 0))
        then = '{"flow_metrics":[{"name":"f1","frames_tx":"500","frames_rx":499}]}'
        self.assertEqual(otg.counts(f"{first}\n{then}"), (500, 499))
        for said in ("", "otgen: no such flag"):
            self.assertRaises(Failure, otg.counts, said)

    def test_a_test_passed_if_the_report_has_nothing_else_to_say_of_it(self):
        report = """<testsuites><testsuite name="pytest" errors="0" tests="3">
            <testcase classname="feature.a" name="test_a" time="1.5" />
            <testcase classname="feature.b" name="test_b" time="0"><skipped message="no" />
            </testcase><testcase classname="c" name="test_c" time="1"><failure message="1 > 2"/>
            </testcase></testsuite></testsuites>"""
        self.assertEqual(otg.passed(report), {"test_a"})

    def test_the_page_counts_what_stands_in_for_a_chassis_and_a_host(self):
        def entries(path, table):
            rest = read(path).split(table)[1].splitlines()[1:]
            ends = next(place for place, line in enumerate(rest) if not line.startswith(" "))
            return sum(line.startswith('    "') for line in rest[:ends])
        absent = "pfc-user/otg/tests/sonic/absent.py"
        commands = read("pfc-user/otg/tests/sonic/dut.py").count("    @answers(")
        for words in (f"- {entries(absent, 'ABSENT = (')} modules that reach for one",
                      f" {entries(absent, 'PRESENT = {')} names of them are called",
                      f"- A host that answers {commands} commands:"):
            self.assertIn(words, read("docs/otg.md"))

    def test_every_case_of_the_script_is_called_and_every_helper_has_to_fail(self):
        table = read("pfc-user/otg/tests/sonic/cases.py").split("\nCASES = {")[1]
        names = re.findall(r'^    "(\w+)": ', table, re.MULTILINE)
        self.assertEqual([case.name for case in otg.GOOD], names)
        bad = [case.name for case in otg.CASES if case.wrong]
        for helper in ("pause", "valid", "tx_drop", "pfcwd_r", "pfcwd_bu", "pfcwd_ba",
                       "m2o_lossless", "m2o_lossy", "m2o_lossless_lossy", "m2o_fl", "external",
                       "throttling"):
            self.assertTrue(any(name.startswith(helper) for name in bad), helper)


if __name__ == "__main__":
    unittest.main()
