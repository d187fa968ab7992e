//! The path of a gRPC call: `/SERVICE/METHOD`.

/// The full name of the service in the path of a call; none where the path has another form.
#[must_use]
pub fn service_of(path: &str) -> Option<&str> {
    path.strip_prefix('/')?.split_once('/').map(|(service, _)| service)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_is_the_first_of_two_parts() {
        for (path, service) in [
            ("/a.v1.A/Get", Some("a.v1.A")),
            ("/a.v1.A/", Some("a.v1.A")),
            ("//Get", Some("")),
            ("/a.v1.A", None),
            ("a.v1.A/Get", None),
            ("/", None),
            ("", None),
        ] {
            assert_eq!(service_of(path), service, "{path}");
        }
    }
}
