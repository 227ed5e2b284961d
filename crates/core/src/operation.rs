//! What is asked for, one type each, with what is answered to it and all that the rest of the house has to know of it.

use serde::{Deserialize, Serialize};

use crate::command::Command;
use crate::decide::Context;
use crate::id::{KeyId, ObjectId, SubjectId};
use crate::meta::Meta;
use crate::permission::Permission;
use crate::reply::{Answered, NamesMut, Reply, Told};
use crate::rows::JobKind;
use crate::view::{Stop, View};

/// Something that can be asked for. What you ask with decides what you get.
pub trait Operation: Clone + Into<Command> {
    /// What is answered to it.
    type Reply: Into<Reply> + TryFrom<Reply>;

    /// Decides it, by its capability's rule.
    fn decide(&self, context: &Context<'_>, view: &mut View) -> Result<Self::Reply, Stop>;

    /// What the rest of the house has to know of it. Forgotten, no caller may send it.
    fn about(&self) -> About<'_> {
        About::system()
    }

    /// Who acts, where the caller says who: a user's token may say `me`. Forgotten, `me` is refused as a name.
    fn acting_mut(&mut self) -> Option<&mut SubjectId> {
        None
    }

    /// As a client writes it in a batch, see [`crate::batch::Written`]. Forgotten, it cannot be in one.
    fn written(&self) -> Option<serde_json::Value> {
        None
    }
}

/// What the rest of the house has to know of an operation.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// What a caller has to be allowed; nothing of what no caller may send.
    pub permission: Option<Permission>,
    /// The names that it says, and that its answer says again.
    pub names: Names<'a>,
    /// Whether it may make its subject known: nobody is to be called `me`.
    pub makes_subject: bool,
    /// A declared name, and which of those under it: what is counted there is best decided together.
    pub counted: Option<[&'a str; 2]>,
    /// How many commands it counts as in a batch.
    pub weight: usize,
    /// Who has to look again when it is done.
    pub wakes: Wakes,
    /// The job that it begins, or goes on with: what that does, and to whom.
    pub job: Option<(JobKind, &'a str)>,
}

/// The names in a call, or in its answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Names<'a> {
    /// What is acted on.
    pub object: Option<&'a ObjectId>,
    /// Who acts, or whom it is about.
    pub subject: Option<&'a SubjectId>,
    /// What is counted or limited.
    pub key: Option<&'a KeyId>,
    /// What is attached.
    pub meta: Option<&'a Meta>,
}

/// Who has to look again when an operation is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wakes {
    /// Whoever carries jobs.
    pub jobs: bool,
    /// Whoever holds API keys.
    pub keys: bool,
}

impl Wakes {
    /// These and those.
    pub fn and(self, other: Self) -> Self {
        Self { jobs: self.jobs || other.jobs, keys: self.keys || other.keys }
    }
}

impl<'a> About<'a> {
    /// Of what a caller may send, if it has the permission.
    pub(crate) fn caller(permission: Permission) -> Self {
        Self { permission: Some(permission), ..Self::system() }
    }

    /// Of what a server does by itself, and no caller may send.
    pub(crate) fn system() -> Self {
        let (names, wakes) = (Names::default(), Wakes::default());
        Self { permission: None, names, makes_subject: false, counted: None, weight: 1, wakes, job: None }
    }

    pub(crate) fn subject(mut self, subject: &'a SubjectId) -> Self {
        self.names.subject = Some(subject);
        self
    }

    pub(crate) fn object(mut self, object: &'a ObjectId) -> Self {
        self.names.object = Some(object);
        self
    }

    pub(crate) fn key(mut self, key: &'a KeyId) -> Self {
        self.names.key = Some(key);
        self
    }

    pub(crate) fn meta(mut self, meta: Option<&'a Meta>) -> Self {
        self.names.meta = meta.filter(|meta| !meta.is_empty());
        self
    }

    pub(crate) fn making(mut self, makes: bool) -> Self {
        self.makes_subject = makes;
        self
    }

    pub(crate) fn counted(mut self, name: &'a str, key: &'a str) -> Self {
        self.counted = Some([name, key]);
        self
    }

    pub(crate) fn weighing(mut self, commands: usize) -> Self {
        self.weight = commands.max(1);
        self
    }

    pub(crate) fn begins_job(mut self) -> Self {
        self.wakes.jobs = true;
        self
    }

    /// Begins the job that does this to whom.
    pub(crate) fn begins(mut self, kind: JobKind, whom: &'a str) -> Self {
        self.job = Some((kind, whom));
        self.begins_job()
    }

    pub(crate) fn changes_keys(mut self) -> Self {
        self.wakes.keys = true;
        self
    }
}

/// To what only changes or does not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Done {
    /// Whether anything changed.
    pub changed: bool,
}

impl Answered for Done {
    fn correct(&mut self, _told: &mut Told<'_>) {}

    fn names_mut(&mut self) -> NamesMut<'_> {
        NamesMut::default()
    }
}

/// Gathers the operations of a capability into its `Command`, and into the [`Command`] of all; `with` are types that they are made
/// of. Says whether anything is counted of subjects or objects here: then the capability says how it is forgotten, see
/// [`crate::subject::Counted`].
macro_rules! operations {
    ($capability:ident: $($operation:ident),+ $(; with $($part:ident),+)?; counts nothing) => {
        operations!($capability: $($operation),+ $(; with $($part),+)?; counts);

        impl $crate::subject::Counted for Command {}
    };
    ($capability:ident: $($operation:ident),+ $(; with $($part:ident),+)?; counts) => {
        /// Each of the operations by its name.
        pub mod operations {
            pub use super::{$($operation),+ $(, $($part),+)?};
        }

        /// Everything that can be asked to change here.
        #[derive(Clone, PartialEq, Eq, Debug)]
        #[allow(missing_docs, reason = "each operation says what it is")]
        pub enum Command {
            $($operation($operation),)+
        }

        $(impl From<$operation> for $crate::command::Command {
            fn from(operation: $operation) -> Self {
                Self::$capability(Command::$operation(operation))
            }
        })+

        impl Command {
            pub(crate) fn decide(
                &self,
                context: &$crate::decide::Context<'_>,
                view: &mut $crate::view::View,
            ) -> Result<$crate::reply::Reply, $crate::view::Stop> {
                match self {
                    $(Self::$operation(operation) => {
                        $crate::operation::Operation::decide(operation, context, view).map(Into::into)
                    })+
                }
            }

            pub(crate) fn about(&self) -> $crate::operation::About<'_> {
                match self {
                    $(Self::$operation(operation) => $crate::operation::Operation::about(operation),)+
                }
            }

            pub(crate) fn acting_mut(&mut self) -> Option<&mut $crate::id::SubjectId> {
                match self {
                    $(Self::$operation(operation) => $crate::operation::Operation::acting_mut(operation),)+
                }
            }

            pub(crate) fn written(&self) -> Option<serde_json::Value> {
                match self {
                    $(Self::$operation(operation) => $crate::operation::Operation::written(operation),)+
                }
            }
        }
    };
}
pub(crate) use operations;
