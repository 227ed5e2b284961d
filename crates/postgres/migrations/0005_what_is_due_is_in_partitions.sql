-- Servers share what is due by partitions: rows of one home are in one. The partition is written with the row, as the server
-- that makes it counts it; here it is counted once for the rows that are there. Of a kind that is kept with the store as a
-- whole all rows are in partition 0, and there is no column.
CREATE FUNCTION due_partition_of(home bytea) RETURNS smallint LANGUAGE plpgsql AS $$
DECLARE
    crc int := 0;
BEGIN
    FOR place IN 0 .. length(home) - 1 LOOP
        crc := crc # (get_byte(home, place) << 8);
        FOR bit IN 1 .. 8 LOOP
            crc := (CASE WHEN crc & 32768 = 0 THEN crc << 1 ELSE (crc << 1) # 4129 END) & 65535;
        END LOOP;
    END LOOP;
    RETURN crc % 64;
END $$;

ALTER TABLE replay ADD COLUMN due_partition smallint;
UPDATE replay SET due_partition =
    due_partition_of(convert_to(caller, 'UTF8') || '\x00'::bytea || convert_to(key, 'UTF8'));
ALTER TABLE replay ALTER COLUMN due_partition SET NOT NULL;
DROP INDEX replay_by_expiry;
CREATE INDEX replay_due ON replay (due_partition, expires_at, caller, key);

-- What counts of a home ends at a brace that closes, and is never empty.
ALTER TABLE rate_limit ADD COLUMN due_partition smallint;
UPDATE rate_limit SET due_partition = due_partition_of(convert_to(
    CASE WHEN key = '' OR left(key, 1) IN ('}', '%') THEN '%' ELSE '' END || split_part(key, '}', 1), 'UTF8'));
ALTER TABLE rate_limit ALTER COLUMN due_partition SET NOT NULL;
DROP INDEX rate_limit_by_look;
CREATE INDEX rate_limit_due ON rate_limit (due_partition, look_at, name, key);

DROP FUNCTION due_partition_of(bytea);

-- Work that one server at a time does for all. A lease lasts as long as its server says that it is there.
CREATE UNLOGGED TABLE lease (
    work   text COLLATE "C" PRIMARY KEY,
    server bigint NOT NULL
);
-- Whether a server takes part in what is due.
ALTER TABLE server ADD COLUMN shares boolean NOT NULL DEFAULT false;

-- What is watched is a topic: `counts post:42`. Servers say anew what they watch when they start.
DROP TABLE watch;
CREATE UNLOGGED TABLE watch (
    topic  text COLLATE "C" NOT NULL,
    server bigint NOT NULL,
    PRIMARY KEY (topic, server)
);
