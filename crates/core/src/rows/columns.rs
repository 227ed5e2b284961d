//! Rows as values in the columns that are declared, and back.

use std::borrow::Cow;

use super::cell::{Cell, Cells};
use super::declared::RowKind;
use super::{
    ApiKey, Attendee, Bits, Board, BoardKey, ChunkKey, CountKey, Edge, EdgeKey, EntryKey, Forgotten, Job, JobId, Key,
    LimitKey, Object, Replay, ReplayKey, Role, Row, Score, ScoreKey, SequenceKey, Sketch, Subject, Suspension, Ticket,
    TicketKey, TicketState, Used,
};

impl Key {
    /// The values of the key's columns, in order.
    pub fn cells<'a>(&'a self, mut put: impl FnMut(Cell<'a>)) {
        let mut texts = |texts: &[&'a str]| texts.iter().for_each(|text| put(Cell::text(text)));
        match self {
            Self::Edge(key) => texts(&[key.object.as_str(), key.relation.as_str(), key.subject.as_str()]),
            Self::Object(object) => texts(&[object.as_str()]),
            Self::Subject(subject) => texts(&[subject.as_str()]),
            Self::Replay(key) => texts(&[&key.caller, &key.key]),
            Self::Job(id) => put(Cell::Text(Cow::Owned(id.text()))),
            Self::ApiKey(id) => texts(&[id]),
            Self::Names => texts(&[""]),
            Self::Counter(key) | Self::Touched(key) | Self::Unique(key) => {
                texts(&[key.name.as_str(), key.key.as_str()]);
            }
            Self::Limit(key) => texts(&[&key.name, &key.key]),
            Self::Sheet(name) | Self::Board(name) => texts(&[name.as_str()]),
            Self::Day(sheet, day) => {
                texts(&[sheet.as_str()]);
                put(Cell::Day(*day));
            }
            Self::Chunk(key) => {
                texts(&[key.sheet.as_str()]);
                put(Cell::Day(key.day));
                put(Cell::Number(key.chunk));
            }
            Self::Attendee(sheet, subject) => texts(&[sheet.as_str(), subject.as_str()]),
            Self::Score(key) => {
                texts(&[key.board.board.as_str()]);
                put(Cell::Time(key.board.season));
                put(Cell::Flag(key.board.levels));
                put(Cell::text(key.member.as_str()));
            }
            Self::Sequence(key) => texts(&[&key.home, &key.name]),
            Self::Ticket(key) => {
                texts(&[key.room.as_str()]);
                put(key.seq.cell());
            }
            Self::Entry(key) => texts(&[key.room.as_str(), key.subject.as_str(), &key.token]),
        }
    }

    /// The same, gathered.
    pub fn to_cells(&self) -> Vec<Cell<'_>> {
        let mut cells = Vec::with_capacity(4);
        self.cells(|cell| cells.push(cell));
        cells
    }

    /// Reads a key back.
    pub fn from_cells(kind: RowKind, from: &mut Cells<'_>) -> Option<Self> {
        Some(match kind {
            RowKind::Edge => {
                let (object, relation) = (from.object()?, from.name()?);
                Self::Edge(EdgeKey { object, relation, subject: from.subject()? })
            }
            RowKind::Object => Self::Object(from.object()?),
            RowKind::Subject => Self::Subject(from.subject()?),
            RowKind::Replay => {
                let caller = from.text()?.into_owned();
                Self::Replay(ReplayKey { caller, key: from.text()?.into_owned() })
            }
            RowKind::Job => Self::Job(JobId::parse(&from.text()?)?),
            RowKind::ApiKey => Self::ApiKey(from.text()?.into_owned()),
            RowKind::Names => {
                from.text()?;
                Self::Names
            }
            RowKind::Counter => Self::Counter(count_key(from)?),
            RowKind::Touched => Self::Touched(count_key(from)?),
            RowKind::Unique => Self::Unique(count_key(from)?),
            RowKind::Limit => {
                let name = from.text()?.into_owned();
                Self::Limit(LimitKey { name, key: from.text()?.into_owned() })
            }
            RowKind::Sheet => Self::Sheet(from.name()?),
            RowKind::Day => Self::Day(from.name()?, from.day()?),
            RowKind::Chunk => {
                let (sheet, day) = (from.name()?, from.day()?);
                Self::Chunk(ChunkKey { sheet, day, chunk: from.number()? })
            }
            RowKind::Attendee => Self::Attendee(from.name()?, from.subject()?),
            RowKind::Board => Self::Board(from.name()?),
            RowKind::Score => {
                let (board, season) = (from.name()?, from.time()?);
                let board = BoardKey { board, season, levels: from.flag()? };
                Self::Score(ScoreKey { board, member: from.subject()? })
            }
            RowKind::Sequence => {
                let home = from.text()?.into_owned();
                Self::Sequence(SequenceKey { home, name: from.text()?.into_owned() })
            }
            RowKind::Ticket => {
                let room = from.name()?;
                Self::Ticket(TicketKey { room, seq: from.seq()? })
            }
            RowKind::Entry => {
                let (room, subject) = (from.name()?, from.subject()?);
                Self::Entry(EntryKey { room, subject, token: from.text()?.into_owned() })
            }
        })
    }
}

