//! Output of a run: before it, during it, and in its reports.
//!
//! lane: computing

mod captures;
mod compare;
mod evidence;
mod files;
mod folder;
mod hostile;
mod machine_readable;
pub mod samples;
mod summary;
mod views;
