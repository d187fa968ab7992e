//! Compiles the contracts without protoc and keeps their descriptors, comments included, for reflection.

use std::{env, fs, path::PathBuf};

use prost_types::{FileDescriptorProto, FileDescriptorSet, source_code_info::Location};
use protox::prost::Message as _;

const FILES: &[&str] = &[
    "trestle/table/v1/table_service.proto",
    "trestle/queue/v1/queue_service.proto",
    "trestle/blob/v1/blob_service.proto",
    "trestle/log/v1/log_service.proto",
    "trestle/errors/v1/error_reason.proto",
    // How telemetry arrives from the SDKs and collectors of OpenTelemetry.
    "opentelemetry/proto/collector/logs/v1/logs_service.proto",
    "opentelemetry/proto/collector/metrics/v1/metrics_service.proto",
    "opentelemetry/proto/collector/trace/v1/trace_service.proto",
    // No contract refers to them; clients that use only reflection need them to read errors.
    "google/rpc/error_details.proto",
];

/// The attribute of what needs the transport.
const GRPC: &str = "#[cfg(feature = \"grpc\")]";

/// Contracts that libraries implement. They are served by reflection, and no code is generated from them.
const STANDARD_FILES: &[&str] = &[
    "grpc/health/v1/health.proto",
    "grpc/reflection/v1/reflection.proto",
    "grpc/reflection/v1alpha/reflection.proto",
];

#[expect(clippy::disallowed_methods, reason = "cargo passes variables to build scripts")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=trestle");
    println!("cargo:rerun-if-changed=google");
    println!("cargo:rerun-if-changed=grpc");
    println!("cargo:rerun-if-changed=opentelemetry");
    let descriptors = protox::compile(FILES, ["."])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    // As bytes: decoded descriptors lose their options, such as `google.api.field_behavior`.
    let mut reflected = protox::Compiler::new(["."])?;
    reflected.include_source_info(true).include_imports(true);
    reflected.open_files(FILES.iter().chain(STANDARD_FILES))?;
    fs::write(out.join("reflection.bin"), reflected.encode_file_descriptor_set())?;

    let telemetry = telemetry(&descriptors);
    let mut config = prost_build::Config::new();
    // The codec identifies a message by its name.
    config.enable_type_names();
    // Attributes in the order of their keys.
    config.btree_map([".trestle.log.v1"]);
    tonic_prost_build::configure()
        .extern_path(".google.rpc.Status", "crate::google::rpc::Status")
        .client_mod_attribute(".", GRPC)
        .server_mod_attribute(".", GRPC)
        .extern_path(".opentelemetry.proto", "crate::opentelemetry::proto")
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
        // Records are stored as they travel too; these messages are declared by hand in `log/v1/wire.rs`.
        .extern_path(
            ".trestle.log.v1.AppendRecordsRequest",
            "crate::log::v1::wire::AppendRecordsRequest",
        )
        .extern_path(
            ".trestle.log.v1.ReadRecordsResponse",
            "crate::log::v1::wire::ReadRecordsResponse",
        )
        .extern_path(
            ".trestle.log.v1.TailRecordsResponse",
            "crate::log::v1::wire::TailRecordsResponse",
        )
        .compile_fds_with_config(with_properties_as_pairs(descriptors)?, config)?;
    generate_telemetry(telemetry)?;
    Ok(())
}

/// The protocol of OpenTelemetry.
fn telemetry(descriptors: &FileDescriptorSet) -> FileDescriptorSet {
    let is_telemetry =
        |file: &&FileDescriptorProto| file.package().starts_with("opentelemetry.proto");
    FileDescriptorSet { file: descriptors.file.iter().filter(is_telemetry).cloned().collect() }
}

/// Generates the protocol of OpenTelemetry, whose modules are nested in another way than those of Trestle. To be called
/// last: it replaces what the other call wrote for these packages.
fn generate_telemetry(telemetry: FileDescriptorSet) -> std::io::Result<()> {
    let mut config = prost_build::Config::new();
    config.enable_type_names();
    let mut build = tonic_prost_build::configure()
        .bytes(".")
        .codec_path("crate::codec::Codec")
        .client_mod_attribute(".", GRPC)
        .server_mod_attribute(".", GRPC);
    for (package, request) in [
        ("logs", "ExportLogsServiceRequest"),
        ("metrics", "ExportMetricsServiceRequest"),
        ("trace", "ExportTraceServiceRequest"),
    ] {
        build = build.extern_path(
            format!(".opentelemetry.proto.collector.{package}.v1.{request}"),
            format!("crate::log::v1::wire::{request}"),
        );
    }
    build.compile_fds_with_config(telemetry, config)
}

/// The contract as code is generated from: `Entity.properties` is a repeated `Property`, where the published contract
/// has a map. Both are the same bytes. A map of prost would lose the order of the entries, and which names occur twice.
fn with_properties_as_pairs(
    mut descriptors: FileDescriptorSet,
) -> Result<FileDescriptorSet, &'static str> {
    const MISSING: &str = "`map<string, Value> properties` of `trestle.table.v1.Entity`";
    let of_entity =
        |file: &&mut FileDescriptorProto| file.name() == "trestle/table/v1/entity.proto";
    let file = descriptors.file.iter_mut().find(of_entity).ok_or(MISSING)?;
    let entity = file.message_type.iter_mut().find(|message| message.name() == "Entity");
    let entity = entity.ok_or(MISSING)?;
    let mut property = entity.nested_type.pop().ok_or(MISSING)?;
    let field = entity.field.iter_mut().find(|field| field.name() == "properties");
    field.ok_or(MISSING)?.type_name = Some(".trestle.table.v1.Property".to_owned());

    property.name = Some("Property".to_owned());
    property.options = None;
    property.field.first_mut().ok_or(MISSING)?.name = Some("name".to_owned());
    let number = i32::try_from(file.message_type.len()).map_err(|_| MISSING)?;
    file.message_type.push(property);

    let comments = [
        (&[][..], " A named, typed value of an entity.\n"),
        (&[2, 0], " Required. The name, unique in the entity.\n"),
        (&[2, 1], " Required. The value; absent means null.\n"),
    ];
    let comments = comments.map(|(path, comment)| Location {
        path: [&[4, number], path].concat(),
        leading_comments: Some(comment.to_owned()),
        ..Location::default()
    });
    file.source_code_info.get_or_insert_default().location.extend(comments);
    Ok(descriptors)
}
