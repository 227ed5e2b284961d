//! Everything that can be asked to change: thin, one case a capability. What each has is in its folder.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::Refusal;
use crate::id::SubjectId;
use crate::operation::Wakes;
use crate::permission::Permission;
use crate::rows::{JobId, ReplayKey, Side};

pub use crate::capability::{Command, commands::*};
pub use crate::reply::Reply;

/// Makes the commands of all from the list of capabilities.
macro_rules! commands {
    ($($(#[$doc:meta])* $name:ident in $capability:ident,)+) => {
        /// Each operation by its name.
        pub(crate) mod commands {
            $(pub use crate::$capability::operations::*;)+
        }

        /// A change that is asked for. A client may put those of relations and of counting in a batch, each
        /// written with its `op`; see [`Written`](crate::batch::Written).
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum Command {
            $($(#[$doc])* $name($crate::$capability::Command),)+
        }

        impl Command {
            /// Decides it, by its capability's rule.
            pub(crate) fn decide(&self, context: &Context<'_>, view: &mut View) -> Result<Reply, Stop> {
                match self {
                    $(Self::$name(command) => command.decide(context, view),)+
                }
            }

            /// What the rest of the house has to know of it.
            pub fn about(&self) -> About<'_> {
                match self {
                    $(Self::$name(command) => command.about(),)+
                }
            }

            /// Who acts, where the caller says who.
            pub fn acting_mut(&mut self) -> Option<&mut SubjectId> {
                match self {
                    $(Self::$name(command) => command.acting_mut(),)+
                }
            }

            /// As a client writes it in a batch; none where it cannot be in one.
            pub fn written(&self) -> Option<serde_json::Value> {
                match self {
                    $(Self::$name(command) => command.written(),)+
                }
            }
        }

        /// What a subject could still add to is taken at once, in every capability: see [`Counted`].
        pub(crate) fn forget_at_once(going: &Going<'_, SubjectId>, view: &mut View) -> Result<bool, Stop> {
            each([$(<$crate::$capability::Command as Counted>::forget_at_once(going, view)),+])
        }

        /// What was counted of a subject is taken back, step by step. Says whether there is more.
        pub(crate) fn forget_step(going: &Going<'_, SubjectId>, view: &mut View) -> Result<bool, Stop> {
            each([$(<$crate::$capability::Command as Counted>::forget_step(going, view)),+])
        }

        /// What was counted of an object is taken back.
        pub(crate) fn forget_object(going: &Going<'_, KeyId>, view: &mut View) -> Result<bool, Stop> {
            each([$(<$crate::$capability::Command as Counted>::forget_object(going, view)),+])
        }
    };
}
pub(crate) use commands;

impl Command {
    /// How many commands this counts as in a batch.
    pub fn weight(&self) -> usize {
        self.about().weight
    }

    /// Who has to look again when it is done.
    pub fn wakes(&self) -> Wakes {
        self.about().wakes
    }

    /// What a caller has to be allowed, and about whom it is; nothing of what no caller may send.
    pub fn permission(&self) -> Option<(Permission, Option<&SubjectId>)> {
        let about = self.about();
        about.permission.map(|permission| (permission, about.names.subject))
    }

    /// What it is about: commands about the same are best decided together. Where nothing is counted, it is a subject or
    /// an object.
    pub fn home(&self, by: Side) -> Option<[&str; 2]> {
        let about = self.about();
        let subject = about.names.subject.map(|subject| [subject.as_str(), ""]);
        let object = about.names.object.map(|object| [object.as_str(), ""]);
        about.counted.or(match by {
            Side::Subject => subject,
            Side::Object => object.or(subject),
        })
    }

    /// The job that it begins, or goes on with.
    pub fn job(&self) -> Option<JobId> {
        let (kind, whom) = self.about().job?;
        Some(JobId::of(kind, whom))
    }
}

/// Who asks, as conditions see it: `kind`, `subject`, `role`, `claims`.
pub type Auth = Arc<serde_json::Value>;

/// A request that has one effect however often it is sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Once {
    /// The caller's key.
    pub key: ReplayKey,
    /// A fingerprint for each field of the request.
    pub fields: Arc<Vec<(String, u64)>>,
}

/// A command with who sent it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// Who sends it.
    pub auth: Auth,
    /// What is to be done.
    pub command: Command,
    /// The idempotency key, if there was one.
    pub once: Option<Once>,
}

impl Call {
    /// A command of Tally's own.
    pub fn system(command: impl Into<Command>) -> Self {
        Self { auth: Arc::new(serde_json::json!({"kind": "system"})), command: command.into(), once: None }
    }
}

/// Logical rows read and written, in the caller's sense: edges and the counts above them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Rows read.
    pub reads: u32,
    /// Rows written.
    pub writes: u32,
}

/// A decision's outcome.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decided {
    /// The answer.
    pub reply: Result<Reply, Refusal>,
    /// What it cost.
    pub cost: Cost,
    /// Whether it is a remembered answer.
    pub replayed: bool,
}
