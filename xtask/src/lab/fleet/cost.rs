//! What a fleet of 1,000 costs: Prometheus with the published configuration as it is, and 1,000
//! targets. Each of the 20 exporters is scraped under 50 names, so that Prometheus has the work and
//! the series of 1,000, and an exporter shows the cost of a scrape 50 times over.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::unistd::{SysconfVar, sysconf};

use super::network::{HOSTS, Host};
use super::{Fleet, await_count, server};
use crate::step::step;

/// The fleet that is stood for.
const TARGETS: usize = 1000;
/// For the exporters by themselves to be read.
const IDLE: Duration = Duration::from_secs(5);

/// CPU time of a process so far, and its memory.
struct Usage {
    cpu_seconds: f64,
    rss_octets: f64,
}

impl Usage {
    fn of(pid: u32) -> Result<Self> {
        let read = |name: &str| {
            let path = format!("/proc/{pid}/{name}");
            fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
        };
        let ticks = sysconf(SysconfVar::CLK_TCK)?.context("the length of a clock tick")?;
        let stat = read("stat")?;
        let status = read("status")?;
        Ok(Self {
            cpu_seconds: ticks_of(&stat).context("/proc/PID/stat is not understood")? as f64
                / ticks as f64,
            rss_octets: resident(&status).context("/proc/PID/status has no VmRSS")?,
        })
    }
}

/// Ticks of user and system time. The name in parentheses before them may have spaces.
fn ticks_of(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + system)
}

fn resident(status: &str) -> Option<f64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024.0)
}

/// Usage of all exporters together.
fn exporters(fleet: &Fleet<'_>) -> Result<Usage> {
    let mut sum = Usage {
        cpu_seconds: 0.0,
        rss_octets: 0.0,
    };
    for exporter in &fleet.exporters {
        let usage = Usage::of(exporter.pid())?;
        sum.cpu_seconds += usage.cpu_seconds;
        sum.rss_octets += usage.rss_octets;
    }
    Ok(sum)
}

/// Prints the table.
pub fn measure(root: &Path, prometheus: &Path, seconds: u64) -> Result<()> {
    let fleet = &mut Fleet::start(root, prometheus)?;
    let idle = step("exporters that nobody scrapes", || {
        let (before, start) = (exporters(fleet)?, Instant::now());
        thread::sleep(IDLE);
        let used = exporters(fleet)?.cpu_seconds - before.cpu_seconds;
        Ok(used / start.elapsed().as_secs_f64() / HOSTS as f64)
    })?;
    let targets: Vec<_> = (0..TARGETS)
        .map(|number| {
            let host = Host::new(1 + number % HOSTS);
            (
                host,
                Some(format!("host-{number:04}:{}", host.address().port())),
            )
        })
        .collect();
    step(&format!("Prometheus with {TARGETS} targets"), || {
        let server = fleet.start_server(1)?;
        server.add_targets("fleet.json", &targets)?;
        await_count(server, "up == 1", TARGETS)
    })?;
    let figures = step(&format!("{seconds} s"), || window(fleet, seconds))?;
    print(&figures, idle);
    Ok(())
}

/// What was read.
struct Figures {
    seconds: f64,
    scrapes: f64,
    samples: f64,
    series: f64,
    wal_octets: f64,
    body_octets: usize,
    scrape_seconds: f64,
    rules_seconds: f64,
    server: Usage,
    exporters: Usage,
}

/// Reads usage and Prometheus' own counts over some time.
fn window(fleet: &mut Fleet<'_>, seconds: u64) -> Result<Figures> {
    let pid = fleet.server().pid();
    let wal = |folder: &Path| size(&folder.join("data/wal"));
    let (server, own, wal_before) = (Usage::of(pid)?, exporters(fleet)?, wal(&fleet.folder)?);
    let start = Instant::now();
    thread::sleep(Duration::from_secs(seconds));
    let (server_after, own_after) = (Usage::of(pid)?, exporters(fleet)?);
    let (elapsed, wal_after) = (start.elapsed().as_secs_f64(), wal(&fleet.folder)?);
    let body = server::get(Host::new(1).address().into(), "/metrics")?;
    let ask = fleet.server();
    Ok(Figures {
        seconds: elapsed,
        scrapes: ask.number(&format!("sum(count_over_time(up[{seconds}s]))"))?,
        samples: ask.number("avg(scrape_samples_scraped)")?,
        series: ask.number("count({__name__=~\".+\"})")?,
        wal_octets: wal_after - wal_before,
        body_octets: body.len(),
        scrape_seconds: ask.number("quantile(0.99, scrape_duration_seconds)")?,
        rules_seconds: rules_seconds()?,
        server: Usage {
            cpu_seconds: server_after.cpu_seconds - server.cpu_seconds,
            rss_octets: server_after.rss_octets,
        },
        exporters: Usage {
            cpu_seconds: own_after.cpu_seconds - own.cpu_seconds,
            rss_octets: own_after.rss_octets,
        },
    })
}

