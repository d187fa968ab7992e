//! Reads batches.

use trestle_proto::wire::{FieldValue, MalformedMessage, MessageReader};

use super::{FORMAT, FORMAT_WITH_RESOURCES, stored};

/// A stored batch that is malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a stored batch of records is malformed: {0}")]
pub(crate) struct CorruptBatch(#[from] MalformedMessage);

/// A record with what it has of its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchRow<'a> {
    /// The effective time, in nanoseconds since 1970.
    pub(crate) time: u64,
    /// The position in the stream.
    pub(crate) sequence: u64,
    /// The encoded `Record`, as it arrived.
    pub(crate) record: &'a [u8],
    /// The encoded `Resource`.
    pub(crate) resource: &'a [u8],
    /// The encoded `InstrumentationScope`.
    pub(crate) scope: &'a [u8],
}

/// A stored batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchView<'a> {
    /// When it was received, in nanoseconds since 1970.
    pub(crate) received: u64,
    format: u8,
    message: MessageReader<'a>,
}

impl<'a> BatchView<'a> {
    /// # Errors
    /// [`CorruptBatch`].
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, CorruptBatch> {
        let Some((&format @ (FORMAT_WITH_RESOURCES | FORMAT), message)) = bytes.split_first()
        else {
            return Err(MalformedMessage("format is not 1 or 2").into());
        };
        let mut message = MessageReader::new(message);
        match message.next_field()? {
            Some((stored::RECEIVED, received)) => {
                Ok(Self { received: received.fixed64()?, format, message })
            }
            _ => Err(MalformedMessage("time is missing").into()),
        }
    }

    /// The records, in the order in which they were appended. That of the first one has the sequence `first_sequence`.
    pub(crate) fn rows(
        &self,
        first_sequence: u64,
    ) -> impl Iterator<Item = Result<BatchRow<'a>, CorruptBatch>> + use<'a> {
        let mut rows = BatchRows {
            received: self.received,
            format: self.format,
            message: self.message,
            group: MessageReader::new(&[]),
            resource: &[],
            resource_before: &[],
            scope: &[],
            sequence: first_sequence,
        };
        std::iter::from_fn(move || rows.next_row().map_err(CorruptBatch::from).transpose())
    }
}

struct BatchRows<'a> {
    received: u64,
    format: u8,
    message: MessageReader<'a>,
    group: MessageReader<'a>,
    resource: &'a [u8],
    /// That of the group before; empty in the first group.
    resource_before: &'a [u8],
    scope: &'a [u8],
    sequence: u64,
}

impl<'a> BatchRows<'a> {
    fn next_row(&mut self) -> Result<Option<BatchRow<'a>>, MalformedMessage> {
        loop {
            match self.group.next_field()? {
                Some((stored::RESOURCE, resource)) => self.resource = resource.bytes()?,
                Some((stored::SAME_RESOURCE, mark)) if self.format != FORMAT_WITH_RESOURCES => {
                    self.resource = self.resource_of_group_before(mark)?;
                }
                Some((stored::SCOPE, scope)) => self.scope = scope.bytes()?,
                Some((stored::RECORD, record)) => return self.row(record.bytes()?).map(Some),
                Some(_) => return Err(MalformedMessage("group has an unknown field")),
                None => match self.message.next_field()? {
                    Some((stored::GROUP, group)) => {
                        self.group = MessageReader::new(group.bytes()?);
                        self.resource_before = std::mem::take(&mut self.resource);
                        self.scope = &[];
                    }
                    Some(_) => return Err(MalformedMessage("batch has an unknown field")),
                    None => return Ok(None),
                },
            }
        }
    }

    /// The resource that a mark refers to.
    fn resource_of_group_before(&self, mark: FieldValue<'a>) -> Result<&'a [u8], MalformedMessage> {
        if !mark.bytes()?.is_empty() {
            return Err(MalformedMessage("mark of a resource is not empty"));
        }
        if !self.resource.is_empty() {
            return Err(MalformedMessage("group has a resource and the mark of one"));
        }
        if self.resource_before.is_empty() {
            return Err(MalformedMessage("group before has no resource"));
        }
        Ok(self.resource_before)
    }

    fn row(&mut self, record: &'a [u8]) -> Result<BatchRow<'a>, MalformedMessage> {
        let time = match times_of(record)? {
            (0, 0) => self.received,
            (0, observed) => observed,
            (time, _) => time,
        };
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        let (resource, scope) = (self.resource, self.scope);
        Ok(BatchRow { time, sequence, record, resource, scope })
    }
}

/// The time of a record, and when it was observed if it has no time.
fn times_of(record: &[u8]) -> Result<(u64, u64), MalformedMessage> {
    let mut observed = 0;
    let mut fields = MessageReader::new(record);
    while let Some((number, value)) = fields.next_field()? {
        match number {
            // Each occurs once, so the rest need not be read.
            1 if value.fixed64()? != 0 => return Ok((value.fixed64()?, 0)),
            11 => observed = value.fixed64()?,
            _ => {}
        }
    }
    Ok((0, observed))
}
