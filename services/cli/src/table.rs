//! `trestle table`: one file for each kind of command.

use crate::{
    args::{ClientArgs, TableCommand},
    client::Session,
    errors::CliError,
    output::{Context, Output},
};

mod entities;
mod explain;
mod export;
mod import;
mod query;
mod stats;
mod tables;

/// Runs a command.
pub(crate) async fn run(command: TableCommand, client: &ClientArgs) -> Result<(), CliError> {
    let session = Session::connect(client).await?;
    let mut context = Context { session, output: Output::standard(client.json) };
    dispatch(&mut context, command, client).await?;
    context.output.flush()
}

async fn dispatch(
    context: &mut Context,
    command: TableCommand,
    client: &ClientArgs,
) -> Result<(), CliError> {
    match command {
        TableCommand::Create { table, if_not_exists } => {
            tables::create(context, table, if_not_exists).await
        }
        TableCommand::List { prefix } => tables::list(context, prefix.as_deref()).await,
        TableCommand::Delete(args) => match (args.partition_key, args.row_key) {
            (Some(partition_key), Some(row_key)) => {
                let key = entities::EntityAddress { table: args.table, partition_key, row_key };
                entities::delete(context, key, args.if_match).await
            }
            _ => tables::delete(context, args.table, args.yes).await,
        },
        TableCommand::Insert { table, entity } => entities::insert(context, table, entity).await,
        TableCommand::Upsert { table, mode, entity } => {
            entities::upsert(context, table, mode, entity).await
        }
        TableCommand::Get { table, partition_key, row_key, select, cost } => {
            let key = entities::EntityAddress { table, partition_key, row_key };
            entities::get(context, key, select, cost).await
        }
        TableCommand::Query(args) => query::run(context, args).await,
        TableCommand::Import(args) => Box::pin(import::run(context, args, client)).await,
        TableCommand::Export(args) => Box::pin(export::run(context, args, client)).await,
        TableCommand::Explain { table, filter, select, analyze } => {
            explain::run(context, table, filter, select, analyze).await
        }
        TableCommand::Stats { table: Some(table) } => stats::table(context, table).await,
        TableCommand::Stats { table: None } => stats::service(context).await,
    }
}
