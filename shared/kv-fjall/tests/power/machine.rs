//! Power cuts by the kernel: a store on ext4, on a loop device, which is cut off its disk under load.
//!
//! The ioctl drops what was not synced, as the memory of a machine does. The part with the mounts is a process in a
//! mount namespace of its own, so that nothing stays mounted, however it ends.

use std::{
    env,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

use crate::{
    check::check,
    child::{self, ProcessEnd, ProcessRun, acknowledged},
    compiled,
    load::{WRITERS, WriterLoad},
    number,
    rounds::scratch,
};

/// Cuts of a test run that does not set another number.
const CUTS: u64 = 3;
const ROLE: &str = "POWER_MACHINE";
/// Most of it is never written: a journal is made with 64 MiB to come.
const DISK_BYTES: u64 = 1024 * 1024 * 1024;
/// However busy the machine is, a child gets there in this time.
const WITHIN: Duration = Duration::from_secs(120);

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("`{program}`: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(format!("`{program} {}`: {}", arguments.join(" "), text.trim()))
}

/// The file system, mounted until it is dropped.
struct Mount {
    image: PathBuf,
    at: PathBuf,
}

impl Mount {
    fn new(image: &Path, at: &Path) -> Result<Self, String> {
        let mount = Self { image: image.to_owned(), at: at.to_owned() };
        mount.attach()?;
        Ok(mount)
    }

    fn attach(&self) -> Result<(), String> {
        let (image, at) = (self.image.to_str().unwrap(), self.at.to_str().unwrap());
        run("mount", &["-t", "ext4", "-o", "loop", image, at])
    }

    fn detach(&self) -> Result<(), String> {
        run("umount", &[self.at.to_str().unwrap()])
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Fails where it is not mounted, which is what is selected.
        drop(self.detach());
    }
}

/// Why this machine cannot cut file systems off.
fn missing() -> Option<String> {
    let directory = scratch();
    let image = directory.path().join("image");
    std::fs::File::create(&image).unwrap().set_len(8 * 1024 * 1024).unwrap();
    let image = image.to_str().unwrap();
    let mount = directory.path().join("mount");
    std::fs::create_dir(&mount).unwrap();
    let script = format!("mount -t ext4 -o loop {image} {} && umount {0}", mount.display());
    let tries = [
        compiled("shutdown.c", false).map(drop).ok_or("no C compiler `cc`".to_owned()),
        run("mkfs.ext4", &["-q", "-F", image]),
        run("unshare", &["--mount", "--propagation", "private", "sh", "-c", &script]),
    ];
    tries.into_iter().find_map(Result::err)
}

#[test]
fn a_file_system_cut_off_under_load_opens_with_all_acknowledged_changes() {
    if let Some(missing) = missing() {
        println!("SKIPPED: cuts of a loop device, which need root and loop devices: {missing}");
        return;
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private"]).arg(env::current_exe().unwrap());
    command.args(["--exact", "machine::plays_the_machine", "--nocapture", "--test-threads=1"]);
    let status = command.env(ROLE, "1").stdin(Stdio::null()).status().unwrap();
    assert!(status.success(), "see above");
}

/// In the test run itself there is no role, and nothing to do.
#[test]
fn plays_the_machine() {
    if env::var_os(ROLE).is_none() {
        return;
    }
    let cuts = number("POWER_LOSS").map_or(CUTS, |cuts| (cuts / 20).max(CUTS));
    let seed = number("POWER_LOSS_SEED").unwrap_or(1);
    let mut random = StdRng::seed_from_u64(seed);
    let directory = scratch();
    let (image, at) = (directory.path().join("image"), directory.path().join("mount"));
    std::fs::create_dir(&at).unwrap();
    std::fs::File::create(&image).unwrap().set_len(DISK_BYTES).unwrap();
    run("mkfs.ext4", &["-q", "-F", image.to_str().unwrap()]).unwrap();
    let mount = Mount::new(&image, &at).unwrap();
    let root = at.join("disk");
    std::fs::create_dir(&root).unwrap();
    std::fs::File::open(&at).unwrap().sync_all().unwrap();
    let load = WriterLoad { seed };
    let mut heads = vec![0; WRITERS as usize];
    let (began, mut changes) = (Instant::now(), 0);

    for cut in 0..cuts {
        let (before, after) = write_until_cut(load, &root, &at, &mut random);
        let newest = |printed: &str| -> Vec<u64> {
            let new = acknowledged(printed);
            new.iter().zip(&heads).map(|(new, old)| *new.max(old)).collect()
        };
        let (due, begun) = (newest(&before), newest(&(before.clone() + &after)));
        changes += due.iter().sum::<u64>() - heads.iter().sum::<u64>();
        mount.detach().unwrap();
        mount.attach().unwrap();
        match check(&root, load, &due, &begun) {
            Ok(checked) => heads = checked.heads,
            Err(defect) => panic!("cut {cut} of seed {seed}: {defect}"),
        }
    }

    println!(
        "{cuts} cuts of ext4 in {:.1?}, {changes} acknowledged changes, seed {seed}",
        began.elapsed()
    );
    assert!(changes > cuts * 10, "the children hardly wrote: {changes}");
}

/// Lets a process write, cuts the file system off, and kills the process; what it printed before the cut, and
/// what it may have printed before or during it: a sync that runs while the file system is shut down counts for
/// neither.
fn write_until_cut(
    load: WriterLoad,
    root: &Path,
    mount: &Path,
    random: &mut StdRng,
) -> (String, String) {
    let endless = ProcessRun {
        load,
        changes: u64::MAX,
        end: ProcessEnd::Killed,
        failing_sync: None,
        journal_bytes: 300_000,
    };
    let mut process = child::command(&endless, root, None).spawn().unwrap();
    let output = BufReader::new(process.stdout.take().unwrap());
    let (received, lines) = mpsc::channel();
    let reader = thread::spawn(move || {
        // No reader may be connected any more.
        output.lines().map_while(Result::ok).for_each(|line| _ = received.send(line));
    });
    let mut printed = String::new();
    let mut acknowledged = random.random_range(0..400);
    // Each writer prints where it begins.
    let mut begun = WRITERS;
    let deadline = Instant::now() + WITHIN;
    while acknowledged > 0 {
        let line = lines.recv_timeout(deadline - Instant::now()).expect("the child writes");
        if line.starts_with("ack ") {
            begun = begun.saturating_sub(1);
            acknowledged -= u64::from(begun == 0);
        }
        printed.push_str(&line);
        printed.push('\n');
    }
    thread::sleep(Duration::from_micros(random.random_range(0..20_000)));
    let lines_left = || lines.try_iter().map(|line| line + "\n").collect::<String>();
    printed += &lines_left();
    let tool = compiled("shutdown.c", false).unwrap();
    run(tool.to_str().unwrap(), &[mount.to_str().unwrap()]).unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
    reader.join().unwrap();
    (printed, lines_left())
}
