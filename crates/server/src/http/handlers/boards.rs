//! Who leads?

use axum::extract::State;
use serde::Deserialize;
use tally::core::command::{ChangeScore, Command, ScoreChange};
use tally::core::limits::PAGE_ITEMS_DEFAULT;
use tally::core::query::{BoardAnswer, BoardQuery, SeasonsAnswer, SeasonsQuery, StandingAnswer, StandingQuery};
use tally::core::reply::ScoreReply;
use tally::core::{Name, Timestamp};
use utoipa::{IntoParams, ToSchema};

use super::{Outcome, answer, apply};
use crate::app::App;
use crate::auth::policy::Permission;
use crate::http::body::Posted;
use crate::http::request::{Caller, Params, Segments};

/// How much to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddScoreBody {
    /// Any integer; a score stays within 2^53.
    by: i64,
}

/// What the score is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetScoreBody {
    /// Within 2^53.
    score: i64,
}

/// Which part of a board.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Part {
    /// Items on the page.
    #[param(minimum = 1, maximum = 100, default = 50)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
    /// Begin at this place instead of at the top.
    #[param(minimum = 1)]
    rank: Option<u64>,
    /// When the season began. Default: the season of now.
    #[param(value_type = Option<String>, format = DateTime)]
    season: Option<Timestamp>,
}

/// With whom, and when.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Around {
    /// How many neighbours on either side.
    #[param(maximum = 50)]
    around: Option<u32>,
    /// When the season began. Default: the season of now.
    #[param(value_type = Option<String>, format = DateTime)]
    season: Option<Timestamp>,
}

type Pair = (String, String);

/// Add to a member's score
///
/// A retry adds again, so send an Idempotency-Key where that matters. Not on a board that keeps the best score.
#[utoipa::path(
    post, path = "/v1/boards/{board}/{member}", tag = "Boards",
    params(
        ("board" = String, Path, description = "A declared board, such as `points`"),
        ("member" = String, Path, description = "Whose score"),
        ("Idempotency-Key" = Option<String>, Header, description = "1 to 128 visible ASCII characters"),
    ),
    request_body(content = AddScoreBody),
    responses((status = 200, description = "The member as it stands now", body = ScoreReply), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn add_score(
    State(app): State<App>,
    caller: Caller,
    Segments((board, member)): Segments<Pair>,
    posted: Posted,
) -> Outcome {
    caller.signed_in()?;
    let (board, member) = (Name::new(&board)?, caller.subject(&member)?);
    caller.may(Permission::Score, Some(&member), None)?;
    let (AddScoreBody { by }, once) = posted.read(&app, &caller)?;
    apply(&app, &caller, Command::from(ChangeScore { board, member, change: ScoreChange::By(by) }), once).await
}

/// Set a member's score
///
/// On a board that keeps the best score, a lower one changes nothing.
#[utoipa::path(
    put, path = "/v1/boards/{board}/{member}", tag = "Boards",
    params(
        ("board" = String, Path, description = "A declared board"),
        ("member" = String, Path, description = "Whose score"),
    ),
    request_body(content = SetScoreBody),
    responses((status = 200, description = "The member as it stands now", body = ScoreReply), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn set_score(
    State(app): State<App>,
    caller: Caller,
    Segments((board, member)): Segments<Pair>,
    posted: Posted,
) -> Outcome {
    caller.signed_in()?;
    let (board, member) = (Name::new(&board)?, caller.subject(&member)?);
    caller.may(Permission::Score, Some(&member), None)?;
    let SetScoreBody { score } = posted.body()?;
    apply(&app, &caller, Command::from(ChangeScore { board, member, change: ScoreChange::To(score) }), None).await
}

/// Take a member off a board
#[utoipa::path(
    delete, path = "/v1/boards/{board}/{member}", tag = "Boards",
    params(
        ("board" = String, Path, description = "A declared board"),
        ("member" = String, Path, description = "Who leaves"),
    ),
    responses((status = 200, description = "Whether it was there", body = ScoreReply), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn leave_board(State(app): State<App>, caller: Caller, Segments((board, member)): Segments<Pair>) -> Outcome {
    caller.signed_in()?;
    let (board, member) = (Name::new(&board)?, caller.subject(&member)?);
    caller.may(Permission::Score, Some(&member), None)?;
    apply(&app, &caller, Command::from(ChangeScore { board, member, change: ScoreChange::Leave }), None).await
}

/// Who leads?
#[utoipa::path(
    get, path = "/v1/boards/{board}", tag = "Boards",
    params(("board" = String, Path, description = "A declared board"), Part),
    responses((status = 200, description = "A page, the best first", body = BoardAnswer), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn read_board(
    State(app): State<App>,
    caller: Caller,
    Segments(board): Segments<String>,
    Params(Part { limit, cursor, rank, season }): Params<Part>,
) -> Outcome {
    caller.signed_in()?;
    let (board, limit) = (Name::new(&board)?, limit.unwrap_or(PAGE_ITEMS_DEFAULT));
    answer(&app, &caller, BoardQuery { board, season, rank, limit, cursor }).await
}

/// Where does this member stand, and next to whom?
#[utoipa::path(
    get, path = "/v1/boards/{board}/{member}", tag = "Boards",
    params(
        ("board" = String, Path, description = "A declared board"),
        ("member" = String, Path, description = "Who; `me` for a user's own token"),
        Around,
    ),
    responses((status = 200, description = "Its rank; null where it is not on the board", body = StandingAnswer), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn read_standing(
    State(app): State<App>,
    caller: Caller,
    Segments((board, member)): Segments<Pair>,
    Params(Around { around, season }): Params<Around>,
) -> Outcome {
    caller.signed_in()?;
    let (board, member) = (Name::new(&board)?, caller.subject(&member)?);
    caller.signed_in()?;
    let around = around.unwrap_or_default();
    answer(&app, &caller, StandingQuery { board, season, member, around }).await
}

/// Which seasons has this board had?
///
/// Newest first, each from its first score on. It stands beside the boards, since a member may be called anything.
#[utoipa::path(
    get, path = "/v1/seasons/{board}", tag = "Boards",
    params(("board" = String, Path, description = "A declared board with seasons")),
    responses((status = 200, description = "The seasons", body = SeasonsAnswer), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn read_seasons(State(app): State<App>, caller: Caller, Segments(board): Segments<String>) -> Outcome {
    caller.signed_in()?;
    let board = Name::new(&board)?;
    answer(&app, &caller, SeasonsQuery { board }).await
}
