//! Blobs of a workspace as Azurite 3.37 writes them, made without it.

use std::{fs, path::Path};

use crate::workspace::database;

/// The file of contents.
pub(crate) const EXTENT: &str = "d2b02023-ce6c-44f1-958a-52c2c6c4226a";
pub(crate) const BLOBS_FILE: &str = "__azurite_db_blob__.json";
const ACCOUNT: &str = "devstoreaccount1";

/// Blobs in the making.
#[derive(Debug, Default)]
pub(crate) struct BlobWorkspace {
    containers: Vec<String>,
    blobs: Vec<String>,
    content: Vec<u8>,
}

impl BlobWorkspace {
    /// Adds a container with further members.
    pub(crate) fn container(&mut self, name: &str, members: &str) {
        let comma = if members.is_empty() { "" } else { "," };
        self.containers.push(format!(
            r#"{{"accountName":"{ACCOUNT}","name":"{name}"{comma}{members},"$loki":1}}"#
        ));
    }

    /// Adds bytes to the extent; the place of them.
    pub(crate) fn place(&mut self, data: &[u8]) -> String {
        let (offset, count) = (self.content.len(), data.len());
        self.content.extend(data);
        format!(r#""persistency":{{"id":"{EXTENT}","offset":{offset},"count":{count}}}"#)
    }

    /// Adds a block blob of one piece, or a snapshot of it, with further properties and members.
    pub(crate) fn block(&mut self, name: &str, snapshot: &str, data: &[u8], more: [&str; 2]) {
        let place = self.place(data);
        let [properties, members] = more;
        let members = format!("{place}{members}");
        let properties = format!(
            r#""contentLength":{},"blobType":"BlockBlob","contentType":"text/plain"{properties}"#,
            data.len()
        );
        self.state(name, snapshot, &properties, &members);
    }

    /// Adds an append blob of these blocks.
    pub(crate) fn append(&mut self, name: &str, blocks: &[&[u8]], properties: &str) {
        let size: usize = blocks.iter().map(|block| block.len()).sum();
        let blocks: Vec<_> = blocks
            .iter()
            .map(|block| format!(r#"{{"name":"","size":{},{}}}"#, block.len(), self.place(block)))
            .collect();
        let properties = format!(r#""contentLength":{size},"blobType":"AppendBlob"{properties}"#);
        let members = format!(r#""committedBlocksInOrder":[{}]"#, blocks.join(","));
        self.state(name, "", &properties, &members);
    }

    /// Adds a page blob with data at these offsets.
    pub(crate) fn pages(&mut self, name: &str, size: u64, pages: &[(usize, &[u8])]) {
        let ranges: Vec<_> = pages
            .iter()
            .map(|(start, data)| {
                let (end, place) = (start + data.len() - 1, self.place(data));
                format!(r#"{{"start":{start},"end":{end},{place}}}"#)
            })
            .collect();
        let properties =
            format!(r#""contentLength":{size},"blobType":"PageBlob","blobSequenceNumber":7"#);
        let members = format!(r#""pageRangesInOrder":[{}]"#, ranges.join(","));
        self.state(name, "", &properties, &members);
    }

    /// Adds a state of a blob in the first container.
    pub(crate) fn state(&mut self, name: &str, snapshot: &str, properties: &str, members: &str) {
        let first = self.containers[0].split(r#""name":""#).nth(1).unwrap();
        let container = first.split('"').next().unwrap().to_owned();
        let key =
            format!(r#""accountName":"{ACCOUNT}","containerName":"{container}","name":"{name}""#);
        self.raw(&format!(
            r#"{{{key},"snapshot":"{snapshot}","isCommitted":true,"deleted":false,
            "properties":{{"etag":"\"0x1\"",{properties}}},{members},"$loki":1}}"#
        ));
    }

    /// Adds a document to the blobs as it is.
    pub(crate) fn raw(&mut self, json: &str) {
        self.blobs.push(json.to_owned());
    }

    /// Writes the workspace.
    pub(crate) fn write(&self, directory: &Path) {
        let extent = format!(r#"{{"id":"{EXTENT}","locationId":"Default","path":"{EXTENT}"}}"#);
        let blobs = [
            ("$SERVICES_COLLECTION$".to_owned(), Vec::new()),
            ("$CONTAINERS_COLLECTION$".to_owned(), self.containers.clone()),
            ("$BLOBS_COLLECTION$".to_owned(), self.blobs.clone()),
            ("$BLOCKS_COLLECTION$".to_owned(), Vec::new()),
        ];
        let extents = [("$EXTENTS_COLLECTION$".to_owned(), vec![extent])];
        fs::write(directory.join(BLOBS_FILE), database(&blobs)).unwrap();
        fs::write(directory.join("__azurite_db_blob_extent__.json"), database(&extents)).unwrap();
        fs::create_dir(directory.join("__blobstorage__")).unwrap();
        fs::write(directory.join("__blobstorage__").join(EXTENT), &self.content).unwrap();
    }
}
