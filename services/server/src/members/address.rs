//! Where the other processes of a store reach this one.

use std::{fs, net::SocketAddr};

use trestle_rpc::upstream::Endpoint;
use trestle_runtime::config::ConfigError;

use crate::settings::Settings;

const KEY: &str = "server.peer_address";
/// Where Linux has the name of the machine.
const NAME_FILE: &str = "/proc/sys/kernel/hostname";

/// The address in the settings, or that of the listener for gRPC, which is bound to `listen`.
///
/// # Errors
/// A listener on every address, of a machine without a name.
pub(super) fn own(settings: &Settings, listen: SocketAddr) -> Result<String, ConfigError> {
    if let Some(address) = &settings.server.peer_address {
        return Ok(address.clone());
    }
    let scheme = if settings.tls.grpc().is_some() { "https" } else { "http" };
    if !listen.ip().is_unspecified() {
        return Ok(format!("{scheme}://{listen}"));
    }
    let named = |name: &str| format!("{scheme}://{}:{}", name.trim(), listen.port());
    let name = fs::read_to_string(NAME_FILE).ok().map(|name| named(&name));
    let name = name.filter(|address| Endpoint::parse(address).is_ok());
    name.ok_or_else(|| {
        let rule = "required, since server.listen is every address and the machine has no name";
        ConfigError::Invalid { problems: vec![format!("{KEY}: {rule}: listen=`{listen}`")] }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(listen: &str, peer_address: Option<&str>) -> String {
        let mut settings = Settings::default();
        settings.server.peer_address = peer_address.map(str::to_owned);
        own(&settings, listen.parse().expect("an address")).expect("an address for peers")
    }

    #[test]
    fn it_is_the_listener_or_the_name_of_the_machine_unless_it_is_set() {
        assert_eq!(with("127.0.0.1:7", None), "http://127.0.0.1:7");
        assert_eq!(with("[::1]:7", None), "http://[::1]:7");
        assert_eq!(with("0.0.0.0:7", Some("https://a.example:1")), "https://a.example:1");
        let name = fs::read_to_string(NAME_FILE).expect("the name of this machine");
        for every in ["0.0.0.0:7", "[::]:7"] {
            assert_eq!(with(every, None), format!("http://{}:7", name.trim()));
        }
    }
}
