//! A view of a message that records what was read of it.
//!
//! A translation reads the fields that it knows. Fields that are set and were not read at the end
//! are refused by their paths, so that nothing that a client asks for is silently left out.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Display;
use std::ops::RangeInclusive;

use pfc_ebpf::abi::account::MAX_FLOWS;
use prost_reflect::{
    DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, ReflectMessage as _, Value,
};

use crate::error::{self, Refusal, Why};

/// Requirements of fields that several messages have, or that no translation asks for.
const NEEDS: [(&str, &str); 5] = [
    (
        "metric_tags",
        "it needs counting by fields of received frames; make a flow for each value",
    ),
    (
        "options",
        "it needs headers of more than 20 octets; write the whole header as custom octets",
    ),
    ("pad_tlv", "segments need no octets behind them; remove it"),
    (
        "dst_usids",
        "it needs segment routing; write the address that the segments make",
    ),
    (
        "per_port_options",
        "it needs RoCEv2 or MACsec at the tester's ports; remove it",
    ),
];

/// Most objects of a list: as many as flows that are counted.
const OBJECTS: usize = MAX_FLOWS as usize;

/// Findings of a translation so far.
#[derive(Debug, Default)]
pub struct Notes {
    read: RefCell<HashMap<String, Depth>>,
    errors: RefCell<Texts>,
    warnings: RefCell<Texts>,
}

/// Texts for the client, of which the first are kept.
#[derive(Debug, Default)]
struct Texts {
    kept: Vec<String>,
    /// Number of the others.
    more: usize,
}

impl Texts {
    fn add(&mut self, text: &str) {
        if self.kept.len() < error::MOST {
            self.kept.push(error::cut(text, error::LONGEST));
        } else {
            self.more += 1;
        }
    }
}

/// Extent to which a field was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Depth {
    /// The field; what is within it has to be read too.
    Field,
    /// All that is within it, too.
    Whole,
}

impl Notes {
    /// Adds an error, which should begin with the path of the culprit.
    pub fn error(&self, text: impl AsRef<str>) {
        self.errors.borrow_mut().add(text.as_ref());
    }

    /// Adds a warning.
    pub fn warn(&self, text: impl AsRef<str>) {
        self.warnings.borrow_mut().add(text.as_ref());
    }

    /// The warnings of a message that is whole.
    ///
    /// # Errors
    ///
    /// All that is wrong in it, fields that are set and were not read included.
    pub fn accept(self, message: &DynamicMessage) -> Result<Vec<String>, Refusal> {
        self.unread(message, "");
        let (errors, warnings) = (self.errors.into_inner(), self.warnings.into_inner());
        if !errors.kept.is_empty() {
            return Err(Refusal {
                why: Why::Wrong,
                errors: errors.kept,
                more: errors.more,
            });
        }
        let mut texts = warnings.kept;
        if warnings.more > 0 {
            texts.push(format!("{} more warnings", warnings.more));
        }
        Ok(texts)
    }

    fn note(&self, path: String, depth: Depth) {
        let mut read = self.read.borrow_mut();
        let known = read.entry(path).or_insert(depth);
        *known = depth.max(*known);
    }

    fn unread(&self, message: &DynamicMessage, path: &str) {
        for unknown in message.unknown_fields() {
            self.error(format!(
                "{}: the model that this server knows has no field number {} here",
                if path.is_empty() { "the message" } else { path },
                unknown.number()
            ));
        }
        for (field, value) in message.fields() {
            let path = join(path, field.name());
            let depth = self.read.borrow().get(&path).copied();
            match depth {
                Some(Depth::Whole) => {}
                Some(Depth::Field) => self.unread_within(value, &path),
                None => self.error(refused(message, &field, &path)),
            }
        }
    }

    fn unread_within(&self, value: &Value, path: &str) {
        match value {
            Value::Message(message) => self.unread(message, path),
            Value::List(list) => {
                for (index, value) in list.iter().enumerate() {
                    self.unread_within(value, &format!("{path}[{index}]"));
                }
            }
            _ => {}
        }
    }
}

/// Returns the reason why an unread field is refused.
fn refused(message: &DynamicMessage, field: &FieldDescriptor, path: &str) -> String {
    let root = Notes::default();
    if choices(&message.descriptor())
        .iter()
        .any(|name| name == field.name())
        && let Some(chosen) = Reader::new(message, &root).enumeration("choice")
        && chosen != field.name()
    {
        return format!(
            "{path} is set, but the choice beside it is \"{chosen}\": remove one of them"
        );
    }
    let needs = NEEDS.iter().find(|(name, _)| *name == field.name());
    let needs = needs.map_or("remove it", |(_, needs)| needs);
    format!("{path} is not supported: {needs}")
}

