-- Whether the different scores of a board are counted beside its members, as dense ranks need it: said by the board itself, from its
-- first score on. Boards that have scores already say what they were filled as.
ALTER TABLE board ADD COLUMN dense boolean NOT NULL DEFAULT false;
ALTER TABLE board ALTER COLUMN dense DROP DEFAULT;
INSERT INTO board (board, seasons, dense)
    SELECT DISTINCT s.board, '{}'::timestamptz[], false FROM score s
    WHERE NOT EXISTS (SELECT FROM board b WHERE b.board = s.board);
UPDATE board b SET dense = true WHERE EXISTS (SELECT FROM score s WHERE s.board = b.board AND s.levels);
