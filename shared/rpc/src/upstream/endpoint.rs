//! The endpoint of a role, as settings have it.

use http::uri::{Authority, PathAndQuery, Scheme, Uri};

/// An endpoint that cannot be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("endpoint must be `http://host:port` or `https://host:port`: value=`{0}`")]
pub struct EndpointError(String);

/// The endpoint of a role, such as `http://table:50051`. A name may have several addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub(super) scheme: Scheme,
    pub(super) authority: Authority,
    pub(super) port: u16,
}

impl Endpoint {
    /// Parses an endpoint.
    ///
    /// # Errors
    /// An invalid endpoint.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        let error = || EndpointError(text.to_owned());
        let parts = text.parse::<Uri>().map_err(|_| error())?.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err(error());
        };
        let bare = |path: &PathAndQuery| path.as_str() == "/";
        let is_plain = parts.path_and_query.as_ref().is_none_or(bare);
        let has_user = authority.as_str().contains('@');
        let default_port = if scheme == Scheme::HTTP {
            80
        } else if scheme == Scheme::HTTPS {
            443
        } else {
            return Err(error());
        };
        if !is_plain || has_user {
            return Err(error());
        }
        let port = authority.port_u16().unwrap_or(default_port);
        Ok(Self { scheme, authority, port })
    }

    /// Whether connections are encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// The host: a name, or an address without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        self.authority.host().trim_start_matches('[').trim_end_matches(']')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_scheme_host_and_port() {
        for (text, host, port, is_encrypted) in [
            ("http://table:50051", "table", 50051, false),
            ("https://table/", "table", 443, true),
            ("http://[::1]:7", "::1", 7, false),
        ] {
            let endpoint = Endpoint::parse(text).expect("an endpoint");
            assert_eq!((endpoint.host(), endpoint.port), (host, port), "{text}");
            assert_eq!(endpoint.is_encrypted(), is_encrypted, "{text}");
        }
        for text in ["", "table:50051", "ftp://table", "http://table/x", "http://a@table", "/x"] {
            assert!(Endpoint::parse(text).is_err(), "{text}");
        }
    }
}
