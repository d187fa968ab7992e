//! The files of the repository.

use std::{
    fmt,
    path::{Path, PathBuf},
    process::Command,
};

use proc_macro2::TokenStream;

/// A text file.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// Its path from the root of the repository.
    pub(crate) path: String,
    /// Its text.
    pub(crate) text: String,
}

/// A rule broken at a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    path: String,
    line: usize,
    what: String,
}

impl Source {
    /// A file that a test makes up.
    #[cfg(test)]
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let (path, text) = (path.to_owned(), text.to_owned());
        Self { path, text }
    }

    /// The ending of its name, without the dot.
    pub(crate) fn extension(&self) -> &str {
        let path = Path::new(&self.path);
        path.extension().and_then(|ending| ending.to_str()).unwrap_or_default()
    }

    /// Its last part.
    pub(crate) fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Whether it is Rust.
    pub(crate) fn is_rust(&self) -> bool {
        self.extension() == "rs"
    }

    /// Whether it is part of what is tested: scripts of suites and benches are not.
    pub(crate) fn is_product(&self) -> bool {
        let is_crate = ["proto/", "shared/", "services/"];
        self.is_rust() && is_crate.iter().any(|it| self.path.starts_with(it)) && !self.is_test()
    }

    /// Whether all of it is tests or benches.
    pub(crate) fn is_test(&self) -> bool {
        let mut folders = self.path.split('/').rev().skip(1);
        folders.any(|folder| matches!(folder, "tests" | "benches"))
            || self.file_name() == "tests.rs"
    }

    /// Whether it is code in another language than Rust.
    pub(crate) fn is_script(&self) -> bool {
        matches!(self.extension(), "py" | "js" | "sh" | "go" | "java")
    }

    /// The tokens of a Rust file, which have no comments but those of documentation.
    pub(crate) fn tokens(&self) -> TokenStream {
        self.text.parse().unwrap_or_else(|error| panic!("{}: {error}", self.path))
    }

    /// A rule broken in a line, counted from 0.
    pub(crate) fn finding(&self, index: usize, what: impl Into<String>) -> Finding {
        let (path, line, what) = (self.path.clone(), index + 1, what.into());
        Finding { path, line, what }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().expect("this crate is a folder of the repository").to_owned()
}

/// Every text file that git tracks or would add; outside of a checkout, every one that is not in a
/// folder of build output.
pub(crate) fn all() -> Vec<Source> {
    let root = root();
    let mut paths = tracked_by_git(&root).unwrap_or_else(|| walk(&root));
    paths.sort();
    let read = |path: String| {
        let text = std::fs::read_to_string(root.join(&path)).ok()?;
        Some(Source { path, text })
    };
    paths.into_iter().filter_map(read).collect()
}

fn tracked_by_git(root: &Path) -> Option<Vec<String>> {
    let mut list = Command::new("git");
    list.current_dir(root);
    list.args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"]);
    let output = list.output().ok().filter(|output| output.status.success())?;
    let names = String::from_utf8(output.stdout).expect("names in UTF-8");
    Some(names.split_terminator('\0').map(str::to_owned).collect())
}

fn walk(root: &Path) -> Vec<String> {
    let (mut folders, mut paths) = (vec![root.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a readable folder") {
            let path = entry.expect("a readable entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let is_output = matches!(name, "target" | "artifacts" | "node_modules" | ".git");
            if path.is_dir() && !is_output {
                folders.push(path);
            } else if path.is_file() {
                let inside = path.strip_prefix(root).expect("below the root");
                paths.push(inside.to_str().expect("names in UTF-8").to_owned());
            }
        }
    }
    paths
}

#[test]
fn a_walk_and_git_find_the_same_sources() {
    let root = root();
    let rust = |paths: Vec<String>| {
        let mut rust: Vec<_> = paths.into_iter().filter(|path| path.ends_with(".rs")).collect();
        rust.retain(|path| root.join(path).exists());
        rust.sort();
        rust
    };
    let Some(tracked) = tracked_by_git(&root) else {
        println!("SKIPPED: this is not a checkout");
        return;
    };

    assert_eq!(rust(walk(&root)), rust(tracked));
}
