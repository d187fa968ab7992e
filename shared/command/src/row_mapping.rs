//! Which columns of a file are the keys of its entities, and what every entity has besides its row.

use trestle_proto::table::v1::{Entity, Property};

use crate::{edm::EdmType, field_error::FieldError};

/// The name of the partition key in files.
pub const PARTITION_KEY: &str = "PartitionKey";
/// The name of the row key in files.
pub const ROW_KEY: &str = "RowKey";

/// Types given for columns without a type column.
pub type ColumnTypes = Vec<(String, EdmType)>;

/// Where a key comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyOrigin {
    /// A column of CSV, or a member of JSON.
    Column(String),
    /// The same key for every row.
    Constant(String),
}

/// From rows to entities.
#[derive(Debug, Clone, PartialEq)]
pub struct RowMapping {
    /// Where the partition key comes from.
    pub partition_key: KeyOrigin,
    /// Where the row key comes from.
    pub row_key: KeyOrigin,
    /// Properties that every entity has.
    pub constants: Vec<Property>,
    /// Types of columns.
    pub types: ColumnTypes,
}

impl Default for RowMapping {
    /// Columns with the names of the keys.
    fn default() -> Self {
        let column = |name: &str| KeyOrigin::Column(name.to_owned());
        let (partition_key, row_key) = (column(PARTITION_KEY), column(ROW_KEY));
        Self { partition_key, row_key, constants: Vec::new(), types: ColumnTypes::new() }
    }
}

impl KeyOrigin {
    /// Whether it is the column of this name.
    pub(crate) fn is_column(&self, name: &str) -> bool {
        matches!(self, Self::Column(column) if column == name)
    }

    /// The column, if it is one.
    pub(crate) fn column(&self) -> Option<&str> {
        if let Self::Column(column) = self { Some(column) } else { None }
    }

    /// The constant, if it is one.
    pub(crate) fn constant(&self) -> Option<&str> {
        if let Self::Constant(key) = self { Some(key) } else { None }
    }
}

impl RowMapping {
    /// Rejects a column that has the name of a key and is none, and one with the name of a constant.
    pub(crate) fn check(&self, name: &str) -> Result<(), FieldError> {
        let is_source = self.partition_key.is_column(name) || self.row_key.is_column(name);
        if matches!(name, PARTITION_KEY | ROW_KEY) && !is_source {
            let rule = "is a key, which comes from elsewhere: rename it, or leave out the option";
            return Err(FieldError::new(name, "", rule));
        }
        match self.constants.iter().any(|constant| constant.name == name) {
            true => Err(FieldError::new(name, "", "is given as a constant too")),
            false => Ok(()),
        }
    }

    /// Adds constants to the entity of a row, and sorts its properties.
    pub(crate) fn complete(&self, entity: &mut Entity) {
        if let Some(key) = self.partition_key.constant() {
            key.clone_into(&mut entity.partition_key);
        }
        if let Some(key) = self.row_key.constant() {
            key.clone_into(&mut entity.row_key);
        }
        entity.properties.extend_from_slice(&self.constants);
        entity.properties.sort_by(|a, b| a.name.cmp(&b.name));
    }
}
