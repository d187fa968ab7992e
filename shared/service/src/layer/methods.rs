//! The methods that a process knows, as labels, and what their descriptors say of them. What
//! clients send beyond them never becomes a label.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt as _};
use prost::Message as _;
use prost_types::{
    DescriptorProto, FileDescriptorProto, FileDescriptorSet, MethodDescriptorProto,
    method_options::IdempotencyLevel,
};

/// The label of a method that is not known.
const UNKNOWN: &str = "_OTHER";
/// The field of a request that says how long to wait for something to be there.
const WAIT_FIELD: &str = "wait";
/// The field of a request that says how much more may be answered.
const CREDIT_FIELD: &str = "credit";

/// Methods by path. Clones share them.
#[derive(Debug, Clone)]
pub struct Methods {
    by_path: Arc<HashMap<Box<str>, Method>>,
    unknown: Method,
}

/// A method, as a label and as its descriptor has it.
#[derive(Debug, Clone)]
pub struct Method {
    /// Its place among the methods that are known; those that are not share the last one.
    pub index: usize,
    /// `package.Service/Method`, or `_OTHER`.
    pub label: Arc<str>,
    /// Whether requests or answers are streams, which may last for long.
    pub streams: bool,
    /// Whether the request is a stream: its messages may come at any time.
    pub streams_in: bool,
    /// Whether a call may wait for something to happen: its request has a field `wait`.
    pub waits: bool,
    /// Whether answers come for as long as the client gives credit: part of its request is a field
    /// `credit`.
    pub pushes: bool,
    /// Whether it changes nothing, as its contract says.
    pub reads: bool,
}

impl Method {
    fn new(index: usize, label: &str, method: &MethodDescriptorProto) -> Self {
        let (streams_in, streams_out) = (method.client_streaming(), method.server_streaming());
        let level = method.options.as_ref().map(|options| options.idempotency_level());
        let reads = level == Some(IdempotencyLevel::NoSideEffects);
        let (label, streams) = (label.into(), streams_in || streams_out);
        let (waits, pushes) = (false, false);
        Self { index, label, streams, streams_in, waits, pushes, reads }
    }
}

impl Methods {
    /// Every method of an encoded descriptor set.
    ///
    /// # Errors
    /// Bytes that are no descriptor set.
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
                    let pushes = parts.any(|part| has(part, CREDIT_FIELD));
                    let method = Method { waits, pushes, ..Method::new(index, &label, method) };
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

    /// Whether a method is among those that are known.
    #[must_use]
    pub fn knows(&self, method: &Method) -> bool {
        method.index != self.unknown.index
    }

    /// Whether a service, by its full name, has methods that wait or push.
    #[must_use]
    pub fn any_waits(&self, service: &str) -> bool {
        let of_service = |method: &&Method| method.label.split('/').next() == Some(service);
        let mut methods = self.by_path.values().filter(of_service);
        methods.any(|method| method.waits || method.pushes)
    }

    /// How many indices there are.
    pub(super) fn count(&self) -> usize {
        self.unknown.index + 1
    }
}

/// The message of a type, which is in the file of the service.
fn message_of<'a>(file: &'a FileDescriptorProto, name: &str) -> Option<&'a DescriptorProto> {
    let name = name.rsplit('.').next();
    file.message_type.iter().find(|message| Some(message.name()) == name)
}

fn has(message: &DescriptorProto, field: &str) -> bool {
    message.field.iter().any(|known| known.name() == field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_paths_have_their_own_label_and_others_share_one() {
        let methods = Methods::from_descriptors(trestle_proto::FILE_DESCRIPTOR_SET)
            .expect("the build wrote the descriptors");

        let known = methods.of("/trestle.table.v1.TableService/GetEntity");
        let unknown = methods.of("/trestle.table.v1.TableService/Whatever");

        assert_eq!(&*known.label, "trestle.table.v1.TableService/GetEntity");
        assert_eq!(&*unknown.label, "_OTHER");
        assert!(methods.knows(&known) && !methods.knows(&unknown));
        assert!(known.index < unknown.index && methods.count() == unknown.index + 1);
        assert!(Methods::from_descriptors(&[0xFF]).is_err());
    }

    #[test]
    fn descriptors_tell_streams_and_reads() {
        let methods = Methods::from_descriptors(trestle_proto::FILE_DESCRIPTOR_SET)
            .expect("the build wrote the descriptors");
        let seen = |name: &str| {
            let method = methods.of(&format!("/trestle.table.v1.TableService/{name}"));
            (method.streams, method.streams_in, method.reads)
        };

        assert_eq!(seen("GetEntity"), (false, false, true));
        assert_eq!(seen("QueryEntities"), (false, false, true));
        assert_eq!(seen("StreamEntities"), (true, false, true));
        assert_eq!(seen("ImportEntities"), (true, true, false));
        assert_eq!(seen("InsertEntity"), (false, false, false));
        assert_eq!(seen("Whatever"), (false, false, false));
        let of = |name: &str| {
            let method = methods.of(&format!("/trestle.queue.v1.QueueService/{name}"));
            (method.waits, method.pushes)
        };
        let seen = ["ReceiveMessages", "SendMessages", "StreamMessages"].map(of);
        assert_eq!(seen, [(true, false), (false, false), (false, true)]);
    }
}
