//! Prometheus of Debian's package, asked over HTTP.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::network::{Host, Network};
use super::wait_for;
use crate::lab::archive::{Archive, cannot_write};
use crate::lab::packages::Tree;

/// Prometheus' own port, of the hub's loopback address.
const ADDRESS: ([u8; 4], u16) = ([127, 0, 0, 1], 9090);
/// For an answer to come.
const PATIENCE: Duration = Duration::from_secs(10);
/// Labels that tell one alert from another.
const LABELS: [&str; 5] = ["instance", "interface", "pair", "priority", "reason"];

/// Where it listens.
pub fn address() -> SocketAddr {
    SocketAddr::from(ADDRESS)
}

/// A running Prometheus.
pub struct Server {
    child: Child,
    folder: PathBuf,
}

/// A sample: its labels and its value.
pub struct Sample {
    pub labels: Value,
    pub value: f64,
}

/// Its program, fetched where it is not at hand yet: from where packages can be reached, which is not
/// the fleet's network.
pub fn program() -> Result<PathBuf> {
    Tree::prometheus(&Archive::open()?)?.program("prometheus")
}

impl Server {
    /// Starts it with the configuration in `folder`, where its data and its log go too.
    pub fn start(program: &Path, network: &Network, folder: &Path) -> Result<Self> {
        let log = folder.join("prometheus.log");
        let log = File::create(&log).with_context(|| cannot_write(&log))?;
        let mut command = network.hub().bound(&program.display().to_string());
        command
            .arg("--config.file=prometheus.yml")
            .arg("--storage.tsdb.path=data")
            .arg("--log.level=warn")
            .arg(format!("--web.listen-address={}", address()))
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let child = command.spawn().context("cannot run Prometheus")?;
        let mut server = Self {
            child,
            folder: folder.to_owned(),
        };
        wait_for("Prometheus to be ready", || server.is_ready())?;
        Ok(server)
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes a file of targets, in one go: Prometheus reads it as soon as it changes. A target is
    /// a host and the name that it goes by; without a name, by its address.
    pub fn add_targets(&self, file: &str, targets: &[(Host, Option<String>)]) -> Result<()> {
        let targets: Vec<_> = targets
            .iter()
            .map(|(host, name)| {
                let labels = name
                    .as_ref()
                    .map_or(json!({}), |name| json!({ "instance": name }));
                json!({ "targets": [host.address().to_string()], "labels": labels })
            })
            .collect();
        let folder = self.folder.join("targets");
        let (work, path) = (folder.join("new"), folder.join(file));
        fs::write(&work, json!(targets).to_string()).with_context(|| cannot_write(&work))?;
        fs::rename(&work, &path).with_context(|| cannot_write(&path))
    }

    /// Result of a query.
    pub fn query(&mut self, query: &str) -> Result<Vec<Sample>> {
        let data = self.api(&format!("query?query={}", encoded(query)))?;
        let samples = data["result"].as_array().cloned().unwrap_or_default();
        samples
            .into_iter()
            .map(|sample| {
                let value = sample["value"][1]
                    .as_str()
                    .and_then(|value| value.parse().ok());
                Ok(Sample {
                    labels: sample["metric"].clone(),
                    value: value.with_context(|| format!("{query}: not a number: {sample}"))?,
                })
            })
            .collect()
    }

    /// The one number that a query has, 0 without any.
    pub fn number(&mut self, query: &str) -> Result<f64> {
        let samples = self.query(query)?;
        Ok(samples.first().map_or(0.0, |sample| sample.value))
    }

    /// Alerts that wait for their time, and those that fire.
    pub fn alerts(&mut self) -> Result<(BTreeSet<String>, BTreeSet<String>)> {
        let data = self.api("alerts")?;
        let alerts = data["alerts"].as_array().cloned().unwrap_or_default();
        let (firing, pending): (Vec<_>, Vec<_>) =
            alerts.iter().partition(|alert| alert["state"] == "firing");
        let names = |alerts: Vec<&Value>| {
            let named = alerts.iter().map(|alert| named(&alert["labels"]));
            named.collect::<BTreeSet<_>>()
        };
        Ok((names(pending), names(firing)))
    }

    /// Every alert that has fired at any evaluation.
    pub fn fired_ever(&mut self) -> Result<BTreeSet<String>> {
        let fired = self.query("count_over_time(ALERTS{alertstate=\"firing\"}[1h])")?;
        Ok(fired.iter().map(|sample| named(&sample.labels)).collect())
    }

    /// The data of an answer.
    fn api(&mut self, path: &str) -> Result<Value> {
        self.runs()?;
        let (_, body) = fetch(address(), &format!("/api/v1/{path}"))?;
        let answer: Value = serde_json::from_str(&body)
            .with_context(|| format!("Prometheus answers to {path}: {body}"))?;
        if answer["status"] != "success" {
            bail!("Prometheus refuses {path}: {body}");
        }
        Ok(answer["data"].clone())
    }

    /// An error with its log once it has ended.
    fn runs(&mut self) -> Result<()> {
        let Some(status) = self.child.try_wait()? else {
            return Ok(());
        };
        let log = self.folder.join("prometheus.log");
        let log = fs::read_to_string(log).unwrap_or_default();
        bail!("Prometheus ended with {status}:\n{log}");
    }

    /// True once it has read its files and answers queries; else what it says.
    fn is_ready(&mut self) -> Result<Result<(), String>> {
        self.runs()?;
        match fetch(address(), "/-/ready") {
            Ok((status, _)) if status == "200" => Ok(Ok(())),
            Ok((status, body)) => Ok(Err(format!("{status} {body}"))),
            Err(error) if refused(&error) => Ok(Err("it does not listen yet".into())),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An alert with the labels that tell where it is.
fn named(labels: &Value) -> String {
    let own = LABELS
        .iter()
        .filter_map(|name| Some(format!("{name}={}", labels[*name].as_str()?)));
    let name = labels["alertname"]
        .as_str()
        .unwrap_or("an alert without a name");
    format!("{name} {}", own.collect::<Vec<_>>().join(" "))
}

/// Body of a page that is there.
pub fn get(address: SocketAddr, path: &str) -> Result<String> {
    let (status, body) = fetch(address, path)?;
    if status != "200" {
        bail!("http://{address}{path}: expected 200, found {status}: {body}");
    }
    Ok(body)
}

/// Status and body of a page.
fn fetch(address: SocketAddr, path: &str) -> Result<(String, String)> {
    let cannot = || format!("http://{address}{path}");
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).with_context(cannot)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    // With this version no answer comes in chunks.
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").with_context(cannot)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).with_context(cannot)?;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .with_context(|| format!("{}: expected a head, found {answer:?}", cannot()))?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    Ok((status.to_owned(), body.to_owned()))
}

fn refused(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
}

/// A query as a part of an address (RFC 3986, 2.1).
fn encoded(text: &str) -> String {
    let octet = |octet: u8| match octet {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
            char::from(octet).to_string()
        }
        _ => format!("%{octet:02X}"),
    };
    text.bytes().map(octet).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_is_named_by_where_it_is() {
        let labels = json!({ "alertname": "A", "severity": "x", "priority": "3", "instance": "h" });
        assert_eq!(named(&labels), "A instance=h priority=3");
    }

    #[test]
    fn a_query_is_encoded() {
        assert_eq!(encoded("a{b=\"c\"}[1h]"), "a%7Bb%3D%22c%22%7D%5B1h%5D");
    }
}
