-- Views for people who ask the database itself, named and shaped as in the schema of the CYBERCUBE webhooks standard.
-- They are read-only, and hold no secret: who may read them needs no right on the tables beneath.
--
-- The ids in them are made up on the way out, so a search by one of those cannot use an index. webhook_event and
-- webhook_event_deliveries take an event's id in that form and find it by its key.

-- public_code renders a code with its check character: WEB-X2M8KD-Z.
CREATE FUNCTION public_code(entity text, code text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN code <> '' THEN entity || '-' || code || '-' ||
        substr('ABCDEFGHJKLMNPQRSTUVWXYZ23456789', get_byte(sha256(convert_to(entity || '|' || code, 'UTF8')), 0) % 32 + 1, 1) END
$$;

-- base32 is the 26-character form of an id, which sorts as the id does: 130 bits for 128, five to a character.
CREATE FUNCTION base32(id uuid) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT string_agg(substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substring(bits FROM 5 * i + 1 FOR 5)::bit(5)::int + 1, 1), '' ORDER BY i)
    FROM (SELECT B'00' || ('x' || translate(id::text, '-', ''))::bit(128) AS bits) AS number, generate_series(0, 25) AS i
$$;

-- from_base32 reads it; null for what is none.
CREATE FUNCTION from_base32(text text) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN upper(text) ~ '^[0-7][0-9A-HJKMNP-TV-Z]{25}$' THEN (
        SELECT string_agg(to_hex(substring(bits FROM 4 * i + 3 FOR 4)::bit(4)::int), '' ORDER BY i)::uuid
        FROM (SELECT string_agg((strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(upper(text), i, 1)) - 1)::bit(5)::text, '' ORDER BY i)::varbit AS bits
            FROM generate_series(1, 26) AS i) AS number, generate_series(0, 31) AS i) END
$$;

-- webhook_event_id is an event's id in the standard: its producer's own where it was told in it, else ours.
CREATE FUNCTION webhook_event_id(id uuid, format text, source_id text) RETURNS varchar(30) LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN format = 'cybercube' AND source_id <> '' THEN source_id ELSE 'evt_' || base32(id) END
$$;

-- webhook_delivery_id is an attempt's id in the standard.
CREATE FUNCTION webhook_delivery_id(id uuid) RETURNS varchar(30) LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT 'wh_' || substr(translate(id::text, '-', ''), 9)
$$;

-- readable makes a document of JSON text, in which the database does not take NUL.
CREATE FUNCTION readable(document text) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT replace(document, '\u0000', '\ufffd')::jsonb
$$;

-- document_of reads a body; null for what is no JSON.
CREATE FUNCTION document_of(body bytea) RETURNS jsonb LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS $$
BEGIN
    RETURN readable(convert_from(body, 'UTF8'));
EXCEPTION WHEN data_exception OR program_limit_exceeded OR syntax_error THEN
    RETURN NULL;
END $$;

-- webhook_data is the data of an event that was not told in the standard: a resource that is what the event carries, with
-- an id and a type where it has none.
CREATE FUNCTION webhook_data(id text, type text, format text, content_type text, body bytea) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('object', jsonb_build_object(
            'id', CASE WHEN told AND document ->> 'subject' <> '' THEN document ->> 'subject' ELSE id END,
            'object', split_part(type, '.', 1)) ||
        CASE WHEN told THEN document -> 'data'
            WHEN jsonb_typeof(document) = 'object' THEN document
            WHEN document IS NOT NULL THEN jsonb_build_object('value', document)
            ELSE jsonb_build_object('content_type', content_type, 'base64', translate(encode(body, 'base64'), E'\n', '')) END)
    FROM (SELECT document, coalesce(format = 'ojs' AND jsonb_typeof(document -> 'data') = 'object', false) AS told
        FROM document_of(body) AS document) AS read
$$;

