//! Who leads?

use serde::Deserialize;
use tally::core::command::{ChangeScore, ScoreChange};
use tally::core::limits::PAGE_ITEMS_DEFAULT;
use tally::core::query::{BoardAnswer, BoardQuery, SeasonsAnswer, SeasonsQuery, StandingAnswer, StandingQuery};
use tally::core::reply::ScoreReply;
use tally::core::{Name, SubjectId, Timestamp};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Idempotent, tagged};
use crate::app::App;
use crate::auth::policy::Permission;
use crate::http::body::Posted;
use crate::http::problem::Problem;
use crate::http::request::{Caller, Outcome, Pair, Params, Segments};

/// Its routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    tagged("Boards", "Who leads?")
        .routes(routes!(add_score, set_score, leave_board, read_standing))
        .routes(routes!(read_board))
        .routes(routes!(read_seasons))
}

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

/// A member whose score the caller may change.
fn scored(caller: &Caller, path: &Pair) -> Result<(Name, SubjectId), Problem> {
    let (board, member) = caller.two(path)?;
    caller.may(Permission::Score, Some(&member), None)?;
    Ok((board, member))
}

/// Add to a member's score
///
/// A retry adds again, so send an Idempotency-Key where that matters. Not on a board that keeps the best score.
#[utoipa::path(post, path = "/v1/boards/{board}/{member}", tag = "Boards",
    params(
        ("board" = String, Path, description = "A declared board, such as `points`"),
        ("member" = String, Path, description = "Whose score"),
        Idempotent,
    ),
    request_body(content = AddScoreBody), responses((status = 200, description = "The member as it stands now", body = ScoreReply)))]
pub async fn add_score(caller: Caller, Segments(path): Segments<Pair>, posted: Posted) -> Outcome {
    let (board, member) = scored(&caller, &path)?;
    let (AddScoreBody { by }, once) = posted.read(&caller)?;
    caller.reply(ChangeScore { board, member, change: ScoreChange::By(by) }, once).await
}

/// Set a member's score
///
/// On a board that keeps the best score, a lower one changes nothing.
#[utoipa::path(put, path = "/v1/boards/{board}/{member}", tag = "Boards",
    params(
        ("board" = String, Path, description = "A declared board"),
        ("member" = String, Path, description = "Whose score"),
    ),
    request_body(content = SetScoreBody), responses((status = 200, description = "The member as it stands now", body = ScoreReply)))]
pub async fn set_score(caller: Caller, Segments(path): Segments<Pair>, posted: Posted) -> Outcome {
    let (board, member) = scored(&caller, &path)?;
    let SetScoreBody { score } = posted.body()?;
    caller.reply(ChangeScore { board, member, change: ScoreChange::To(score) }, None).await
}

/// Take a member off a board
#[utoipa::path(delete, path = "/v1/boards/{board}/{member}", tag = "Boards",
    params(
        ("board" = String, Path, description = "A declared board"),
        ("member" = String, Path, description = "Who leaves"),
    ),
    responses((status = 200, description = "Whether it was there", body = ScoreReply)))]
pub async fn leave_board(caller: Caller, Segments(path): Segments<Pair>) -> Outcome {
    let (board, member) = scored(&caller, &path)?;
    caller.reply(ChangeScore { board, member, change: ScoreChange::Leave }, None).await
}

/// Who leads?
#[utoipa::path(get, path = "/v1/boards/{board}", tag = "Boards",
    params(("board" = String, Path, description = "A declared board"), Part),
    responses((status = 200, description = "A page, the best first", body = BoardAnswer)))]
pub async fn read_board(
    caller: Caller,
    Segments(board): Segments<String>,
    Params(Part { limit, cursor, rank, season }): Params<Part>,
) -> Outcome {
    let (board, limit) = (Name::new(&board)?, limit.unwrap_or(PAGE_ITEMS_DEFAULT));
    caller.answer(BoardQuery { board, season, rank, limit, cursor }).await
}

/// Where does this member stand, and next to whom?
#[utoipa::path(get, path = "/v1/boards/{board}/{member}", tag = "Boards",
    params(
        ("board" = String, Path, description = "A declared board"),
        ("member" = String, Path, description = "Who; `me` for a user's own token"),
        Around,
    ),
    responses((status = 200, description = "Its rank; null where it is not on the board", body = StandingAnswer)))]
pub async fn read_standing(caller: Caller, Segments(path): Segments<Pair>, Params(asked): Params<Around>) -> Outcome {
    let (board, member) = caller.two(&path)?;
    let (season, around) = (asked.season, asked.around.unwrap_or_default());
    caller.answer(StandingQuery { board, season, member, around }).await
}

/// Which seasons has this board had?
///
/// Newest first, each from its first score on. It stands beside the boards, since a member may be called anything.
#[utoipa::path(get, path = "/v1/seasons/{board}", tag = "Boards",
    params(("board" = String, Path, description = "A declared board with seasons")),
    responses((status = 200, description = "The seasons", body = SeasonsAnswer)))]
pub async fn read_seasons(caller: Caller, Segments(board): Segments<String>) -> Outcome {
    let board = Name::new(&board)?;
    caller.answer(SeasonsQuery { board }).await
}
