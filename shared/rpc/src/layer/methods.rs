//! The methods that a process serves, as labels, and their properties from the descriptors. Other
//! methods that clients send never become a label.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt as _};
use prost::Message as _;
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    MethodDescriptorProto, field_descriptor_proto, method_options::IdempotencyLevel,
};

/// The label of an unknown method.
const UNKNOWN: &str = "_OTHER";
/// The field of a request that sets how long to wait for a message.
const WAIT_FIELD: &str = "wait";
/// The field of a streamed message that carries bulk data, as bytes.
const DATA_FIELD: &str = "data";
/// The field of a request that grants credit for further responses.
const CREDIT_FIELD: &str = "credit";

/// The field of a request that names where a call begins that responds until its client ends it.
const FOLLOW_FIELD: &str = "from_sequence";

/// Methods by path. Clones share them.
#[derive(Debug, Clone)]
pub struct Methods {
    by_path: Arc<HashMap<Box<str>, Method>>,
    unknown: Method,
}

/// A method, as a label and with the properties of its descriptor.
#[derive(Debug, Clone)]
pub struct Method {
    /// Its index among the methods of the contract; unknown methods share the last one.
    pub index: usize,
    /// `package.Service/Method`, or `_OTHER`.
    pub label: Arc<str>,
    /// Whether requests or responses are streams, which may last for long.
    pub streams: bool,
    /// Whether the request is a stream: its messages may arrive at any time.
    pub streams_in: bool,
    /// Whether a call may wait for an event: its request has a field `wait`.
    pub waits: bool,
    /// Whether the service responds for as long as the client grants credit, or until it cancels: a part
    /// of its request is a field `credit`, or its request has a field `from_sequence`.
    pub pushes: bool,
    /// Whether it is a read, by its contract.
    pub reads: bool,
    /// Whether it transfers bulk data: a streamed message of it has a field `data` of bytes.
    pub is_bulk: bool,
}

impl Method {
    fn new(index: usize, label: &str, method: &MethodDescriptorProto) -> Self {
        let (streams_in, streams_out) = (method.client_streaming(), method.server_streaming());
        let level = method.options.as_ref().map(|options| options.idempotency_level());
        let reads = level == Some(IdempotencyLevel::NoSideEffects);
        let (label, streams) = (label.into(), streams_in || streams_out);
        let (waits, pushes, is_bulk) = (false, false, false);
        Self { index, label, streams, streams_in, waits, pushes, reads, is_bulk }
    }
}

impl Methods {
    /// Every method of an encoded descriptor set.
    ///
    /// # Errors
    /// Bytes that are not a descriptor set.
    pub fn from_descriptors(encoded: &[u8]) -> Result<Self, prost::DecodeError> {
        let mut by_path = HashMap::new();
        for file in FileDescriptorSet::decode(encoded)?.file {
            for service in &file.service {
                for method in &service.method {
                    let (package, service) = (file.package(), service.name());
                    let label = format!("{package}.{service}/{}", method.name());
                    let (path, index) = (format!("/{label}").into(), by_path.len());
                    let request = message_of(&file, method.input_type());
                    let waits = request.is_some_and(|request| has(request, WAIT_FIELD));
                    let fields = request.into_iter().flat_map(|request| &request.field);
                    let mut parts = fields.filter_map(|field| message_of(&file, field.type_name()));
                    let follows = request.is_some_and(|request| has(request, FOLLOW_FIELD));
                    let pushes = follows || parts.any(|part| has(part, CREDIT_FIELD));
                    let is_bulk = carries_bulk_data(&file, method);
                    let method = Method::new(index, &label, method);
                    let method = Method { waits, pushes, is_bulk, ..method };
                    by_path.entry(path).or_insert(method);
                }
            }
        }
        let unknown = Method::new(by_path.len(), UNKNOWN, &MethodDescriptorProto::default());
        Ok(Self { by_path: Arc::new(by_path), unknown })
    }

    /// The method of a path.
    #[must_use]
    pub fn of(&self, path: &str) -> Method {
        self.find(path).clone()
    }

    pub(super) fn find(&self, path: &str) -> &Method {
        self.by_path.get(path).unwrap_or(&self.unknown)
    }

    /// Whether the contract has a method.
    #[must_use]
    pub fn contains(&self, method: &Method) -> bool {
        method.index != self.unknown.index
    }

    /// Whether a service, by its full name, has methods that wait or push.
    #[must_use]
    pub fn any_waits(&self, service: &str) -> bool {
        let of_service = |method: &&Method| method.label.split('/').next() == Some(service);
        let mut methods = self.by_path.values().filter(of_service);
        methods.any(|method| method.waits || method.pushes)
    }

    /// How many indices exist.
    pub(super) fn count(&self) -> usize {
        self.unknown.index + 1
    }
}

/// The message of a type, which is defined in the file of the service.
fn message_of<'a>(file: &'a FileDescriptorProto, name: &str) -> Option<&'a DescriptorProto> {
    let name = name.rsplit('.').next();
    file.message_type.iter().find(|message| Some(message.name()) == name)
}

