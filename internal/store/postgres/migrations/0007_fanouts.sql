-- The remaining work for events with too many deliveries for one transaction. The lists are concatenated ids. They are
-- stored outside of the row, so that moving the cursor does not write them again.
CREATE TABLE fanouts (
    id          uuid PRIMARY KEY, -- of the first event
    tenant_id   uuid NOT NULL,
    run_trigger text NOT NULL,
    events      bytea NOT NULL,
    endpoints   bytea NOT NULL,
    done        int4 NOT NULL
) WITH (fillfactor = 50);
ALTER TABLE fanouts ALTER events SET STORAGE EXTERNAL, ALTER endpoints SET STORAGE EXTERNAL;
