-- Programs of schema 11 and later may run beside this one.
-- Evidence is found by the object that it is about, also after the object and the command's record are gone. Items of before have no target.
ALTER TABLE evidence_items ADD COLUMN target text COLLATE "C"; -- null if the item has none
CREATE INDEX evidence_items_by_target ON evidence_items (tenant, target, seq) WHERE target IS NOT NULL;