/// Whether a message that a method streams has a field for bulk data.
fn carries_bulk_data(file: &FileDescriptorProto, method: &MethodDescriptorProto) -> bool {
    let streamed = [
        (method.client_streaming(), method.input_type()),
        (method.server_streaming(), method.output_type()),
    ];
    let is_data = |field: &FieldDescriptorProto| {
        field.name() == DATA_FIELD && field.r#type() == field_descriptor_proto::Type::Bytes
    };
    streamed.into_iter().filter(|(is_streamed, _)| *is_streamed).any(|(_, name)| {
        message_of(file, name).is_some_and(|message| message.field.iter().any(is_data))
    })
}

fn has(message: &DescriptorProto, field: &str) -> bool {
    message.field.iter().any(|declared| declared.name() == field)
}

#[cfg(test)]
mod tests {
    use prost_types::ServiceDescriptorProto;

    use super::*;

    #[test]
    fn methods_of_the_contract_have_their_own_label_and_others_share_one() {
        let methods = Methods::from_descriptors(trestle_proto::FILE_DESCRIPTOR_SET)
            .expect("the build wrote the descriptors");

        let get = methods.of("/trestle.table.v1.TableService/GetEntity");
        let unknown = methods.of("/trestle.table.v1.TableService/Absent");

        assert_eq!(&*get.label, "trestle.table.v1.TableService/GetEntity");
        assert_eq!(&*unknown.label, "_OTHER");
        assert!(methods.contains(&get) && !methods.contains(&unknown));
        assert!(get.index < unknown.index && methods.count() == unknown.index + 1);
        assert!(Methods::from_descriptors(&[0xFF]).is_err());
    }

    #[test]
    fn a_method_that_streams_a_field_of_data_transfers_bulk_data() {
        let bytes = |name: &str, kind| FieldDescriptorProto {
            name: Some(name.to_owned()),
            r#type: Some(kind as i32),
            ..FieldDescriptorProto::default()
        };
        let message = |name: &str, field| DescriptorProto {
            name: Some(name.to_owned()),
            field: vec![field],
            ..DescriptorProto::default()
        };
        let method =
            |name: &str, [input, output]: [&str; 2], streams: [bool; 2]| MethodDescriptorProto {
                name: Some(name.to_owned()),
                input_type: Some(format!(".test.{input}")),
                output_type: Some(format!(".test.{output}")),
                client_streaming: Some(streams[0]),
                server_streaming: Some(streams[1]),
                ..MethodDescriptorProto::default()
            };
        let service = ServiceDescriptorProto {
            name: Some("Bulk".to_owned()),
            method: vec![
                method("Write", ["Chunk", "Name"], [true, false]),
                method("Read", ["Name", "Chunk"], [false, true]),
                method("Put", ["Chunk", "Name"], [false, false]),
                method("List", ["Chunk", "Name"], [false, true]),
            ],
            ..ServiceDescriptorProto::default()
        };
        let file = FileDescriptorProto {
            package: Some("test".to_owned()),
            message_type: vec![
                message("Chunk", bytes("data", field_descriptor_proto::Type::Bytes)),
                message("Name", bytes("data", field_descriptor_proto::Type::String)),
            ],
            service: vec![service],
            ..FileDescriptorProto::default()
        };
        let methods = FileDescriptorSet { file: vec![file] }.encode_to_vec();
        let methods = Methods::from_descriptors(&methods).expect("descriptors");

        let is_bulk = |name| methods.of(&format!("/test.Bulk/{name}")).is_bulk;

        assert_eq!(["Write", "Read", "Put", "List"].map(is_bulk), [true, true, false, false]);
    }

    #[test]
    fn streams_and_reads_are_derived_from_descriptors() {
        let methods = Methods::from_descriptors(trestle_proto::FILE_DESCRIPTOR_SET)
            .expect("the build wrote the descriptors");
        let kinds = |name: &str| {
            let method = methods.of(&format!("/trestle.table.v1.TableService/{name}"));
            (method.streams, method.streams_in, method.reads)
        };

        assert_eq!(kinds("GetEntity"), (false, false, true));
        assert_eq!(kinds("QueryEntities"), (false, false, true));
        assert_eq!(kinds("StreamEntities"), (true, false, true));
        assert_eq!(kinds("ImportEntities"), (true, true, false));
        assert_eq!(kinds("InsertEntity"), (false, false, false));
        assert_eq!(kinds("Absent"), (false, false, false));
        let of = |path: &str| {
            let method = methods.of(&format!("/trestle.{path}"));
            (method.waits, method.pushes)
        };
        let queue = |name| of(&format!("queue.v1.QueueService/{name}"));
        let kinds = ["ReceiveMessages", "SendMessages", "StreamMessages"].map(queue);
        assert_eq!(kinds, [(true, false), (false, false), (false, true)]);
        let log = |name| of(&format!("log.v1.LogService/{name}"));
        let kinds = ["TailRecords", "ReadRecords", "AppendStream"].map(log);
        assert_eq!(kinds, [(false, true), (false, false), (false, false)]);
    }
}
