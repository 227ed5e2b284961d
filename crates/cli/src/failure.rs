//! Why a command did not do what was asked: one clear line for a person, an exit code for a program.

use tally::Error;
use tally::core::Refusal;
use tally_settings::ConfigErrors;

/// A command that did not succeed.
#[derive(Debug)]
pub(super) struct Failure {
    /// The process's exit code.
    pub(super) exit: u8,
    /// What to print; empty when the command has said everything already.
    text: String,
}

impl Failure {
    /// Refused, or it could not be done.
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { exit: 1, text: text.into() }
    }

    /// The command line or the settings are wrong.
    pub(super) fn usage(text: impl Into<String>) -> Self {
        Self { exit: 2, text: text.into() }
    }

    /// A problem of the contract.
    pub(super) fn problem(code: &str, detail: &str) -> Self {
        Self::new(format!("{code}: {detail}"))
    }

    /// An exit code for a report that is printed already.
    pub(super) fn reported(exit: u8) -> Self {
        Self { exit, text: String::new() }
    }

    /// The same with another exit code.
    pub(super) fn exiting(self, exit: u8) -> Self {
        Self { exit, ..self }
    }

    /// What went wrong.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Tells the person.
    pub(super) fn print(&self) {
        if !self.text.is_empty() {
            eprintln!("tally: {}", super::output::printable(&self.text));
        }
    }
}

impl From<ConfigErrors> for Failure {
    fn from(errors: ConfigErrors) -> Self {
        let several = if errors.0.len() == 1 { "a problem" } else { "problems" };
        Self::usage(format!("the settings have {several}:\n{errors}"))
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::problem(refusal.code().name(), &refusal.to_string())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(refusal) => refusal.into(),
            other => Self::new(other.to_string()),
        }
    }
}

impl From<tally::engine::StoreError> for Failure {
    fn from(error: tally::engine::StoreError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<tally::embedded::store::StoreError> for Failure {
    fn from(error: tally::embedded::store::StoreError) -> Self {
        Self::new(error.to_string())
    }
}

/// What the client says, with what can be done about it on a command line.
impl From<tally_client::Error> for Failure {
    fn from(error: tally_client::Error) -> Self {
        use tally_client::{Error, Unsigned};
        match &error {
            Error::Problem(problem) if problem.code == "unauthenticated" => {
                Self::new(format!("{error}; give a key with --key or TALLY_KEY"))
            }
            Error::Unreachable { .. } => Self::new(format!(
                "{error}; start it with `tally serve`, name another with --url, or a folder with --store"
            )),
            Error::NotTrusted { reason: Unsigned::Unknown, .. } => {
                Self::new(format!("{error}, with --ca FILE or TALLY_CA"))
            }
            Error::Ca(_) => Self::usage(format!("--ca: {error}")),
            Error::SecretInUrl => Self::usage(format!("{error}: use --key or TALLY_KEY")),
            Error::NotInAUrl(_) => Self::usage(format!("{error}; use --store")),
            Error::NotAServer(_) | Error::BadKey => Self::usage(error.to_string()),
            Error::Problem(_)
            | Error::NotTrusted { .. }
            | Error::Setup(_)
            | Error::NotInABatch(_)
            | Error::TimedOut { .. }
            | Error::OtherWords { .. }
            | Error::NotUnderstood(_)
            | Error::Failed(_) => Self::new(error.to_string()),
        }
    }
}

impl From<tally_client::FailedJob> for Failure {
    fn from(failed: tally_client::FailedJob) -> Self {
        Self::new(failed.to_string())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(error.to_string())
    }
}
