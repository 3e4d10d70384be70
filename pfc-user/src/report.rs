//! Events and results in, one format a file.
