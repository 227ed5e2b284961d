//! How many stand before a place on a board, without counting them one by one.
//!
//! A board in its order is cut into nodes of about a hundred members each, those into nodes of about a hundred nodes,
//! and those once more: a counted tree over the index. A node says where it begins and how many members it has; it ends
//! where the next one begins. Who stands before a place: all members of the uppermost nodes before it, then of the lower
//! ones, then those of its own node that the index has before it. That is some two hundred rows for ten million members,
//! and members with equal scores are members like all others, since a node may begin in the midst of them. It begins at a
//! score and a time and names nobody: whoever was forgotten is nowhere in the tree. Members that reached the same score at
//! the same microsecond, on several servers, are in one node.
//!
//! A commit adds what it changes to the nodes, net: a score that moves within a node writes none. While it does, nodes
//! neither appear nor go: it shares a fence of the board that cutting holds alone. Whoever changes a board or tells a rank of it
//! takes a turn, from before the nodes are changed until the commit: so what it tells is what stands there right after it.
//! A node that has grown too large is cut,
//! and one that is empty is joined to the one before, behind the answer: see `cut.rs`.

use tally_core::rows::{Among, BoardKey, Changes, Key, Row, Score, ScoreKey, Standing};
use tally_core::time::Stamp;
use tally_core::view::View;
use tokio_postgres::types::ToSql;

use crate::time::At;

/// The height of the uppermost nodes.
pub(crate) const TOP: i16 = 2;
/// What is left of a node that was cut.
pub(crate) const NODE_HALF: i64 = 64;
/// A node is cut when it has more than this.
pub(crate) const NODE_MAX: i64 = 2 * NODE_HALF;
/// Behind everybody.
pub(crate) const END: &str = "9223372036854775807";
/// Where a node would begin whose first member is `s`.
pub(crate) const PLACE: &str = "(~s.score, s.reached_us)";

/// Places on boards, as arrays.
#[derive(Default)]
pub(crate) struct Places<'a> {
    boards: Vec<&'a str>,
    seasons: Vec<At>,
    levels: Vec<bool>,
    down: Vec<i64>,
    reached: Vec<i64>,
    members: Vec<&'a str>,
    by: Vec<i64>,
    expected: Vec<Option<i64>>,
}

impl<'a> Places<'a> {
    /// The ranks that a commit tells, and behind them those that it checks, as they must be after it.
    pub(crate) fn shown(view: &'a View) -> Self {
        let mut places = Self::default();
        for standing in view.told_ranks() {
            places.push_standing(standing);
            places.expected.push(None);
        }
        for (standing, _) in view.seen_ranks() {
            places.push_standing(standing);
            places.expected.push(i64::try_from(view.final_rank(standing)).ok());
        }
        places
    }

    /// The names of their boards.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.boards.iter().copied()
    }

    /// The arrays of [`tell_ranks`].
    pub(crate) fn with_expected(&self) -> Vec<&(dyn ToSql + Sync)> {
        let mut values = self.keys();
        values.push(&self.expected);
        values
    }

    fn push(&mut self, board: &'a BoardKey, score: i64, reached: i64, member: &'a str, by: i64) {
        self.boards.push(board.board.as_str());
        self.seasons.push(season(board));
        self.levels.push(board.levels);
        self.down.push(!score);
        self.reached.push(reached);
        self.members.push(member);
        self.by.push(by);
    }

    /// Where nobody stands before a place who does not stand before it in the board's order.
    pub(crate) fn push_standing(&mut self, standing: &'a Standing) {
        let (reached, member) = match &standing.among {
            Among::First => (-1, ""),
            Among::Last => (i64::MAX, ""),
            Among::At { reached, member } => (us(*reached), member.as_str()),
        };
        self.push(&standing.board, standing.score, reached, member, 0);
    }

    /// What a commit takes from the tree and adds to it.
    pub(crate) fn changed(changes: &'a Changes) -> Self {
        let mut places = Self::default();
        for (key, change) in &changes.rows {
            if let Key::Score(key) = key {
                places.push_row(key, change.before.as_ref(), -1);
                places.push_row(key, change.after.as_ref(), 1);
            }
        }
        places
    }

    fn push_row(&mut self, key: &'a ScoreKey, row: Option<&Row>, by: i64) {
        if let Some(Row::Score(score)) = row {
            self.push(&key.board, score.score, us(score.reached), key.member.as_str(), by);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.boards.is_empty()
    }

    /// The three arrays that name their boards.
    pub(crate) fn boards(&self) -> Vec<&(dyn ToSql + Sync)> {
        vec![&self.boards, &self.seasons, &self.levels]
    }

    /// The six arrays that name them.
    pub(crate) fn keys(&self) -> Vec<&(dyn ToSql + Sync)> {
        vec![&self.boards, &self.seasons, &self.levels, &self.down, &self.reached, &self.members]
    }

    /// What is added to the nodes that they are in, which know no members.
    pub(crate) fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        let mut values = self.boards();
        values.extend([&self.down as &(dyn ToSql + Sync), &self.reached, &self.by]);
        values
    }
}

