SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE FUNCTION public.base32(id uuid) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT string_agg(substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substring(bits FROM 5 * i + 1 FOR 5)::bit(5)::int + 1, 1), '' ORDER BY i)
    FROM (SELECT B'00' || ('x' || translate(id::text, '-', ''))::bit(128) AS bits) AS number, generate_series(0, 25) AS i
$$;
CREATE FUNCTION public.document_of(body bytea) RETURNS jsonb
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
    AS $$
BEGIN
    RETURN readable(convert_from(body, 'UTF8'));
EXCEPTION WHEN data_exception OR program_limit_exceeded OR syntax_error THEN
    RETURN NULL;
END $$;
CREATE FUNCTION public.expect(found_rows bigint, wanted bigint, state text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF found_rows <> wanted THEN
        RAISE EXCEPTION 'expected % rows, found %', wanted, found_rows USING ERRCODE = state;
    END IF;
END $$;
CREATE FUNCTION public.find_event(account uuid, event_id text) RETURNS uuid
    LANGUAGE sql STABLE
    AS $$
    SELECT coalesce(
        (SELECT e.id FROM events AS e WHERE e.tenant_id = account AND e.format = 'cybercube' AND e.source_id = event_id LIMIT 1),
        (SELECT from_base32(substr(event_id, 5)) WHERE event_id LIKE 'evt\_%'))
$$;
CREATE FUNCTION public.from_base32(text text) RETURNS uuid
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $_$
    SELECT CASE WHEN upper(text) ~ '^[0-7][0-9A-HJKMNP-TV-Z]{25}$' THEN (
        SELECT string_agg(to_hex(substring(bits FROM 4 * i + 3 FOR 4)::bit(4)::int), '' ORDER BY i)::uuid
        FROM (SELECT string_agg((strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(upper(text), i, 1)) - 1)::bit(5)::text, '' ORDER BY i)::varbit AS bits
            FROM generate_series(1, 26) AS i) AS number, generate_series(0, 31) AS i) END
$_$;
CREATE FUNCTION public.month_after(at timestamp with time zone) RETURNS timestamp with time zone
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT (at AT TIME ZONE 'UTC' + interval '30 days') AT TIME ZONE 'UTC'
$$;
CREATE FUNCTION public.note_config_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    changed record;
BEGIN
    IF TG_OP = 'DELETE' THEN
        changed := OLD;
    ELSE
        changed := NEW;
    END IF;
    CASE TG_TABLE_NAME
        WHEN 'endpoints' THEN PERFORM raise_config_version('endpoint', changed.id, changed.tenant_id, NULL);
        WHEN 'endpoint_secrets' THEN PERFORM raise_config_version('endpoint', changed.endpoint_id, changed.tenant_id, NULL);
        WHEN 'api_keys' THEN PERFORM raise_config_version('key', changed.id, changed.tenant_id, NULL);
        WHEN 'tenants' THEN PERFORM raise_config_version('tenant', changed.id, changed.id, NULL);
        WHEN 'event_types' THEN PERFORM raise_config_version('event_type', NULL, changed.tenant_id, changed.name);
    END CASE;
    RETURN NULL;