fn count_key(from: &mut Cells<'_>) -> Option<CountKey> {
    Some(CountKey { name: from.name()?, key: from.key()? })
}

impl Row {
    /// What kind of row it is.
    pub fn kind(&self) -> RowKind {
        match self {
            Self::Edge(_) => RowKind::Edge,
            Self::Object(_) => RowKind::Object,
            Self::Subject(_) => RowKind::Subject,
            Self::Replay(_) => RowKind::Replay,
            Self::Job(_) => RowKind::Job,
            Self::ApiKey(_) => RowKind::ApiKey,
            Self::Names(_) => RowKind::Names,
            Self::Counter(_) => RowKind::Counter,
            Self::Touched(_) => RowKind::Touched,
            Self::Unique(_) => RowKind::Unique,
            Self::Limit(_) => RowKind::Limit,
            Self::Sheet(_) => RowKind::Sheet,
            Self::Day(_) => RowKind::Day,
            Self::Chunk(_) => RowKind::Chunk,
            Self::Attendee(_) => RowKind::Attendee,
            Self::Board(_) => RowKind::Board,
            Self::Score(_) => RowKind::Score,
            Self::Sequence(_) => RowKind::Sequence,
            Self::Ticket(_) => RowKind::Ticket,
            Self::Entry(_) => RowKind::Entry,
        }
    }

    /// The values of the columns beside the key, in order.
    pub fn cells<'a>(&'a self, mut put: impl FnMut(Cell<'a>)) {
        match self {
            Self::Edge(edge) => {
                put(Cell::Number(edge.created.0));
                put(edge.kind.as_ref().map_or(Cell::Null, |kind| Cell::text(kind.as_str())));
                put(edge.meta.as_ref().map_or(Cell::Null, |meta| Cell::json(&**meta)));
                put(Cell::Flag(edge.hidden));
            }
            Self::Object(object) => {
                put(object.status.as_deref().map_or(Cell::Null, Cell::text));
                put(Cell::json(&*object.attributes));
                put(Cell::Time(object.created_at));
                put(Cell::Time(object.updated_at));
            }
            Self::Subject(Subject { suspended, forgotten }) => {
                put(Cell::time_or_null(suspended.as_ref().map(|row| row.at)));
                put(suspended.as_ref().map_or(Cell::Null, |row| Cell::Text(Cow::Owned(row.job.text()))));
                put(forgotten.as_ref().map_or(Cell::Null, |row| Cell::Number(row.before.0)));
                put(forgotten.as_ref().map_or(Cell::Null, |row| Cell::json(&row.left)));
            }
            Self::Replay(replay) => {
                put(Cell::json(&*replay.fields));
                put(Cell::text(&replay.answer));
                put(Cell::Time(replay.expires_at));
            }
            Self::Job(job) => {
                put(Cell::json(&job.work));
                put(Cell::Number(job.before.0));
                put(Cell::Number(job.edges));
                put(Cell::Time(job.created_at));
                put(Cell::time_or_null(job.finished_at));
            }
            Self::ApiKey(key) => {
                put(Cell::text(&key.hash));
                put(Cell::text(key.role.name()));
                put(Cell::text(&key.name));
                put(Cell::Time(key.created_at));
                put(Cell::time_or_null(key.revoked_at));
            }
            Self::Names(names) => put(Cell::json(names)),
            Self::Counter(value) => put(Cell::Signed(*value)),
            Self::Touched(at) => put(Cell::Time(*at)),
            Self::Unique(sketch) => put(Cell::Bytes(Cow::Owned(sketch.to_bytes()))),
            Self::Limit(used) => {
                put(Cell::json(&used.state));
                put(Cell::Time(used.look_at));
            }
            Self::Sheet(next) => put(Cell::Number(*next)),
            Self::Day(chunks) => put(Cell::Numbers(Cow::Borrowed(chunks))),
            Self::Chunk(bits) => put(Cell::Bytes(Cow::Owned(bits.to_bytes()))),
            Self::Attendee(attendee) => {
                put(Cell::Number(attendee.number));
                put(Cell::Bytes(Cow::Owned(attendee.days.to_bytes())));
                put(Cell::Bytes(Cow::Owned(attendee.forgotten.to_bytes())));
            }
            Self::Board(board) => {
                put(Cell::Times(Cow::Borrowed(&board.seasons)));
                put(Cell::Flag(board.dense));
            }
            Self::Score(score) => {
                put(Cell::Signed(score.score));
                put(Cell::Number(score.reached.0));
            }
            Self::Sequence(last) => put(Cell::Number(*last)),
            Self::Ticket(ticket) => {
                put(Cell::text(ticket.subject.as_str()));
                put(Cell::text(&ticket.token));
                put(Cell::text(ticket.state.name()));
                put(Cell::Time(ticket.joined_at));
                put(Cell::Time(ticket.alive_until));
            }
            Self::Entry(seq) => put(seq.cell()),
        }
    }

