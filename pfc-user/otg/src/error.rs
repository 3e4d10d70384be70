//! Why a request was refused, as the model says it.

use serde_json::json;

/// Octets of JSON that fit the trailer of a gRPC reply: clients take 8 KiB of metadata, and the
/// encoding of a status message makes three octets of one.
const STATUS: usize = 2400;

/// Whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The request is at fault.
    Validation,
    /// This machine or program is.
    Internal,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Validation => "validation",
            Self::Internal => "internal",
        }
    }
}

/// A refused request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Whose fault it is.
    pub kind: Kind,
    /// All that is wrong, at least one; each names the culprit.
    pub errors: Vec<String>,
}

impl Refusal {
    /// The request is at fault.
    pub fn validation(error: impl Into<String>) -> Self {
        Self {
            kind: Kind::Validation,
            errors: vec![error.into()],
        }
    }

    /// This machine or program is at fault.
    pub fn internal(error: impl Into<String>) -> Self {
        Self {
            kind: Kind::Internal,
            errors: vec![error.into()],
        }
    }

    /// The status of an HTTP reply.
    pub fn http_status(&self) -> u16 {
        match self.kind {
            Kind::Validation => 400,
            Kind::Internal => 500,
        }
    }

    /// The body of an HTTP reply with that status.
    pub fn body(&self, status: i64) -> String {
        self.json(status, &self.errors)
    }

    /// The message of a gRPC status: the same with the status' code, cut to what fits.
    pub fn status_message(&self, code: i32) -> String {
        let mut errors = self.errors.clone();
        loop {
            let left = self.errors.len() - errors.len();
            let mut shown = errors.clone();
            if left > 0 {
                shown.push(format!("{left} more; over HTTP, the reply has them all"));
            }
            let text = self.json(code.into(), &shown);
            if text.len() <= STATUS || errors.len() <= 1 {
                return text;
            }
            errors.pop();
        }
    }

    fn json(&self, code: i64, errors: &[String]) -> String {
        json!({ "code": code, "kind": self.kind.name(), "errors": errors }).to_string()
    }
}

impl From<validator_core::engine::Problem> for Refusal {
    fn from(problem: validator_core::engine::Problem) -> Self {
        use validator_core::engine::Problem;
        match problem {
            Problem::Order(text) => Self::validation(text),
            Problem::Machine(text) => Self::internal(text),
        }
    }
}

impl From<Vec<validator_core::engine::Problem>> for Refusal {
    /// It is the machine's fault only where no order is at fault.
    fn from(problems: Vec<validator_core::engine::Problem>) -> Self {
        use validator_core::engine::Problem;
        let machine = problems
            .iter()
            .all(|problem| matches!(problem, Problem::Machine(_)));
        Self {
            kind: if machine {
                Kind::Internal
            } else {
                Kind::Validation
            },
            errors: problems.iter().map(ToString::to_string).collect(),
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
            kind: Kind::Validation,
            errors: errors.collect(),
        };
        let message = refusal.status_message(3);
        assert!(message.len() <= STATUS);
        let read: serde_json::Value = serde_json::from_str(&message).unwrap();
        assert_eq!(read["code"], 3);
        let list = read["errors"].as_array().unwrap();
        let last = list.last().unwrap().as_str().unwrap();
        assert_eq!(
            last,
            format!(
                "{} more; over HTTP, the reply has them all",
                1000 - (list.len() - 1)
            )
        );
    }

    #[test]
    fn an_http_body_has_code_kind_and_all_errors() {
        let body = Refusal::internal("no such device").body(500);
        assert_eq!(
            body,
            r#"{"code":500,"errors":["no such device"],"kind":"internal"}"#
        );
    }
}
