use std::{
    collections::BTreeSet,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
};

use futures::future::BoxFuture;
use http_body_util::{BodyExt as _, StreamBody};
use opentelemetry::metrics::{MeterProvider as _, noop::NoopMeterProvider};
use prost_types::FileDescriptorSet;
use trestle_model::fault::{Fault, Reason};
use trestle_proto::queue::v1::{SendMessagesRequest, StreamOpen};
use trestle_rpc::{layer::error_response, not_owner::not_owner, upstream::Upstream};

use super::*;

/// A call that a service handled: which service, and the bytes of the request.
type Handled = Arc<Mutex<Vec<(&'static str, Bytes)>>>;

/// Two processes, of which one has every queue.
struct World {
    is_elsewhere: AtomicBool,
    looks: AtomicUsize,
    /// The queue moves to this process at the look with this number.
    comes_at: usize,
    peer: CallService,
    asked: Mutex<Vec<(String, String)>>,
}

impl QueuePlacement for World {
    fn elsewhere(&self, account: &str, queue: &str) -> Option<Upstream> {
        self.asked.lock().unwrap().push((account.to_owned(), queue.to_owned()));
        self.is_elsewhere.load(SeqCst).then(|| Upstream::Local(self.peer.clone()))
    }

    fn look(&self) -> BoxFuture<'_, ()> {
        if self.looks.fetch_add(1, SeqCst) + 1 == self.comes_at {
            self.is_elsewhere.store(false, SeqCst);
        }
        Box::pin(async {})
    }
}

/// A service that reads requests and answers each in the same way.
fn service(name: &'static str, handled: &Handled, answer: fn() -> Response) -> CallService {
    let handled = Arc::clone(handled);
    CallService::new(tower::service_fn(move |request: Request| {
        let handled = Arc::clone(&handled);
        async move {
            assert!(!request.headers().contains_key(ACCEPT_ENCODING) || name == "local");
            let read = request.into_body().collect().await.unwrap().to_bytes();
            handled.lock().unwrap().push((name, read));
            Ok(answer())
        }
    }))
}

fn done() -> Response {
    Response::new(Body::empty())
}

fn not_here() -> Response {
    error_response(not_owner("owned by another process", "work"))
}

fn world(handled: &Handled, comes_at: usize, answer: fn() -> Response) -> Arc<World> {
    Arc::new(World {
        is_elsewhere: AtomicBool::new(true),
        looks: AtomicUsize::new(0),
        comes_at,
        peer: service("peer", handled, answer),
        asked: Mutex::default(),
    })
}

fn queues(world: &Arc<World>, handled: &Handled) -> QueuesOfAll {
    let meter = NoopMeterProvider::new().meter("test");
    QueuesOfAll::new(service("local", handled, done), Arc::<World>::clone(world) as _, &meter)
}

/// A message as it is on the wire.
fn framed() -> Vec<u8> {
    on_the_wire(&SendMessagesRequest { queue: "work".to_owned(), ..Default::default() })
}

/// The message that opens a stream.
fn opened() -> Vec<u8> {
    let open = StreamOpen { queue: "work".to_owned(), ..Default::default() };
    let message = Some(stream_messages_request::Message::Open(open));
    on_the_wire(&StreamMessagesRequest { message })
}

fn on_the_wire(message: &impl prost::Message) -> Vec<u8> {
    let mut framed = vec![0; HEAD_BYTES];
    message.encode(&mut framed).unwrap();
    framed[4] = u8::try_from(framed.len() - HEAD_BYTES).unwrap();
    framed
}

/// A request whose body comes in these parts.
fn request(method: &str, parts: Vec<Vec<u8>>) -> Request {
    let frames = parts.into_iter().map(|part| Ok::<_, Status>(http_body::Frame::data(part.into())));
    let body = Body::new(StreamBody::new(stream_of(frames.collect())));
    let mut request = Request::new(body);
    *request.uri_mut() = format!("/{QUEUE_SERVICE}/{method}").parse().unwrap();
    request.headers_mut().insert(ACCEPT_ENCODING, "gzip".parse().unwrap());
    request
}

fn stream_of<T>(items: Vec<T>) -> futures::stream::Iter<std::vec::IntoIter<T>> {
    futures::stream::iter(items)
}

async fn call(queues: &mut QueuesOfAll, request: Request) -> Response {
    let Ok(answer) = queues.call(request).await;
    answer
}

