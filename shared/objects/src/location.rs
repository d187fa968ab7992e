//! The URL of an object store.

use std::{fmt, str::FromStr};

use object_store::path::Path;

/// The form of the URL.
const FORM: &str = "must be s3://BUCKET, gs://BUCKET or az://CONTAINER, and may have a path";

/// The rule for the path. Errors do not repeat it: it may be a misplaced secret.
const PATH: &str = "the path must have no empty parts, no `.` and `..`, and no control characters";

/// A bucket of an object store, and a path in it. Endpoint and credentials are in the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectsUrl {
    pub(crate) kind: ObjectStoreKind,
    /// The bucket, or the container of Azure.
    pub(crate) bucket: String,
    /// What the names of all objects begin with; may be empty.
    pub(crate) prefix: Path,
}

/// The protocol of an object store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectStoreKind {
    S3,
    Google,
    Azure,
}

impl ObjectStoreKind {
    const ALL: [Self; 3] = [Self::S3, Self::Google, Self::Azure];

    /// The scheme of its URLs.
    pub(crate) fn scheme(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Google => "gs",
            Self::Azure => "az",
        }
    }
}

impl ObjectsUrl {
    /// Whether one of two places is in the other one.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let is_in = |inner: &Path, outer: &Path| inner.prefix_matches(outer);
        self.kind == other.kind
            && self.bucket == other.bucket
            && (is_in(&self.prefix, &other.prefix) || is_in(&other.prefix, &self.prefix))
    }
}

impl FromStr for ObjectsUrl {
    type Err = String;

    /// # Errors
    /// The rule that the text violates.
    fn from_str(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text.split_once("://").ok_or(FORM)?;
        let kind = ObjectStoreKind::ALL.into_iter().find(|kind| kind.scheme() == scheme);
        let kind = kind.ok_or(FORM)?;
        if rest.contains(['?', '#']) {
            return Err(
                "must have no query and no fragment: credentials are in the environment".to_owned()
            );
        }
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '$');
        if bucket.is_empty() || !bucket.chars().all(is_name) {
            return Err(FORM.to_owned());
        }
        let prefix = Path::parse(prefix).map_err(|_| PATH)?;
        Ok(Self { kind, bucket: bucket.to_owned(), prefix })
    }
}

impl fmt::Display for ObjectsUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, bucket, prefix } = self;
        let separator = if prefix.as_ref().is_empty() { "" } else { "/" };
        write!(f, "{}://{bucket}{separator}{prefix}", kind.scheme())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_bucket_and_perhaps_a_path() {
        for (text, shown) in [
            ("s3://blobs", "s3://blobs"),
            ("s3://blobs/", "s3://blobs"),
            ("gs://my.blobs/prod", "gs://my.blobs/prod"),
            ("az://blobs/prod/eu/", "az://blobs/prod/eu"),
        ] {
            assert_eq!(text.parse::<ObjectsUrl>().unwrap().to_string(), shown);
        }
    }

    #[test]
    fn places_overlap_where_one_is_in_the_other() {
        let overlap = |one: &str, other: &str| {
            let (one, other): (ObjectsUrl, ObjectsUrl) =
                (one.parse().unwrap(), other.parse().unwrap());
            assert_eq!(one.overlaps(&other), other.overlaps(&one));
            one.overlaps(&other)
        };
        assert!(overlap("s3://a", "s3://a/b") && overlap("s3://a/b", "s3://a/b/c"));
        assert!(!overlap("s3://a/b", "s3://a/bc") && !overlap("s3://a/b", "s3://a/c"));
        assert!(!overlap("s3://a", "s3://b") && !overlap("s3://a", "gs://a"));
    }

    #[test]
    fn rejects_what_is_no_url_of_a_bucket() {
        let rejected = [
            "",
            "blobs",
            "s3:blobs",
            "s3://",
            "s3:///a",
            "http://blobs",
            "s3://user@host/a",
            "s3://blobs/a//b",
            "s3://blobs/..",
            "az://account:key@blobs",
            "s3://blobs/a?secret",
            "s3://blobs?secret",
            "az://blobs/a#secret",
            "s3://blobs/secret//b",
        ];
        for text in rejected {
            let rule = text.parse::<ObjectsUrl>().unwrap_err();
            assert!(!rule.contains("secret"), "{text}: {rule}");
        }
    }
}