/// A board's season as it is stored.
pub(crate) fn season(board: &BoardKey) -> At {
    At(Stamp::at(board.season))
}

/// When a score was reached, as it is stored.
pub(crate) fn us(reached: Stamp) -> i64 {
    i64::try_from(reached.0).unwrap_or(i64::MAX)
}

/// The place of a score in its board's order, see `score_order`.
pub(crate) fn place(score: Score) -> (i64, i64) {
    (!score.score, us(score.reached))
}

/// The first node of each height begins before everybody.
pub(crate) fn put_roots() -> String {
    format!(
        "WITH put AS (
             INSERT INTO score_node (board, season, levels, height, down, reached_us, n)
             SELECT w.board, w.season, w.levels, h.height, {MIN}, -1, 0
             FROM (SELECT DISTINCT board, season, levels FROM unnest($1::text[], $2::timestamptz[], $3::bool[])
                       AS w(board, season, levels) ORDER BY 1, 2, 3) AS w, generate_series(0, {TOP}) AS h(height)
             ON CONFLICT DO NOTHING RETURNING 1)
         SELECT count(*) FROM put",
        MIN = i64::MIN
    )
}

/// Where a node begins, or would.
pub(crate) fn at(row: &str) -> String {
    format!("({row}.down, {row}.reached_us)")
}

/// Both are on one board.
pub(crate) fn on(row: &str, other: &str) -> String {
    format!("{row}.board = {other}.board AND {row}.season = {other}.season AND {row}.levels = {other}.levels")
}

/// The node of `w` at a height.
fn node_of(height: &str) -> String {
    format!(
        "(SELECT t.down, t.reached_us FROM score_node t
          WHERE {} AND t.height = {height} AND {} <= {}
          ORDER BY t.down DESC, t.reached_us DESC LIMIT 1)",
        on("t", "w"),
        at("t"),
        at("w")
    )
}

/// Adds to the nodes, in their order. Gives those that should be cut or joined.
pub(crate) fn add_to_nodes() -> String {
    format!(
        "WITH moved AS (
             SELECT w.board, w.season, w.levels, h.height, t.down, t.reached_us, sum(w.by)::int8 AS by
             FROM unnest($1::text[], $2::timestamptz[], $3::bool[], $4::int8[], $5::int8[], $6::int8[])
                      AS w(board, season, levels, down, reached_us, by)
             CROSS JOIN generate_series(0, {TOP}) AS h(height)
             CROSS JOIN LATERAL {node} AS t
             GROUP BY 1, 2, 3, 4, 5, 6 HAVING sum(w.by) <> 0 ORDER BY 1, 2, 3, 4, 5, 6),
         put AS (
             UPDATE score_node t SET n = t.n + w.by FROM moved w
             WHERE {same} AND t.height = w.height AND t.down = w.down AND t.reached_us = w.reached_us
             RETURNING t.*),
         odd AS (SELECT * FROM put WHERE height = 0 AND (n > {NODE_MAX} OR n = 0 AND reached_us >= 0))
         SELECT array_agg(board), array_agg(season), array_agg(levels), array_agg(down), array_agg(reached_us)
         FROM odd",
        node = node_of("h.height"),
        same = on("t", "w"),
    )
}