CREATE VIEW webhook_endpoints AS
    SELECT e.id, public_code('WEB', e.code)::varchar(16) AS public_id, e.tenant_id AS account_id, e.url, e.description,
        coalesce(e.patterns, '{}') AS events, coalesce(s.hash, '')::varchar(64) AS secret_hash,
        nullif(s.hint, '')::varchar(10) AS secret_hint, e.status::varchar(20) AS status, coalesce(h.streak, 0) AS failure_count,
        greatest(h.last_accepted_at, h.last_failure_at) AS last_delivery_at, h.last_accepted_at AS last_success_at,
        h.last_failure_at, e.created_at, e.updated_at
    FROM endpoints AS e
    LEFT JOIN endpoint_health AS h ON h.endpoint_id = e.id
    LEFT JOIN LATERAL (SELECT hash, hint FROM endpoint_secrets AS s WHERE s.endpoint_id = e.id
            AND (s.not_before IS NULL OR s.not_before <= now()) AND (s.expires_at IS NULL OR s.expires_at > now())
        ORDER BY s.id DESC LIMIT 1) AS s ON true
    WHERE e.status <> 'deleted';

-- shown_events has what webhook_events shows, with the key by which to look for it.
CREATE VIEW shown_events AS
    SELECT e.id AS key, webhook_event_id(e.id, e.format, e.source_id)::varchar(30) AS id, e.type::varchar(100) AS type,
        coalesce(CASE WHEN e.format = 'cybercube' THEN document_of(e.body) ->> 'api_version' END, '2026-01-17')::varchar(20) AS api_version,
        e.tenant_id AS account_id,
        coalesce(CASE WHEN e.format = 'cybercube' THEN document_of(e.body) -> 'livemode' = 'true' END,
            e.type NOT IN ('webhook.test', 'godwit.test')) AS livemode,
        coalesce(CASE WHEN e.format = 'cybercube' THEN document_of(e.body) -> 'data' END,
            webhook_data(webhook_event_id(e.id, e.format, e.source_id), e.type, e.format, e.content_type, e.body)) AS data,
        coalesce(e.occurred_at, e.created_at) AS created_at
    FROM events AS e;

CREATE VIEW webhook_events AS
    SELECT id, type, api_version, account_id, livemode, data, created_at FROM shown_events;

-- shown_attempts has the members of an attempt as the standard names them. begins is where its run began.
CREATE VIEW shown_attempts AS
    SELECT a.delivery_id, a.id, a.n,
        (SELECT coalesce(max(b.n), 1) FROM attempts AS b
            WHERE b.delivery_id = a.delivery_id AND b.n <= a.n AND b.trigger NOT IN ('retry', 'refresh', 'moved')) AS begins,
        CASE WHEN a.outcome = 'accepted' THEN 'success'
            WHEN a.outcome = 'transient' AND a.next_at IS NULL AND a.trigger <> 'test' THEN 'exhausted' ELSE 'failed' END AS status,
        nullif(a.status, 0) AS response_status, (a.duration / 1000)::integer AS response_time_ms,
        left(readable(a.trace::text) ->> 'response_body', 4096) AS response_body,
        CASE WHEN a.outcome = 'accepted' THEN NULL
            WHEN a.status > 0 AND a.reason NOT IN ('redirect-forbidden', 'redirect-limit', 'redirect-invalid')
                AND readable(a.verdict::text) ->> 'class' IS DISTINCT FROM 'transport' THEN 'HTTP ' || a.status
            ELSE concat_ws(': ', a.reason, readable(a.trace::text) ->> 'detail') END AS error_message,
        coalesce((SELECT b.next_at FROM attempts AS b WHERE b.delivery_id = a.delivery_id AND b.n = a.n - 1), a.started_at) AS scheduled_at,
        CASE WHEN a.outcome = 'accepted' THEN a.started_at + a.duration * interval '1 microsecond' END AS delivered_at,
        a.started_at
    FROM attempts AS a;

