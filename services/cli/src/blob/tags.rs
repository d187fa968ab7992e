//! `tags` and `find`.

use std::collections::HashMap;

use serde_json::{Value, json};
use trestle_command::{errors::CliError, output::Context, retry::repeated};
use trestle_proto::blob::v1::{
    BlobConditions, FindBlobsRequest, FoundBlob, GetBlobTagsRequest, SetBlobTagsRequest,
};

use super::{BlobAddress, BlobStateArgs, TagsCommand};

/// Runs a command.
pub(super) async fn run(context: &mut Context, command: TagsCommand) -> Result<(), CliError> {
    match command {
        TagsCommand::Get { blob, state } => get(context, blob, state).await,
        TagsCommand::Set { blob, tags, lease_id } => set(context, blob, tags, lease_id).await,
    }
}

async fn get(
    context: &mut Context,
    blob: BlobAddress,
    BlobStateArgs { snapshot, version_id }: BlobStateArgs,
) -> Result<(), CliError> {
    let BlobAddress { container, name: blob } = blob.of_blob()?;
    let request =
        GetBlobTagsRequest { container, blob, snapshot, version_id, ..Default::default() };
    let tags = context.session.blobs().get_blob_tags(request).await?.into_inner().tags;
    let mut lines: Vec<_> = tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
    lines.sort_unstable();
    let text = if lines.is_empty() { "no tags".to_owned() } else { lines.join("\n") };
    context.output.either(&text, &json!(tags))
}

async fn set(
    context: &mut Context,
    blob: BlobAddress,
    tags: Vec<(String, String)>,
    lease_id: String,
) -> Result<(), CliError> {
    let blob = blob.of_blob()?;
    let text = format!("set the tags of blob {blob}");
    let BlobAddress { container, name } = blob;
    let object = json!({ "container": container, "blob": name, "tags": tags.len() });
    let conditions = Some(BlobConditions { lease_id, ..Default::default() });
    let tags = each_once(tags)?;
    let request = SetBlobTagsRequest { container, blob: name, tags, conditions };
    context.session.blobs().set_blob_tags(request).await?;
    context.output.either(&text, &object)
}

/// Tags by their keys. A map of the call has each key once, so the server cannot reject a repetition.
pub(super) fn each_once(tags: Vec<(String, String)>) -> Result<HashMap<String, String>, CliError> {
    let mut found = HashMap::new();
    for (key, value) in tags {
        if found.contains_key(&key) {
            let rule = "tags: must have each key once";
            return Err(CliError::Usage(format!("{rule}: `{key}={value}`")));
        }
        found.insert(key, value);
    }
    Ok(found)
}

/// Prints the blobs that a filter finds.
pub(super) async fn find(
    context: &mut Context,
    filter: String,
    container: String,
) -> Result<(), CliError> {
    let mut request = FindBlobsRequest { filter, container, ..Default::default() };
    let mut printed = false;
    loop {
        let session = &context.session;
        let call = async || Ok(session.blobs().find_blobs(request.clone()).await?);
        let page = repeated::<_, CliError>(call).await?.into_inner();
        let records: Vec<_> = page.blobs.iter().map(record).collect();
        context.output.records(&records, &["container", "blob", "tags"])?;
        printed |= !records.is_empty();
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            return context.output.unless_empty(printed, "no blobs");
        }
    }
}

fn record(found: &FoundBlob) -> Value {
    let FoundBlob { container, blob, tags } = found;
    json!({ "container": container, "blob": blob, "tags": tags })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_a_key_that_occurs_twice() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());

        let all = each_once(vec![pair("a", "1"), pair("b", "1")]).unwrap();
        let twice = each_once(vec![pair("a", "1"), pair("a", "2")]).unwrap_err().to_string();

        assert_eq!((all.len(), all["b"].as_str()), (2, "1"));
        assert_eq!(twice, "tags: must have each key once: `a=2`");
    }
}
