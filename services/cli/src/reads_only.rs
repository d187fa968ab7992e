//! Which commands make no call that writes: their errors do not mention writes.

use crate::{
    BlobCommand, ClientCommand, ContainerCommand, CopySide, EntityCommand, LogCommand,
    MessageCommand, PolicyCommand, PropertiesCommand, QueueCommand, TableCommand,
    blob::TagsCommand,
};

impl ClientCommand {
    /// Whether it makes no call that writes. A command that is not listed may.
    pub(crate) fn reads_only(&self) -> bool {
        match self {
            Self::Table(command) => of_tables(command),
            Self::Entity(command) => of_entities(command),
            Self::Queue(command) => of_queues(command),
            Self::Message(command) => matches!(command, MessageCommand::Peek(_)),
            Self::Blob(command) => of_blobs(command),
            Self::Log(command) => of_logs(command),
            Self::Bench(_) => false,
            Self::Status | Self::Verify(_) => true,
        }
    }
}

fn of_tables(command: &TableCommand) -> bool {
    use TableCommand::{Explain, Export, Get, List, Policy, Properties, Query, Stats};
    match command {
        Policy(command) => of_policies(command),
        Properties(command) => of_properties(command),
        List { .. } | Get(_) | Stats { .. } | Export(_) | Query(_) | Explain(_) => true,
        _ => false,
    }
}

fn of_entities(command: &EntityCommand) -> bool {
    use EntityCommand::{Count, Explain, Get, Query};
    matches!(command, Get(_) | Query(_) | Count(_) | Explain(_))
}

fn of_queues(command: &QueueCommand) -> bool {
    use QueueCommand::{Get, List, Peek, Policy, Properties, Stats};
    match command {
        Policy(command) => of_policies(command),
        Properties(command) => of_properties(command),
        List { .. } | Get { .. } | Stats { .. } | Peek(_) => true,
        _ => false,
    }
}

fn of_blobs(command: &BlobCommand) -> bool {
    use BlobCommand::{Cat, Container, Cp, Find, Ls, Stat, Tags, Verify};
    match command {
        Container(ContainerCommand::Policy(command)) => of_policies(command),
        Container(command) => {
            matches!(command, ContainerCommand::List { .. } | ContainerCommand::Stat { .. })
        }
        Cp(args) => matches!(args.to, CopySide::Local(_)),
        Tags(command) => matches!(command, TagsCommand::Get { .. }),
        Ls { .. } | Cat { .. } | Stat { .. } | Find { .. } | Verify { .. } => true,
        _ => false,
    }
}

fn of_logs(command: &LogCommand) -> bool {
    use LogCommand::{Export, List, Read, Segments, Show, Stats, Tail, Verify};
    matches!(
        command,
        List { .. }
            | Show { .. }
            | Read(_)
            | Export(_)
            | Stats(_)
            | Tail(_)
            | Segments(_)
            | Verify(_)
    )
}

fn of_policies(command: &PolicyCommand) -> bool {
    matches!(command, PolicyCommand::List { .. })
}

fn of_properties(command: &PropertiesCommand) -> bool {
    matches!(command, PropertiesCommand::Get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_only_read_are_distinguished_from_those_that_may_write() {
        let (name, prefix) = (|| "orders".to_owned(), String::new());
        let id = name();

        for command in [
            ClientCommand::Status,
            ClientCommand::Table(TableCommand::List { prefix: None }),
            ClientCommand::Table(TableCommand::Policy(PolicyCommand::List { name: name() })),
            ClientCommand::Queue(QueueCommand::Properties(PropertiesCommand::Get)),
            ClientCommand::Log(LogCommand::List { prefix }),
        ] {
            assert!(command.reads_only(), "{command:?}");
        }
        for command in [
            ClientCommand::Table(TableCommand::Create { table: name(), if_not_exists: false }),
            ClientCommand::Queue(QueueCommand::Policy(PolicyCommand::Delete { name: name(), id })),
            ClientCommand::Queue(QueueCommand::Clear { queue: name(), yes: false }),
            ClientCommand::Log(LogCommand::Flush { stream: name() }),
        ] {
            assert!(!command.reads_only(), "{command:?}");
        }
    }
}
