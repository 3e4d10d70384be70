//! The services under systemd itself, booted as the first process of a container: with every right
//! taken away that their units take away, `watch` counts, the agent reads its token, and the OTG
//! server sends, is killed, and is put back after.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::lab::userspace::{self, chroot::Chroot};
use crate::step::{self, step};

/// Makes a system of the folder `$0`, with an interface `t0`, and boots it.
const BOOT: &str = r#"
    mount --make-rprivate /
    mount --bind "$0" "$0"
    mount -t proc proc "$0/proc"
    mount -t sysfs sysfs "$0/sys"
    mount -t cgroup2 cgroup2 "$0/sys/fs/cgroup"
    mount -t tmpfs run "$0/run"
    mount -t tmpfs dev "$0/dev"
    for name in null zero full random urandom tty; do
        touch "$0/dev/$name"
        mount --bind "/dev/$name" "$0/dev/$name"
    done
    mkdir "$0/dev/pts" "$0/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666 devpts "$0/dev/pts"
    ln -s pts/ptmx "$0/dev/ptmx"
    ln -s /proc/self/fd "$0/dev/fd"
    ip link set lo up
    ip link add t0 type veth peer name t1
    ip link set t0 up
    ip link set t1 up
    mkdir -p "$0/old"
    cd "$0"
    pivot_root . old
    umount --lazy /old
    # Credentials reach a service by mounts that spread to others.
    mount --make-rshared /
    exec env -i PATH=/usr/sbin:/usr/bin container=other /lib/systemd/systemd --unit=try.service
"#;

/// Runs the script, and ends the system with it.
const UNIT: &str = "\
[Unit]
SuccessAction=exit-force
FailureAction=exit-force
[Service]
Type=oneshot
TimeoutStartSec=60
ExecStart=/bin/bash /root/try.sh
StandardOutput=file:/root/tried
StandardError=file:/root/tried.log
";

/// No udev is there to name devices to systemd. Polls for what sends no event.
const TRY: &str = r#"
set -euo pipefail
units=/usr/lib/systemd/system
sed '/^BindsTo=/d; /^After=sys-/d' "$units/validator-watch@.service" \
    > /etc/systemd/system/validator-watch@.service
mkdir -p /etc/validator /etc/systemd/system/validator-agent.service.d
printf '[Service]\nRestart=no\nStandardError=file:/root/agent.log\n' \
    > /etc/systemd/system/validator-agent.service.d/try.conf
(umask 077; echo token > /etc/validator/agent.token)
systemctl daemon-reload
systemctl start validator-watch@t0
until exec 3<>/dev/tcp/127.0.0.1/9477; do
    systemctl is-active --quiet validator-watch@t0
    sleep 0.1
done 2>/dev/null
printf 'GET /metrics HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n' >&3
grep -q '^validator_frames_total{interface="t0"' <&3
echo "watch serves its counts"
systemctl stop validator-watch@t0
[ "$(systemctl show --property=Result --value validator-watch@t0)" = success ]
echo "watch stops without an error"
# Without an adapter it ends, after it has read its token: at times before systemd sees it started.
systemctl start validator-agent || true
while systemctl is-active --quiet validator-agent; do
    sleep 0.1
done
grep -q 'RDMA device' /root/agent.log
echo "the agent has its token"
# Asks the server, and says whether its answer has a line like the last argument.
ask() {
    exec 4<>/dev/tcp/127.0.0.1/8443
    printf '%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s' \
        "$1" "${#2}" "$2" >&4
    grep -c "$3" <&4 >/dev/null
}
systemctl start validator-otg
until exec 4<>/dev/tcp/127.0.0.1/8443; do
    systemctl is-active --quiet validator-otg
    sleep 0.1
