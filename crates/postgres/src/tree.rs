//! How many stand before a place in an order, without counting them one by one.
//!
//! An order is cut into nodes of about a hundred rows each, those into nodes of about a hundred nodes,
//! and those once more: a counted tree over the index. A node says where it begins and how many rows it has; it ends
//! where the next one begins. Who stands before a place: all rows of the uppermost nodes before it, then of the lower
//! ones, then those of its own node that the index has before it. That is some two hundred rows of ten million,
//! and rows with equal scores are rows like all others, since a node may begin in the midst of them. It begins at a
//! score and what comes behind it and names nobody: whoever was forgotten is nowhere in the tree. Rows that share both,
//! from several servers, are in one node.
//!
//! A commit adds what it changes to the nodes, net: a row that moves within a node writes none. While it does, nodes
//! neither appear nor go: it shares a fence of the order that cutting holds alone. Whoever changes an order or tells a rank of it
//! takes a turn, from before the nodes are changed until the commit: so what it tells is what stands there right after it.
//! A node that has grown too large is cut, and one that is empty is joined to the one before, behind the answer: see `cut.rs`.

use crate::ordered::InOrder;

/// The height of the uppermost nodes.
pub(crate) const TOP: i16 = 2;
/// What is left of a node that was cut.
pub(crate) const NODE_HALF: i64 = 64;
/// A node is cut when it has more than this.
pub(crate) const NODE_MAX: i64 = 2 * NODE_HALF;
/// Behind everybody.
pub(crate) const END: &str = "9223372036854775807";

/// The first node of each height begins before everybody.
pub(crate) fn put_roots() -> String {
    format!(
        "WITH put AS (
             INSERT INTO order_node (in_order, height, down, reached, n)
             SELECT w.in_order, h.height, {MIN}, -1, 0
             FROM (SELECT DISTINCT in_order FROM unnest($1::text[]) AS w(in_order) ORDER BY 1) AS w,
                  generate_series(0, {TOP}) AS h(height)
             ON CONFLICT DO NOTHING RETURNING 1)
         SELECT count(*) FROM put",
        MIN = i64::MIN
    )
}

/// Where a node begins, or would.
pub(crate) fn at(row: &str) -> String {
    format!("({row}.down, {row}.reached)")
}

/// The node of `w` at a height.
fn node_of(height: &str) -> String {
    format!(
        "(SELECT t.down, t.reached FROM order_node t
          WHERE t.in_order = w.in_order AND t.height = {height} AND {} <= {}
          ORDER BY t.down DESC, t.reached DESC LIMIT 1)",
        at("t"),
        at("w")
    )
}

/// Adds to the nodes, in their order. Gives those that should be cut or joined.
pub(crate) fn add_to_nodes() -> String {
    format!(
        "WITH moved AS (
             SELECT w.in_order, h.height, t.down, t.reached, sum(w.by)::int8 AS by
             FROM unnest($1::text[], $2::int8[], $3::int8[], $4::int8[]) AS w(in_order, down, reached, by)
             CROSS JOIN generate_series(0, {TOP}) AS h(height)
             CROSS JOIN LATERAL {node} AS t
             GROUP BY 1, 2, 3, 4 HAVING sum(w.by) <> 0 ORDER BY 1, 2, 3, 4),
         put AS (
             UPDATE order_node t SET n = t.n + w.by FROM moved w
             WHERE t.in_order = w.in_order AND t.height = w.height AND t.down = w.down AND t.reached = w.reached
             RETURNING t.*),
         odd AS (SELECT * FROM put WHERE height = 0 AND (n > {NODE_MAX} OR n = 0 AND reached >= 0))
         SELECT array_agg(in_order), array_agg(down), array_agg(reached) FROM odd",
        node = node_of("h.height"),
    )
}

/// SQL for a list of how many stand before points in orders of one kind of rows, named by the parameters from `$first` on: see
/// `points.rs`.
pub(crate) fn ranks(standing: InOrder, first: usize) -> String {
    ranks_with(standing, first, None)
}

