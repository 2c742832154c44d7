-- Evidence is found by the object that it is about, also after the object and the command's record are gone. Items of before have no target.
ALTER TABLE evidence_items ADD COLUMN target TEXT NOT NULL DEFAULT '';
CREATE INDEX evidence_items_target ON evidence_items (tenant, target, seq) WHERE target <> '';
