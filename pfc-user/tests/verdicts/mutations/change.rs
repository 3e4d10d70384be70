//! Changes of a node in evidence.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;

use serde_json::Value;

/// A change of a node.
#[derive(Clone, Debug)]
pub enum Change {
    Delete,
    Double,
    /// With the next element of its array.
    SwapNext,
    /// With the next field of its object, which has the same kind of value.
    SwapField(String),
}

impl Change {
    /// Its word in the list.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Double => "double",
            Self::SwapNext | Self::SwapField(_) => "swap",
        }
    }
}

/// A step on the way to a node.
#[derive(Clone, Debug)]
pub enum Step {
    Field(String),
    Element(usize),
}

/// The path without its indices.
pub fn kind(path: &[Step]) -> String {
    let mut kind = String::new();
    for step in path {
        match step {
            Step::Field(name) => write!(kind, ".{name}").unwrap(),
            Step::Element(_) => kind.push_str("[]"),
        }
    }
    kind.strip_prefix('.').unwrap_or(&kind).to_owned()
}

/// The changes that are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The first change of each kind of node; and of each array the first element, the one in the
    /// middle and the last, with what is inside the one in the middle, one change in so many.
    Sample { stride: usize, offset: usize },
    /// Each change of each node.
    Every,
}

/// All changes of `value` and of what is in it, to that extent.
pub fn changes(value: &Value, extent: Extent) -> Vec<(Vec<Step>, Change)> {
    let mut walk = Walk {
        extent,
        seen: HashSet::new(),
        sampled: 0,
        all: Vec::new(),
    };
    walk.of(value, &mut Vec::new(), true);
    walk.all
}

struct Walk {
    extent: Extent,
    /// Kinds of nodes and changes that there were.
    seen: HashSet<(String, &'static str)>,
    /// Changes that belong to the sample, of which not all are made.
    sampled: usize,
    all: Vec<(Vec<Step>, Change)>,
}

impl Walk {
    fn add(&mut self, path: &[Step], change: Change, in_sample: bool) {
        let is_first = self.seen.insert((kind(path), change.word()));
        let is_made = match self.extent {
            Extent::Every => true,
            Extent::Sample { stride, offset } => {
                self.sampled += usize::from(in_sample);
                is_first || (in_sample && self.sampled % stride == offset % stride)
            }
        };
        if is_made {
            self.all.push((path.to_vec(), change));
        }
    }

    /// `path` leads to `value`; the sample has what is inside only where `in_sample`.
    fn of(&mut self, value: &Value, path: &mut Vec<Step>, in_sample: bool) {
        match value {
            Value::Object(fields) => {
                let names: Vec<&String> = fields.keys().collect();
                for (index, name) in names.iter().enumerate() {
                    path.push(Step::Field(name.to_string()));
                    self.add(path, Change::Delete, in_sample);
                    if let Some(other) = names.get(index + 1)
                        && alike(&fields[*name], &fields[*other])
                    {
                        self.add(path, Change::SwapField(other.to_string()), in_sample);
                    }
                    self.of(&fields[*name], path, in_sample);
                    path.pop();
                }
            }
            Value::Array(items) => {
                let middle = items.len() / 2;
                let sample = BTreeSet::from([0, middle, items.len().saturating_sub(1)]);
                for (index, item) in items.iter().enumerate() {
                    let in_it = in_sample && sample.contains(&index);
                    path.push(Step::Element(index));
                    self.add(path, Change::Delete, in_it);
                    self.add(path, Change::Double, in_it);
                    if items.get(index + 1).is_some_and(|next| next != item) {
                        self.add(path, Change::SwapNext, in_it);
                    }
                    self.of(item, path, in_sample && index == middle);
                    path.pop();
                }
            }
            _ => {}
        }
    }
}

/// Two different values of the same kind: numbers with numbers, lists with lists.
fn alike(one: &Value, other: &Value) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other) && one != other
}

/// Changes the node at `path`.
pub fn apply(value: &mut Value, path: &[Step], change: &Change) {
    let (last, way) = path.split_last().unwrap();
    let mut parent = value;
    for step in way {
        parent = match step {
            Step::Field(name) => &mut parent[name.as_str()],
            Step::Element(index) => &mut parent[*index],
        };
    }
    match (last, change, parent) {
        (Step::Field(name), Change::Delete, Value::Object(fields)) => drop(fields.remove(name)),
        (Step::Field(name), Change::SwapField(other), Value::Object(fields)) => {
            let one = fields[name].clone();
            fields[name] = std::mem::replace(&mut fields[other], one);
        }
        (Step::Element(index), Change::Delete, Value::Array(items)) => drop(items.remove(*index)),
        (Step::Element(index), Change::Double, Value::Array(items)) => {
            items.insert(*index, items[*index].clone());
        }
        (Step::Element(index), Change::SwapNext, Value::Array(items)) => {
            items.swap(*index, index + 1);
        }
        other => panic!("no such change: {other:?}"),
    }
}
