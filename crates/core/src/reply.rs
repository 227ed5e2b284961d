//! Everything that is answered to a command: thin, one case a capability.

use crate::id::{KeyId, ObjectId, SubjectId};
use crate::meta::Meta;
use crate::rows::{SequenceKey, TotalKey};

pub use crate::capability::{Reply, replies::*};

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

/// Makes the replies of all from a list of them.
macro_rules! replies {
    ($($(#[$doc:meta])* $name:ident($reply:ident) in $module:ident,)+) => {
        /// Each reply by its name.
        pub(crate) mod replies {
            $(pub use crate::$module::$reply;)+
        }

        /// What is answered.
        #[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
        #[serde(untagged)]
        pub enum Reply {
            $($(#[$doc])* $name($crate::$module::$reply),)+
        }

        $(impl From<$crate::$module::$reply> for Reply {
            fn from(reply: $crate::$module::$reply) -> Self {
                Self::$name(reply)
            }
        }

        impl TryFrom<Reply> for $crate::$module::$reply {
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
pub(crate) use replies;
