//! Tests of the binary and of nodes in process.
