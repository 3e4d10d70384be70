//! The lossless switch: a sans-IO model, and the process that puts it on two ports.
