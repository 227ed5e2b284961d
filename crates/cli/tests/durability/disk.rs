//! A disk that fills up, and is freed again.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::support::*;

/// A small file system in memory. Mounting it takes a privileged user.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn new(bytes: u64) -> Self {
        let folder = TempDir::new().unwrap();
        let size = format!("size={bytes}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()).status();
        assert!(mounted.unwrap().success(), "mounting a tmpfs takes a privileged user");
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Takes every byte that is left.
    fn fill(&self) {
        let mut filler = fs::File::create(self.path().join("filler")).unwrap();
        while filler.write_all(&[1; 4096]).is_ok() {}
    }

    fn free(&self) {
        fs::remove_file(self.path().join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("--lazy").arg(self.path()).status();
        assert!(unmounted.is_ok_and(|status| status.success()) || std::thread::panicking());
    }
}

/// Likes with so much said that they fill a disk soon. `None` when refused.
async fn like_at_length(client: &Client, round: usize) -> Option<Answer> {
    let commands: Vec<Value> = (0..50)
        .map(|n| {
            let meta = json!({"text": "x".repeat(12_000)});
            json!({"op": "relate", "relation": "like", "object": "post:1", "subject": format!("fan-{round}-{n}"), "meta": meta})
        })
        .collect();
    let answer = client.post("/v1/batch").json(&json!({"commands": commands})).send().await;
    if answer.status == 200 {
        return Some(answer);
    }
    answer.problem(503, "store_unavailable");
    assert!(answer.header("retry-after").is_some());
    for internal in ["/", "os error", "No space", "log", "segment"] {
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(!detail.contains(internal), "a 5xx tells nothing of the inside: {detail}");
    }
    None
}

#[tokio::test]
async fn a_full_disk_refuses_writes_serves_reads_and_recovers_by_itself() {
    let disk = SmallDisk::new(40 << 20);
    let store = disk.path().join("store");
    let mut server = Server::start_with("", &[], Some(&store)).await;
    let client = server.client();
    client.like("post:2", "alice").await;
    let mut round = 0;
    for refill in 0..2 {
        disk.fill();
        // What was set aside beforehand still takes some.
        while like_at_length(&client, round).await.is_some() {
            round += 1;
            assert!(round < 200, "the disk never filled up");
        }
        assert_eq!(client.count("like", "post:1").await, round as i64 * 50, "refused is not there");
        assert_eq!(client.count("like", "post:2").await, 1);
        assert_eq!(client.subjects("like", "post:2").await, ["alice"]);
        assert_eq!(client.get(&edge("like", "post:2", "alice")).ok().await["active"], true);
        let feed = client.post("/v1/read").json(&json!({"objects": ["post:2"], "relations": ["like"]})).ok().await;
        assert_eq!(feed["items"][0]["relations"]["like"]["count"], 1);
        client.get("/readyz").problem(503, "store_unavailable").await;
        client.get("/healthz").ok().await;
        disk.free();
        until("writes are taken again", async || like_at_length(&client, round).await).await;
        round += 1;
        until("the server is ready again", async || (client.get("/readyz").send().await.status == 200).then_some(()))
            .await;
        assert_eq!(client.count("like", "post:1").await, round as i64 * 50, "after refill {refill}");
    }
    let answered = round as u64 * 50 + 1;
    assert_eq!(client.verified().await, answered);
    server.kill();
    server.restart().await;
    assert_eq!(server.client().verified().await, answered);
    server.stop().await;
}
