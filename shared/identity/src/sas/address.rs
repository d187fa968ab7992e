//! The addresses that a token is valid from.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr},
};

use super::Malformed;
use trestle_model::fault::quoted;

/// An IPv4 address, or all from one to another, both included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressRange {
    text: String,
    first: Ipv4Addr,
    last: Ipv4Addr,
}

impl AddressRange {
    /// Reads `198.51.100.7` or `198.51.100.0-198.51.100.255`.
    ///
    /// # Errors
    /// Any other text, and a range whose end is before its start.
    pub fn parse(text: String) -> Result<Self, Malformed> {
        let (first, last) = text.split_once('-').unwrap_or((&text, &text));
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) if first <= last => Ok(Self { first, last, text }),
            _ => {
                let rule = "must be an IPv4 address, or a range such as 198.51.100.0-198.51.100.9";
                let value = quoted(&text);
                Err(Malformed::new("sip", format!("{rule}: value=`{value}`")))
            }
        }
    }

    /// Whether an address is in the range. No IPv6 address is.
    #[must_use]
    pub fn has(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => (self.first..=self.last).contains(&address),
            IpAddr::V6(_) => false,
        }
    }

    /// The text, as it is signed.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
