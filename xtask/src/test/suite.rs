//! Cargo's build for the tests: each crate once, with one profile and one set of features, and
//! linted as it is compiled.

/// Profile of the tests.
pub const PROFILE: &str = "suite";
/// The server of the Open Traffic Generator API.
pub const OTG: &str = "pfc-user/otg";
/// That and verbs, which need what only the labs install.
pub const VERBS: &str = "pfc-user/otg,pfc-user/verbs";

/// Variable and value with which cargo compiles the workspace's crates by Clippy: the compiler with
/// lints, and without optimisation before LLVM. To lint them apart takes a tenth of the CPU time of
/// all tests.
pub const LINTED: (&str, &str) = ("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");

/// Options of cargo that choose all that is tested, but for this program, which cargo has built
/// already.
pub fn with(features: &'static str) -> [&'static str; 7] {
    [
        "--workspace",
        "--exclude",
        "xtask",
        "--profile",
        PROFILE,
        "--features",
        features,
    ]
}
