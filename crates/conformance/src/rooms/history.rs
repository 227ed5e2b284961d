//! A random history of a room, next to the model: after every step, and after everything that was due in between, each row, each
//! total, each position and the order agree with it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tally_core::command::Forget;
use tally_core::room::rows::{Phase, RoomCount, log, queue};
use tally_core::room::{Mode, RoomSettings, shuffle};
use tally_core::rows::TicketState::{self, Admitted, BeforeOpen, Ready, Waiting};
use tally_core::rows::{GoneKey, Key, OrderKey, Row, Seq, SequenceKey};
use tally_core::view::Wants;
use tally_core::{Code, Command};
use tally_engine::{Engine, OrderFrom, Range};

use super::act::Act;
use super::hall::{Hall, START_MS, sale};
use super::model::{Model, is_over};
use crate::joins::ticket_key;
use crate::random::Random;
use crate::sample::subject;

const PEOPLE: usize = 7;
const FIRST: usize = 12;
const MODES: [&str; 9] = ["auto", "auto", "auto", "auto", "auto", "hold", "drain", "off", "reject"];
const TOKENS: [Option<&str>; 4] = [None, None, Some("a"), Some("b")];
const PAUSES_MS: [u64; 8] = [1, 20, 60, 300, 900, 2_500, 9_000, 70_000];

/// A room that is tried at random.
pub(super) struct History<'a, E> {
    hall: Hall<'a, E>,
    model: Model,
    random: Random,
    settings: Value,
    /// What each ticket is called.
    names: BTreeMap<u64, String>,
    /// Places that were given up, as far as the room's log was read.
    gone: BTreeSet<u64>,
    log: u64,
    version: i64,
    /// Who waited at the last look.
    queue: Vec<u64>,
    said: String,
}

/// What one look at the store shows.
struct Shown {
    phase: Option<Phase>,
    passed: u64,
    states: BTreeMap<u64, TicketState>,
    totals: Vec<i64>,
}

impl<'a, E: Engine> History<'a, E> {
    pub(super) async fn new(engine: &'a E, seed: u64, settings: Value) -> Self {
        let hall = Hall::new(engine, settings.clone()).await;
        let model = Model::new(hall.now, read(&settings));
        let (names, gone, queue) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        let said = format!("seed {seed}, {settings}");
        Self { hall, model, random: Random(seed), settings, names, gone, log: 0, version: 0, queue, said }
    }

    pub(super) async fn run(mut self, steps: usize) {
        for number in 0..steps {
            // Somebody has to be there first.
            let comes = number < FIRST && self.random.percent(70);
            let what = if comes { self.join().await } else { self.step().await };
            self.said = format!("{}\n{number} at {}: {what}", self.said, self.hall.now - START_MS);
            self.check(false).await;
            // The worker is not always there at once.
            if self.random.percent(60) {
                self.settle(0).await;
            }
            self.positions().await;
        }
        assert!(self.model.last >= 4, "a history in which nobody joins proves little: {}", self.said);
    }

    /// Any of them, with a leaning to those who are not through yet.
    fn any(&mut self) -> Option<u64> {
        let live: Vec<u64> =
            self.model.tickets.iter().filter(|(_, ticket)| !is_over(ticket.state)).map(|(seq, _)| *seq).collect();
        let all: Vec<u64> = self.names.keys().copied().collect();
        let from = if self.random.percent(85) && !live.is_empty() { live } else { all };
        (!from.is_empty()).then(|| *self.random.pick(&from))
    }

    async fn step(&mut self) -> String {
        match self.random.below(100) {
            0..=33 => self.join().await,
            34..=41 => self.hold(Act::Beat).await,
            42..=49 => self.hold(Act::Leave).await,
            50..=62 => self.hold(Act::Claim).await,
            63..=70 => self.hold(Act::Finish).await,
            71..=74 => self.admit().await,
            75..=79 => self.put().await,
            80..=81 => self.forget().await,
            82 => self.delete().await,
            _ => {
                let pause = *self.random.pick(&PAUSES_MS);
                self.settle(pause).await;
                format!("{pause} ms")
            }
        }
    }

    async fn join(&mut self) -> String {
        let who = format!("s{}", self.random.below(PEOPLE));
        let token = *self.random.pick(&TOKENS);
        let (known, may) = (self.model.known(&who, token), self.model.takes_joins());
        let joined = self.hall.join(&who, token).await;
        let said = format!("{who} joins as {token:?}: {joined:?}");
        let ticket = match (joined, known) {
            (Ok(ticket), Some(seq)) => {
                assert_eq!(Some(&ticket.ticket), self.names.get(&seq), "the same ticket; {said}\n{}", self.said);
                ticket
            }
            (Ok(ticket), None) => {
                assert!(may, "nobody joins; {said}\n{}", self.said);
                assert_eq!(ticket.seq, self.model.join(&who, token), "{said}\n{}", self.said);
                self.names.insert(ticket.seq, ticket.ticket.clone());
                ticket
            }
            (Err(refusal), None) if !may => {
                assert_eq!(refusal.code(), Code::RoomClosed, "{said}");
                return said;
            }
            (Err(_), _) => panic!("{said}\n{}", self.said),
        };
        if self.model.settings.mode == Mode::Off {
            // Whoever goes straight in spends nothing.
            self.model.by_hand([ticket.seq]);
        }
        self.check(false).await;
        self.same_position(&ticket, "at its commit");
        if ticket.facts.goes_straight_in {
            self.hall.usher(ticket.seq).await.expect("the ticket is there");
        }
        said
    }

