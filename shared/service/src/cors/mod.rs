//! Which pages of other origins may call, by the rules that accounts keep in the properties of a
//! service. `rules` decides, `lookup` reads them. The rules bind browsers, not callers: a call is
//! never refused for its origin.

mod lookup;
mod rules;

pub use self::{
    lookup::Lookup,
    rules::{Allowed, Preflight, Rules},
};
