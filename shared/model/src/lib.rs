//! The values of the contract that all services share: names, limits, times, etags, pages, errors, and the types of
//! properties. They depend on no engine and on no transport.

pub mod blob_name;
pub mod duration;
pub mod edm;
pub mod etag;
pub mod fault;
pub mod json_error;
pub mod limits;
pub mod metadata;
pub mod name;
pub mod page;
pub mod read_grace;
pub mod time;
pub mod xml;
