//! `export`: the entities of a table as a file, in memory that does not grow with the table.

use std::{
    collections::{BTreeMap, HashSet},
    io::{self, Write},
};

use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};
use serde_json::json;
use trestle_command::{
    entity_json::{Meta, TypeAnnotations},
    errors::CliError,
    flags::ClientArgs,
    output::{report_line, thousands},
    rows::{CsvHeader, RowWriter},
    scan::{TableScan, decoded},
};
use trestle_proto::table::v1::{Entity, StreamEntitiesRequest};

mod columns;
mod parquet;

use self::{
    columns::{FoundValues, ParquetColumn},
    parquet::ParquetWriter,
};
use super::args::ExportArgs;
use super::{Context, entities::mask};
use crate::export::{self, ExportFormat, ExportOrder, ExportPage, ExportSource, ExportWriter};

/// Most columns of a file of CSV or Parquet.
const COLUMNS_MAX: usize = 10_000;

/// Exports a table.
pub(super) async fn run(
    context: &mut Context,
    args: ExportArgs,
    client: &ClientArgs,
) -> Result<(), CliError> {
    let format = ExportFormat::of(&args.file, args.format, client.output.format)?;
    let is_parquet = format == ExportFormat::Parquet;
    if is_parquet {
        check_parquet(&args)?;
    }
    // As checkpoints name it.
    let mut form = format.name().to_lowercase();
    if args.no_types {
        form.push_str(" without types");
    }
    let job = json!({
        "endpoint": client.endpoint, "table": args.table, "filter": args.filter,
        "columns": args.columns, "format": form, "with_timestamp": args.with_timestamp,
    });
    let order = ExportOrder {
        file: args.file.clone(),
        resume: args.resume,
        is_resumable: !is_parquet,
        job,
        endpoint: client.endpoint.clone(),
    };
    export::run(context, order, ExportedTable { args, format, scan: None }).await
}

/// The flags with Parquet, whose columns have types, and names of their own.
fn check_parquet(args: &ExportArgs) -> Result<(), CliError> {
    if args.no_types {
        let rule = "--no-types is for JSONL and CSV: the columns of Parquet have types";
        return Err(CliError::Usage(rule.to_owned()));
    }
    let mut names = HashSet::from(["PartitionKey", "RowKey", "Timestamp"]);
    match args.columns.iter().find(|name| !names.insert(name)) {
        Some(twice) => Err(CliError::Usage(format!(
            "--columns: a file of Parquet has each column once, its keys and time by themselves: \
             column=`{twice}`"
        ))),
        None => Ok(()),
    }
}

/// The columns of an export.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ExportColumns {
    /// Those of CSV, found or given.
    columns: Vec<String>,
    /// Those of Parquet, which is not continued.
    #[serde(skip)]
    typed: Vec<ParquetColumn>,
}

struct ExportedTable {
    args: ExportArgs,
    format: ExportFormat,
    scan: Option<TableScan>,
}

impl ExportSource for ExportedTable {
    type Row = Entity;
    type Plan = ExportColumns;
    type Writer<W: Write + Send> = EntityFileWriter<W>;

    const ROW: &'static str = "entity";

    /// The columns; this reads the table once, except for JSONL, and for CSV with columns that are given.
    async fn plan(
        &self,
        context: &Context,
        progress: &ProgressBar,
    ) -> Result<ExportColumns, CliError> {
        let given = self.args.columns.clone();
        if self.format == ExportFormat::Jsonl
            || (self.format == ExportFormat::Csv && !given.is_empty())
        {
            return Ok(ExportColumns { columns: given, typed: Vec::new() });
        }
        let mut found = self.find_columns(context, progress).await?;
        if self.format == ExportFormat::Csv {
            return Ok(ExportColumns { columns: found.into_keys().collect(), typed: Vec::new() });
        }
        let found: Vec<_> = match given.is_empty() {
            true => found.into_iter().collect(),
            false => given
                .into_iter()
                .map(|name| found.remove_entry(&name).unwrap_or((name, FoundValues::default())))
                .collect(),
        };
        let typed: Vec<_> =
            found.into_iter().map(|(name, values)| ParquetColumn::new(name, values)).collect();
        progress.suspend(|| typed.iter().for_each(|column| report_text_column(context, column)));
        Ok(ExportColumns { columns: Vec::new(), typed })
    }

