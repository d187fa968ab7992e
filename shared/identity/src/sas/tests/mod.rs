//! Tokens: every known signature, every malformed form, every check.

mod checks;
mod forms;
mod vectors;
