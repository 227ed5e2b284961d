-- Counting: how many times, how many different ones, who was there, who leads, what is used of a limit.

-- Totals that count no edges are in object_total too, spread as the others are. Their kind is one that no relation has:
--   '#' a counter:              relation is its name, object its key
--   '@' who was there on a day: relation is the sheet, object the day
CREATE INDEX object_total_counter ON object_total (relation, object) WHERE kind = '#' AND shard = 0;

-- When a counter was last added to, of counters that keep it.
CREATE TABLE counter_last (
    counter text COLLATE "C" NOT NULL,
    key     text COLLATE "C" NOT NULL,
    last_at timestamptz NOT NULL,
    PRIMARY KEY (counter, key)
) WITH (fillfactor = 70);

CREATE VIEW counter AS
    SELECT t.relation AS counter, t.object AS key, sum(t.n)::int8 AS value,
           (SELECT l.last_at FROM counter_last l WHERE l.counter = t.relation AND l.key = t.object) AS last_at
    FROM object_total t WHERE t.kind = '#' GROUP BY t.relation, t.object;

-- A HyperLogLog sketch of who was seen.
CREATE TABLE unique_count (
    unique_name text COLLATE "C" NOT NULL,
    key         text COLLATE "C" NOT NULL,
    sketch      bytea NOT NULL,
    PRIMARY KEY (unique_name, key)
) WITH (fillfactor = 70);

CREATE TABLE rate_limit (
    name    text COLLATE "C" NOT NULL,
    key     text COLLATE "C" NOT NULL,
    state   json NOT NULL,
    -- When to look whether the row may go.
    look_at timestamptz NOT NULL,
    PRIMARY KEY (name, key)
) WITH (fillfactor = 70);
CREATE INDEX rate_limit_by_look ON rate_limit (look_at, name, key);

-- The number that the next subject of a sheet gets.
CREATE TABLE attendance_sheet (
    sheet       text COLLATE "C" PRIMARY KEY,
    next_number bigint NOT NULL
) WITH (fillfactor = 70);

-- Which chunks a day has.
CREATE TABLE attendance_day (
    sheet  text COLLATE "C" NOT NULL,
    day    date NOT NULL,
    chunks bigint[] NOT NULL,
    PRIMARY KEY (sheet, day)
) WITH (fillfactor = 70);

-- Who was there: a Roaring bitmap of the lower 13 bits of their numbers; chunk is the upper part.
CREATE TABLE attendance_chunk (
    sheet text COLLATE "C" NOT NULL,
    day   date NOT NULL,
    chunk bigint NOT NULL,
    bits  bytea NOT NULL,
    PRIMARY KEY (sheet, day, chunk)
) WITH (fillfactor = 70);

-- Every name that was ever declared, so that forgetting finds what is not declared any more.
CREATE TABLE declared (
    id    text COLLATE "C" PRIMARY KEY,
    names json NOT NULL
);

-- A subject's number, and its days: a Roaring bitmap of days since 1970. Those that were forgotten still count for the
-- day, until the job has taken them back.
CREATE TABLE attendee (
    sheet   text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    number  bigint NOT NULL,
    days    bytea NOT NULL,
    forgotten bytea NOT NULL,
    PRIMARY KEY (sheet, subject)
) WITH (fillfactor = 70);

CREATE VIEW attendance AS
    SELECT t.relation AS sheet, t.object::date AS day, sum(t.n)::int8 AS present
    FROM object_total t WHERE t.kind = '@' GROUP BY t.relation, t.object;

-- The seasons that a board has had, the newest last.
CREATE TABLE board (
    board   text COLLATE "C" PRIMARY KEY,
    seasons timestamptz[] NOT NULL
);

CREATE TABLE score (
    board      text COLLATE "C" NOT NULL,
    -- When the season began; 1970 for a board without seasons.
    season     timestamptz NOT NULL,
    -- Not members, but the different scores that they have: what dense ranks count.
    levels     boolean NOT NULL,
    member     text COLLATE "C" NOT NULL,
    score      bigint NOT NULL,
    -- When it was reached: microseconds since 1970. Of a level, how many members have it.
    reached_us bigint NOT NULL,
    PRIMARY KEY (board, season, levels, member)
) WITH (fillfactor = 80);
-- The order of a board. ~score falls as the score rises, so that one comparison of rows is the order:
-- ORDER BY ~score, reached_us, member reads a page from here.
CREATE INDEX score_order ON score (board, season, levels, (~score), reached_us, member);

-- How many members stand from here up to the next one of the same height. See src/tree.rs.
CREATE TABLE score_node (
    board      text COLLATE "C" NOT NULL,
    season     timestamptz NOT NULL,
    levels     boolean NOT NULL,
    -- 0 for nodes of about a hundred members, 1 for as many of those, 2 for as many of these.
    height     smallint NOT NULL,
    -- Where it begins: ~score and reached_us. It names nobody, so that nothing here is left of one who was forgotten.
    down       bigint NOT NULL,
    reached_us bigint NOT NULL,
    n          bigint NOT NULL,
    PRIMARY KEY (board, season, levels, height, down, reached_us)
) WITH (fillfactor = 50);
