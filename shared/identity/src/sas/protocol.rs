//! The protocols that a token is valid over.

use super::Malformed;
use trestle_model::fault::quoted;

/// The protocols that a token may be used over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Encrypted connections only.
    Https,
    /// All connections.
    HttpsAndHttp,
    /// The same in the order of one client of Microsoft, which signs it so.
    HttpAndHttps,
}

impl Protocol {
    pub(super) fn parse(text: &str) -> Result<Self, Malformed> {
        match text {
            "https" => Ok(Self::Https),
            "https,http" => Ok(Self::HttpsAndHttp),
            "http,https" => Ok(Self::HttpAndHttps),
            other => {
                let value = quoted(other);
                let rule = format!("must be `https` or `https,http`: value=`{value}`");
                Err(Malformed::new("spr", rule))
            }
        }
    }

    /// The text, as it is signed.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::HttpsAndHttp => "https,http",
            Self::HttpAndHttps => "http,https",
        }
    }
}
