//! A server of the Open Traffic Generator API (OTG) on an engine of ports and flows.
//!
//! ```text
//! client --gRPC--> grpc --+                          +--> translate --> plan --+
//!                         +--> server --> session ---+                         +--> Engine
//! client --HTTP--> http --+    (one request at a     +<-- metrics, captures <--+
//!                              time, lease)
//! ```
//!
//! - [`model`] has the messages by descriptor, [`json`] their JSON, [`reader`] the view that
//!   refuses unread fields;
//! - [`translate`] makes a plan of a configuration; it does no I/O;
//! - [`session`] is the state: the configuration in force, and the [`Engine`];
//! - [`server`], [`grpc`] and [`http`] carry requests to it, plain or by [`tls`], from those whom
//!   [`access`] lets in.

pub mod access;
pub mod api;
mod body;
mod connections;
pub mod error;
pub mod grpc;
pub mod http;
pub mod json;
mod lease;
pub mod model;
pub mod places;
pub mod reader;
pub mod server;
pub mod session;
mod shared;
pub mod tls;
pub mod translate;
mod values;

pub use access::Access;
pub use places::{Place, Places};
pub use server::{Options, Server};
pub use tls::{Certificates, Tls};
pub use validator_core::engine::Engine;
