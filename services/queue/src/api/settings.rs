//! The calls on queues themselves: their settings, their access policies, their statistics; and on the settings of the
//! service.

use std::sync::Arc;

use trestle_model::{fault::Fault, name::AccountName};
use trestle_proto::queue::v1 as proto;
use trestle_rpc::service_properties;

use super::{QueueApi, parse, render};
use crate::{authorize::QueueAccess, error::QueueError, keys, policies, queues::ListQueues};

impl QueueApi {
    /// Creates a queue.
    pub(super) async fn create(
        &self,
        account: &AccountName,
        request: proto::CreateQueueRequest,
    ) -> Result<proto::CreateQueueResponse, Fault> {
        let (name, settings) = parse::new_queue(request.queue)?;
        let (record, created) =
            self.messages.queues.create(account, name.clone(), settings).await?;
        let queue = Some(render::queue(name.as_str(), record));
        Ok(proto::CreateQueueResponse { queue, created })
    }

    /// A queue, and its statistics.
    pub(super) async fn get(
        &self,
        access: &QueueAccess,
        request: proto::GetQueueRequest,
    ) -> Result<proto::GetQueueResponse, Fault> {
        let name = parse::queue(request.queue)?;
        let found = self.messages.with_queue(access, &name, async |queue| {
            let stats = self.messages.stats(&queue).await?;
            Ok((queue, stats))
        });
        let (queue, stats) = found.await?;
        Ok(proto::GetQueueResponse {
            queue: Some(render::queue(name.as_str(), Arc::unwrap_or_clone(queue.record))),
            stats: Some(render::stats(stats)),
        })
    }

    /// Changes the settings of a queue.
    pub(super) async fn update(
        &self,
        account: &AccountName,
        request: proto::UpdateQueueRequest,
    ) -> Result<proto::UpdateQueueResponse, Fault> {
        let (name, change) = parse::queue_update(request)?;
        let update = move |record: &mut crate::record::QueueRecord| {
            change.clone().apply(&mut record.settings);
            Ok(())
        };
        let record = self.messages.queues.update(account, name.clone(), update).await?;
        let queue = Some(render::queue(name.as_str(), record));
        Ok(proto::UpdateQueueResponse { queue })
    }

    /// A page of queues.
    pub(super) async fn list(
        &self,
        account: &AccountName,
        request: proto::ListQueuesRequest,
    ) -> Result<proto::ListQueuesResponse, Fault> {
        let page_size = parse::list(&request)?;
        let proto::ListQueuesRequest { prefix, page_token, .. } = request;
        let page = self.messages.queues.list(account, ListQueues { prefix, page_size, page_token });
        let page = page.await?;
        let queues = page.queues.into_iter().map(|(name, record)| render::queue(&name, record));
        Ok(proto::ListQueuesResponse {
            queues: queues.collect(),
            next_page_token: page.next_page_token.unwrap_or_default(),
        })
    }

    /// The access policies of a queue.
    pub(super) async fn policies(
        &self,
        account: &AccountName,
        request: proto::GetQueueAccessPoliciesRequest,
    ) -> Result<proto::GetQueueAccessPoliciesResponse, Fault> {
        let name = parse::queue(request.queue)?;
        let record = self.messages.queues.stored(account, &name).await?;
        let record = record.ok_or(QueueError::QueueNotFound(name))?;
        let policies = policies::decode(&record.policies)?;
        Ok(proto::GetQueueAccessPoliciesResponse { policies })
    }

    /// Replaces the access policies of a queue.
    pub(super) async fn set_policies(
        &self,
        account: &AccountName,
        request: proto::SetQueueAccessPoliciesRequest,
    ) -> Result<proto::SetQueueAccessPoliciesResponse, Fault> {
        let name = parse::queue(request.queue)?;
        policies::check(&request.policies)?;
        let stored = policies::encode(request.policies);
        let update = move |record: &mut crate::record::QueueRecord| {
            record.policies = stored.clone();
            Ok(())
        };
        self.messages.queues.update(account, name, update).await?;
        Ok(proto::SetQueueAccessPoliciesResponse {})
    }

    /// The settings of the service.
    pub(super) async fn properties(
        &self,
        account: &AccountName,
    ) -> Result<proto::GetServicePropertiesResponse, Fault> {
        let key = keys::service_properties(account);
        let properties = Some(service_properties::read(&*self.engine, &key).await?);
        Ok(proto::GetServicePropertiesResponse { properties })
    }

    /// Changes the settings of the service.
    pub(super) async fn set_properties(
        &self,
        account: &AccountName,
        request: proto::SetServicePropertiesRequest,
    ) -> Result<proto::SetServicePropertiesResponse, Fault> {
        let change = service_properties::required(request.properties)?;
        let key = keys::service_properties(account);
        let domain = keys::own_domain(&key);
        service_properties::change(&*self.engine, domain, key, change).await?;
        Ok(proto::SetServicePropertiesResponse {})
    }
}
