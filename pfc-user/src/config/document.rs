//! A TOML document that knows the place of each value, so that every error names file, line, column
//! and key.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use super::ConfigError;

/// A parsed file with the `--set` arguments applied to it.
#[derive(Clone)]
pub(super) struct Document<'a> {
    file: &'a str,
    text: &'a str,
    root: Spanned<DeTable<'a>>,
    /// `--set` arguments in their order. Values of argument n carry a span that starts at
    /// `text.len() + 1 + n`, beyond every span of the file.
    sets: Vec<&'a str>,
}

impl<'a> Document<'a> {
    /// Parses `text`; `file` is its name in errors.
    pub fn parse(file: &'a str, text: &'a str) -> Result<Self, ConfigError> {
        let root = DeTable::parse(text).map_err(|error| {
            let start = error.span().map_or(text.len(), |span| span.start);
            let line = text
                .lines()
                .nth(text[..start].matches('\n').count())
                .unwrap_or_default()
                .trim();
            ConfigError::At {
                place: place(file, text, start),
                problem: format!("{} in `{line}`", error.message()),
                key: String::new(),
            }
        })?;
        Ok(Self {
            file,
            text,
            root,
            sets: Vec::new(),
        })
    }

    /// The file's text, followed by the `--set` arguments as comments.
    pub fn record(&self) -> String {
        let mut record = self.text.to_owned();
        for set in &self.sets {
            record.push_str(&format!("# --set {set}\n"));
        }
        record
    }

    /// Sets the key at `path` (dotted) to another value: TOML, or otherwise a string without
    /// quotes.
    pub fn set(
        &mut self,
        path: &'a str,
        value: &'a str,
        argument: &'a str,
    ) -> Result<(), ConfigError> {
        let wrong = |problem: String| ConfigError::Argument {
            argument: format!("--set {argument}"),
            problem,
        };
        let start = self.text.len() + 1 + self.sets.len();
        let span = start..start + 1;
        let value = DeValue::parse(value)
            .map_or_else(|_| DeValue::String(value.into()), Spanned::into_inner);
        let value = respan(value, &span);

        let mut keys: Vec<&str> = path.split('.').collect();
        let last = keys
            .pop()
            .filter(|key| !key.is_empty())
            .ok_or_else(|| wrong("expected a key before `=`".to_owned()))?;
        let mut table = self.root.get_mut();
        for key in keys {
            let entry = table
                .entry(Spanned::new(span.clone(), Cow::Borrowed(key)))
                .or_insert_with(|| Spanned::new(span.clone(), DeValue::Table(DeTable::new())));
            let kind = entry.get_ref().type_str();
            let DeValue::Table(inner) = entry.get_mut() else {
                return Err(wrong(format!("`{key}` is no table but of type {kind}")));
            };
            table = inner;
        }
        table.insert(Spanned::new(span, Cow::Borrowed(last)), value);
        self.sets.push(argument);
        Ok(())
    }

    /// Decodes the document as a `T`.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        T::deserialize(Deserializer::from(self.root.clone())).map_err(|error| {
            let span = error.span().unwrap_or_else(|| self.root.span());
            // The root has no key.
            let is_root = span == self.root.span();
            let key = (!is_root).then(|| key_at(self.root.get_ref(), span.start));
            let key = key.flatten().unwrap_or_default();
            let key = key.trim_start_matches('.').to_owned();
            // A `--set` argument already names its own.
            let named = if span.start > self.text.len() {
                ""
            } else {
                &key
            };
            // The parser's wording if the value is not one of a fixed set of words.
            let problem = error
                .message()
                .replace("wanted string or table", "expected a string");
            let problem = of_key(named, &problem);
            self.at(span.start, key, problem)
        })
    }

    /// Makes an error about the value at `key`, such as `case[1].repetitions[0].lossless`. If it is
    /// absent, the error names the closest table that would hold it.
    pub fn error(&self, key: &str, problem: impl AsRef<str>) -> ConfigError {
        let (start, _) = self.find(key);
        self.at(start, key.to_owned(), of_key(key, problem.as_ref()))
    }

    /// Takes out what stands at `key`, or puts `substitute` (TOML) in its place. False if there is
    /// nothing to take out.
    pub fn replace(&mut self, key: &str, substitute: Option<&'a str>) -> bool {
        let steps: Vec<&str> = steps(key).collect();
        replace(self.root.get_mut(), &steps, substitute)
    }

    /// True if something stands at `key`.
    pub fn has(&self, key: &str) -> bool {
        self.find(key).1
    }

    /// Start of the value at `key`, or of the closest table that would hold it; and whether it is
    /// there.
    fn find(&self, key: &str) -> (usize, bool) {
        let mut found: Option<&Spanned<DeValue>> = None;
        for step in steps(key) {
            let child = match found.map(Spanned::get_ref) {
                None => self.root.get_ref().get(step),
                Some(DeValue::Table(table)) => table.get(step),
                Some(DeValue::Array(array)) => {
                    step.parse().ok().and_then(|at: usize| array.get(at))
                }
                Some(_) => None,
            };
            if child.is_none() {
                return (found.map_or(0, |found| found.span().start), false);
            }
            found = child;
        }
        (found.map_or(0, |found| found.span().start), true)
    }

    fn at(&self, start: usize, key: String, problem: String) -> ConfigError {
        let place = match start
            .checked_sub(self.text.len() + 1)
            .and_then(|index| self.sets.get(index))
        {
            Some(argument) => format!("--set {argument}"),
            None => place(self.file, self.text, start),
        };
        ConfigError::At {
            place,
            problem,
            key,
        }
    }
}

