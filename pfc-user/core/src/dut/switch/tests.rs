//! The switch model with a virtual clock.

mod counts;
mod fault_figures;
mod faults;
mod forwarding;
mod lab;
mod pfc;
mod ports;
mod random;
