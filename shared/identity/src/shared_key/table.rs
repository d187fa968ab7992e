//! Shared Key and Shared Key Lite as the Table service of Azure signs requests of HTTP: the method,
//! some headers, the date and the path, with a key of the account.

use super::{Scheme, is_near};
use crate::account::{AccountKey, AccountSet, Signature};
use trestle_service::clock::Ticks;

/// The signed parts of a request, each as it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signed<'a> {
    /// Which parts are signed.
    pub scheme: Scheme,
    /// The method, in upper case.
    pub method: &'a str,
    /// The header Content-MD5; empty if absent.
    pub content_md5: &'a str,
    /// The header Content-Type; empty if absent.
    pub content_type: &'a str,
    /// The header x-ms-date or, if absent, Date.
    pub date: &'a str,
    /// The path, percent-encoded as it was sent.
    pub path: &'a str,
    /// The parameter `comp` of the query, if present.
    pub comp: Option<&'a str>,
}

impl Signed<'_> {
    /// The text that is signed for `account`.
    #[must_use]
    pub fn string_to_sign(&self, account: &str) -> String {
        let comp = self.comp.map(|comp| format!("?comp={comp}")).unwrap_or_default();
        let resource = format!("/{account}{}{comp}", self.path);
        match self.scheme {
            Scheme::Full => {
                [self.method, self.content_md5, self.content_type, self.date, &resource].join("\n")
            }
            Scheme::Lite => [self.date, &resource].join("\n"),
        }
    }

    /// Signs for `account` with one of its keys.
    #[must_use]
    pub fn sign(&self, account: &str, key: &AccountKey) -> Signature {
        key.sign(&self.string_to_sign(account))
    }

    /// Whether a key of the account made the signature, and the date is within the allowed
    /// difference of `now`. Takes as long for an absent account.
    #[must_use]
    pub fn verify(
        &self,
        account: &str,
        signature: &Signature,
        accounts: &AccountSet,
        now: Ticks,
    ) -> bool {
        let text = |name: &str| self.string_to_sign(name);
        let signed = accounts.with_signature(account, text, signature).is_some();
        signed && is_near(self.date, now)
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD};

    use super::*;
    use crate::account::Account;

    const DATE: &str = "Sat, 21 Nov 2026 12:00:00 GMT";
    const ACCOUNT: &str = "devstoreaccount1";

    fn signed<'a>(method: &'a str, content_type: &'a str, path: &'a str) -> Signed<'a> {
        let scheme = Scheme::Full;
        Signed { scheme, method, content_md5: "", content_type, date: DATE, path, comp: None }
    }

    fn now(seconds: i64) -> Ticks {
        // The date above.
        Ticks::from_unix(1_795_262_400 + seconds, 0).expect("in range")
    }

    /// Requests with the text that is signed and its signature.
    fn vectors() -> Vec<(Signed<'static>, &'static str, &'static str)> {
        let entity = "/devstoreaccount1/mytable(PartitionKey='pk1',RowKey='a%20b')";
        let json = signed("POST", "application/json", "/devstoreaccount1/Tables");
        let acl = Signed { comp: Some("acl"), ..signed("GET", "", "/mytable") };
        let properties = signed("PUT", "application/xml", "/devstoreaccount1/");
        let properties = Signed { comp: Some("properties"), ..properties };
        let mixed = "multipart/mixed; boundary=batch_1";
        let batch = signed("POST", mixed, "/devstoreaccount1/$batch");
        vec![
            (
                json,
                "POST\n\napplication/json\nSat, 21 Nov 2026 12:00:00 GMT\n\
                 /devstoreaccount1/devstoreaccount1/Tables",
                "R8W30FyLKSe5MwyqV7Ty/GicKO7NprN4tZ1cEkpT6c8=",
            ),
            (
                signed("GET", "", entity),
                "GET\n\n\nSat, 21 Nov 2026 12:00:00 GMT\n/devstoreaccount1/devstoreaccount1\
                 /mytable(PartitionKey='pk1',RowKey='a%20b')",
                "w1E6NktzTZaU4xDHFAhDwUrSLczDUNh6tzSa/dCkNew=",
            ),
            (
                acl,
                "GET\n\n\nSat, 21 Nov 2026 12:00:00 GMT\n/devstoreaccount1/mytable?comp=acl",
                "rwF0qVXM26bae2MrWx6YLfZ875OtvPjt3EHCvGxgTWQ=",
            ),
            (
                properties,
                "PUT\n\napplication/xml\nSat, 21 Nov 2026 12:00:00 GMT\n\
                 /devstoreaccount1/devstoreaccount1/?comp=properties",
                "ZVO8P/G9ChmL9smQxDpzq+Vfdb29xz3ixtWNPQ3M1o8=",
            ),
            (
                batch,
                "POST\n\nmultipart/mixed; boundary=batch_1\nSat, 21 Nov 2026 12:00:00 GMT\n\
                 /devstoreaccount1/devstoreaccount1/$batch",
                "EDabaNTQGBvR+ico555P0Wkw62ShI1X0QazopTKIOOo=",
            ),
            (
                Signed { scheme: Scheme::Lite, ..json },
                "Sat, 21 Nov 2026 12:00:00 GMT\n/devstoreaccount1/devstoreaccount1/Tables",
                "+uMLlPaZ2AR5kAkJtsKMxDVmWaNPJ/QNb+SCSdnML/w=",
            ),
            (
                Signed { scheme: Scheme::Lite, path: "/Tables", ..json },
                "Sat, 21 Nov 2026 12:00:00 GMT\n/devstoreaccount1/Tables",
                "W/SvROSQ+3KWiK+lb0LhZY9GhOuhKmuLoiwUX7pDAOM=",
            ),
        ]
    }

    #[test]
    fn requests_are_signed_as_azure_signs_them() {
        let accounts: AccountSet = [Account::development()].into_iter().collect();
        for (request, text, signature) in vectors() {
            assert_eq!(request.string_to_sign(ACCOUNT), text);
            let made = request.sign(ACCOUNT, &AccountKey::development());
            assert_eq!(STANDARD.encode(made), signature, "{text}");
            assert!(request.verify(ACCOUNT, &made, &accounts, now(0)), "{text}");
            let longer = Signed { path: "/other", ..request };
            assert!(!longer.verify(ACCOUNT, &made, &accounts, now(0)), "{text}");
            assert!(!request.verify("nobody", &made, &accounts, now(0)), "{text}");
        }
    }

    #[test]
    fn rejects_a_date_too_far_from_now() {
        let accounts: AccountSet = [Account::development()].into_iter().collect();
        let verifies = |date, seconds| {
            let request = Signed { date, ..signed("GET", "", "/Tables") };
            let made = request.sign(ACCOUNT, &AccountKey::development());
            request.verify(ACCOUNT, &made, &accounts, now(seconds))
        };

        assert!(verifies(DATE, 900) && verifies(DATE, -900));
        assert!(!verifies(DATE, 901) && !verifies(DATE, -901));
        for date in ["", "yesterday", "2026-11-21T12:00:00Z"] {
            assert!(!verifies(date, 0), "{date}");
        }
    }
}
