#!/bin/sh
# rustdoc for `cargo test --doc`: documents the crate whose examples are to be tested, and then
# tests them. A warning ends it before that. `cargo doc` would check 250 crates of others for it
# once more; here it reads the libraries that the tests have. A link that only resolves with the
# features or the crates of the tests is found by `cargo doc`, which `cargo xtask test --full` runs.
set -eu
case " $* " in
*" --test "*) ;;
*) exec rustdoc "$@" ;;
esac
document() {
    for argument; do
        shift
        case $argument in
        --test) ;;
        *) set -- "$@" "$argument" ;;
        esac
    done
    rustdoc -D warnings --out-dir "$VALIDATOR_DOC" "$@"
}
document "$@"
exec rustdoc "$@"
