//! The names that REST has for the fields of calls: an error names the part of the request that its sender wrote.

/// The name of a field; none where it is the same.
pub(super) fn name(field: &str) -> Option<String> {
    // What the first message of an upload has is the request itself.
    let own = field.strip_prefix("spec.").map(str::to_owned);
    let field = field.strip_prefix("spec.").unwrap_or(field);
    of_request(field).or(own)
}

fn of_request(field: &str) -> Option<String> {
    let last = field.rsplit('.').next()?;
    let source = if field.starts_with("source_conditions.") { "x-ms-source-" } else { "" };
    let name = match last.split('[').next()? {
        "if_match" => return Some(format!("{source}if-match")),
        "if_none_match" => return Some(format!("{source}if-none-match")),
        "if_modified_since" => return Some(format!("{source}if-modified-since")),
        "if_unmodified_since" => return Some(format!("{source}if-unmodified-since")),
        "if_tags" if source.is_empty() => "x-ms-if-tags",
        "if_tags" => "x-ms-source-if-tags",
        "lease_id" => "x-ms-lease-id",
        "proposed_lease_id" => "x-ms-proposed-lease-id",
        "break_period" => "x-ms-lease-break-period",
        "duration" => "x-ms-lease-duration",
        "action" => "x-ms-lease-action",
        "access_tier" => "x-ms-access-tier",
        "block_id" => "blockid",
        "blocks" => "BlockList",
        "content_type" => "x-ms-blob-content-type",
        "content_encoding" => "x-ms-blob-content-encoding",
        "content_language" => "x-ms-blob-content-language",
        "content_disposition" => "x-ms-blob-content-disposition",
        "cache_control" => "x-ms-blob-cache-control",
        "content_md5" => "x-ms-blob-content-md5",
        "md5" => "content-md5",
        "crc64" => "x-ms-content-crc64",
        "delete_snapshots" => "x-ms-delete-snapshots",
        "version_id" => "versionid",
        "page_size" => "maxresults",
        "page_token" => "marker",
        "start_from" => "startFrom",
        "end_before" => "endBefore",
        "filter" => "where",
        "previous_snapshot" => "prevsnapshot",
        "source_url" | "source_text" => "x-ms-copy-source",
        "size" if field == "size" => "x-ms-blob-content-length",
        "size" => "content-length",
        "set" | "raise" | "sequence_number" => "x-ms-blob-sequence-number",
        "offset" | "length" => "range",
        "public_access" => "x-ms-blob-public-access",
        "version" => "x-ms-deleted-container-version",
        _ => return None,
    };
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_a_call_has_the_name_of_its_header_or_parameter() {
        for (field, expected) in [
            ("conditions.if_match[0]", "if-match"),
            ("source_conditions.if_none_match", "x-ms-source-if-none-match"),
            ("conditions.lease_id", "x-ms-lease-id"),
            ("spec.conditions.lease_id", "x-ms-lease-id"),
            ("spec.container", "container"),
            ("acquire.duration", "x-ms-lease-duration"),
            ("properties.content_type", "x-ms-blob-content-type"),
            ("range.offset", "range"),
            ("finish.size", "content-length"),
            ("size", "x-ms-blob-content-length"),
            ("blocks[3].source", "BlockList"),
        ] {
            let found = name(field);
            let is_list = field.starts_with("blocks[");
            assert_eq!(found.as_deref(), (!is_list).then_some(expected), "{field}");
        }
        assert_eq!(name("metadata"), None);
        assert_eq!(name("blocks").as_deref(), Some("BlockList"));
    }
}
