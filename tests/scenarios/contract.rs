//! Statements of the contract: authentication, results that are easy to misread, and the
//! published service config.

use std::collections::BTreeSet;

use prost::Message as _;
use prost_types::{
    DescriptorProto, FileDescriptorProto, FileDescriptorSet, MethodDescriptorProto,
    method_options::IdempotencyLevel,
};
use serde_json::Value;

const SERVICE: i32 = 6;
const METHOD: i32 = 2;
const STATUS: &str = ".google.rpc.Status";

fn files() -> Vec<FileDescriptorProto> {
    let set = FileDescriptorSet::decode(trestle_proto::FILE_DESCRIPTOR_SET).unwrap();
    set.file.into_iter().filter(|file| file.package().starts_with("trestle.")).collect()
}

fn comment(file: &FileDescriptorProto, path: &[i32]) -> String {
    let info = file.source_code_info.as_ref().expect("comments");
    let location = info.location.iter().find(|location| location.path == path);
    location.expect("a location").leading_comments().replace('\n', "")
}

/// The full name of each method, with its comment.
fn methods() -> Vec<(String, String, MethodDescriptorProto, FileDescriptorProto)> {
    let mut methods = Vec::new();
    for file in files() {
        for (service, declared) in (0..).zip(&file.service) {
            for (method, descriptor) in (0..).zip(&declared.method) {
                let text = comment(&file, &[SERVICE, service, METHOD, method]);
                let name = format!("{}.{}", file.package(), declared.name());
                methods.push((name, text, descriptor.clone(), file.clone()));
            }
        }
    }
    methods
}

/// Whether a response has items that may have failed.
fn has_errors(file: &FileDescriptorProto, response: &str) -> bool {
    let find = |name: &str| -> Option<&DescriptorProto> {
        let name = name.rsplit('.').next()?;
        file.message_type.iter().find(|message| message.name() == name)
    };
    let is_error = |item: &DescriptorProto| {
        item.field.iter().any(|field| field.name() == "error" && field.type_name() == STATUS)
    };
    let response = find(response).expect("a response");
    let items = response.field.iter().filter_map(|field| find(field.type_name()));
    items.chain([response]).any(is_error)
}

#[test]
fn results_of_many_items_are_announced_before_anything_else() {
    let methods = methods();
    let of_items = methods.iter().filter(|method| has_errors(&method.3, method.2.output_type()));
    let mut names = Vec::new();
    for (_, comment, method, _) in of_items {
        assert!(comment.starts_with(" A call that succeeds may have"), "{}", method.name());
        names.push(method.name());
    }
    let expected = [
        "ImportEntities",
        "SendMessages",
        "DeleteMessages",
        "VerifyBlobs",
        "DeleteBlobs",
        "AppendStream",
    ];
    assert_eq!(names, expected);
}

#[test]
fn every_service_declares_how_to_authenticate_and_its_limit() {
    let mut count = 0;
    for file in files() {
        for (index, service) in (0..).zip(&file.service) {
            let comment = comment(&file, &[SERVICE, index]);
            for part in ["`authorization`", "`SharedAccessSignature`", "8 MiB", "gzip"] {
                assert!(comment.contains(part), "{}: {part}", service.name());
            }
            count += 1;
        }
    }
    assert_eq!(count, 4);
}

#[test]
fn the_service_config_retries_every_read_and_no_other_write_than_an_upsert() {
    let text = include_str!("../../proto/service_config.json");
    let config: Value = serde_json::from_str(text).expect("JSON");
    let mut retried = BTreeSet::new();
    for method in config["methodConfig"].as_array().expect("a list") {
        assert!(method["retryPolicy"].is_object());
        for name in method["name"].as_array().expect("a list") {
            let part = |part: &str| name[part].as_str().expect("a name").to_owned();
            retried.insert((part("service"), part("method")));
        }
    }
    let is_read = |method: &MethodDescriptorProto| {
        let options = method.options.as_ref();
        options.is_some_and(|o| o.idempotency_level() == IdempotencyLevel::NoSideEffects)
    };
    let safe = methods()
        .into_iter()
        .filter(|(_, _, method, _)| is_read(method) || method.name() == "UpsertEntity");
    let safe: BTreeSet<_> =
        safe.map(|(service, _, method, _)| (service, method.name().to_owned())).collect();
    assert_eq!(retried, safe);
}
