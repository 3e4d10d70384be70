//! The operations of the model, as both transports offer them.

use prost_reflect::DynamicMessage;

use crate::error::Refusal;
use crate::model::{self, Builder};
use crate::session::{File, Session};

/// Call that a client may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Puts a configuration into force.
    SetConfig,
    /// The configuration in force.
    GetConfig,
    /// Changes flows.
    UpdateConfig,
    /// Not supported.
    AppendConfig,
    /// Not supported.
    DeleteConfig,
    /// Links, captures, traffic.
    SetControlState,
    /// Not supported.
    SetControlAction,
    /// Counts and rates.
    GetMetrics,
    /// Neighbours.
    GetStates,
    /// A capture's file.
    GetCapture,
    /// Versions.
    GetVersion,
}

/// An operation on both transports.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Call that it carries out.
    pub call: Call,
    /// Method in the gRPC service; its twin in pieces has `stream` before the name.
    pub rpc: &'static str,
    /// HTTP method and path.
    pub http: (&'static str, &'static str),
    /// Message that it takes.
    pub takes: Option<&'static str>,
    /// Part of the call that its gRPC twin has in pieces.
    pub pieces: Pieces,
}

/// Part of a call that a gRPC twin has in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pieces {
    /// There is no twin.
    No,
    /// The request.
    Request,
    /// The reply.
    Reply,
}

/// All operations.
pub const OPERATIONS: [Operation; 11] = [
    Operation {
        call: Call::SetConfig,
        rpc: "SetConfig",
        http: ("POST", "/config"),
        takes: Some("Config"),
        pieces: Pieces::Request,
    },
    Operation {
        call: Call::GetConfig,
        rpc: "GetConfig",
        http: ("GET", "/config"),
        takes: None,
        pieces: Pieces::Reply,
    },
    Operation {
        call: Call::UpdateConfig,
        rpc: "UpdateConfig",
        http: ("PATCH", "/config"),
        takes: Some("ConfigUpdate"),
        pieces: Pieces::No,
    },
    Operation {
        call: Call::AppendConfig,
        rpc: "AppendConfig",
        http: ("PATCH", "/config/append"),
        takes: Some("ConfigAppend"),
        pieces: Pieces::No,
    },
    Operation {
        call: Call::DeleteConfig,
        rpc: "DeleteConfig",
        http: ("PATCH", "/config/delete"),
        takes: Some("ConfigDelete"),
        pieces: Pieces::No,
    },
    Operation {
        call: Call::SetControlState,
        rpc: "SetControlState",
        http: ("POST", "/control/state"),
        takes: Some("ControlState"),
        pieces: Pieces::Request,
    },
    Operation {
        call: Call::SetControlAction,
        rpc: "SetControlAction",
        http: ("POST", "/control/action"),
        takes: Some("ControlAction"),
        pieces: Pieces::Request,
    },
    Operation {
        call: Call::GetMetrics,
        rpc: "GetMetrics",
        http: ("POST", "/monitor/metrics"),
        takes: Some("MetricsRequest"),
        pieces: Pieces::Reply,
    },
    Operation {
        call: Call::GetStates,
        rpc: "GetStates",
        http: ("POST", "/monitor/states"),
        takes: Some("StatesRequest"),
        pieces: Pieces::Reply,
    },
    Operation {
        call: Call::GetCapture,
        rpc: "GetCapture",
        http: ("POST", "/monitor/capture"),
        takes: Some("CaptureRequest"),
        pieces: Pieces::Reply,
    },
    Operation {
        call: Call::GetVersion,
        rpc: "GetVersion",
        http: ("GET", "/capabilities/version"),
        takes: None,
        pieces: Pieces::No,
    },
];

/// Result of an operation.
pub enum Answer {
    /// A message.
    Message(DynamicMessage),
    /// A file.
    File(File),
}

/// Carries out a call.
///
/// # Errors
///
/// A request that is at fault, and what the engine cannot do.
pub fn perform(
    session: &mut Session,
    call: Call,
    argument: Option<DynamicMessage>,
) -> Result<Answer, Refusal> {
    let needed = || Refusal::validation("the request is empty");
    let message = match call {
        Call::SetConfig => model::warning(&session.set_config(argument.ok_or_else(needed)?)?),
        Call::GetConfig => session.config().clone(),
        Call::UpdateConfig => {
            model::warning(&session.update_config(&argument.ok_or_else(needed)?)?)
        }
        Call::AppendConfig | Call::DeleteConfig => {
            return Err(Refusal::validation(
                "append_config and delete_config are not supported: send the whole configuration \
                 by set_config",
            ));
        }
        Call::SetControlState => {
            model::warning(&session.set_control_state(&argument.ok_or_else(needed)?)?)
        }
        Call::SetControlAction => {
            return Err(Refusal::validation(
                "set_control_action is not supported: ping and actions of protocols need a \
                 control plane",
            ));
        }
        Call::GetMetrics => session.metrics(&argument.ok_or_else(needed)?)?,
        Call::GetStates => session.states(&argument.ok_or_else(needed)?)?,
        Call::GetCapture => {
            return Ok(Answer::File(
                session.captured(&argument.ok_or_else(needed)?)?,
            ));
        }
        Call::GetVersion => version(),
    };
    Ok(Answer::Message(message))
}

/// Clients compare their own version with the first.
fn version() -> DynamicMessage {
    Builder::new("Version")
        .with("api_spec_version", model::CLIENTS.to_owned())
        .with("sdk_version", model::VERSION.to_owned())
        .with("app_version", env!("CARGO_PKG_VERSION").to_owned())
        .done()
}
