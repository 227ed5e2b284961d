//! What comes late or twice: scripts that the network held back, and delivers when everything is over.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use tally_conformance::network::Stopping;
use tally_core::command::{Batch, Command, Forget};
use tally_core::reply::Reply;
use tally_core::rows::{CountKey, TotalKey};
use tally_core::view::Wants;
use tally_core::{KeyId, SubjectId};
use tally_engine::{Engine, Finding, Range};
use tally_testing::{Cluster, ClusterOptions};

use crate::support::{Store, blocking, count, counted, engine, name, relate, unrelate, until};

/// Everything that a node is asked from now on, as `MONITOR` tells it.
pub(crate) struct Heard(Arc<Mutex<Vec<Vec<String>>>>);

impl Heard {
    pub(crate) fn at(address: std::net::SocketAddr) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"MONITOR\r\n").unwrap();
        let mut lines = BufReader::new(stream).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "+OK");
        let heard = Arc::new(Mutex::new(Vec::new()));
        let told = heard.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                told.lock().unwrap().push(words(&line));
            }
        });
        Self(heard)
    }

    /// What ran the script of commits in this mode, if anybody did.
    pub(crate) fn commits(&self, mode: &str) -> Vec<Vec<String>> {
        let is_it = |words: &&Vec<String>| {
            words.first().is_some_and(|it| it.starts_with("EVAL")) && {
                let keys: usize = words[2].parse().unwrap();
                words.get(3 + keys).is_some_and(|word| word == mode)
            }
        };
        // A script that the node did not know was sent twice.
        let mut found: Vec<Vec<String>> = Vec::new();
        for words in self.0.lock().unwrap().iter().filter(is_it) {
            found.retain(|before| before[2..] != words[2..]);
            found.push(words.clone());
        }
        found
    }
}

/// The words of a line of `MONITOR`.
fn words(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = line.split_once(']').map_or("", |(_, rest)| rest).chars();
    while rest.any(|char| char == '"') {
        let mut word = String::new();
        while let Some(char) = rest.next() {
            match char {
                '"' => break,
                '\\' => match rest.next().unwrap() {
                    'x' => {
                        let code: String = rest.by_ref().take(2).collect();
                        word.push(u8::from_str_radix(&code, 16).unwrap() as char);
                    }
                    'n' => word.push('\n'),
                    'r' => word.push('\r'),
                    't' => word.push('\t'),
                    other => word.push(other),
                },
                char => word.push(char),
            }
        }
        found.push(word);
    }
    found
}

pub(crate) fn send(cluster: &Cluster, node: usize, words: &[String]) -> String {
    cluster.node(node).ask(&words.iter().map(String::as_str).collect::<Vec<_>>()).unwrap()
}

pub(crate) fn open_keys(cluster: &Cluster) -> usize {
    let count = |node: usize| cluster.node(node).ask(&["KEYS", "tally:w:*"]).unwrap().lines().count();
    (0..3).map(count).sum()
}

async fn values(store: &Store, keys: &[&str]) -> Vec<i64> {
    let total = |key: &&str| TotalKey::Counter(CountKey { name: name("views"), key: KeyId::new(key).unwrap() });
    store.engine.load(&Wants::totals(keys.iter().map(total).collect())).await.unwrap().totals
}

