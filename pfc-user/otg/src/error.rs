//! Reasons for refusing a request, as the model has them.

use axum::http::StatusCode;
use serde_json::json;
use tonic::Code;
use validator_core::engine::Problem;

/// Octets of JSON that fit the trailer of a gRPC reply: clients take 8 KiB of metadata, and the
/// encoding of a status message makes three octets of one.
const STATUS: usize = 2400;
/// Octets of that JSON around the errors, and of the note of how many more there are.
const FRAME: usize = 200;
/// Octets of the longest error that a gRPC status shows whole.
const STATUS_ERROR: usize = 1600;
/// Octets of the errors of an HTTP reply.
const BODY: usize = 1 << 20;
/// Octets of the longest error or warning that is kept whole.
pub const LONGEST: usize = 16 << 10;
/// Errors of a request that are kept, and as many warnings.
pub const MOST: usize = 1000;

/// Reason for refusing a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Request at fault.
    Wrong,
    /// Operation that does not exist.
    Unknown,
    /// Request without the token or the certificate that is asked for.
    Unproven,
    /// Request from a web page.
    Foreign,
    /// Request with more octets than are taken.
    TooLong,
    /// Request that others coming in leave no room for.
    Busy,
    /// Request that did not come in within its time.
    TooSlow,
    /// Fault of this machine or program.
    Internal,
}

impl Why {
    /// The status of an HTTP reply.
    pub const fn http(self) -> StatusCode {
        match self {
            Self::Wrong => StatusCode::BAD_REQUEST,
            Self::Unknown => StatusCode::NOT_FOUND,
            Self::Unproven => StatusCode::UNAUTHORIZED,
            Self::Foreign => StatusCode::FORBIDDEN,
            Self::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The code of a gRPC status.
    pub const fn grpc(self) -> Code {
        match self {
            Self::Wrong => Code::InvalidArgument,
            Self::Unknown => Code::Unimplemented,
            Self::Unproven => Code::Unauthenticated,
            Self::Foreign => Code::PermissionDenied,
            Self::TooLong | Self::Busy => Code::ResourceExhausted,
            Self::TooSlow => Code::DeadlineExceeded,
            Self::Internal => Code::Internal,
        }
    }

    /// Kind of the error in the model.
    const fn kind(self) -> &'static str {
        match self {
            Self::Internal => "internal",
            _ => "validation",
        }
    }
}

/// A refused request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason.
    pub why: Why,
    /// Mistakes, at least one; each names the culprit.
    pub errors: Vec<String>,
    /// Number of errors beyond those.
    pub more: usize,
}

impl Refusal {
    /// Makes a refusal with one error.
    pub fn new(why: Why, error: impl Into<String>) -> Self {
        Self {
            why,
            errors: vec![error.into()],
            more: 0,
        }
    }

    /// Refuses a request that is at fault.
    pub fn validation(error: impl Into<String>) -> Self {
        Self::new(Why::Wrong, error)
    }

    /// Refuses a request for a fault of this machine or program.
    pub fn internal(error: impl Into<String>) -> Self {
        Self::new(Why::Internal, error)
    }

    /// The body of an HTTP reply.
    pub fn body(&self) -> String {
        let (mut shown, left) = self.first(BODY, LONGEST);
        if left > 0 {
            shown.push(format!("{left} more"));
        }
        self.json(self.why.http().as_u16().into(), &shown)
    }

    /// The message of a gRPC status: the same JSON with the status' code, cut to what fits.
    pub fn status_message(&self) -> String {
        let (mut shown, left) = self.first(STATUS - FRAME, STATUS_ERROR);
        if left > 0 {
            shown.push(format!(
                "{left} more; over HTTP, the reply has up to {MOST}"
            ));
        }
        self.json(i64::from(self.why.grpc() as i32), &shown)
    }

    /// The first errors, as many as fit into `room` octets of JSON and [`MOST`] of them, each cut
    /// to `longest` octets; and the number of the others.
    fn first(&self, mut room: usize, longest: usize) -> (Vec<String>, usize) {
        let mut shown = Vec::new();
        for error in self.errors.iter().take(MOST) {
            let error = cut(error, longest);
            let octets = written(&error) + 1;
            if octets > room {
                break;
            }
            room -= octets;
            shown.push(error);
        }
        let left = self.errors.len() - shown.len() + self.more;
        (shown, left)
    }

