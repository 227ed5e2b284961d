//! Everything that can be asked without changing anything: thin, one case a capability.

use crate::id::{Name, SubjectId};
use crate::permission::Permission;
use crate::read::{Halt, Sight};

pub use crate::capability::{Answer, Query, queries::*};

/// A question. What you ask with decides what you get.
pub trait Question: Into<Query> {
    /// What is answered to it.
    type Answer: Into<Answer> + TryFrom<Answer>;

    /// What a caller has to be allowed, one after the other.
    fn asks(&self, ask: &mut dyn FnMut(Ask<'_>));

    /// Answers it: see [`crate::read`].
    fn read(&self, sight: &mut Sight<'_>) -> Result<Self::Answer, Halt>;
}

/// Something that a caller has to be allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ask<'a> {
    /// What.
    pub permission: Permission,
    /// About whom, if it is about one subject.
    pub subject: Option<&'a SubjectId>,
    /// In which relation, if it reads one: who may depends on its `read`.
    pub relation: Option<&'a Name>,
}

impl<'a> Ask<'a> {
    /// About nobody in particular.
    pub(crate) fn of(permission: Permission) -> Self {
        Self { permission, subject: None, relation: None }
    }

    pub(crate) fn about(self, subject: Option<&'a SubjectId>) -> Self {
        Self { subject, ..self }
    }

    pub(crate) fn within(self, relation: &'a Name) -> Self {
        Self { relation: Some(relation), ..self }
    }
}

/// Gathers the questions of a capability into its `Query` and its `Answer`, and into those of all; `with` are types that answers are
/// made of.
macro_rules! questions {
    ($capability:ident: $($name:ident($question:ident) -> $answer:ident),+ $(; with $($part:ident),+)?) => {
        /// Each of the questions by its name, with its answer.
        pub mod questions {
            pub use super::{$($question, $answer),+ $(, $($part),+)?};
        }

        /// Everything that can be asked here.
        #[derive(Clone, PartialEq, Eq, Debug)]
        #[allow(missing_docs, reason = "each question says what it is")]
        pub enum Query {
            $($name($question),)+
        }

        /// Everything that is answered here.
        #[derive(Clone, PartialEq, Debug, serde::Serialize)]
        #[serde(untagged)]
        #[allow(missing_docs, reason = "each answer says what it is")]
        pub enum Answer {
            $($name($answer),)+
        }

        $(impl From<$question> for $crate::query::Query {
            fn from(question: $question) -> Self {
                Self::$capability(Query::$name(question))
            }
        }

        impl From<$answer> for $crate::query::Answer {
            fn from(answer: $answer) -> Self {
                Self::$capability(Answer::$name(answer))
            }
        }

        impl TryFrom<$crate::query::Answer> for $answer {
            type Error = $crate::query::Answer;

            #[allow(irrefutable_let_patterns, reason = "a capability may have one answer")]
            fn try_from(answer: $crate::query::Answer) -> Result<Self, $crate::query::Answer> {
                match answer {
                    $crate::query::Answer::$capability(Answer::$name(answer)) => Ok(answer),
                    other => Err(other),
                }
            }
        })+

        impl Query {
            pub(crate) fn asks(&self, ask: &mut dyn FnMut($crate::query::Ask<'_>)) {
                match self {
                    $(Self::$name(question) => $crate::query::Question::asks(question, ask),)+
                }
            }

            pub(crate) fn read(
                &self,
                sight: &mut $crate::read::Sight<'_>,
            ) -> Result<$crate::query::Answer, $crate::read::Halt> {
                match self {
                    $(Self::$name(question) => $crate::query::Question::read(question, sight).map(Into::into),)+
                }
            }
        }
    };
}
pub(crate) use questions;

/// Makes the questions and the answers of all from the list of capabilities that can be asked.
macro_rules! queries {
    ($($(#[$doc:meta])* $name:ident in $capability:ident,)+) => {
        /// Each question by its name, with its answer.
        pub(crate) mod queries {
            $(pub use crate::$capability::read::questions::*;)+
        }

        /// A question.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum Query {
            $($(#[$doc])* $name($crate::$capability::read::Query),)+
        }

        /// An answer to a query.
        #[derive(Clone, PartialEq, Debug, serde::Serialize)]
        #[serde(untagged)]
        pub enum Answer {
            $($(#[$doc])* $name($crate::$capability::read::Answer),)+
        }

        impl Query {
            /// What a caller has to be allowed, one after the other.
            pub fn asks(&self, ask: &mut dyn FnMut(Ask<'_>)) {
                match self {
                    $(Self::$name(query) => query.asks(ask),)+
                }
            }

            /// Answers it: see [`crate::read`].
            pub fn read(&self, sight: &mut Sight<'_>) -> Result<Answer, Halt> {
                match self {
                    $(Self::$name(query) => query.read(sight),)+
                }
            }
        }
    };
}
pub(crate) use queries;
