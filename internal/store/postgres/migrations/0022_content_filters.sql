-- Programs of schema 11 and later may run beside this one.
-- Conditions on the content of events; NULL: none. Older programs do not know the column and would deliver what a filter excludes: the
-- first filter is refused while such a node is alive, and from then on this row of schema_migrations keeps older programs from starting.
ALTER TABLE endpoints ADD COLUMN content_filter json;
