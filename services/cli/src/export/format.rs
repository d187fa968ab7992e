//! The formats of exports.

use std::{
    io::{self, IsTerminal as _},
    path::Path,
};

use clap::ValueEnum;
use trestle_command::{errors::CliError, output::OutputFormat, rows::Format};

/// The format of the file of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One JSON object a line.
    Jsonl,
    /// Comma-separated values.
    Csv,
    /// Parquet, a column of its type for each property; of tables only.
    Parquet,
}

impl ExportFormat {
    /// The format of a file: that which is given, or that of the extension. `-o csv`, which is no default, selects CSV
    /// where nothing else selects, such as for `-`, which is JSONL else.
    ///
    /// # Errors
    /// An extension that is not known, another format than `-o csv`, and Parquet on a terminal.
    pub(crate) fn of(
        path: &Path,
        given: Option<Self>,
        output: OutputFormat,
    ) -> Result<Self, CliError> {
        let is_standard = path == Path::new("-");
        let named = given.or_else(|| Self::named_by(path));
        let fallback = match (output, is_standard) {
            (OutputFormat::Csv, _) => Some(Self::Csv),
            (_, true) => Some(Self::Jsonl),
            _ => None,
        };
        let Some(format) = named.or(fallback) else {
            let rule = "unknown extension: give --format jsonl, csv or parquet";
            return Err(CliError::Usage(format!("{rule}: `{}`", path.display())));
        };
        if output == OutputFormat::Csv && format != Self::Csv {
            return Err(CliError::Usage(format!(
                "-o csv is not the format of the file, which is {}: give --format csv: file=`{}`",
                format.name(),
                path.display()
            )));
        }
        if format == Self::Parquet && is_standard && io::stdout().is_terminal() {
            let rule = "Parquet is no text for a terminal: give a file, or a pipe";
            return Err(CliError::Usage(rule.to_owned()));
        }
        Ok(format)
    }

    fn named_by(path: &Path) -> Option<Self> {
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("parquet")) {
            return Some(Self::Parquet);
        }
        Format::named_by(path).map(|format| match format {
            Format::Jsonl => Self::Jsonl,
            Format::Csv => Self::Csv,
        })
    }

    /// The format, as messages name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "JSONL",
            Self::Csv => "CSV",
            Self::Parquet => "Parquet",
        }
    }
}
