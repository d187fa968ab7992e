//! Trestle.
fn main() {}
