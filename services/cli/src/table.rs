//! `trestle table` and `trestle entity`: one file for each kind of command.

use trestle_command::{
    client::Session,
    errors::CliError,
    flags::ClientArgs,
    output::{Context, Output},
};

use crate::service::{DataService, PolicyOwner, run_policy, run_properties};

pub(crate) mod args;
mod count;
mod diff;
mod entities;
mod explain;
mod export;
mod import;
mod no_match;
mod query;
mod stats;
mod tables;

use args::{EntityCommand, TableCommand};
pub use diff::diff_table;
pub(crate) use stats::service_record;

/// Runs a command on tables.
pub(crate) async fn run(command: TableCommand, client: &ClientArgs) -> Result<(), CliError> {
    let session = Session::new(client)?;
    let mut context = Context { session, output: Output::standard(&client.output) };
    dispatch(&mut context, command, client).await?;
    context.output.finish()
}

/// Runs a command on entities.
pub(crate) async fn run_entity(
    command: EntityCommand,
    client: &ClientArgs,
) -> Result<(), CliError> {
    let session = Session::new(client)?;
    let mut context = Context { session, output: Output::standard(&client.output) };
    entity(&mut context, command).await?;
    context.output.finish()
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
        TableCommand::Get(args) if args.key.is_given() => {
            entity(context, EntityCommand::Get(args)).await
        }
        TableCommand::Get(args) => tables::get(context, args.table).await,
        TableCommand::Delete { entity: args, .. } if args.key.is_given() => {
            entity(context, EntityCommand::Delete(args)).await
        }
        TableCommand::Delete { yes, entity } => tables::delete(context, entity.table, yes).await,
        TableCommand::Stats { table: Some(table) } => stats::table(context, table).await,
        TableCommand::Stats { table: None } => stats::service(context).await,
        TableCommand::Policy(command) => run_policy(context, PolicyOwner::Table, command).await,
        TableCommand::Properties(command) => {
            run_properties(context, DataService::Table, command).await
        }
        TableCommand::Import(args) => Box::pin(import::run(context, args, client)).await,
        TableCommand::Export(args) => Box::pin(export::run(context, args, client)).await,
        TableCommand::Insert(args) => entity(context, EntityCommand::Insert(args)).await,
        TableCommand::Upsert(args) => entity(context, EntityCommand::Upsert(args)).await,
        TableCommand::Query(args) => entity(context, EntityCommand::Query(args)).await,
        TableCommand::Explain(args) => entity(context, EntityCommand::Explain(args)).await,
    }
}

async fn entity(context: &mut Context, command: EntityCommand) -> Result<(), CliError> {
    match command {
        EntityCommand::Insert(args) => entities::insert(context, args).await,
        EntityCommand::Upsert(args) => entities::upsert(context, args).await,
        EntityCommand::Update { if_match, write } => {
            entities::update(context, write, if_match).await
        }
        EntityCommand::Get(args) => entities::get(context, args).await,
        EntityCommand::Query(args) => query::run(context, args).await,
        EntityCommand::Count(args) => count::run(context, args).await,
        EntityCommand::Explain(args) => explain::run(context, args).await,
        EntityCommand::Delete(args) => entities::delete(context, args).await,
    }
}
