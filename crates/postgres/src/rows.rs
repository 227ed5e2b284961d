//! Rows as cells, and back.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tally_core::rows::{
    ApiKey, Attendee, Bits, BoardKey, ChunkKey, CountKey, Forgotten, Job, JobId, Key, LimitKey, Object, Replay,
    ReplayKey, Role, Row, Score, ScoreKey, Sketch, Subject, Suspension, Used,
};
use tally_core::time::{Stamp, Timestamp};
use tally_core::{Day, KeyId, Name, ObjectId, SubjectId};
use tally_engine::StoreError;

use crate::cells::Cells;
use crate::error::unreadable;
use crate::tables::{self, TABLES};

fn text(value: &impl Serialize) -> Result<Option<String>, StoreError> {
    serde_json::to_string(value).map(Some).map_err(|error| StoreError::Broken(error.to_string()))
}

fn time(at: Timestamp) -> Option<String> {
    Some(at.0.to_string())
}

fn int(value: u64) -> Result<Option<String>, StoreError> {
    let value = i64::try_from(value).map_err(|_| StoreError::Broken(format!("{value} is too large to be stored")))?;
    Ok(Some(value.to_string()))
}

fn list(values: impl Iterator<Item = u64>) -> Result<Option<String>, StoreError> {
    let values: Result<Vec<Option<String>>, StoreError> = values.map(int).collect();
    let values: Vec<String> = values?.into_iter().flatten().collect();
    Ok(Some(format!("{{{}}}", values.join(","))))
}

fn hex(bytes: &[u8]) -> Option<String> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |four: u8| char::from(DIGITS[usize::from(four)]);
    Some(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect())
}

/// The key's columns.
pub(crate) fn key_cells(key: &Key) -> Cells {
    match key {
        Key::Object(object) => vec![Some(object.to_string())],
        Key::Subject(subject) => vec![Some(subject.to_string())],
        Key::Replay(replay) => vec![Some(replay.caller.clone()), Some(replay.key.clone())],
        Key::Job(id) => vec![Some(id.text())],
        Key::ApiKey(id) => vec![Some(id.clone())],
        Key::Touched(key) | Key::Unique(key) => vec![Some(key.name.to_string()), Some(key.key.to_string())],
        Key::Limit(limit) => vec![Some(limit.name.clone()), Some(limit.key.clone())],
        Key::Sheet(name) | Key::Board(name) => vec![Some(name.to_string())],
        Key::Day(sheet, day) => vec![Some(sheet.to_string()), Some(day.0.to_string())],
        Key::Chunk(key) => {
            vec![Some(key.sheet.to_string()), Some(key.day.0.to_string()), Some(key.chunk.to_string())]
        }
        Key::Attendee(sheet, subject) => vec![Some(sheet.to_string()), Some(subject.to_string())],
        Key::Score(key) => {
            let BoardKey { board, season, levels } = &key.board;
            vec![Some(board.to_string()), time(*season), Some(levels.to_string()), Some(key.member.to_string())]
        }
        Key::Names => vec![Some(String::new())],
        Key::Edge(_) | Key::Counter(_) => Vec::new(),
    }
}

/// All of a row's columns.
pub(crate) fn write(key: &Key, row: &Row) -> Result<Cells, StoreError> {
    let mut cells = key_cells(key);
    match row {
        Row::Object(object) => {
            cells.extend([object.status.clone(), text(&*object.attributes)?]);
            cells.extend([time(object.created_at), time(object.updated_at)]);
        }
        Row::Subject(Subject { suspended, forgotten }) => {
            let suspension = suspended.as_ref();
            cells.extend([suspension.and_then(|row| time(row.at)), suspension.map(|row| row.job.text())]);
            match forgotten {
                Some(row) => cells.extend([int(row.before.0)?, text(&row.left)?]),
                None => cells.extend([None, None]),
            }
        }
        Row::Replay(replay) => {
            cells.extend([text(&replay.fields)?, Some(replay.answer.clone()), time(replay.expires_at)]);
        }
        Row::Job(job) => {
            cells.extend([text(&job.work)?, int(job.before.0)?, int(job.edges)?, time(job.created_at)]);
            cells.push(job.finished_at.and_then(time));
        }
        Row::ApiKey(key) => {
            let role = serde_json::to_value(key.role).ok().and_then(|role| role.as_str().map(str::to_owned));
            cells.extend([Some(key.hash.clone()), role, Some(key.name.clone()), time(key.created_at)]);
            cells.push(key.revoked_at.and_then(time));
        }
        Row::Touched(at) => cells.push(time(*at)),
        Row::Unique(sketch) => cells.push(hex(&sketch.to_bytes())),
        Row::Limit(used) => cells.extend([text(&used.state)?, time(used.look_at)]),
        Row::Sheet(next) => cells.push(int(*next)?),
        Row::Day(chunks) => cells.push(list(chunks.iter().copied())?),
        Row::Chunk(bits) => cells.push(hex(&bits.to_bytes())),
        Row::Attendee(attendee) => {
            cells.extend([int(attendee.number)?, hex(&attendee.days.to_bytes()), hex(&attendee.forgotten.to_bytes())]);
        }
        Row::Names(names) => cells.push(text(names)?),
        Row::Board(seasons) => cells.push(list(seasons.iter().map(|at| at.0))?),
        Row::Score(score) => cells.extend([Some(score.score.to_string()), int(score.reached.0)?]),
        Row::Edge(_) | Row::Counter(_) => {
            return Err(StoreError::Broken("an edge or a counter is not a row of these tables".into()));
        }
    }
    Ok(cells)
}

