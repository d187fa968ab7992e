//! Messages of Google's public packages that the contracts refer to. By hand, so that they need no transport: those of
//! `tonic-types` do.

/// The package `google.rpc`.
pub mod rpc {
    use prost_types::Any;

    /// The outcome of one operation, where one response has many.
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Status {
        /// A code of gRPC; 0 is success.
        #[prost(int32, tag = "1")]
        pub code: i32,
        /// The error text, for developers.
        #[prost(string, tag = "2")]
        pub message: String,
        /// Typed details, such as `google.rpc.ErrorInfo`.
        #[prost(message, repeated, tag = "3")]
        pub details: Vec<Any>,
    }

    #[cfg(feature = "grpc")]
    impl From<Status> for tonic_types::Status {
        fn from(Status { code, message, details }: Status) -> Self {
            Self { code, message, details }
        }
    }
}