done 2>/dev/null
ask 'POST /config' '{"ports": [{"name": "t0", "location": "t0"}, {"name": "t1", "location": "t1"}],
    "layer1": [{"name": "l", "port_names": ["t0", "t1"], "speed": "speed_1_gbps", "mtu": 1400}],
    "flows": [{"name": "f", "tx_rx": {"choice": "port", "port": {"tx_name": "t0", "rx_name": "t1"}},
        "packet": [{"choice": "ethernet"}, {"choice": "ipv4"}, {"choice": "udp"}],
        "duration": {"choice": "fixed_packets", "fixed_packets": {"packets": 100}},
        "metrics": {"enable": true}}]}' '^HTTP/1.1 200'
ask 'POST /control/state' \
    '{"choice": "traffic", "traffic": {"flow_transmit": {"state": "start"}}}' '^HTTP/1.1 200'
until ask 'POST /monitor/metrics' '{"choice": "flow"}' '"frames_rx":100[,}]'; do
    systemctl is-active --quiet validator-otg
    sleep 0.1
done
echo "the OTG server sends and counts"
[ "$(cat /sys/class/net/t0/mtu)" = 1400 ]
systemctl kill --signal=SIGKILL validator-otg
until [ "$(cat /sys/class/net/t0/mtu)" = 1500 ]; do
    sleep 0.1
done
echo "and is put back after where it was killed"
"#;
const EXPECTED: &str = "\
watch serves its counts
watch stops without an error
the agent has its token
the OTG server sends and counts
and is put back after where it was killed
";

/// Starts the services on a Debian that has systemd.
pub fn start(debian: &Chroot) -> Result<()> {
    fs::write(debian.path("/root/try.sh"), TRY)?;
    fs::write(debian.path("/etc/systemd/system/try.service"), UNIT)?;
    let mut boot = userspace::bound();
    boot.args(["--net", "--ipc", "--uts", "--cgroup", "--"])
        .args(["sh", "-euc", BOOT])
        .arg(debian.path("/"));
    // The system's own end says nothing of the script's.
    let ended = step("the services, under systemd", || {
        boot.status()
            .with_context(|| format!("cannot run {}", step::show(&boot)))
    })?;
    let read = |path: &str| fs::read_to_string(debian.path(path)).unwrap_or_default();
    let tried = read("/root/tried");
    if tried != EXPECTED {
        bail!(
            "the services under systemd ({ended}): expected {EXPECTED:?}, found {tried:?}; {} {}",
            read("/root/tried.log"),
            read("/root/agent.log")
        );
    }
    for path in [
        "/etc/systemd/system/validator-watch@.service",
        "/etc/systemd/system/validator-agent.service.d",
        "/etc/validator",
    ] {
        remove(&debian.path(path))?;
    }
    Ok(())
}

fn remove(path: &Path) -> Result<()> {
    let removed = if path.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    removed.with_context(|| format!("cannot remove {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::env;
    use std::process::Command;

    use super::*;
    use crate::dist::deb;

    /// Calls of systemctl by the package's script, with a program in its place that notes them.
    fn calls(argument: &str) -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let noted = folder.path().join("noted");
        let stub = folder.path().join("systemctl");
        fs::write(
            &stub,
            format!("#!/bin/sh\necho \"$@\" >> {}\n", noted.display()),
        )
        .unwrap();
        deb::make_executable(&stub).unwrap();
        let path = env::join_paths(
            [folder.path().to_owned()]
                .into_iter()
                .chain(env::split_paths(&env::var_os("PATH").unwrap())),
        );
        let mut script = Command::new("sh");
        script.arg(root.join("configs/debian/prerm")).arg(argument);
        let status = script.env("PATH", path.unwrap()).status().unwrap();
        assert!(status.success());
        fs::read_to_string(noted).unwrap_or_default()
    }

    #[test]
    fn every_unit_is_disabled_when_the_package_is_removed_and_by_no_upgrade() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let units = crate::dist::names(&root.join("configs/systemd")).unwrap();
        let calls_of_removal = calls("remove");
        let disabled = calls_of_removal
            .lines()
            .find_map(|line| line.strip_prefix("disable "));
        let disabled: BTreeSet<_> = disabled.unwrap_or_default().split(' ').collect();
        assert_eq!(disabled, units.iter().map(String::as_str).collect());
        assert_eq!(calls("upgrade"), "");
    }
}