/// A row as [`Table::shown`] gives it.
pub(crate) fn read(table: usize, shown: &str) -> Result<(Key, Row), StoreError> {
    let bad = || unreadable(&format!("a row of the table {}", TABLES[table].name));
    let cells: Cells = serde_json::from_str(shown).map_err(|_| bad())?;
    let mut cells = Reader { cells: cells.into_iter() };
    let (key, row) = match table {
        tables::OBJECT => {
            let key = Key::Object(ObjectId::new(&cells.text()?).map_err(|_| bad())?);
            let (status, attributes) = (cells.cell()?, cells.json()?);
            let (created_at, updated_at) = (cells.time()?, cells.time()?);
            (key, Row::Object(Object { status, attributes, created_at, updated_at }))
        }
        tables::SUBJECT => {
            let key = Key::Subject(SubjectId::new(&cells.text()?).map_err(|_| bad())?);
            let (at, job) = (cells.time_or_none()?, cells.cell()?);
            let job = job.as_deref().and_then(JobId::parse);
            let suspended = at.zip(job).map(|(at, job)| Suspension { at, job });
            let (before, left) = (cells.cell()?, cells.cell()?);
            let before = before.and_then(|text| text.parse().ok()).map(Stamp);
            let left = left.map(|text| serde_json::from_str(&text).map_err(|_| bad())).transpose()?;
            let forgotten = before.zip(left).map(|(before, left)| Forgotten { before, left });
            (key, Row::Subject(Subject { suspended, forgotten }))
        }
        tables::REPLAY => {
            let key = Key::Replay(ReplayKey { caller: cells.text()?, key: cells.text()? });
            let (fields, answer) = (cells.json()?, cells.text()?);
            (key, Row::Replay(Replay { fields, answer, expires_at: cells.time()? }))
        }
        tables::JOB => {
            let key = Key::Job(cells.job()?);
            let (work, before, edges) = (cells.json()?, Stamp(cells.number()?), cells.number()?);
            let created_at = cells.time()?;
            (key, Row::Job(Job { work, before, edges, created_at, finished_at: cells.time_or_none()? }))
        }
        tables::API_KEY => {
            let key = Key::ApiKey(cells.text()?);
            let (hash, role, name) = (cells.text()?, cells.text()?, cells.text()?);
            let role: Role = serde_json::from_value(role.into()).map_err(|_| bad())?;
            let created_at = cells.time()?;
            (key, Row::ApiKey(ApiKey { hash, role, name, created_at, revoked_at: cells.time_or_none()? }))
        }
        _ => read_counting(table, &mut cells)?,
    };
    Ok((key, row))
}