END $$;
CREATE FUNCTION public.public_code(entity text, code text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT CASE WHEN code <> '' THEN entity || '-' || code || '-' ||
        substr('ABCDEFGHJKLMNPQRSTUVWXYZ23456789', get_byte(sha256(convert_to(entity || '|' || code, 'UTF8')), 0) % 32 + 1, 1) END
$$;
CREATE FUNCTION public.raise_config_version(kind text, id uuid, tenant_id uuid, name text) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    raised text := current_setting('godwit.config_version', true);
    next bigint;
BEGIN
    IF coalesce(raised, '') = '' THEN
        UPDATE config_version AS c SET version = (((c.version >> 16) + 1) << 16) + floor(random() * 65536)::bigint
            RETURNING c.version INTO next;
        PERFORM set_config('godwit.config_version', next::text, true);
        IF (next >> 16) % 1000 = 0 THEN
            DELETE FROM config_changes AS c WHERE c.version < ((next >> 16) - 20000) << 16;
        END IF;
    ELSE
        next := raised;
    END IF;
    INSERT INTO config_changes (version, kind, id, tenant_id, name) VALUES (next, kind, id, tenant_id, name);
END $$;
CREATE FUNCTION public.readable(document text) RETURNS jsonb
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT replace(document, '\u0000', '\ufffd')::jsonb
$$;
CREATE FUNCTION public.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'evidence is append-only: % of % is refused', TG_OP, TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE FUNCTION public.refuse_write() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION '% is a view to read, not to write: use the API', TG_TABLE_NAME USING ERRCODE = 'feature_not_supported';
END $$;
CREATE FUNCTION public.webhook_data(id text, type text, format text, content_type text, body bytea) RETURNS jsonb
    LANGUAGE sql STABLE
    AS $$
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
CREATE FUNCTION public.webhook_delivery_id(id uuid) RETURNS character varying
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT 'wh_' || substr(translate(id::text, '-', ''), 9)
$$;
CREATE FUNCTION public.webhook_event_id(id uuid, format text, source_id text) RETURNS character varying
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT CASE WHEN format = 'cybercube' AND source_id <> '' THEN source_id ELSE 'evt_' || base32(id) END
$$;
SET default_tablespace = '';
CREATE TABLE public.events (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    principal uuid,
    created_at timestamp with time zone,
    type text NOT NULL,
    key text NOT NULL,
    content_type text NOT NULL,
    key_slot bigint NOT NULL,
    deliveries bytea NOT NULL,
    attributes json,
    body bytea NOT NULL,
    format text,
    source_id text,
    occurred_at timestamp with time zone,
    carried json
)
PARTITION BY RANGE (id);
ALTER TABLE ONLY public.events ALTER COLUMN body SET COMPRESSION lz4;
CREATE VIEW public.shown_events AS
 SELECT e.id AS key,
    (public.webhook_event_id(e.id, e.format, e.source_id))::character varying(30) AS id,
    (e.type)::character varying(100) AS type,
    (COALESCE(
        CASE
            WHEN (e.format = 'cybercube'::text) THEN (public.document_of(e.body) ->> 'api_version'::text)
            ELSE NULL::text
        END, '2026-01-17'::text))::character varying(20) AS api_version,
    e.tenant_id AS account_id,
    COALESCE(
        CASE
            WHEN (e.format = 'cybercube'::text) THEN ((public.document_of(e.body) -> 'livemode'::text) = 'true'::jsonb)
            ELSE NULL::boolean
        END, (e.type <> ALL (ARRAY['webhook.test'::text, 'godwit.test'::text]))) AS livemode,
    COALESCE(
        CASE
            WHEN (e.format = 'cybercube'::text) THEN (public.document_of(e.body) -> 'data'::text)
            ELSE NULL::jsonb
        END, public.webhook_data((public.webhook_event_id(e.id, e.format, e.source_id))::text, e.type, e.format, e.content_type, e.body)) AS data,
    COALESCE(e.occurred_at, e.created_at) AS created_at
   FROM public.events e;
CREATE VIEW public.webhook_events AS
 SELECT shown_events.id,
    shown_events.type,
    shown_events.api_version,
    shown_events.account_id,
    shown_events.livemode,
    shown_events.data,
    shown_events.created_at
   FROM public.shown_events;
CREATE FUNCTION public.webhook_event(account uuid, event_id text) RETURNS SETOF public.webhook_events
    LANGUAGE sql STABLE
    AS $$
    SELECT id, type, api_version, account_id, livemode, data, created_at FROM shown_events
    WHERE account_id = account AND key = find_event(account, event_id)
$$;
CREATE TABLE public.attempts (
    delivery_id uuid NOT NULL,
    id uuid NOT NULL,
    started_at timestamp with time zone,
    next_at timestamp with time zone,
    duration bigint NOT NULL,
    n integer NOT NULL,
    status integer NOT NULL,
    trigger text NOT NULL,
    outcome text NOT NULL,
    reason text NOT NULL,
    url text NOT NULL,
    verdict json,
    trace json
)
PARTITION BY RANGE (id);
CREATE TABLE public.deliveries (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    event_id uuid NOT NULL,
    endpoint_id uuid NOT NULL,
    created_at timestamp with time zone,
    updated_at timestamp with time zone,
    due_at timestamp with time zone,
    run_first_at timestamp with time zone,
    attempts integer NOT NULL,
    last_status integer NOT NULL,
    run_attempts integer NOT NULL,
    run_refreshed boolean NOT NULL,
    status text NOT NULL,
    reason text NOT NULL,
    run_trigger text NOT NULL,
    run_actor text NOT NULL
)
PARTITION BY RANGE (id);
SET default_table_access_method = heap;
CREATE TABLE public.endpoints (
    id uuid NOT NULL,
    tenant_id uuid NOT NULL,
    url text NOT NULL,
    method text NOT NULL,
    profile text NOT NULL,
    description text NOT NULL,
    patterns text[],
    filter json,
    policy json,
    metadata json,
    sealed bytea,
    sealed_info json,
    status text NOT NULL,
    status_reason text NOT NULL,
    status_at timestamp with time zone,
    created_at timestamp with time zone,
    updated_at timestamp with time zone,
    version bigint NOT NULL,
    code text DEFAULT ''::text NOT NULL,
    reenable_at timestamp with time zone
);
CREATE TABLE public.pending_deliveries (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    event_id uuid NOT NULL,
    endpoint_id uuid NOT NULL,
    claim_epoch bigint NOT NULL,
    created_at timestamp with time zone,
    updated_at timestamp with time zone,
    due_at timestamp with time zone NOT NULL,
    run_first_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    last_status integer DEFAULT 0 NOT NULL,
    run_attempts integer DEFAULT 0 NOT NULL,
    shard smallint NOT NULL,
    run_refreshed boolean DEFAULT false NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    run_trigger text NOT NULL,
    run_actor text DEFAULT ''::text NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.05', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_cost_delay='0', autovacuum_analyze_scale_factor='0.5');
CREATE VIEW public.shown_attempts AS
 SELECT a.delivery_id,
    a.id,
    a.n,
    ( SELECT COALESCE(max(b.n), 1) AS "coalesce"
           FROM public.attempts b
          WHERE ((b.delivery_id = a.delivery_id) AND (b.n <= a.n) AND (b.trigger <> ALL (ARRAY['retry'::text, 'refresh'::text, 'moved'::text])))) AS begins,
        CASE
            WHEN (a.outcome = 'accepted'::text) THEN 'success'::text
            WHEN ((a.outcome = 'transient'::text) AND (a.next_at IS NULL) AND (a.trigger <> 'test'::text)) THEN 'exhausted'::text
            ELSE 'failed'::text
        END AS status,
    NULLIF(a.status, 0) AS response_status,
    ((a.duration / 1000))::integer AS response_time_ms,
    "left"((public.readable((a.trace)::text) ->> 'response_body'::text), 4096) AS response_body,
        CASE
            WHEN (a.outcome = 'accepted'::text) THEN NULL::text
            WHEN ((a.status > 0) AND (a.reason <> ALL (ARRAY['redirect-forbidden'::text, 'redirect-limit'::text, 'redirect-invalid'::text])) AND ((public.readable((a.verdict)::text) ->> 'class'::text) IS DISTINCT FROM 'transport'::text)) THEN ('HTTP '::text || a.status)
            ELSE concat_ws(': '::text, a.reason, (public.readable((a.trace)::text) ->> 'detail'::text))
        END AS error_message,
    COALESCE(( SELECT b.next_at
           FROM public.attempts b
          WHERE ((b.delivery_id = a.delivery_id) AND (b.n = (a.n - 1)))), a.started_at) AS scheduled_at,
        CASE
            WHEN (a.outcome = 'accepted'::text) THEN (a.started_at + ((a.duration)::double precision * '00:00:00.000001'::interval))
            ELSE NULL::timestamp with time zone
        END AS delivered_at,
    a.started_at
   FROM public.attempts a;
CREATE VIEW public.delivery_attempts AS
 SELECT d.tenant_id,
    d.id AS delivery_id,
    a.id,
    d.event_id,
    d.endpoint_id,
        CASE
            WHEN (d.run_attempts > (d.attempts - a.n)) THEN (d.run_attempts - (d.attempts - a.n))
            ELSE ((a.n - a.begins) + 1)
        END AS attempt,
    a.status,
    a.response_status,
    a.response_time_ms,
    a.response_body,
    a.error_message,
    a.scheduled_at,
    a.delivered_at,
    NULL::timestamp with time zone AS next_retry_at,
    a.started_at AS created_at
   FROM ((public.endpoints o
     JOIN public.deliveries d ON (((d.endpoint_id = o.id) AND (d.tenant_id = o.tenant_id))))
     JOIN public.shown_attempts a ON ((a.delivery_id = d.id)))
  WHERE (o.status <> 'deleted'::text)
UNION ALL
 SELECT p.tenant_id,
    p.id AS delivery_id,
    a.id,
    p.event_id,
    p.endpoint_id,
        CASE
            WHEN (p.run_attempts > (p.attempts - a.n)) THEN (p.run_attempts - (p.attempts - a.n))
            ELSE ((a.n - a.begins) + 1)
        END AS attempt,
    a.status,
    a.response_status,
    a.response_time_ms,
    a.response_body,
    a.error_message,
    a.scheduled_at,
    a.delivered_at,
    NULL::timestamp with time zone AS next_retry_at,
    a.started_at AS created_at
   FROM ((public.endpoints o
     JOIN public.pending_deliveries p ON (((p.endpoint_id = o.id) AND (p.tenant_id = o.tenant_id))))
     JOIN public.shown_attempts a ON ((a.delivery_id = p.id)))
  WHERE ((o.status <> 'deleted'::text) AND (p.attempts > 0) AND ((a.n < p.attempts) OR (p.run_attempts = 0)))
UNION ALL
 SELECT p.tenant_id,
    p.id AS delivery_id,
    a.id,
    p.event_id,
    p.endpoint_id,
    p.run_attempts AS attempt,
    'failed'::text AS status,
    a.response_status,
    a.response_time_ms,
    a.response_body,
    a.error_message,
    a.scheduled_at,
    NULL::timestamp with time zone AS delivered_at,
    p.due_at AS next_retry_at,
    a.started_at AS created_at
   FROM ((public.endpoints o
     JOIN public.pending_deliveries p ON (((p.endpoint_id = o.id) AND (p.tenant_id = o.tenant_id))))
     JOIN public.shown_attempts a ON (((a.delivery_id = p.id) AND (a.n = p.attempts))))
  WHERE ((o.status <> 'deleted'::text) AND (p.attempts > 0) AND (p.run_attempts > 0))
UNION ALL
 SELECT p.tenant_id,
    p.id AS delivery_id,
    p.id,
    p.event_id,
    p.endpoint_id,
    (p.run_attempts + 1) AS attempt,
    'pending'::text AS status,
    NULL::integer AS response_status,
    NULL::integer AS response_time_ms,
    NULL::text AS response_body,
    NULL::text AS error_message,
    p.due_at AS scheduled_at,
    NULL::timestamp with time zone AS delivered_at,
    NULL::timestamp with time zone AS next_retry_at,
    p.updated_at AS created_at
   FROM (public.endpoints o
     JOIN public.pending_deliveries p ON (((p.endpoint_id = o.id) AND (p.tenant_id = o.tenant_id))))
  WHERE (o.status <> 'deleted'::text);
CREATE VIEW public.shown_deliveries AS
 SELECT a.tenant_id,
    a.delivery_id,
    (public.webhook_delivery_id(a.id))::character varying(30) AS id,
    (COALESCE(( SELECT public.webhook_event_id(e.id, e.format, e.source_id) AS webhook_event_id
           FROM public.events e
          WHERE ((e.tenant_id = a.tenant_id) AND (e.id = a.event_id))), public.webhook_event_id(a.event_id, NULL::text, NULL::text)))::character varying(30) AS event_id,
    a.endpoint_id,
    a.attempt,
    (a.status)::character varying(20) AS status,
    a.response_status,
    a.response_time_ms,
    a.response_body,
    a.error_message,
    a.scheduled_at,
    a.delivered_at,
    a.next_retry_at,
    a.created_at
   FROM public.delivery_attempts a;
CREATE VIEW public.webhook_deliveries AS
 SELECT shown_deliveries.id,
    shown_deliveries.event_id,
    shown_deliveries.endpoint_id,
    shown_deliveries.attempt,
    shown_deliveries.status,
    shown_deliveries.response_status,
    shown_deliveries.response_time_ms,
    shown_deliveries.response_body,
    shown_deliveries.error_message,
    shown_deliveries.scheduled_at,
    shown_deliveries.delivered_at,
    shown_deliveries.next_retry_at,
    shown_deliveries.created_at
   FROM public.shown_deliveries;
CREATE FUNCTION public.webhook_event_deliveries(account uuid, event_id text) RETURNS SETOF public.webhook_deliveries
    LANGUAGE sql STABLE
    AS $$
    SELECT d.id, d.event_id, d.endpoint_id, d.attempt, d.status, d.response_status, d.response_time_ms, d.response_body,
        d.error_message, d.scheduled_at, d.delivered_at, d.next_retry_at, d.created_at
    FROM events AS e
    CROSS JOIN LATERAL generate_series(0, octet_length(e.deliveries) / 16 - 1) AS i
    CROSS JOIN LATERAL (SELECT * FROM shown_deliveries AS d WHERE d.tenant_id = account
        AND d.delivery_id = encode(substring(e.deliveries FROM 16 * i + 1 FOR 16), 'hex')::uuid OFFSET 0) AS d
    WHERE e.tenant_id = account AND e.id = find_event(account, event_id)
$$;
CREATE TABLE public.acknowledgments (
    id uuid NOT NULL,
    tenant_id uuid NOT NULL,
    source_id uuid NOT NULL,
    version text NOT NULL,
    terms bytea,
    by text NOT NULL,
    actor text NOT NULL,
    at timestamp with time zone NOT NULL
);
CREATE TABLE public.allowances (
    tenant_id uuid NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    uses integer NOT NULL
);
CREATE TABLE public.api_keys (
    id uuid NOT NULL,
    tenant_id uuid NOT NULL,
    principal uuid,
    name text NOT NULL,
    hint text NOT NULL,
    hash bytea NOT NULL,
    scopes text[],
    created_at timestamp with time zone,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    made_by uuid[] DEFAULT '{}'::uuid[] NOT NULL
);
CREATE TABLE public.attempts_20261116_000000 (
    delivery_id uuid NOT NULL,
    id uuid NOT NULL,
    started_at timestamp with time zone,
    next_at timestamp with time zone,
    duration bigint NOT NULL,
    n integer NOT NULL,
    status integer NOT NULL,
    trigger text NOT NULL,
    outcome text NOT NULL,
    reason text NOT NULL,
    url text NOT NULL,
    verdict json,
    trace json
);
CREATE TABLE public.attempts_20261117_000000 (
    delivery_id uuid NOT NULL,
    id uuid NOT NULL,
    started_at timestamp with time zone,
    next_at timestamp with time zone,
    duration bigint NOT NULL,
    n integer NOT NULL,
    status integer NOT NULL,
    trigger text NOT NULL,
    outcome text NOT NULL,
    reason text NOT NULL,
    url text NOT NULL,
    verdict json,
    trace json
);
CREATE TABLE public.attempts_20261118_000000 (
    delivery_id uuid NOT NULL,
    id uuid NOT NULL,
    started_at timestamp with time zone,
    next_at timestamp with time zone,
    duration bigint NOT NULL,
    n integer NOT NULL,
    status integer NOT NULL,
    trigger text NOT NULL,
    outcome text NOT NULL,
    reason text NOT NULL,
    url text NOT NULL,
    verdict json,
    trace json
);
CREATE TABLE public.attempts_20261119_000000 (
    delivery_id uuid NOT NULL,
    id uuid NOT NULL,
    started_at timestamp with time zone,
    next_at timestamp with time zone,
    duration bigint NOT NULL,
    n integer NOT NULL,
    status integer NOT NULL,
    trigger text NOT NULL,
    outcome text NOT NULL,
    reason text NOT NULL,
    url text NOT NULL,
    verdict json,
    trace json
);
CREATE TABLE public.attempts_default (
    delivery_id uuid NOT NULL,
    id uuid NOT NULL,
    started_at timestamp with time zone,
    next_at timestamp with time zone,
    duration bigint NOT NULL,
    n integer NOT NULL,
    status integer NOT NULL,
    trigger text NOT NULL,
    outcome text NOT NULL,
    reason text NOT NULL,
    url text NOT NULL,
    verdict json,
    trace json
);
CREATE TABLE public.command_records (
    tenant text NOT NULL COLLATE pg_catalog."C",
    idempotency_key text NOT NULL COLLATE pg_catalog."C",
    command_id text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL,
    substatus text NOT NULL,
    outcome_ref text,
    created_at timestamp with time zone,
    updated_at timestamp with time zone,
    ttl_expires_at timestamp with time zone,
    lease_until timestamp with time zone,
    version bigint NOT NULL,
    fingerprint text NOT NULL,
    outcome bytea,
    envelope bytea,
    document json NOT NULL,
    mac bytea,
    free_at timestamp with time zone GENERATED ALWAYS AS (
CASE
    WHEN (status <> 'in_progress'::text) THEN ttl_expires_at
    WHEN (substatus = 'awaiting_confirmation'::text) THEN COALESCE(lease_until, '-infinity'::timestamp with time zone)
    ELSE NULL::timestamp with time zone
END) STORED,
    lost_at timestamp with time zone GENERATED ALWAYS AS (
CASE
    WHEN ((status = 'in_progress'::text) AND (substatus <> 'awaiting_confirmation'::text)) THEN COALESCE(lease_until, '-infinity'::timestamp with time zone)
    ELSE NULL::timestamp with time zone
END) STORED,
    CONSTRAINT command_records_status_check CHECK ((status = ANY (ARRAY['in_progress'::text, 'executed'::text, 'failed'::text, 'rejected'::text, 'compensated'::text])))
)
WITH (autovacuum_vacuum_scale_factor='0.05');
ALTER TABLE ONLY public.command_records ALTER COLUMN outcome SET STORAGE EXTERNAL;
ALTER TABLE ONLY public.command_records ALTER COLUMN envelope SET STORAGE EXTERNAL;
CREATE TABLE public.config_changes (
    version bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    id uuid,
    tenant_id uuid,
    name text
);
CREATE TABLE public.config_version (
    one boolean NOT NULL,
    version bigint NOT NULL,
    CONSTRAINT config_version_one_check CHECK (one)
)
WITH (fillfactor='10');
CREATE TABLE public.dead_letters (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    event_id uuid NOT NULL,
    endpoint_id uuid NOT NULL,
    created_at timestamp with time zone,
    updated_at timestamp with time zone,
    due_at timestamp with time zone,
    run_first_at timestamp with time zone,
    attempts integer NOT NULL,
    last_status integer NOT NULL,
    run_attempts integer NOT NULL,
    run_refreshed boolean NOT NULL,
    status text NOT NULL,
    reason text NOT NULL,
    run_trigger text NOT NULL,
    run_actor text NOT NULL,
    dead_at timestamp with time zone,
    last_detail text NOT NULL,
    event_principal uuid,
    event_created_at timestamp with time zone,
    event_type text NOT NULL,
    event_key text NOT NULL,
    event_content_type text NOT NULL,
    event_attributes json,
    event_body bytea NOT NULL,
    event_format text,
    event_source_id text,
    event_occurred_at timestamp with time zone,
    replayed_at timestamp with time zone,
    event_carried json
);
ALTER TABLE ONLY public.dead_letters ALTER COLUMN event_body SET COMPRESSION lz4;
CREATE TABLE public.deliveries_20261116_000000 (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    event_id uuid NOT NULL,
    endpoint_id uuid NOT NULL,
    created_at timestamp with time zone,
    updated_at timestamp with time zone,
    due_at timestamp with time zone,
    run_first_at timestamp with time zone,
    attempts integer NOT NULL,
    last_status integer NOT NULL,
    run_attempts integer NOT NULL,
    run_refreshed boolean NOT NULL,
    status text NOT NULL,
    reason text NOT NULL,
    run_trigger text NOT NULL,
    run_actor text NOT NULL
);
CREATE TABLE public.deliveries_20261117_000000 (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    event_id uuid NOT NULL,
    endpoint_id uuid NOT NULL,
    created_at timestamp with time zone,
    updated_at timestamp with time zone,
    due_at timestamp with time zone,
    run_first_at timestamp with time zone,
    attempts integer NOT NULL,
    last_status integer NOT NULL,
    run_attempts integer NOT NULL,
    run_refreshed boolean NOT NULL,
    status text NOT NULL,
    reason text NOT NULL,
    run_trigger text NOT NULL,
    run_actor text NOT NULL
);
CREATE TABLE public.deliveries_20261118_000000 (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    event_id uuid NOT NULL,
    endpoint_id uuid NOT NULL,
    created_at timestamp with time zone,
    updated_at timestamp with time zone,
    due_at timestamp with time zone,
    run_first_at timestamp with time zone,
    attempts integer NOT NULL,
    last_status integer NOT NULL,
    run_attempts integer NOT NULL,
    run_refreshed boolean NOT NULL,
    status text NOT NULL,
    reason text NOT NULL,
    run_trigger text NOT NULL,
    run_actor text NOT NULL
);
CREATE TABLE public.deliveries_20261119_000000 (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    event_id uuid NOT NULL,
    endpoint_id uuid NOT NULL,
    created_at timestamp with time zone,
    updated_at timestamp with time zone,
    due_at timestamp with time zone,
    run_first_at timestamp with time zone,
    attempts integer NOT NULL,
    last_status integer NOT NULL,
    run_attempts integer NOT NULL,
    run_refreshed boolean NOT NULL,
    status text NOT NULL,
    reason text NOT NULL,
    run_trigger text NOT NULL,
    run_actor text NOT NULL
);
CREATE TABLE public.deliveries_default (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    event_id uuid NOT NULL,
    endpoint_id uuid NOT NULL,
    created_at timestamp with time zone,
    updated_at timestamp with time zone,
    due_at timestamp with time zone,
    run_first_at timestamp with time zone,
    attempts integer NOT NULL,
    last_status integer NOT NULL,
    run_attempts integer NOT NULL,
    run_refreshed boolean NOT NULL,
    status text NOT NULL,
    reason text NOT NULL,
    run_trigger text NOT NULL,
    run_actor text NOT NULL
);
CREATE TABLE public.endpoint_health (
    endpoint_id uuid NOT NULL,
    consecutive_failures integer NOT NULL,
    consecutive_terminal integer NOT NULL,
    accepted bigint NOT NULL,
    transient bigint NOT NULL,
    terminal bigint NOT NULL,
    avg_duration_ms double precision NOT NULL,
    last_reason text NOT NULL,
    last_accepted_at timestamp with time zone,
    last_failure_at timestamp with time zone,
    hold_until timestamp with time zone,
    sunset_at timestamp with time zone,
    circuit_open_at timestamp with time zone,
    probe_at timestamp with time zone,
    updated_at timestamp with time zone,
    streak integer DEFAULT 0 NOT NULL,
    degraded_at timestamp with time zone,
    recent bytea
)
WITH (fillfactor='40');
CREATE TABLE public.endpoint_secrets (
    id uuid NOT NULL,
    endpoint_id uuid NOT NULL,
    tenant_id uuid NOT NULL,
    algorithm text NOT NULL,
    sealed bytea,
    public_key bytea,
    created_at timestamp with time zone,
    not_before timestamp with time zone,
    expires_at timestamp with time zone,
    hash text DEFAULT ''::text NOT NULL,
    hint text DEFAULT ''::text NOT NULL
);
CREATE TABLE public.event_types (
    tenant_id uuid NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    description text NOT NULL,
    deprecated boolean NOT NULL,
    example json,
    schemas json,
    created_at timestamp with time zone,
    updated_at timestamp with time zone
);
CREATE TABLE public.events_20261116_000000 (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    principal uuid,
    created_at timestamp with time zone,
    type text NOT NULL,
    key text NOT NULL,
    content_type text NOT NULL,
    key_slot bigint NOT NULL,
    deliveries bytea NOT NULL,
    attributes json,
    body bytea NOT NULL,
    format text,
    source_id text,
    occurred_at timestamp with time zone,
    carried json
);
ALTER TABLE ONLY public.events_20261116_000000 ALTER COLUMN body SET COMPRESSION lz4;
CREATE TABLE public.events_20261117_000000 (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    principal uuid,
    created_at timestamp with time zone,
    type text NOT NULL,
    key text NOT NULL,
    content_type text NOT NULL,
    key_slot bigint NOT NULL,
    deliveries bytea NOT NULL,
    attributes json,
    body bytea NOT NULL,
    format text,
    source_id text,
    occurred_at timestamp with time zone,
    carried json
);
ALTER TABLE ONLY public.events_20261117_000000 ALTER COLUMN body SET COMPRESSION lz4;
CREATE TABLE public.events_20261118_000000 (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    principal uuid,
    created_at timestamp with time zone,
    type text NOT NULL,
    key text NOT NULL,
    content_type text NOT NULL,
    key_slot bigint NOT NULL,
    deliveries bytea NOT NULL,
    attributes json,
    body bytea NOT NULL,
    format text,
    source_id text,
    occurred_at timestamp with time zone,
    carried json
);
ALTER TABLE ONLY public.events_20261118_000000 ALTER COLUMN body SET COMPRESSION lz4;
CREATE TABLE public.events_20261119_000000 (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    principal uuid,
    created_at timestamp with time zone,
    type text NOT NULL,
    key text NOT NULL,
    content_type text NOT NULL,
    key_slot bigint NOT NULL,
    deliveries bytea NOT NULL,
    attributes json,
    body bytea NOT NULL,
    format text,
    source_id text,
    occurred_at timestamp with time zone,
    carried json
);
ALTER TABLE ONLY public.events_20261119_000000 ALTER COLUMN body SET COMPRESSION lz4;
CREATE TABLE public.events_default (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    principal uuid,
    created_at timestamp with time zone,
    type text NOT NULL,
    key text NOT NULL,
    content_type text NOT NULL,
    key_slot bigint NOT NULL,
    deliveries bytea NOT NULL,
    attributes json,
    body bytea NOT NULL,
    format text,
    source_id text,
    occurred_at timestamp with time zone,
    carried json
);
ALTER TABLE ONLY public.events_default ALTER COLUMN body SET COMPRESSION lz4;
CREATE TABLE public.evidence_heads (
    tenant text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL,
    hash text NOT NULL,
    at timestamp with time zone
)
WITH (fillfactor='40');
CREATE TABLE public.evidence_items (
    tenant text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL,
    key text COLLATE pg_catalog."C",
    command_id text COLLATE pg_catalog."C",
    submitted_id text COLLATE pg_catalog."C",
    hash text NOT NULL,
    line bytea NOT NULL
);
CREATE TABLE public.fanouts (
    id uuid NOT NULL,
    tenant_id uuid NOT NULL,
    run_trigger text NOT NULL,
    events bytea NOT NULL,
    endpoints bytea NOT NULL,
    done integer NOT NULL
)
WITH (fillfactor='50');
ALTER TABLE ONLY public.fanouts ALTER COLUMN events SET STORAGE EXTERNAL;
ALTER TABLE ONLY public.fanouts ALTER COLUMN endpoints SET STORAGE EXTERNAL;
CREATE TABLE public.idempotency_records (
    id bytea NOT NULL,
    tenant_id uuid NOT NULL,
    event_id uuid,
    fingerprint bytea NOT NULL,
    response_status integer,
    response_type text,
    response_location text,
    response_body bytea,
    created_at timestamp with time zone,
    expires_at timestamp with time zone
);
CREATE TABLE public.kept_events (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    kept_at timestamp with time zone NOT NULL
);
CREATE TABLE public.key_checks (
    name text NOT NULL COLLATE pg_catalog."C",
    value bytea NOT NULL
);
CREATE TABLE public.leases (
    shard smallint NOT NULL,
    owner text NOT NULL,
    epoch bigint NOT NULL,
    expires_at timestamp with time zone,
    clean boolean DEFAULT false NOT NULL
)
WITH (fillfactor='40');
CREATE TABLE public.nodes (
    name text NOT NULL COLLATE pg_catalog."C",
    instance text NOT NULL COLLATE pg_catalog."C",
    holder text NOT NULL,
    claimed_at timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    address text DEFAULT ''::text NOT NULL,
    version text DEFAULT ''::text NOT NULL,
    schema_version integer DEFAULT 0 NOT NULL,
    state text DEFAULT 'running'::text NOT NULL,
    lease_until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    shards integer DEFAULT 0 NOT NULL,
    held integer DEFAULT 0 NOT NULL,
    in_flight integer DEFAULT 0 NOT NULL,
    lag interval DEFAULT '00:00:00'::interval NOT NULL
)
WITH (fillfactor='20');
CREATE TABLE public.notices (
    id uuid NOT NULL,
    tenant_id uuid NOT NULL,
    endpoint_id uuid,
    delivery_id uuid,
    event_id uuid,
    kind text NOT NULL,
    detail text NOT NULL,
    link text NOT NULL,
    created_at timestamp with time zone,
    acknowledged_at timestamp with time zone,
    acknowledged_by text NOT NULL
);
CREATE TABLE public.rejections (
    id uuid NOT NULL,
    tenant_id uuid NOT NULL,
    source_id uuid NOT NULL,
    status integer NOT NULL,
    code text NOT NULL,
    reason text NOT NULL,
    detail text NOT NULL,
    remote_addr text NOT NULL,
    method text NOT NULL,
    size bigint NOT NULL,
    headers json,
    at timestamp with time zone NOT NULL
);
CREATE TABLE public.schema_migrations (
    version integer NOT NULL,
    name text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL,
    beside integer
);
CREATE TABLE public.sources (
    id uuid NOT NULL,
    tenant_id uuid NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    description text NOT NULL,
    scheme text NOT NULL,
    settings json,
    sealed bytea,
    credentials json,
    adopt boolean NOT NULL,
    mode text NOT NULL,
    event_type json,
    keep json,
    status text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    version bigint NOT NULL
);
CREATE TABLE public.tenants (
    id uuid NOT NULL,
    name text NOT NULL,
    require_idempotency_key boolean NOT NULL,
    created_at timestamp with time zone,
    deleted_at timestamp with time zone,
    code text DEFAULT ''::text NOT NULL,
    alert_emails text[],
    validation text DEFAULT ''::text NOT NULL
);
CREATE VIEW public.webhook_dlq AS
 SELECT (md5(((d.id)::text || EXTRACT(epoch FROM d.dead_at))))::uuid AS id,
    (public.webhook_event_id(d.event_id, d.event_format, d.event_source_id))::character varying(30) AS event_id,
    d.endpoint_id,
        CASE
            WHEN (d.reason = 'retention-limit'::text) THEN 'not delivered within the time that events are kept'::text
            ELSE (COALESCE(NULLIF(COALESCE(( SELECT split_part(a.error_message, ': '::text, 1) AS split_part
               FROM public.shown_attempts a
              WHERE ((a.delivery_id = d.id) AND (a.n = d.attempts))),
            CASE
                WHEN (d.last_status > 0) THEN ('HTTP '::text || d.last_status)
                ELSE NULL::text
            END, d.last_detail), ''::text), d.reason) ||
            CASE
                WHEN (d.status = 'terminal'::text) THEN ' (not retryable)'::text
                WHEN (d.run_attempts = 1) THEN ' after 1 attempt'::text
                ELSE ((' after '::text || d.run_attempts) || ' attempts'::text)
            END)
        END AS failure_reason,
    ( SELECT COALESCE(jsonb_agg(jsonb_strip_nulls(jsonb_build_object('attempt', (a.n - (d.attempts - d.run_attempts)), 'delivery_id', public.webhook_delivery_id(a.id), 'at', to_char((a.started_at AT TIME ZONE 'UTC'::text), 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'::text), 'response_status', a.response_status, 'response_time_ms', a.response_time_ms, 'error', a.error_message)) ORDER BY a.n), '[]'::jsonb) AS "coalesce"
           FROM public.shown_attempts a
          WHERE ((a.delivery_id = d.id) AND (a.n > (d.attempts - d.run_attempts)) AND (a.n <= d.attempts))) AS attempts_summary,
    d.dead_at AS created_at,
    d.replayed_at,
    public.month_after(d.dead_at) AS expires_at
   FROM public.dead_letters d;
CREATE VIEW public.webhook_endpoints AS
 SELECT e.id,
    (public.public_code('WEB'::text, e.code))::character varying(16) AS public_id,
    e.tenant_id AS account_id,
    e.url,
    e.description,
    COALESCE(e.patterns, '{}'::text[]) AS events,
    (COALESCE(s.hash, ''::text))::character varying(64) AS secret_hash,
    (NULLIF(s.hint, ''::text))::character varying(10) AS secret_hint,
    (e.status)::character varying(20) AS status,
    COALESCE(h.streak, 0) AS failure_count,
    GREATEST(h.last_accepted_at, h.last_failure_at) AS last_delivery_at,
    h.last_accepted_at AS last_success_at,
    h.last_failure_at,
    e.created_at,
    e.updated_at
   FROM ((public.endpoints e
     LEFT JOIN public.endpoint_health h ON ((h.endpoint_id = e.id)))
     LEFT JOIN LATERAL ( SELECT s_1.hash,
            s_1.hint
           FROM public.endpoint_secrets s_1
          WHERE ((s_1.endpoint_id = e.id) AND ((s_1.not_before IS NULL) OR (s_1.not_before <= now())) AND ((s_1.expires_at IS NULL) OR (s_1.expires_at > now())))
          ORDER BY s_1.id DESC
         LIMIT 1) s ON (true))
  WHERE (e.status <> 'deleted'::text);
CREATE TABLE public.write_probe (
    one boolean NOT NULL,
    at timestamp with time zone NOT NULL,
    CONSTRAINT write_probe_one_check CHECK (one)
)
WITH (fillfactor='10');
ALTER TABLE ONLY public.attempts ATTACH PARTITION public.attempts_20261116_000000 FOR VALUES FROM ('01a1e1a7-4c00-7000-8000-000000000000') TO ('01a1e6cd-a800-7000-8000-000000000000');
ALTER TABLE ONLY public.attempts ATTACH PARTITION public.attempts_20261117_000000 FOR VALUES FROM ('01a1e6cd-a800-7000-8000-000000000000') TO ('01a1ebf4-0400-7000-8000-000000000000');
ALTER TABLE ONLY public.attempts ATTACH PARTITION public.attempts_20261118_000000 FOR VALUES FROM ('01a1ebf4-0400-7000-8000-000000000000') TO ('01a1f11a-6000-7000-8000-000000000000');
ALTER TABLE ONLY public.attempts ATTACH PARTITION public.attempts_20261119_000000 FOR VALUES FROM ('01a1f11a-6000-7000-8000-000000000000') TO ('01a1f640-bc00-7000-8000-000000000000');
ALTER TABLE ONLY public.attempts ATTACH PARTITION public.attempts_default DEFAULT;
ALTER TABLE ONLY public.deliveries ATTACH PARTITION public.deliveries_20261116_000000 FOR VALUES FROM ('01a1e1a7-4c00-7000-8000-000000000000') TO ('01a1e6cd-a800-7000-8000-000000000000');
ALTER TABLE ONLY public.deliveries ATTACH PARTITION public.deliveries_20261117_000000 FOR VALUES FROM ('01a1e6cd-a800-7000-8000-000000000000') TO ('01a1ebf4-0400-7000-8000-000000000000');
ALTER TABLE ONLY public.deliveries ATTACH PARTITION public.deliveries_20261118_000000 FOR VALUES FROM ('01a1ebf4-0400-7000-8000-000000000000') TO ('01a1f11a-6000-7000-8000-000000000000');
ALTER TABLE ONLY public.deliveries ATTACH PARTITION public.deliveries_20261119_000000 FOR VALUES FROM ('01a1f11a-6000-7000-8000-000000000000') TO ('01a1f640-bc00-7000-8000-000000000000');
ALTER TABLE ONLY public.deliveries ATTACH PARTITION public.deliveries_default DEFAULT;
ALTER TABLE ONLY public.events ATTACH PARTITION public.events_20261116_000000 FOR VALUES FROM ('01a1e1a7-4c00-7000-8000-000000000000') TO ('01a1e6cd-a800-7000-8000-000000000000');
ALTER TABLE ONLY public.events ATTACH PARTITION public.events_20261117_000000 FOR VALUES FROM ('01a1e6cd-a800-7000-8000-000000000000') TO ('01a1ebf4-0400-7000-8000-000000000000');
ALTER TABLE ONLY public.events ATTACH PARTITION public.events_20261118_000000 FOR VALUES FROM ('01a1ebf4-0400-7000-8000-000000000000') TO ('01a1f11a-6000-7000-8000-000000000000');
ALTER TABLE ONLY public.events ATTACH PARTITION public.events_20261119_000000 FOR VALUES FROM ('01a1f11a-6000-7000-8000-000000000000') TO ('01a1f640-bc00-7000-8000-000000000000');
ALTER TABLE ONLY public.events ATTACH PARTITION public.events_default DEFAULT;
INSERT INTO public.allowances VALUES ('01a1e339-e0e9-7558-9402-c1ffaa865374', 'endpoint creations', '2026-11-16 07:19:45.340376+00', '2026-11-16 07:20:45.340376+00', 1);
INSERT INTO public.allowances VALUES ('01a1e339-e0e9-7558-9402-c1ffaa865374', 'endpoint creations', '2026-11-16 07:19:45.389137+00', '2026-11-16 07:20:45.389137+00', 1);
INSERT INTO public.allowances VALUES ('01a1e339-e1ef-7f6c-84be-6670c701c2a0', 'endpoint creations', '2026-11-16 07:19:45.542376+00', '2026-11-16 07:20:45.542376+00', 1);
INSERT INTO public.api_keys VALUES ('01a1e339-e0e9-7273-896e-1cd1ce0d1e8b', '01a1e339-e0e9-7558-9402-c1ffaa865374', '01a1e339-e0e9-7273-896e-1cd1ce0d1e8b', 'main', 'gdw_-WtF', '\x08ecd0f6751dfa30d0eee3296387e8de8b4a8ba6485df4deff8f56cfa831d535', '{ingest,read,manage,admin,audit,metrics}', '2026-11-16 07:19:43.593759+00', NULL, NULL, '{}');
INSERT INTO public.api_keys VALUES ('01a1e339-e1f5-7a45-8f5e-49a40e2978ff', '01a1e339-e1ef-7f6c-84be-6670c701c2a0', '01a1e339-e1f5-7a45-8f5e-49a40e2978ff', 'beta', 'gdw_rX2e', '\x2e5ff9cf41b2d6d2d323a8f7f42398657c885eba4ae794107cf7bdf920093d72', '{ingest,read,manage}', '2026-11-16 07:19:43.861217+00', NULL, NULL, '{}');
INSERT INTO public.attempts_20261116_000000 VALUES ('01a1e339-e83e-7c12-a798-3b329cce9e7d', '01a1e339-e840-7dbb-a0c5-5e457250e32d', '2026-11-16 07:19:45.472129+00', '2026-11-16 07:20:16.10905+00', 67, 1, 0, 'accept', 'transient', 'connection-refused', 'http://127.0.0.1:9/ojs', '{"class":"transport"}', '{"detail":"dial tcp 127.0.0.1:9: connect: connection refused","signed_with":["sec_01a1e339-e7ed-74f0-a9e4-ef78c4ce0b84"]}');
INSERT INTO public.attempts_20261116_000000 VALUES ('01a1e339-e83e-779f-8052-7bbf73d7fa19', '01a1e339-e83f-73c3-975a-50792b0266d1', '2026-11-16 07:19:45.471984+00', '2026-11-16 07:19:46.021727+00', 398, 1, 0, 'accept', 'transient', 'connection-refused', 'http://127.0.0.1:9/hook', '{"class":"transport"}', '{"detail":"dial tcp 127.0.0.1:9: connect: connection refused","signed_with":["sec_01a1e339-e7bc-75fa-8460-3f5db5029400"]}');
INSERT INTO public.attempts_20261116_000000 VALUES ('01a1e339-e840-73a4-bdd6-f5b7817af17d', '01a1e339-e852-7a72-b174-adaab8621d4f', '2026-11-16 07:19:45.490156+00', '2026-11-16 07:20:17.438162+00', 103, 1, 0, 'accept', 'transient', 'connection-refused', 'http://127.0.0.1:9/ojs', '{"class":"transport"}', '{"detail":"dial tcp 127.0.0.1:9: connect: connection refused","signed_with":["sec_01a1e339-e7ed-74f0-a9e4-ef78c4ce0b84"]}');
INSERT INTO public.attempts_20261116_000000 VALUES ('01a1e339-e83e-779f-8052-7bbf73d7fa19', '01a1e339-ea72-7503-a9e0-44be5a53e4e9', '2026-11-16 07:19:46.034206+00', '2026-11-16 07:19:46.279662+00', 196, 2, 0, 'retry', 'transient', 'connection-refused', 'http://127.0.0.1:9/hook', '{"class":"transport"}', '{"detail":"dial tcp 127.0.0.1:9: connect: connection refused","signed_with":["sec_01a1e339-e7bc-75fa-8460-3f5db5029400"]}');
INSERT INTO public.attempts_20261116_000000 VALUES ('01a1e339-e83e-779f-8052-7bbf73d7fa19', '01a1e339-eb69-70ab-a29a-a13cc38589af', '2026-11-16 07:19:46.281157+00', '2026-11-16 07:19:48.453764+00', 163, 3, 0, 'retry', 'transient', 'connection-refused', 'http://127.0.0.1:9/hook', '{"class":"transport"}', '{"detail":"dial tcp 127.0.0.1:9: connect: connection refused","signed_with":["sec_01a1e339-e7bc-75fa-8460-3f5db5029400"]}');
INSERT INTO public.config_changes VALUES (129604, 'start', NULL, NULL, NULL);
INSERT INTO public.config_changes VALUES (187881, 'event_type', NULL, '01a1e339-e0e9-7558-9402-c1ffaa865374', 'order.paid');
INSERT INTO public.config_changes VALUES (257758, 'event_type', NULL, '01a1e339-e0e9-7558-9402-c1ffaa865374', 'order.sent');
INSERT INTO public.config_changes VALUES (290725, 'tenant', '01a1e339-e0e9-7558-9402-c1ffaa865374', '01a1e339-e0e9-7558-9402-c1ffaa865374', NULL);
INSERT INTO public.config_changes VALUES (332815, 'endpoint', '01a1e339-e7ba-771d-9c06-287ebbc62e73', '01a1e339-e0e9-7558-9402-c1ffaa865374', NULL);
INSERT INTO public.config_changes VALUES (332815, 'endpoint', '01a1e339-e7ba-771d-9c06-287ebbc62e73', '01a1e339-e0e9-7558-9402-c1ffaa865374', NULL);
INSERT INTO public.config_changes VALUES (399455, 'endpoint', '01a1e339-e7ed-7d92-a7ce-990bff355977', '01a1e339-e0e9-7558-9402-c1ffaa865374', NULL);
INSERT INTO public.config_changes VALUES (399455, 'endpoint', '01a1e339-e7ed-7d92-a7ce-990bff355977', '01a1e339-e0e9-7558-9402-c1ffaa865374', NULL);
INSERT INTO public.config_changes VALUES (487394, 'endpoint', '01a1e339-e886-70fd-8305-eb4d77fe2e58', '01a1e339-e1ef-7f6c-84be-6670c701c2a0', NULL);
INSERT INTO public.config_changes VALUES (487394, 'endpoint', '01a1e339-e886-70fd-8305-eb4d77fe2e58', '01a1e339-e1ef-7f6c-84be-6670c701c2a0', NULL);
INSERT INTO public.config_version VALUES (true, 487394);
INSERT INTO public.endpoint_health VALUES ('01a1e339-e7ed-7d92-a7ce-990bff355977', 2, 0, 0, 2, 0, 0.0696993, 'connection-refused', NULL, '2026-11-16 07:19:45.49026+00', NULL, NULL, NULL, NULL, '2026-11-16 07:19:45.49026+00', 2, NULL, NULL);
INSERT INTO public.endpoint_health VALUES ('01a1e339-e7ba-771d-9c06-287ebbc62e73', 3, 0, 0, 3, 0, 0.37721209, 'connection-refused', NULL, '2026-11-16 07:19:46.28132+00', NULL, NULL, NULL, NULL, '2026-11-16 07:19:46.28132+00', 3, NULL, NULL);
INSERT INTO public.endpoint_secrets VALUES ('01a1e339-e7bc-75fa-8460-3f5db5029400', '01a1e339-e7ba-771d-9c06-287ebbc62e73', '01a1e339-e0e9-7558-9402-c1ffaa865374', 'hmac-sha256', '\x01026b31107c3c743d84ea39f15abc86ffcb738042c4fe9ea3cfa6c7caa5db8f65d79920d9d18993b74358fb6ec2e565f2bca9a4ccd11d0eae0e1c98575c731e', NULL, '2026-11-16 07:19:45.340378+00', '2026-11-16 07:19:45.340378+00', NULL, '0ffbfa83e0ce74e3e01f43a5d6afc2af03a21c3a91890c8552cfb2eaf054c195', 'Vu0=');
INSERT INTO public.endpoint_secrets VALUES ('01a1e339-e7ed-74f0-a9e4-ef78c4ce0b84', '01a1e339-e7ed-7d92-a7ce-990bff355977', '01a1e339-e0e9-7558-9402-c1ffaa865374', 'hmac-sha256', '\x01026b31b8227727003955c3a299209f5f2273d5a9a46f9cbd1cc40ea00004286f7f3d7826a7c618775ada03754faad027a616abdbe60fc5d4aea989fc49dc339eabe5817ac1722f95b29d764d9558e5b9', NULL, '2026-11-16 07:19:45.389149+00', '2026-11-16 07:19:45.389149+00', NULL, 'fd2a6622cd177c5384cf5f4dfb8027ef9c096b4b4c906896eaa629c712f4b452', 'cuuM');
INSERT INTO public.endpoint_secrets VALUES ('01a1e339-e886-745e-a306-4bbbb24f45df', '01a1e339-e886-70fd-8305-eb4d77fe2e58', '01a1e339-e1ef-7f6c-84be-6670c701c2a0', 'hmac-sha256', '\x01026b3149f3ac9377ad0633198fb614c83988ac3efe4413769158e38ef6b2c4f1b168afeee9abe59b4c2d6592574476dbc188ceba9488edbac27bf35b78c246', NULL, '2026-11-16 07:19:45.542382+00', '2026-11-16 07:19:45.542382+00', NULL, 'e7626fe38635ac91f43d50dfbbd015a22c8927b5965aa38261e22b1474d5e0a2', 'inY=');
INSERT INTO public.endpoints VALUES ('01a1e339-e7ba-771d-9c06-287ebbc62e73', '01a1e339-e0e9-7558-9402-c1ffaa865374', 'http://127.0.0.1:9/hook', 'POST', 'eds', 'first', '{order.*}', NULL, '{"max_retries":3}', NULL, NULL, NULL, 'active', '', '2026-11-16 07:19:45.340376+00', '2026-11-16 07:19:45.340376+00', '2026-11-16 07:19:45.340376+00', 1, 'VRLCKU', NULL);
INSERT INTO public.endpoints VALUES ('01a1e339-e7ed-7d92-a7ce-990bff355977', '01a1e339-e0e9-7558-9402-c1ffaa865374', 'http://127.0.0.1:9/ojs', 'POST', 'ojs', '', '{*}', NULL, NULL, NULL, NULL, NULL, 'active', '', '2026-11-16 07:19:45.389137+00', '2026-11-16 07:19:45.389137+00', '2026-11-16 07:19:45.389137+00', 1, 'URV5DJ', NULL);
INSERT INTO public.endpoints VALUES ('01a1e339-e886-70fd-8305-eb4d77fe2e58', '01a1e339-e1ef-7f6c-84be-6670c701c2a0', 'http://127.0.0.1:9/beta', 'POST', 'eds', '', '{*}', NULL, NULL, NULL, NULL, NULL, 'active', '', '2026-11-16 07:19:45.542376+00', '2026-11-16 07:19:45.542376+00', '2026-11-16 07:19:45.542376+00', 1, 'BEPU6Z', NULL);
INSERT INTO public.event_types VALUES ('01a1e339-e0e9-7558-9402-c1ffaa865374', 'order.paid', 'An order', false, NULL, '[{"version":1,"schema":{"type":"object","required":["total"]},"created_at":"2026-11-16T07:19:44.61875Z"}]
', '2026-11-16 07:19:44.61875+00', '2026-11-16 07:19:44.61875+00');
INSERT INTO public.event_types VALUES ('01a1e339-e0e9-7558-9402-c1ffaa865374', 'order.sent', '', true, NULL, NULL, '2026-11-16 07:19:44.714443+00', '2026-11-16 07:19:44.714443+00');
INSERT INTO public.events_20261116_000000 VALUES ('01a1e339-e0e9-7558-9402-c1ffaa865374', '01a1e339-e7ee-7b9d-85db-185cbebfe2d7', NULL, '2026-11-16 07:19:45.390012+00', 'webhook.subscription.created', '9e0d43c8-00f0-4065-b171-5538c6b016a5', 'application/json', 2141295792064086, '\x', NULL, '\x7b227370656376657273696f6e223a22312e30222c226964223a226576745f30316131653333392d653765652d376239642d383564622d313835636265626665326437222c2274797065223a22776562686f6f6b2e737562736372697074696f6e2e63726561746564222c22736f75726365223a226f6a733a2f2f676f647769742f776562686f6f6b73222c2274696d65223a22323032362d31312d31365430373a31393a34352e33395a222c227375626a656374223a227375625f30316131653333392d653765642d376439322d613763652d393930626666333535393737222c2264617461223a7b22737562736372697074696f6e5f6964223a227375625f30316131653333392d653765642d376439322d613763652d393930626666333535393737227d7d', 'ojs', NULL, NULL, NULL);
INSERT INTO public.events_20261116_000000 VALUES ('01a1e339-e0e9-7558-9402-c1ffaa865374', '01a1e339-e83e-7124-bc8a-269dd949c545', '01a1e339-e0e9-7273-896e-1cd1ce0d1e8b', '2026-11-16 07:19:45.47007+00', 'order.paid', 'first-event-of-acme', 'application/json', 2141295229074955, '\x01a1e339e83e7c12a7983b329cce9e7d01a1e339e83e779f80527bbf73d7fa19', NULL, '\x7b22746f74616c223a317d', NULL, NULL, NULL, NULL);
INSERT INTO public.events_20261116_000000 VALUES ('01a1e339-e0e9-7558-9402-c1ffaa865374', '01a1e339-e840-7758-ac58-d66f20380314', NULL, '2026-11-16 07:19:45.472211+00', 'webhook.failed', '8364fa9f-71cb-4b8d-8cb8-2ecf5188efe5', 'application/json', 2141297260376347, '\x01a1e339e84073a4bdd6f5b7817af17d', NULL, '\x7b227370656376657273696f6e223a22312e30222c226964223a226576745f30316131653333392d653834302d373735382d616335382d643636663230333830333134222c2274797065223a22776562686f6f6b2e6661696c6564222c22736f75726365223a226f6a733a2f2f676f647769742f776562686f6f6b73222c2274696d65223a22323032362d31312d31365430373a31393a34352e3437325a222c227375626a656374223a2264656c5f30316131653333392d653833652d376331322d613739382d336233323963636539653764222c2264617461223a7b2264656c69766572795f6964223a2264656c5f30316131653333392d653833652d376331322d613739382d336233323963636539653764222c22737562736372697074696f6e5f6964223a227375625f30316131653333392d653765642d376439322d613763652d393930626666333535393737222c226576656e745f6964223a226576745f30316131653333392d653833652d373132342d626338612d323639646439343963353435222c226576656e745f74797065223a226f726465722e70616964222c22617474656d7074223a312c226572726f72223a22636f6e6e656374696f6e2d72656675736564222c226e6578745f617474656d70745f6174223a22323032362d31312d31365430373a32303a31362e3130395a227d7d', 'ojs', NULL, NULL, NULL);
INSERT INTO public.events_20261116_000000 VALUES ('01a1e339-e1ef-7f6c-84be-6670c701c2a0', '01a1e339-e865-7bd4-a4ca-8cd8ff810532', '01a1e339-e1f5-7a45-8f5e-49a40e2978ff', '2026-11-16 07:19:45.509553+00', 'anything', '060f9d00-6e4e-48a6-856d-4923c0dd0edf', 'application/json', 2141297904239168, '\x', NULL, '\x7b2261223a317d', NULL, NULL, NULL, NULL);
INSERT INTO public.evidence_heads VALUES ('ten_01a1e339-e0e9-7558-9402-c1ffaa865374', 1, 'sha256:8b67a8c7a7630a06f624569452633b7f91f6ebf15167a85340679e081371a786', '2026-11-16 07:19:45.338065+00');
INSERT INTO public.evidence_items VALUES ('ten_01a1e339-e0e9-7558-9402-c1ffaa865374', 1, '9ffe2bfe6de16577271bba74f352a0c2ce0f2f2ad72a840fce676eea3da2920a', NULL, NULL, 'sha256:8b67a8c7a7630a06f624569452633b7f91f6ebf15167a85340679e081371a786', '\x7b226163746f725f6964223a226b65795f30316131653333392d653065392d373237332d383936652d316364316365306431653862222c226174223a22323032362d31312d31365430373a31393a34352e3333383036355a222c226368616e6e656c223a226e6174697665222c22636f6d6d616e64223a22504f5354202f76312f656e64706f696e7473222c226465636973696f6e223a2266697273745f7365656e222c226578656375746564223a66616c73652c2266696e6765727072696e74223a227368613235363a30313635643934653064616565356536643733353462353462353261376231373563333730326635626132366137346161326463623361613361633633393164222c2268617368223a227368613235363a38623637613863376137363330613036663632343536393435323633336237663931663665626631353136376138353334303637396530383133373161373836222c226964656d706f74656e63795f6b6579223a2239666665326266653664653136353737323731626261373466333532613063326365306632663261643732613834306663653637366565613364613239323061222c22707265765f68617368223a227368613235363a30303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030222c22736571223a312c2274656e616e74223a2274656e5f30316131653333392d653065392d373535382d393430322d633166666161383635333734222c2274797065223a226f62736572766174696f6e2e656d6974746564227d');
INSERT INTO public.idempotency_records VALUES ('\x9ffe2bfe6de16577271bba74f352a0c2ce0f2f2ad72a840fce676eea3da2920a', '01a1e339-e0e9-7558-9402-c1ffaa865374', NULL, '\x0165d94e0daee5e6d7354b54b52a7b175c3702f5ba26a74aa2dcb3aa3ac6391d', 201, 'application/json', '/v1/endpoints/sub_01a1e339-e7ba-771d-9c06-287ebbc62e73', '\x01026b31ec930332a19f8fb8b79eab9063cb7d899bfa97aa96c10bc3f9aa5966878a13cb40b8d0ab5d922800bc8d76d5884f9c30d990870b507820e7158a7f83a356cf148de5200746a891a6d451735e308eee799aec9b2eda2a65fe5cc69dff74f39a31655552941148ea1f322940732dacaf8261b8f21dcb1b948f89960caf886df03ca4a66d096397cb140f1db769576743bf87c559e02142ab7ac0c4abab18bf7483fe171e09d0eb28ecbc892dafde0ffe0b2c60da58152d3bc516ab463d291f2c60aea4fdcd9bcd25b2aa630466d5ae47374ff38b90ef0b65eaa9875ddd985c17922ca3115e770cfa20d030adc118c5dbbc0696396a9f4d38f7b51ac39dd4c0de59f26667f033173b608d50dd93e7da9e0059998e6d708f17e1f70e7d16b1cba86393b34412c259ad4ad7c73f10b1b98a70bee1ae74016da38146d7dc967a348b425cf5ad00b8def312282f3ad45083cc4accf809fcd2d533b4f5bda3c82f6dab0862c1d4f9512e3e1d6980e336239d8c93a7474ff17d62254de18e7d9879191f62c580fe3844d97fed2ef45289c8ab4d92859d73c4a8f6e08b1a28cb0ec70e3afb6dcaa5f200b3304034b8ce0537449cea8c2629296873c6301364877ea24cddf7bf487750fa84c1bd49ce3ee605a0263e72e9028930c5b7adec55a65c79978e61b5eab54a0d58fe1ed7f3648b9062676455be633c6e0d6e4a4af322112fab1f1bac649a7ef507fac6f6782f02c08135b7755ef1c1300c7cd98c131538e9b9beaf8b38bf5738d3cdfcf15e62bf57bd347a42fb03dde0c178fdce30cfbf46cc8b3e2c2b83205397925df37d585bb1daf7bf396c917904f19f2474ec9baf508a17ce847df3479aa74ece4564909045e53139a9f73e8731fff2a7dd838ff77d6b631753ded0ba34952667771e0c3cc73beec3dbe5e4fdb51610fd8478cb8e9e', '2026-11-16 07:19:45.338065+00', '2026-11-17 07:19:45.366284+00');
INSERT INTO public.idempotency_records VALUES ('\xc91806937b967ac033bb8785f991bbb941cd6edc0796c0a643c934f8aca630f6', '01a1e339-e0e9-7558-9402-c1ffaa865374', '01a1e339-e83e-7124-bc8a-269dd949c545', '\xf0da603cd3ceaba8b3831a142ffcca858eb3de173875f2cc358eb54077aa77b9', 202, 'application/json', '/v1/events/evt_01a1e339-e83e-7124-bc8a-269dd949c545', '\x7b226964223a226576745f30316131653333392d653833652d373132342d626338612d323639646439343963353435222c226964656d706f74656e63795f6b6579223a2266697273742d6576656e742d6f662d61636d65222c2264656c69766572696573223a322c22637265617465645f6174223a22323032362d31312d31365430373a31393a34352e3437303037305a227d0a', '2026-11-16 07:19:45.47007+00', '2026-11-17 07:19:45.47007+00');
INSERT INTO public.key_checks VALUES ('keyring', '\x01026b31dd2c82a50aaaf0385ac214309af39129c08797e8d45346ce02cb5cdb6623f7d972dc76');
INSERT INTO public.key_checks VALUES ('evidence', '\x462fd05de7b6475c65376045891673ad4da87baecbc6d3dad705fe6b293138b5');
INSERT INTO public.leases VALUES (0, '', 2, '2026-11-16 07:19:47.097833+00', true);
INSERT INTO public.leases VALUES (1, '', 2, '2026-11-16 07:19:47.097865+00', true);
INSERT INTO public.leases VALUES (2, '', 2, '2026-11-16 07:19:47.097867+00', true);
INSERT INTO public.leases VALUES (3, '', 2, '2026-11-16 07:19:47.097868+00', true);
INSERT INTO public.leases VALUES (4, '', 2, '2026-11-16 07:19:47.09787+00', true);
INSERT INTO public.leases VALUES (5, '', 2, '2026-11-16 07:19:47.097871+00', true);
INSERT INTO public.leases VALUES (6, '', 2, '2026-11-16 07:19:47.097872+00', true);
INSERT INTO public.leases VALUES (7, '', 2, '2026-11-16 07:19:47.097873+00', true);
INSERT INTO public.leases VALUES (8, '', 2, '2026-11-16 07:19:47.097874+00', true);
INSERT INTO public.leases VALUES (9, '', 2, '2026-11-16 07:19:47.097875+00', true);
INSERT INTO public.leases VALUES (10, '', 2, '2026-11-16 07:19:47.097876+00', true);
INSERT INTO public.leases VALUES (11, '', 2, '2026-11-16 07:19:47.097877+00', true);
INSERT INTO public.leases VALUES (12, '', 2, '2026-11-16 07:19:47.097878+00', true);
INSERT INTO public.leases VALUES (13, '', 2, '2026-11-16 07:19:47.097879+00', true);
INSERT INTO public.leases VALUES (14, '', 2, '2026-11-16 07:19:47.09788+00', true);
INSERT INTO public.leases VALUES (15, '', 2, '2026-11-16 07:19:47.097881+00', true);
INSERT INTO public.leases VALUES (16, '', 2, '2026-11-16 07:19:47.097882+00', true);
INSERT INTO public.leases VALUES (17, '', 2, '2026-11-16 07:19:47.097883+00', true);
INSERT INTO public.leases VALUES (18, '', 2, '2026-11-16 07:19:47.097884+00', true);
INSERT INTO public.leases VALUES (19, '', 2, '2026-11-16 07:19:47.097885+00', true);
INSERT INTO public.leases VALUES (20, '', 2, '2026-11-16 07:19:47.097886+00', true);
INSERT INTO public.leases VALUES (21, '', 2, '2026-11-16 07:19:47.097886+00', true);
INSERT INTO public.leases VALUES (22, '', 2, '2026-11-16 07:19:47.097887+00', true);
INSERT INTO public.leases VALUES (23, '', 2, '2026-11-16 07:19:47.097888+00', true);
INSERT INTO public.leases VALUES (24, '', 2, '2026-11-16 07:19:47.097891+00', true);
INSERT INTO public.leases VALUES (25, '', 2, '2026-11-16 07:19:47.097892+00', true);
INSERT INTO public.leases VALUES (26, '', 2, '2026-11-16 07:19:47.097893+00', true);
INSERT INTO public.leases VALUES (27, '', 2, '2026-11-16 07:19:47.097894+00', true);
INSERT INTO public.leases VALUES (28, '', 2, '2026-11-16 07:19:47.097895+00', true);
INSERT INTO public.leases VALUES (29, '', 2, '2026-11-16 07:19:47.097896+00', true);
INSERT INTO public.leases VALUES (30, '', 2, '2026-11-16 07:19:47.097897+00', true);
INSERT INTO public.leases VALUES (31, '', 2, '2026-11-16 07:19:47.097898+00', true);
INSERT INTO public.leases VALUES (32, '', 2, '2026-11-16 07:19:47.097899+00', true);
INSERT INTO public.leases VALUES (33, '', 2, '2026-11-16 07:19:47.0979+00', true);
INSERT INTO public.leases VALUES (34, '', 2, '2026-11-16 07:19:47.097901+00', true);
INSERT INTO public.leases VALUES (35, '', 2, '2026-11-16 07:19:47.097902+00', true);
INSERT INTO public.leases VALUES (36, '', 2, '2026-11-16 07:19:47.097903+00', true);
INSERT INTO public.leases VALUES (37, '', 2, '2026-11-16 07:19:47.097904+00', true);
INSERT INTO public.leases VALUES (38, '', 2, '2026-11-16 07:19:47.097905+00', true);
INSERT INTO public.leases VALUES (39, '', 2, '2026-11-16 07:19:47.097906+00', true);
INSERT INTO public.leases VALUES (40, '', 2, '2026-11-16 07:19:47.097907+00', true);
INSERT INTO public.leases VALUES (41, '', 2, '2026-11-16 07:19:47.097908+00', true);
INSERT INTO public.leases VALUES (42, '', 2, '2026-11-16 07:19:47.097909+00', true);
INSERT INTO public.leases VALUES (43, '', 2, '2026-11-16 07:19:47.09791+00', true);
INSERT INTO public.leases VALUES (44, '', 2, '2026-11-16 07:19:47.097923+00', true);
INSERT INTO public.leases VALUES (45, '', 2, '2026-11-16 07:19:47.097926+00', true);
INSERT INTO public.leases VALUES (46, '', 2, '2026-11-16 07:19:47.097928+00', true);
INSERT INTO public.leases VALUES (47, '', 2, '2026-11-16 07:19:47.097931+00', true);
INSERT INTO public.leases VALUES (48, '', 2, '2026-11-16 07:19:47.097933+00', true);
INSERT INTO public.leases VALUES (49, '', 2, '2026-11-16 07:19:47.097935+00', true);
INSERT INTO public.leases VALUES (50, '', 2, '2026-11-16 07:19:47.097937+00', true);
INSERT INTO public.leases VALUES (51, '', 2, '2026-11-16 07:19:47.09794+00', true);
INSERT INTO public.leases VALUES (52, '', 2, '2026-11-16 07:19:47.097943+00', true);
INSERT INTO public.leases VALUES (53, '', 2, '2026-11-16 07:19:47.097945+00', true);
INSERT INTO public.leases VALUES (54, '', 2, '2026-11-16 07:19:47.097949+00', true);
INSERT INTO public.leases VALUES (55, '', 2, '2026-11-16 07:19:47.097951+00', true);
INSERT INTO public.leases VALUES (56, '', 2, '2026-11-16 07:19:47.097953+00', true);
INSERT INTO public.leases VALUES (57, '', 2, '2026-11-16 07:19:47.097956+00', true);
INSERT INTO public.leases VALUES (58, '', 2, '2026-11-16 07:19:47.097958+00', true);
INSERT INTO public.leases VALUES (59, '', 2, '2026-11-16 07:19:47.09796+00', true);
INSERT INTO public.leases VALUES (60, '', 2, '2026-11-16 07:19:47.097962+00', true);
INSERT INTO public.leases VALUES (61, '', 2, '2026-11-16 07:19:47.097964+00', true);
INSERT INTO public.leases VALUES (62, '', 2, '2026-11-16 07:19:47.097966+00', true);
INSERT INTO public.leases VALUES (63, '', 2, '2026-11-16 07:19:47.097968+00', true);
INSERT INTO public.nodes VALUES ('before', 'eea4578aa54c3065', 'process 13570 on vm', '2026-11-16 07:19:44.273662+00', '2026-11-16 07:19:47.085676+00', 'http://127.0.0.1:33395', 'v0.0.0-20261116071545-b6dcf6795667', 11, 'leaving', '2026-11-16 07:19:52.085676+00', 0, 0, 0, '00:00:00');
INSERT INTO public.pending_deliveries VALUES ('01a1e339-e0e9-7558-9402-c1ffaa865374', '01a1e339-e83e-7c12-a798-3b329cce9e7d', '01a1e339-e83e-7124-bc8a-269dd949c545', '01a1e339-e7ed-7d92-a7ce-990bff355977', 0, '2026-11-16 07:19:45.47007+00', '2026-11-16 07:19:45.472198+00', '2026-11-16 07:20:16.10905+00', '2026-11-16 07:19:45.472129+00', 1, 0, 1, 55, false, 'connection-refused', 'accept', '');
INSERT INTO public.pending_deliveries VALUES ('01a1e339-e0e9-7558-9402-c1ffaa865374', '01a1e339-e840-73a4-bdd6-f5b7817af17d', '01a1e339-e840-7758-ac58-d66f20380314', '01a1e339-e7ed-7d92-a7ce-990bff355977', 0, '2026-11-16 07:19:45.472211+00', '2026-11-16 07:19:45.49026+00', '2026-11-16 07:20:17.438162+00', '2026-11-16 07:19:45.490156+00', 1, 0, 1, 55, false, 'connection-refused', 'accept', '');
INSERT INTO public.pending_deliveries VALUES ('01a1e339-e0e9-7558-9402-c1ffaa865374', '01a1e339-e83e-779f-8052-7bbf73d7fa19', '01a1e339-e83e-7124-bc8a-269dd949c545', '01a1e339-e7ba-771d-9c06-287ebbc62e73', 0, '2026-11-16 07:19:45.47007+00', '2026-11-16 07:19:46.28132+00', '2026-11-16 07:19:48.453764+00', '2026-11-16 07:19:45.471984+00', 3, 0, 3, 51, false, 'connection-refused', 'accept', '');
INSERT INTO public.schema_migrations VALUES (1, '0001_init', '2026-11-16 07:19:42.841899+00', 1);
INSERT INTO public.schema_migrations VALUES (2, '0002_dialects', '2026-11-16 07:19:42.991952+00', 2);
INSERT INTO public.schema_migrations VALUES (3, '0003_views', '2026-11-16 07:19:43.019357+00', 3);
INSERT INTO public.schema_migrations VALUES (4, '0004_sources', '2026-11-16 07:19:43.09164+00', 4);
INSERT INTO public.schema_migrations VALUES (5, '0005_commands', '2026-11-16 07:19:43.121646+00', 5);
INSERT INTO public.schema_migrations VALUES (6, '0006_key_makers', '2026-11-16 07:19:43.15641+00', 6);
INSERT INTO public.schema_migrations VALUES (7, '0007_fanouts', '2026-11-16 07:19:43.156784+00', 7);
INSERT INTO public.schema_migrations VALUES (8, '0008_nodes', '2026-11-16 07:19:43.173575+00', 8);
INSERT INTO public.schema_migrations VALUES (9, '0009_members', '2026-11-16 07:19:43.189414+00', 8);
INSERT INTO public.schema_migrations VALUES (10, '0010_config_changes', '2026-11-16 07:19:43.198973+00', 8);
INSERT INTO public.schema_migrations VALUES (11, '0011_allowances', '2026-11-16 07:19:43.216261+00', 8);
INSERT INTO public.sources VALUES ('01a1e339-e819-7433-b0c3-98db93645451', '01a1e339-e0e9-7558-9402-c1ffaa865374', 'shop', '', 'github', NULL, '\x01026b3104c4da03e22ca1be7556e6bcd87d485bea0903c58322ceb1b2dccd49e3f551ad9613b4e62612f37a9a0d01558c4884453f9c3d2e7ed211fdc36f0ec747b9cc4934fbff415127253c813b39c9b68b4f4099906d4e1434f748992d6834decda74b5bbe589e0c2d8d884a60705e616ea4473cfb2c4aef5ba0356f3166cc361c6de82243d61cf14ddd4e30ad6507d26bffd5f2f9207b2aecb5488c50d5c238864ef26ce298da2ca0bd1096ab4cb5545b7b97c7', '[{"id":"sec_01a1e339-e822-7005-850c-7344f7afc706","hint":"hjDM","created_at":"2026-11-16T07:19:45.442467Z"}]', false, 'store-and-forward', '{"fixed":"order.sent"}', NULL, 'active', '2026-11-16 07:19:45.442467+00', '2026-11-16 07:19:45.442467+00', 1);
INSERT INTO public.tenants VALUES ('01a1e339-e1ef-7f6c-84be-6670c701c2a0', 'beta', false, '2026-11-16 07:19:43.855944+00', NULL, 'LWPNY5', NULL, '');
INSERT INTO public.tenants VALUES ('01a1e339-e0e9-7558-9402-c1ffaa865374', 'acme', true, '2026-11-16 07:19:43.59323+00', NULL, 'ZE9FJD', '{ops@example.com}', 'strict');
INSERT INTO public.write_probe VALUES (true, '2026-11-16 07:19:44.449336+00');
ALTER TABLE ONLY public.acknowledgments
    ADD CONSTRAINT acknowledgments_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.allowances
    ADD CONSTRAINT allowances_pkey PRIMARY KEY (tenant_id, name, at);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_hash_key UNIQUE (hash);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT attempts_pkey PRIMARY KEY (delivery_id, id);
ALTER TABLE ONLY public.attempts_20261116_000000
    ADD CONSTRAINT attempts_20261116_000000_pkey PRIMARY KEY (delivery_id, id);
ALTER TABLE ONLY public.attempts_20261117_000000
    ADD CONSTRAINT attempts_20261117_000000_pkey PRIMARY KEY (delivery_id, id);
ALTER TABLE ONLY public.attempts_20261118_000000
    ADD CONSTRAINT attempts_20261118_000000_pkey PRIMARY KEY (delivery_id, id);
ALTER TABLE ONLY public.attempts_20261119_000000
    ADD CONSTRAINT attempts_20261119_000000_pkey PRIMARY KEY (delivery_id, id);
ALTER TABLE ONLY public.attempts_default
    ADD CONSTRAINT attempts_default_pkey PRIMARY KEY (delivery_id, id);
ALTER TABLE ONLY public.command_records
    ADD CONSTRAINT command_records_pkey PRIMARY KEY (idempotency_key, tenant);
ALTER TABLE ONLY public.config_version
    ADD CONSTRAINT config_version_pkey PRIMARY KEY (one);
ALTER TABLE ONLY public.deliveries
    ADD CONSTRAINT deliveries_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.deliveries_20261116_000000
    ADD CONSTRAINT deliveries_20261116_000000_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.deliveries_20261117_000000
    ADD CONSTRAINT deliveries_20261117_000000_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.deliveries_20261118_000000
    ADD CONSTRAINT deliveries_20261118_000000_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.deliveries_20261119_000000
    ADD CONSTRAINT deliveries_20261119_000000_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.deliveries_default
    ADD CONSTRAINT deliveries_default_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.endpoint_health
    ADD CONSTRAINT endpoint_health_pkey PRIMARY KEY (endpoint_id);
ALTER TABLE ONLY public.endpoint_secrets
    ADD CONSTRAINT endpoint_secrets_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.endpoints
    ADD CONSTRAINT endpoints_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.event_types
    ADD CONSTRAINT event_types_pkey PRIMARY KEY (tenant_id, name);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.events_20261116_000000
    ADD CONSTRAINT events_20261116_000000_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.events_20261117_000000
    ADD CONSTRAINT events_20261117_000000_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.events_20261118_000000
    ADD CONSTRAINT events_20261118_000000_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.events_20261119_000000
    ADD CONSTRAINT events_20261119_000000_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.events_default
    ADD CONSTRAINT events_default_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.evidence_heads
    ADD CONSTRAINT evidence_heads_pkey PRIMARY KEY (tenant);
ALTER TABLE ONLY public.evidence_items
    ADD CONSTRAINT evidence_items_pkey PRIMARY KEY (tenant, seq);
ALTER TABLE ONLY public.fanouts
    ADD CONSTRAINT fanouts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.idempotency_records
    ADD CONSTRAINT idempotency_records_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.kept_events
    ADD CONSTRAINT kept_events_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.key_checks
    ADD CONSTRAINT key_checks_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (shard);
ALTER TABLE ONLY public.nodes
    ADD CONSTRAINT nodes_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.notices
    ADD CONSTRAINT notices_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.pending_deliveries
    ADD CONSTRAINT pending_deliveries_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.rejections
    ADD CONSTRAINT rejections_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (version);
ALTER TABLE ONLY public.sources
    ADD CONSTRAINT sources_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tenants
    ADD CONSTRAINT tenants_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.write_probe
    ADD CONSTRAINT write_probe_pkey PRIMARY KEY (one);
CREATE INDEX acknowledgments_by_source ON public.acknowledgments USING btree (source_id, id);
CREATE INDEX allowances_expired ON public.allowances USING btree (expires_at);
CREATE INDEX api_keys_by_tenant ON public.api_keys USING btree (tenant_id, id);
CREATE INDEX command_records_by_command ON public.command_records USING btree (command_id, tenant);
CREATE INDEX command_records_free ON public.command_records USING btree (free_at) WHERE (free_at IS NOT NULL);
CREATE INDEX command_records_lost ON public.command_records USING btree (lost_at) WHERE (lost_at IS NOT NULL);
CREATE INDEX config_changes_by_version ON public.config_changes USING btree (version);
CREATE INDEX dead_letters_by_age ON public.dead_letters USING btree (dead_at);
CREATE INDEX dead_letters_by_end ON public.dead_letters USING btree (public.month_after(dead_at));
CREATE INDEX dead_letters_by_endpoint ON public.dead_letters USING btree (endpoint_id, id);
CREATE INDEX dead_letters_by_tenant ON public.dead_letters USING btree (tenant_id, id);
CREATE UNIQUE INDEX dead_letters_open ON public.dead_letters USING btree (tenant_id, id) WHERE (replayed_at IS NULL);
CREATE INDEX deliveries_by_endpoint ON ONLY public.deliveries USING btree (endpoint_id, id);
CREATE INDEX deliveries_20261116_000000_endpoint_id_id_idx ON public.deliveries_20261116_000000 USING btree (endpoint_id, id);
CREATE INDEX deliveries_eventful ON ONLY public.deliveries USING btree (endpoint_id, updated_at) WHERE ((attempts > 1) OR (status <> 'accepted'::text));
CREATE INDEX deliveries_20261116_000000_endpoint_id_updated_at_idx ON public.deliveries_20261116_000000 USING btree (endpoint_id, updated_at) WHERE ((attempts > 1) OR (status <> 'accepted'::text));
CREATE INDEX deliveries_again ON ONLY public.deliveries USING btree (tenant_id, id) WHERE (run_trigger <> 'accept'::text);
CREATE INDEX deliveries_20261116_000000_tenant_id_id_idx ON public.deliveries_20261116_000000 USING btree (tenant_id, id) WHERE (run_trigger <> 'accept'::text);
CREATE INDEX deliveries_by_status ON ONLY public.deliveries USING btree (tenant_id, status, id) WHERE (status <> 'accepted'::text);
CREATE INDEX deliveries_20261116_000000_tenant_id_status_id_idx ON public.deliveries_20261116_000000 USING btree (tenant_id, status, id) WHERE (status <> 'accepted'::text);
CREATE INDEX deliveries_20261117_000000_endpoint_id_id_idx ON public.deliveries_20261117_000000 USING btree (endpoint_id, id);
CREATE INDEX deliveries_20261117_000000_endpoint_id_updated_at_idx ON public.deliveries_20261117_000000 USING btree (endpoint_id, updated_at) WHERE ((attempts > 1) OR (status <> 'accepted'::text));
CREATE INDEX deliveries_20261117_000000_tenant_id_id_idx ON public.deliveries_20261117_000000 USING btree (tenant_id, id) WHERE (run_trigger <> 'accept'::text);
CREATE INDEX deliveries_20261117_000000_tenant_id_status_id_idx ON public.deliveries_20261117_000000 USING btree (tenant_id, status, id) WHERE (status <> 'accepted'::text);
CREATE INDEX deliveries_20261118_000000_endpoint_id_id_idx ON public.deliveries_20261118_000000 USING btree (endpoint_id, id);
CREATE INDEX deliveries_20261118_000000_endpoint_id_updated_at_idx ON public.deliveries_20261118_000000 USING btree (endpoint_id, updated_at) WHERE ((attempts > 1) OR (status <> 'accepted'::text));
CREATE INDEX deliveries_20261118_000000_tenant_id_id_idx ON public.deliveries_20261118_000000 USING btree (tenant_id, id) WHERE (run_trigger <> 'accept'::text);
CREATE INDEX deliveries_20261118_000000_tenant_id_status_id_idx ON public.deliveries_20261118_000000 USING btree (tenant_id, status, id) WHERE (status <> 'accepted'::text);
CREATE INDEX deliveries_20261119_000000_endpoint_id_id_idx ON public.deliveries_20261119_000000 USING btree (endpoint_id, id);
CREATE INDEX deliveries_20261119_000000_endpoint_id_updated_at_idx ON public.deliveries_20261119_000000 USING btree (endpoint_id, updated_at) WHERE ((attempts > 1) OR (status <> 'accepted'::text));
CREATE INDEX deliveries_20261119_000000_tenant_id_id_idx ON public.deliveries_20261119_000000 USING btree (tenant_id, id) WHERE (run_trigger <> 'accept'::text);
CREATE INDEX deliveries_20261119_000000_tenant_id_status_id_idx ON public.deliveries_20261119_000000 USING btree (tenant_id, status, id) WHERE (status <> 'accepted'::text);
CREATE INDEX deliveries_default_endpoint_id_id_idx ON public.deliveries_default USING btree (endpoint_id, id);
CREATE INDEX deliveries_default_endpoint_id_updated_at_idx ON public.deliveries_default USING btree (endpoint_id, updated_at) WHERE ((attempts > 1) OR (status <> 'accepted'::text));
CREATE INDEX deliveries_default_tenant_id_id_idx ON public.deliveries_default USING btree (tenant_id, id) WHERE (run_trigger <> 'accept'::text);
CREATE INDEX deliveries_default_tenant_id_status_id_idx ON public.deliveries_default USING btree (tenant_id, status, id) WHERE (status <> 'accepted'::text);
CREATE INDEX endpoint_secrets_by_endpoint ON public.endpoint_secrets USING btree (endpoint_id, id);
CREATE INDEX endpoint_secrets_public ON public.endpoint_secrets USING btree (id) WHERE (public_key IS NOT NULL);
CREATE UNIQUE INDEX endpoints_by_code ON public.endpoints USING btree (code) WHERE (code <> ''::text);
CREATE INDEX endpoints_by_status ON public.endpoints USING btree (((status)::character varying(20)));
CREATE INDEX endpoints_by_tenant ON public.endpoints USING btree (tenant_id, id);
CREATE INDEX events_summary ON ONLY public.events USING brin (COALESCE(occurred_at, created_at), ((type)::character varying(100)) text_bloom_ops) WITH (pages_per_range='32', autosummarize='on');
CREATE INDEX events_20261116_000000_coalesce_type_idx ON public.events_20261116_000000 USING brin (COALESCE(occurred_at, created_at), ((type)::character varying(100)) text_bloom_ops) WITH (pages_per_range='32', autosummarize='on');
CREATE INDEX events_by_key ON ONLY public.events USING btree (key_slot);
CREATE INDEX events_20261116_000000_key_slot_idx ON public.events_20261116_000000 USING btree (key_slot);
CREATE INDEX events_by_source ON ONLY public.events USING btree (tenant_id, source_id) WHERE (format = 'cybercube'::text);
CREATE INDEX events_20261116_000000_tenant_id_source_id_idx ON public.events_20261116_000000 USING btree (tenant_id, source_id) WHERE (format = 'cybercube'::text);
CREATE INDEX events_20261117_000000_coalesce_type_idx ON public.events_20261117_000000 USING brin (COALESCE(occurred_at, created_at), ((type)::character varying(100)) text_bloom_ops) WITH (pages_per_range='32', autosummarize='on');
CREATE INDEX events_20261117_000000_key_slot_idx ON public.events_20261117_000000 USING btree (key_slot);
CREATE INDEX events_20261117_000000_tenant_id_source_id_idx ON public.events_20261117_000000 USING btree (tenant_id, source_id) WHERE (format = 'cybercube'::text);
CREATE INDEX events_20261118_000000_coalesce_type_idx ON public.events_20261118_000000 USING brin (COALESCE(occurred_at, created_at), ((type)::character varying(100)) text_bloom_ops) WITH (pages_per_range='32', autosummarize='on');
CREATE INDEX events_20261118_000000_key_slot_idx ON public.events_20261118_000000 USING btree (key_slot);
CREATE INDEX events_20261118_000000_tenant_id_source_id_idx ON public.events_20261118_000000 USING btree (tenant_id, source_id) WHERE (format = 'cybercube'::text);
CREATE INDEX events_20261119_000000_coalesce_type_idx ON public.events_20261119_000000 USING brin (COALESCE(occurred_at, created_at), ((type)::character varying(100)) text_bloom_ops) WITH (pages_per_range='32', autosummarize='on');
CREATE INDEX events_20261119_000000_key_slot_idx ON public.events_20261119_000000 USING btree (key_slot);
CREATE INDEX events_20261119_000000_tenant_id_source_id_idx ON public.events_20261119_000000 USING btree (tenant_id, source_id) WHERE (format = 'cybercube'::text);
CREATE INDEX events_default_coalesce_type_idx ON public.events_default USING brin (COALESCE(occurred_at, created_at), ((type)::character varying(100)) text_bloom_ops) WITH (pages_per_range='32', autosummarize='on');
CREATE INDEX events_default_key_slot_idx ON public.events_default USING btree (key_slot);
CREATE INDEX events_default_tenant_id_source_id_idx ON public.events_default USING btree (tenant_id, source_id) WHERE (format = 'cybercube'::text);
CREATE INDEX evidence_items_by_command ON public.evidence_items USING btree (tenant, command_id, seq) WHERE (command_id IS NOT NULL);
CREATE INDEX evidence_items_by_key ON public.evidence_items USING btree (tenant, key, seq) WHERE (key IS NOT NULL);
CREATE INDEX evidence_items_by_submitted ON public.evidence_items USING btree (tenant, submitted_id, seq) WHERE (submitted_id IS NOT NULL);
CREATE INDEX idempotency_records_by_end ON public.idempotency_records USING btree (expires_at);
CREATE INDEX notices_by_age ON public.notices USING btree (created_at);
CREATE INDEX notices_by_tenant ON public.notices USING btree (tenant_id, id);
CREATE INDEX pending_deliveries_due ON public.pending_deliveries USING btree (shard, endpoint_id, due_at) WHERE (claim_epoch = 0);
CREATE INDEX pending_deliveries_retry ON public.pending_deliveries USING btree (due_at) WHERE ((attempts > 0) AND (run_attempts > 0));
CREATE INDEX pending_deliveries_tried ON public.pending_deliveries USING btree (endpoint_id, updated_at) WHERE (attempts > 0);
CREATE INDEX rejections_by_source ON public.rejections USING btree (source_id, id);
CREATE INDEX rejections_by_time ON public.rejections USING btree (at);
CREATE UNIQUE INDEX sources_by_name ON public.sources USING btree (tenant_id, name) WHERE (status <> 'deleted'::text);
CREATE INDEX sources_by_tenant ON public.sources USING btree (tenant_id, id);
CREATE UNIQUE INDEX tenants_by_code ON public.tenants USING btree (code) WHERE (code <> ''::text);
ALTER INDEX public.attempts_pkey ATTACH PARTITION public.attempts_20261116_000000_pkey;
ALTER INDEX public.attempts_pkey ATTACH PARTITION public.attempts_20261117_000000_pkey;
ALTER INDEX public.attempts_pkey ATTACH PARTITION public.attempts_20261118_000000_pkey;
ALTER INDEX public.attempts_pkey ATTACH PARTITION public.attempts_20261119_000000_pkey;
ALTER INDEX public.attempts_pkey ATTACH PARTITION public.attempts_default_pkey;
ALTER INDEX public.deliveries_by_endpoint ATTACH PARTITION public.deliveries_20261116_000000_endpoint_id_id_idx;
ALTER INDEX public.deliveries_eventful ATTACH PARTITION public.deliveries_20261116_000000_endpoint_id_updated_at_idx;
ALTER INDEX public.deliveries_pkey ATTACH PARTITION public.deliveries_20261116_000000_pkey;
ALTER INDEX public.deliveries_again ATTACH PARTITION public.deliveries_20261116_000000_tenant_id_id_idx;
ALTER INDEX public.deliveries_by_status ATTACH PARTITION public.deliveries_20261116_000000_tenant_id_status_id_idx;
ALTER INDEX public.deliveries_by_endpoint ATTACH PARTITION public.deliveries_20261117_000000_endpoint_id_id_idx;
ALTER INDEX public.deliveries_eventful ATTACH PARTITION public.deliveries_20261117_000000_endpoint_id_updated_at_idx;
ALTER INDEX public.deliveries_pkey ATTACH PARTITION public.deliveries_20261117_000000_pkey;
ALTER INDEX public.deliveries_again ATTACH PARTITION public.deliveries_20261117_000000_tenant_id_id_idx;
ALTER INDEX public.deliveries_by_status ATTACH PARTITION public.deliveries_20261117_000000_tenant_id_status_id_idx;
ALTER INDEX public.deliveries_by_endpoint ATTACH PARTITION public.deliveries_20261118_000000_endpoint_id_id_idx;
ALTER INDEX public.deliveries_eventful ATTACH PARTITION public.deliveries_20261118_000000_endpoint_id_updated_at_idx;
ALTER INDEX public.deliveries_pkey ATTACH PARTITION public.deliveries_20261118_000000_pkey;
ALTER INDEX public.deliveries_again ATTACH PARTITION public.deliveries_20261118_000000_tenant_id_id_idx;
ALTER INDEX public.deliveries_by_status ATTACH PARTITION public.deliveries_20261118_000000_tenant_id_status_id_idx;
ALTER INDEX public.deliveries_by_endpoint ATTACH PARTITION public.deliveries_20261119_000000_endpoint_id_id_idx;
ALTER INDEX public.deliveries_eventful ATTACH PARTITION public.deliveries_20261119_000000_endpoint_id_updated_at_idx;
ALTER INDEX public.deliveries_pkey ATTACH PARTITION public.deliveries_20261119_000000_pkey;
ALTER INDEX public.deliveries_again ATTACH PARTITION public.deliveries_20261119_000000_tenant_id_id_idx;
ALTER INDEX public.deliveries_by_status ATTACH PARTITION public.deliveries_20261119_000000_tenant_id_status_id_idx;
ALTER INDEX public.deliveries_by_endpoint ATTACH PARTITION public.deliveries_default_endpoint_id_id_idx;
ALTER INDEX public.deliveries_eventful ATTACH PARTITION public.deliveries_default_endpoint_id_updated_at_idx;
ALTER INDEX public.deliveries_pkey ATTACH PARTITION public.deliveries_default_pkey;
ALTER INDEX public.deliveries_again ATTACH PARTITION public.deliveries_default_tenant_id_id_idx;
ALTER INDEX public.deliveries_by_status ATTACH PARTITION public.deliveries_default_tenant_id_status_id_idx;
ALTER INDEX public.events_summary ATTACH PARTITION public.events_20261116_000000_coalesce_type_idx;
ALTER INDEX public.events_by_key ATTACH PARTITION public.events_20261116_000000_key_slot_idx;
ALTER INDEX public.events_pkey ATTACH PARTITION public.events_20261116_000000_pkey;
ALTER INDEX public.events_by_source ATTACH PARTITION public.events_20261116_000000_tenant_id_source_id_idx;
ALTER INDEX public.events_summary ATTACH PARTITION public.events_20261117_000000_coalesce_type_idx;
ALTER INDEX public.events_by_key ATTACH PARTITION public.events_20261117_000000_key_slot_idx;
ALTER INDEX public.events_pkey ATTACH PARTITION public.events_20261117_000000_pkey;
ALTER INDEX public.events_by_source ATTACH PARTITION public.events_20261117_000000_tenant_id_source_id_idx;
ALTER INDEX public.events_summary ATTACH PARTITION public.events_20261118_000000_coalesce_type_idx;
ALTER INDEX public.events_by_key ATTACH PARTITION public.events_20261118_000000_key_slot_idx;
ALTER INDEX public.events_pkey ATTACH PARTITION public.events_20261118_000000_pkey;
ALTER INDEX public.events_by_source ATTACH PARTITION public.events_20261118_000000_tenant_id_source_id_idx;
ALTER INDEX public.events_summary ATTACH PARTITION public.events_20261119_000000_coalesce_type_idx;
ALTER INDEX public.events_by_key ATTACH PARTITION public.events_20261119_000000_key_slot_idx;
ALTER INDEX public.events_pkey ATTACH PARTITION public.events_20261119_000000_pkey;
ALTER INDEX public.events_by_source ATTACH PARTITION public.events_20261119_000000_tenant_id_source_id_idx;
ALTER INDEX public.events_summary ATTACH PARTITION public.events_default_coalesce_type_idx;
ALTER INDEX public.events_by_key ATTACH PARTITION public.events_default_key_slot_idx;
ALTER INDEX public.events_pkey ATTACH PARTITION public.events_default_pkey;
ALTER INDEX public.events_by_source ATTACH PARTITION public.events_default_tenant_id_source_id_idx;
CREATE TRIGGER evidence_heads_stay BEFORE DELETE OR TRUNCATE ON public.evidence_heads FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER evidence_items_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.evidence_items FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();
CREATE CONSTRAINT TRIGGER note_config_change AFTER DELETE OR UPDATE ON public.api_keys DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.note_config_change();
CREATE CONSTRAINT TRIGGER note_config_change AFTER INSERT OR DELETE OR UPDATE ON public.endpoint_secrets DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.note_config_change();
CREATE CONSTRAINT TRIGGER note_config_change AFTER INSERT OR DELETE OR UPDATE ON public.endpoints DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.note_config_change();
CREATE CONSTRAINT TRIGGER note_config_change AFTER INSERT OR DELETE OR UPDATE ON public.event_types DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.note_config_change();
CREATE CONSTRAINT TRIGGER note_config_change AFTER DELETE OR UPDATE ON public.tenants DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.note_config_change();
CREATE TRIGGER read_only INSTEAD OF INSERT OR DELETE OR UPDATE ON public.webhook_deliveries FOR EACH ROW EXECUTE FUNCTION public.refuse_write();
CREATE TRIGGER read_only INSTEAD OF INSERT OR DELETE OR UPDATE ON public.webhook_dlq FOR EACH ROW EXECUTE FUNCTION public.refuse_write();
CREATE TRIGGER read_only INSTEAD OF INSERT OR DELETE OR UPDATE ON public.webhook_endpoints FOR EACH ROW EXECUTE FUNCTION public.refuse_write();
CREATE TRIGGER read_only INSTEAD OF INSERT OR DELETE OR UPDATE ON public.webhook_events FOR EACH ROW EXECUTE FUNCTION public.refuse_write();
