//! Network namespaces that live no longer than the process.