-- delivery_attempts joins them to their deliveries: the attempts of what is finished, those of what is pending, and one that is to come. The next retry stands with the failure that it follows and
-- nowhere else, so that a search for retries looks at what is pending alone. All go with their endpoint, which also tells
-- the tenant: by that what is pending has an index.
CREATE VIEW delivery_attempts AS
    SELECT d.tenant_id, d.id AS delivery_id, a.id, d.event_id, d.endpoint_id,
        CASE WHEN d.run_attempts > d.attempts - a.n THEN d.run_attempts - (d.attempts - a.n) ELSE a.n - a.begins + 1 END AS attempt,
        a.status, a.response_status, a.response_time_ms, a.response_body, a.error_message, a.scheduled_at, a.delivered_at,
        NULL::timestamptz AS next_retry_at, a.started_at AS created_at
    FROM endpoints AS o JOIN deliveries AS d ON d.endpoint_id = o.id AND d.tenant_id = o.tenant_id
        JOIN shown_attempts AS a ON a.delivery_id = d.id
    WHERE o.status <> 'deleted'
    UNION ALL
    SELECT p.tenant_id, p.id, a.id, p.event_id, p.endpoint_id,
        CASE WHEN p.run_attempts > p.attempts - a.n THEN p.run_attempts - (p.attempts - a.n) ELSE a.n - a.begins + 1 END,
        a.status, a.response_status, a.response_time_ms, a.response_body, a.error_message, a.scheduled_at, a.delivered_at,
        NULL, a.started_at
    FROM endpoints AS o JOIN pending_deliveries AS p ON p.endpoint_id = o.id AND p.tenant_id = o.tenant_id
        JOIN shown_attempts AS a ON a.delivery_id = p.id
    WHERE o.status <> 'deleted' AND p.attempts > 0 AND (a.n < p.attempts OR p.run_attempts = 0)
    UNION ALL
    SELECT p.tenant_id, p.id, a.id, p.event_id, p.endpoint_id, p.run_attempts, 'failed', a.response_status, a.response_time_ms,
        a.response_body, a.error_message, a.scheduled_at, NULL, p.due_at, a.started_at
    FROM endpoints AS o JOIN pending_deliveries AS p ON p.endpoint_id = o.id AND p.tenant_id = o.tenant_id
        JOIN shown_attempts AS a ON a.delivery_id = p.id AND a.n = p.attempts
    WHERE o.status <> 'deleted' AND p.attempts > 0 AND p.run_attempts > 0
    UNION ALL
    SELECT p.tenant_id, p.id, p.id, p.event_id, p.endpoint_id, p.run_attempts + 1, 'pending', NULL, NULL, NULL, NULL, p.due_at,
        NULL, NULL, p.updated_at
    FROM endpoints AS o JOIN pending_deliveries AS p ON p.endpoint_id = o.id AND p.tenant_id = o.tenant_id
    WHERE o.status <> 'deleted';

-- shown_deliveries has what webhook_deliveries shows, with the keys by which to look for it.
CREATE VIEW shown_deliveries AS
    SELECT a.tenant_id, a.delivery_id, webhook_delivery_id(a.id)::varchar(30) AS id,
        coalesce((SELECT webhook_event_id(e.id, e.format, e.source_id) FROM events AS e WHERE e.tenant_id = a.tenant_id AND e.id = a.event_id),
            webhook_event_id(a.event_id, NULL, NULL))::varchar(30) AS event_id,
        a.endpoint_id, a.attempt, a.status::varchar(20) AS status, a.response_status, a.response_time_ms, a.response_body,
        a.error_message, a.scheduled_at, a.delivered_at, a.next_retry_at, a.created_at
    FROM delivery_attempts AS a;

CREATE VIEW webhook_deliveries AS
    SELECT id, event_id, endpoint_id, attempt, status, response_status, response_time_ms, response_body, error_message,
        scheduled_at, delivered_at, next_retry_at, created_at FROM shown_deliveries;

-- What the standard calls expires_at. The days are added in UTC, whatever the session's time zone is.
CREATE FUNCTION month_after(at timestamptz) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (at AT TIME ZONE 'UTC' + interval '30 days') AT TIME ZONE 'UTC'
$$;