/// The names and numbers that lead to a key.
fn steps(key: &str) -> impl Iterator<Item = &str> {
    key.split(['.', '[', ']']).filter(|step| !step.is_empty())
}

fn of_key(key: &str, problem: &str) -> String {
    if key.is_empty() {
        problem.to_owned()
    } else {
        format!("{key}: {problem}")
    }
}

/// Replaces what is below `table` at the place that `steps` lead to.
fn replace<'a>(table: &mut DeTable<'a>, steps: &[&str], substitute: Option<&'a str>) -> bool {
    let [step, rest @ ..] = steps else {
        return false;
    };
    let key = || Spanned::new(0..0, Cow::Owned((*step).to_owned()));
    if rest.is_empty() {
        let value = substitute.and_then(|text| DeValue::parse(text).ok());
        return match value {
            Some(value) => table
                .insert(key(), respan(value.into_inner(), &(0..0)))
                .is_none(),
            None => table.remove(*step).is_some(),
        };
    }
    if substitute.is_some() && !table.contains_key(*step) {
        let empty = DeValue::Table(DeTable::new());
        table.insert(key(), Spanned::new(0..0, empty));
    }
    match table.get_mut(*step).map(Spanned::get_mut) {
        Some(DeValue::Table(inner)) => replace(inner, rest, substitute),
        // All of a list of values goes: without one of them, their numbers would change.
        Some(DeValue::Array(items)) if substitute.is_none() => {
            let index = rest[0].parse::<usize>().ok();
            let item = index.and_then(|index| items.get_mut(index));
            match (item.map(Spanned::get_mut), &rest[1..]) {
                (Some(DeValue::Table(inner)), rest @ [_, ..]) => replace(inner, rest, None),
                _ => table.remove(*step).is_some(),
            }
        }
        _ => false,
    }
}

/// Gives `value` and everything in it the span `span`.
fn respan<'a>(value: DeValue<'a>, span: &Range<usize>) -> Spanned<DeValue<'a>> {
    let value = match value {
        DeValue::Array(array) => DeValue::Array(
            array
                .into_iter()
                .map(|item| respan(item.into_inner(), span))
                .collect(),
        ),
        DeValue::Table(table) => DeValue::Table(
            table
                .into_iter()
                .map(|(key, item)| {
                    (
                        Spanned::new(span.clone(), key.into_inner()),
                        respan(item.into_inner(), span),
                    )
                })
                .collect(),
        ),
        other => other,
    };
    Spanned::new(span.clone(), value)
}

/// Finds the innermost key whose name or value spans `offset`; a dot stands before each name. A
/// table's span covers its header only, so every branch is searched.
fn key_at(table: &DeTable<'_>, offset: usize) -> Option<String> {
    table.iter().find_map(|(name, value)| {
        let here = name.span().contains(&offset).then(String::new);
        let inner = here.or_else(|| key_in(value, offset))?;
        Some(format!(".{}{inner}", name.get_ref()))
    })
}

fn key_in(value: &Spanned<DeValue<'_>>, offset: usize) -> Option<String> {
    let inner = match value.get_ref() {
        DeValue::Table(table) => key_at(table, offset),
        DeValue::Array(array) => array.iter().enumerate().find_map(|(index, item)| {
            let inner = key_in(item, offset)?;
            Some(format!("[{index}]{inner}"))
        }),
        _ => None,
    };
    inner.or_else(|| value.span().contains(&offset).then(String::new))
}

fn place(file: &str, text: &str, offset: usize) -> String {
    let before = &text[..text.floor_char_boundary(offset.min(text.len()))];
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        + 1;
    format!("{file}:{line}:{column}")
}
