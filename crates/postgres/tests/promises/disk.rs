//! A disk that fills up under the database, and is freed again.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tally_core::command::{Batch, Command as Does};
use tally_core::relation;
use tally_engine::{Engine, Failure};
use tally_testing::{Folder, Postgres};

use crate::support::{Outsider, Store, relate, unavailable, until, with_schema};

/// A small file system in memory that belongs to the database. Mounting it takes a privileged user.
struct SmallDisk {
    path: PathBuf,
    _folder: Folder,
}

impl SmallDisk {
    fn for_owner_of(data: &Path, bytes: u64) -> Self {
        let folder = Folder::in_memory("small-disk").unwrap();
        let path = folder.path().join("disk");
        fs::create_dir(&path).unwrap();
        // The database has to find its way in.
        fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let owner = fs::metadata(data).unwrap();
        let options = format!("size={bytes},mode=0700,uid={},gid={}", owner.uid(), owner.gid());
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&path).status();
        assert!(mounted.unwrap().success(), "mounting a tmpfs takes a privileged user");
        // A tablespace wants a folder with nothing in it, and the filler needs a place.
        fs::create_dir(path.join("tables")).unwrap();
        std::os::unix::fs::chown(path.join("tables"), Some(owner.uid()), Some(owner.gid())).unwrap();
        Self { path, _folder: folder }
    }

    /// Takes every byte that is left.
    fn fill(&self) {
        let mut filler = fs::File::create(self.path.join("filler")).unwrap();
        while filler.write_all(&[1; 4096]).is_ok() {}
    }

    fn free(&self) {
        fs::remove_file(self.path.join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("--lazy").arg(&self.path).status();
        assert!(unmounted.is_ok_and(|status| status.success()) || std::thread::panicking());
    }
}

/// Likes with so much said that they fill a disk soon.
async fn like_at_length(store: &Store, round: usize) -> Result<(), Failure> {
    let meta = serde_json::json!({"text": "x".repeat(1_500)});
    let meta = Some(Arc::new(meta.as_object().unwrap().clone()));
    let commands = (0..50).map(|n| {
        let mut like = relate("like", "post:1", &format!("fan-{round}-{n}"));
        if let Does::Relation(relation::Command::Relate(like)) = &mut like {
            like.meta = meta.clone();
        }
        like
    });
    store.apply(Does::from(Batch { atomic: true, commands: commands.collect() })).await.map(|_| ())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_writes_serves_reads_and_recovers_by_itself() {
    let postgres = Postgres::start(Default::default()).unwrap();
    let plain = with_schema(&postgres.url(), "");
    let outside = Outsider::of(&plain).await;
    let data = outside.0.query_one("SELECT current_setting('data_directory')", &[]).await.unwrap();
    let disk = SmallDisk::for_owner_of(Path::new(data.get::<_, &str>(0)), 16 << 20);
    outside.run(&format!("CREATE TABLESPACE small LOCATION '{}'", disk.path.join("tables").display())).await;
    let store = Store::open(&format!("{plain}&options=-c%20default_tablespace%3Dsmall")).await;
    store.like("post:2", "alice").await.unwrap();

    let mut round = 0;
    for _ in 0..2 {
        disk.fill();
        // Pages that the tables have already still take some.
        let refused = loop {
            match like_at_length(&store, round).await {
                Ok(()) => round += 1,
                refused => break refused,
            }
            assert!(round < 500, "the disk never filled up");
        };
        let why = unavailable(refused);
        assert!(why.contains("its disk is full"), "{why}");
        let likes = i64::try_from(round * 50).unwrap();
        assert_eq!(store.count("post:1").await.unwrap(), likes, "refused is not there");
        assert_eq!(store.count("post:2").await.unwrap(), 1);
        store.engine.ping().await.unwrap();
        disk.free();
        until("writes are taken again", async || like_at_length(&store, round).await.ok()).await;
        round += 1;
    }
    assert_eq!(store.assert_sound().await, round as u64 * 50 + 1);
    store.stop().await.close().await;
    drop(postgres);
}
