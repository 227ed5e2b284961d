-- Ids are compared by their bytes, in every database and whatever its locale.

-- An edge: somebody likes something.
CREATE TABLE edge (
    object     text COLLATE "C" NOT NULL,
    relation   text COLLATE "C" NOT NULL,
    subject    text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL,
    kind       text COLLATE "C",
    -- json, not jsonb: what the caller attached comes back as it was sent.
    meta       json,
    -- Its subject is suspended: not counted, not listed, not lost.
    hidden     boolean NOT NULL,
    PRIMARY KEY (object, relation, subject)
);
CREATE INDEX edge_by_object ON edge (object, relation, created_at DESC) WHERE NOT hidden;
CREATE INDEX edge_by_subject ON edge (subject, relation, created_at DESC) WHERE NOT hidden;
CREATE INDEX edge_hidden_by_object ON edge (object, relation, created_at DESC) WHERE hidden;
CREATE INDEX edge_hidden_by_subject ON edge (subject, relation, created_at DESC) WHERE hidden;

-- How many visible edges an object has: all of them where kind is '', otherwise those of one kind.
-- The count is the sum of n over its shards; shard 0 says how many there are.
CREATE TABLE object_total (
    object   text COLLATE "C" NOT NULL,
    relation text COLLATE "C" NOT NULL,
    kind     text COLLATE "C" NOT NULL,
    shard    smallint NOT NULL DEFAULT 0,
    shards   smallint NOT NULL DEFAULT 1,
    n        bigint NOT NULL,
    PRIMARY KEY (object, relation, kind, shard)
) WITH (fillfactor = 50);

-- How many edges a subject has, hidden ones too. Only of subjects that somebody has asked for: of
-- the others the edges themselves are the count.
CREATE TABLE subject_total (
    subject  text COLLATE "C" NOT NULL,
    relation text COLLATE "C" NOT NULL,
    n        bigint NOT NULL,
    PRIMARY KEY (subject, relation)
) WITH (fillfactor = 70);

CREATE TABLE object (
    object     text COLLATE "C" PRIMARY KEY,
    status     text,
    attributes json NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

-- Subjects that are suspended, and those that are being forgotten: until the job has ended, edges made before
-- forgotten_before_us (microseconds since 1970) count as gone. forgotten_left says how many of them are left, in
-- relations that limit how many a subject has.
CREATE TABLE subject (
    subject             text COLLATE "C" PRIMARY KEY,
    suspended_at        timestamptz,
    job                 text COLLATE "C",
    forgotten_before_us bigint,
    forgotten_left      json
);

-- Answers that are remembered by their Idempotency-Key.
CREATE TABLE replay (
    caller     text COLLATE "C" NOT NULL,
    key        text COLLATE "C" NOT NULL,
    fields     json NOT NULL,
    answer     text NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (caller, key)
);
CREATE INDEX replay_by_expiry ON replay (expires_at, caller, key);

CREATE TABLE job (
    id          text COLLATE "C" PRIMARY KEY,
    work        json NOT NULL,
    -- Edges made before this are touched: microseconds since 1970.
    before_us   bigint NOT NULL,
    edges       bigint NOT NULL,
    created_at  timestamptz NOT NULL,
    finished_at timestamptz
);
CREATE INDEX job_open ON job (id) WHERE finished_at IS NULL;
CREATE INDEX job_ended ON job (finished_at, id) WHERE finished_at IS NOT NULL;

CREATE TABLE api_key (
    id         text COLLATE "C" PRIMARY KEY,
    hash       text NOT NULL,
    role       text NOT NULL,
    name       text NOT NULL,
    created_at timestamptz NOT NULL,
    revoked_at timestamptz
);

-- A connection that commits: how many commits it made, so that one whose answer was lost can be
-- looked up; and the newest stamp among them.
CREATE TABLE lane (
    id      bigint PRIMARY KEY,
    seq     bigint NOT NULL,
    stamp   bigint NOT NULL,
    -- Given up by its server: nothing more may be committed on it.
    fenced  boolean NOT NULL DEFAULT false,
    seen_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);

-- Servers that are up, and the objects whose counts somebody watches on them.
CREATE TABLE server (
    id      bigint PRIMARY KEY,
    name    text NOT NULL,
    version text NOT NULL,
    seen_at timestamptz NOT NULL
);
CREATE UNLOGGED TABLE watch (
    object text COLLATE "C" NOT NULL,
    server bigint NOT NULL,
    PRIMARY KEY (object, server)
);

-- Ends the transaction when what was decided on has moved.
CREATE FUNCTION expect(ok boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF ok IS NOT TRUE THEN
        RAISE EXCEPTION 'a row that was decided on has changed' USING ERRCODE = 'TL409';
    END IF;
END $$;
