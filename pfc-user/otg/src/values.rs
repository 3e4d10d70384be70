//! Values that a request has, counted before it is read: each takes many times its octets in
//! memory.

use prost_reflect::prost::DecodeError;
use prost_reflect::prost::encoding::{
    DecodeContext, WireType, decode_key, decode_varint, skip_field,
};
use prost_reflect::{Kind, MessageDescriptor};

use crate::error::{Refusal, Why};

/// Values of the largest request: 512 for each of 4096 flows.
const MOST: usize = 1 << 21;
/// Values that an object counts as, since it takes more memory than a number.
const OBJECT: usize = 4;
/// Depth to which objects are decoded; the decoder refuses what is deeper.
const DEEPEST: u32 = 100;

/// Refuses JSON of too many values.
///
/// # Errors
///
/// More of them than are taken.
pub fn limit_json(octets: &[u8]) -> Result<(), Refusal> {
    let (mut count, mut in_text, mut escaped) = (0, false, false);
    // Each value is the first behind a bracket, or stands behind a comma.
    for octet in octets {
        match octet {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_text,
            b'"' => in_text = !in_text,
            b'{' if !in_text => count += OBJECT,
            b'[' | b',' if !in_text => count += 1,
            _ => {}
        }
    }
    limit(count)
}

/// Refuses an encoded message of too many values.
///
/// # Errors
///
/// More of them than are taken.
pub fn limit_message(kind: &MessageDescriptor, octets: &[u8]) -> Result<(), Refusal> {
    let mut count = 0;
    // The decoder comes as far as this does, and says what is wrong there.
    let _ = add(kind, octets, DEEPEST, &mut count);
    limit(count)
}

fn limit(count: usize) -> Result<(), Refusal> {
    if count <= MOST {
        return Ok(());
    }
    let text = format!(
        "the request has {count} values, of which an object counts as {OBJECT}; at most {MOST} are \
         taken: send less"
    );
    Err(Refusal::new(Why::TooLong, text))
}

/// Adds the values of a message to the count.
fn add(
    kind: &MessageDescriptor,
    mut octets: &[u8],
    depth: u32,
    count: &mut usize,
) -> Result<(), DecodeError> {
    while !octets.is_empty() {
        let (number, wire) = decode_key(&mut octets)?;
        let before = octets;
        skip_field(wire, number, &mut octets, DecodeContext::default())?;
        let mut field = &before[..before.len() - octets.len()];
        let known = kind.get_field(number).map(|field| field.kind());
        match (known, wire) {
            (Some(Kind::Message(inner)), WireType::LengthDelimited) => {
                *count += OBJECT;
                decode_varint(&mut field)?;
                if depth > 0 {
                    add(&inner, field, depth - 1, count)?;
                }
            }
            (None | Some(Kind::String | Kind::Bytes), WireType::LengthDelimited) => *count += 1,
            // Numbers one behind the other: each has an octet or more.
            (Some(_), WireType::LengthDelimited) => {
                decode_varint(&mut field)?;
                *count += field.len();
            }
            // A group: of fields that the model does not have.
            (_, WireType::StartGroup) => *count += field.len(),
            _ => *count += 1,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use prost_reflect::prost::encoding::{encode_key, encode_varint};

    use super::*;
    use crate::model::descriptor;

    /// A field of that number with those octets.
    fn field(number: u32, octets: &[u8]) -> Vec<u8> {
        let mut field = Vec::new();
        encode_key(number, WireType::LengthDelimited, &mut field);
        encode_varint(octets.len() as u64, &mut field);
        field.extend_from_slice(octets);
        field
    }

    fn number(message: &str, name: &str) -> u32 {
        let field = descriptor(message).get_field_by_name(name);
        field.unwrap().number()
    }

    fn refused(result: Result<(), Refusal>) -> bool {
        result.is_err_and(|refusal| refusal.why == Why::TooLong && refusal.errors.len() == 1)
    }

    #[test]
    fn json_of_more_values_than_are_taken_is_refused() {
        let json = |values: usize, value: &str| {
            let list = vec![value; values].join(",");
            limit_json(format!("[{list}]").as_bytes())
        };
        // The first stands behind the bracket, the others behind commas.
        assert!(json(MOST, "1").is_ok());
        assert!(refused(json(MOST + 1, "1")));
        let objects = MOST / (OBJECT + 1);
        assert!(json(objects, "{}").is_ok());
        assert!(refused(json(objects + 1, "{}")));
        // Characters in a text are no values, and a quote behind a backslash ends none.
        let text = format!(r#"["{}\"{}"]"#, "{".repeat(MOST), ",".repeat(MOST));
        assert!(limit_json(text.as_bytes()).is_ok());
    }

    #[test]
    fn a_message_of_more_values_than_are_taken_is_refused() {
        let config = descriptor("Config");
        let flow = field(number("Config", "flows"), &[]);
        let flows = |count: usize| limit_message(&config, &flow.repeat(count));
        assert!(flows(MOST / OBJECT).is_ok());
        assert!(refused(flows(MOST / OBJECT + 1)));
        // Within another one.
        let headers = field(number("Flow", "packet"), &[]).repeat(MOST / OBJECT);
        let flow = field(number("Config", "flows"), &headers);
        assert!(refused(limit_message(&config, &flow)));
        // Packed numbers, and texts.
        let vlan = descriptor("PatternFlowVlanId");
        let values = |count| field(number("PatternFlowVlanId", "values"), &vec![1; count]);
        assert!(limit_message(&vlan, &values(MOST)).is_ok());
        assert!(refused(limit_message(&vlan, &values(MOST + 1))));
        let capture = descriptor("Capture");
        let name = field(number("Capture", "port_names"), b"{{{{");
        assert!(limit_message(&capture, &name.repeat(MOST)).is_ok());
        assert!(refused(limit_message(&capture, &name.repeat(MOST + 1))));
    }

    #[test]
    fn fields_that_the_model_does_not_have_count_too() {
        let config = descriptor("Config");
        // A varint of field 999, which takes two octets of key.
        let unknown = [0xb8u8, 0x3e, 1].repeat(MOST + 1);
        assert!(refused(limit_message(&config, &unknown)));
        // A group of field 999 with such numbers.
        let group = [&[0xbb, 0x3e][..], &[8u8, 1].repeat(MOST), &[0xbc, 0x3e]].concat();
        assert!(refused(limit_message(&config, &group)));
    }

    #[test]
    fn what_is_no_message_is_left_to_the_decoder() {
        let config = descriptor("Config");
        for octets in [&[0xff; 9][..], &[0x0a, 9, 1], &[0xbc, 0x3e], &[]] {
            assert!(limit_message(&config, octets).is_ok(), "{octets:?}");
        }
    }
}
