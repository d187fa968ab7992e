//! The names in descriptors, and the file that has each.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use prost::Message;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
};

/// Descriptors that reflection cannot read.
#[derive(Debug, thiserror::Error)]
#[error("descriptors cannot be served by reflection: {0}")]
pub struct DescriptorError(#[from] prost::DecodeError);

/// An encoded file descriptor, as it was compiled.
type EncodedFile = Arc<[u8]>;

/// A `FileDescriptorSet` whose files are not decoded: their options would be lost.
#[derive(Clone, PartialEq, Message)]
struct EncodedFiles {
    #[prost(bytes = "vec", repeated, tag = "1")]
    files: Vec<Vec<u8>>,
}

/// The files of a descriptor set by what they contain.
#[derive(Default)]
pub(super) struct DescriptorIndex {
    files: HashMap<String, EncodedFile>,
    symbols: HashMap<String, EncodedFile>,
    /// By the extended type and the number.
    extensions: BTreeMap<(String, i32), EncodedFile>,
    services: Vec<String>,
}

impl DescriptorIndex {
    /// Of an encoded `FileDescriptorSet`, without listing the services in `absent`.
    ///
    /// # Errors
    /// A malformed descriptor set.
    pub(super) fn new(descriptors: &[u8], absent: &[&str]) -> Result<Self, DescriptorError> {
        let mut index = Self::default();
        for encoded in EncodedFiles::decode(descriptors)?.files {
            let descriptor = FileDescriptorProto::decode(encoded.as_slice())?;
            index.add(&descriptor, &encoded.into());
        }
        index.services.retain(|service| !absent.contains(&service.as_str()));
        Ok(index)
    }

    pub(super) fn file(&self, name: &str) -> Option<&[u8]> {
        self.files.get(name).map(|file| &**file)
    }

    pub(super) fn symbol(&self, name: &str) -> Option<&[u8]> {
        self.symbols.get(name).map(|file| &**file)
    }

    pub(super) fn extension(&self, extended: &str, number: i32) -> Option<&[u8]> {
        self.extensions.get(&(extended.to_owned(), number)).map(|file| &**file)
    }

    /// The numbers of the extensions of a type; none if there is no such type.
    pub(super) fn extensions_of(&self, name: &str) -> Option<Vec<i32>> {
        let is_of = |(extended, _): &&(String, i32)| extended == name;
        let numbers: Vec<i32> = self.extensions.keys().filter(is_of).map(|key| key.1).collect();
        (self.symbols.contains_key(name) || !numbers.is_empty()).then_some(numbers)
    }

    /// The full names of the listed services.
    pub(super) fn services(&self) -> &[String] {
        &self.services
    }

    fn add(&mut self, descriptor: &FileDescriptorProto, file: &EncodedFile) {
        self.files.insert(descriptor.name().to_owned(), Arc::clone(file));
        let package = descriptor.package();
        for message in &descriptor.message_type {
            self.add_message(package, message, file);
        }
        for kind in &descriptor.enum_type {
            self.add_enum(package, kind, file);
        }
        self.add_extensions(package, &descriptor.extension, file);
        for service in &descriptor.service {
            let name = self.add_symbol(package, service.name(), file);
            for method in &service.method {
                self.add_symbol(&name, method.name(), file);
            }
            self.services.push(name);
        }
    }

    fn add_message(&mut self, scope: &str, message: &DescriptorProto, file: &EncodedFile) {
        let name = self.add_symbol(scope, message.name(), file);
        for nested in &message.nested_type {
            self.add_message(&name, nested, file);
        }
        for kind in &message.enum_type {
            self.add_enum(&name, kind, file);
        }
        let fields = message.field.iter().map(FieldDescriptorProto::name);
        for member in fields.chain(message.oneof_decl.iter().map(|oneof| oneof.name())) {
            self.add_symbol(&name, member, file);
        }
        self.add_extensions(&name, &message.extension, file);
    }

    fn add_enum(&mut self, scope: &str, kind: &EnumDescriptorProto, file: &EncodedFile) {
        let name = self.add_symbol(scope, kind.name(), file);
        for value in &kind.value {
            // In C++ rules a value is a sibling of its type; clients look up both names.
            self.add_symbol(scope, value.name(), file);
            self.add_symbol(&name, value.name(), file);
        }
    }

    fn add_extensions(
        &mut self,
        scope: &str,
        extensions: &[FieldDescriptorProto],
        file: &EncodedFile,
    ) {
        for extension in extensions {
            self.add_symbol(scope, extension.name(), file);
            let extended = extension.extendee().trim_start_matches('.').to_owned();
            self.extensions.insert((extended, extension.number()), Arc::clone(file));
        }
    }

    /// Adds a symbol; its full name.
    fn add_symbol(&mut self, scope: &str, name: &str, file: &EncodedFile) -> String {
        let name = if scope.is_empty() { name.to_owned() } else { format!("{scope}.{name}") };
        self.symbols.insert(name.clone(), Arc::clone(file));
        name
    }
}
