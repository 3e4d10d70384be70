//! The operations of the model, as both transports offer them.

use prost_reflect::{DynamicMessage, MessageDescriptor, MethodDescriptor};

use crate::error::Refusal;
use crate::model::{self, Builder};
use crate::session::{File, Session, Warnings};

/// An operation on both transports.
pub struct Operation {
    /// Method in the gRPC service; its twin in pieces has `stream` before the name.
    pub rpc: &'static str,
    /// HTTP method and path.
    pub http: (&'static str, &'static str),
    /// Function that carries it out, with its argument or a message without fields.
    ///
    /// # Errors
    ///
    /// A request that is at fault, and what the engine cannot do.
    pub perform: fn(&mut Session, DynamicMessage) -> Result<Answer, Refusal>,
}

impl Operation {
    /// Returns its method in the gRPC service.
    ///
    /// # Panics
    ///
    /// If the model has no such method: names are those of this crate's own code.
    pub fn method(&self) -> MethodDescriptor {
        model::method(self.rpc).expect("the operation is the model's")
    }

    /// Returns the kind of its argument; `None` where it takes none.
    pub fn takes(&self) -> Option<MessageDescriptor> {
        let field = self.method().input().fields().next()?;
        field.kind().as_message().cloned()
    }

    /// Reads its argument, of the kind that `read` is given; a message without fields where it
    /// takes none.
    ///
    /// # Errors
    ///
    /// Errors of `read`.
    pub fn argument(
        &self,
        read: impl FnOnce(MessageDescriptor) -> Result<DynamicMessage, Refusal>,
    ) -> Result<DynamicMessage, Refusal> {
        match self.takes() {
            Some(kind) => read(kind),
            None => Ok(DynamicMessage::new(self.method().input())),
        }
    }
}

/// All operations.
pub const OPERATIONS: [Operation; 11] = [
    Operation {
        rpc: "SetConfig",
        http: ("POST", "/config"),
        perform: |session, config| session.set_config(config).map(warned),
    },
    Operation {
        rpc: "GetConfig",
        http: ("GET", "/config"),
        perform: |session, _| Ok(Answer::Message(session.config().clone())),
    },
    Operation {
        rpc: "UpdateConfig",
        http: ("PATCH", "/config"),
        perform: |session, update| session.update_config(&update).map(warned),
    },
    Operation {
        rpc: "AppendConfig",
        http: ("PATCH", "/config/append"),
        perform: |_, _| Err(Refusal::validation(WHOLE)),
    },
    Operation {
        rpc: "DeleteConfig",
        http: ("PATCH", "/config/delete"),
        perform: |_, _| Err(Refusal::validation(WHOLE)),
    },
    Operation {
        rpc: "SetControlState",
        http: ("POST", "/control/state"),
        perform: |session, state| session.set_control_state(&state).map(warned),
    },
    Operation {
        rpc: "SetControlAction",
        http: ("POST", "/control/action"),
        perform: |_, _| {
            Err(Refusal::validation(
                "set_control_action is not supported: ping and actions of protocols need a \
                 control plane",
            ))
        },
    },
    Operation {
        rpc: "GetMetrics",
        http: ("POST", "/monitor/metrics"),
        perform: |session, request| session.metrics(&request).map(Answer::Message),
    },
    Operation {
        rpc: "GetStates",
        http: ("POST", "/monitor/states"),
        perform: |session, request| session.states(&request).map(Answer::Message),
    },
    Operation {
        rpc: "GetCapture",
        http: ("POST", "/monitor/capture"),
        perform: |session, request| session.captured(&request).map(Answer::File),
    },
    Operation {
        rpc: "GetVersion",
        http: ("GET", "/capabilities/version"),
        perform: |_, _| Ok(Answer::Message(version())),
    },
];

/// Error of operations on parts of a configuration.
const WHOLE: &str = "append_config and delete_config are not supported: send the whole \
                     configuration by set_config";

/// Result of an operation.
pub enum Answer {
    /// A message.
    Message(DynamicMessage),
    /// A file.
    File(File),
}

fn warned(warnings: Warnings) -> Answer {
    Answer::Message(model::warning(warnings))
}

/// Clients compare their own version with the first.
fn version() -> DynamicMessage {
    Builder::new("Version")
        .with("api_spec_version", model::CLIENTS.to_owned())
        .with("sdk_version", model::VERSION.to_owned())
        .with("app_version", env!("CARGO_PKG_VERSION").to_owned())
        .done()
}
