//! A test in Rust: cargo test. It needs actorlet and kubectl in PATH, or in ACTORLET and KUBECTL.
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

fn program(variable: &str, name: &str) -> String {
    env::var(variable).unwrap_or_else(|_| name.to_string())
}

/// Ends when it goes out of scope.
struct Fleet {
    child: Child,
    kubeconfig: String,
}

impl Fleet {
    /// Returns when all nodes are Ready.
    fn start(file: &str) -> Fleet {
        // Descriptor 1 is standard output: its first line is the one that says that the fleet is ready.
        let mut child = Command::new(program("ACTORLET", "actorlet"))
            .args(["fleet", file, "--api", "local", "--ready-fd", "1", "--socket", ""])
            .stdout(Stdio::piped())
            .spawn()
            .expect("actorlet runs");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        // Of the line of JSON one text is needed: a crate such as serde_json reads the rest.
        let kubeconfig = line.split("\"kubeconfig\":\"").nth(1).and_then(|rest| rest.split('"').next());
        let kubeconfig = kubeconfig.expect("the fleet did not become ready: its standard error says why").to_string();
        Fleet { child, kubeconfig }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        let _ = self.child.wait();
    }
}

#[test]
fn a_website_is_refused_without_replicas() {
    let fleet = Fleet::start("../fleet.yaml");
    let mut kubectl = Command::new(program("KUBECTL", "kubectl"))
        .args(["--kubeconfig", &fleet.kubeconfig, "create", "-f", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("kubectl runs");
    let website = r#"{"apiVersion": "example.com/v1", "kind": "Website", "metadata": {"name": "x"}, "spec": {}}"#;
    kubectl.stdin.take().unwrap().write_all(website.as_bytes()).unwrap();
    let said = kubectl.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&said.stderr).contains("spec.replicas: Required value"));
}
