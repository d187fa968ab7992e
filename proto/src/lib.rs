//! The contracts of Trestle, generated from the `.proto` files beside this crate, and how their messages are read and
//! written field by field.

#[cfg(feature = "grpc")]
mod codec;
mod parts;
#[cfg(feature = "grpc")]
mod raw;
pub mod wire;

#[cfg(feature = "grpc")]
pub use codec::Codec;
pub use parts::{PARTS_MAX, are_too_many};
#[cfg(feature = "grpc")]
pub use raw::RawCodec;

/// Encoded `FileDescriptorSet` of what reflection serves: every contract, and those of health and reflection
/// itself, all
/// with their comments.
pub const REFLECTION_DESCRIPTOR_SET: &[u8] =
    include_bytes!(concat!(env!("OUT_DIR"), "/reflection.bin"));

/// Encoded `FileDescriptorSet` of every contract of Trestle.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

pub mod google;

/// Reasons of failed calls.
pub mod errors {
    /// Version 1.
    #[allow(
        missing_docs,
        unused_qualifications,
        clippy::all,
        clippy::too_many_lines,
        reason = "generated"
    )]
    pub mod v1 {
        include!(concat!(env!("OUT_DIR"), "/trestle.errors.v1.rs"));
    }
}

/// What the services have in common: settings, access policies, durability.
pub mod service {
    /// Version 1.
    #[allow(missing_docs, unused_qualifications, clippy::all, reason = "generated")]
    pub mod v1 {
        include!(concat!(env!("OUT_DIR"), "/trestle.service.v1.rs"));
    }
}

/// Tables and entities.
pub mod table {
    /// Version 1.
    #[allow(
        missing_docs,
        unused_qualifications,
        clippy::all,
        clippy::pedantic,
        clippy::missing_errors_doc,
        clippy::needless_pass_by_value,
        clippy::too_many_lines,
        reason = "generated"
    )]
    pub mod v1 {
        /// Responses that carry stored entities as bytes.
        pub mod stored;

        pub use stored::{GetEntityResponse, QueryEntitiesResponse, StreamEntitiesResponse};

        include!(concat!(env!("OUT_DIR"), "/trestle.table.v1.rs"));
    }
}

/// Queues and messages.
pub mod queue {
    /// Version 1.
    #[allow(
        missing_docs,
        unused_qualifications,
        clippy::all,
        clippy::pedantic,
        clippy::missing_errors_doc,
        clippy::needless_pass_by_value,
        clippy::too_many_lines,
        reason = "generated"
    )]
    pub mod v1 {
        include!(concat!(env!("OUT_DIR"), "/trestle.queue.v1.rs"));
    }
}

/// Containers and blobs.
pub mod blob {
    /// Version 1.
    #[allow(
        missing_docs,
        unused_qualifications,
        clippy::all,
        clippy::pedantic,
        clippy::missing_errors_doc,
        clippy::needless_pass_by_value,
        clippy::too_many_lines,
        reason = "generated"
    )]
    pub mod v1 {
        include!(concat!(env!("OUT_DIR"), "/trestle.blob.v1.rs"));
    }
}

/// Log records and their streams.
pub mod log {
    /// Version 1.
    #[allow(
        missing_docs,
        unused_qualifications,
        clippy::all,
        clippy::pedantic,
        clippy::missing_errors_doc,
        clippy::needless_pass_by_value,
        clippy::too_many_lines,
        reason = "generated"
    )]
    pub mod v1 {
        /// Messages that carry encoded records.
        pub mod wire;

        pub use wire::{AppendRecordsRequest, ReadRecordsResponse, TailRecordsResponse};

        include!(concat!(env!("OUT_DIR"), "/trestle.log.v1.rs"));
    }
}

/// The protocol of OpenTelemetry.
#[allow(
    missing_docs,
    unused_qualifications,
    clippy::all,
    clippy::pedantic,
    clippy::missing_errors_doc,
    clippy::needless_pass_by_value,
    clippy::too_many_lines,
    reason = "generated"
)]
pub mod opentelemetry;
