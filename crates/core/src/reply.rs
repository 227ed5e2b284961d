//! Everything that is answered to a command: thin, one case a capability.

use serde::{Deserialize, Serialize};

use crate::error::Refusal;
use crate::id::{KeyId, ObjectId, SubjectId};
use crate::meta::Meta;
use crate::rows::{SequenceKey, TotalKey};

pub use crate::attendance::AttendReply;
pub use crate::board::ScoreReply;
pub use crate::counter::CounterReply;
pub use crate::job::JobReply;
pub use crate::limit::TakeReply;
pub use crate::object::ObjectReply;
pub use crate::relation::EdgeReply;
pub use crate::unique::UniqueReply;

/// An answer to each command of a batch, in order.
pub type BatchReply = Vec<Result<Reply, Refusal>>;

/// What only the commit knows of an answer.
pub struct Told<'a> {
    /// How much a total is off by.
    pub off: &'a dyn Fn(&TotalKey) -> i64,
    /// The first number that was taken of a sequence ([`Seq::given`](crate::rows::Seq::given)).
    pub first: &'a dyn Fn(&SequenceKey) -> u64,
    /// How much the ranks are off by, one after another.
    pub ranks: &'a mut dyn Iterator<Item = u64>,
}

/// What the rest of the house has to know of an answer.
pub(crate) trait Answered {
    /// Moves the counts and the ranks in it, each by what it is off by, and gives it its numbers.
    fn correct(&mut self, told: &mut Told<'_>);

    /// The names in it, which a remembered answer is kept without.
    fn names_mut(&mut self) -> NamesMut<'_>;
}

/// The names in an answer.
#[derive(Default)]
pub(crate) struct NamesMut<'a> {
    pub(crate) object: Option<&'a mut ObjectId>,
    pub(crate) subject: Option<&'a mut SubjectId>,
    pub(crate) key: Option<&'a mut KeyId>,
    /// What is attached, where it is what its call says.
    pub(crate) meta: Option<&'a mut Option<Meta>>,
}

/// To what only changes or does not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Done {
    /// Whether anything changed.
    pub changed: bool,
}

macro_rules! replies {
    ($($(#[$doc:meta])* $name:ident($reply:ty),)+) => {
        /// What is answered.
        #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
        #[serde(untagged)]
        pub enum Reply {
            $($(#[$doc])* $name($reply),)+
        }

        $(impl From<$reply> for Reply {
            fn from(reply: $reply) -> Self {
                Self::$name(reply)
            }
        }

        impl TryFrom<Reply> for $reply {
            type Error = Reply;

            fn try_from(reply: Reply) -> Result<Self, Reply> {
                if let Reply::$name(reply) = reply { Ok(reply) } else { Err(reply) }
            }
        })+

        impl Reply {
            /// Moves the counts and the ranks in an answer, each by what it is off by, and gives it its numbers.
            pub fn correct(&mut self, told: &mut Told<'_>) {
                match self {
                    $(Self::$name(reply) => reply.correct(told),)+
                }
            }

            pub(crate) fn names_mut(&mut self) -> NamesMut<'_> {
                match self {
                    $(Self::$name(reply) => reply.names_mut(),)+
                }
            }
        }
    };
}

// An answer that was remembered is read back as the first of these that it fits, so the order matters.
replies! {
    /// To relate, unrelate and toggle.
    Relation(EdgeReply),
    /// To a batch: an answer for each command, in order.
    Batch(BatchReply),
    /// To adding to a counter.
    Counter(CounterReply),
    /// To observing.
    Unique(UniqueReply),
    /// To attending.
    Attendance(AttendReply),
    /// To changing a score.
    Board(ScoreReply),
    /// To using a limit.
    Limit(TakeReply),
    /// To putting an object.
    Object(ObjectReply),
    /// To everything that begins or continues a job.
    Job(JobReply),
    /// To what only changes or does not.
    Done(Done),
}

impl Answered for BatchReply {
    fn correct(&mut self, told: &mut Told<'_>) {
        self.iter_mut().flatten().for_each(|reply| reply.correct(told));
    }

    fn names_mut(&mut self) -> NamesMut<'_> {
        NamesMut::default()
    }
}

impl Answered for Done {
    fn correct(&mut self, _told: &mut Told<'_>) {}

    fn names_mut(&mut self) -> NamesMut<'_> {
        NamesMut::default()
    }
}
