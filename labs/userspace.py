"""Setup and demo as a newcomer meets them, in a chroot with a fresh Debian made of packages. The
kernel is this machine's.

A command after `--`, such as bash, runs instead of them on the (first) fresh Debian.
"""


from shared.chroot import INCONCLUSIVE, SUITES, fresh
from shared.steps import Failure, Tally, main, need_root, options_of, step

# A newcomer's first commands, as in docs/getting-started.md.
FIRST = ("apt-get update",
         "apt-get install --no-install-recommends ca-certificates cargo-web git")
# Setup is killed at each of these lines: while dpkg unpacks the largest package, and when cargo
# compiles the linker itself.
KILLED_AT = ("Unpacking rust-web-src ", "Compiling bpf-linker ")
DEMO = "cargo xtask demo --plan smoke"


def newcomer(chroot, suite, tally):
    for line in FIRST:
        chroot.must(f"{line} --yes")
    with tally.trying(f"{suite}: setup"):
        # After each kill the next call continues; in the end nothing is missing.
        for line in KILLED_AT:
            with step(f"cargo xtask setup, killed at `{line}`"):
                chroot.kill_at(["cargo", "xtask", "setup"], line)
        chroot.must("cargo xtask setup")
        chroot.must("cargo xtask setup --no-install")
    status = chroot.conclude(DEMO)
    if status == INCONCLUSIVE:
        tally.skipped.append(f"{suite}: demo: inconclusive on this machine now")
    else:
        tally.check(f"{suite}: demo", status == 0, f"`{DEMO}` ended with {status}")


def lab():
    parser = options_of("userspace", __doc__)
    parser.add_argument("--suite", choices=SUITES, action="append",
                        help="a release of Debian, instead of all one after the other")
    parser.add_argument("command", nargs="*", help="another command than setup and demo")
    options = parser.parse_args()
    need_root("a chroot")
    suites = options.suite or SUITES
    if options.command:
        with fresh(suites[0]) as chroot:
            return chroot.run(*options.command)
    tally = Tally()
    for suite in suites:
        before = len(tally.failed)
        try:
            with fresh(suite) as chroot:
                newcomer(chroot, suite, tally)
                if len(tally.failed) > before:
                    raise Failure("failed, as said above")
        except Failure as error:
            if len(tally.failed) == before:
                tally.failed.append(f"{suite}: {error}")
    return tally.close()


if __name__ == "__main__":
    main(lab)
