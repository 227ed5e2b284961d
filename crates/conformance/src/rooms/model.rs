//! A room as one would write it down on paper: a list of tickets, a bucket, a clock. It does not say when somebody is let in, only
//! who may be and when; and it notices if nobody is although somebody could.

use std::collections::{BTreeMap, BTreeSet};

use tally_core::room::{Mode, RoomSettings};
use tally_core::rows::TicketState::{self, Admitted, BeforeOpen, Done, Expired, Left, Ready, Waiting};

/// One that may be let in, in millionths of a thousandth: with these nothing is rounded.
const ONE: u128 = 1_000_000 * 1_000;
/// So much later than it could be, somebody is let in at the latest.
const LATE_MS: u128 = 51;

/// A ticket.
#[derive(Clone, Debug)]
pub(super) struct Paper {
    pub(super) subject: String,
    pub(super) token: Option<String>,
    pub(super) state: TicketState,
    joined: u64,
    /// When its state ends by itself.
    pub(super) ends: u64,
}

/// The room.
pub(super) struct Model {
    pub(super) now: u64,
    pub(super) settings: RoomSettings,
    pub(super) tickets: BTreeMap<u64, Paper>,
    pub(super) last: u64,
    /// The order of who came early, once it is drawn: by number.
    pub(super) drawn: BTreeMap<u64, u64>,
    pub(super) is_open: bool,
    /// Everybody who ever was let in, left, or was given up before that.
    pub(super) ever: [i64; 3],
    bucket: u128,
    bucket_at: u64,
    /// Let in by hand or past the queue since the last look: these spend nothing.
    free: BTreeSet<u64>,
}

impl Model {
    pub(super) fn new(now: u64, settings: RoomSettings) -> Self {
        let is_open = settings.opens_at.is_none_or(|at| at.0 <= now);
        let (tickets, drawn, free) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        let mut model =
            Self { now, settings, tickets, last: 0, drawn, is_open, ever: [0; 3], bucket: 0, bucket_at: now, free };
        model.bucket = model.most();
        model
    }

    /// What the bucket holds at most: as much as of one second, and one.
    fn most(&self) -> u128 {
        (u128::from(self.settings.rate_per_s.micros) * 1_000).max(ONE)
    }

    fn refill(&mut self) {
        let more = u128::from(self.settings.rate_per_s.micros) * u128::from(self.now - self.bucket_at);
        (self.bucket, self.bucket_at) = ((self.bucket + more).min(self.most()), self.now);
    }

    /// Other settings. What was saved up until now was saved up at the old rate.
    pub(super) fn put(&mut self, settings: RoomSettings) {
        self.refill();
        self.settings = settings;
        self.bucket = self.bucket.min(self.most());
    }

    /// Where a ticket stands: who came early in the order that was drawn, then everybody by arrival.
    fn place(&self, seq: u64) -> u64 {
        self.drawn.get(&seq).copied().unwrap_or(seq)
    }

    /// Who waits, in order.
    pub(super) fn queue(&self) -> Vec<u64> {
        let waiting = self.tickets.iter().filter(|(_, ticket)| ticket.state == Waiting).map(|(seq, _)| *seq);
        let mut queue: Vec<u64> = waiting.collect();
        queue.sort_by_key(|seq| self.place(*seq));
        queue
    }

    pub(super) fn count(&self, is: impl Fn(TicketState) -> bool) -> u64 {
        self.tickets.values().filter(|ticket| is(ticket.state)).count() as u64
    }

    fn inside(&self) -> u64 {
        self.count(|state| matches!(state, Ready | Admitted))
    }

    /// The ticket that a join gets that is no new one.
    pub(super) fn known(&self, who: &str, token: Option<&str>) -> Option<u64> {
        let of = |ticket: &&Paper| ticket.subject == who;
        let named = |ticket: &&Paper| of(ticket) && token.is_some() && ticket.token.as_deref() == token;
        let live = |ticket: &&Paper| of(ticket) && !is_over(ticket.state) && ticket.ends > self.now;
        let find = |is: &dyn Fn(&&Paper) -> bool| {
            self.tickets.iter().rev().find(|(_, ticket)| is(ticket)).map(|(seq, _)| *seq)
        };
        find(&named).or_else(|| find(&live).filter(|_| self.settings.one_ticket_per_subject))
    }

    /// Whether somebody new may join.
    pub(super) fn takes_joins(&self) -> bool {
        let is_closed = self.settings.closes_at.is_some_and(|at| at.0 <= self.now);
        !is_closed && matches!(self.settings.mode, Mode::Auto | Mode::Hold | Mode::Off)
    }

    /// Somebody new has a ticket.
    pub(super) fn join(&mut self, who: &str, token: Option<&str>) -> u64 {
        self.last += 1;
        let ends = self.now + self.settings.idle_ttl_ms.min(self.settings.ticket_ttl_ms);
        let (subject, token, state) = (who.to_owned(), token.map(str::to_owned), self.first_state());
        self.tickets.insert(self.last, Paper { subject, token, state, joined: self.now, ends });
        self.last
    }

    fn first_state(&self) -> TicketState {
        if self.is_open { Waiting } else { BeforeOpen }
    }

    /// Somebody is there still. Written only when half of the time is over.
    pub(super) fn beat(&mut self, seq: u64) {
        let (now, settings) = (self.now, &self.settings);
        let Some(ticket) = self.tickets.get_mut(&seq) else { return };
        let (ttl, until) = match ticket.state {
            Waiting | BeforeOpen => {
                (settings.idle_ttl_ms, (now + settings.idle_ttl_ms).min(ticket.joined + settings.ticket_ttl_ms))
            }
            Admitted if settings.renewable => (settings.admission_ttl_ms, now + settings.admission_ttl_ms),
            Admitted | Ready | Done | Left | Expired => return,
        };
        if ticket.ends > now && until >= ticket.ends + ttl / 2 {
            ticket.ends = until;
        }
    }

