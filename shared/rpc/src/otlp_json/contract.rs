//! The messages that requests of OTLP have, from the descriptors of the contract.

use std::{collections::HashMap, sync::LazyLock};

use prost::Message as _;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};

use super::OtlpRequest;

/// The contract of this build.
pub(super) static CONTRACT: LazyLock<OtlpContract> = LazyLock::new(|| {
    let set = FileDescriptorSet::decode(trestle_proto::FILE_DESCRIPTOR_SET);
    OtlpContract::new(&set.expect("the build wrote the descriptors"))
});

/// The fields of type bytes that are hexadecimal in JSON.
const IDS: [&str; 3] = ["trace_id", "span_id", "parent_span_id"];
/// The package of every message.
const PACKAGE: &str = "opentelemetry.proto";

/// A field.
#[derive(Debug)]
pub(super) struct FieldForm {
    pub(super) number: u32,
    pub(super) is_repeated: bool,
    pub(super) kind: FieldKind,
}

/// What a field has.
#[derive(Debug)]
pub(super) enum FieldKind {
    /// A message, by its full name.
    Message(String),
    Text,
    Base64,
    /// The id of a trace or a span.
    Id,
    Bool,
    Number(NumberKind),
    /// The numbers of an enum by their names.
    Enum(HashMap<String, i32>),
}

/// The type of a number.
#[derive(Debug, Clone, Copy)]
pub(super) enum NumberKind {
    Int32,
    Int64,
    Uint32,
    Uint64,
    Sint32,
    Sint64,
    Fixed32,
    Fixed64,
    Sfixed32,
    Sfixed64,
    Float,
    Double,
}

impl NumberKind {
    /// The least and the greatest whole number.
    pub(super) fn range(self) -> (i128, i128) {
        match self {
            Self::Int32 | Self::Sint32 | Self::Sfixed32 => (i32::MIN.into(), i32::MAX.into()),
            Self::Int64 | Self::Sint64 | Self::Sfixed64 => (i64::MIN.into(), i64::MAX.into()),
            Self::Uint32 | Self::Fixed32 => (0, u32::MAX.into()),
            Self::Uint64 | Self::Fixed64 => (0, u64::MAX.into()),
            Self::Float | Self::Double => (i128::MIN, i128::MAX),
        }
    }

    /// Whether it has fractions.
    pub(super) fn is_real(self) -> bool {
        matches!(self, Self::Float | Self::Double)
    }
}

/// The fields of a message by their names, in JSON and in the contract.
pub(super) type MessageForm = HashMap<String, FieldForm>;

/// Every message of the protocol, by its full name.
#[derive(Debug)]
pub(super) struct OtlpContract {
    messages: HashMap<String, MessageForm>,
    empty: MessageForm,
}

impl OtlpContract {
    fn new(set: &FileDescriptorSet) -> Self {
        let files = set.file.iter().filter(|file| file.package().starts_with(PACKAGE));
        let (mut messages, mut enums) = (Vec::new(), HashMap::new());
        for file in files {
            let scope = format!(".{}", file.package());
            collect_enums(&scope, &file.enum_type, &mut enums);
            for message in &file.message_type {
                collect(&scope, message, &mut messages, &mut enums);
            }
        }
        let form = |(name, message): (String, &DescriptorProto)| {
            let fields = message.field.iter().flat_map(|field| {
                let names = [field.json_name(), field.name()];
                names.map(|name| Some((name.to_owned(), form_of(field, &enums)?)))
            });
            (name, fields.flatten().collect())
        };
        let messages = messages.into_iter().map(form).collect();
        Self { messages, empty: MessageForm::new() }
    }

    /// The message of a request.
    pub(super) fn request(&self, request: OtlpRequest) -> &MessageForm {
        self.message(match request {
            OtlpRequest::Logs => ".opentelemetry.proto.collector.logs.v1.ExportLogsServiceRequest",
            OtlpRequest::Metrics => {
                ".opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest"
            }
            OtlpRequest::Traces => {
                ".opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest"
            }
        })
    }

    /// The message with a full name.
    pub(super) fn message(&self, name: &str) -> &MessageForm {
        self.messages.get(name).unwrap_or(&self.empty)
    }
}

/// Collects a message and those that are declared in it.
fn collect<'a>(
    scope: &str,
    message: &'a DescriptorProto,
    messages: &mut Vec<(String, &'a DescriptorProto)>,
    enums: &mut HashMap<String, HashMap<String, i32>>,
) {
    let name = format!("{scope}.{}", message.name());
    collect_enums(&name, &message.enum_type, enums);
    for nested in &message.nested_type {
        collect(&name, nested, messages, enums);
    }
    messages.push((name, message));
}

fn collect_enums(
    scope: &str,
    types: &[EnumDescriptorProto],
    enums: &mut HashMap<String, HashMap<String, i32>>,
) {
    for kind in types {
        let values = kind.value.iter().map(|value| (value.name().to_owned(), value.number()));
        enums.insert(format!("{scope}.{}", kind.name()), values.collect());
    }
}

/// A field in the form in which it is read; none for a type that the protocol does not use.
fn form_of(
    field: &FieldDescriptorProto,
    enums: &HashMap<String, HashMap<String, i32>>,
) -> Option<FieldForm> {
    let kind = match field.r#type() {
        Type::Message => FieldKind::Message(field.type_name().to_owned()),
        Type::String => FieldKind::Text,
        Type::Bytes if IDS.contains(&field.name()) => FieldKind::Id,
        Type::Bytes => FieldKind::Base64,
        Type::Bool => FieldKind::Bool,
        Type::Enum => FieldKind::Enum(enums.get(field.type_name())?.clone()),
        Type::Int32 => FieldKind::Number(NumberKind::Int32),
        Type::Int64 => FieldKind::Number(NumberKind::Int64),
        Type::Uint32 => FieldKind::Number(NumberKind::Uint32),
        Type::Uint64 => FieldKind::Number(NumberKind::Uint64),
        Type::Sint32 => FieldKind::Number(NumberKind::Sint32),
        Type::Sint64 => FieldKind::Number(NumberKind::Sint64),
        Type::Fixed32 => FieldKind::Number(NumberKind::Fixed32),
        Type::Fixed64 => FieldKind::Number(NumberKind::Fixed64),
        Type::Sfixed32 => FieldKind::Number(NumberKind::Sfixed32),
        Type::Sfixed64 => FieldKind::Number(NumberKind::Sfixed64),
        Type::Float => FieldKind::Number(NumberKind::Float),
        Type::Double => FieldKind::Number(NumberKind::Double),
        Type::Group => return None,
    };
    let number = u32::try_from(field.number()).ok()?;
    Some(FieldForm { number, is_repeated: field.label() == Label::Repeated, kind })
}