    /// The same, gathered.
    pub fn to_cells(&self) -> Vec<Cell<'_>> {
        let mut cells = Vec::with_capacity(5);
        self.cells(|cell| cells.push(cell));
        cells
    }

    /// Reads a row back.
    pub fn from_cells(kind: RowKind, from: &mut Cells<'_>) -> Option<Self> {
        Some(match kind {
            RowKind::Edge => {
                let (created, kind) = (from.stamp()?, from.text_or_null()?);
                let kind = kind.map(|kind| crate::id::Name::new(&kind).ok());
                let (meta, hidden) = (from.json_or_null()?, from.flag()?);
                let kind = if let Some(kind) = kind { Some(kind?) } else { None };
                Self::Edge(Edge { created, kind, meta, hidden })
            }
            RowKind::Object => {
                let (status, attributes) = (from.text_or_null()?.map(Cow::into_owned), from.json()?);
                let (created_at, updated_at) = (from.time()?, from.time()?);
                Self::Object(Object { status, attributes, created_at, updated_at })
            }
            RowKind::Subject => {
                let (at, job) = (from.time_or_null()?, from.text_or_null()?);
                let job = if let Some(job) = job { Some(JobId::parse(&job)?) } else { None };
                let (before, left) = (from.number_or_null()?, from.json_or_null()?);
                let suspended = at.zip(job).map(|(at, job)| Suspension { at, job });
                let forgotten =
                    before.zip(left).map(|(before, left)| Forgotten { before: crate::time::Stamp(before), left });
                Self::Subject(Subject { suspended, forgotten })
            }
            RowKind::Replay => {
                let (fields, answer) = (from.json()?, from.text()?.into_owned());
                Self::Replay(Replay { fields, answer, expires_at: from.time()? })
            }
            RowKind::Job => {
                let (work, before, edges) = (from.json()?, from.stamp()?, from.number()?);
                let (created_at, finished_at) = (from.time()?, from.time_or_null()?);
                Self::Job(Job { work, before, edges, created_at, finished_at })
            }
            RowKind::ApiKey => {
                let (hash, role) = (from.text()?.into_owned(), Role::from_name(&from.text()?)?);
                let (name, created_at) = (from.text()?.into_owned(), from.time()?);
                Self::ApiKey(ApiKey { hash, role, name, created_at, revoked_at: from.time_or_null()? })
            }
            RowKind::Names => Self::Names(from.json()?),
            RowKind::Counter => Self::Counter(from.signed()?),
            RowKind::Touched => Self::Touched(from.time()?),
            RowKind::Unique => Self::Unique(Sketch::from_bytes(&from.bytes()?)?),
            RowKind::Limit => {
                let state = from.json()?;
                Self::Limit(Used { state, look_at: from.time()? })
            }
            RowKind::Sheet => Self::Sheet(from.number()?),
            RowKind::Day => Self::Day(from.numbers()?),
            RowKind::Chunk => Self::Chunk(bits(from)?),
            RowKind::Attendee => {
                let (number, days) = (from.number()?, bits(from)?);
                Self::Attendee(Attendee { number, days, forgotten: bits(from)? })
            }
            RowKind::Board => {
                let seasons = from.times()?;
                Self::Board(Board { seasons, dense: from.flag()? })
            }
            RowKind::Score => {
                let score = from.signed()?;
                Self::Score(Score { score, reached: from.stamp()? })
            }
            RowKind::Sequence => Self::Sequence(from.number()?),
            RowKind::Ticket => {
                let (subject, token) = (from.subject()?, from.text()?.into_owned());
                let (state, joined_at) = (TicketState::from_name(&from.text()?)?, from.time()?);
                Self::Ticket(Ticket { subject, token, state, joined_at, alive_until: from.time()? })
            }
            RowKind::Entry => Self::Entry(from.seq()?),
        })
    }
}

fn bits(from: &mut Cells<'_>) -> Option<Bits> {
    Bits::from_bytes(&from.bytes()?)
}
