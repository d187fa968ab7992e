//! Workspaces as Azurite 3.37 writes them, made without it.

use std::{fmt::Write as _, fs, path::Path};

/// The last moment that Azurite writes for a message that never expires.
pub(crate) const NEVER: &str = "9999-12-31T23:59:59.999Z";
/// The file of message texts.
pub(crate) const TEXTS: &str = "9ba24733-0a10-4f30-9a70-17e8d9bdb37e";

/// A workspace in the making.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    tables: Vec<String>,
    collections: Vec<(String, Vec<String>)>,
    queues: Vec<String>,
    messages: Vec<String>,
    texts: String,
}

impl Workspace {
    /// Adds a table of an account, with these entities: keys, and properties as JSON members.
    pub(crate) fn table(&mut self, account: &str, name: &str, entities: &[(&str, &str, &str)]) {
        self.tables.push(format!(r#"{{"account":"{account}","table":"{name}","$loki":1}}"#));
        let entity = |(partition, row, members): &(&str, &str, &str)| {
            let keys = format!(r#""PartitionKey":"{partition}","RowKey":"{row}""#);
            let comma = if members.is_empty() { "" } else { "," };
            let time = "2026-11-21T15:32:34.8778626Z";
            let stamp = format!(r#""Timestamp":"{time}","Timestamp@odata.type":"Edm.DateTime""#);
            let properties = format!(r#""properties":{{{keys}{comma}{members},{stamp}}}"#);
            format!(r#"{{{keys},{properties},"lastModifiedTime":"{time}","eTag":"x","$loki":1}}"#)
        };
        let documents = entities.iter().map(entity).collect();
        self.collections.push((format!("{account}${name}"), documents));
    }

    /// Adds a queue of an account with metadata as JSON members.
    pub(crate) fn queue(&mut self, account: &str, name: &str, metadata: &str) {
        let queue = r#"{"accountName":"ACCOUNT","name":"NAME","metadata":{METADATA},"$loki":1}"#;
        let queue = queue.replace("ACCOUNT", account).replace("NAME", name);
        self.queues.push(queue.replace("METADATA", metadata));
    }

    /// Adds a message that can be received at once.
    pub(crate) fn message(&mut self, account: &str, queue: &str, id: &str, text: &str) {
        let (offset, count) = (self.texts.len(), text.len());
        self.texts.push_str(text);
        let location = format!(r#"{{"id":"{TEXTS}","offset":{offset},"count":{count}}}"#);
        self.message_at(account, queue, id, &location);
    }

    /// Adds a message whose text is at a certain location.
    pub(crate) fn message_at(&mut self, account: &str, queue: &str, id: &str, location: &str) {
        let names =
            format!(r#""accountName":"{account}","queueName":"{queue}","messageId":"{id}""#);
        let visible = r#""popReceipt":"x","timeNextVisible":1795275196447"#;
        let times =
            format!(r#""insertionTime":"2026-11-21T15:33:16.447Z","expirationTime":"{NEVER}""#);
        self.messages.push(format!(
            r#"{{{names},{visible},"persistency":{location},{times},"dequeueCount":0,"$loki":2}}"#
        ));
    }

    /// Adds a document to the messages as it is.
    pub(crate) fn raw_message(&mut self, json: &str) {
        self.messages.push(json.to_owned());
    }

    /// Adds a document to the first table as it is.
    pub(crate) fn raw_entity(&mut self, json: &str) {
        self.collections[0].1.push(json.to_owned());
    }

    /// Writes the workspace.
    pub(crate) fn write(&self, directory: &Path) {
        let mut tables = vec![("$TABLES_COLLECTION$".to_owned(), self.tables.clone())];
        tables.push(("$SERVICES_COLLECTION$".to_owned(), Vec::new()));
        tables.extend(self.collections.iter().cloned());
        let queues = [
            ("$SERVICES_COLLECTION$".to_owned(), Vec::new()),
            ("$QUEUES_COLLECTION$".to_owned(), self.queues.clone()),
            ("$MESSAGES_COLLECTION$".to_owned(), self.messages.clone()),
        ];
        fs::write(directory.join("__azurite_db_table__.json"), database(&tables)).unwrap();
        fs::write(directory.join("__azurite_db_queue__.json"), database(&queues)).unwrap();
        fs::create_dir(directory.join("__queuestorage__")).unwrap();
        fs::write(directory.join("__queuestorage__").join(TEXTS), &self.texts).unwrap();
    }
}

/// The text of a database.
pub(crate) fn database(collections: &[(String, Vec<String>)]) -> String {
    let mut text = r#"{"filename":"x","collections":["#.to_owned();
    for (at, (name, documents)) in collections.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        let data = documents.join(",");
        write!(
            text,
            r#"{comma}{{"name":"{name}","data":[{data}],"idIndex":[1,2],"binaryIndices":{{}},"maxId":3}}"#
        )
        .unwrap();
    }
    text.push_str(r#"],"databaseVersion":1.5,"ENV":"NODEJS"}"#);
    text
}
