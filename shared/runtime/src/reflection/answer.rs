//! The response to one question of server reflection.

use tonic::Code;
use tonic_reflection::pb::v1::{
    ErrorResponse, ExtensionNumberResponse, FileDescriptorResponse, ListServiceResponse,
    ServiceResponse, server_reflection_request::MessageRequest,
    server_reflection_response::MessageResponse,
};
use trestle_model::fault::quoted;

use super::index::DescriptorIndex;

/// The response to one question.
pub(super) fn answer(
    index: &DescriptorIndex,
    question: Option<&MessageRequest>,
) -> MessageResponse {
    let file = |file: Option<&[u8]>, what: String| match file {
        Some(file) => MessageResponse::FileDescriptorResponse(FileDescriptorResponse {
            file_descriptor_proto: vec![file.to_vec()],
        }),
        None => error(Code::NotFound, what),
    };
    match question {
        Some(MessageRequest::FileByFilename(name)) => {
            file(index.file(name), format!("file not found: file=`{}`", quoted(name)))
        }
        Some(MessageRequest::FileContainingSymbol(name)) => {
            file(index.symbol(name), format!("symbol not found: symbol=`{}`", quoted(name)))
        }
        Some(MessageRequest::FileContainingExtension(extension)) => {
            let (extended, number) = (&extension.containing_type, extension.extension_number);
            let what =
                format!("extension not found: type=`{}`, number=`{number}`", quoted(extended));
            file(index.extension(extended, number), what)
        }
        Some(MessageRequest::AllExtensionNumbersOfType(name)) => match index.extensions_of(name) {
            Some(extension_number) => {
                let base_type_name = name.clone();
                let numbers = ExtensionNumberResponse { base_type_name, extension_number };
                MessageResponse::AllExtensionNumbersResponse(numbers)
            }
            None => error(Code::NotFound, format!("type not found: type=`{}`", quoted(name))),
        },
        Some(MessageRequest::ListServices(_)) => {
            let named = |name: &String| ServiceResponse { name: name.clone() };
            let service = index.services().iter().map(named).collect();
            MessageResponse::ListServicesResponse(ListServiceResponse { service })
        }
        None => error(Code::InvalidArgument, "message_request: required".to_owned()),
    }
}

/// The response to a question with a field of more than so many bytes.
pub(super) fn too_long(field: &str, bytes_max: usize) -> MessageResponse {
    error(Code::InvalidArgument, format!("{field}: must have at most {bytes_max} bytes"))
}

fn error(code: Code, error_message: String) -> MessageResponse {
    MessageResponse::ErrorResponse(ErrorResponse { error_code: code.into(), error_message })
}
