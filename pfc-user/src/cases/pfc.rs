//! The four cases of the PFC test plan.
