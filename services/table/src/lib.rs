//! Placeholder.

pub mod entity;
pub mod query;
pub mod stored;
pub mod value;
