//! Figures of criterion's benchmarks, from the files that it leaves: a folder `new` for each, with
//! its samples.
//!
//! A group called `codec beside copy` has a benchmark `copy`, the baseline for the ratios of the
//! others.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::figure::{Figure, spread};
use crate::files;

#[derive(Deserialize)]
struct Benchmark {
    group_id: String,
    function_id: Option<String>,
    value_str: Option<String>,
}

#[derive(Deserialize)]
struct Sample {
    iters: Vec<f64>,
    /// Nanoseconds for all iterations of each sample.
    times: Vec<f64>,
}

/// Reads all figures below `folder` as those of `bench`; none if criterion was not used.
pub fn figures(bench: &str, folder: &Path) -> Result<Vec<Figure>> {
    let mut found = Vec::new();
    for folder in measured(folder)? {
        let benchmark: Benchmark = read(&folder.join("benchmark.json"))?;
        let sample: Sample = read(&folder.join("sample.json"))?;
        let times: Vec<f64> = sample
            .times
            .iter()
            .zip(&sample.iters)
            .map(|(time, iterations)| time / iterations)
            .collect();
        let Some(spread) = spread(&times) else {
            bail!("{}: there are no samples", folder.display())
        };
        found.push((benchmark, spread));
    }
    Ok(found
        .iter()
        .map(|(benchmark, spread)| figure(bench, benchmark, *spread, &found))
        .collect())
}

type Spread = (f64, f64, f64);

fn figure(
    bench: &str,
    benchmark: &Benchmark,
    (median, min, max): Spread,
    all: &[(Benchmark, Spread)],
) -> Figure {
    let beside = benchmark
        .group_id
        .split_once(" beside ")
        .map(|(_, beside)| beside)
        .filter(|beside| *beside != benchmark.function());
    let other = beside.and_then(|beside| {
        all.iter()
            .find(|(other, _)| other.group_id == benchmark.group_id && other.function() == beside)
            .map(|(_, spread)| spread.0)
    });
    let (scale, unit) = match median {
        ..1e4 => (1.0, "ns"),
        ..1e7 => (1e3, "us"),
        _ => (1e6, "ms"),
    };
    Figure {
        bench: bench.to_owned(),
        name: format!("{}: {}", benchmark.group(), benchmark.function()),
        unit: unit.to_owned(),
        median: median / scale,
        min: min / scale,
        max: max / scale,
        ratio: other.map(|other| median / other),
        ratio_min: None,
        ratio_max: None,
        beside: other.and(beside).map(str::to_owned),
    }
}

impl Benchmark {
    fn group(&self) -> &str {
        self.group_id
            .split_once(" beside ")
            .map_or(&self.group_id, |(group, _)| group)
    }

    /// Name within the group, with its parameter if it has one.
    fn function(&self) -> String {
        [&self.function_id, &self.value_str]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// The folders with samples, sorted by name.
fn measured(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        if !folder.is_dir() {
            continue;
        }
        if folder.file_name().is_some_and(|name| name == "new")
            && folder.join("sample.json").is_file()
        {
            found.push(folder);
            continue;
        }
        open.extend(files::entries(&folder)?);
    }
    found.sort();
    Ok(found)
}

fn read<T: DeserializeOwned>(file: &Path) -> Result<T> {
    serde_json::from_str(&files::read(file)?)
        .with_context(|| format!("{}: is not what criterion writes", file.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn leave(folder: &Path, group: &str, function: &str, times: &str) {
        let folder = folder.join(group).join(function).join("new");
        fs::create_dir_all(&folder).unwrap();
        let benchmark = format!(
            r#"{{"group_id":"{group}","function_id":"{function}","value_str":null,
                "throughput":null}}"#
        );
        fs::write(folder.join("benchmark.json"), benchmark).unwrap();
        fs::write(
            folder.join("sample.json"),
            format!(r#"{{"sampling_mode":"Linear","iters":[1,2,4],"times":{times}}}"#),
        )
        .unwrap();
    }

    #[test]
    fn samples_become_figures_in_relation_to_the_one_of_their_group() {
        let folder = tempfile::tempdir().unwrap();
        leave(folder.path(), "codec beside copy", "copy", "[5.0,8.0,24.0]");
        leave(
            folder.path(),
            "codec beside copy",
            "parse",
            "[15.0,20.0,40.0]",
        );
        leave(folder.path(), "judge", "10^6 arrivals", "[2e6,4e6,1.2e7]");
        let found = figures("host", folder.path()).unwrap();
        let [copy, parse, judge] = &found[..] else {
            panic!("{found:?}")
        };
        assert_eq!(
            (
                copy.name.as_str(),
                copy.unit.as_str(),
                copy.median,
                copy.min,
                copy.max
            ),
            ("codec: copy", "ns", 5.0, 4.0, 6.0)
        );
        assert_eq!((copy.ratio, &copy.beside), (None, &None));
        assert_eq!((parse.name.as_str(), parse.median), ("codec: parse", 10.0));
        assert_eq!(
            (parse.ratio, parse.beside.as_deref()),
            (Some(2.0), Some("copy"))
        );
        assert_eq!(
            (judge.name.as_str(), judge.unit.as_str(), judge.median),
            ("judge: 10^6 arrivals", "us", 2000.0)
        );
        assert_eq!(judge.ratio, None);
    }

    #[test]
    fn without_criterion_there_is_nothing() {
        assert_eq!(figures("wire", Path::new("/nowhere")).unwrap(), []);
    }
}