#[tokio::test(flavor = "multi_thread")]
async fn what_arrives_when_all_is_over_does_nothing() {
    let options = ClusterOptions { node_timeout_ms: 30_000, ..ClusterOptions::default() };
    let cluster = blocking(|| Cluster::start(options)).unwrap();
    let store = Store::open(&cluster.url()).await;
    let heard: Vec<Heard> = (0..3).map(|node| Heard::at(cluster.node(node).address())).collect();
    let keys = ["one", "two", "three", "four"];
    let commands = keys.map(|key| count(key, 5)).to_vec();
    let batch = Command::from(Batch { atomic: true, commands });
    let Reply::Batch(told) = store.apply(batch).await.unwrap() else { panic!("a batch answers with one") };
    assert!(told.iter().all(|told| counted(told.as_ref().unwrap()) == 5), "{told:?}");
    // Three slots prepared, and one committed.
    let all = |mode| {
        heard
            .iter()
            .enumerate()
            .flat_map(move |(node, heard)| heard.commits(mode).into_iter().map(move |words| (node, words)))
    };
    until("everything was heard", async || (all("prepare").count() == 3 && all("commit").count() == 1).then_some(()))
        .await;
    let (prepares, commits): (Vec<_>, Vec<_>) = (all("prepare").collect(), all("commit").collect());
    for again in 0..2 {
        for (node, words) in &prepares {
            assert_eq!(send(&cluster, *node, words), "cancelled", "{again}: a share that comes late is not taken");
        }
        for (node, words) in &commits {
            // The first time it tells what it told; when this server has gone on and the record has expired, it is over.
            if again == 1 {
                cluster.node(*node).ask(&["DEL", &words[5]]).unwrap();
            }
            let answer = send(&cluster, *node, words);
            assert_eq!(answer, if again == 0 { "done\n0\n5" } else { "cancelled" });
        }
        assert_eq!(open_keys(&cluster), 0);
        let more = if again == 0 { 5 } else { 6 };
        assert_eq!(values(&store, &keys).await, [more; 4]);
        for key in keys.iter().filter(|_| again == 0) {
            assert_eq!(counted(&store.apply(count(key, 1)).await.unwrap()), 6);
        }
    }
}

/// Numbers that are told belong to one commit until it is finished.
#[tokio::test(flavor = "multi_thread")]
async fn a_share_that_is_open_keeps_others_from_its_numbers_and_is_let_go() {
    let options = ClusterOptions { node_timeout_ms: 30_000, ..ClusterOptions::default() };
    let cluster = blocking(|| Cluster::start(options)).unwrap();
    let store = Store::open(&cluster.url()).await;
    let heard: Vec<Heard> = (0..3).map(|node| Heard::at(cluster.node(node).address())).collect();
    let commands = ["one", "two"].map(|key| count(key, 5)).to_vec();
    store.apply(Command::from(Batch { atomic: true, commands })).await.unwrap();
    let prepared = until("a share was heard", async || {
        heard.iter().enumerate().find_map(|(node, heard)| Some((node, heard.commits("prepare").pop()?)))
    });
    let (node, words) = prepared.await;
    // The same from a server that died right after.
    let dead: Vec<String> = words.iter().map(|word| dead_server(word, &words)).collect();
    assert_eq!(send(&cluster, node, &dead), "done\n0\n5");
    assert_eq!(open_keys(&cluster), 1);
    for key in ["one", "two"] {
        assert_eq!(counted(&store.apply(count(key, 1)).await.unwrap()), 6);
    }
    assert_eq!(open_keys(&cluster), 0);
    assert_eq!(values(&store, &["one", "two"]).await, [6, 6]);
}