/// The same, where points may wait for numbers that were just taken: how many of those come after each is in parameter `$after`.
fn ranks_with(standing: InOrder, first: usize, after: Option<usize>) -> String {
    let parts: Vec<String> = (0..standing.parts()).map(|number| format!("part{number}")).collect();
    let types = ["text", "int8", "int8", "text"].into_iter().chain(parts.iter().map(|_| "text"));
    let mut arrays: Vec<String> = types.zip(first..).map(|(of, n)| format!("${n}::{of}[]")).collect();
    let typed: Vec<String> =
        standing.typed_parts().iter().zip(&parts).map(|(part, name)| format!("{part} AS {name}")).collect();
    let mut names = parts.join(", ");
    let mut reached = "w.reached".to_owned();
    if let Some(after) = after {
        arrays.push(format!("${after}::int8[]"));
        names.push_str(", after");
        let is_sequence = standing.table().is_sequence(&standing.typed_parts());
        let given = format!("SELECT s.last - w.after FROM sequence s WHERE {is_sequence}");
        reached = format!("coalesce(({given}), w.reached) AS reached");
    }
    let points = format!(
        "(SELECT w.in_order, w.down, {reached}, w.id, {} FROM unnest({}) AS w(in_order, down, reached, id, {names}) OFFSET 0) AS w",
        typed.join(", "),
        arrays.join(", "),
    );
    let mut sums = Vec::new();
    let mut nodes = String::new();
    let mut from = vec![i64::MIN.to_string(), "-1".into()];
    for height in (0..=TOP).rev() {
        let node = format!("h{height}");
        let table = format!("order_node n WHERE n.in_order = w.in_order AND n.height = {height}");
        let to = ["down", "reached"].map(|column| format!("{node}.{column}")).to_vec();
        sums.extend(between("n.n", &table, &["n.down".into(), "n.reached".into()], &from, &to));
        nodes.push_str(&format!(" LEFT JOIN LATERAL {} AS {node} ON true", node_of(&height.to_string())));
        from = to;
    }
    let inside: Vec<String> = parts.iter().map(|part| format!("w.{part}")).collect();
    let table = format!("{} s WHERE {}", standing.table().name(), standing.is_in("s", &inside));
    let (columns, from) = (standing.columns("s"), standing.place(&from[0], &from[1], "''"));
    let to = standing.place("w.down", "w.reached", "w.id");
    if standing.has_score() {
        sums.extend(between("1 AS n", &table, &columns, &from, &to));
    } else {
        let (at, from, to) = (columns.join(", "), from.join(", "), to.join(", "));
        sums.push(sum_of("1 AS n", &table, &format!("({at}) >= ({from}) AND ({at}) < ({to})"), &columns));
    }
    format!("ARRAY(SELECT {} FROM {points}{nodes})", sums.join(" + "))
}

/// Tells ranks, and checks those of which something is expected.
pub(crate) fn tell_ranks(standing: InOrder) -> String {
    format!(
        "SELECT r.ranks, expect(NOT EXISTS (
             SELECT FROM unnest(r.ranks, ${}::int8[]) AS w(n, expected) WHERE w.n <> w.expected))
         FROM (SELECT {} AS ranks OFFSET 0) AS r",
        5 + standing.parts(),
        ranks_with(standing, 1, standing.table().declared().kind.sequence().map(|_| 6 + standing.parts()))
    )
}

/// SQL for what lies between two places, as three numbers to add: with the first one's score, between both, and with the
/// last one's. A comparison of whole rows would read on to the last of equal scores, since an index scan ends by the
/// first column of such a comparison alone.
fn between(what: &str, table: &str, column: &[String], from: &[String], to: &[String]) -> [String; 3] {
    let (down, from_down, to_down) = (&column[0], &from[0], &to[0]);
    let (among, from_among, to_among) = (column[1..].join(", "), from[1..].join(", "), to[1..].join(", "));
    let mut to_or_end = to[1..].to_vec();
    to_or_end[0] = format!("CASE WHEN {from_down} = {to_down} THEN {} ELSE {END} END", to[1]);
    let conditions = [
        format!("{down} = {from_down} AND ({among}) >= ({from_among}) AND ({among}) < ({})", to_or_end.join(", ")),
        format!("{down} > {from_down} AND {down} < {to_down}"),
        format!("{down} = {to_down} AND {from_down} < {to_down} AND ({among}) < ({to_among})"),
    ];
    conditions.map(|condition| sum_of(what, table, &condition, column))
}

/// SQL that adds up. Told the order, it takes the index of places, whatever the table held when the plan was made.
fn sum_of(what: &str, table: &str, condition: &str, column: &[String]) -> String {
    let in_order = format!("ORDER BY {} OFFSET 0", column.join(", "));
    format!("coalesce((SELECT sum(x.n)::int8 FROM (SELECT {what} FROM {table} AND {condition} {in_order}) AS x), 0)")
}

/// SQL that finds a rank in an order: where its node of height 0 begins, and how many of it stand before the rank. The
/// order's name is parameter 2, the rank 3.
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
        let next = |name: &str| {
            let end = if height == TOP { END.to_owned() } else { format!("{upper}.next_{name}") };
            format!("coalesce(lead(t.{name}) OVER places, {end}) AS next_{name}")
        };
        from.push(format!(
            "LATERAL (SELECT * FROM (
                 SELECT t.down, t.reached, ({before} + sum(t.n) OVER places - t.n)::int8 AS before, {}, {}
                 FROM order_node t WHERE t.in_order = $2 AND t.height = {height} {inside}
                 WINDOW places AS (ORDER BY t.down, t.reached)) AS t
             WHERE t.before <= $3 ORDER BY t.down DESC, t.reached DESC LIMIT 1) AS h{height}",
            next("down"),
            next("reached")
        ));
    }
    format!("SELECT h0.down, h0.reached, $3::int8 - h0.before FROM {}", from.join(" CROSS JOIN "))
}
