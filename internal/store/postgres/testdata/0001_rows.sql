-- Rows as the first release wrote them.
INSERT INTO tenants VALUES ('00000000-0000-7000-8000-000000000001', 'acme', true, '2026-03-14 12:00:00Z', NULL);
INSERT INTO endpoints VALUES ('00000000-0000-7000-8000-000000000011', '00000000-0000-7000-8000-000000000001',
    'https://receiver.example/hook', 'POST', 'eds', 'orders', '{order.*}', '{"region":["eu"]}', '{"max_retries":3}',
    '{"team":"billing"}', '\x00ff', '{"header_names":["X-A"]}', 'paused', 'maintenance', '2026-03-14 12:00:00Z',
    '2026-03-14 12:00:00Z', '2026-03-14 12:00:01Z', 7);
INSERT INTO endpoint_secrets VALUES ('00000000-0000-7000-8000-000000000021', '00000000-0000-7000-8000-000000000011',
    '00000000-0000-7000-8000-000000000001', 'ed25519', '\xaa', '\xbb', '2026-03-14 12:00:00Z', '2026-03-14 12:00:00Z', NULL);
INSERT INTO endpoint_health VALUES ('00000000-0000-7000-8000-000000000011', 1, 2, 3, 4, 5, 12.5, 'status',
    '2026-03-14 12:00:00Z', '2026-03-14 12:00:01Z', NULL, NULL, NULL, NULL, '2026-03-14 12:00:01Z');
UPDATE leases SET owner = 'node-a', epoch = 4, expires_at = '2026-03-14 12:00:30Z' WHERE shard = 17;

-- Two days: one has its partition, the other one lies in the default.
CREATE TABLE events_20260314_000000 PARTITION OF events
    FOR VALUES FROM ('019ce9a4-8800-0000-0000-000000000000') TO ('019ceeca-e400-0000-0000-000000000000');
INSERT INTO events VALUES
    ('00000000-0000-7000-8000-000000000001', '019cec37-b600-7000-8000-000000000031', '00000000-0000-7000-8000-000000000003',
     '2026-03-14 12:00:00Z', 'order.paid', 'key-1', 'application/json', 0,
     '\x019cec37b60070008000000000000041019cec37b60070008000000000000042019cec37b60070008000000000000043',
     '{"region":"eu"}', decode(repeat('00', 20000), 'hex')),
    ('00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000033', NULL, '2026-03-14 12:00:00Z', 'order.none',
     'key-3', '', 0, '', NULL, '');
INSERT INTO deliveries VALUES
    ('00000000-0000-7000-8000-000000000001', '019cec37-b600-7000-8000-000000000041', '019cec37-b600-7000-8000-000000000031',
     '00000000-0000-7000-8000-000000000011', '2026-03-14 12:00:00Z', '2026-03-14 12:00:01Z', '2026-03-14 12:00:00Z',
     '2026-03-14 12:00:00.5Z', 1, 200, 1, false, 'accepted', 'accepted', 'accept', ''),
    ('00000000-0000-7000-8000-000000000001', '019cec37-b600-7000-8000-000000000043', '019cec37-b600-7000-8000-000000000031',
     '00000000-0000-7000-8000-000000000011', '2026-03-14 12:00:00Z', '2026-03-14 12:00:02Z', '2026-03-14 12:00:00Z',
     '2026-03-14 12:00:01.5Z', 1, 422, 1, false, 'terminal', 'status', 'accept', '');
INSERT INTO pending_deliveries VALUES
    ('00000000-0000-7000-8000-000000000001', '019cec37-b600-7000-8000-000000000042', '019cec37-b600-7000-8000-000000000031',
     '00000000-0000-7000-8000-000000000011', 0, '2026-03-14 12:00:00Z', '2026-03-14 12:00:30Z', '2026-03-14 12:01:00Z',
     '2026-03-14 12:00:00.5Z', 2, 0, 2, 17, false, 'timeout', 'accept', '');
INSERT INTO attempts VALUES
    ('019cec37-b600-7000-8000-000000000041', '019cec37-b600-7000-8000-000000000051', '2026-03-14 12:00:00.5Z', NULL, 1500, 1, 200,
     'accept', 'accepted', 'accepted', 'https://receiver.example/hook', NULL, '{"proto":"HTTP/1.1"}'),
    ('019cec37-b600-7000-8000-000000000042', '019cec37-b600-7000-8000-000000000052', '2026-03-14 12:00:00.5Z',
     '2026-03-14 12:00:20Z', 1500, 1, 503, 'accept', 'transient', 'status', 'https://receiver.example/hook',
     '{"class":"application","retry_after_ns":5000000000}', NULL),
    ('019cec37-b600-7000-8000-000000000042', '019cec37-b600-7000-8000-000000000053', '2026-03-14 12:00:29Z',
     '2026-03-14 12:01:00Z', 1000000, 2, 0, 'retry', 'transient', 'timeout', 'https://receiver.example/hook',
     '{"class":"transport"}', '{"detail":"slow"}'),
    ('019cec37-b600-7000-8000-000000000043', '019cec37-b600-7000-8000-000000000054', '2026-03-14 12:00:01.5Z', NULL, 1500, 1, 422,
     'accept', 'terminal', 'status', 'https://receiver.example/hook', '{"class":"application"}', NULL);

-- One dead letter of an event that is there, one of an event that was swept.
INSERT INTO dead_letters SELECT d.*, '2026-03-14 12:00:02Z', 'answered 422', e.principal, e.created_at, e.type, e.key,
    e.content_type, e.attributes, e.body
    FROM deliveries AS d JOIN events AS e ON e.id = d.event_id WHERE d.status = 'terminal';
INSERT INTO dead_letters VALUES
    ('00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000044', '00000000-0000-7000-8000-000000000032',
     '00000000-0000-7000-8000-000000000011', '2026-03-13 12:00:00Z', '2026-03-13 12:00:02Z', '2026-03-13 12:00:00Z',
     '2026-03-13 12:00:01Z', 1, 422, 1, false, 'exhausted', 'attempts-exhausted', 'accept', '', '2026-03-13 12:00:02Z',
     'answered 503', '00000000-0000-7000-8000-000000000003', '2026-03-13 12:00:00Z', 'order.sent', 'key-2', 'text/plain', NULL, 'hello');
