-- The last number that was given of a sequence. Whoever commits takes the next ones here, after all other locks; so they are in
-- the order of commits, and nobody conflicts. They end where every client can still tell them exactly.
CREATE TABLE sequence (
    home text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    last bigint NOT NULL CONSTRAINT sequence_has_numbers CHECK (last <= 9007199254740992),
    PRIMARY KEY (home, name)
) WITH (fillfactor = 50);

-- The first number that the lane's last commit took of each sequence, for one whose answer was lost.
ALTER TABLE lane ADD COLUMN numbers bigint[];

-- Which ticket a subject's token stands for.
CREATE TABLE entry (
    room    text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    token   text COLLATE "C" NOT NULL,
    seq     bigint NOT NULL,
    PRIMARY KEY (room, subject, token)
) WITH (fillfactor = 70);
