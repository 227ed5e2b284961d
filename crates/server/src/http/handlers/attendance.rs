//! Who was there on which day?

use serde::Deserialize;
use tally::core::attendance::DAYS_MAX;
use tally::core::command::Attend;
use tally::core::query::{
    DayAnswer, DayQuery, DaysAnswer, DaysQuery, Matching, PresenceAnswer, PresenceQuery, SubjectDaysAnswer,
    SubjectDaysQuery,
};
use tally::core::reply::AttendReply;
use tally::core::{Day, Name};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::tagged;
use crate::app::App;
use crate::auth::policy::Permission;
use crate::http::problem::Problem;
use crate::http::request::{Caller, Named, Outcome, Pair, Params, Segments, Triple};

/// Its routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    tagged("Attendance", "Who was there on which day?")
        .routes(routes!(attend, be_absent, read_presence))
        .routes(routes!(read_day))
        .routes(routes!(read_days))
        .routes(routes!(read_subject_days))
}

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

/// A day of a sheet.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "describes the path")]
struct OfSheet {
    /// A declared sheet
    sheet: String,
    /// A date, or `today`
    day: String,
}

/// A subject on a day.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "describes the path")]
struct OnDay {
    /// A declared sheet
    sheet: String,
    /// A date, or `today`
    day: String,
    /// Who; `me` for a user's own token
    subject: String,
}

/// A day of the path; none is today.
impl Named for Option<Day> {
    fn named(segment: &str, _caller: &Caller) -> Result<Self, Problem> {
        if segment == "today" { Ok(None) } else { Ok(Some(segment.parse()?)) }
    }
}

async fn mark(caller: &Caller, path: &Triple, present: bool) -> Outcome {
    let (sheet, day, subject) = caller.three(path)?;
    caller.may(Permission::Attend, Some(&subject), None)?;
    caller.reply(Attend { sheet, day, subject, present }, None).await
}

/// Say that a subject was there on a day
///
/// Idempotent: the same request again answers `changed: false` and writes nothing.
#[utoipa::path(put, path = "/v1/attendance/{sheet}/{day}/{subject}", tag = "Attendance",
    params(
        ("sheet" = String, Path, description = "A declared sheet, such as `daily`"),
        ("day" = String, Path, description = "A date such as 2026-01-31, or `today`: where the sheet's days end"),
        ("subject" = String, Path, description = "Who; `me` for a user's own token"),
    ),
    responses((status = 200, description = "The subject on that day", body = AttendReply)))]
pub async fn attend(caller: Caller, Segments(path): Segments<Triple>) -> Outcome {
    mark(&caller, &path, true).await
}

/// Say that a subject was not there on a day
#[utoipa::path(delete, path = "/v1/attendance/{sheet}/{day}/{subject}", tag = "Attendance", params(OnDay),
    responses((status = 200, description = "The subject on that day", body = AttendReply)))]
pub async fn be_absent(caller: Caller, Segments(path): Segments<Triple>) -> Outcome {
    mark(&caller, &path, false).await
}

/// Was this subject there on this day?
#[utoipa::path(get, path = "/v1/attendance/{sheet}/{day}/{subject}", tag = "Attendance", params(OnDay),
    responses((status = 200, description = "Whether it was", body = PresenceAnswer)))]
pub async fn read_presence(caller: Caller, Segments(path): Segments<Triple>) -> Outcome {
    let (sheet, day, subject) = caller.three(&path)?;
    caller.answer(PresenceQuery { sheet, day, subject }).await
}

/// How many were there on a day?
#[utoipa::path(get, path = "/v1/attendance/{sheet}/{day}", tag = "Attendance", params(OfSheet),
    responses((status = 200, description = "How many", body = DayAnswer)))]
pub async fn read_day(caller: Caller, Segments(path): Segments<Pair>) -> Outcome {
    let (sheet, day) = caller.two(&path)?;
    caller.answer(DayQuery { sheet, day }).await
}

/// How many different ones were there on any, or on all, of several days?
#[utoipa::path(get, path = "/v1/attendance/{sheet}", tag = "Attendance",
    params(("sheet" = String, Path, description = "A declared sheet"), Days),
    responses((status = 200, description = "How many", body = DaysAnswer)))]
pub async fn read_days(caller: Caller, Segments(sheet): Segments<String>, Params(asked): Params<Days>) -> Outcome {
    let (sheet, matching) = (Name::new(&sheet)?, asked.r#match);
    let days = days(&asked)?;
    caller.answer(DaysQuery { sheet, days, matching }).await
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
#[utoipa::path(get, path = "/v1/subjects/{subject}/attendance/{sheet}", tag = "Attendance",
    params(
        ("subject" = String, Path, description = "Who; `me` for a user's own token"),
        ("sheet" = String, Path, description = "A declared sheet"),
        Between,
    ),
    responses((status = 200, description = "The days and the streaks", body = SubjectDaysAnswer)))]
pub async fn read_subject_days(
    caller: Caller,
    Segments(path): Segments<Pair>,
    Params(Between { from, to }): Params<Between>,
) -> Outcome {
    let (subject, sheet) = caller.two(&path)?;
    caller.answer(SubjectDaysQuery { sheet, subject, from, to }).await
}
