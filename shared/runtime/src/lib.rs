//! The common parts of every process of Trestle: configuration, telemetry, listeners, health, background loops.
//!
//! It depends on no service and no storage engine.

pub mod admin;
pub mod build;
pub mod config;
pub mod health;
pub mod health_reflection;
pub mod openmetrics;
mod reflection;
pub mod serve;
pub mod task;
pub mod telemetry;
pub mod tls;
