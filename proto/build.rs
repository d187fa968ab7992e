//! Compiles the contracts without protoc and keeps their descriptors, comments included, for reflection.

use std::{env, fs, path::PathBuf};

use protox::prost::Message as _;

const FILES: &[&str] = &[
    "trestle/table/v1/table_service.proto",
    "trestle/queue/v1/queue_service.proto",
    "trestle/errors/v1/error_reason.proto",
    // No contract refers to them; clients that live by reflection need them to read errors.
    "google/rpc/error_details.proto",
];

#[expect(clippy::disallowed_methods, reason = "cargo speaks to build scripts through variables")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=trestle");
    println!("cargo:rerun-if-changed=google");
    let descriptors = protox::compile(FILES, ["."])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;

    let mut config = prost_build::Config::new();
    // The codec knows a message by its name.
    config.enable_type_names();
    tonic_prost_build::configure()
        .extern_path(".google.rpc.Status", "::tonic_types::Status")
        .bytes(".")
        .codec_path("crate::codec::Codec")
        // Entities are stored as they travel, so the server answers reads with bytes it never decodes.
        // These messages are declared by hand in `stored.rs`, identical on the wire.
        .extern_path(
            ".trestle.table.v1.GetEntityResponse",
            "crate::table::v1::stored::GetEntityResponse",
        )
        .extern_path(
            ".trestle.table.v1.QueryEntitiesResponse",
            "crate::table::v1::stored::QueryEntitiesResponse",
        )
        .extern_path(
            ".trestle.table.v1.StreamEntitiesResponse",
            "crate::table::v1::stored::StreamEntitiesResponse",
        )
        // The settings of every service have one shape, which `service_properties` of the shared crate checks and
        // holds all contracts to; one set of types serves them all.
        .extern_path(".trestle.queue.v1.ServiceProperties", "crate::table::v1::ServiceProperties")
        .extern_path(".trestle.queue.v1.Logging", "crate::table::v1::Logging")
        .extern_path(".trestle.queue.v1.Metrics", "crate::table::v1::Metrics")
        .extern_path(".trestle.queue.v1.Cors", "crate::table::v1::Cors")
        .extern_path(".trestle.queue.v1.CorsRule", "crate::table::v1::CorsRule")
        .compile_fds_with_config(descriptors, config)?;
    Ok(())
}
