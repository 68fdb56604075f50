//! Records the exact versions of the compiler crates, read from the workspace's Cargo.lock.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

const CRATES: [&str; 3] = ["cutile", "cutile-compiler", "cutile-ir"];

fn main() {
    let lock = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    let text = fs::read_to_string(&lock).expect("Cargo.lock is part of the repository");
    let mut rows: Vec<(String, String)> =
        CRATES.iter().map(|name| ((*name).to_owned(), locked_version(&text, name))).collect();
    rows.push(("rustc".to_owned(), rustc_version()));
    let table = format!("{rows:?}").replace('[', "&[");
    let source = format!("/// Names and versions.\npub const VERSIONS: &[(&str, &str)] = {table};\n");
    fs::write(Path::new(&env::var("OUT_DIR").unwrap()).join("versions.rs"), source).unwrap();
}

fn locked_version(lock: &str, name: &str) -> String {
    let start = lock
        .find(&format!("name = \"{name}\"\nversion = \""))
        .unwrap_or_else(|| panic!("Cargo.lock does not name {name}"));
    lock[start..].split('"').nth(3).unwrap_or_default().to_owned()
}

fn rustc_version() -> String {
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let output = Command::new(rustc).arg("--version").output().expect("rustc runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().nth(1).unwrap_or_default().to_owned()
}
