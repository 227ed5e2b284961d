//! Who was there on which day?

use axum::extract::State;
use serde::Deserialize;
use tally::core::attendance::DAYS_MAX;
use tally::core::command::{Attend, Command};
use tally::core::query::{
    DayAnswer, DayQuery, DaysAnswer, DaysQuery, Matching, PresenceAnswer, PresenceQuery, SubjectDaysAnswer,
    SubjectDaysQuery,
};
use tally::core::reply::AttendReply;
use tally::core::{Day, Name};
use utoipa::IntoParams;

use super::{Outcome, answer, apply};
use crate::app::App;
use crate::auth::policy::Permission;
use crate::http::problem::Problem;
use crate::http::request::{Caller, Params, Segments};

/// From when to when.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Between {
    /// The first day.
    #[param(value_type = Option<String>, format = Date)]
    from: Option<Day>,
    /// The last day.
    #[param(value_type = Option<String>, format = Date)]
    to: Option<Day>,
}

/// Which days: `days`, or `from` and `to`.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Days {
    /// 1 to 400 days, separated by commas.
    #[param(example = "2026-01-01,2026-01-02")]
    days: Option<String>,
    /// The first day.
    #[param(value_type = Option<String>, format = Date)]
    from: Option<Day>,
    /// The last day.
    #[param(value_type = Option<String>, format = Date)]
    to: Option<Day>,
    /// Whoever was there on any of the days, or on all of them.
    #[serde(default)]
    #[param(inline)]
    r#match: Matching,
}

/// A day of the path; none is today.
fn day(segment: &str) -> Result<Option<Day>, Problem> {
    if segment == "today" { Ok(None) } else { Ok(Some(segment.parse()?)) }
}

async fn mark(app: &App, caller: &Caller, path: (String, String, String), present: bool) -> Outcome {
    caller.signed_in()?;
    let (sheet, day, subject) = (Name::new(&path.0)?, day(&path.1)?, caller.subject(&path.2)?);
    caller.may(Permission::Attend, Some(&subject), None)?;
    apply(app, caller, Command::from(Attend { sheet, day, subject, present }), None).await
}

/// Say that a subject was there on a day
///
/// Idempotent: the same request again answers `changed: false` and writes nothing.
#[utoipa::path(
    put, path = "/v1/attendance/{sheet}/{day}/{subject}", tag = "Attendance",
    params(
        ("sheet" = String, Path, description = "A declared sheet, such as `daily`"),
        ("day" = String, Path, description = "A date such as 2026-01-31, or `today`: where the sheet's days end"),
        ("subject" = String, Path, description = "Who; `me` for a user's own token"),
    ),
    responses((status = 200, description = "The subject on that day", body = AttendReply), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn attend(
    State(app): State<App>,
    caller: Caller,
    Segments(path): Segments<(String, String, String)>,
) -> Outcome {
    mark(&app, &caller, path, true).await
}

/// Say that a subject was not there on a day
#[utoipa::path(
    delete, path = "/v1/attendance/{sheet}/{day}/{subject}", tag = "Attendance",
    params(
        ("sheet" = String, Path, description = "A declared sheet"),
        ("day" = String, Path, description = "A date, or `today`"),
        ("subject" = String, Path, description = "Who; `me` for a user's own token"),
    ),
    responses((status = 200, description = "The subject on that day", body = AttendReply), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn be_absent(
    State(app): State<App>,
    caller: Caller,
    Segments(path): Segments<(String, String, String)>,
) -> Outcome {
    mark(&app, &caller, path, false).await
}

/// Was this subject there on this day?
#[utoipa::path(
    get, path = "/v1/attendance/{sheet}/{day}/{subject}", tag = "Attendance",
    params(
        ("sheet" = String, Path, description = "A declared sheet"),
        ("day" = String, Path, description = "A date, or `today`"),
        ("subject" = String, Path, description = "Who; `me` for a user's own token"),
    ),
    responses((status = 200, description = "Whether it was", body = PresenceAnswer), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn read_presence(
    State(app): State<App>,
    caller: Caller,
    Segments(path): Segments<(String, String, String)>,
) -> Outcome {
    caller.signed_in()?;
    let (sheet, day, subject) = (Name::new(&path.0)?, day(&path.1)?, caller.subject(&path.2)?);
    answer(&app, &caller, PresenceQuery { sheet, day, subject }).await
}

/// How many were there on a day?
#[utoipa::path(
    get, path = "/v1/attendance/{sheet}/{day}", tag = "Attendance",
    params(
        ("sheet" = String, Path, description = "A declared sheet"),
        ("day" = String, Path, description = "A date, or `today`"),
    ),
    responses((status = 200, description = "How many", body = DayAnswer), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn read_day(
    State(app): State<App>,
    caller: Caller,
    Segments((sheet, on)): Segments<(String, String)>,
) -> Outcome {
    caller.signed_in()?;
    let (sheet, day) = (Name::new(&sheet)?, day(&on)?);
    answer(&app, &caller, DayQuery { sheet, day }).await
}

/// How many different ones were there on any, or on all, of several days?
#[utoipa::path(
    get, path = "/v1/attendance/{sheet}", tag = "Attendance",
    params(("sheet" = String, Path, description = "A declared sheet"), Days),
    responses((status = 200, description = "How many", body = DaysAnswer), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn read_days(
    State(app): State<App>,
    caller: Caller,
    Segments(sheet): Segments<String>,
    Params(asked): Params<Days>,
) -> Outcome {
    caller.signed_in()?;
    let (sheet, matching) = (Name::new(&sheet)?, asked.r#match);
    let days = days(&asked)?;
    answer(&app, &caller, DaysQuery { sheet, days, matching }).await
}

fn days(asked: &Days) -> Result<Vec<Day>, Problem> {
    match (&asked.days, asked.from, asked.to) {
        (Some(days), None, None) => {
            Ok(days.split(',').map(|day| day.trim().parse()).collect::<Result<Vec<Day>, _>>()?)
        }
        (None, Some(from), Some(to)) if from > to => Err(Problem::bad_request("from is later than to")),
        (None, Some(from), Some(to)) if (to.0 - from.0) as usize >= DAYS_MAX => {
            Err(Problem::bad_request(format!("from and to are at most {DAYS_MAX} days apart")))
        }
        (None, Some(from), Some(to)) => Ok((from.0..=to.0).map(Day).collect()),
        _ => Err(Problem::bad_request("name the days with days=2026-01-01,2026-01-02, or with from= and to=")),
    }
}

/// On which days was this subject there, and how many in a row?
#[utoipa::path(
    get, path = "/v1/subjects/{subject}/attendance/{sheet}", tag = "Attendance",
    params(
        ("subject" = String, Path, description = "Who; `me` for a user's own token"),
        ("sheet" = String, Path, description = "A declared sheet"),
        Between,
    ),
    responses((status = 200, description = "The days and the streaks", body = SubjectDaysAnswer), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn read_subject_days(
    State(app): State<App>,
    caller: Caller,
    Segments((subject, sheet)): Segments<(String, String)>,
    Params(Between { from, to }): Params<Between>,
) -> Outcome {
    caller.signed_in()?;
    let (sheet, subject) = (Name::new(&sheet)?, caller.subject(&subject)?);
    answer(&app, &caller, SubjectDaysQuery { sheet, subject, from, to }).await
}
