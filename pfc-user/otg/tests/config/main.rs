//! Configurations, and the plans or the errors that are made of them.
//!
//! lane: computing

mod configs;
mod mistakes;
#[path = "../server/places.rs"]
mod places;
mod translation;
