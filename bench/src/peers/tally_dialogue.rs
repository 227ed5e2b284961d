//! What the load generator says to Tally over HTTP.

use super::{Pick, SharedWorkload, lock};
use crate::http;
use crate::load::{Dialogue, Round};
use crate::workload::{SUBJECTS, Shape};
use anyhow::{Result, bail};
use std::io::Write;

/// One like per request: `PUT /v1/relations/like/post:N/uM`.
pub(crate) struct Likes {
    pub(crate) workload: SharedWorkload,
    pub(crate) shape: Shape,
    pub(crate) head_tail: Vec<u8>,
}

impl Dialogue for Likes {
    fn ask(&mut self, out: &mut Vec<u8>) -> Round {
        let edge = lock(&self.workload).next(self.shape);
        let line = format_args!("PUT /v1/relations/like/post:{}/u{}", edge.object, edge.subject);
        http::request(out, line, &self.head_tail);
        Round { replies: 1, operations: 1 }
    }

    fn reply(&mut self, input: &[u8]) -> Result<Option<usize>> {
        whole_success(input)
    }
}

/// Many likes per request: `POST /v1/batch` with `atomic: false`, each on its own.
pub(crate) struct Batches {
    pub(crate) next: Box<dyn FnMut() -> Option<(u32, u32)>>,
    pub(crate) relation: &'static str,
    pub(crate) size: usize,
    pub(crate) head_tail: Vec<u8>,
    body: Vec<u8>,
    rounds: u64,
}

impl Batches {
    pub(crate) fn new(
        relation: &'static str,
        size: usize,
        head_tail: &[u8],
        next: Box<dyn FnMut() -> Option<(u32, u32)>>,
    ) -> Self {
        Self { next, relation, size, head_tail: head_tail.to_vec(), body: Vec::new(), rounds: 0 }
    }
}

impl Dialogue for Batches {
    fn ask(&mut self, out: &mut Vec<u8>) -> Round {
        self.body.clear();
        self.body.extend_from_slice(b"{\"atomic\":false,\"commands\":[");
        let mut edges = 0;
        while edges < self.size {
            let Some((object, subject)) = (self.next)() else { break };
            if edges > 0 {
                self.body.push(b',');
            }
            // Writing into memory cannot fail.
            let _ = write!(
                self.body,
                "{{\"op\":\"relate\",\"relation\":\"{}\",\"object\":\"post:{object}\",\"subject\":\"u{subject}\"}}",
                self.relation
            );
            edges += 1;
        }
        self.body.extend_from_slice(b"]}");
        if edges == 0 {
            return Round { replies: 0, operations: 0 };
        }
        http::post(out, "/v1/batch", &self.head_tail, &self.body);
        Round { replies: 1, operations: edges as u64 }
    }

    fn reply(&mut self, input: &[u8]) -> Result<Option<usize>> {
        let Some(reply) = http::parse(input)? else { return Ok(None) };
        http::expect_success(&reply, input)?;
        // A refused command is a problem inside a 200. Looking at every reply would cost the client
        // what the server is measured with, so it looks at one in 32, the first among them.
        if self.rounds.is_multiple_of(32) {
            let body = String::from_utf8_lossy(&input[reply.body..reply.end]);
            if body.contains("\"code\":") {
                bail!("a command in a batch was refused: {}", body.chars().take(400).collect::<String>());
            }
        }
        self.rounds += 1;
        Ok(Some(reply.end))
    }
}

/// A feed: `POST /v1/read` for 50 objects, two relations and a viewer.
pub(crate) struct Feed {
    pub(crate) workload: SharedWorkload,
    pub(crate) objects: usize,
    pub(crate) head_tail: Vec<u8>,
    body: Vec<u8>,
}

impl Feed {
    pub(crate) fn new(workload: SharedWorkload, objects: usize, head_tail: Vec<u8>) -> Self {
        Self { workload, objects, head_tail, body: Vec::new() }
    }
}

impl Dialogue for Feed {
    fn ask(&mut self, out: &mut Vec<u8>) -> Round {
        let mut workload = lock(&self.workload);
        self.body.clear();
        let _ = write!(self.body, "{{\"viewer\":\"u{}\",\"objects\":[", workload.below(SUBJECTS));
        for index in 0..self.objects {
            let comma = if index > 0 { "," } else { "" };
            let _ = write!(self.body, "{comma}\"post:{}\"", workload.object());
        }
        let [first, second] = crate::feed::RELATIONS;
        let _ = write!(self.body, "],\"relations\":[\"{first}\",\"{second}\"]}}");
        http::post(out, "/v1/read", &self.head_tail, &self.body);
        Round { replies: 1, operations: 1 }
    }

    fn reply(&mut self, input: &[u8]) -> Result<Option<usize>> {
        whole_success(input)
    }
}

/// A GET whose path comes from `pick`.
pub(crate) struct Get {
    pub(crate) pick: Pick,
    pub(crate) head_tail: Vec<u8>,
}

impl Dialogue for Get {
    fn ask(&mut self, out: &mut Vec<u8>) -> Round {
        out.extend_from_slice(b"GET ");
        (self.pick)(out);
        http::request(out, format_args!(""), &self.head_tail);
        Round { replies: 1, operations: 1 }
    }

    fn reply(&mut self, input: &[u8]) -> Result<Option<usize>> {
        whole_success(input)
    }
}

fn whole_success(input: &[u8]) -> Result<Option<usize>> {
    let Some(reply) = http::parse(input)? else { return Ok(None) };
    http::expect_success(&reply, input)?;
    Ok(Some(reply.end))
}
