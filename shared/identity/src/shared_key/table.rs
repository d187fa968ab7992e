//! Shared Key and Shared Key Lite as the Table service of Azure signs requests of HTTP: the method,
//! some headers, the date and the path, with a key of the account.

use super::{Scheme, SignedRequest, header_text::text_of, query::parameters};

/// The texts that clients may sign for a request: the path of a read-only replica is signed as it was
/// sent, or as that of the account, or without the replica before the account.
pub(crate) fn texts<'a>(
    request: &'a SignedRequest<'a>,
    account: &'a str,
) -> Box<dyn Iterator<Item = String> + 'a> {
    let sent = std::iter::once_with(|| text(request, account, request.path));
    let primary = request.path_of_primary(account).into_iter();
    let behind = request.path_behind_replica(account).into_iter();
    let primary = primary.map(move |path| text(request, account, &path));
    Box::new(sent.chain(primary).chain(behind.map(move |path| text(request, account, path))))
}

fn text(request: &SignedRequest<'_>, account: &str, path: &str) -> String {
    let header = |name| {
        let value = request.headers.get(name);
        value.map(|value| text_of(value.as_bytes())).unwrap_or_default()
    };
    let parameters = parameters(request.query);
    let comp = parameters.get("comp").and_then(|values| values.first());
    let comp = comp.map(|comp| format!("?comp={comp}")).unwrap_or_default();
    let resource = format!("/{account}{path}{comp}");
    let date = request.date();
    match request.scheme {
        Scheme::Full => {
            let (md5, content_type) = (header("content-md5"), header("content-type"));
            [request.method, &md5, &content_type, &date, &resource].join("\n")
        }
        Scheme::Lite => [&*date, &resource].join("\n"),
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use http::{HeaderMap, HeaderName, HeaderValue};
    use trestle_model::time::Ticks;

    use super::*;
    use crate::{
        account::{Account, AccountKey, AccountSet},
        spec::TABLE,
    };

    const DATE: &str = "Sat, 21 Nov 2026 12:00:00 GMT";
    const ACCOUNT: &str = "devstoreaccount1";

    fn headers(content_type: &'static str, date: &'static str) -> HeaderMap {
        let values = [("content-type", content_type), ("x-ms-date", date)];
        let present = values.into_iter().filter(|(_, value)| !value.is_empty());
        let header =
            |(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        present.map(header).collect()
    }

    fn signed<'a>(method: &'a str, headers: &'a HeaderMap, target: &'a str) -> SignedRequest<'a> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        SignedRequest { service: &TABLE, scheme: Scheme::Full, method, headers, path, query }
    }

    fn now(seconds: i64) -> Ticks {
        // The date above.
        Ticks::from_unix(1_795_262_400 + seconds, 0).expect("in range")
    }

    /// Scheme, method, content type, target, the text that is signed and its signature.
    type Vector = (Scheme, &'static str, &'static str, &'static str, &'static str, &'static str);

    fn vectors() -> Vec<Vector> {
        let entity = "/devstoreaccount1/mytable(PartitionKey='pk1',RowKey='a%20b')";
        let (json, xml) = ("application/json", "application/xml");
        let (full, lite) = (Scheme::Full, Scheme::Lite);
        let tables = "/devstoreaccount1/Tables";
        let mixed = "multipart/mixed; boundary=batch_1";
        vec![
            (
                full,
                "POST",
                json,
                tables,
                "POST\n\napplication/json\nSat, 21 Nov 2026 12:00:00 GMT\n\
                 /devstoreaccount1/devstoreaccount1/Tables",
                "R8W30FyLKSe5MwyqV7Ty/GicKO7NprN4tZ1cEkpT6c8=",
            ),
            (
                full,
                "GET",
                "",
                entity,
                "GET\n\n\nSat, 21 Nov 2026 12:00:00 GMT\n/devstoreaccount1/devstoreaccount1\
                 /mytable(PartitionKey='pk1',RowKey='a%20b')",
                "w1E6NktzTZaU4xDHFAhDwUrSLczDUNh6tzSa/dCkNew=",
            ),
            (
                full,
                "GET",
                "",
                "/mytable?comp=acl",
                "GET\n\n\nSat, 21 Nov 2026 12:00:00 GMT\n/devstoreaccount1/mytable?comp=acl",
                "rwF0qVXM26bae2MrWx6YLfZ875OtvPjt3EHCvGxgTWQ=",
            ),
            (
                full,
                "PUT",
                xml,
                "/devstoreaccount1/?comp=properties&restype=service",
                "PUT\n\napplication/xml\nSat, 21 Nov 2026 12:00:00 GMT\n\
                 /devstoreaccount1/devstoreaccount1/?comp=properties",
                "ZVO8P/G9ChmL9smQxDpzq+Vfdb29xz3ixtWNPQ3M1o8=",
            ),
            (
                full,
                "POST",
                mixed,
                "/devstoreaccount1/$batch",
                "POST\n\nmultipart/mixed; boundary=batch_1\nSat, 21 Nov 2026 12:00:00 GMT\n\
                 /devstoreaccount1/devstoreaccount1/$batch",
                "EDabaNTQGBvR+ico555P0Wkw62ShI1X0QazopTKIOOo=",
            ),
            (
                lite,
                "POST",
                json,
                tables,
                "Sat, 21 Nov 2026 12:00:00 GMT\n/devstoreaccount1/devstoreaccount1/Tables",
                "+uMLlPaZ2AR5kAkJtsKMxDVmWaNPJ/QNb+SCSdnML/w=",
            ),
            (
                lite,
                "POST",
                json,
                "/Tables",
                "Sat, 21 Nov 2026 12:00:00 GMT\n/devstoreaccount1/Tables",
                "W/SvROSQ+3KWiK+lb0LhZY9GhOuhKmuLoiwUX7pDAOM=",
            ),
        ]
    }

    #[test]
    fn requests_are_signed_as_azure_signs_them() {
        let accounts: AccountSet = [Account::development()].into_iter().collect();
        for (scheme, method, content_type, target, text, signature) in vectors() {
            let headers = headers(content_type, DATE);
            let request = SignedRequest { scheme, ..signed(method, &headers, target) };
            assert_eq!(request.string_to_sign(ACCOUNT), text);
            let made = request.sign(ACCOUNT, &AccountKey::development());
            assert_eq!(STANDARD.encode(made), signature, "{text}");
            assert!(request.verify(ACCOUNT, &made, &accounts, now(0)).is_ok(), "{text}");
            let longer = SignedRequest { path: "/other", ..request };
            assert!(longer.verify(ACCOUNT, &made, &accounts, now(0)).is_err(), "{text}");
            assert!(request.verify("absent", &made, &accounts, now(0)).is_err(), "{text}");
        }
    }

    #[test]
    fn the_replica_of_an_account_may_precede_a_signed_path_of_the_service() {
        let accounts: AccountSet = [Account::development()].into_iter().collect();
        let headers = headers("", DATE);
        let service = "?restype=service&comp=stats";
        let verifies = |path: &str, query: &str| {
            let target = format!("/devstoreaccount1{path}{service}");
            let made = signed("GET", &headers, &target).sign(ACCOUNT, &AccountKey::development());
            let sent = format!("/devstoreaccount1-secondary/devstoreaccount1{path}{query}");
            signed("GET", &headers, &sent).verify(ACCOUNT, &made, &accounts, now(0)).is_ok()
        };

        assert!(verifies("/", service) && verifies("", service));
        // Of another resource than the service it would be a signature for another one.
        assert!(!verifies("/", "?comp=stats"));
        assert!(!verifies("/", "?restype=service&comp=stats&restype=other"));
        assert!(!verifies("/Tables", service));
    }

    #[test]
    fn rejects_a_date_too_far_from_now() {
        let accounts: AccountSet = [Account::development()].into_iter().collect();
        let verified = |date, seconds| {
            let headers = headers("", date);
            let request = signed("GET", &headers, "/Tables");
            let made = request.sign(ACCOUNT, &AccountKey::development());
            request.verify(ACCOUNT, &made, &accounts, now(seconds))
        };

        assert!(verified(DATE, 900).is_ok() && verified(DATE, -900).is_ok());
        for (date, seconds, rule) in [
            (DATE, 901, "must be at most 15 minutes"),
            (DATE, -901, "must be at most 15 minutes"),
            ("", 0, "required, or the header Date: "),
            ("yesterday", 0, "must be a date of HTTP: value=`yesterday`, now=`"),
            ("2026-11-21T12:00:00Z", 0, "must be a date of HTTP"),
        ] {
            let denied = verified(date, seconds).expect_err(date);
            let text = format!("x-ms-date: {rule}");
            assert!(denied.message.starts_with(&text), "{}", denied.message);
        }
    }
}
