//! The signatures of blobs: the call names the blob, and the token whether it is for the container, a directory, the
//! blob, or one snapshot or version of it.

use super::{DelegationForm, FieldSpec, ResourceType, ServiceSpec, whole, without_empty};
use crate::{
    caller::{BLOB_HEADER, BLOB_STATE_HEADER},
    field_values::FieldValues,
    sas::Scope,
    shared_key::all_headers,
};

/// The first version that signs response headers. Before it a token of a container is signed like one of a queue.
const SIGNS_HEADERS: &str = "2013-08-15";
/// The first version that signs the type of the resource, and the time of a snapshot or a version. Before it a token of
/// a blob is signed like one of its snapshot, or of a directory of its name.
const SIGNS_TYPE: &str = "2018-11-09";

/// Blobs.
pub const BLOB: ServiceSpec = ServiceSpec {
    name: "blob",
    letter: 'b',
    is_served: true,
    permissions: &[
        ('r', "read"),
        ('a', "add"),
        ('c', "create"),
        ('w', "write"),
        ('d', "delete"),
        ('x', "delete versions"),
        ('y', "delete permanently"),
        ('l', "list"),
        ('t', "tags"),
        ('f', "find"),
        ('m', "move"),
        ('e', "execute"),
        ('o', "change the owner"),
        ('p', "change permissions"),
        ('i', "immutability"),
    ],
    orders_permissions: false,
    name_field: None,
    name_header: Some(BLOB_HEADER),
    // The names of containers have rules of their own, which the service checks.
    is_name: |text| !text.is_empty(),
    ignores_case: false,
    has_paths: true,
    container: "container",
    objects: "blobs",
    resource_types: &[
        ResourceType { code: "c", since: SIGNS_HEADERS, name_in: container, covers_below: true },
        ResourceType { code: "b", since: SIGNS_HEADERS, name_in: whole, covers_below: false },
        ResourceType { code: "bs", since: SIGNS_TYPE, name_in: whole, covers_below: false },
        ResourceType { code: "bv", since: SIGNS_TYPE, name_in: whole, covers_below: false },
        ResourceType { code: "d", since: SIGNS_TYPE, name_in: directory, covers_below: true },
    ],
    fields: &[
        FieldSpec { signed_since: Some(SIGNS_TYPE), ..field("sr") },
        FieldSpec { signed_since: None, ..field("sdd") },
        FieldSpec {
            signed_since: Some(SIGNS_TYPE),
            is_bound: true,
            of_request: &["snapshot", "versionid"],
            header: Some(BLOB_STATE_HEADER),
            of_types: &["bs", "bv"],
            ..field(SNAPSHOT)
        },
        FieldSpec { signed_since: Some("2020-12-06"), is_new: true, ..field("ses") },
        field("rscc"),
        field("rscd"),
        field("rsce"),
        field("rscl"),
        field("rsct"),
    ],
    delegation: Some(DelegationForm {
        since: SIGNS_TYPE,
        fields: &[
            ("saoid", "2020-02-10"),
            ("suoid", "2020-02-10"),
            ("scid", "2020-02-10"),
            ("skdutid", "2025-07-05"),
            ("sduoid", "2025-07-05"),
        ],
    }),
    normalize: without_empty,
    describe: |_| String::new(),
    signed_texts: all_headers::texts,
    ambiguity: all_headers::ambiguity,
};

/// The time of a snapshot or a version, which is signed and not part of the token. A bound of a grant.
pub const SNAPSHOT: &str = "snapshot";

/// A response header, which is signed since 2013-08-15.
const fn field(name: &'static str) -> FieldSpec {
    FieldSpec {
        name,
        signed_since: Some(SIGNS_HEADERS),
        is_new: false,
        is_bound: false,
        of_request: &[],
        header: None,
        of_types: &[],
    }
}

impl Scope {
    /// A container with its blobs.
    #[must_use]
    pub fn of_container(name: impl Into<String>) -> Self {
        Self::of_resource(&BLOB, name, [("sr", "c")].into_iter().collect())
    }

    /// One blob, as `container/blob`, with its snapshots and versions.
    #[must_use]
    pub fn of_blob(path: impl Into<String>) -> Self {
        Self::of_resource(&BLOB, path, [("sr", "b")].into_iter().collect())
    }
}

/// A token of a container is signed for the container, whichever of its blobs a call uses.
fn container(path: &str, _: &FieldValues) -> Option<String> {
    path.split('/').next().map(str::to_owned)
}

/// The container and as many segments as `sdd` states.
fn directory(path: &str, fields: &FieldValues) -> Option<String> {
    let depth = fields.get("sdd")?.parse::<usize>().ok()?;
    let count = depth.checked_add(1)?;
    let segments: Vec<_> = path.split('/').take(count).collect();
    (depth > 0 && segments.len() == count).then(|| segments.join("/"))
}
