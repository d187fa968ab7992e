//! CORS: which pages of other origins may call, by the rules that accounts store in the properties
//! of a service. `rules` decides, `lookup` reads them. The rules restrict browsers, not callers: a
//! call is never rejected for its origin.

mod lookup;
mod rules;

pub use self::{
    lookup::Lookup,
    rules::{Allowed, Preflight, Rules},
};
