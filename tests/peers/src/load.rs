//! Closed-loop load: a number of clients, each repeating its cycle for a time; and the results.

use std::{
    fmt::Write as _,
    sync::LazyLock,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use bytes::Bytes;

use crate::{CLIENTS, servers::Server};

/// The name of our own side.
const OURS: &str = "trestle";
/// How many times Azurite's rate ours should be.
const AZURITE_TIMES: f64 = 500.0;

/// How much is measured.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) turn: Duration,
    pub(crate) rounds: u64,
    /// Messages that wait in every queue all the time.
    pub(crate) backlog: u64,
}

/// How a consumer receives messages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// It requests each.
    Pulled,
    /// The server sends some ahead.
    Pushed,
    /// Many at a time, each step by what its protocol does best with many.
    Batched,
}

impl Way {
    /// Its name in a report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pulled => "pulled",
            Self::Pushed => "pushed",
            Self::Batched => "batched",
        }
    }

    /// Messages of one cycle.
    pub(crate) fn messages(self) -> usize {
        match self {
            Self::Pulled | Self::Pushed => 1,
            Self::Batched => 32,
        }
    }

    /// Messages that a consumer may be sent before it requests them, where the protocol has that.
    pub(crate) fn ahead(self) -> u16 {
        match self {
            Self::Pulled => 1,
            Self::Pushed => 8,
            Self::Batched => 64,
        }
    }
}

/// A client of a queue.
#[async_trait]
pub(crate) trait Client: Send {
    /// Sends the messages of one cycle and waits until the server has them.
    async fn send(&mut self);

    /// Sends, receives as many of the next messages, whichever they are, and deletes them.
    async fn cycle(&mut self);
}

/// A server with a queue, and its clients.
pub(crate) struct Started {
    pub(crate) server: Server,
    pub(crate) clients: Vec<Box<dyn Client>>,
}

/// One side of the comparison.
pub(crate) struct Runner {
    measured: Measured,
    started: Started,
}

/// The result of its turns.
pub(crate) struct Measured {
    name: &'static str,
    way: Way,
    /// Messages a second of each turn.
    rates: Vec<f64>,
    messages: u64,
    cpu_us: f64,
}

/// 1 KiB of text that compresses to about half.
pub(crate) fn payload() -> &'static str {
    static PAYLOAD: LazyLock<String> = LazyLock::new(|| {
        let mut text = String::new();
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        while text.len() < 1024 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_041);
            let _ = write!(text, "{:08x}padding!", state >> 32);
        }
        text
    });
    &PAYLOAD
}

/// The same as bytes.
pub(crate) fn payload_bytes() -> Bytes {
    Bytes::from_static(payload().as_bytes())
}

impl Runner {
    /// Fills the backlog.
    pub(crate) async fn start(name: &'static str, way: Way, started: Started, plan: Plan) -> Self {
        let measured = Measured { name, way, rates: Vec::new(), messages: 0, cpu_us: 0.0 };
        let mut runner = Self { measured, started };
        let began = Instant::now();
        let share = plan.backlog.div_ceil((CLIENTS * way.messages()) as u64);
        let sent = runner.drive(move |sent| sent < share, false).await;
        let (seconds, way) = (began.elapsed().as_secs_f64(), way.name());
        println!("{name}, {way}: {sent} messages wait after {seconds:.1} s");
        runner
    }

    /// One turn of cycles.
    pub(crate) async fn turn(&mut self, time: Duration) {
        let (began, before) = (Instant::now(), self.started.server.cpu_us());
        let done = self.drive(move |_| began.elapsed() < time, true).await;
        self.measured.rates.push(done as f64 / began.elapsed().as_secs_f64());
        self.measured.messages += done;
        self.measured.cpu_us += self.started.server.cpu_us() - before;
    }

    /// The result of its turns. The server ends.
    pub(crate) fn finish(self) -> Measured {
        self.measured
    }

    /// Repeats the cycle of every client while `goes_on`, called with the number of its cycles, is true; returns the
    /// number of messages.
    async fn drive(
        &mut self,
        goes_on: impl Fn(u64) -> bool + Copy + Send + 'static,
        whole: bool,
    ) -> u64 {
        let clients = std::mem::take(&mut self.started.clients);
        let tasks = clients.into_iter().map(|mut client| {
            tokio::spawn(async move {
                let mut done = 0;
                while goes_on(done) {
                    match whole {
                        true => client.cycle().await,
                        false => client.send().await,
                    }
                    done += 1;
                }
                (client, done)
            })
        });
        let mut all = 0;
        for task in tasks.collect::<Vec<_>>() {
            let (client, done) = task.await.expect("a client does not fail");
            self.started.clients.push(client);
            all += done;
        }
        all * self.measured.way.messages() as u64
    }
}

impl Measured {
    fn rate(&self) -> f64 {
        self.rates.iter().sum::<f64>() / self.rates.len() as f64
    }
}

/// How many times a peer's rate Trestle's should be.
fn budget(peer: &str) -> f64 {
    if peer == "azurite" { AZURITE_TIMES } else { 1.0 }
}

/// Prints every rate, and how many times a peer's rate Trestle's is in the same way, turn by turn: the middle one.
pub(crate) fn report(all: &[Measured]) {
    println!(
        "\n{:<28} {:>12} {:>12} {:>10} {:>12}",
        "send + receive + delete", "messages/s", "trestle is", "budget", "server us"
    );
    for one in all {
        let is_ours = |other: &&Measured| other.name == OURS && other.way == one.way;
        let Some(ours) = all.iter().find(is_ours) else { continue };
        let name = format!("{}, {}", one.name, one.way.name());
        let cpu = one.cpu_us / (one.messages.max(1) as f64);
        if one.name == OURS {
            println!("{name:<28} {:>12.0} {:>12} {:>10} {cpu:>12.1}", one.rate(), "", "");
            continue;
        }
        let pairs = ours.rates.iter().zip(&one.rates);
        let mut ratios: Vec<f64> = pairs.map(|(ours, theirs)| ours / theirs).collect();
        ratios.sort_by(f64::total_cmp);
        let (ratio, budget) = (ratios[ratios.len() / 2], budget(one.name));
        let missed = if ratio < budget { "  MISSED" } else { "" };
        let rate = one.rate();
        println!("{name:<28} {rate:>12.0} {ratio:>10.2} x {budget:>8} x {cpu:>12.1}{missed}");
    }
}
