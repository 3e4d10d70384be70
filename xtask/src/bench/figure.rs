//! Output of a benchmark, one JSON object per line: a figure, or what was skipped and why.
//!
//! ```json
//! {"bench":"program","name":"classify","unit":"ns","median":8.1,"min":8.0,"max":9.2}
//! {"bench":"wire","name":"trafgen","skipped":"not installed (package netsniff-ng)"}
//! ```
//!
//! A ratio to another figure of the run adds `"ratio":1.35,"beside":"drop"`.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

/// A measured figure: the median of repeats and their range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The benchmark that measured it.
    pub bench: String,
    /// Name; unique within the benchmark.
    pub name: String,
    /// Unit, such as `ns`, `Mpps` or `%`.
    pub unit: String,
    pub median: f64,
    pub min: f64,
    pub max: f64,
    /// Median of the ratio to another figure of the same run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_min: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_max: Option<f64>,
    /// The figure that the ratio refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
}

/// A measurement that is impossible here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    pub bench: String,
    pub name: String,
    /// Reason.
    pub skipped: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Line {
    Skipped(Skipped),
    Figure(Figure),
}

/// Reads the lines of a file; none if the file does not exist.
pub fn read(file: &Path) -> Result<Vec<Line>> {
    match fs::read_to_string(file) {
        Ok(text) => parse(&text).with_context(|| file.display().to_string()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
}

fn parse(text: &str) -> Result<Vec<Line>> {
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(parse_line)
        .collect()
}

fn parse_line(line: &str) -> Result<Line> {
    let parsed = serde_json::from_str(line)
        .with_context(|| format!("expected a figure or what was skipped, found {line}"))?;
    if let Line::Figure(figure) = &parsed
        && !(figure.min <= figure.median && figure.median <= figure.max)
    {
        bail!("expected a median between the least and the greatest value, found {line}");
    }
    Ok(parsed)
}

/// Returns median, least and greatest of `values`; `None` if there are none.
pub fn spread(values: &[f64]) -> Option<(f64, f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let median = match sorted.len() {
        0 => return None,
        odd if odd % 2 == 1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    };
    Some((median, sorted[0], *sorted.last()?))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn figure(bench: &str, name: &str, median: f64, ratio: Option<f64>) -> Figure {
        let beside = ratio.map(|_| "drop".to_owned());
        let (bench, name, unit) = (bench.to_owned(), name.to_owned(), "ns".to_owned());
        Figure {
            bench,
            name,
            unit,
            median,
            min: median,
            max: median,
            ratio,
            ratio_min: None,
            ratio_max: None,
            beside,
        }
    }

    #[test]
    fn lines_are_figures_or_skips() {
        let text = concat!(
            r#"{"bench":"program","name":"classify","unit":"ns","median":8.5,"min":8,"max":9.25,"#,
            r#""ratio":1.5,"beside":"drop"}"#,
            "\n\n",
            r#"{"bench":"storm","name":"gap","unit":"us","median":14,"min":13,"max":90}"#,
            "\n",
            r#"{"bench":"wire","name":"trafgen","skipped":"not installed"}"#,
            "\n",
        );
        let classify = Figure {
            min: 8.0,
            max: 9.25,
            ..figure("program", "classify", 8.5, Some(1.5))
        };
        let gap = Figure {
            unit: "us".into(),
            min: 13.0,
            max: 90.0,
            ..figure("storm", "gap", 14.0, None)
        };
        let skipped = Skipped {
            bench: "wire".into(),
            name: "trafgen".into(),
            skipped: "not installed".into(),
        };
        assert_eq!(
            parse(text).unwrap(),
            [
                Line::Figure(classify),
                Line::Figure(gap),
                Line::Skipped(skipped)
            ]
        );
    }

    #[test]
    fn a_line_of_another_make_is_an_error_that_shows_it() {
        for line in [
            r#"{"bench":"program","name":"classify"}"#,
            "median 8",
            r#"{"bench":"a","name":"b","unit":"ns","median":9,"min":1,"max":8}"#,
        ] {
            let error = format!("{:#}", parse(line).unwrap_err());
            assert!(error.contains(line), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_has_no_lines() {
        assert_eq!(read(Path::new("/nowhere/figures.jsonl")).unwrap(), []);
    }

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert_eq!(spread(&[5.0, 1.0, 3.0]), Some((3.0, 1.0, 5.0)));
        assert_eq!(spread(&[4.0, 1.0, 3.0, 10.0]), Some((3.5, 1.0, 10.0)));
        assert_eq!(spread(&[]), None);
    }
}