    fn json(&self, code: i64, errors: &[String]) -> String {
        json!({ "code": code, "kind": self.why.kind(), "errors": errors }).to_string()
    }
}

/// Octets of a text in JSON.
fn written(text: &str) -> usize {
    json!(text).to_string().len()
}

/// An error, or its beginning, which has at most `longest` octets in JSON.
pub fn cut(error: &str, longest: usize) -> String {
    if written(error) <= longest {
        return error.to_owned();
    }
    let mut octets = 0;
    let fits = |letter: &char| {
        // Without the quotes around it.
        octets += written(letter.encode_utf8(&mut [0; 4])) - 2;
        octets <= longest
    };
    let begin: String = error.chars().take_while(fits).collect();
    format!("{begin} ...")
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        vec![problem].into()
    }
}

impl From<Vec<Problem>> for Refusal {
    /// Blames the machine only where no order is at fault.
    fn from(problems: Vec<Problem>) -> Self {
        let machine = problems
            .iter()
            .all(|problem| matches!(problem, Problem::Machine(_)));
        Self {
            why: if machine { Why::Internal } else { Why::Wrong },
            errors: problems.iter().map(ToString::to_string).collect(),
            more: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_is_cut_to_what_a_grpc_status_holds_and_says_so() {
        let errors = (0..1000).map(|n| format!("flows[{n}].rate is wrong"));
        let refusal = Refusal {
            why: Why::Wrong,
            errors: errors.collect(),
            more: 5,
        };
        let message = refusal.status_message();
        assert!(message.len() <= STATUS);
        let read: serde_json::Value = serde_json::from_str(&message).unwrap();
        assert_eq!(read["code"], 3);
        let list = read["errors"].as_array().unwrap();
        let last = list.last().unwrap().as_str().unwrap();
        assert_eq!(
            last,
            format!(
                "{} more; over HTTP, the reply has up to 1000",
                1005 - (list.len() - 1)
            )
        );
    }

    #[test]
    fn an_error_that_is_longer_than_a_grpc_status_is_cut_between_letters() {
        for letter in ["x", "\u{1}", "\u{1f980}", "\""] {
            let long = letter.repeat(10_000);
            let refusal = Refusal {
                why: Why::Internal,
                errors: vec![long.clone(), "another".to_owned()],
                more: 0,
            };
            let message = refusal.status_message();
            assert!(message.len() <= STATUS, "{letter}: {}", message.len());
            let read: serde_json::Value = serde_json::from_str(&message).unwrap();
            let shown = read["errors"][0].as_str().unwrap();
            let begin = shown.strip_suffix(" ...").unwrap();
            assert!(!begin.is_empty() && long.starts_with(begin), "{shown}");
            assert_eq!(read["errors"][1], "another");
            assert_eq!(
                (&read["code"], &read["kind"]),
                (&13.into(), &"internal".into())
            );
        }
    }

    #[test]
    fn an_http_body_has_code_and_kind() {
        let body = Refusal::internal("no such device").body();
        assert_eq!(
            body,
            r#"{"code":500,"errors":["no such device"],"kind":"internal"}"#
        );
    }

    #[test]
    fn an_http_body_has_the_first_1000_errors_and_the_number_of_the_others() {
        let errors = |count: usize| {
            let refusal = Refusal {
                why: Why::Wrong,
                errors: (0..count).map(|n| n.to_string()).collect(),
                more: 0,
            };
            let read: serde_json::Value = serde_json::from_str(&refusal.body()).unwrap();
            read["errors"].as_array().unwrap().clone()
        };
        let all = errors(1000);
        assert_eq!((all.len(), &all[999]), (1000, &json!("999")));
        let more = errors(1002);
        assert_eq!((more.len(), &more[999]), (1001, &json!("999")));
        assert_eq!(more[1000], "2 more");
    }

    #[test]
    fn an_http_body_with_long_errors_is_short_all_the_same() {
        let refusal = Refusal {
            why: Why::Wrong,
            errors: vec!["x".repeat(100 << 10); 100],
            more: 7,
        };
        let body = refusal.body();
        assert!(body.len() < 2 << 20, "{}", body.len());
        let read: serde_json::Value = serde_json::from_str(&body).unwrap();
        let (last, shown) = read["errors"].as_array().unwrap().split_last().unwrap();
        assert!(shown[0].as_str().unwrap().ends_with("x ..."));
        assert_eq!(*last, format!("{} more", 107 - shown.len()));
    }
}
