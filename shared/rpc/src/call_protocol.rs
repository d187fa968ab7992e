//! The protocol of a call, as metrics label it.

/// The protocol in which a client called, where it is not gRPC: an extension of the request, set before the layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallProtocol {
    /// gRPC over HTTP/2.
    #[default]
    Grpc,
    /// gRPC-Web.
    GrpcWeb,
    /// The REST protocols of Azure Storage.
    Rest,
}

impl CallProtocol {
    /// How many exist.
    pub(crate) const COUNT: usize = 3;

    /// The protocol of a request.
    pub(crate) fn of(extensions: &http::Extensions) -> Self {
        extensions.get().copied().unwrap_or_default()
    }

    /// Its label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Grpc => "grpc",
            Self::GrpcWeb => "grpc-web",
            Self::Rest => "rest",
        }
    }
}