/// SQL for a list of how many stand before places, named by six parameters from `$first` on.
pub(crate) fn ranks(first: usize) -> String {
    let types = ["text", "timestamptz", "bool", "int8", "int8", "text"];
    let arrays: Vec<String> = types.iter().zip(first..).map(|(of, n)| format!("${n}::{of}[]")).collect();
    let mut parts = Vec::new();
    let mut nodes = String::new();
    let mut from = vec![i64::MIN.to_string(), "-1".into()];
    for height in (0..=TOP).rev() {
        let node = format!("h{height}");
        let table = format!("score_node n WHERE {} AND n.height = {height}", on("n", "w"));
        let to = ["down", "reached_us"].map(|column| format!("{node}.{column}")).to_vec();
        parts.extend(between("n.n", &table, &["n.down", "n.reached_us"], &from, &to));
        nodes.push_str(&format!(" LEFT JOIN LATERAL {} AS {node} ON true", node_of(&height.to_string())));
        from = to;
    }
    from.push("''".into());
    let (table, to) =
        (format!("score s WHERE {}", on("s", "w")), ["w.down", "w.reached_us", "w.member"].map(Into::into));
    parts.extend(between("1 AS n", &table, &["~s.score", "s.reached_us", "s.member"], &from, &to));
    format!(
        "ARRAY(SELECT {} FROM unnest({}) AS w(board, season, levels, down, reached_us, member){nodes})",
        parts.join(" + "),
        arrays.join(", "),
    )
}

/// Tells ranks, and checks those of which something is expected.
pub(crate) fn tell_ranks() -> String {
    format!(
        "SELECT r.ranks, expect(NOT EXISTS (
             SELECT FROM unnest(r.ranks, $7::int8[]) AS w(n, expected) WHERE w.n <> w.expected))
         FROM (SELECT {} AS ranks OFFSET 0) AS r",
        ranks(1)
    )
}

/// SQL for what lies between two places, as three numbers to add: with the first one's score, between both, and with the
/// last one's. A comparison of whole rows would read on to the last of equal scores, since an index scan ends by the
/// first column of such a comparison alone.
fn between(what: &str, table: &str, column: &[&str], from: &[String], to: &[String]) -> [String; 3] {
    let (down, from_down, to_down) = (column[0], &from[0], &to[0]);
    let (among, from_among, to_among) = (column[1..].join(", "), from[1..].join(", "), to[1..].join(", "));
    let mut to_or_end = to[1..].to_vec();
    to_or_end[0] = format!("CASE WHEN {from_down} = {to_down} THEN {} ELSE {END} END", to[1]);
    let conditions = [
        format!("{down} = {from_down} AND ({among}) >= ({from_among}) AND ({among}) < ({})", to_or_end.join(", ")),
        format!("{down} > {from_down} AND {down} < {to_down}"),
        format!("{down} = {to_down} AND {from_down} < {to_down} AND ({among}) < ({to_among})"),
    ];
    // Told the order, it takes the index of places, whatever the table held when the plan was made.
    let in_order = format!("ORDER BY {} OFFSET 0", column.join(", "));
    conditions.map(|condition| {
        format!(
            "coalesce((SELECT sum(x.n)::int8 FROM (SELECT {what} FROM {table} AND {condition} {in_order}) AS x), 0)"
        )
    })
}

/// SQL that finds a rank on a board: where its node of height 0 begins, and how many of it stand before the rank. The
/// board is in parameters 2 to 4, the rank in 5.
pub(crate) fn node_of_rank() -> String {
    let mut from = Vec::new();
    for height in (0..=TOP).rev() {
        let upper = format!("h{}", height + 1);
        let (before, inside) = match height {
            TOP => ("0".to_owned(), String::new()),
            _ => (
                format!("{upper}.before"),
                format!(
                    "AND {} >= {} AND {} < ({upper}.next_down, {upper}.next_reached)",
                    at("t"),
                    at(&upper),
                    at("t")
                ),
            ),
        };
        let next = |of: &str, name: &str| {
            let end = if height == TOP { END.to_owned() } else { format!("{upper}.next_{name}") };
            format!("coalesce(lead(t.{of}) OVER places, {end}) AS next_{name}")
        };
        from.push(format!(
            "LATERAL (SELECT * FROM (
                 SELECT t.down, t.reached_us, ({before} + sum(t.n) OVER places - t.n)::int8 AS before, {}, {}
                 FROM score_node t
                 WHERE t.board = $2 AND t.season = $3 AND t.levels = $4 AND t.height = {height} {inside}
                 WINDOW places AS (ORDER BY t.down, t.reached_us)) AS t
             WHERE t.before <= $5 ORDER BY t.down DESC, t.reached_us DESC LIMIT 1) AS h{height}",
            next("down", "down"),
            next("reached_us", "reached")
        ));
    }
    format!("SELECT h0.down, h0.reached_us, $5::int8 - h0.before FROM {}", from.join(" CROSS JOIN "))
}