fn read_counting(table: usize, cells: &mut Reader) -> Result<(Key, Row), StoreError> {
    Ok(match table {
        tables::TOUCHED => (Key::Touched(cells.count_key()?), Row::Touched(cells.time()?)),
        tables::UNIQUE => {
            let key = Key::Unique(cells.count_key()?);
            let sketch = Sketch::from_bytes(&cells.bytes()?).ok_or_else(|| unreadable("a sketch"))?;
            (key, Row::Unique(sketch))
        }
        tables::LIMIT => {
            let key = Key::Limit(LimitKey { name: cells.text()?, key: cells.text()? });
            (key, Row::Limit(Used { state: cells.json()?, look_at: cells.time()? }))
        }
        tables::SHEET => (Key::Sheet(cells.name()?), Row::Sheet(cells.number()?)),
        tables::DAY => (Key::Day(cells.name()?, cells.day()?), Row::Day(cells.numbers()?)),
        tables::CHUNK => {
            let key = ChunkKey { sheet: cells.name()?, day: cells.day()?, chunk: cells.number()? };
            (Key::Chunk(key), Row::Chunk(cells.bits()?))
        }
        tables::ATTENDEE => {
            let key = Key::Attendee(cells.name()?, cells.subject()?);
            let (number, days) = (cells.number()?, cells.bits()?);
            (key, Row::Attendee(Attendee { number, days, forgotten: cells.bits()? }))
        }
        tables::BOARD => {
            let (key, seasons) = (Key::Board(cells.name()?), cells.numbers()?);
            (key, Row::Board(seasons.into_iter().map(Timestamp).collect()))
        }
        tables::NAMES => {
            cells.text()?;
            (Key::Names, Row::Names(cells.json()?))
        }
        _ => {
            let (board, season) = (cells.name()?, cells.time()?);
            let board = BoardKey { board, season, levels: cells.text()? == "true" };
            let key = Key::Score(ScoreKey { board, member: cells.subject()? });
            let score: i64 = cells.text()?.parse().map_err(|_| unreadable("a score"))?;
            (key, Row::Score(Score { score, reached: Stamp(cells.number()?) }))
        }
    })
}

/// Takes one cell after another.
struct Reader {
    cells: std::vec::IntoIter<Option<String>>,
}

impl Reader {
    fn cell(&mut self) -> Result<Option<String>, StoreError> {
        self.cells.next().ok_or_else(|| unreadable("a row with too few columns"))
    }

    fn text(&mut self) -> Result<String, StoreError> {
        self.cell()?.ok_or_else(|| unreadable("a null"))
    }

    fn json<T: DeserializeOwned>(&mut self) -> Result<T, StoreError> {
        let text = self.text()?;
        serde_json::from_str(&text).map_err(|_| unreadable(&text))
    }

    fn number(&mut self) -> Result<u64, StoreError> {
        let text = self.text()?;
        text.parse().map_err(|_| unreadable(&text))
    }

    fn time(&mut self) -> Result<Timestamp, StoreError> {
        self.number().map(Timestamp)
    }

    fn time_or_none(&mut self) -> Result<Option<Timestamp>, StoreError> {
        let cell = self.cell()?;
        cell.map(|text| text.parse().map(Timestamp).map_err(|_| unreadable(&text))).transpose()
    }

    fn job(&mut self) -> Result<JobId, StoreError> {
        let text = self.text()?;
        JobId::parse(&text).ok_or_else(|| unreadable(&text))
    }
    fn name(&mut self) -> Result<Name, StoreError> {
        let text = self.text()?;
        Name::new(&text).map_err(|_| unreadable(&text))
    }

    fn subject(&mut self) -> Result<SubjectId, StoreError> {
        let text = self.text()?;
        SubjectId::new(&text).map_err(|_| unreadable(&text))
    }

    fn count_key(&mut self) -> Result<CountKey, StoreError> {
        let (name, key) = (self.name()?, self.text()?);
        Ok(CountKey { name, key: KeyId::new(&key).map_err(|_| unreadable(&key))? })
    }

    fn day(&mut self) -> Result<Day, StoreError> {
        let text = self.text()?;
        text.parse().map(Day).map_err(|_| unreadable(&text))
    }

    /// A list as PostgreSQL writes arrays.
    fn numbers(&mut self) -> Result<Vec<u64>, StoreError> {
        let text = self.text()?;
        let inside = text.trim_start_matches('{').trim_end_matches('}');
        let numbers: Result<Vec<u64>, _> = inside.split_terminator(',').map(str::parse).collect();
        numbers.map_err(|_| unreadable(&text))
    }

    fn bytes(&mut self) -> Result<Vec<u8>, StoreError> {
        let text = self.text()?;
        let four = |digit: u8| char::from(digit).to_digit(16);
        let byte = |two: &[u8]| Some((four(*two.first()?)? << 4 | four(*two.get(1)?)?) as u8);
        let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(byte).collect();
        bytes.ok_or_else(|| unreadable("bytes in hex"))
    }

    fn bits(&mut self) -> Result<Bits, StoreError> {
        Bits::from_bytes(&self.bytes()?).ok_or_else(|| unreadable("a bitmap"))
    }
}
