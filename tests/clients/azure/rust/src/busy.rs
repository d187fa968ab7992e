//! A proxy before a server that is busy at first.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread,
};

/// What is answered while the server is busy.
const BUSY: &[u8] = b"HTTP/1.1 503 Server Busy\r\nx-ms-error-code: ServerBusy\r\n\
    content-length: 0\r\nconnection: close\r\n\r\n";

/// See the module. It is open until the process ends.
#[derive(Debug)]
pub struct BusyProxy {
    /// `host:port` of the proxy.
    pub address: String,
    rejected: Arc<AtomicU32>,
}

impl BusyProxy {
    /// Answers the first so many requests with 503, and lets the others through to a server.
    pub fn before(server: &str, busy: u32) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let (server, rejected) = (server.to_owned(), Arc::new(AtomicU32::new(0)));
        let counted = Arc::clone(&rejected);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if counted.load(Ordering::SeqCst) < busy {
                    counted.fetch_add(1, Ordering::SeqCst);
                    reject(client).expect("a request, and a client for its answer");
                } else {
                    let server = TcpStream::connect(&server).expect("the server is listening");
                    let (from, to) = (client.try_clone(), server.try_clone());
                    thread::spawn(move || pass(from.expect("a socket"), server));
                    thread::spawn(move || pass(to.expect("a socket"), client));
                }
            }
        });
        Self { address, rejected }
    }

    /// How many requests were answered with 503.
    pub fn rejected(&self) -> u32 {
        self.rejected.load(Ordering::SeqCst)
    }
}

/// Reads a whole request, so that its client looks at the answer.
fn reject(client: TcpStream) -> io::Result<()> {
    let mut request = BufReader::new(client);
    let (mut line, mut length) = (String::new(), 0);
    while line != "\r\n" {
        line.clear();
        request.read_line(&mut line)?;
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().expect("a number");
        }
    }
    request.read_exact(&mut vec![0; length])?;
    request.get_mut().write_all(BUSY)
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    // Ends when either side closes.
    let _passed = io::copy(&mut from, &mut to);
    let _ended = to.shutdown(Shutdown::Write);
}
