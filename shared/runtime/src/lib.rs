//! What every process of Trestle is made of: configuration, telemetry, listeners, health,
//! background loops.
//!
//! Knows no service and no storage; `main` puts both together.

pub mod admin;
pub mod config;
pub mod edge;
pub mod health;
pub mod openmetrics;
pub mod serve;
pub mod task;
pub mod telemetry;
pub mod tls;
