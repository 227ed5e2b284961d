//! The lists of what there is: every capability, with its kinds of rows and its facts. Whoever adds one adds it here; what each
//! is stands in its folder, and the compiler asks for it.

use crate::batch::{InBatch, Written, ops};
use crate::command::commands;
use crate::day::Day;
use crate::decide::Context;
use crate::due::Settling;
use crate::error::Refusal;
use crate::id::{KeyId, Name, ObjectId, SubjectId};
use crate::operation::About;
use crate::query::{Ask, queries};
use crate::read::{Halt, Sight};
use crate::reply::{Answered, NamesMut, Told, replies};
use crate::rows::{Cell, Cells, Columns, Declared, Kind, OrderKey, Place, Seq, SequenceKey, TotalKey, Typed, kinds};
use crate::subject::{Counted, Going, each};
use crate::time::Timestamp;
use crate::verify::{Claims, Judged, Known, Owner, Said, facts};
use crate::view::{Stop, View};

use rows::*;

pub(crate) use crate::attendance::audit::present;
pub(crate) use crate::room::audit::counted as counted_of_room;

/// What rows are made of.
pub(crate) mod rows {
    pub(crate) use crate::attendance::rows::PRESENT;
    pub use crate::attendance::rows::{Attendee, Bits, CHUNK_BITS, ChunkKey};
    pub use crate::board::rows::{Board, BoardKey, Score, ScoreKey};
    pub(crate) use crate::counter::rows::COUNTER;
    pub use crate::counter::rows::CountKey;
    pub use crate::job::rows::{Job, JobId, JobKind, Round, Work};
    pub use crate::key::rows::{ApiKey, Role};
    pub use crate::key::signer::{Signer, Signers};
    pub use crate::limit::rows::{LimitKey, Used, UsedState};
    pub use crate::names::rows::Names;
    pub use crate::object::rows::Object;
    pub use crate::relation::rows::{Edge, EdgeKey, ListKey, Side};
    pub use crate::replay::rows::{Replay, ReplayKey};
    pub(crate) use crate::room::kinds::ROOM;
    pub use crate::room::rows::{
        EntryKey, Gate, Gone, GoneKey, Minute, MinuteKey, Room, RoomCount, Ticket, TicketKey, TicketState,
    };
    pub use crate::subject::rows::{Forgotten, Subject, Suspension};
    pub use crate::unique::rows::{SKETCH_ERROR, Sketch};
    pub use crate::verify::rows::{DriftItem, VerifyReport};
}

kinds! {
    /// An edge. There are many: stores lay them out by hand, with their lists.
    Edge(EdgeKey) => Edge, edge, into_edge;
    /// A registered object.
    Object(ObjectId) => Object, object, into_object;
    /// What is known about a subject beyond its edges.
    Subject(SubjectId) => Subject, subject, into_subject;
    /// A remembered answer.
    Replay(ReplayKey) => Replay, replay, into_replay;
    /// A piece of long work.
    Job(JobId) => Job, job, into_job;
    /// An API key.
    ApiKey(String) => ApiKey, api_key, into_api_key;
    /// The keys that sign admissions.
    Signers => Signers, signers, into_signers;
    /// Every name that was ever declared.
    Names => Names, names, into_names;
    /// A counter: a total that is listed as a row, see [`TotalKey::Counter`]. Never 0, which is a counter that is not there.
    Counter(CountKey) => i64, counter, into_counter;
    /// When a counter was last added to, where it keeps that.
    Touched(CountKey) => Timestamp, touched_at, into_touched;
    /// A unique count.
    Unique(CountKey) => Sketch, unique, into_unique;
    /// What has been used of a limit.
    Limit(LimitKey) => Used, limit, into_limit;
    /// How many subjects of a sheet have been numbered: the next number.
    Sheet(Name) => u64, sheet, into_sheet;
    /// Which chunks a day has, in order.
    Day((Name, Day)) => Vec<u64>, day, into_day;
    /// A part of a day's bitmap: the lower parts of the numbers in it.
    Chunk(ChunkKey) => Bits, chunk, into_chunk;
    /// A subject on a sheet.
    Attendee((Name, SubjectId)) => Attendee, attendee, into_attendee;
    /// What is known of a board beyond its scores.
    Board(Name) => Board, board, into_board;
    /// A member's score, which has a place in the order of its board.
    Score(ScoreKey) => Score, score, into_score;
    /// The last number given of a sequence. Stores write it themselves when numbers are taken; it is a row like any other to
    /// who lists and copies all of them.
    Sequence(SequenceKey) => u64, sequence, into_sequence;
    /// A ticket of a room, which has a place in the room's queue while it waits.
    Ticket(TicketKey) => Ticket, ticket, into_ticket;
    /// Which ticket a subject's token stands for, by its number.
    Entry(EntryKey) => Seq, entry, into_entry;
    /// A room.
    Room(Name) => Room, room, into_room;
    /// What letting in goes by.
    Gate(Name) => Gate, gate, into_gate;
    /// What left a room's queue out of order.
    Gone(GoneKey) => Gone, gone, into_gone;
    /// A minute of a room.
    Minute(MinuteKey) => Minute, minute, into_minute;
}

