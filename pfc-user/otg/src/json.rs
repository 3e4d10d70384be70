//! Messages of the model as JSON.
//!
//! Clients read it with a YAML 1.1 parser: floats are written without an exponent, which that
//! parser takes for text, and without the letters that it refuses.

use std::io;

use prost_reflect::{DeserializeOptions, DynamicMessage, ReflectMessage as _, SerializeOptions};
use serde_json::ser::Formatter;

use crate::error::Refusal;
use crate::{model, values};

/// The message as JSON, with the model's own names of fields.
///
/// # Panics
///
/// Never: the messages have string keys alone, and memory takes what is written.
pub fn text(message: &DynamicMessage) -> String {
    let mut out = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, Plain);
    let options = SerializeOptions::new()
        .stringify_64_bit_integers(false)
        .use_proto_field_name(true)
        // Clients count the warnings of a reply without one, too.
        .skip_default_fields(message.descriptor().name() != "Warning");
    message
        .serialize_with_options(&mut serializer, &options)
        .expect("a message is JSON");
    String::from_utf8(out).expect("JSON is UTF-8")
}

/// Reads a message of that name.
///
/// # Errors
///
/// Text of too many values or that is no JSON, a field that the model does not have, or a value of
/// another type than the model's, by its path.
pub fn parse(name: &str, octets: &[u8]) -> Result<DynamicMessage, Refusal> {
    values::limit_json(octets)?;
    let mut json = serde_json::Deserializer::from_slice(octets);
    let mut track = serde_path_to_error::Track::new();
    let tracked = serde_path_to_error::Deserializer::new(&mut json, &mut track);
    let options = DeserializeOptions::new().deny_unknown_fields(true);
    let read = DynamicMessage::deserialize_with_options(model::descriptor(name), tracked, &options);
    match read {
        Ok(message) => {
            json.end()
                .map_err(|error| Refusal::validation(format!("after the JSON object: {error}")))?;
            Ok(message)
        }
        Err(error) => {
            let path = track.path().to_string();
            let place = if path == "." { "the body" } else { &path };
            Err(Refusal::validation(format!("{place}: {error}")))
        }
    }
}

/// Floats as plain decimals with a point, and no letter that YAML refuses.
struct Plain;

impl Formatter for Plain {
    fn write_f32<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f32) -> io::Result<()> {
        plain(writer, &value.to_string())
    }

    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        plain(writer, &value.to_string())
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        for letter in fragment.chars() {
            if unprintable(letter) {
                write!(writer, "\\u{:04x}", u32::from(letter))?;
            } else {
                write!(writer, "{letter}")?;
            }
        }
        Ok(())
    }
}

/// Rust writes floats without an exponent, and whole ones without a point.
fn plain<W: ?Sized + io::Write>(writer: &mut W, number: &str) -> io::Result<()> {
    writer.write_all(number.as_bytes())?;
    if number.contains('.') {
        Ok(())
    } else {
        writer.write_all(b".0")
    }
}

/// Letters that JSON allows and YAML 1.1 does not (section 5.1 there); all have four digits.
fn unprintable(letter: char) -> bool {
    matches!(
        letter,
        '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Builder;

    #[test]
    fn floats_have_a_point_and_never_an_exponent() {
        let metric = Builder::new("FlowMetric")
            .with("loss", 1e-5_f32)
            .with("frames_tx_rate", 1e20_f32)
            .with("frames_rx_rate", 45.3_f32)
            .with("tx_rate_bps", 0_f32)
            .done();
        assert_eq!(
            text(&metric),
            "{\"frames_tx_rate\":100000000000000000000.0,\"frames_rx_rate\":45.3,\
             \"loss\":0.00001,\"tx_rate_bps\":0.0}"
        );
    }

    #[test]
    fn integers_of_64_bits_are_numbers_and_zero_is_written() {
        let metric = Builder::new("FlowMetric")
            .with("frames_tx", u64::MAX)
            .with("frames_rx", 0_u64)
            .done();
        assert_eq!(
            text(&metric),
            r#"{"frames_tx":18446744073709551615,"frames_rx":0}"#
        );
    }

    #[test]
    fn a_reply_without_warnings_has_an_empty_list_of_them() {
        assert_eq!(text(&model::warning(Vec::new())), r#"{"warnings":[]}"#);
        assert_eq!(text(&model::message("Config")), "{}");
    }

    #[test]
    fn letters_that_yaml_refuses_are_escaped() {
        let port = Builder::new("Port")
            .with("name", "a\u{7f}\u{1}ü\"".to_owned())
            .done();
        assert_eq!(text(&port), "{\"name\":\"a\\u007f\\u0001ü\\\"\"}");
    }

    #[test]
    fn a_wrong_type_and_an_unknown_field_are_named_by_path() {
        let wrong = parse(
            "Config",
            br#"{"flows":[{"name":"f","size":{"fixed":"x"}}]}"#,
        );
        let [error] = &wrong.unwrap_err().errors[..] else {
            panic!("one error")
        };
        assert!(error.starts_with("flows[0].size.fixed: "), "{error}");
        let unknown = parse("Config", br#"{"ports":[{"name":"p","speed":1}]}"#);
        let [error] = &unknown.unwrap_err().errors[..] else {
            panic!("one error")
        };
        assert!(
            error.starts_with("ports[0]") && error.contains("speed"),
            "{error}"
        );
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for body in ["", "{", "[]", "null", "{} x", "a: 1", "{\"ports\": [1]}"] {
            assert!(parse("Config", body.as_bytes()).is_err(), "{body}");
        }
    }
}
