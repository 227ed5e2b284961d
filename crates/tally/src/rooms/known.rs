//! What an answer about a ticket needs beside its position. Bounded: of those that nobody asks for, the oldest go.

use std::collections::HashMap;

use tally_core::SubjectId;
use tally_core::reply::TicketReply;
use tally_core::rows::TicketState;
use tally_core::time::Timestamp;

/// Tickets of one room, in two halves.
const KNOWN_MAX: usize = 200_000;

/// A ticket that waited when it was last read.
#[derive(Clone)]
pub(super) struct Known {
    pub(super) subject: SubjectId,
    pub(super) joined_at: Timestamp,
    pub(super) since: Timestamp,
    /// When it ends by itself, unless somebody has prolonged it meanwhile. Nothing is told of it from memory after that.
    pub(super) until: Timestamp,
    /// The latest version with which it was told.
    pub(super) told: i64,
}

/// The tickets of a room by their numbers.
#[derive(Default)]
pub(super) struct Tickets {
    young: HashMap<u64, Known>,
    old: HashMap<u64, Known>,
}

impl Tickets {
    /// What is known of a ticket. It stays known for a while.
    pub(super) fn get(&mut self, seq: u64) -> Option<&mut Known> {
        if let Some(known) = self.old.remove(&seq) {
            self.put(seq, known);
        }
        self.young.get_mut(&seq)
    }

    /// Takes note of a ticket as it was read. What was told of it later than that stands.
    pub(super) fn note(&mut self, reply: &TicketReply) {
        let waits = matches!(reply.state, TicketState::BeforeOpen | TicketState::Waiting);
        let until = if waits { reply.facts.until } else { Timestamp(0) };
        if let Some(known) = self.get(reply.seq) {
            if known.told <= reply.version {
                // Whether two answers of one version came in order is not known; what is over stays over.
                let stays_over = known.told == reply.version && known.until == Timestamp(0);
                (known.until, known.told) = (if stays_over { known.until } else { until }, reply.version);
            }
            return;
        }
        let (subject, joined_at, since) = (reply.subject.clone(), reply.joined_at, reply.facts.since);
        self.put(reply.seq, Known { subject, joined_at, since, until, told: reply.version });
    }

    fn put(&mut self, seq: u64, known: Known) {
        if self.young.len() >= KNOWN_MAX / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(seq, known);
    }
}
