//! Responses that are sent while they are made.

use super::*;

async fn collect(mut responses: ResponseStream<u32>) -> (Vec<u32>, Option<tonic::Code>) {
    let mut messages = Vec::new();
    while let Some(response) = responses.next().await {
        match response {
            Ok(message) => messages.push(message),
            Err(status) => return (messages, Some(status.code())),
        }
    }
    (messages, None)
}

#[tokio::test]
async fn sends_messages_in_order_and_ends_without_an_error() {
    let responses = spawn(|sender| async move {
        for message in 0..10 {
            sender.send(message).await?;
        }
        Ok(())
    });

    assert_eq!(collect(responses).await, ((0..10).collect(), None));
}

#[tokio::test]
async fn reports_an_error_or_a_panic_after_the_messages_sent() {
    let failing = spawn(|sender| async move {
        sender.send(1).await?;
        Err(Status::aborted("stop"))
    });
    let panicking = spawn(|sender| async move {
        sender.send(1).await?;
        panic!("a defect");
    });

    assert_eq!(collect(failing).await, (vec![1], Some(tonic::Code::Aborted)));
    assert_eq!(collect(panicking).await, (vec![1], Some(tonic::Code::Internal)));
}

#[tokio::test]
async fn a_task_blocks_on_its_client_and_ends_when_it_disconnects() {
    let (report, ended) = tokio::sync::oneshot::channel();
    let mut unread = spawn(|sender| async move {
        let mut sent = 0;
        while sender.send(sent).await.is_ok() {
            sent += 1;
        }
        report.send(sent).expect("the test listens");
        Ok(())
    });

    let first = unread.next().await;
    drop(unread);
    let sent = tokio::time::timeout(Duration::from_secs(10), ended).await;

    assert!(matches!(first, Some(Ok(0))));
    let sent =
        usize::try_from(sent.expect("the task ends").expect("the task reports")).expect("few");
    assert!((BUFFERED_MAX..=BUFFERED_MAX + 1).contains(&sent), "{sent}");
}
