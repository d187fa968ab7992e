//! Tokens: every vector, every malformed form, every check.

mod added_service;
mod checks;
mod delegation;
mod forms;
mod vectors;
mod verified;