CREATE VIEW webhook_dlq AS
    SELECT md5(d.id::text || extract(epoch FROM d.dead_at))::uuid AS id,
        webhook_event_id(d.event_id, d.event_format, d.event_source_id)::varchar(30) AS event_id, d.endpoint_id,
        CASE WHEN d.reason = 'retention-limit' THEN 'not delivered within the time that events are kept'
            ELSE coalesce(nullif(coalesce((SELECT split_part(a.error_message, ': ', 1) FROM shown_attempts AS a
                    WHERE a.delivery_id = d.id AND a.n = d.attempts), CASE WHEN d.last_status > 0 THEN 'HTTP ' || d.last_status END, d.last_detail), ''), d.reason) ||
                CASE WHEN d.status = 'terminal' THEN ' (not retryable)' WHEN d.run_attempts = 1 THEN ' after 1 attempt'
                    ELSE ' after ' || d.run_attempts || ' attempts' END
        END AS failure_reason,
        (SELECT coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object('attempt', a.n - (d.attempts - d.run_attempts),
                'delivery_id', webhook_delivery_id(a.id), 'at', to_char(a.started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
                'response_status', a.response_status, 'response_time_ms', a.response_time_ms, 'error', a.error_message)) ORDER BY a.n), '[]')
            FROM shown_attempts AS a WHERE a.delivery_id = d.id AND a.n > d.attempts - d.run_attempts AND a.n <= d.attempts) AS attempts_summary,
        d.dead_at AS created_at, d.replayed_at, month_after(d.dead_at) AS expires_at
    FROM dead_letters AS d;

-- What the standard has indexes for and we had none. Events come in the order of time: a summary of each stretch of pages
-- is enough, and costs an insert next to nothing. Events with an id of their producer's are found by it. Retries that are to
-- come are few.
CREATE INDEX endpoints_by_status ON endpoints ((status::varchar(20)));
CREATE INDEX events_summary ON events USING brin (coalesce(occurred_at, created_at), (type::varchar(100)) text_bloom_ops)
    WITH (pages_per_range = 32, autosummarize = on);
CREATE INDEX events_by_source ON events (tenant_id, source_id) WHERE format = 'cybercube';
CREATE INDEX pending_deliveries_retry ON pending_deliveries (due_at) WHERE attempts > 0 AND run_attempts > 0;
CREATE INDEX dead_letters_by_end ON dead_letters (month_after(dead_at));

-- find_event finds an event of an account by its id, whoever gave it that.
CREATE FUNCTION find_event(account uuid, event_id text) RETURNS uuid LANGUAGE sql STABLE AS $$
    SELECT coalesce(
        (SELECT e.id FROM events AS e WHERE e.tenant_id = account AND e.format = 'cybercube' AND e.source_id = event_id LIMIT 1),
        (SELECT from_base32(substr(event_id, 5)) WHERE event_id LIKE 'evt\_%'))
$$;

-- webhook_event is the event of an account with an id.
CREATE FUNCTION webhook_event(account uuid, event_id text) RETURNS SETOF webhook_events LANGUAGE sql STABLE AS $$
    SELECT id, type, api_version, account_id, livemode, data, created_at FROM shown_events
    WHERE account_id = account AND key = find_event(account, event_id)
$$;

-- webhook_event_deliveries are the attempts for an event of an account. OFFSET 0 has each delivery looked up by its key.
CREATE FUNCTION webhook_event_deliveries(account uuid, event_id text) RETURNS SETOF webhook_deliveries LANGUAGE sql STABLE AS $$
    SELECT d.id, d.event_id, d.endpoint_id, d.attempt, d.status, d.response_status, d.response_time_ms, d.response_body,
        d.error_message, d.scheduled_at, d.delivered_at, d.next_retry_at, d.created_at
    FROM events AS e
    CROSS JOIN LATERAL generate_series(0, octet_length(e.deliveries) / 16 - 1) AS i
    CROSS JOIN LATERAL (SELECT * FROM shown_deliveries AS d WHERE d.tenant_id = account
        AND d.delivery_id = encode(substring(e.deliveries FROM 16 * i + 1 FOR 16), 'hex')::uuid OFFSET 0) AS d
    WHERE e.tenant_id = account AND e.id = find_event(account, event_id)
$$;

-- Writing is for the API.
CREATE FUNCTION refuse_write() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is a view to read, not to write: use the API', TG_TABLE_NAME USING ERRCODE = 'feature_not_supported';
END $$;
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['webhook_endpoints', 'webhook_events', 'webhook_deliveries', 'webhook_dlq'] LOOP
        EXECUTE format('CREATE TRIGGER read_only INSTEAD OF INSERT OR UPDATE OR DELETE ON %I FOR EACH ROW EXECUTE FUNCTION refuse_write()', name);
    END LOOP;
END $$;