    fn read(&mut self, context: &Context, _: &ExportColumns, resume_token: &str) {
        self.scan = Some(self.scan(context, resume_token));
    }

    async fn next(&mut self) -> Result<Option<ExportPage<Entity>>, CliError> {
        let Some(scan) = &mut self.scan else { return Ok(None) };
        let Some(message) = scan.next().await? else { return Ok(None) };
        let rows = decoded(&message)?;
        Ok(Some(ExportPage { rows, resume_token: message.resume_token }))
    }

    fn writer<W: Write + Send>(
        &self,
        out: W,
        plan: &ExportColumns,
        is_rest: bool,
    ) -> io::Result<EntityFileWriter<W>> {
        let timestamp = self.args.with_timestamp;
        let types = match self.args.no_types {
            true => TypeAnnotations::Omitted,
            false => TypeAnnotations::Written,
        };
        Ok(match self.format {
            ExportFormat::Jsonl => {
                let meta = if timestamp { Meta::Timestamp } else { Meta::None };
                EntityFileWriter::Rows(RowWriter::jsonl(out, meta, types))
            }
            ExportFormat::Csv => {
                let header = CsvHeader {
                    columns: plan.columns.clone(),
                    with_timestamp: timestamp,
                    types,
                    is_written: !is_rest,
                };
                EntityFileWriter::Rows(RowWriter::csv(out, header)?)
            }
            ExportFormat::Parquet => {
                let writer = ParquetWriter::new(out, &plan.typed, timestamp)?;
                EntityFileWriter::Parquet(Box::new(writer))
            }
        })
    }
}

impl ExportedTable {
    fn scan(&self, context: &Context, resume_token: &str) -> TableScan {
        let request = StreamEntitiesRequest {
            table: self.args.table.clone(),
            filter: self.args.filter.clone(),
            select: mask(self.args.columns.clone()),
            limit: None,
            resume_token: resume_token.to_owned(),
        };
        TableScan::new(&context.session, request)
    }

    async fn find_columns(
        &self,
        context: &Context,
        progress: &ProgressBar,
    ) -> Result<BTreeMap<String, FoundValues>, CliError> {
        let mut scan = self.scan(context, "");
        let mut columns = BTreeMap::<String, FoundValues>::new();
        let mut read = 0;
        while let Some(message) = scan.next().await? {
            for entity in decoded(&message)? {
                read += 1;
                columns::find(&mut columns, entity);
            }
            if columns.len() > COLUMNS_MAX {
                return Err(CliError::Usage(format!(
                    "table has more properties than a {} file may have columns: name them with \
                     --columns, or use JSONL: columns_max=`{COLUMNS_MAX}`",
                    self.format.name()
                )));
            }
            progress.tick();
            progress.set_message(format!("finding columns: {} entities", thousands(read)));
        }
        Ok(columns)
    }
}

/// Reports a column that is text although not every value of it is.
fn report_text_column(context: &Context, column: &ParquetColumn) {
    let Some(reason) = column.why_text() else { return };
    if context.output.is_json() {
        let note = json!({ "text_column": column.name(), "reason": reason });
        report_line(&note.to_string());
    } else {
        context.output.note(&format!("`{}` is a column of text: {reason}", column.name()));
    }
}

enum EntityFileWriter<W: Write + Send> {
    Rows(RowWriter<W>),
    Parquet(Box<ParquetWriter<W>>),
}

impl<W: Write + Send> ExportWriter<Entity> for EntityFileWriter<W> {
    fn write(&mut self, row: &Entity) -> io::Result<()> {
        match self {
            Self::Rows(writer) => writer.write(row),
            Self::Parquet(writer) => writer.write(row),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Rows(writer) => writer.flush(),
            // What is written of a file of Parquet is of no use without its end.
            Self::Parquet(_) => Ok(()),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Rows(mut writer) => writer.flush(),
            Self::Parquet(writer) => writer.finish(),
        }
    }
}
