//! A disk with slow syncs: a small library, compiled by the bench and preloaded into a measured process.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// Source of the library, shared with the fault tests of the engine.
const SOURCE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/kv-fjall/tests/faults/fsfault.c");

/// Delays each sync of a process by a millisecond. False, with a message, without a C compiler.
pub(crate) fn add_a_millisecond(command: &mut Command) -> bool {
    let Some(library) = library() else {
        return false;
    };
    command.env("LD_PRELOAD", library).env("KVFAULT_SYNC_DELAY_US", "1000");
    true
}

fn library() -> Option<&'static Path> {
    static LIBRARY: OnceLock<Option<PathBuf>> = OnceLock::new();
    let built = LIBRARY.get_or_init(|| {
        let target = std::env::temp_dir().join(format!("trestle-bench-{}.so", std::process::id()));
        let mut compile = Command::new("cc");
        compile.args(["-shared", "-fPIC", "-O2", "-o"]).arg(&target).args([SOURCE, "-ldl"]);
        let compiled = compile.status().is_ok_and(|status| status.success());
        if !compiled {
            println!("skipped: no C compiler to build the slow disk with");
        }
        compiled.then_some(target)
    });
    built.as_deref()
}
