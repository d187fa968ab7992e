//! Entities and tables as OData JSON: bodies of requests in, bodies of answers out.
//!
//! `read` parses a body into the entity of the contract, `wire` reads the encoded entities in the
//! responses of the table service, `write` renders them at the requested metadata level, and `page`
//! does so for a whole page while it is sent.

mod page;
mod read;
mod select;
#[cfg(test)]
mod tests;
mod value;
mod wire;
mod write;

pub use read::entity_of;
pub use write::entity_path;
pub(crate) use {
    page::PageBody,
    read::table_name_of,
    select::Select,
    wire::Unreadable,
    write::{ResponseOrigin, entity_json, etag_of, table_json, tables_json},
};