/// Time that Prometheus took for its rules, all groups together, when it last did.
fn rules_seconds() -> Result<f64> {
    let metrics = server::get(server::address(), "/metrics")?;
    let durations = metrics
        .lines()
        .filter(|line| line.starts_with("prometheus_rule_group_last_duration_seconds{"))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    Ok(durations.sum())
}

/// Octets of the files in a folder.
fn size(folder: &Path) -> Result<f64> {
    let cannot = || format!("cannot read {}", folder.display());
    let mut octets = 0.0;
    for entry in fs::read_dir(folder).with_context(cannot)? {
        octets += entry?.metadata()?.len() as f64;
    }
    Ok(octets)
}

fn print(figures: &Figures, idle: f64) {
    let Figures {
        seconds, scrapes, ..
    } = figures;
    let server_share = figures.server.cpu_seconds / seconds;
    // Without what the exporters do by themselves.
    let by_scrapes = figures.exporters.cpu_seconds - idle * seconds * HOSTS as f64;
    let a_scrape = by_scrapes / scrapes;
    let in_all = scrapes * figures.samples;
    println!("{TARGETS} targets each 15 s, {HOSTS} exporters of 3 ports, {seconds:.0} s\n");
    println!("| figure | value |\n|---|---|");
    let row = |name: &str, value: String| println!("| {name} | {value} |");
    row("scrapes a second", format!("{:.1}", scrapes / seconds));
    row("samples of a scrape", format!("{:.0}", figures.samples));
    row(
        "octets of a scrape",
        format!("{:.1} kB", figures.body_octets as f64 / 1e3),
    );
    row(
        "99 of 100 scrapes within",
        format!("{:.1} ms", figures.scrape_seconds * 1e3),
    );
    row(
        "series, with those of the rules",
        format!("{:.0}", figures.series),
    );
    row(
        "Prometheus: share of a CPU",
        format!("{:.1} %", server_share * 100.0),
    );
    row(
        "Prometheus: an evaluation of all rules",
        format!("{:.2} s", figures.rules_seconds),
    );
    row(
        "Prometheus: memory",
        format!(
            "{:.0} MB, {:.1} kB a series",
            figures.server.rss_octets / 1e6,
            figures.server.rss_octets / figures.series / 1e3
        ),
    );
    row(
        "Prometheus: write-ahead log",
        format!(
            "{:.0} kB a second, {:.1} octets a scraped sample",
            figures.wal_octets / seconds / 1e3,
            figures.wal_octets / in_all
        ),
    );
    row(
        "exporter: CPU of a scrape",
        format!("{:.2} ms", a_scrape * 1e3),
    );
    row(
        "exporter: share of a CPU, scraped each 15 s",
        format!(
            "{:.3} %, of which {:.3} % unscraped",
            (idle + a_scrape / 15.0) * 100.0,
            idle * 100.0
        ),
    );
    row(
        "exporter: memory",
        format!(
            "{:.1} MB",
            figures.exporters.rss_octets / HOSTS as f64 / 1e6
        ),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_read_from_proc() {
        let stat = "12 (a b) c) S 1 12 12 0 -1 4194304 1 0 0 0 250 50 7 7 20 0 1 0 99 1 1";
        assert_eq!(ticks_of(stat), Some(300));
        assert_eq!(ticks_of("12 a"), None);
        assert_eq!(resident("VmSize:\t9 kB\nVmRSS:\t  2 kB\n"), Some(2048.0));
        assert_eq!(resident("VmSize:\t9 kB\n"), None);
    }

    /// The page's calculation begins with them.
    #[test]
    fn the_page_calculates_with_the_samples_that_a_port_has() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
        let golden = read("pfc-user/src/watch/prometheus/golden.txt");
        let samples: Vec<_> = golden
            .lines()
            .filter(|line| line.contains("interface="))
            .collect();
        let with = |label: &str| {
            let label = format!(",{label}=");
            samples.iter().filter(|line| line.contains(&label)).count()
        };
        // Those alone that were met have samples.
        let of_port = samples.len() - with("dscp") - with("opcode");
        let [priority, pcp] = ["priority", "pcp"].map(with);
        let page = read("docs/fleet.md").replace('\n', " ").replace("  ", " ");
        for words in [
            format!(
                "has {of_port} samples: {priority} are 6 counts by priority, {pcp} are 2 by PCP"
            ),
            format!("and {} are others.", of_port - priority - pcp),
            format!("3 ports x ({of_port} + 4) = {}", 3 * (of_port + 4)),
            format!(
                "32 ports has {},{:03} samples",
                32 * of_port / 1000,
                32 * of_port % 1000
            ),
        ] {
            assert!(page.contains(&words), "docs/fleet.md: {words}");
        }
    }

    #[test]
    fn this_process_uses_memory() {
        let usage = Usage::of(std::process::id()).unwrap();
        assert!(usage.rss_octets > 1e5);
    }
}
