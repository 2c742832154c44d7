-- Conditions on the content of events, as JSON; NULL: none.
ALTER TABLE endpoints ADD COLUMN content_filter TEXT;