    /// A ticket is taken to another state by its holder.
    pub(super) fn turn(&mut self, seq: u64, to: TicketState) {
        let (now, ends) = (self.now, self.now + self.ttl(to));
        let Some(ticket) = self.tickets.get_mut(&seq) else { return };
        let was_before = !matches!(ticket.state, Admitted);
        (ticket.state, ticket.ends) = (to, ends);
        match to {
            Ready => self.ever[0] += 1,
            Left => self.ever[1] += 1,
            Expired if was_before => self.ever[2] += 1,
            Expired | Admitted | Done | Waiting | BeforeOpen => {}
        }
        self.now = now;
    }

    fn ttl(&self, state: TicketState) -> u64 {
        match state {
            Ready => self.settings.claim_ttl_ms,
            Admitted => self.settings.admission_ttl_ms,
            Waiting | BeforeOpen => self.settings.idle_ttl_ms,
            Done | Left | Expired => self.settings.dedupe_ttl_ms,
        }
    }

    /// The next one that is let in need not be paid for.
    pub(super) fn by_hand(&mut self, seqs: impl IntoIterator<Item = u64>) {
        self.free.extend(seqs);
    }

    /// Takes in what has become of tickets since the last look, and says what is wrong with it. By now all that is due is done, or
    /// some of it is not.
    pub(super) fn look(&mut self, found: &BTreeMap<u64, TicketState>, is_settled: bool) -> Result<(), String> {
        self.refill();
        let queue = self.queue();
        let seqs: Vec<u64> = self.tickets.keys().copied().collect();
        // Whoever is let in has to be first among those who waited.
        let mut ready: Vec<u64> = Vec::new();
        for seq in seqs {
            let ticket = &self.tickets[&seq];
            let (is_late, was, is) = (ticket.ends <= self.now, ticket.state, found.get(&seq).copied());
            match is {
                None if is_over(was) && is_late => _ = self.tickets.remove(&seq),
                Some(is) if is == was && (!is_late || !is_settled) => {}
                Some(Expired) if is_late && !is_over(was) => self.turn(seq, Expired),
                Some(Ready) if matches!(was, Waiting | BeforeOpen) && !is_late => {
                    ready.push(seq);
                    self.turn(seq, Ready);
                }
                Some(Waiting) if was == BeforeOpen && self.is_open => {
                    if let Some(ticket) = self.tickets.get_mut(&seq) {
                        ticket.state = Waiting;
                    }
                }
                is => {
                    return Err(format!(
                        "ticket {seq} was {was:?} until {} and is {is:?} at {}",
                        ticket.ends, self.now
                    ));
                }
            }
        }
        if let Some(seq) = found.keys().find(|seq| !self.tickets.contains_key(*seq)) {
            return Err(format!("nobody took ticket {seq}"));
        }
        self.let_in(&queue, ready)?;
        if is_settled { self.nobody_is_forgotten() } else { Ok(()) }
    }

    /// Holds who was let in to the order, the capacity and the rate.
    fn let_in(&mut self, queue: &[u64], ready: Vec<u64>) -> Result<(), String> {
        let paid: Vec<u64> = ready.iter().copied().filter(|seq| !self.free.remove(seq)).collect();
        let waits: Vec<u64> = self.queue();
        for seq in &paid {
            let ahead = waits.iter().find(|other| self.place(**other) < self.place(*seq) && queue.contains(other));
            if let Some(other) = ahead {
                return Err(format!("{seq} was let in before {other}"));
            }
        }
        if ready.is_empty() || self.settings.mode == Mode::Off {
            return Ok(());
        }
        if self.inside() > self.settings.capacity {
            return Err(format!("{} are inside, and there is place for {}", self.inside(), self.settings.capacity));
        }
        if !paid.is_empty() && !(self.is_open && matches!(self.settings.mode, Mode::Auto | Mode::Drain)) {
            return Err(format!("{paid:?} were let in although nobody is"));
        }
        let cost = ONE * paid.len() as u128;
        let has = self.bucket;
        self.bucket =
            has.checked_sub(cost).ok_or_else(|| format!("{paid:?} were let in, and there were {has} for them"))?;
        Ok(())
    }

    /// Nobody waits for long who could be let in.
    fn nobody_is_forgotten(&self) -> Result<(), String> {
        let waits = self.queue().len();
        let late = ONE + u128::from(self.settings.rate_per_s.micros) * LATE_MS;
        let could = match self.settings.mode {
            Mode::Auto | Mode::Drain => self.bucket >= late.min(self.most()) && self.inside() < self.settings.capacity,
            Mode::Hold | Mode::Reject => false,
            Mode::Off => false,
        };
        let early = self.count(|state| state == BeforeOpen);
        match self.is_open {
            true if early > 0 => Err(format!("{early} came early and do not stand in the queue")),
            true if waits > 0 && could => Err(format!("{waits} wait, with {} in the bucket", self.bucket)),
            true | false => Ok(()),
        }
    }

    /// Somebody is forgotten, with all tickets.
    pub(super) fn forget(&mut self, who: &str) {
        self.tickets.retain(|_, ticket| ticket.subject != who);
    }
}

/// Whether a ticket is over.
pub(super) fn is_over(state: TicketState) -> bool {
    matches!(state, Done | Left | Expired)
}