commands! {
    /// Likes, bookmarks, reactions.
    Relation in relation,
    /// Registered objects.
    Object in object,
    /// Forgetting, suspending, restoring.
    Subject in subject,
    /// How many times.
    Counter in counter,
    /// How many different ones.
    Unique in unique,
    /// Who was there.
    Attendance in attendance,
    /// Who leads.
    Board in board,
    /// May this happen now?
    Limit in limit,
    /// Who is next?
    Room in room,
    /// Several commands as one.
    Batch in batch,
    /// Long work.
    Job in job,
    /// Recounting.
    Verify in verify,
    /// API keys.
    Key in key,
    /// Remembered answers.
    Replay in replay,
    /// What is declared.
    Names in names,
}

queries! {
    /// About edges: one, an object's count, a list, a feed.
    Relation in relation,
    /// About a registered object.
    Object in object,
    /// About a counter.
    Counter in counter,
    /// About unique counts.
    Unique in unique,
    /// About days.
    Attendance in attendance,
    /// About boards.
    Board in board,
    /// About a limit.
    Limit in limit,
    /// About rooms and their tickets.
    Room in room,
    /// About a job.
    Job in job,
    /// About API keys.
    Key in key,
}

// An answer that was remembered is read back as the first of these that it fits, so the order matters.
replies! {
    /// To relate, unrelate and toggle.
    Relation(EdgeReply) in relation,
    /// To a batch: an answer for each command, in order.
    Batch(BatchReply) in batch,
    /// To adding to a counter.
    Counter(CounterReply) in counter,
    /// To observing.
    Unique(UniqueReply) in unique,
    /// To attending.
    Attendance(AttendReply) in attendance,
    /// To changing a score.
    Board(ScoreReply) in board,
    /// To using a limit.
    Limit(TakeReply) in limit,
    /// To everything that is done with a ticket.
    Ticket(TicketReply) in room,
    /// To letting in by hand.
    Admit(AdmitReply) in room,
    /// To setting up a room.
    Room(RoomReply) in room,
    /// To putting an object.
    Object(ObjectReply) in object,
    /// To everything that begins or continues a job.
    Job(JobReply) in job,
    /// To what only changes or does not.
    Done(Done) in operation,
}

ops! {
    Relate = "relate" => Relate in relation,
    Unrelate = "unrelate" => Unrelate in relation,
    Toggle = "toggle" => Toggle in relation,
    Count = "count" => Add in counter,
    Observe = "observe" => Observe in unique,
    Attend = "attend" => Attend in attendance,
    Score = "score" => ChangeScore in board,
    Take = "take" => Take in limit,
}

facts! {
    /// Of days: what a day lists comes first, as others are looked at by way of it.
    Attendance in attendance,
    /// Of boards.
    Board in board,
    /// Of rooms.
    Room in room,
}
