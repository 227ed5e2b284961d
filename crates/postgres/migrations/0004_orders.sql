-- Orders of any rows, where there were boards alone.

-- How many rows stand from here up to the next node of the same height. See src/tree.rs.
CREATE TABLE order_node (
    -- The table whose rows stand in it, and what their keys begin with: 'score:weekly:1767571200000:false', 'ticket:sale'.
    in_order text COLLATE "C" NOT NULL,
    -- 0 for nodes of about a hundred rows, 1 for as many of those, 2 for as many of these.
    height   smallint NOT NULL,
    -- Where it begins: ~score, and what comes behind the score. It names nobody, so that nothing here is left of one who was
    -- forgotten.
    down     bigint NOT NULL,
    reached  bigint NOT NULL,
    n        bigint NOT NULL,
    PRIMARY KEY (in_order, height, down, reached)
) WITH (fillfactor = 50);
INSERT INTO order_node (in_order, height, down, reached, n)
    SELECT 'score:' || board || ':' || (extract(epoch from season) * 1000)::int8 || ':' || levels::text, height, down, reached_us, n
    FROM score_node;
DROP TABLE score_node;

-- A place in a room's queue, and what became of it.
CREATE TABLE ticket (
    room        text COLLATE "C" NOT NULL,
    seq         bigint NOT NULL,
    subject     text COLLATE "C" NOT NULL,
    token       text NOT NULL,
    -- BEFORE_OPEN, WAITING, READY, ADMITTED, DONE, LEFT or EXPIRED.
    state       text COLLATE "C" NOT NULL,
    joined_at   timestamptz NOT NULL,
    alive_until timestamptz NOT NULL,
    PRIMARY KEY (room, seq)
) WITH (fillfactor = 80);
-- The queue: who waits, in the order of their numbers.
CREATE INDEX ticket_order ON ticket (room, seq) WHERE state = 'WAITING';
