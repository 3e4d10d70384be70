//! The OTG model: its messages by name, read and written by descriptor.
//!
//! No code is generated: a message that this server does not know to do is still read whole, so
//! that it can be refused by name instead of being dropped.

use std::sync::LazyLock;

use bytes::Bytes;
use prost_reflect::{
    DescriptorPool, DynamicMessage, Kind, MessageDescriptor, MethodDescriptor, ReflectMessage as _,
    Value,
};

/// Descriptor of the model; `model/README.md` says where it comes from.
const DESCRIPTOR: &[u8] = include_bytes!("../model/otg.binpb");

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(DESCRIPTOR).expect("the descriptor is that of the repository")
});

/// The version of the model.
pub const VERSION: &str = "1.62.0";
/// Versions of clients that work: any below 2, as the model only adds.
pub const CLIENTS: &str = "^1.0.0";

/// The descriptor of a message of the model.
///
/// # Panics
///
/// If the model has no such message: names are those of this crate's own code.
pub fn descriptor(name: &str) -> MessageDescriptor {
    POOL.get_message_by_name(&format!("otg.{name}"))
        .unwrap_or_else(|| panic!("the model has a message {name}"))
}

/// The method of the model's service of that name.
pub fn method(name: &str) -> Option<MethodDescriptor> {
    let service = POOL.get_service_by_name("otg.Openapi")?;
    service.methods().find(|method| method.name() == name)
}

/// An empty message.
pub fn message(name: &str) -> DynamicMessage {
    DynamicMessage::new(descriptor(name))
}

/// Value that a field may be set to.
pub trait IntoValue {
    /// Converts it to a value of the model.
    fn into_value(self) -> Value;
}

impl IntoValue for Value {
    fn into_value(self) -> Value {
        self
    }
}

/// Rust types, and the values of the model that they are.
macro_rules! into_value {
    ($($type:ty => $value:ident),*) => {$(
        impl IntoValue for $type {
            fn into_value(self) -> Value {
                Value::$value(self)
            }
        }
    )*};
}

into_value!(String => String, u64 => U64, f32 => F32, f64 => F64, Bytes => Bytes);

/// A message that is filled in field by field.
#[derive(Debug)]
pub struct Builder(DynamicMessage);

impl Builder {
    /// An empty message of that name.
    pub fn new(name: &str) -> Self {
        Self(message(name))
    }

    /// Sets a field.
    ///
    /// # Panics
    ///
    /// If the message has no such field, or one of another type.
    #[must_use]
    pub fn with(mut self, field: &str, value: impl IntoValue) -> Self {
        self.0
            .try_set_field_by_name(field, value.into_value())
            .unwrap_or_else(|error| panic!("{field}: {error}"));
        self
    }

    /// Sets a field of an enumeration.
    ///
    /// # Panics
    ///
    /// If the message has no such field, or it has no such value.
    #[must_use]
    pub fn with_name(self, field: &str, name: &str) -> Self {
        let kind = self.0.descriptor().get_field_by_name(field);
        let kind = kind.map(|field| field.kind());
        let values = kind.as_ref().and_then(Kind::as_enum);
        let value = values
            .and_then(|values| values.get_value_by_name(name))
            .unwrap_or_else(|| panic!("{field} has a value {name}"));
        self.with(field, Value::EnumNumber(value.number()))
    }

    /// Sets a field if there is a value.
    #[must_use]
    pub fn with_some(self, field: &str, value: Option<impl IntoValue>) -> Self {
        match value {
            Some(value) => self.with(field, value),
            None => self,
        }
    }

    /// Sets a repeated field of messages.
    #[must_use]
    pub fn with_messages(self, field: &str, messages: Vec<DynamicMessage>) -> Self {
        let list = messages.into_iter().map(Value::Message).collect();
        self.with(field, Value::List(list))
    }

    /// The message.
    pub fn done(self) -> DynamicMessage {
        self.0
    }
}

/// A warning message with these texts; present, though it may be empty.
pub fn warning(texts: Vec<String>) -> DynamicMessage {
    let list = texts.into_iter().map(Value::String).collect();
    let warning = Builder::new("Warning").with("warnings", Value::List(list));
    warning.done()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_has_the_service_with_its_eighteen_methods() {
        let service = POOL.get_service_by_name("otg.Openapi").unwrap();
        assert_eq!(service.methods().len(), 18);
    }

    #[test]
    fn a_builder_writes_enumerations_by_name() {
        let state = Builder::new("PortMetric")
            .with("name", "p1".to_owned())
            .with_name("link", "up")
            .done();
        assert_eq!(crate::json::text(&state), r#"{"name":"p1","link":"up"}"#);
    }
}
