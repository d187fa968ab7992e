//! CORS: which pages of other origins may call, by the rules that accounts store in the properties
//! of a service. `rules` decides, `lookup` reads them. The rules restrict browsers, not callers: a
//! call is rejected for its origin only where no secret authenticates it.

mod lookup;
mod rules;

pub use self::{
    lookup::Lookup,
    rules::{Allowed, Preflight, Rules},
};