/// Another server's name in place of the one in these words.
pub(crate) fn dead_server(word: &str, words: &[String]) -> String {
    let keys: usize = words[2].parse().unwrap();
    let server = words[4 + keys].rsplit_once('-').unwrap().0;
    word.replace(server, "dead")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_found_though_its_server_died_before_it_was_listed() {
    let options = ClusterOptions { node_timeout_ms: 30_000, ..ClusterOptions::default() };
    let cluster = blocking(|| Cluster::start(options)).unwrap();
    let store = Store::open(&cluster.url()).await;
    let forget = Command::from(Forget { subject: SubjectId::new("alice").unwrap() });
    store.apply(forget).await.unwrap();
    let jobs = store.engine.scan(&Range::OPEN_JOBS, 10).await.unwrap().items;
    assert_eq!(jobs.len(), 1);
    let at = |key: &str| cluster.node(cluster.master_of_slot(cluster.slot_of(key).unwrap()).unwrap());
    let ask = |key: &str, words: &[&str]| blocking(|| at(key).ask(words)).unwrap();
    let hash = "tally:job:{sys}";
    let slot = cluster.slot_of(hash).unwrap();
    let tag = (0_u64..).map(|number| format!("{number:x}")).find(|tag| cluster.slot_of(tag).unwrap() == slot).unwrap();
    let open = &format!("tally:due:{{{tag}}}:job");
    let id = ask(hash, &["HKEYS", hash]);
    let row = ask(hash, &["HGET", hash, &id]);
    ask(hash, &["HDEL", hash, &id]);
    ask(hash, &["ZREM", open, &id]);
    assert_eq!(store.engine.scan(&Range::OPEN_JOBS, 10).await.unwrap().items, []);
    // As it is between the commit and its end: the record says that it was done, and the slot has its share aside.
    let (share, ring, record) = (format!("tally:w:{{{tag}}}"), format!("tally:t:{{{tag}}}:dead"), "tally:t:{0}:dead-7");
    ask(record, &["SET", record, "done"]);
    let keep = "local ops = {'H', '1', ARGV[1], ARGV[2], 'z', '2', ARGV[1], '0'}
        redis.call('HSET', KEYS[1], 'tdead-7', cmsgpack.pack({KEYS, ops, {}, {}, {}}))
        return redis.call('HSET', KEYS[1], 'rdead-7', '0 ' .. ARGV[3])";
    ask(hash, &["EVAL", keep, "4", &share, &ring, hash, open, &id, &row, record]);
    assert_eq!(store.engine.scan(&Range::OPEN_JOBS, 10).await.unwrap().items, jobs);
}

/// An unlike is done, and its server stands still before the subject's side has heard of it. Somebody likes again: whoever ends the
/// unlike then must not take that away.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_end_of_an_unlike_does_not_take_away_the_like_after_it() {
    let options = ClusterOptions { node_timeout_ms: 30_000, ..ClusterOptions::default() };
    let cluster = blocking(|| Cluster::start(options)).unwrap();
    let store = Store::open(&cluster.url()).await;
    store.apply(relate("like", "post:1", "alice")).await.unwrap();
    let heard: Vec<Heard> = (0..3).map(|node| Heard::at(cluster.node(node).address())).collect();
    store.apply(unrelate("like", "post:1", "alice")).await.unwrap();
    let prepared = until("a share was heard", async || {
        heard.iter().enumerate().find_map(|(node, heard)| Some((node, heard.commits("prepare").pop()?)))
    });
    let (node, words) = prepared.await;
    store.apply(relate("like", "post:1", "alice")).await.unwrap();

    // Another server takes it back. Its subject's side is prepared when the like after it has looked there, and it is done.
    let dead: Vec<String> = words.iter().map(|word| dead_server(word, &words)).collect();
    let record = &dead[5 + dead[2].parse::<usize>().unwrap()];
    let ask = |key: &str, words: &[&str]| {
        blocking(|| cluster.node(cluster.master_of_slot(cluster.slot_of(key).unwrap()).unwrap()).ask(words)).unwrap()
    };
    let list = "tally:o:{post:1}:like";
    assert_eq!(ask(list, &["ZREM", list, "alice"]), "1");
    let url = cluster.url();
    let stopping = Stopping::new(engine(&url));
    let liking = Store::on(stopping.clone()).await;
    let stop = stopping.arm().await;
    let like = tokio::spawn(async move { liking.like("post:1", "alice").await });
    stop.reached.await.unwrap();
    assert_eq!(send(&cluster, node, &dead), "done");
    ask(record, &["SET", record, "done"]);
    stop.go_on.send(()).unwrap();
    assert!(like.await.unwrap().unwrap().changed);
    let mut found = Vec::new();
    store.engine.audit(&mut |finding| found.push(finding)).await.unwrap();
    found.retain(|finding| !matches!(finding, Finding::Progress(_)));
    assert_eq!(found, [], "both sides say the same");
    assert_eq!(open_keys(&cluster), 0);
    assert_eq!(
        (ask(list, &["ZCARD", list]), ask("tally:s:{alice}:like", &["ZCARD", "tally:s:{alice}:like"])),
        ("1".into(), "1".into())
    );
}