/// The names of a message's choice.
fn choices(message: &MessageDescriptor) -> Vec<String> {
    let field = message.get_field_by_name("choice");
    let kind = field.map(|field| field.kind());
    let Some(values) = kind.as_ref().and_then(Kind::as_enum) else {
        return Vec::new();
    };
    let set = values.values().filter(|value| value.number() != 0);
    set.map(|value| value.name().to_owned()).collect()
}

fn join(path: &str, field: &str) -> String {
    if path.is_empty() {
        field.to_owned()
    } else {
        format!("{path}.{field}")
    }
}

/// Reads a whole message: returns what `reads` finds in it, and warnings.
///
/// # Errors
///
/// All that is wrong in it, fields that are set and were not read included.
pub fn read<T>(
    message: &DynamicMessage,
    reads: impl FnOnce(&Reader<'_>) -> T,
) -> Result<(T, Vec<String>), Refusal> {
    let notes = Notes::default();
    let found = reads(&Reader::new(message, &notes));
    Ok((found, notes.accept(message)?))
}

/// A message, its path, and the notes that what is read of it goes to.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    /// `None` is an empty one.
    message: Option<&'a DynamicMessage>,
    kind: MessageDescriptor,
    path: String,
    notes: &'a Notes,
}

impl<'a> Reader<'a> {
    /// The whole message.
    pub fn new(message: &'a DynamicMessage, notes: &'a Notes) -> Self {
        Self::of(message, String::new(), notes)
    }

    fn of(message: &'a DynamicMessage, path: String, notes: &'a Notes) -> Self {
        Self {
            message: Some(message),
            kind: message.descriptor(),
            path,
            notes,
        }
    }

    /// Returns its path, such as `flows[0].rate`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The path of a field.
    pub fn at(&self, field: &str) -> String {
        join(&self.path, field)
    }