    async fn hold(&mut self, act: Act) -> String {
        let Some(seq) = self.any() else { return String::new() };
        let name = self.names[&seq].clone();
        let was = self.model.tickets.get(&seq).map(|ticket| ticket.state);
        let answer = match act {
            Act::Beat => self.hall.beat(&name).await,
            Act::Leave => self.hall.leave(&name).await,
            Act::Claim => self.hall.claim(&name).await,
            Act::Finish => self.hall.finish(&name).await,
        };
        let said = format!("{act:?} of {seq}, which is {was:?}: {answer:?}");
        let expected = was.map_or(Err(Code::TicketNotFound), |was| act.on(was));
        let found = answer.as_ref().map(|ticket| ticket.state).map_err(|refusal| refusal.code());
        assert_eq!(found, expected, "{said}\n{}", self.said);
        match (expected, was) {
            (Ok(_), Some(_)) if act == Act::Beat => self.model.beat(seq),
            (Ok(to), Some(was)) if to != was => self.model.turn(seq, to),
            _ => {}
        }
        if let Ok(ticket) = &answer {
            self.check(false).await;
            self.same_position(ticket, "as it is answered");
        }
        said
    }

    async fn admit(&mut self) -> String {
        let count = 1 + self.random.below(3) as u32;
        let mode = self.model.settings.mode;
        if !self.model.is_open {
            return String::new();
        }
        let inside = self.model.count(|state| matches!(state, Ready | Admitted));
        let left = self.model.settings.capacity.saturating_sub(inside);
        let first: Vec<u64> = self.model.queue().into_iter().take(left.min(u64::from(count)) as usize).collect();
        let admitted = self.hall.admit(count).await;
        let said = format!("{count} by hand: {admitted:?}");
        match (admitted, mode) {
            (Ok(admitted), Mode::Auto | Mode::Hold | Mode::Drain) => {
                assert_eq!(admitted.admitted, first.len() as u64, "{said}\n{}", self.said);
            }
            (Err(refusal), Mode::Off | Mode::Reject) => assert_eq!(refusal.code(), Code::Conflict, "{said}"),
            (_, mode) => panic!("{said} with {mode:?}\n{}", self.said),
        }
        if !matches!(mode, Mode::Off | Mode::Reject) {
            self.model.by_hand(first);
        }
        said
    }

    async fn put(&mut self) -> String {
        let settings = &mut self.settings;
        match self.random.below(3) {
            0 => settings["mode"] = json!(self.random.pick(&MODES)),
            1 => settings["rate_per_s"] = json!(self.random.pick(&[0.5, 1.0, 2.5, 40.0])),
            _ => settings["capacity"] = json!(1 + self.random.below(5)),
        }
        self.model.put(read(settings));
        let settings = settings.clone();
        self.hall.put(settings.clone()).await.expect("these can be set");
        settings.to_string()
    }

    async fn forget(&mut self) -> String {
        let who = format!("s{}", self.random.below(PEOPLE));
        self.hall.run(Command::from(Forget { subject: subject(&who) })).await.expect("anybody can be forgotten");
        self.model.forget(&who);
        format!("{who} is forgotten")
    }

    async fn delete(&mut self) -> String {
        self.hall.delete().await.expect("a room can be deleted");
        self.hall.wait(0).await;
        self.hall.put(self.settings.clone()).await.expect("a room can be made");
        let (last, ever) = (self.model.last, self.model.ever);
        self.model = Model::new(self.hall.now, read(&self.settings));
        (self.model.last, self.model.ever) = (last, ever);
        self.gone.clear();
        "deleted, and made again".into()
    }

    /// Lets time pass, with a look after everything that is due meanwhile.
    async fn settle(&mut self, pause_ms: u64) {
        let until = self.hall.now + pause_ms;
        for step in 0.. {
            let Some(key) = self.hall.step(until).await else { break };
            assert!(step < 2_000, "{key:?} is due again and again at {}; {}", self.hall.now, self.said);
            self.check(false).await;
        }
        self.hall.now = until;
        self.check(true).await;
    }

