//! Power cuts by the kernel while blobs are written: a server on ext4, on a loop device that is cut off its disk. The
//! contents of large blobs are files of their own, which the tests of the storage engine do not have.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use futures::future::join_all;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tempfile::TempDir;
use trestle_tests::{HANG, Server};

use crate::{
    appends::AppendWriter,
    blobs::{BlobWriter, Clients, container, writers},
    kills::{lengthened, seed},
};

/// Cuts of a run that sets no other number.
const CUTS: usize = 4;
/// Fewer acknowledged writes in all than this would make the test mean little: it continues until then.
const ACKNOWLEDGED_MIN: u64 = 40;
/// A machine that is this slow is not working.
const CUTS_MAX: usize = 10 * CUTS;
/// Most of it is never written.
const DISK_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// A file system on a loop device; unmounted when dropped.
struct LoopDisk {
    directory: TempDir,
    /// The program that cuts it off.
    cutter: PathBuf,
}

/// Runs a program.
fn run(program: &str, arguments: &[&Path]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("`{program}`: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("`{program}`: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

impl LoopDisk {
    fn new() -> Result<Self, String> {
        let directory = tempfile::tempdir().unwrap();
        let disk = Self { cutter: directory.path().join("cutter"), directory };
        let source =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/kv-fjall/tests/power/shutdown.c");
        run("cc", &[Path::new("-o"), &disk.cutter, &source])?;
        fs::File::create(disk.image()).unwrap().set_len(DISK_BYTES).unwrap();
        fs::create_dir(disk.mount()).unwrap();
        run("mkfs.ext4", &[Path::new("-q"), Path::new("-F"), &disk.image()])?;
        disk.attach()?;
        Ok(disk)
    }

    fn image(&self) -> PathBuf {
        self.directory.path().join("image")
    }

    fn mount(&self) -> PathBuf {
        self.directory.path().join("mount")
    }

    fn attach(&self) -> Result<(), String> {
        let options = ["-t", "ext4", "-o", "loop"].map(Path::new);
        run("mount", &[&options[..], &[&self.image(), &self.mount()]].concat())
    }

    /// Drops what was not synced, as the loss of power does; every later write fails.
    fn cut(&self) {
        run(self.cutter.to_str().unwrap(), &[&self.mount()]).unwrap();
    }

    /// Mounts what is left after [`Self::cut`], when no process uses it. The file system that was cut off stays while
    /// another mount namespace has a copy of the mount, as a test with `unshare` makes one: until then the new mount is
    /// the old file system, whose calls all fail.
    async fn restore(&self) {
        let began = Instant::now();
        loop {
            run("umount", &[&self.mount()]).unwrap();
            self.attach().unwrap();
            match fs::read_dir(self.mount()).map(Iterator::count) {
                Ok(_) => return,
                Err(error) => assert!(began.elapsed() < HANG, "still cut off: {error}"),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    fn start(&self) -> Server {
        let data = self.mount().join("data");
        let reserve = ("TRESTLE__STORAGE__MIN_FREE_BYTES", "134217728");
        Server::start(&["--data-dir", data.to_str().unwrap()], &[reserve])
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        // Lazily: a server that a failed test left may still hold files.
        drop(run("umount", &[Path::new("-l"), &self.mount()]));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::disallowed_methods, reason = "a setting of this test")]
async fn acknowledged_blobs_survive_power_cuts_and_are_whole() {
    let disk = match LoopDisk::new() {
        Ok(disk) => disk,
        Err(missing) => {
            println!("SKIPPED: cuts of a loop device, which need root and loop devices: {missing}");
            return;
        }
    };
    let cuts = std::env::var("BLOB_POWER_CUTS").map_or(CUTS, |text| text.parse().unwrap());
    let (seed, began) = (seed(), Instant::now());
    println!("to repeat: CRASH_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let mut server = disk.start();
    container(&server).create().await.unwrap();
    let (mut writers, mut appends) = (writers(), AppendWriter::new("appended"));

    let acknowledged = |writers: &[BlobWriter]| writers.iter().map(|it| it.count).sum::<u64>();
    let mut done = 0;
    while done < cuts || acknowledged(&writers).min(appends.count) < ACKNOWLEDGED_MIN {
        assert!(done < CUTS_MAX.max(cuts), "too few acknowledged writes");
        let (clients, is_cut) = (Clients::of(&server), AtomicBool::new(false));
        let after = Duration::from_micros(random.random_range(100_000..1_500_000));
        let after = lengthened(after, done / cuts.max(1));
        tokio::join!(
            // What is answered after the cut began may be lost, or not.
            join_all(writers.iter_mut().map(|writer| writer.run_until(&clients, &is_cut))),
            appends.run_until(&clients.grpc, &is_cut),
            async {
                tokio::time::sleep(after).await;
                is_cut.store(true, Ordering::SeqCst);
                disk.cut();
                server.kill();
            }
        );
        disk.restore().await;
        server = disk.start();
        let clients = Clients::of(&server);
        join_all(writers.iter_mut().map(|writer| writer.verify(&clients))).await;
        appends.verify(&clients.grpc).await;
        done += 1;
    }

    let count = acknowledged(&writers);
    let appended = appends.count;
    println!(
        "{done} cuts in {:.1?}, {count} acknowledged writes and {appended} appends",
        began.elapsed()
    );
    assert_eq!(server.terminate(), Some(0));
}