    /// The message, unread; `None` if it is absent.
    pub fn message(&self) -> Option<&'a DynamicMessage> {
        self.message
    }

    /// An error of a field.
    pub fn error(&self, field: &str, text: impl AsRef<str>) {
        self.notes
            .error(format!("{} {}", self.at(field), text.as_ref()));
    }

    /// An error of a field, which therefore gives nothing.
    pub fn fail<T>(&self, field: &str, text: impl AsRef<str>) -> Option<T> {
        self.error(field, text);
        None
    }

    /// Returns what was found for a field; an error of the field where that is nothing.
    pub fn or_error<T, S: AsRef<str>>(
        &self,
        field: &str,
        found: Option<T>,
        text: impl FnOnce() -> S,
    ) -> Option<T> {
        if found.is_none() {
            self.error(field, text());
        }
        found
    }

    /// Returns a field's value if it is within its bounds; an error else.
    pub fn within<N: Copy + Display + PartialOrd, T: TryFrom<N>>(
        &self,
        field: &str,
        value: N,
        bounds: RangeInclusive<N>,
    ) -> Option<T> {
        let fits = bounds.contains(&value);
        self.or_error(field, T::try_from(value).ok().filter(|_| fits), || {
            format!(
                "must be {} to {}, found {value}",
                bounds.start(),
                bounds.end()
            )
        })
    }

    /// A warning about a field.
    pub fn warn(&self, field: &str, text: impl AsRef<str>) {
        self.notes
            .warn(format!("{} {}", self.at(field), text.as_ref()));
    }

    /// True if the message has such a field.
    pub fn knows(&self, field: &str) -> bool {
        self.kind.get_field_by_name(field).is_some()
    }

    /// True if the field is a text, or a list of texts.
    pub fn is_text(&self, field: &str) -> bool {
        let field = self.kind.get_field_by_name(field);
        field.is_some_and(|field| field.kind() == Kind::String)
    }

    /// True if the field is set.
    pub fn has(&self, field: &str) -> bool {
        self.message
            .is_some_and(|message| message.has_field_by_name(field))
    }

    /// Refuses a field that is set, with the reason, and reads no further in it.
    pub fn refuse(&self, field: &str, why: &str) {
        if self.has(field) {
            self.error(field, format!("is not supported: {why}"));
            self.leave(field);
        }
    }

    /// Refuses a truth value that is set to true, with the reason.
    pub fn refuse_true(&self, field: &str, why: &str) {
        if self.truth(field) == Some(true) {
            self.error(field, format!("is not supported: {why}"));
        }
    }

    /// Takes a field for read with all that is within it.
    pub fn leave(&self, field: &str) {
        self.notes.note(self.at(field), Depth::Whole);
    }

    /// Accepts a field that changes nothing, with a warning that says so.
    pub fn accept(&self, field: &str, why: &str) {
        if self.has(field) {
            self.warn(field, why);
            self.leave(field);
        }
    }

    /// The value of a field that is set.
    fn value(&self, field: &str) -> Option<&'a Value> {
        debug_assert!(
            self.knows(field),
            "{} has a field {field}",
            self.kind.full_name()
        );
        let message = self.message.filter(|_| self.has(field))?;
        self.notes.note(self.at(field), Depth::Field);
        match message.get_field_by_name(field)? {
            Cow::Borrowed(value) => Some(value),
            Cow::Owned(_) => None,
        }
    }

    /// An integer of any width.
    pub fn integer(&self, field: &str) -> Option<u64> {
        integer(self.value(field)?)
    }

    /// A number of at least 1, the model's default.
    pub fn count(&self, field: &str) -> Option<u64> {
        let count = self.integer(field).unwrap_or(1);
        let some = (count > 0).then_some(count);
        self.or_error(field, some, || "must be 1 or more, found 0")
    }

    /// A list of integers.
    pub fn integers(&self, field: &str) -> Vec<u64> {
        self.list(field).iter().filter_map(integer).collect()
    }

    /// A float.
    pub fn float(&self, field: &str) -> Option<f64> {
        match self.value(field)? {
            Value::F32(value) => Some(f64::from(*value)),
            Value::F64(value) => Some(*value),
            _ => None,
        }
    }

    /// A truth value.
    pub fn truth(&self, field: &str) -> Option<bool> {
        self.value(field)?.as_bool()
    }

    /// A text.
    pub fn text(&self, field: &str) -> Option<&'a str> {
        self.value(field)?.as_str()
    }

    /// A text that has to be there and not empty; an error else.
    pub fn required(&self, field: &str) -> Option<&'a str> {
        let text = self.text(field).filter(|text| !text.is_empty());
        self.or_error(field, text, || "is missing")
    }

    /// A list of texts.
    pub fn texts(&self, field: &str) -> Vec<&'a str> {
        self.list(field).iter().filter_map(Value::as_str).collect()
    }

    /// The name of an enumeration's value; `None` if it is not specified.
    pub fn enumeration(&self, field: &str) -> Option<String> {
        let number = self.value(field)?.as_enum_number()?;
        self.name_of(field, number)
    }

    /// The names of a list of an enumeration's values.
    pub fn enumerations(&self, field: &str) -> Vec<String> {
        let numbers = self.list(field).iter().filter_map(Value::as_enum_number);
        numbers
            .filter_map(|number| self.name_of(field, number))
            .collect()
    }

    /// Returns the name of an enumeration's value: `None` where it is not specified, its number
    /// where the model does not have it.
    fn name_of(&self, field: &str, number: i32) -> Option<String> {
        if number == 0 {
            return None;
        }
        let kind = self.kind.get_field_by_name(field)?.kind();
        let named = kind.as_enum()?.get_value(number);
        Some(named.map_or_else(|| number.to_string(), |value| value.name().to_owned()))
    }

    /// A message.
    pub fn child(&self, field: &str) -> Option<Reader<'a>> {
        let message = self.value(field)?.as_message()?;
        Some(Self::of(message, self.at(field), self.notes))
    }

    /// A message, or the empty one if it is absent: a choice may stand without its object, which
    /// then has its defaults.
    ///
    /// # Panics
    ///
    /// If the field is none of a message.
    pub fn object(&self, field: &str) -> Reader<'a> {
        self.child(field).unwrap_or_else(|| {
            let field_of = self.kind.get_field_by_name(field);
            let kind = field_of.expect("a field of the model").kind();
            Self {
                message: None,
                kind: kind.as_message().expect("a field of a message").clone(),
                path: self.at(field),
                notes: self.notes,
            }
        })
    }

    /// A list of messages; an error, and none of them, if there are too many.
    pub fn children(&self, field: &str) -> Vec<Reader<'a>> {
        let list = self.list(field);
        if list.len() > OBJECTS {
            let text = format!("has {} entries: at most {OBJECTS} are taken", list.len());
            self.error(field, text);
            self.leave(field);
            return Vec::new();
        }
        let messages = list.iter().enumerate();
        messages
            .filter_map(|(index, value)| {
                let path = format!("{}[{index}]", self.at(field));
                Some(Self::of(value.as_message()?, path, self.notes))
            })
            .collect()
    }

    fn list(&self, field: &str) -> &'a [Value] {
        self.value(field).and_then(Value::as_list).unwrap_or(&[])
    }

    /// Returns the choice, or the one object that is set, or else the default.
    pub fn choice(&self, default: &str) -> String {
        if let Some(name) = self.enumeration("choice") {
            return name;
        }
        let mut set = choices(&self.kind).into_iter();
        // A choice without an object of its own has no field, and is not set.
        let set = set.find(|name| self.has(name));
        set.unwrap_or_else(|| default.to_owned())
    }

    /// Returns true for the one choice that is known here, which is also the default; an error
    /// else.
    pub fn chooses(&self, known: &str, needs: &str) -> bool {
        let chosen = self.choice(known);
        if chosen != known {
            self.refuse_choice::<()>(&chosen, needs);
        }
        chosen == known
    }

    /// Refuses a choice that is not known here, which therefore gives nothing.
    pub fn refuse_choice<T>(&self, chosen: &str, needs: &str) -> Option<T> {
        if self.knows(chosen) {
            self.leave(chosen);
        }
        self.fail("choice", format!("\"{chosen}\" is not supported: {needs}"))
    }
}