    /// What is in the store.
    async fn shown(&mut self) -> Shown {
        let last = self.model.last;
        let mut rows = vec![Key::Room(sale()), Key::Gate(sale()), queue(&sale()).key(), log(&sale()).key()];
        rows.extend((1..=last + 1).map(|seq| ticket_key("sale", Seq::Given(seq))));
        let totals = RoomCount::ALL.map(|count| count.of(&sale())).to_vec();
        let found = self.hall.engine.load(&Wants { rows, totals, ..Wants::default() }).await.expect("a load works");
        let room = found.rows[0].clone().and_then(Row::into_room);
        let gate = found.rows[1].clone().and_then(Row::into_gate);
        assert_eq!(SequenceKey::last(found.rows[2].as_ref()), last, "numbers are dense; {}", self.said);
        let (from, to) = (self.log + 1, SequenceKey::last(found.rows[3].as_ref()));
        let gone = |number| Key::Gone(GoneKey { room: sale(), number: Seq::Given(number) });
        let logged = self.hall.engine.load(&Wants::rows((from..=to).map(gone).collect())).await;
        for row in logged.expect("a load works").rows {
            let row = row.and_then(Row::into_gone).unwrap_or_else(|| panic!("the log has a hole; {}", self.said));
            self.gone.extend(row.places);
        }
        self.log = to;
        let phase = room.as_ref().map(|room| room.phase);
        let is_before = phase == Some(Phase::Before);
        let state = |row: Row| row.into_ticket().map(|ticket| ticket.state);
        let as_told = |state| if is_before && state == Waiting { BeforeOpen } else { state };
        let states = (1..).zip(found.rows.into_iter().skip(4));
        let states = states.filter_map(|(seq, row)| Some((seq, as_told(state(row?)?)))).collect();
        let passed = gate.map_or(0, |gate| gate.passed.given(0));
        Shown { phase, passed, states, totals: found.totals }
    }

    /// Compares all of it.
    async fn check(&mut self, is_settled: bool) {
        self.model.now = self.hall.now;
        let shown = self.shown().await;
        if !self.model.is_open && shown.phase != Some(Phase::Before) {
            self.open();
        }
        let looked = self.model.look(&shown.states, is_settled);
        assert_eq!(looked, Ok(()), "at {}\n{}", self.hall.now - START_MS, self.said);
        let count = |is: fn(TicketState) -> bool| self.model.count(is) as i64;
        let [admitted, left, expired] = self.model.ever;
        let inside = count(|state| matches!(state, Ready | Admitted));
        let version = shown.totals[2];
        let expected = [inside, count(|state| state == Ready), version, admitted, left, expired];
        assert_eq!(shown.totals, expected, "inside, ready, version, admitted, left, expired; {}", self.said);
        let waiting = self.model.queue();
        let is_behind = |seq: &u64| waiting.last().is_some_and(|last| self.queue.contains(last) && seq != last);
        let fell = self.queue.iter().any(|seq| !waiting.contains(seq) && is_behind(seq));
        assert!(version > self.version || !fell, "positions fell, and the version is {version}; {}", self.said);
        (self.version, self.queue) = (version, waiting);
        if shown.phase == Some(Phase::Open) {
            let place = |seq: &u64| self.model.drawn.get(seq).copied().unwrap_or(*seq);
            let stands: Vec<u64> = self.queue.iter().map(place).collect();
            let told: Vec<u64> = (shown.passed + 1..=self.model.last).filter(|at| !self.gone.contains(at)).collect();
            assert_eq!(told, stands, "who waits by the log on the left; {}", self.said);
        }
    }

    /// The doors are open: it is known who came early, and how they stand.
    fn open(&mut self) {
        assert!(self.model.settings.opens_at.is_some_and(|at| at.0 <= self.hall.now), "too early; {}", self.said);
        self.model.is_open = true;
        if self.model.settings.is_shuffled() {
            let last = self.model.last;
            self.model.drawn = (1..=last).map(|seq| (seq, shuffle::place("a seed", last, seq))).collect();
        }
    }

    /// The order itself, and what some of them are told.
    async fn positions(&mut self) {
        let range = Range::Order { order: OrderKey::Queue(sale()), from: OrderFrom::Rank(0) };
        let page = self.hall.engine.scan(&range, 1_000).await.expect("a scan works").items;
        let keys: Vec<Key> = page.into_iter().map(|(key, _)| key).collect();
        let is_open = self.model.is_open;
        let expected: Vec<Key> = self.queue.iter().map(|seq| ticket_key("sale", Seq::Given(*seq))).collect();
        assert!(keys == expected || !is_open, "the order {keys:?} and not {expected:?}; {}", self.said);
        for _ in 0..2 {
            let Some(seq) = self.any() else { return };
            let told = self.hall.ticket(&self.names[&seq]).await;
            match (told, self.model.tickets.get(&seq)) {
                (Ok(told), Some(_)) => self.same_position(&told, "as it is asked for"),
                (Err(refusal), None) => assert_eq!(refusal.code(), Code::TicketNotFound),
                (told, ticket) => panic!("{told:?} of {ticket:?}; {}", self.said),
            }
        }
    }

    fn same_position(&self, told: &tally_core::reply::TicketReply, how: &str) {
        let place = self.queue.iter().position(|seq| *seq == told.seq).map(|place| place as u64 + 1);
        assert_eq!(told.position, place, "{} {how}; {}", told.seq, self.said);
        assert_eq!(
            Some(told.state),
            self.model.tickets.get(&told.seq).map(|ticket| ticket.state),
            "{how}; {}",
            self.said
        );
        assert_eq!(told.version, self.version, "{how}; {}", self.said);
    }
}

fn read(settings: &Value) -> RoomSettings {
    serde_json::from_value(settings.clone()).expect("these are settings of a room")
}
