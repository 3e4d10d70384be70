//! Exercises heads of requests for metrics.

use super::request::{LONGEST, request};

/// Reads the octets as the head of a request, and asserts what every answer keeps to.
pub fn exercise(octets: &[u8]) {
    let answer = request(octets);
    if octets.len() > LONGEST {
        return assert_eq!(answer, Err("431 Request Header Fields Too Large"));
    }
    let Some(end) = octets.windows(4).position(|end| end == b"\r\n\r\n") else {
        return assert_eq!(answer, Err("400 Bad Request"));
    };
    let head = &octets[..end + 4];
    assert_eq!(request(head), answer, "what follows the head is none of it");
    if answer.is_ok() {
        assert!(head.starts_with(b"GET ") || head.starts_with(b"HEAD "));
        assert!(str::from_utf8(head).is_ok_and(|head| head.contains(" HTTP/1.")));
    }
}
