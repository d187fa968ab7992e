//! The calls on streams.

use trestle_model::fault::{Fault, Violations};
use trestle_proto::log::v1 as proto;

use super::{LogApi, parse, render};
use crate::{authorize::LogAccess, error::LogError, stream::SegmentId, undelete::UndeleteOutcome};

impl LogApi {
    pub(super) async fn create(
        &self,
        access: &LogAccess,
        request: proto::CreateStreamRequest,
    ) -> Result<proto::CreateStreamResponse, Fault> {
        let (name, settings) = parse::settings(request.stream)?;
        let created = self.logs.streams.create(access.account_of(&name)?, &name, settings).await?;
        let (record, created) = created;
        Ok(proto::CreateStreamResponse { stream: Some(render::stream(&name, record)), created })
    }

    pub(super) async fn get(
        &self,
        access: &LogAccess,
        request: proto::GetStreamRequest,
    ) -> Result<proto::GetStreamResponse, Fault> {
        let name = parse::stream_name(request.stream)?;
        let record = self.logs.streams.open(access.account_of(&name)?, &name).await?;
        let head = self.logs.streams.head(record.id).await?;
        let head = head.ok_or_else(|| LogError::StreamNotFound(name.clone()))?;
        Ok(proto::GetStreamResponse {
            stream: Some(render::stream(&name, record)),
            stats: Some(render::stats(&head)),
        })
    }

    pub(super) async fn update(
        &self,
        access: &LogAccess,
        request: proto::UpdateStreamRequest,
    ) -> Result<proto::UpdateStreamResponse, Fault> {
        let (name, change) = parse::settings_change(request)?;
        let record = self.logs.streams.update(access.account_of(&name)?, &name, change).await?;
        Ok(proto::UpdateStreamResponse { stream: Some(render::stream(&name, record)) })
    }

    pub(super) async fn list(
        &self,
        access: &LogAccess,
        request: proto::ListStreamsRequest,
    ) -> Result<proto::ListStreamsResponse, Fault> {
        let request = parse::list_streams(request)?;
        let page = self.logs.streams.list(access.account(), request).await?;
        let streams = page.streams.into_iter().map(|(name, it)| render::stream(&name, it));
        Ok(proto::ListStreamsResponse {
            streams: streams.collect(),
            next_page_token: page.next_page_token.unwrap_or_default(),
        })
    }

    pub(super) async fn delete(
        &self,
        access: &LogAccess,
        request: proto::DeleteStreamRequest,
    ) -> Result<proto::DeleteStreamResponse, Fault> {
        let name = parse::stream_name(request.stream)?;
        self.logs.delete(access.account_of(&name)?, &name).await?;
        Ok(proto::DeleteStreamResponse {})
    }

    pub(super) async fn flush(
        &self,
        access: &LogAccess,
        request: proto::FlushStreamRequest,
    ) -> Result<proto::FlushStreamResponse, Fault> {
        let name = parse::stream_name(request.stream)?;
        let stream = self.logs.open(access.account_of(&name)?, &name).await?;
        let sealed = self.logs.flush(&stream).await?;
        Ok(proto::FlushStreamResponse {
            records: sealed.records,
            segments: sealed.segments,
            snapshot: sealed.snapshot,
        })
    }

    pub(super) async fn undelete(
        &self,
        access: &LogAccess,
        request: proto::UndeleteSegmentsRequest,
    ) -> Result<proto::UndeleteSegmentsResponse, Fault> {
        let name = parse::stream_name(request.stream)?;
        let stream = self.logs.open(access.account_of(&name)?, &name).await?;
        let UndeleteOutcome { segments, records, expired_segments } =
            self.logs.undelete(&stream).await?;
        Ok(proto::UndeleteSegmentsResponse { segments, records, expired_segments })
    }

    pub(super) async fn segments(
        &self,
        access: &LogAccess,
        request: proto::ListSegmentsRequest,
    ) -> Result<proto::ListSegmentsResponse, Fault> {
        let name = parse::stream_name(request.stream)?;
        let mut violations = Violations::default();
        let times = parse::times(request.start_time, request.end_time, &mut violations);
        let page_size = parse::page_items(request.page_size, &mut violations);
        violations.check(())?;
        let stream = self.logs.open(access.account_of(&name)?, &name).await?;
        let page = self.logs.segments(&stream, times, page_size, &request.page_token).await?;
        let shown = page.segments.iter().map(|it| render::segment(&self.logs.area, it));
        Ok(proto::ListSegmentsResponse {
            segments: shown.collect(),
            next_page_token: page.next_page_token.unwrap_or_default(),
            snapshot: page.snapshot,
        })
    }

    pub(super) async fn verify_segment(
        &self,
        access: &LogAccess,
        request: proto::VerifySegmentRequest,
    ) -> Result<proto::VerifySegmentResponse, Fault> {
        let name = parse::stream_name(request.stream)?;
        let stream = self.logs.open(access.account_of(&name)?, &name).await?;
        let verified = self.logs.verify_one(&stream, SegmentId(request.id)).await?;
        let mut segment = render::segment(&self.logs.area, &verified.segment);
        match verified.error {
            None => {}
            Some(LogError::Corrupt(damage)) => segment.damage = damage.to_string(),
            Some(error) => return Err(error.into()),
        }
        let readable_records = verified.readable;
        Ok(proto::VerifySegmentResponse { segment: Some(segment), readable_records })
    }

    pub(super) async fn drop_segment(
        &self,
        access: &LogAccess,
        request: proto::DropSegmentRequest,
    ) -> Result<proto::DropSegmentResponse, Fault> {
        let name = parse::stream_name(request.stream)?;
        let stream = self.logs.open(access.account_of(&name)?, &name).await?;
        let dropped = self.logs.drop_segment(&stream, SegmentId(request.id)).await?;
        let segment = render::segment(&self.logs.area, &dropped.segment);
        Ok(proto::DropSegmentResponse { segment: Some(segment) })
    }
}
