-- The keys that sign admissions to rooms: one row for all of them.
CREATE TABLE signers (
    id    text COLLATE "C" PRIMARY KEY,
    items json NOT NULL
);
