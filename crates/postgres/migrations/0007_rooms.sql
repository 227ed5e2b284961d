-- A waiting room, as far as it seldom changes: every join stands on it.
CREATE TABLE room (
    room       text COLLATE "C" PRIMARY KEY,
    settings   json NOT NULL,
    -- What the configuration last said, where it declares the room.
    declared   json,
    secret     text NOT NULL,
    seed       text NOT NULL,
    -- BEFORE, OPENING, OPEN or DELETING.
    phase      text NOT NULL,
    -- The last ticket of those who came before the doors opened.
    early      bigint,
    awake      boolean NOT NULL,
    created_at timestamptz NOT NULL
);

-- What letting in goes by. One server at a time changes it.
CREATE TABLE room_gate (
    room          text COLLATE "C" PRIMARY KEY,
    passed        bigint NOT NULL,
    budget        bigint NOT NULL,
    budget_at     timestamptz NOT NULL,
    due_at        timestamptz NOT NULL,
    is_full       boolean NOT NULL,
    swept         bigint NOT NULL,
    recent        json NOT NULL,
    due_partition smallint NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX room_gate_due ON room_gate (due_partition, due_at, room);

-- Tickets have more to say than before; there were no rooms that could have given any.
DROP TABLE ticket;
CREATE TABLE ticket (
    room          text COLLATE "C" NOT NULL,
    seq           bigint NOT NULL,
    subject       text COLLATE "C" NOT NULL,
    token         text NOT NULL,
    -- BEFORE_OPEN, WAITING, READY, ADMITTED, DONE, LEFT or EXPIRED.
    state         text COLLATE "C" NOT NULL,
    -- What was drawn for it, where it came early and the order is drawn.
    score         bigint NOT NULL,
    joined_at     timestamptz NOT NULL,
    -- Since when it is in this state, and when that ends by itself.
    since         timestamptz NOT NULL,
    due_at        timestamptz NOT NULL,
    -- The ticket that its subject took before.
    previous      bigint,
    due_partition smallint NOT NULL,
    PRIMARY KEY (room, seq)
) WITH (fillfactor = 80);
-- The queue: who waits, in their order. ~score falls as the score rises: see score_order.
CREATE INDEX ticket_order ON ticket (room, (~score), seq) WHERE state = 'WAITING';
CREATE INDEX ticket_due ON ticket (due_partition, due_at, room, seq);

-- Places in a room's queue that were given up before it was their turn.
CREATE TABLE room_gone (
    room          text COLLATE "C" NOT NULL,
    number        bigint NOT NULL,
    places        bigint[] NOT NULL,
    due_at        timestamptz NOT NULL,
    due_partition smallint NOT NULL,
    PRIMARY KEY (room, number)
);
CREATE INDEX room_gone_due ON room_gone (due_partition, due_at, room, number);

-- The minutes of a room, for a week.
CREATE TABLE room_minute (
    room            text COLLATE "C" NOT NULL,
    minute          timestamptz NOT NULL,
    joined          bigint NOT NULL,
    admitted        bigint NOT NULL,
    left_count      bigint NOT NULL,
    expired         bigint NOT NULL,
    longest_wait_ms bigint NOT NULL,
    due_at          timestamptz NOT NULL,
    due_partition   smallint NOT NULL,
    PRIMARY KEY (room, minute)
);
CREATE INDEX room_minute_due ON room_minute (due_partition, due_at, room, minute);