fn integer(value: &Value) -> Option<u64> {
    match value {
        Value::U32(value) => Some(u64::from(*value)),
        Value::U64(value) => Some(*value),
        Value::I32(value) => u64::try_from(*value).ok(),
        Value::I64(value) => u64::try_from(*value).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;

    fn flow() -> DynamicMessage {
        parse(
            "Flow",
            br#"{"name":"f","size":{"choice":"fixed","fixed":64,"increment":{"start":1}},
                 "packet":[{"choice":"ethernet","ethernet":{}},{"choice":"gtpv1","gtpv1":{}}],
                 "metrics":{"enable":true,"timestamps":true}}"#,
        )
        .unwrap()
    }

    #[test]
    fn what_was_not_read_is_refused_by_its_path() {
        let flow = flow();
        let notes = Notes::default();
        let reader = Reader::new(&flow, &notes);
        assert_eq!(reader.text("name"), Some("f"));
        let size = reader.child("size").unwrap();
        assert_eq!(size.choice("fixed"), "fixed");
        assert_eq!(size.integer("fixed"), Some(64));
        reader.leave("packet");
        assert_eq!(reader.child("metrics").unwrap().truth("enable"), Some(true));
        assert_eq!(
            notes.accept(&flow).unwrap_err().errors,
            [
                "size.increment is set, but the choice beside it is \"fixed\": remove one of them",
                "metrics.timestamps is not supported: remove it",
            ]
        );
    }

    #[test]
    fn elements_of_a_list_are_told_apart() {
        let flow = flow();
        let notes = Notes::default();
        let reader = Reader::new(&flow, &notes);
        for field in ["name", "size", "metrics"] {
            reader.leave(field);
        }
        let [first, second] = &reader.children("packet")[..] else {
            panic!("two headers")
        };
        assert_eq!(first.choice(""), "ethernet");
        assert!(first.child("ethernet").is_some());
        assert_eq!(second.choice(""), "gtpv1");
        assert_eq!(
            notes.accept(&flow).unwrap_err().errors,
            ["packet[1].gtpv1 is not supported: remove it"]
        );
    }

    #[test]
    fn a_field_that_the_model_does_not_have_is_refused_by_its_number() {
        use prost_reflect::prost::Message as _;
        // Field 999, a varint.
        let flow =
            DynamicMessage::decode(crate::model::descriptor("Flow"), &[0xb8, 0x3e, 1][..]).unwrap();
        assert_eq!(flow.encoded_len(), 3);
        let errors = Notes::default().accept(&flow).unwrap_err().errors;
        assert_eq!(
            errors,
            ["the message: the model that this server knows has no field number 999 here"]
        );
    }

    #[test]
    fn a_choice_is_found_by_the_object_that_is_set() {
        let size = parse("FlowSize", br#"{"increment":{"start":64}}"#).unwrap();
        let notes = Notes::default();
        assert_eq!(Reader::new(&size, &notes).choice("fixed"), "increment");
        let empty = parse("FlowSize", b"{}").unwrap();
        assert_eq!(Reader::new(&empty, &notes).choice("fixed"), "fixed");
    }
}