#[tokio::test]
async fn a_call_goes_as_it_is_to_the_process_that_has_its_queue() {
    let handled = Handled::default();
    let world = world(&handled, 0, done);
    let mut queues = queues(&world, &handled);
    let sent = framed();
    // Byte by byte, so that the head of the message is split too.
    let parts = sent.iter().map(|byte| vec![*byte]).collect();
    call(&mut queues, request("SendMessages", parts)).await;
    assert_eq!(world.asked.lock().unwrap()[0].1, "work");

    world.is_elsewhere.store(false, SeqCst);
    call(&mut queues, request("SendMessages", vec![sent.clone()])).await;

    // What has no queue, or was forwarded by another process, is handled here.
    world.is_elsewhere.store(true, SeqCst);
    call(&mut queues, request("ListQueues", vec![sent.clone()])).await;
    let mut marked = request("SendMessages", vec![sent.clone()]);
    marked.extensions_mut().insert(FromStorePeer);
    call(&mut queues, marked).await;

    let handled = std::mem::take(&mut *handled.lock().unwrap());
    let by = ["peer", "local", "local", "local"];
    assert_eq!(handled, by.map(|service| (service, Bytes::from(sent.clone()))));
}

#[tokio::test(start_paused = true)]
async fn a_call_is_repeated_where_the_queue_is_now_if_nothing_was_done() {
    let handled = Handled::default();
    let world = world(&handled, 3, not_here);
    let mut queues = queues(&world, &handled);

    let ended_by_an_empty_frame = vec![framed(), vec![]];
    let answer = call(&mut queues, request("ReceiveMessages", ended_by_an_empty_frame)).await;

    assert!(!is_not_owner(answer.headers()));
    let handled = std::mem::take(&mut *handled.lock().unwrap());
    let by = ["peer", "peer", "peer", "local"];
    assert_eq!(handled, by.map(|service| (service, Bytes::from(framed()))));
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_comes_nowhere_is_an_error_in_the_end() {
    let handled = Handled::default();
    let world = world(&handled, 0, not_here);
    let began = Instant::now();
    let answer = call(&mut queues(&world, &handled), request("PeekMessages", vec![framed()])).await;
    assert!(is_not_owner(answer.headers()));
    assert!(began.elapsed() >= REPEATED_FOR);
}

#[tokio::test(start_paused = true)]
async fn neither_streams_nor_other_errors_are_repeated() {
    let handled = Handled::default();
    let streamed = world(&handled, 1, not_here);
    let mut queues_of = queues(&streamed, &handled);
    let opened = opened();
    let two = vec![opened.clone(), framed()];
    let answer = call(&mut queues_of, request(STREAM, two)).await;
    assert!(is_not_owner(answer.headers()));
    assert_eq!(streamed.asked.lock().unwrap()[0].1, "work");
    let both = [opened, framed()].concat();
    assert_eq!(*handled.lock().unwrap(), [("peer", Bytes::from(both))]);

    let busy = || error_response(Fault::new(Reason::ServerUnavailable, "the store is away"));
    let failing = world(&handled, 1, busy);
    call(&mut queues(&failing, &handled), request("SendMessages", vec![framed()])).await;
    assert_eq!(handled.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_request_that_is_no_message_reaches_the_service_as_it_is() {
    let handled = Handled::default();
    let world = world(&handled, 0, done);
    world.is_elsewhere.store(false, SeqCst);
    let mut queues = queues(&world, &handled);
    let mut too_large = vec![0, 0xFF, 0xFF, 0xFF, 0xFF];
    too_large.extend([7; 100]);
    let mut twice = framed();
    twice.extend(framed());
    for sent in [vec![], vec![0, 0], too_large, vec![0, 0, 0, 0, 2, 0xFF, 0xFF], twice] {
        call(&mut queues, request("SendMessages", vec![sent.clone()])).await;
        assert_eq!(handled.lock().unwrap().pop(), Some(("local", Bytes::from(sent))));
    }
    let broken = Body::new(StreamBody::new(stream_of(vec![
        Ok(http_body::Frame::data(Bytes::from_static(&[0]))),
        Err(Status::cancelled("the client is gone")),
    ])));
    let answer = call(&mut queues, request("SendMessages", vec![]).map(|_| broken)).await;
    let status = Status::from_header_map(answer.headers()).map(|status| status.code());
    assert_eq!(status, Some(tonic::Code::Cancelled));
    assert!(handled.lock().unwrap().is_empty());
}

#[test]
fn every_call_about_one_queue_is_forwarded() {
    let files = FileDescriptorSet::decode(trestle_proto::FILE_DESCRIPTOR_SET).unwrap();
    let file = files.file.iter().find(|file| file.name().ends_with("queue/v1/queue_service.proto"));
    let file = file.expect("the service");
    let names_a_queue = |input: &str| {
        let message = file.message_type.iter().find(|message| input.ends_with(message.name()));
        let fields = message.into_iter().flat_map(|message| &message.field);
        let text = prost_types::field_descriptor_proto::Type::String;
        fields
            .into_iter()
            .any(|field| field.name() == "queue" && field.number() == 1 && field.r#type() == text)
    };
    let methods = file.service.iter().flat_map(|service| &service.method);
    let expected: BTreeSet<_> =
        methods.filter(|method| names_a_queue(method.input_type())).map(|m| m.name()).collect();
    let expected: BTreeSet<_> = expected.into_iter().chain([STREAM]).collect();
    assert_eq!(expected, BTreeSet::from(ABOUT_A_QUEUE));
}
