//! What the edges of all Azure services have in common: the same tests for each of them.

mod bearer_tokens;
mod bodies;
mod browsers;
mod documents;
mod endpoint;
mod error_texts;
mod heads;
mod hostile;
mod metadata;
mod overload;
mod telemetry;
mod user_delegation;
